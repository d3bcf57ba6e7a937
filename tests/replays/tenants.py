"""Two tenants and what they share: 40 queues, 200 asks, limits, placement rules, access lists.

Every number that the questions are held against follows from what is said here, on ten nodes of 8
cores with asks of 1 core each:

- `red` may use 40 cores at most; ann may use 6 of them, in one application. Her queue `team01` is
  guaranteed these 6. Rob fills the rest: of 85 asks 34 run, and 51 wait at the maximum.
- `shared` is guaranteed 40 cores. Of sam's 65 asks 40 run, and then the nodes are full.
- `blue` comes last, is guaranteed 40, and waits 10 s before it preempts. Its group may use 30 cores.
  So of bea's 40 asks 30 evict what may go: not shared (guaranteed 40, uses 40), not ann (guaranteed
  6, uses 6), but 30 of rob's 34. The other 10 wait at the limit of the group.
- Mia has no right to blue, so the next placement rule puts her application into shared; zed names no
  queue and comes there as well. Eve, whom that rule does not take, is refused.
"""

from __future__ import annotations

from events import vocabulary as v
from evsched.config import load_texts
from evsched.core.engine import Engine
from tests.core.histories import START, settle

TEAMS = 18
FILE = "queues.yaml"


def _teams(first=""):
    """Return the queues of a tenant, one a team, the first with settings of its own."""
    return "\n".join(
        f"              - {{name: team{number:02}{first if number == 1 else ''}}}"
        for number in range(1, TEAMS + 1)
    )


QUEUES = f"""\
partitions:
  - name: default
    placementrules:
      - {{name: provided}}
      - {{name: fixed, value: root.shared, filter: {{type: deny, users: [eve]}}}}
    queues:
      - name: root
        queues:
          - name: red
            submitacl: "ann,rob"
            resources: {{max: {{vcore: 40}}}}
            limits:
              - {{limit: ann, users: [ann], maxresources: {{vcore: 6}}, maxapplications: 1}}
            queues:
{_teams(", resources: {guaranteed: {vcore: 6}}")}
          - name: blue
            submitacl: " blue-dev"
            resources: {{guaranteed: {{vcore: 40}}}}
            properties: {{preemption.delay: 10s}}
            limits:
              - {{limit: dev, groups: [blue-dev], maxresources: {{vcore: 30}}}}
            queues:
{_teams()}
          - name: shared
            submitacl: "*"
            resources: {{guaranteed: {{vcore: 40}}}}
"""


def ask(name, application):
    """Return an ask of 1 core."""
    return v.AskSubmitted(ask=name, application=application, resources={"vcore": 1000})


def application(name, queue, user, *groups):
    """Return an application."""
    return v.ApplicationSubmitted(application=name, queue=queue, user=user, groups=groups)


def _came():
    """Return what comes, a batch a second: 200 asks in 21 applications, two more without any, and one that is refused."""
    (configuration,) = load_texts([(FILE, QUEUES)]).configurations
    yield [
        v.ConfigurationApplied(configuration=configuration, document=QUEUES, actor="ops", message="two tenants"),
        *(v.NodeRegistered(node=f"n{one}", capacity={"vcore": 8000}) for one in range(10)),
    ]  # fmt: skip
    yield [
        application("ann-1", "root.red.team01", "ann"),
        *(ask(f"ann-{one}", "ann-1") for one in range(1, 10)),
    ]
    yield [application("ann-2", "root.red.team02", "ann"), ask("ann-10", "ann-2")]
    for team in range(2, TEAMS + 1):
        name = f"rob-{team:02}"
        yield [
            application(name, f"root.red.team{team:02}", "rob"),
            *(ask(f"{name}-{one}", name) for one in range(1, 6)),
        ]
    yield [
        application("sam-1", "root.shared", "sam"),
        *(ask(f"sam-{one:02}", "sam-1") for one in range(1, 66)),
    ]
    yield [
        application("mia-1", "root.blue.team03", "mia"),
        application("zed-1", "", "zed"),
        application("eve-1", "root.blue.team03", "eve"),
    ]
    yield [
        application("bea-1", "root.blue.team01", "bea", "blue-dev"),
        *(ask(f"bea-{one:02}", "bea-1") for one in range(1, 41)),
    ]


def steps():
    """Return the steps of the log: (time, events, inbox_next); what has to go is gone 2 s later."""
    engine, taken, position = Engine(), [], 0
    taken.append((START, engine.lead(START, 1, "leader-1", 500), 0))
    inputs, leaving, time = [*_came(), *([] for _ in range(40))], [], START
    for batch in inputs:
        time += 1000
        taken += [(at, found, position) for at, found in settle(engine, time - 1) if found]
        ended = [v.AllocationReleased(allocation=one, reason="preempted") for one in leaving]
        leaving = [one.id for one in engine.state.allocations.values() if one.eviction_requested]
        leaving = [one for one in leaving if one not in {each.allocation for each in ended}]
        proposals = [
            v.Proposal(input=one, position=position + number)
            for number, one in enumerate([*ended, *batch])
        ]
        position += len(proposals)
        events = engine.step(time, proposals)
        taken += [(time, events, position)] if events else []
    return taken

"""Random histories of a small cluster, for properties: what could come through the inbox, sensible or not."""

from __future__ import annotations

from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import PaceSpec, QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.rules import FIRST, NEWEST

START = 1_767_225_600_000
NODES = ("n1", "n2", "n3")
LEAVES = ("root.a", "root.p.b", "root.p.c")
TASKS = tuple(f"t{number}" for number in range(12))

amounts = st.fixed_dictionaries(
    {"vcore": st.integers(0, 4000)}, optional={"memory": st.integers(1, 8)}
)
few = st.none() | st.fixed_dictionaries({"vcore": st.sampled_from([0, 2000, 5000, 9000])})


@st.composite
def configurations(draw: st.DrawFn) -> YunikornSpec:
    """Return a valid tree of three leaves with random guarantees, maxima and properties."""

    def leaf(name: str) -> QueueSpec:
        guaranteed = draw(few)
        maximum = draw(st.none() | st.just({"vcore": 10_000}) | st.just({"vcore": 12_000}))
        properties = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "preemption.policy": st.sampled_from(["fence", "disabled", "default"]),
                    "preemption.delay": st.sampled_from(["1s", "10s"]),
                    "priority.policy": st.just("fence"),
                    "priority.offset": st.sampled_from(["-5", "3", "100"]),
                    "quota.preemption.delay": st.sampled_from(["5s", "60s"]),
                    "application.unschedasks.backoff": st.sampled_from(["0", "1", "2"]),
                    "application.unschedasks.backoff.delay": st.sampled_from(["5s", "20s"]),
                },
            )
        )
        return QueueSpec(name=name, guaranteed=guaranteed, maximum=maximum, properties=properties)

    above = QueueSpec(name="p", parent=True, queues=(leaf("b"), leaf("c")))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf("a"), above))
    together = st.none() | st.just({"vcore": 2000, "gpu": 1})
    pace = draw(st.builds(PaceSpec, max_resources=together, max_victims=st.none() | st.just(1)))
    return YunikornSpec(root=root, quota_preemption_enabled=draw(st.booleans()), pace=pace)


nodes = st.sampled_from(NODES)
tasks = st.sampled_from(TASKS)

asks = st.builds(
    v.AskSubmitted,
    ask=tasks,
    application=st.sampled_from(["x", "y", ""]),
    queue=st.sampled_from((*LEAVES, "root.p", "root.none", "")),
    resources=amounts,
    priority=st.integers(-2, 2),
    allow_preemption=st.booleans(),
    originator=st.booleans(),
    preemption_policy=st.sampled_from(["PreemptLowerPriority", "Never"]),
    required_node=st.none() | nodes,
    created=st.none() | st.integers(START - 100_000, START),
)
inputs = st.one_of(
    asks,
    asks,
    asks,
    st.builds(
        v.ApplicationSubmitted,
        application=st.sampled_from(["x", "y"]),
        queue=st.sampled_from(LEAVES),
    ),
    st.builds(v.ApplicationRemoved, application=st.sampled_from(["x", "y"])),
    st.builds(
        v.NodeRegistered,
        node=nodes,
        capacity=st.just({"vcore": 10_000, "memory": 20}),
        schedulable=st.booleans(),
    ),
    st.builds(v.NodeRegistered, node=nodes, capacity=st.just({"vcore": 10_000, "memory": 20})),
    st.builds(
        v.NodeUpdated,
        node=nodes,
        capacity=st.none() | amounts,
        schedulable=st.none() | st.booleans(),
    ),
    st.builds(v.NodeRemoved, node=nodes),
    st.builds(v.AskWithdrawn, ask=tasks),
    st.builds(v.AllocationReleased, allocation=tasks),
    st.builds(v.EvictionRefused, allocation=tasks),
    st.builds(
        v.AllocationRestored,
        allocation=tasks,
        queue=st.sampled_from(LEAVES),
        application=st.just("x"),
        node=nodes,
        resources=amounts,
    ),
    st.builds(v.ReservationRestored, ask=tasks, node=nodes),
    st.builds(v.BindingObserved, ask=tasks, node=nodes),
    st.builds(v.EvictionObserved, allocation=tasks),
    st.builds(v.ConfigurationApplied, configuration=configurations()),
    st.builds(v.RulesAdopted, rules=st.integers(FIRST, NEWEST)),
)
histories = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 1000, 11_000, 31_000]), st.lists(inputs, max_size=5), st.booleans()
    ),
    min_size=1,
    max_size=14,
)
"""Steps: (milliseconds since the step before, inputs, whether the process restarts before it)."""


def first_step(configuration: YunikornSpec) -> list[v.Proposal]:
    """Return the proposals that set a cluster up: a configuration and two nodes."""
    return [
        v.Proposal(input=v.ConfigurationApplied(configuration=configuration)),
        *(
            v.Proposal(input=v.NodeRegistered(node=name, capacity={"vcore": 10_000, "memory": 20}))
            for name in NODES[:2]
        ),
    ]


def settle(
    engine: Engine, until: int, steps: int = 200
) -> list[tuple[int, tuple[v.AnyEvent, ...]]]:
    """Step at every instant at which something is due up to ``until``; return (time, events) of each."""
    taken = []
    for _ in range(steps):
        due = engine.next_due()
        if due is None or due > until:
            return taken
        time = max(due, engine.state.time)
        taken.append((time, engine.step(time)))
    message = (
        f"the engine still wants to step at {engine.next_due()} after {steps} steps up to {until}"
    )
    raise AssertionError(message)

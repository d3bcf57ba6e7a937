"""A few words for clusters of an example: one resource, times in milliseconds from the start."""

from __future__ import annotations

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine

START = 1_767_225_600_000


def queue(name, *queues, **fields) -> QueueSpec:
    """Return a queue, a parent when it has queues."""
    return QueueSpec(name=name, queues=queues, parent=bool(queues), **fields)


def engine(*queues, root=None, **fields) -> Engine:
    """Return an engine with these queues below root."""
    made = Engine()
    top = QueueSpec(name="root", parent=True, queues=queues, submit_acl="*", **(root or {}))
    step(made, 0, v.ConfigurationApplied(configuration=YunikornSpec(root=top, **fields)))
    return made


def step(cluster, at, *inputs, decide=True):
    """Take a step and return its events; nothing may be refused."""
    events = cluster.step(START + at, [v.Proposal(input=one) for one in inputs], decide=decide)
    refused = [one for one in events if isinstance(one, v.InputRejected)]
    assert not refused, refused
    return events


def run_until(cluster, at):
    """Take every step that is due up to then, and one at that time; return all events."""
    events = []
    while (due := cluster.next_due()) is not None and due <= START + at:
        events += cluster.step(max(due, cluster.state.time))
    return [*events, *cluster.step(START + at)]


def node(name, vcore, **fields):
    """Return a node."""
    return v.NodeRegistered(node=name, capacity={"vcore": vcore}, **fields)


def running(name, leaf, where, vcore, *, age=600, application=None, **fields):
    """Return a task that runs, created so many seconds before the start."""
    created = START - 1000 * age
    application = application or f"app-{leaf}"
    return v.AllocationRestored(
        allocation=name,
        application=application,
        queue=leaf,
        node=where,
        resources={"vcore": vcore},
        created=created,
        **fields,
    )


def ask(name, leaf, vcore, *, application=None, **fields):
    """Return a task that waits."""
    application = application or f"new-{leaf}"
    return v.AskSubmitted(
        ask=name, application=application, queue=leaf, resources={"vcore": vcore}, **fields
    )


def preemptions(events):
    """Return what was decided: (ask, node, victims by id) each."""
    decided = [one for one in events if isinstance(one, v.PreemptionDecided)]
    return [(one.ask, one.node, sorted(victim.id for victim in one.victims)) for one in decided]

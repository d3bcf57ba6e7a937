"""Small clusters on a virtual clock, for the tests of quota enforcement."""

from __future__ import annotations

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core import snapshot
from evsched.core.engine import Engine

START = 1_767_225_600_000


def queue(name, *children, delay=None, **fields):
    """Return a queue of a configuration; ``delay`` in seconds, in the seed's spelling."""
    delay_ms = None if delay is None else delay * 1000
    return QueueSpec(
        name=name,
        parent=bool(children),
        queues=children,
        quota_preemption_delay_ms=delay_ms,
        **fields,
    )


def partition(*queues, **fields):
    """Return a configuration with the switch on."""
    fields = {"quota_preemption_enabled": True, **fields}
    return YunikornSpec(
        root=QueueSpec(name="root", parent=True, submit_acl="*", queues=queues), **fields
    )


def pod(name, leaf, resources, **fields):
    """Return a running allocation."""
    fields = {"application": f"app-{leaf}", "created": START - 60_000, "node": "n", **fields}
    return v.AllocationRestored(allocation=name, queue=leaf, resources=resources, **fields)


class Cluster:
    """An engine on a virtual clock; all events it ever gave are kept."""

    def __init__(self, configuration, *pods):
        self.engine, self.now, self.events = Engine(), START, []
        self.give(
            configuration,
            v.NodeRegistered(node="n", capacity={"vcore": 10**7, "memory": 10**13}),
            *pods,
        )

    def give(self, *inputs):
        """Step with these inputs; a configuration stands for its event."""
        proposals = [
            v.Proposal(
                input=v.ConfigurationApplied(configuration=one)
                if isinstance(one, YunikornSpec)
                else one
            )
            for one in inputs
        ]
        events = self.engine.step(self.now, proposals)
        assert not [event for event in events if isinstance(event, v.InputRejected)]
        self.events += events
        return events

    def advance(self, seconds):
        """Let time pass, stepping whenever something is due."""
        until = self.now + int(seconds * 1000)
        while (due := self.engine.next_due()) is not None and due <= until:
            self.now = max(self.now, due)
            self.events += self.engine.step(self.now)
        self.now = until

    def restart(self):
        """Throw the memory away and go on from the snapshot."""
        state = snapshot.decode(snapshot.encode(self.engine.state), self.engine.state.time)
        assert state.digest() == self.engine.state.digest()
        self.engine = Engine(state)

    def quota(self):
        """Return the events of quota enforcement so far, as (kind, seconds since the start, queue)."""
        return [
            (
                type(event).__name__.removeprefix("QuotaPreemption"),
                (event.due or 0) - START if event.due else None,
                event.queue,
            )
            for event in self.events
            if type(event).__name__.startswith("QuotaPreemption")
        ]

    def victims(self):
        """Return the ids of all victims so far, in their order."""
        return [
            one.id
            for event in self.events
            if isinstance(event, v.QuotaPreemptionDecided)
            for one in event.victims
        ]

    def last(self):
        """Return the last event of quota enforcement."""
        return [
            event for event in self.events if type(event).__name__.startswith("QuotaPreemption")
        ][-1]


def pods(count, leaf, resources, prefix="p"):
    """Return equal pods, the first one the youngest."""
    return [
        pod(f"{prefix}{i}", leaf, resources, created=START - (i + 1) * 60_000)
        for i in range(1, count + 1)
    ]


# ---------------------------------------------------------------------- a judge that counts by hand


def used(state, where, kind, without):
    """Return what a queue uses of a type by counting allocations, those that leave and some others left out."""
    return sum(
        dict(state.types.shapes[one.shape].pairs).get(kind, 0)
        for one in state.allocations.values()
        if not one.eviction_requested
        and one.id not in without
        and (one.queue == where.path or one.queue.startswith(where.path + "."))
    )


def lawful(state, names):
    """Tell whether no guarantee is broken by these victims, in a type that they hold."""
    for name in names:
        leaf = state.queues[state.allocations[name].queue]
        for where in leaf.lineage:
            for kind, _ in state.types.shapes[state.allocations[name].shape].pairs:
                if (
                    kind in where.guaranteed
                    and used(state, where, kind, names) < where.guaranteed[kind]
                ):
                    return False
    return True


def below(where):
    """Return everything that runs in a queue and below."""
    return [
        one
        for leaf in where.leaves()
        for app in leaf.applications.values()
        for one in app.allocations.values()
    ]


def unmet(state, where, target, names):
    """Return what of a target stays when these go, by type."""
    gone = {kind: used(state, where, kind, ()) - used(state, where, kind, names) for kind in target}
    return {kind: max(0, target[kind] - gone[kind]) for kind in target}


def judge(state, where, target, names):
    """Assert that these victims are lawful, that none of them goes in vain, and that nobody else could lawfully help."""
    eligible = [
        one.id for one in below(where) if one.required_node is None and not one.eviction_requested
    ]
    left = unmet(state, where, target, names)
    assert len(names) == len(set(names))
    assert {*names} <= {*eligible}
    assert lawful(state, names)
    for name in names:
        assert unmet(state, where, target, [other for other in names if other != name]) != left
    for name in eligible:
        if name not in names and unmet(state, where, target, [*names, name]) != left:
            assert not lawful(state, [*names, name])

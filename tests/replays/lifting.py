"""Doing what an explanation says: for each cause, the inputs that remove it, and nothing else."""

from __future__ import annotations

from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotaSpec,
    LocalQueueSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from evsched.core.yunikorn.limits import EVERYBODY
from replays.explaining.explain import SERVED, explain_ask
from replays.explaining.kueue import CROWDED
from replays.history.steps import copy
from replays.wording import COHORT

NECESSARY = 0.3
"""How often it is tried whether every cause has to go: it costs as much as the rest."""

SPARE = {"nothing-asks-for-this": 1}
"""What a limit names that is to limit nothing: one that names nothing at all is refused."""


def _without(amounts, resource):
    """Return amounts in which one resource is not limited."""
    return {name: one for name, one in (amounts or {}).items() if name != resource} or None


def _lifted(limit, kind, name, facts):
    """Return a limit without what holds an ask."""
    named = limit.users if kind == "user" else limit.groups
    if name not in named and EVERYBODY not in named:
        return limit
    if facts["resource"]:
        kept = _without(limit.max_resources, facts["resource"])
        return replace(limit, max_resources=kept or SPARE)
    return replace(limit, max_applications=0, max_resources=limit.max_resources or SPARE)


class Lifted:
    """A copy of an engine in which causes of an ask are removed.

    Attributes:
        events: All that happened in it since.
    """

    def __init__(self, engine, ask, causes):
        """Remove these causes in a copy, and let it decide."""
        self.engine, self.ask = copy(engine), ask
        self.spec = self.engine.state.configuration
        self.promised = tuple(engine.state.preemptions)
        self.inputs, self.until, self.events = [], None, []
        for one in causes:
            getattr(self, f"_{one.code.replace('-', '_')}")(one.facts)
        if self.spec != self.engine.state.configuration:
            self.inputs.insert(0, v.ConfigurationApplied(configuration=self.spec))
        now = self.engine.state.time
        self.step(now, decide=self.until is None)
        while self.until is not None and (due := self.engine.next_due()) is not None:
            if due > self.until or ask not in self.engine.state.asks:
                break
            self.step(max(due, now))

    def step(self, time, *, decide=True):
        """Take a step with what is proposed; nothing of that may be refused."""
        events = self.engine.step(
            time, [v.Proposal(input=one) for one in self.inputs], decide=decide
        )
        assert not [one for one in events if isinstance(one, v.InputRejected)], events
        self.inputs = []
        self.events += events

    @property
    def served(self):
        """Tell whether the ask was bound, or evicts others."""
        return any(
            isinstance(one, v.AllocationBound | v.PreemptionDecided | v.AskNominated)
            and one.ask == self.ask
            for one in self.events
        )

    @property
    def bound(self):
        """Tell whether the ask was bound, without any eviction for it."""
        return any(type(one) is v.AllocationBound and one.ask == self.ask for one in self.events)

    @property
    def gave_room(self):
        """Tell whether a promise went with an application, and not its place in line alone."""
        return any(type(one) is v.AskWithdrawn and one.ask in self.promised for one in self.events)

    @property
    def others_served(self):
        """Tell whether asks before it took what was made free."""
        return any(
            isinstance(one, v.AllocationBound | v.PreemptionDecided) and one.ask != self.ask
            for one in self.events
        )

    # ----------------------------------------------------------------------------------- YuniKorn

    def _edit(self, path, change):
        """Change one queue of the configuration; one that is not in it any more has no limit."""

        def below(queue, names):
            if not names:
                return change(queue)
            found = tuple(
                below(one, names[1:]) if one.name == names[0] else one for one in queue.queues
            )
            return replace(queue, queues=found)

        self.spec = replace(self.spec, root=below(self.spec.root, path.split(".")[1:]))

    def _queue_maximum(self, facts):
        def unlimited(queue):
            return replace(queue, maximum=_without(queue.maximum, facts["resource"]))

        self._edit(facts["queue"], unlimited)

    def _limit(self, facts):
        kind, _, name = facts["whom"].partition(" ")

        def lifted(queue):
            if not name:
                return replace(queue, max_applications=0)
            return replace(
                queue, limits=tuple(_lifted(one, kind, name, facts) for one in queue.limits)
            )

        self._edit(facts["queue"], lifted)

    def _behind(self, facts):
        self.inputs += [v.ApplicationRemoved(application=one) for one in facts["applications"]]

    def _paused(self, facts):
        self.until = facts["until"]

    def _later(self, facts):
        self.until = facts["time"]

    def _overtaken(self, _):
        state = self.engine.state
        self.inputs += [
            v.AskWithdrawn(ask=name)
            for name in state.asks
            if name != self.ask and name not in state.preemptions
        ]

    def _no_node(self, facts):
        node = self.engine.state.nodes[facts["node"]]
        capacity = dict(node.resources)
        for name, amount in facts["lacking"].items():
            capacity[name] = capacity.get(name, 0) + amount
        self.inputs.append(v.NodeUpdated(node=node.name, capacity=capacity, schedulable=True))

    def _too_large(self, facts):
        if not facts["required"]:
            self._new_node("large")
            return
        node = self.engine.state.nodes[facts["node"]]
        capacity = {
            name: amount + facts["requested"].get(name, 0)
            for name, amount in {**facts["requested"], **node.resources}.items()
        }
        self.inputs.append(v.NodeUpdated(node=node.name, capacity=capacity, schedulable=True))

    def _no_nodes(self, _):
        self._new_node("large")

    def _node_unknown(self, facts):
        self._new_node(facts["node"])

    def _new_node(self, name):
        state = self.engine.state
        capacity = state.types.shapes[state.asks[self.ask].shape].resources
        self.inputs.append(v.NodeRegistered(node=name, capacity=capacity))

    def _in_flight(self, facts):
        self.inputs += [
            v.AllocationReleased(allocation=name, reason="preempted")
            for name in facts["waiting_for"]
        ]

    _shared_victims = _in_flight

    def _nomination(self, facts):
        self.until = facts["until"]

    # -------------------------------------------------------------------------------------- Kueue

    def _replace(self, field, name, change):
        """Change one ClusterQueue, Cohort or LocalQueue of the configuration."""
        found = tuple(
            change(one) if _name(one) == name else one for one in getattr(self.spec, field)
        )
        self.spec = replace(self.spec, **{field: found})

    def _quota(self, facts):
        path, field = facts["queue"], "cluster_queues"
        if path.startswith(COHORT):
            path, field = path.removeprefix(COHORT), "cohorts"
            if path not in [one.name for one in self.spec.cohorts]:
                self.spec = replace(self.spec, cohorts=(*self.spec.cohorts, CohortSpec(name=path)))

        def raised(one):
            return replace(one, groups=_raised(one.groups, facts))

        self._replace(field, path, raised)

    def _queue_stopped(self, facts):
        self._replace(
            "cluster_queues", facts["queue"], lambda one: replace(one, stop_policy="None")
        )

    def _local_queue_stopped(self, facts):
        name = facts["local_queue"]
        self._replace("local_queues", name, lambda one: replace(one, stop_policy="None"))

    def _queue_gone(self, facts):
        resources = self.engine.state.types.shapes[self.engine.state.asks[self.ask].shape].resources
        quotas = {name: QuotaSpec(nominal=2**40) for name in resources}
        group = ResourceGroupSpec(
            resources=tuple(resources), flavors=(FlavorQuotaSpec(flavor="a", quotas=quotas),)
        )
        queue = ClusterQueueSpec(name=facts["queue"], groups=(group,))
        self.spec = replace(self.spec, cluster_queues=(*self.spec.cluster_queues, queue))

    def _withdrawn(self, facts):
        self.inputs += [v.AskWithdrawn(ask=name) for name in facts["asks"]]

    _strict_fifo = _head_in_flight = _crowded_out = _overlap = _deferred = _withdrawn


def _name(part):
    return f"{part.namespace}/{part.name}" if isinstance(part, LocalQueueSpec) else part.name


def _widened(group, flavor, resource):
    """Return a group with one resource more, of which there is nothing yet."""
    if flavor not in [one.flavor for one in group.flavors]:
        return group
    flavors = tuple(
        replace(one, quotas={**one.quotas, resource: QuotaSpec(nominal=0)}) for one in group.flavors
    )
    return replace(group, resources=(*group.resources, resource), flavors=flavors)


def _raised(groups, facts):
    """Return resource groups with more nominal quota, or a higher borrowing limit, of one flavor."""
    flavor, resource = facts["flavor"], facts["resource"]
    limited = facts["binding"] == "borrowing limit"

    def changed(quota):
        if limited:
            return replace(quota, borrowing_limit=None)
        return replace(quota, nominal=quota.nominal + facts["missing"])

    if not any(resource in one.resources for one in groups):
        if not any(flavor == one.flavor for group in groups for one in group.flavors):
            quota = QuotaSpec(nominal=facts["missing"])
            added = FlavorQuotaSpec(flavor=flavor, quotas={resource: quota})
            return (*groups, ResourceGroupSpec(resources=(resource,), flavors=(added,)))
        # A flavor is in one group, so that group has to name the resource as well.
        groups = tuple(_widened(one, flavor, resource) for one in groups)
    return tuple(
        replace(
            group,
            flavors=tuple(
                replace(one, quotas={**one.quotas, resource: changed(one.quotas[resource])})
                if one.flavor == flavor and resource in one.quotas
                else one
                for one in group.flavors
            ),
        )
        for group in groups
    )


def crowded(lifted):
    """Tell whether nothing is left in the way of an ask but what asks in flight were promised."""
    left = explain_ask(lifted.engine, lifted.ask).causes
    return all(one.code in (*CROWDED, "shared-victims", "later", "overtaken") for one in left)


def check_causes(engine, found, dice):
    """Do in copies what an explanation says of an ask that waits, and return what held it.

    With all that has to go gone, the engine serves the ask, or asks that were held by the same and
    come before it; with one cause of each alternative left, it does not.
    """
    causes = found.causes
    assert causes
    if causes[0].code == "nothing":
        assert found.next.code in SERVED
        return {"nothing"}
    chosen = [dice.choice(ways) for ways in found.needs]
    lifted = Lifted(engine, found.subject, [causes[place] for way in chosen for place in way])
    assert lifted.served or lifted.others_served or crowded(lifted), found
    kept_out = dice.choice(found.needs)
    left = {dice.choice(way) for way in kept_out}
    # Podsets may share out what does not fit into one flavor.
    podsets = engine.state.asks[found.subject].podsets
    if len(causes) > len(left) and not podsets and dice.random() < NECESSARY:
        others = [one for place, one in enumerate(causes) if place not in left]
        kept = Lifted(engine, found.subject, others)
        # What starts or ends with the others gives room, too; and where asks before it are still
        # to be served, an ask is explained as if they were.
        excused = kept.others_served or kept.gave_room
        if kept.bound and not excused:
            assert Lifted(engine, found.subject, ()).others_served, (left, found)
    return {one.code for one in causes}

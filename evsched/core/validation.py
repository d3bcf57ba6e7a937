"""What a proposal must be to become an event.

It is checked against the state before anything is applied, and taken whole or refused whole. One
function a type. Each returns why the proposal is refused, with a stable code and a sentence that
names the subject, what was found and what was expected; or None. Codes:

=============  ====================================================================
``malformed``  cannot be read (decided where it is decoded)
``invalid``    can never be accepted in this form
``unknown``    names what is not there
``duplicate``  is there already, or its proposal was answered before
``conflict``   does not fit the state as it is now
=============  ====================================================================

What passes here can be applied, decided upon, digested and encoded without a fault: amounts and
their sums, names and depths are bounded by what columns, timers and frames hold (`events.bounds`).
The fold trusts that, and checks nothing.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import fields

from events import vocabulary as v
from events.bounds import MAX_NAME, MAX_RESOURCE_TYPES, MAX_TALLIES, SUM_LIMIT, printable
from evsched.core import configuration_checks, pod_checks
from evsched.core.folding.allocations import flavored_total
from evsched.core.folding.asks import total
from evsched.core.refusals import Rejection, leaf_of, leaf_problem
from evsched.core.registry import FAMILIES, admits_by_quota, family_of, format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from events.configuration import Configuration
    from evsched.core.state import State


Sums = tuple[list[int], ...]
"""Sums of amounts by type index, which count together."""


def check(state: State, proposed: v.AnyInput) -> Rejection | None:
    """Return why this proposal must be refused now; None when it may be applied."""
    if proposed.seq or proposed.cause or proposed.due is not None:
        return Rejection(
            "invalid",
            f"{type(proposed).__name__}: found seq, cause or due, expected none: the log gives them",
        )
    bad = _unprintable(_names(proposed))
    if bad is not None:
        return bad
    return _CHECKS[type(proposed)](state, proposed)


def _names(proposed: v.AnyInput) -> list[str]:
    """Return every name that a proposal brings, keys of mappings and names of podsets included.

    They end up in messages, in tables and on terminals, so all of them are checked alike.
    """
    plain, others = _NAMING[type(proposed)]
    names = [name for name in plain(proposed) if name]
    for field, names_of in others:
        value = getattr(proposed, field)
        if value:
            names += names_of(value)
    return names


def _unprintable(names: list[str]) -> Rejection | None:
    """Refuse names with control characters, which could drive a terminal, and very long ones."""
    together = "".join(names)
    if len(together) <= MAX_NAME and printable(together):
        return None  # so is each of them; nearly all proposals are answered here
    for name in names:
        if not printable(name):
            return Rejection(
                "invalid", f"name {name!a}: holds control characters, expected printable ones"
            )
        if len(name) > MAX_NAME:
            return Rejection(
                "invalid",
                f"name {name[:32]!a}…: {len(name)} characters, expected at most {MAX_NAME}",
            )
    return None


def _configuration(state: State, proposed: v.ConfigurationApplied) -> Rejection | None:
    """Refuse a configuration that breaks a rule, or that does not fit what runs and waits.

    The cheap questions come first. A partition keeps its name for ever, since the log is that
    partition's. It changes its format only while it is empty: applications of one family have no
    place in the queues of another. Which leaves have to stay because something is in them is the
    family's to say.
    """
    if format_of(proposed.configuration) not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        reason = f"configuration: format {format_of(proposed.configuration)!r} found, expected one of {known}"
        return Rejection("invalid", reason)
    found = configuration_checks.problems(proposed.configuration)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return Rejection("invalid", f"configuration: {found[0].path}: {found[0].message}{more}")
    refused = _room_for_types(state, proposed.configuration)
    if refused is not None:
        return refused
    current = state.configuration
    if current is None:
        return None
    if format_of(current) != format_of(proposed.configuration) and state.applications:
        return Rejection(
            "conflict",
            "configuration: format changes while applications are there, expected an empty partition",
        )
    if current.partition != proposed.configuration.partition:
        return Rejection(
            "conflict",
            f"configuration: partition {proposed.configuration.partition!r} found, expected {current.partition!r} of this log",
        )
    return family_of(proposed.configuration).kept_leaves(state, proposed.configuration)


def _room_for_types(state: State, configuration: Configuration) -> Rejection | None:
    """Refuse a configuration with which the partition would know too many resource types.

    A type is never forgotten, so those of former configurations, nodes and asks count as well.
    """
    index = state.types.index
    new = sum(name not in index for name in configuration_checks.resource_types(configuration))
    if new and len(index) + new > MAX_RESOURCE_TYPES:
        return Rejection(
            "invalid",
            f"configuration: makes {len(index) + new} resource types with those that are known,"
            f" expected at most {MAX_RESOURCE_TYPES}",
        )
    return None


def _node_registered(state: State, proposed: v.NodeRegistered) -> Rejection | None:
    """Refuse a node that is there, or that the cluster's total cannot take in."""
    if proposed.node in state.nodes:
        return Rejection("duplicate", f"node {proposed.node}: is registered already")
    return _too_much(state, proposed.capacity, (state.total,), f"node {proposed.node}")


def _node_updated(state: State, proposed: v.NodeUpdated) -> Rejection | None:
    """Refuse a change of an unknown node, or a capacity that the cluster's total cannot take in.

    The former capacity still counts in that sum. So the bound is reached a little early, and never
    late.
    """
    if proposed.node not in state.nodes:
        return Rejection("unknown", f"node {proposed.node}: is not registered")
    return _too_much(state, proposed.capacity or {}, (state.total,), f"node {proposed.node}")


def _node_removed(state: State, proposed: v.NodeRemoved) -> Rejection | None:
    """Refuse to remove a node that is not there."""
    if proposed.node not in state.nodes:
        return Rejection("unknown", f"node {proposed.node}: is not registered")
    return None


def _too_much(
    state: State, resources: dict[str, int], sums: Sums, subject: str
) -> Rejection | None:
    """Refuse amounts that the ``sums`` cannot take in, and too many resource types.

    Together they may not pass `SUM_LIMIT`.

    Args:
        state: Only read.
        resources: Amounts by resource name, base units; each is bounded by its type already.
        sums: Vectors by type index that the amounts would be added to, directly or later on.
        subject: Begins the message.

    A type costs a place in each vector of each queue, so their product is bounded as well
    (`MAX_TALLIES`). What passes here fits into every column, timer and snapshot.
    """
    index = state.types.index
    new = 0
    for name, amount in resources.items():
        together = amount
        if name in index:
            place = index[name]
            for vector in sums:
                together += vector[place]
        else:
            new += 1
        if together > SUM_LIMIT:
            return Rejection(
                "invalid", f"{subject}: {name} {amount} makes the sum pass {SUM_LIMIT}"
            )
    if new and (
        len(index) + new > MAX_RESOURCE_TYPES
        or (len(index) + new) * len(state.queues) > MAX_TALLIES
    ):
        return Rejection(
            "invalid", f"{subject}: makes more than {MAX_RESOURCE_TYPES} resource types"
        )
    return None


def _application_submitted(state: State, proposed: v.ApplicationSubmitted) -> Rejection | None:
    """Refuse an application that is there already; placement rules come later."""
    if proposed.application in state.applications:
        return Rejection("duplicate", f"application {proposed.application}: is here already")
    if state.configuration is None:
        reason = f"application {proposed.application}: no configuration was applied yet, so there are no queues"
        return Rejection("conflict", reason)
    return None  # where it may go is asked of the placement rules


def _application_removed(state: State, proposed: v.ApplicationRemoved) -> Rejection | None:
    """Refuse to remove an application that is not there."""
    if proposed.application not in state.applications:
        return Rejection("unknown", f"application {proposed.application}: is not here")
    return None


def _home(
    state: State, proposed: v.AskSubmitted | v.AllocationRestored, subject: str
) -> Rejection | None:
    """Refuse a task that no queue can take in, or that contradicts its application.

    A task may leave its queue out where its application is known. With placement rules it may go
    on naming the queue that its owner wrote down; where its application was placed counts.
    """
    application = state.applications.get(proposed.application or leaf_of(state, proposed.queue))
    if application is None:
        if not proposed.queue:
            name = proposed.application or "(none)"
            return Rejection(
                "unknown", f"{subject}: application {name} is not here and no queue is named"
            )
        return leaf_problem(state, proposed.queue, subject)
    spec = state.configuration
    placed = spec is not None and family_of(spec).places(spec)
    # With placement rules a task may go on naming the queue that its owner wrote down; where its
    # application is counts.
    if proposed.queue and not placed and leaf_of(state, proposed.queue) != application.leaf.path:
        return Rejection(
            "conflict",
            f"{subject}: queue {proposed.queue} found, expected {application.leaf.path}, where its application is",
        )
    if application.leaf.draining:
        return Rejection(
            "conflict",
            f"{subject}: queue {application.leaf.path} is no longer in the configuration",
        )
    return None


def _ask_submitted(state: State, proposed: v.AskSubmitted) -> Rejection | None:
    """Refuse an ask whose id is in use, that has no queue, or whose amounts are not possible.

    An ask and an allocation share their ids, as the one becomes the other.
    """
    subject = f"ask {proposed.ask}"
    if proposed.ask in state.asks:
        return Rejection("duplicate", f"{subject}: waits already")
    if proposed.ask in state.allocations:
        return Rejection("duplicate", f"{subject}: runs already")
    refused = _home(state, proposed, subject)
    if refused is not None:
        return refused
    return _amounts(state, proposed, subject)


def _amounts(
    state: State, proposed: v.AskSubmitted | v.AllocationRestored, subject: str
) -> Rejection | None:
    # What waits may run one day, and a node may be reserved for it: both count as one.
    """Refuse the amounts of a task: of the other family's form, none at all, or too much.

    A task without any amount is refused for YuniKorn, where it would be bound without limit. Kueue
    admits a workload that requests nothing of its quotas, as pods without requests are common.
    """
    sums = (state.root.usage, state.root.pending)
    bad = None if proposed.pod is None else pod_checks.problem(proposed.pod)
    if bad is not None:
        return Rejection("invalid", f"{subject}: pod: {bad}")
    if proposed.podsets and proposed.resources:
        return Rejection("invalid", f"{subject}: found resources and podsets, expected one of them")
    if not admits_by_quota(state.configuration):
        if proposed.podsets or proposed.flavors is not None:
            return Rejection(
                "invalid",
                f"{subject}: flavors and podsets are Kueue's, this partition runs queues.yaml",
            )
        if not any(proposed.resources.values()):
            return Rejection(
                "invalid", f"{subject}: asks for nothing, expected at least one amount above 0"
            )
        return _too_much(state, proposed.resources, sums, subject)
    names = [podset.name for podset in proposed.podsets]
    if len(names) != len(set(names)):
        return Rejection("invalid", f"{subject}: two podsets have one name")
    refused = _too_much(state, total(proposed), sums, subject)
    if refused is None and isinstance(proposed, v.AllocationRestored):
        refused = _too_much(
            state,
            flavored_total(proposed.resources, proposed.flavors, proposed.podsets),
            sums,
            subject,
        )
    return refused


def _ask_withdrawn(state: State, proposed: v.AskWithdrawn) -> Rejection | None:
    """Refuse to withdraw what does not wait.

    One that is set aside waits nowhere and may be withdrawn all the same: its owner does not know.
    """
    if proposed.ask in state.allocations:
        return Rejection(
            "conflict", f"ask {proposed.ask}: runs already; release the allocation instead"
        )
    if proposed.ask not in state.asks and ("ask", proposed.ask) not in state.suspended:
        return Rejection("unknown", f"ask {proposed.ask}: does not wait")
    return None


def _allocation_restored(state: State, proposed: v.AllocationRestored) -> Rejection | None:
    """Refuse an allocation whose id is in use, or whose node or queue is unknown.

    A full node is no reason: what runs there runs there, and the log says what is.
    """
    subject = f"allocation {proposed.allocation}"
    if proposed.allocation in state.allocations:
        return Rejection("duplicate", f"{subject}: runs already")
    if proposed.allocation in state.asks:
        return Rejection("duplicate", f"{subject}: waits as an ask")
    if proposed.node is not None and proposed.node not in state.nodes:
        return Rejection("unknown", f"{subject}: node {proposed.node} is not registered")
    if proposed.node is None and not admits_by_quota(state.configuration):
        return Rejection("invalid", f"{subject}: names no node, expected one")
    refused = _home(state, proposed, subject)
    if refused is not None:
        return refused
    return _amounts(state, proposed, subject)


def _running(
    state: State, proposed: v.AllocationReleased | v.EvictionRefused | v.EvictionObserved
) -> Rejection | None:
    """Refuse the end of what does not run, and a refusal of an eviction without a request."""
    allocation = state.allocations.get(proposed.allocation)
    if allocation is None:
        waits = "; it waits as an ask" if proposed.allocation in state.asks else ""
        return Rejection("unknown", f"allocation {proposed.allocation}: does not run{waits}")
    if isinstance(proposed, v.EvictionRefused) and not allocation.eviction_requested:
        return Rejection("conflict", f"allocation {proposed.allocation}: was not told to go")
    return None


def _binding_observed(state: State, proposed: v.BindingObserved) -> Rejection | None:
    """Refuse a binding of what neither waits nor runs there.

    What evsched bound itself comes back as an observation; on another node it is a contradiction,
    which whoever reports it has to solve.
    """
    subject = f"binding of {proposed.ask}"
    allocation = state.allocations.get(proposed.ask)
    if allocation is not None:
        if allocation.node == proposed.node:
            return None
        reason = f"{subject}: found node {proposed.node}, expected {allocation.node}, where it runs"
        return Rejection("conflict", reason)
    if proposed.ask not in state.asks:
        return Rejection("unknown", f"{subject}: it neither waits nor runs")
    if proposed.node is not None and proposed.node not in state.nodes:
        return Rejection("unknown", f"{subject}: node {proposed.node} is not registered")
    return _observed_amounts(state, proposed, subject)


def _observed_amounts(state: State, proposed: v.BindingObserved, subject: str) -> Rejection | None:
    """Refuse what the cluster's kind of configuration has no place for, as `_amounts` does."""
    if not admits_by_quota(state.configuration):
        if proposed.node is None:
            return Rejection("invalid", f"{subject}: names no node, expected one")
        if proposed.podsets or proposed.flavors is not None:
            reason = "flavors and podsets are Kueue's, this partition runs queues.yaml"
            return Rejection("invalid", f"{subject}: {reason}")
        return None
    ask = state.asks[proposed.ask]
    resources = state.types.shapes[ask.shape].resources
    used = flavored_total(resources, proposed.flavors, proposed.podsets)
    return _too_much(state, used, (state.root.usage, state.root.pending), subject)


def _reservation_restored(state: State, proposed: v.ReservationRestored) -> Rejection | None:
    """Refuse a reservation without its ask or node, and a second one for an ask."""
    if proposed.ask not in state.asks:
        return Rejection("unknown", f"reservation: ask {proposed.ask} does not wait")
    if proposed.node not in state.nodes:
        return Rejection("unknown", f"reservation: node {proposed.node} is not registered")
    if proposed.ask in state.reservations:
        return Rejection(
            "duplicate",
            f"reservation: ask {proposed.ask} has node {state.reservations[proposed.ask]} already",
        )
    return None


def _any(state: State, proposed: v.ObservationGap) -> Rejection | None:  # noqa: ARG001 - one signature for all
    """Take it as it is: a note about the watch says nothing that the state could contradict."""
    return None


def _rules_adopted(state: State, proposed: v.RulesAdopted) -> Rejection | None:
    """Refuse rules that are not newer: an event decided by later rules must not be followed by earlier ones.

    Whether every process knows them is not asked here: the answer must be the same whatever
    release decides this log again.
    """
    if proposed.rules <= state.rules_version:
        return Rejection(
            "conflict",
            f"rules {proposed.rules}: rules {state.rules_version} are in force, expected later ones",
        )
    return None


def _of_podsets(podsets: Iterable[v.PodSet]) -> list[str]:
    return [name for one in podsets for name in (one.name, *one.resources)]


_PLAIN_NAMES = frozenset(
    {"ask", "allocation", "application", "queue", "user", "node", "required_node", "priority_class"}
    | {"uid", "actor", "kind", "before", "after", "scheduler", "preemptor"}
)
"""Fields of a proposal that are a name, empty or None."""

_NAMES_OF: dict[str, Callable[[Any], Iterable[str]]] = {
    **dict.fromkeys(("resources", "capacity", "labels", "flavors", "tags", "groups"), iter),
    "podsets": _of_podsets,
    "taints": pod_checks.names_of_taints,
    "pod": pod_checks.names,
}
"""Other fields of a proposal to what yields their names. A new field with names has to be entered here or above."""

_CHECKS: dict[type, Callable[[State, Any], Rejection | None]] = {
    v.ConfigurationApplied: _configuration,
    v.NodeRegistered: _node_registered,
    v.NodeUpdated: _node_updated,
    v.NodeRemoved: _node_removed,
    v.ApplicationSubmitted: _application_submitted,
    v.ApplicationRemoved: _application_removed,
    v.AskSubmitted: _ask_submitted,
    v.AskWithdrawn: _ask_withdrawn,
    v.AllocationRestored: _allocation_restored,
    v.AllocationReleased: _running,
    v.EvictionRefused: _running,
    v.ReservationRestored: _reservation_restored,
    v.RulesAdopted: _rules_adopted,
    v.BindingObserved: _binding_observed,
    v.EvictionObserved: _running,
    v.ObservationGap: _any,
}


def _naming(kind: type) -> tuple[Callable[[Any], tuple[str | None, ...]], tuple[Any, ...]]:
    """Return what yields the plain names of a type, and its other fields with names."""
    known = [field.name for field in fields(kind)]
    # Every proposal has an actor. It is named twice, as a getter of one field returns no tuple.
    plain = attrgetter("actor", *(name for name in known if name in _PLAIN_NAMES))
    return plain, tuple((name, _NAMES_OF[name]) for name in known if name in _NAMES_OF)


_NAMING = {kind: _naming(kind) for kind in _CHECKS}
"""By type of proposal, what yields its names."""

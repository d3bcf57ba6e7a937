"""The sentences of all answers: made last, from codes and numbers, and nowhere else.

A code is the name of a law, rule or limit. Policies note one for each candidate, queue and node
that they pass over (`SENTENCES`); an explanation names what holds an ask (`CAUSES`) and what would
change that (`REMEDIES`). Programs read the codes and facts, people the sentence beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evsched.core.quantity import format_amount
from evsched.core.yunikorn.settings import BACKOFF
from replays.history.moments import format_time
from replays.observed_wording import binding_observed, eviction_observed, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evsched.core.workloads import Allocation
    from replays.checking.ledger import Decided

    Facts = Mapping[str, Any]

SENTENCES: dict[str, str] = {
    # The laws (seed preemption_design).
    "law1": "it asked not to be preempted, and somebody else will do (law 1)",
    "law2": "its queue would fall below its guarantee (law 2)",
    "law3": "it belongs to the application of the ask (law 3)",
    "law4": "it lies inside the queue whose guarantee is to be restored (law 4)",
    "law4-not-below": "it is not below its guarantee in what the ask requests (law 4)",
    "law4-no-guarantee": "no queue on the path of the ask has a guarantee (law 4)",
    "law5": "queue {at} is not above its guarantee (law 5)",
    "law6": "its priority is higher than that of the ask (law 6)",
    "law7": "it lies outside the preemption fence of the ask (law 7)",
    "own-leaf": "it runs in the queue of the ask, and nobody preempts within a queue",
    "disabled": "preemption.policy of its queue is disabled",
    "required-node": "it is bound to its node (DaemonSet)",
    "leaving": "it is being evicted already",
    "no-shared-type": "it uses nothing of what the ask requests",
    "eligible": "it could be preempted",
    # Nodes and limits.
    "unschedulable": "the node takes nobody at present",
    "node-rule": "the node does not take its pod: {rule} {detail}",
    "node-unknown": "the node is not registered",
    "node-short": "even with everybody gone who may be preempted, the node has not enough",
    "node-free": "the node has room",
    "node-candidate": "the node has room once those who may be preempted are gone",
    "max": "the maximum of a queue on its path would be passed",
    "limit": "a user or group limit, or a limit on applications, holds it",
    "no-node": "no node has room for it",
    "behind": "its queue starts one new application at a time, and another one is before it (application.sort.policy stateaware)",
    "paused": "its application is paused: too many of its asks fit on no node (application.unschedasks.backoff)",
    "in-flight": "its victims are being evicted and have not left yet",
    "fits": "it fits without preemption",
    # Quota enforcement (seed quota_enforcement).
    "chosen": "it is being evicted",
    "guarantee": "a queue on its path would fall below its guarantee",
    "type": "it uses nothing of what has to go",
    "running": "an enforcement in its queue is still under way",
    # Kueue.
    "never-fits": "it would not fit even if everybody else were gone",
    "quota": "the quota of the cohort tree is used up",
    "borrowing-limit": "the borrowing limit would be passed",
    "uses-nothing-contested": "it uses nothing of the quota that is short",
    "reclaimWithinCohort-Never": "reclaimWithinCohort of the asking queue is Never",
    "reclaimWithinCohort-priority": "reclaimWithinCohort spares its priority",
    "withinClusterQueue-Never": "withinClusterQueue of its queue is Never",
    "withinClusterQueue-priority": "withinClusterQueue spares its priority",
    "queue-within-nominal": "its queue does not borrow what is short",
    "cohort-within-nominal": "its cohort does not borrow what is short",
    "candidate": "it could be preempted",
    "share": "fair sharing spares it: {ours} would have share {our_share}, {theirs} has {their_share}, without it {their_rest}",
    "flavor": "this is what the flavor offers",
    "admit": "it is admitted",
    "preempt": "it preempts",
    "no-fit": "no flavor has room for it",
    "no-victims": "nobody who may be preempted would make room for it",
    "overlap": "its victims go for another workload of the same cycle",
    "crowded-out": "the workloads before it in the cycle leave no room",
    "deferred": "it fits once the victims of others are gone",
    "not-reached": "enough others came before it, or its queue no longer borrowed when they were gone",
    "not-needed": "the others free enough without it",
}

YES = frozenset({"eligible", "candidate", "chosen", "node-candidate", "node-free"})
"""Codes that say yes rather than no."""


def sentence(code: str, facts: Mapping[str, object] | None = None) -> str:
    """Return what a code means, completed with the facts of the note; the code itself when it is not known."""
    found = SENTENCES.get(code, code)
    return found.format_map(facts) if facts and "{" in found else found


def amount(resource: str, value: int) -> str:
    """Return an amount of a resource as people write it; a resource of Kueue may have its flavor before it."""
    return ("-" if value < 0 else "") + format_amount(resource.rpartition("/")[2], abs(value))


def amounts(values: Mapping[str, int]) -> str:
    """Return amounts with their resources, ``2 vcore, 1Gi memory``."""
    return ", ".join(f"{amount(name, value)} {name}" for name, value in values.items())


def flavors(chosen: Mapping[str, Mapping[str, str]]) -> str:
    """Return which flavor each resource is from, podset by podset; an ask without podsets is one without a name."""
    return ", ".join(
        f"{f'{podset}: ' if podset else ''}{resource} from {flavor}"
        for podset, named in chosen.items()
        for resource, flavor in named.items()
    )


def bound(facts: Facts) -> str:
    """Return where an ask is bound, or from which flavors its workload is admitted."""
    if facts["node"]:
        return f"bound to {facts['node']}"
    chosen = flavors(facts["flavors"])
    return f"admitted ({chosen})" if chosen else "admitted"


def _names(facts: Facts, key: str) -> str:
    return ", ".join(facts[key])


def _queue_maximum(facts: Facts) -> str:
    name = facts["resource"]
    shown = [
        amount(name, one)
        for one in (facts["requested"], facts["used"] + facts["promised"], facts["limit"])
    ]
    return (
        f"Queue {facts['queue']}: {shown[0]} {name} requested, {shown[1]} used, {shown[2]} allowed."
    )


def _limit(facts: Facts) -> str:
    name, whom = facts["resource"], _of(facts["whom"])
    if not name:
        running = f"{facts['used']} applications{whom} run or start"
        return f"Queue {facts['queue']}: {running}, maxapplications is {facts['limit']}."
    shown = [amount(name, facts[key]) for key in ("requested", "used", "limit")]
    return f"Queue {facts['queue']}: {shown[0]} {name} requested, {shown[1]} used or promised{whom}, its limit is {shown[2]}."


def _requested(facts: Facts) -> str:
    return f"{amount(facts['resource'], facts['requested'])} {facts['resource']}"


def _of(whom: str) -> str:
    return f" of {whom}" if whom else ""


def _paused(facts: Facts) -> str:
    count = facts["asks"]
    why = (
        f"{count} of its asks {'fits' if count == 1 else 'fit'} on no node"
        if count
        else "its asks had no room, now they have"
    )
    return f"Application {facts['application']} is paused until {format_time(facts['until'])}: {why} ({BACKOFF})."


def _before(facts: Facts) -> str:
    """Return the applications that start before another one, the first of them by name."""
    first, *others = facts["applications"]
    if not others:
        return f"application {first} is before it"
    return f"{len(others) + 1} applications are before it, first {first}"


NAMES_SHOWN = 3
"""Of many names in a sentence, the first so many."""


def _some(names: Sequence[str]) -> str:
    """Return names, the first few and how many more."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _each(applications: Sequence[str]) -> str:
    """Return applications that all have to start or end."""
    return f"application{'s' if len(applications) > 1 else ''} {_some(applications)}"


def _workloads(facts: Facts) -> str:
    """Return the workloads before another one, as the subject of a sentence."""
    asks = facts["asks"]
    return f"Workload {asks[0]} is" if len(asks) == 1 else f"Workloads {_some(asks)} are"


def _among(facts: Facts) -> str:
    return f" ({_some(facts['asks'])})" if facts["asks"] else ""


def _too_large(facts: Facts) -> str:
    """Return that no node can ever hold an ask, with the one that comes nearest."""
    requested, capacity = amounts(facts["requested"]), amounts(facts["capacity"])
    if facts["required"]:
        which = f"Node {facts['node']}, where it has to run, is not large enough"
    else:
        which = f"No node is large enough: the nearest, {facts['node']},"
        return f"{which} has {capacity}, {requested} requested."
    return f"{which}: it has {capacity}, {requested} requested."


def _no_node(facts: Facts) -> str:
    others = _names(facts, "reserved_for")
    reserved = f", which is reserved for {others}" if others else ""
    lacks = amounts(facts["lacking"]) or "nothing, but takes nobody"
    return f"No node has room; the nearest, {facts['node']}{reserved}, lacks {lacks}.{refusals(facts, ' ')}"


def _in_flight(facts: Facts) -> str:
    where = f" on {facts['node']}" if facts["node"] else ""
    if facts["waiting_for"]:
        return f"It preempts{where} and waits for {_names(facts, 'waiting_for')} to leave."
    return f"Its victims have left{where}; it is bound next."


def _nomination(facts: Facts) -> str:
    return (
        f"It is nominated to {facts['node']}, where victims of others are leaving, and evicts"
        f" nothing itself until {format_time(facts['until'])}."
    )


def _next(facts: Facts) -> str:
    """Return what the next step does about an ask that nothing holds."""
    when = "with the next step" if facts["time"] is None else f"at {format_time(facts['time'])}"
    if facts["code"] == "bound":
        return f"it is {bound(facts)} {when}"
    if facts["code"] == "nominated":
        return f"it is nominated to {facts['node']}, where victims of others are leaving, {when}"
    return f"it {_preempts(facts)} {when}"


def _preempts(facts: Facts) -> str:
    return f"preempts {_names(facts, 'victims')}" + (
        f" on {facts['node']}" if facts["node"] else ""
    )


def _evicted(facts: Facts) -> str:
    whom = f" for ask {facts['ask']}" if facts["ask"] else ""
    whom = f" for the quota of {facts['queue']}" if facts["queue"] else whom
    return f"evicted{whom}: {facts['reason']}"


def _quota(facts: Facts) -> str:
    def shown(key: str) -> str:
        return amount(facts["resource"], facts[key])

    borrows = facts["binding"] == "borrowing limit"
    most = amount(facts["resource"], facts["quota"] + (facts["borrowing_limit"] if borrows else 0))
    which = f"quota {shown('quota')}" + (
        f" and borrowing limit {shown('borrowing_limit')}" if borrows else ""
    )
    return (
        f"{titled(facts['queue'])}: {shown('requested')} {facts['resource']} of flavor {facts['flavor']} requested, "
        f"{shown('used')} used, {most} allowed ({which})."
    )


def _less_quota(facts: Facts) -> str:
    missing = f"{amount(facts['resource'], facts['missing'])} {facts['resource']} of flavor {facts['flavor']}"
    more = "quota" if facts["binding"] == "quota" else "borrowing limit or quota"
    if facts["missing"] <= facts["used"]:
        return f"{missing} less used in {titled(facts['queue'])}, or as much more {more}"
    return f"{missing} more {more} in {titled(facts['queue'])}"


COHORT = "cohort/"


def titled(path: str) -> str:
    """Return a path of Kueue's with what it is: ``ClusterQueue a``, ``Cohort all``."""
    return (
        f"Cohort {path.removeprefix(COHORT)}" if path.startswith(COHORT) else f"ClusterQueue {path}"
    )


def held(causes: Sequence[str], needs: Sequence[Sequence[Sequence[int]]]) -> str:
    """Return what holds an ask as one text that says which of it has to change.

    Args:
        causes: Sentences.
        needs: As of `replays.explaining.explain.Explanation`.
    """
    said = " ".join(causes)
    if len(causes) == 1:
        return said
    if all(len(ways) == 1 for ways in needs):
        what = "Both have" if len(causes) == 2 else "All of this has"  # noqa: PLR2004
        return f"{said} {what} to change."
    parts = [" ".join(causes[place] for place in ways[0]) for ways in needs if len(ways) == 1]
    for ways in needs:
        if len(ways) > 1:
            either = [" ".join(causes[place] for place in way) for way in ways]
            parts.append(" Or: ".join(either) + " One of these is enough.")
    return " And: ".join(parts)


CAUSES: dict[str, Callable[[Facts], str]] = {
    "in-flight": _in_flight,
    "nomination": _nomination,
    "paused": _paused,
    "queue-maximum": _queue_maximum,
    "limit": _limit,
    "behind": lambda facts: (
        f"Queue {facts['queue']} starts one new application at a time, and {_before(facts)} "
        "(application.sort.policy stateaware)."
    ),
    "no-node": _no_node,
    "overtaken": lambda _: "There is room, but asks that come before it take it.",
    "too-large": _too_large,
    "no-nodes": lambda _: "There are no nodes.",
    "node-conditions": refusals,
    "node-unknown": lambda facts: f"Node {facts['node']} is not registered.",
    "later": lambda facts: f"Nothing holds it: {_next(facts)}.",
    "nothing": lambda _: "Nothing holds it: the next cycle looks at it.",
    # Kueue.
    "queue-gone": lambda facts: (
        f"ClusterQueue {facts['queue']} is no longer in the configuration; it admits nobody."
    ),
    "queue-stopped": lambda facts: (
        f"ClusterQueue {facts['queue']} admits nobody: its stopPolicy is {facts['stop_policy']}."
    ),
    "local-queue-stopped": lambda facts: (
        f"LocalQueue {facts['local_queue']} is stopped: nobody who comes through it is admitted."
    ),
    "strict-fifo": lambda facts: (
        f"{_workloads(facts)} before it in ClusterQueue {facts['queue']}, which is StrictFIFO."
    ),
    "head-in-flight": lambda facts: (
        f"{_workloads(facts)} before it in ClusterQueue {facts['queue']} and will be admitted when"
        " the preempted workloads have left."
    ),
    "crowded-out": lambda facts: (
        f"There is quota, but workloads that come before it take it{_among(facts)}."
    ),
    "overlap": lambda facts: (
        f"What it could preempt is preempted for other workloads{_among(facts)}."
    ),
    "shared-victims": lambda facts: (
        "It will have another turn when workloads that are evicted for others have left:"
        f" {_names(facts, 'waiting_for')}."
    ),
    "deferred": lambda facts: (
        f"There will be quota once those that are preempted for others have left{_among(facts)}."
    ),
    "uncovered": lambda facts: (
        f"ClusterQueue {facts['queue']} has no quota for {facts['resource']}."
    ),
    "no-flavor": lambda facts: (
        f"ClusterQueue {facts['queue']} has none of the flavors that it wants for"
        f" {_names(facts, 'resources')}."
    ),
    "quota": _quota,
}
"""What holds an ask, or what becomes of it where nothing does."""

REMEDIES: dict[str, Callable[[Facts], str]] = {
    "next": lambda facts: f"nothing has to change: {_next(facts)}",
    "victims-end": lambda facts: f"the end of {facts['allocation']}",
    "pause-ends": lambda facts: (
        f"the end of the pause of {facts['application']} at {format_time(facts['until'])}"
    ),
    "queue-maximum": lambda facts: (
        f"{amount(facts['resource'], facts['missing'])} {facts['resource']} less use in {facts['queue']}, or as much more maximum"
    ),
    "limit": lambda facts: (
        f"less use by {facts['whom']} in {facts['queue']}, or a higher limit"
        if facts["resource"]
        else f"the end of an application{_of(facts['whom'])} in {facts['queue']}, or more maxapplications"
    ),
    "overtaken": lambda _: "more room, or fewer asks before it",
    "too-large": lambda facts: (
        f"{amounts(facts['requested'])} on {facts['node']}, or a smaller request"
        if facts["required"]
        else f"a node with {amounts(facts['requested'])}, or a smaller request"
    ),
    "behind": lambda facts: f"the first allocation or the end of {_each(facts['applications'])}",
    "no-nodes": lambda _: "a node with room for it",
    "node-conditions": lambda _: "a node that its pod may run on",
    "node-unknown": lambda facts: f"node {facts['node']}, registered",
    "node-room": lambda facts: (
        f"{amounts(facts['lacking'])} more on {facts['node']}"
        if facts["lacking"]
        else f"a node {facts['node']} that is schedulable"
    ),
    "tried": lambda facts: (
        f"preemption is tried at {format_time(facts['time'])} (preemption.delay)"
    ),
    "preemption-disabled": lambda _: (
        "preemption is disabled in this partition (preemption.enabled)"
    ),
    "preemption-never": lambda _: "it may not preempt others (preemption policy Never)",
    # Kueue.
    "stop-policy": lambda _: "a stopPolicy of None",
    "before-it": lambda facts: f"the admission or withdrawal of {_some(facts['asks'])}",
    "uncovered": lambda facts: f"a quota for {facts['resource']} in ClusterQueue {facts['queue']}",
    "quota": _less_quota,
}
"""What would let an ask run, or what has to be known of it."""

HISTORY: dict[str, Callable[[Facts], str]] = {
    "submitted": lambda _: "submitted",
    "withdrawn": lambda _: "withdrawn",
    "suspended": lambda facts: (
        f"set aside, as evsched failed at it ({facts['place']}): {facts['reason']}; submit it again, or apply a configuration"
    ),
    "taken-up": lambda facts: (
        f"not taken up again: {facts['reason']}" if facts["reason"] else "taken up again"
    ),
    "refused": lambda facts: f"refused: {facts['reason']}",
    "paused": lambda facts: (
        f"its application is paused until {format_time(facts['until'])}: {facts['asks']} of its asks fit on no node"
    ),
    "resumed": lambda _: "the pause of its application is over",
    "bound": bound,
    "restored": lambda _: "found running",
    "binding-observed": binding_observed,
    "eviction-observed": eviction_observed,
    "preempts": _preempts,
    "eviction-requested": _evicted,
    "eviction-repeated": lambda _: "asked to leave again",
    "eviction-refused": lambda _: "its eviction was refused",
    "preemption-withdrawn": lambda facts: f"preemption withdrawn: {facts['reason']}",
    "preemption-failed": lambda facts: f"could not preempt: {facts['reason']}",
    "nominated": lambda _: "nominated to room that others' victims leave",
    "node-reserved": lambda _: "a node is reserved for it",
    "reservation-released": lambda _: "its reservation ended",
    "reservation-restored": lambda _: "found with a node reserved for it",
    "ended": lambda facts: f"ended: {facts['reason']}",
}
"""What an event says of an ask or allocation in its history."""


def running(allocation: Allocation) -> str:
    """Return what there is to say of an allocation that runs."""
    where = allocation.node or "its quota"
    return f"It runs on {where} since {format_time(allocation.bound)} and nothing is evicting it."


def leaving(allocation: Allocation, enforced: Facts | None) -> str:
    """Return for what an allocation has to go.

    Args:
        allocation: One that is being evicted.
        enforced: The facts of the eviction that no ask had requested; None: an ask had.
    """
    where = allocation.node or "its quota"
    if enforced is not None and not enforced["queue"]:
        whom = f"({enforced['reason']})"
    elif allocation.victim_of:
        whom = f"for ask {allocation.victim_of}"
    else:
        whom = f"for the quota of {allocation.quota_of}"
    return f"It runs on {where} and was asked to leave at {format_time(allocation.eviction_requested)} {whom}."


def gone(last: str) -> str:
    """Return what there is to say of a subject that is not there any more, by the last of its history."""
    return f"It is gone: {last}."


def unknown() -> str:
    """Return what there is to say of a name that no ask, allocation or thing has."""
    return (
        "No ask or allocation ever had this name; no queue, application, node or user has it now."
    )


def planned(outcome: str, facts: Facts) -> str:
    """Return what would become of an ask."""
    match outcome:
        case "refused":
            return f"It would be refused: {facts['reason']}."
        case "bound":
            return f"It would be {bound(facts)}."
        case "preempts":
            where = f" on {facts['node']}" if facts["node"] else ""
            count = len(facts["victims"])
            return f"It would preempt {count} allocation{'s' if count > 1 else ''}{where}."
        case _:
            return f"It would wait. {facts['causes']}"


def decided(side: Decided | None) -> str:
    """Return one side of a decision that differs between two worlds."""
    if side is None:
        return "not"
    if side.ask or side.queue:
        what = f"for ask {side.ask}" if side.ask else f"for the quota of {side.queue}"
    else:
        what = side.node or flavors(side.flavors)
    return f"{format_time(side.time)} {what}".strip()

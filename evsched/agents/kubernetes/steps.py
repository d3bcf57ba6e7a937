"""The steps by which the log comes to say what the cluster is, worked out for one task."""

from __future__ import annotations

from collections.abc import Iterator

from events.configuration import PlacementRuleSpec, QueueSpec, YunikornSpec
from events.vocabulary import (
    AllocationReleased,
    AllocationRestored,
    AnyInput,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    EvictionObserved,
)
from evsched.agents.kubernetes.logged import (
    LoggedCluster,
    TaskFacts,
    amounts_of,
    rest_of,
    wish_of,
)
from evsched.agents.kubernetes.tasks import SeenTask

DEFAULT_CONFIGURATION = YunikornSpec(
    root=QueueSpec(name="root", parent=True),
    placement_rules=(
        PlacementRuleSpec(name="provided", create=True),
        PlacementRuleSpec(name="tag", create=True, value="namespace"),
    ),
)
"""What a log begins with where the cluster has no queues: one for each namespace, none of them limited."""


DELETED = "deleted"
"""Why a task ended whose last state was not seen."""


def task_steps(view: LoggedCluster, seen: SeenTask, *, is_lost: bool) -> Iterator[AnyInput]:
    """Yield what leads from what is known of a task to what the cluster has.

    Each step has to be expected (`LoggedCluster.expect`) before the next one is asked for, as that
    is worked out from what is known by then.

    Args:
        view: What is known.
        seen: As the cluster has it.
        is_lost: Where its node is not known: the node is gone, and not one still to be heard of.
    """
    known = view.task(seen.task)
    if known is not None and not known.ours:
        return
    if known is not None and (known.uid != seen.uid or seen.stage == "over"):
        reason = seen.ended if known.uid == seen.uid else DELETED
        yield end_of(seen.task, known, reason)
        known = None
    if seen.stage == "over" or (seen.stage == "gated" and known is None):
        return
    if known is not None and _is_no_more(known, seen):
        yield end_of(seen.task, known, seen.ended or "changed")
        known = None
    if seen.stage == "bound":
        yield from _bound(view, seen, known, is_lost=is_lost)
    elif known is None and seen.stage == "waiting":
        yield from _application(view, seen)
        yield seen.ask


def _is_no_more(known: TaskFacts, seen: SeenTask) -> bool:
    """Tell whether the log's task has to end before it can go on as it is now: the log has no word for its change.

    That is one that asks for something else, one that the cluster had bound and that waits again,
    and one that waited and is held back. What evsched alone has bound may well wait in the cluster.
    """
    if seen.stage == "bound":
        return _differs(known, seen)
    if known.runs:
        return known.observed
    return seen.stage == "gated" or known.wish != wish_of(seen.ask)


def _differs(known: TaskFacts, seen: SeenTask) -> bool:
    """Tell whether a task that runs is another than the log says.

    Only what still matters counts: how much it holds, whether and for whom it may be evicted, and
    the labels by which other pods keep apart from it.
    """
    if seen.podsets and not known.runs:
        # A Workload may be admitted with less than it asked for; the binding says with how much.
        return False
    if known.leaving and known.amounts == amounts_of(seen.ask, seen.podsets):
        # Its end would say that it has left, and its room may be promised to another.
        return False
    return known.amounts != amounts_of(seen.ask, seen.podsets) or known.rest != rest_of(seen.ask)


def _bound(
    view: LoggedCluster, seen: SeenTask, known: TaskFacts | None, *, is_lost: bool
) -> Iterator[AnyInput]:
    if seen.node and view.node(seen.node) is None:
        if known is not None and is_lost:
            # It waits no longer, and runs nowhere that the log could name.
            yield end_of(seen.task, known, DELETED)
        return
    if known is not None and known.runs and known.node != seen.node:
        # Whoever leads has bound it elsewhere; the cluster is what is recorded.
        yield end_of(seen.task, known, "bound elsewhere")
        known = None
    if known is None:
        yield from _application(view, seen)
        yield restored(seen)
    elif not known.runs:
        yield BindingObserved(
            ask=seen.task,
            node=seen.node or None,
            podsets=seen.podsets,
            scheduler=seen.scheduler,
            at=seen.bound_at,
        )
    leaving = seen.leaving
    if leaving is not None and not (known is not None and known.leaving):
        yield EvictionObserved(
            allocation=seen.task,
            reason=leaving.reason,
            message=leaving.message,
            scheduler=leaving.scheduler,
            preemptor=leaving.preemptor,
            at=leaving.at,
        )


def _application(view: LoggedCluster, seen: SeenTask) -> Iterator[AnyInput]:
    named = seen.application
    if named is not None and not view.knows_application(named.application):
        yield named


def end_of(task: str, known: TaskFacts, reason: str) -> AnyInput:
    """Return the end of a task: a release when it runs, a withdrawal when it waits."""
    if known.runs:
        return AllocationReleased(allocation=task, reason=reason)
    return AskWithdrawn(ask=task)


def restored(seen: SeenTask) -> AllocationRestored:
    """Return the allocation of a task that runs and was never seen waiting."""
    ask: AskSubmitted = seen.ask
    return AllocationRestored(
        allocation=ask.ask,
        application=ask.application,
        queue=ask.queue,
        user=ask.user,
        groups=ask.groups,
        node=seen.node or None,
        resources=ask.resources,
        priority=ask.priority,
        allow_preemption=ask.allow_preemption,
        required_node=ask.required_node,
        created=ask.created,
        admitted=seen.bound_at,
        uid=ask.uid,
        podsets=seen.podsets,
        pod=ask.pod,
    )

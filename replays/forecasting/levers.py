"""What might let an ask start sooner: more of each limit on its path, another queue, a smaller shape.

Each of these is only a proposal. Whether it helps is found by running ahead with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from events import vocabulary as v
from evsched.core.registry import admits_by_quota, family_of, format_of
from evsched.core.yunikorn.access import may_submit
from replays.forecasting import kueue_levers, yunikorn_levers
from replays.forecasting.past import kind_of
from replays.forecasting.running_ahead import DRAWN
from replays.forecasting.submitting import submitted_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evsched.core.queues import Queue
    from evsched.core.state import State
    from evsched.core.workloads import Ask
    from replays.forecasting.raised import RaisedLimit, Submitter

MOST_QUEUES = 3
"""So many other queues are tried: those in which the fewest asks wait."""

MOST_LEVERS = 12
"""So many changes are tried at most, those nearest to the ask first."""

LeverKind = Literal[
    "maximum",
    "guaranteed",
    "limit",
    "applications",
    "nominal",
    "borrowing",
    "queue",
    "shape",
]


_RAISED: dict[str, Callable[[Any, list[str], Submitter, dict[str, int]], Iterable[RaisedLimit]]] = {
    "yunikorn": yunikorn_levers.raised,
    "kueue": kueue_levers.raised,
}
"""By format of a configuration; of a family that was added, no limit is known that could be raised."""


class Lever(NamedTuple):
    """A change to try.

    Attributes:
        where: The queue or cohort that is changed, or the other queue; for a shape the ask's.
        detail: The flavor, or what a limit is called; empty where there is none.
        before, after: Amounts that the change is about, base units; empty for another queue.
        inputs: What is proposed.
    """

    kind: LeverKind
    where: str
    detail: str
    before: dict[str, int]
    after: dict[str, int]
    inputs: tuple[v.AnyInput, ...]


def levers(state: State, ask: Ask, *, of_ask: bool) -> list[Lever]:
    """Return what may be tried for an ask that waits.

    Args:
        state: Only read.
        ask: Its amounts are the step by which limits are raised.
        of_ask: Whether the ask itself may be changed; False: it stands for its queue.
    """
    found = [*_of_limits(state, ask)]
    if of_ask:
        found = [*_smaller(state, ask), *_elsewhere(state, ask), *found]
    return found[:MOST_LEVERS]


def _of_limits(state: State, ask: Ask) -> Iterator[Lever]:
    spec, step = state.configuration, dict(kind_of(state, ask.shape))
    application = state.applications[ask.application]
    path = [queue.path for queue in application.leaf.lineage]
    owner = application.user, application.groups
    raised = None if spec is None else _RAISED.get(format_of(spec))
    for one in () if raised is None else raised(spec, path, owner, step):
        applied = v.ConfigurationApplied(configuration=one.configuration)
        yield Lever(one.kind, one.where, one.detail, one.before, one.after, (applied,))


def _smaller(state: State, ask: Ask) -> Iterator[Lever]:
    """Yield the same ask with half of all it asks for, as old as it is."""
    same = replace(submitted_again(state, ask, ask.id), created=ask.created, uid=ask.uid or None)
    podsets = tuple(
        replace(one, resources=_halved(one.resources), flavors=one.flavors) for one in same.podsets
    )
    smaller = replace(same, resources=_halved(same.resources), podsets=podsets)
    before = dict(kind_of(state, ask.shape))
    yield Lever(
        "shape",
        ask.queue,
        "",
        before,
        _halved(before),
        (v.AskWithdrawn(ask=ask.id), smaller),
    )


def _halved(amounts: dict[str, int]) -> dict[str, int]:
    return {name: -(-amount // 2) for name, amount in amounts.items()}


def _elsewhere(state: State, ask: Ask) -> Iterator[Lever]:
    """Yield the same ask in other queues; where placement rules choose the queue, there is no other."""
    spec = state.configuration
    if spec is None or family_of(spec).places(spec):
        return
    same = replace(submitted_again(state, ask, ask.id), created=ask.created, uid=ask.uid or None)
    by_quota = admits_by_quota(spec)
    for name, leaf in _other_queues(state, ask, by_quota=by_quota)[:MOST_QUEUES]:
        # An application of YuniKorn is in one queue, so that the ask comes with one of its own.
        application = "" if by_quota else f"{DRAWN}{ask.application}"
        moved = replace(same, queue=name, application=application)
        inputs = v.AskWithdrawn(ask=ask.id), moved
        yield Lever("queue", name, leaf.path if leaf.path != name else "", {}, {}, inputs)


def _other_queues(state: State, ask: Ask, *, by_quota: bool) -> list[tuple[str, Queue]]:
    """Return other queues that the ask may name, with their leaves, those with the fewest asks first."""
    application = state.applications[ask.application]
    if ask.local_queue:
        namespace = ask.local_queue.partition("/")[0]
        names = [
            (name, state.queues[leaf])
            for name, leaf in state.local_queues.items()
            if name.startswith(f"{namespace}/") and leaf in state.queues
        ]
    else:
        names = [(path, queue) for path, queue in state.queues.items() if queue.leaf]
    found = [
        (name, leaf)
        for name, leaf in names
        if leaf is not application.leaf
        and not leaf.draining
        and (by_quota or may_submit(leaf, application.user, application.groups))
    ]
    return sorted(found, key=lambda one: (one[1].pending_asks, one[0]))

"""Explain: why an ask waits, why an allocation has to go or was spared, and what would change it.

Nothing was written down for this when it happened. The state of the moment is rebuilt, and copies
of it take their next steps with a tracer that listens (`replays.explaining.ahead`); so it works for
any moment of any log, costs nothing in production, and says what the engine does. What is shown
beside that (the queue path, the nearest nodes) is read off the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from evsched.core.registry import admits_by_quota, family_of
from replays.explaining import kueue, placing
from replays.explaining.ahead import Happens, look_again, look_ahead
from replays.explaining.kueue import FairShare, FlavorLook, Needs, QuotaLevel
from replays.explaining.mentions import EVICTED, Mention
from replays.explaining.node_conditions import unmodelled
from replays.explaining.placing import Level, NearNode, in_flight_cause
from replays.explaining.tracer import Note, RecordingTracer, cause, remedy
from replays.history.steps import copies
from replays.wording import YES, held, leaving, running

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.engine import Engine
    from evsched.core.state import State
    from evsched.core.workloads import Ask


SERVED = ("bound", "preempts", "nominated")
"""Codes of what the engine does about an ask that ends its waiting, or will."""


class Explanation(Struct, frozen=True, kw_only=True):
    """Everything that can be said of one ask or allocation at one moment.

    Attributes:
        status: ``waits``, ``in flight``, ``runs``, ``leaving``, ``gone`` or ``unknown``; of what is no
            ask and no allocation ``queue``, ``application``, ``node`` or ``user``.
        summary: The answer in a sentence or two: those of the causes, where it waits.
        causes: What holds an ask, each with its numbers.
        needs: Which of them have to go before it can run, by their places in ``causes``: of every
            entry one alternative (of Kueue's flavors any one will do), and of that all of them.
        next: What the next step does about an ask; None: it does not wait.
        later: The first thing that happens to it if no input comes; None: nothing does, in the next
            steps.
        missed: (YuniKorn) How many preemption cycles went by since the first that tried it in vain,
            that one included.
        levels: The queue path, leaf first; quotas: the same for Kueue, by flavor.
        nodes: Nodes that fit, or almost.
        flavors: (Kueue) Those that were considered.
        shares: (Kueue, fair sharing) Of the queues concerned, now and with it running.
        passed_over: Who or what was considered and why not.
        unblock: What would let an ask run.
        unmodelled: What its pod asks for that no decision of evsched depends on, by name.
        observed: Another scheduler decides about it, and the log only records: what is said of an ask
            is what evsched would decide.
    """

    subject: str
    status: str
    seq: int
    time: int
    summary: str
    causes: tuple[Note, ...] = ()
    needs: Needs = ()
    next: Happens | None = None
    later: Happens | None = None
    missed: int = 0
    history: tuple[Mention, ...] = ()
    levels: tuple[Level, ...] = ()
    quotas: tuple[QuotaLevel, ...] = ()
    nodes: tuple[NearNode, ...] = ()
    flavors: tuple[FlavorLook, ...] = ()
    shares: tuple[FairShare, ...] = ()
    passed_over: tuple[Note, ...] = ()
    unblock: tuple[Note, ...] = ()
    unmodelled: tuple[str, ...] = ()
    observed: bool = False


def explain_ask(engine: Engine, ask_id: str, history: Iterable[Mention] = ()) -> Explanation:
    """Explain an ask that waits in the state of this engine, which is only read."""
    state = engine.state
    ask = state.asks[ask_id]
    first, later = copies(engine, 2)
    happens, then = look_ahead(first, ask_id)
    # Whether an application is paused for its asks is a matter of all of them.
    paused = state.applications[ask.application].asks if ask.application in state.paused else {}
    tracer = RecordingTracer(frozenset((ask_id, *paused)))
    heard = look_again(later, ask_id, tracer)
    found = Explanation(
        subject=ask_id,
        status="in flight" if ask_id in state.preemptions else "waits",
        seq=state.seq,
        time=state.time,
        summary="",
        next=happens,
        later=then,
        missed=0 if ask_id in state.preemptions else state.missed(ask_id),
        history=tuple(history),
        passed_over=tuple(
            note for note in tracer.about(ask_id) if note.code not in YES and note.subject != ask_id
        ),
    )
    if admits_by_quota(state.configuration):
        found = _by_quota(found, state, ask, tracer)
    else:
        found = _by_nodes(found, state, ask, tracer.notes[:heard])
    if not found.causes:
        found = _unheld(found)
    found = replace(found, unmodelled=unmodelled(ask.pod), observed=state.observed)
    needs = found.needs or tuple(((place,),) for place in range(len(found.causes)))
    summary = held([one.sentence for one in found.causes], needs)
    return replace(found, needs=needs, summary=summary)


def _unheld(found: Explanation) -> Explanation:
    """Return the explanation of an ask that nothing of its own holds, with what becomes of it."""
    assert found.next is not None
    if found.next.code in SERVED:
        return replace(found, causes=(cause(found.subject, "nothing"),))
    if found.later is not None and found.later.code in SERVED:
        return replace(found, causes=(cause(found.subject, "later", **found.later.facts()),))
    overtaken = cause(found.subject, "overtaken")
    unblock = (*found.unblock, remedy(found.subject, "overtaken"))
    return replace(found, causes=(overtaken,), unblock=unblock)


def _will(found: Explanation) -> list[Note]:
    """Return what the engine will do of itself about an ask, as what lets it run."""
    if found.later is None or found.later.code == "tried":
        return []
    return [remedy(found.subject, "next", **found.later.facts())]


# ---------------------------------------------------------------------------------------- families


def _by_nodes(found: Explanation, state: State, ask: Ask, heard: list[Note]) -> Explanation:
    """Complete an explanation where queues have maxima and asks need nodes."""
    look = placing.look(state, ask, heard)
    return replace(
        found, causes=look.causes, levels=look.levels, nodes=look.nodes,
        unblock=(*_will(found), *look.unblock, *_preemption(found, state, ask, look.causes)),
    )  # fmt: skip


def _preemption(
    found: Explanation, state: State, ask: Ask, causes: tuple[Note, ...]
) -> Iterable[Note]:
    """Yield what is to be expected of preemption for an ask that something holds."""
    if not causes or ask.id in state.preemptions:
        return
    if found.later is not None and found.later.code == "tried":
        yield remedy(ask.id, "tried", **found.later.facts())
    if not ask.may_preempt:
        yield remedy(ask.id, "preemption-never")
    elif state.configuration is not None and not family_of(state.configuration).preempts(
        state.configuration
    ):
        yield remedy(ask.id, "preemption-disabled")


def _by_quota(found: Explanation, state: State, ask: Ask, tracer: RecordingTracer) -> Explanation:
    """Complete an explanation where quota alone admits."""
    in_flight = in_flight_cause(state, ask)
    look = kueue.look(state, ask, tracer)
    decided = found.next is not None and found.next.code in SERVED
    if in_flight is not None and (in_flight.facts["waiting_for"] or decided):
        waiting_for = in_flight.facts["waiting_for"]
        causes = (in_flight, *look.causes)
        # The places of the other causes are one higher here.
        needs: Needs = (
            ((0,),),
            *(tuple(tuple(place + 1 for place in way) for way in ways) for ways in look.needs),
        )
        ends = [remedy(name, "victims-end", allocation=name) for name in waiting_for]
        unblock = [*_will(found), *ends]
    else:
        causes, needs = ((), ()) if decided else (look.causes, look.needs)
        unblock = [*_will(found), *(() if decided else look.unblock)]
        if not ask.may_preempt:
            unblock.append(remedy(ask.id, "preemption-never"))
    return replace(
        found, causes=causes, needs=needs, unblock=tuple(unblock), quotas=look.quotas,
        flavors=look.flavors, shares=look.shares,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- allocations


def explain_allocation(
    engine: Engine, name: str, history: Iterable[Mention] = (), spared: Iterable[Note] = ()
) -> Explanation:
    """Explain an allocation that runs in the state of this engine."""
    state, history = engine.state, tuple(history)
    allocation = state.allocations[name]
    if allocation.eviction_requested:
        stopped = [one for one in history if one.code == EVICTED and not one.facts["ask"]]
        summary = leaving(allocation, stopped[-1].facts if stopped else None)
    else:
        summary = running(allocation)
    return Explanation(
        subject=name,
        status="leaving" if allocation.eviction_requested else "runs",
        seq=state.seq,
        time=state.time,
        summary=summary,
        history=history,
        passed_over=tuple(spared),
    )

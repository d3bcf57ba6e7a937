"""Why somebody had to go: a recorded preemption, decided again with a tracer that listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events import vocabulary as v
from evsched.core.registry import admits_by_quota
from replays.explaining.kueue import FairShare, before_and_after
from replays.explaining.tracer import Note, RecordingTracer
from replays.history.steps import copy, retake
from replays.wording import YES, sentence

if TYPE_CHECKING:
    from events.chain import RecordedStep
    from evsched.core.engine import Engine
    from evsched.core.state import State
    from evsched.core.workloads import Ask


class Shares(Struct, frozen=True, kw_only=True):
    """One queue before and after a preemption, for one resource.

    Attributes:
        guaranteed: None: none.
        quota: (Kueue) Its nominal quota, with what those below it lend; None: none, or no Kueue.
    """

    queue: str
    resource: str
    before: int
    after: int
    guaranteed: int | None = None
    quota: int | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """A preemption decided again: who had to go for whom, what the queues had before and have after, and who was spared why.

    Attributes:
        fair: (Kueue, fair sharing) The shares of those concerned, before and after.
        identical: It came out as recorded.
    """

    seq: int
    time: int
    for_ask: str
    for_queue: str
    algorithm: str
    victims: tuple[v.Victim, ...]
    shares: tuple[Shares, ...]
    passed_over: tuple[Note, ...]
    identical: bool
    fair: tuple[FairShare, ...] = ()


class Spared(Struct, frozen=True, kw_only=True):
    """Why somebody did not have to go in a decision that told others."""

    seq: int
    time: int
    for_ask: str
    for_queue: str
    code: str
    sentence: str


def spared_in(decision: Decision, name: str) -> Spared | None:
    """Return why an allocation was spared in a decision; None when it was not considered."""
    note = next((note for note in decision.passed_over if note.subject == name), None)
    if note is None:
        return None
    return Spared(
        seq=decision.seq, time=decision.time, for_ask=decision.for_ask, for_queue=decision.for_queue,
        code=note.code, sentence=note.sentence,
    )  # fmt: skip


def explain_decision(engine: Engine, step: RecordedStep, seq: int) -> Decision | None:
    """Decide a recorded step again, with the tracer, and explain the preemption with this ``seq``.

    Args:
        engine: With the state before the step; it is moved on.
        step: As recorded.
        seq: Of a PreemptionDecided or QuotaPreemptionDecided in it.
    """
    event = next((event for event in step.events if event.seq == seq), None)
    if not isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
        return None
    before = _before(engine, step, seq)
    ask_id = event.ask if isinstance(event, v.PreemptionDecided) else ""
    ask = before.asks.get(ask_id)
    shares = [] if admits_by_quota(before.configuration) else _shares(before, event, ask)
    tracer = RecordingTracer(frozenset((ask_id,)))
    engine.tracer = tracer
    again = retake(engine, step)
    engine.tracer = None
    victims = [victim.id for victim in event.victims]
    notes = tracer.about(ask_id) if ask_id else tracer.notes
    fair: list[FairShare] = []
    if admits_by_quota(engine.state.configuration):
        preempts = tracer.of(ask_id, "preempt") or {}
        usage = preempts.get("usage", {})
        moved, fair = before_and_after(engine.state, ask, victims, usage)
        shares = [
            Shares(
                queue=one.queue,
                resource=one.resource,
                before=one.before,
                after=one.after,
                quota=one.quota,
            )
            for one in moved
        ]
        notes = _with_unreached(notes)
    return Decision(
        seq=seq,
        time=step.time,
        for_ask=ask_id,
        for_queue=event.queue
        if isinstance(event, v.QuotaPreemptionDecided)
        else (ask.queue if ask is not None else ""),
        algorithm=event.algorithm if isinstance(event, v.PreemptionDecided) else "quota",
        victims=event.victims,
        shares=tuple(shares),
        passed_over=tuple(
            note
            for note in notes
            if note.code not in YES and note.subject not in (*victims, ask_id)
        ),
        identical=tuple(again) == step.events,
        fair=tuple(fair),
    )


def _before(engine: Engine, step: RecordedStep, seq: int) -> State:
    """Return the state right before an event: what the same step did before it was in force."""
    found = copy(engine)
    for event in step.events:
        if event.seq < seq:
            found.apply(event, step.time)
    return found.state


def _with_unreached(notes: list[Note]) -> list[Note]:
    """Return notes in which candidates that were not taken say so; who was taken and put back is ``not-needed`` already."""
    put_back = {note.subject: None for note in notes if note.code in ("not-needed", "share")}
    return [
        Note(
            subject=note.subject,
            code="not-reached",
            sentence=sentence("not-reached"),
            facts=note.facts,
        )
        if note.code == "candidate" and note.subject not in put_back
        else note
        for note in notes
    ]


def _shares(
    state: State, event: v.PreemptionDecided | v.QuotaPreemptionDecided, ask: Ask | None
) -> list[Shares]:
    """Return what every queue concerned, and those above it, had before and will have once all is done."""
    queues = dict.fromkeys(
        [*([ask.queue] if ask is not None else []), *(victim.queue for victim in event.victims)]
    )
    names, shapes = state.types.names, state.types.shapes
    change: dict[tuple[str, int], int] = {}
    for path in (path for path in queues if path in state.queues):
        for queue in state.queues[path].lineage:
            for index in queue.guaranteed:
                change.setdefault((queue.path, index), 0)
    moves = [
        (
            state.queues[state.allocations[one.id].queue],
            shapes[state.allocations[one.id].shape].pairs,
            -1,
        )
        for one in event.victims
        if one.id in state.allocations
    ]
    if ask is not None:
        moves.append((state.queues[ask.queue], shapes[ask.shape].pairs, 1))
    for leaf, pairs, sign in moves:
        for queue in leaf.lineage:
            for index, amount in pairs:
                change[queue.path, index] = change.get((queue.path, index), 0) + sign * amount
    found = []
    for (path, index), moved in change.items():
        queue = state.queues.get(path, state.root)
        used = queue.usage[index] - queue.preempting[index]
        guaranteed = queue.guaranteed.get(index)
        if moved or guaranteed is not None:
            found.append(
                Shares(
                    queue=path,
                    resource=names[index],
                    guaranteed=guaranteed,
                    before=used,
                    after=used + moved,
                )
            )
    return found

"""Why somebody had to go: a recorded preemption, decided again with a tracer that listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events import vocabulary as v
from events.configuration import KueueSpec
from replays.notebook import Note, Notebook
from replays.steps import retake
from replays.wording import YES

if TYPE_CHECKING:
    from events.chain import Step
    from evsched.core.engine import Engine
    from evsched.core.state import State
    from evsched.core.workloads import Ask


class Shares(Struct, frozen=True, kw_only=True):
    """One queue before and after a preemption, for one resource; ``guaranteed`` is the quota for Kueue, None: none."""

    queue: str
    resource: str
    guaranteed: int | None
    before: int
    after: int


class Decision(Struct, frozen=True, kw_only=True):
    """A preemption decided again: who had to go for whom, what the queues had before and have after, and who was spared why."""

    seq: int
    time: int
    for_ask: str
    for_queue: str
    algorithm: str
    victims: tuple[v.Victim, ...]
    shares: tuple[Shares, ...]
    passed_over: tuple[Note, ...]
    identical: bool


def explain_decision(engine: Engine, step: Step, seq: int) -> Decision | None:
    """Decide a recorded step again, with the tracer, and explain the preemption with this ``seq``.

    Args:
        engine: With the state before the step; it is moved on.
        step: As recorded.
        seq: Of a PreemptionDecided or QuotaPreemptionDecided in it.
    """
    event = next((event for event in step.events if event.seq == seq), None)
    if not isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
        return None
    before = engine.state
    ask = before.asks.get(event.ask) if isinstance(event, v.PreemptionDecided) else None
    queues = dict.fromkeys([*([ask.queue] if ask is not None else []), *(victim.queue for victim in event.victims)])
    shares = _shares(before, event, ask, [path for path in queues if path in before.queues])
    notebook = Notebook()
    engine.tracer = notebook
    again = retake(engine, step)
    engine.tracer = None
    mine = notebook.about(event.ask) if isinstance(event, v.PreemptionDecided) else notebook.notes
    victims = [victim.id for victim in event.victims]
    ask_id = event.ask if isinstance(event, v.PreemptionDecided) else ""
    return Decision(
        seq=seq,
        time=step.time,
        for_ask=event.ask if isinstance(event, v.PreemptionDecided) else "",
        for_queue=event.queue if isinstance(event, v.QuotaPreemptionDecided) else (ask.queue if ask is not None else ""),
        algorithm=event.algorithm if isinstance(event, v.PreemptionDecided) else "quota",
        victims=event.victims,
        shares=tuple(shares),
        passed_over=tuple(note for note in mine if note.code not in YES and note.subject not in (*victims, ask_id)),
        identical=tuple(again) == step.events,
    )


def _shares(
    state: State, event: v.PreemptionDecided | v.QuotaPreemptionDecided, ask: Ask | None, queues: list[str]
) -> list[Shares]:
    """Return what every queue concerned, and those above it, had before and will have once all is done."""
    names, shapes = state.types.names, state.types.shapes
    change: dict[tuple[str, int], int] = {}
    for path in queues:
        for queue in state.queues[path].lineage:
            for index in queue.guaranteed:
                change.setdefault((queue.path, index), 0)
    moves = [
        (state.queues[state.allocations[one.id].queue], shapes[state.allocations[one.id].shape].pairs, -1)
        for one in event.victims
        if one.id in state.allocations
    ]
    if ask is not None and not isinstance(state.configuration, KueueSpec):
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
        if queue.quota is not None:
            used, guaranteed = queue.quota.usage.get(index, 0), queue.quota.subtree.get(index)
        if moved or guaranteed is not None:
            found.append(Shares(queue=path, resource=names[index], guaranteed=guaranteed, before=used, after=used + moved))
    return found

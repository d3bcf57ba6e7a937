"""Why something waits, has to go, or was spared: the question of `evsched explain`."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from events.chain import ChainReader
from evsched.core.registry import admits_by_quota
from replays import wording_overviews
from replays.explaining.decision import Decision, Spared, explain_decision, spared_in
from replays.explaining.explain import Explanation, explain_allocation, explain_ask
from replays.explaining.mentions import DECISIONS, Mention
from replays.explaining.overview import Overview, ThingKind, overview
from replays.explaining.subject_history import SubjectHistory
from replays.history.finding import find
from replays.history.moments import END, Moment
from replays.wording import gone, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from events.chain import RecordedStep
    from evsched.core.engine import Engine
    from replays.history.finding import Finder
    from replays.history.rebuild import History


class ExplainQuestion(Struct, frozen=True, kw_only=True):
    """Why does an ask wait, or why does an allocation run, have to go, or was it spared? How does a queue stand?

    Attributes:
        kind: Of a thing that is no ask and no allocation; None: asks and allocations come first,
            then queues, applications, nodes and users.
        things: Whether queues, applications, nodes and users are answered for; what is said of them
            names what others have.
    """

    subject: str
    moment: Moment = END
    kind: ThingKind | None = None
    things: bool = True


class ExplainAnswer(Struct, frozen=True, kw_only=True):
    """What there is to say of an ask or allocation, or of an application, queue, node or user.

    Attributes:
        explanation: At the moment; with the status ``unknown`` where nothing has that name.
        decisions: Those that concern it up to then, decided again, oldest first.
        spared: Why it was not evicted in the last decisions that evicted others, where it runs.
        overview: Of an application, queue, node or user; None: it is an ask or allocation.
    """

    explanation: Explanation
    decisions: list[Decision]
    spared: list[Spared]
    overview: Overview | None = None


async def explain(
    history: History,
    question: ExplainQuestion,
    progress: Callable[[RecordedStep], None] | None = None,
) -> ExplainAnswer:
    """Explain what is there at the moment, and decide again what concerned it.

    Args:
        history: The log, with the snapshots and the index of subjects to start from.
        question: Which subject, and when.
        progress: Called after every step that is read because the index does not cover it.
    """
    moment = await history.absolute(question.moment)

    async def search(finder: Finder) -> SubjectHistory:
        found = SubjectHistory(question.subject, moment)
        await found.read(finder, progress)
        return found

    told = await find(history, search)
    concerned = [one.seq for one in told.mentions if one.code in DECISIONS]
    decided, behind = await _decisions(history, sorted({*concerned, *told.spared_in}))
    engine, _ = await history.before_step(moment, behind)
    seen = None
    if question.things and (question.kind is not None or not told.mentions):
        seen = overview(engine, question.subject, question.kind)
    if seen is not None:
        return ExplainAnswer(
            explanation=_overlooked(engine, seen), decisions=[], spared=[], overview=seen
        )
    if question.kind is not None:
        found = _absent(engine, question.subject, [])
    else:
        found = _explained(engine, question.subject, told.mentions)
    around = told.spared_in if found.status == "runs" else []
    return ExplainAnswer(
        explanation=found,
        decisions=[decided[seq] for seq in concerned if seq in decided],
        spared=[one for seq in around if (one := spared_in(decided[seq], question.subject))],
    )


def _explained(engine: Engine, subject: str, mentions: list[Mention]) -> Explanation:
    state = engine.state
    if subject in state.asks:
        return explain_ask(engine, subject, mentions)
    if subject in state.allocations:
        return explain_allocation(engine, subject, mentions)
    return _absent(engine, subject, mentions)


def _absent(engine: Engine, subject: str, mentions: list[Mention]) -> Explanation:
    """Return the explanation of a name that nothing has at the moment."""
    state = engine.state
    return Explanation(
        subject=subject,
        status="gone" if mentions else "unknown",
        seq=state.seq,
        time=state.time,
        summary=gone(mentions[-1].text) if mentions else unknown(),
        history=tuple(mentions),
    )


def _overlooked(engine: Engine, seen: Overview) -> Explanation:
    """Return the explanation of a thing that is no ask and no allocation."""
    kueue = admits_by_quota(engine.state.configuration)
    return Explanation(
        subject=seen.name,
        status=seen.kind,
        seq=engine.state.seq,
        time=engine.state.time,
        summary=wording_overviews.overview(seen, kueue=kueue),
    )


async def _decisions(
    history: History, wanted: Sequence[int]
) -> tuple[dict[int, Decision], tuple[Engine, ChainReader] | None]:
    """Decide again the preemptions with these seqs, in ascending order.

    Beside them comes the state behind the last one, to go on from; None where there is none that
    is the one of the log.
    """
    found: dict[int, Decision] = {}
    behind: tuple[Engine, ChainReader] | None = None
    for seq in wanted:
        if behind is not None and behind[0].state.seq >= seq:
            behind = None  # two decisions of one step
        engine, reader = await history.boundary(Moment(seq=seq - 1), behind)
        async with aclosing(history.steps(reader)) as steps:  # type: ignore[type-var]
            step = await anext(steps, None)
        decision = None if step is None else explain_decision(engine, step, seq)
        behind = None
        if step is not None and decision is not None:
            found[seq] = decision
            if decision.identical:
                # What was decided again is what the log holds, so this is the state behind it.
                behind = engine, ChainReader(step.head)
    return found, behind

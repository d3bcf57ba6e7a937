"""Why something waits, has to go, or was spared: the question of `evsched explain`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from events.vocabulary import PreemptionDecided, QuotaPreemptionDecided
from evsched.core.engine import Engine
from evsched.core.tallies import uncounted
from replays.explaining.decision import Decision, Spared, explain_decision, spared_in
from replays.explaining.explain import Explanation, explain_allocation, explain_ask
from replays.explaining.mentions import DECISIONS, Mention, mention, waits_in
from replays.history.moments import END, Moment
from replays.history.rebuild import apply_step
from replays.history.steps import copy
from replays.wording import gone, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replays.history.rebuild import History

DECISIONS_SHOWN = 3
"""How many decisions that spared an allocation are decided again."""


class ExplainQuestion(Struct, frozen=True, kw_only=True):
    """Why does an ask wait, or why does an allocation run, have to go, or was it spared?"""

    subject: str
    moment: Moment = END


class ExplainAnswer(Struct, frozen=True, kw_only=True):
    """What there is to say of an ask or allocation.

    Attributes:
        explanation: At the moment; with the status ``unknown`` where nothing has that name.
        decisions: Those that concern it up to then, decided again, oldest first.
        spared: Why it was not evicted in the last decisions that evicted others, where it runs.
    """

    explanation: Explanation
    decisions: list[Decision]
    spared: list[Spared]


async def explain(history: History, question: ExplainQuestion) -> ExplainAnswer:
    """Read the log up to the moment, explain what is there, and decide again what concerned it."""
    found, others = await _explanation(history, question)
    concerned = [one.seq for one in found.history if one.code in DECISIONS]
    decisions = await _decisions(history, concerned)
    around = await _decisions(history, others) if found.status == "runs" else []
    spared = [one for decision in around if (one := spared_in(decision, question.subject))]
    return ExplainAnswer(explanation=found, decisions=decisions, spared=spared)


async def _explanation(
    history: History, question: ExplainQuestion
) -> tuple[Explanation, list[int]]:
    """Read the log once, keep what mentions the subject, then explain it.

    With it come the seqs of the last decisions that evicted others while the subject was running.
    """
    subject, until = question.subject, question.moment.seq
    moment = await history.absolute(question.moment)
    engine = Engine()
    mentions: list[Mention] = []
    application = ""
    others: deque[int] = deque(maxlen=DECISIONS_SHOWN)
    with uncounted(engine.state):
        async for step in history.steps():
            if moment.time is not None and step.time > moment.time:
                break
            for event in step.events:
                if until is None or event.seq <= until:
                    application = waits_in(subject, event, application)
                    one = mention(subject, event, step.time, application)
                    if one is not None:
                        mentions.append(one)
                    elif (
                        isinstance(event, PreemptionDecided | QuotaPreemptionDecided)
                        and subject in engine.state.allocations
                    ):
                        others.append(event.seq)
            apply_step(engine, step, until)
            if until is not None and step.head.next_seq > until:
                break
    return _explained(engine, subject, mentions), list(others)


def _explained(engine: Engine, subject: str, mentions: list[Mention]) -> Explanation:
    state = engine.state
    if subject in state.asks:
        return explain_ask(engine, subject, mentions)
    if subject in state.allocations:
        return explain_allocation(engine, subject, mentions)
    return Explanation(
        subject=subject,
        status="gone" if mentions else "unknown",
        seq=state.seq,
        time=state.time,
        summary=gone(mentions[-1].text) if mentions else unknown(),
        history=tuple(mentions),
    )


async def _decisions(history: History, wanted: Sequence[int]) -> list[Decision]:
    """Decide again the preemptions with these seqs, in their order."""
    if not wanted:
        return []
    engine, found = Engine(), []
    with uncounted(engine.state):
        async for step in history.steps():
            for seq in wanted:
                if step.events and step.events[0].seq <= seq <= step.events[-1].seq:
                    decision = explain_decision(copy(engine), step, seq)
                    if decision is not None:
                        found.append(decision)
            if step.head.next_seq > wanted[-1]:
                break
            apply_step(engine, step)
    return found

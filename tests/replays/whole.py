"""Questions answered by reading all of a log, with no snapshot and no index: what the quick ways are compared with."""

from __future__ import annotations

from collections import deque

from events import vocabulary as v
from evsched.core.engine import Engine
from evsched.core.tallies import uncounted
from replays.explaining.decision import explain_decision, spared_in
from replays.explaining.mentions import DECISIONS, mention, waits_in
from replays.explaining.question import ExplainAnswer, _explained
from replays.history.moments import Moment
from replays.history.rebuild import apply_step
from replays.history.steps import copy

SHOWN = 3


def explain(steps, subject, moment):
    """Explain a subject at an absolute moment as `evsched explain` does."""
    engine, mentions, others = _read(steps, subject, moment)
    found = _explained(engine, subject, mentions)
    concerned = [one.seq for one in mentions if one.code in DECISIONS]
    around = _decisions(steps, others) if found.status == "runs" else []
    return ExplainAnswer(
        explanation=found,
        decisions=_decisions(steps, concerned),
        spared=[one for decision in around if (one := spared_in(decision, subject))],
    )


def _read(steps, subject, moment):
    """Apply everything up to the moment; return the state, what mentions the subject, and who else was evicted."""
    engine, mentions, others, application = Engine(), [], deque(maxlen=SHOWN), ""
    with uncounted(engine.state):
        for step in steps:
            if moment.time is not None and step.time > moment.time:
                break
            for event in step.events:
                if moment.seq is None or event.seq <= moment.seq:
                    application = waits_in(subject, event, application)
                    one = mention(subject, event, step.time, application)
                    if one is not None:
                        mentions.append(one)
                    elif (
                        isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided)
                        and subject in engine.state.allocations
                    ):
                        others.append(event.seq)
            apply_step(engine, step, moment.seq)
            if moment.seq is not None and step.head.next_seq > moment.seq:
                break
    return engine, mentions, others


def _decisions(steps, wanted):
    """Decide again the preemptions with these seqs."""
    engine, found = Engine(), []
    with uncounted(engine.state):
        for step in steps:
            found += [
                explain_decision(copy(engine), step, seq)
                for seq in wanted
                if step.events and step.events[0].seq <= seq <= step.events[-1].seq
            ]
            apply_step(engine, step)
    return [one for one in found if one is not None]


def last_configuration(steps):
    """Return the moment before the step that applied a configuration last."""
    applied = [
        step.events[0].seq - 1
        for step in steps
        for event in step.events
        if type(event) is v.ConfigurationApplied
    ]
    return Moment(seq=applied[-1] if applied else 0)

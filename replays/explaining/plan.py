"""What would become of an ask: a copy of the engine takes it in and steps on; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from events import vocabulary as v
from evsched.core.folding.asks import total
from evsched.core.registry import admits_by_quota
from replays import wording
from replays.explaining.ahead import Happens, happens
from replays.explaining.explain import explain_ask
from replays.explaining.tracer import Note
from replays.history.moments import END, Moment
from replays.history.steps import copy

if TYPE_CHECKING:
    from evsched.core.engine import Engine
    from evsched.core.state import State
    from replays.history.rebuild import History

STEPS_TAKEN = 3
"""The one that takes the ask in, and two in which it has its turn to preempt."""


class PlanQuestion(Struct, frozen=True, kw_only=True):
    """What would become of an ask, if it were submitted at a moment?"""

    ask: v.AskSubmitted
    moment: Moment = END


class PlanAnswer(Struct, frozen=True, kw_only=True):
    """What would become of an ask.

    Attributes:
        outcome: ``bound``: it would run at once; ``preempts``: others would be evicted; ``waits``;
            ``refused``.
        summary: The answer in a sentence or two.
        code: Of the refusal; empty for any other outcome.
        node: Where; None for Kueue, or when it waits.
        podsets: (Kueue) Each with its flavors, where the ask has any.
        queue: Where placement puts it; empty where it is refused.
        resources: What it asks for as it was understood, in base units.
        causes: What would hold it, when it waits.
        unblock: What would let it run, when it waits.
    """

    outcome: Literal["bound", "preempts", "waits", "refused"]
    summary: str
    code: str = ""
    queue: str = ""
    resources: dict[str, int] = {}
    node: str | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[v.PodSet, ...] = ()
    victims: tuple[v.Victim, ...] = ()
    causes: tuple[Note, ...] = ()
    unblock: tuple[Note, ...] = ()


async def plan(history: History, question: PlanQuestion) -> PlanAnswer:
    """Rebuild the state of the moment and plan."""
    return plan_ask(await history.at(question.moment), question.ask)


def plan_ask(engine: Engine, proposed: v.AskSubmitted) -> PlanAnswer:
    """Return what would become of an ask that were submitted now, its preemption delay past.

    An application that is not there yet is submitted with it, so that placement rules, access lists
    and limits have their say. The engine is only read.
    """
    world = copy(engine)
    found = _planned(world, proposed)
    ask = world.state.asks.get(proposed.ask) or world.state.allocations.get(proposed.ask)
    queue = "" if ask is None else ask.queue
    return replace(found, queue=queue, resources=total(proposed))


def _planned(world: Engine, proposed: v.AskSubmitted) -> PlanAnswer:
    state = world.state
    application = _new_application(state, proposed)
    proposed = _old_enough(state, proposed)
    inputs = [v.Proposal(input=one) for one in (application, proposed) if one is not None]
    events = world.step(state.time, inputs)
    for event in events:
        if isinstance(event, v.InputRejected):
            summary = wording.planned("refused", {"reason": event.reason})
            return PlanAnswer(outcome="refused", summary=summary, code=event.code)
    found = happens(proposed.ask, state.time, events)
    for _ in range(STEPS_TAKEN - 1):
        due = world.next_due()
        # The next that is due may be the end of a pause, which is not now.
        paused = proposed.application in state.paused
        if due is None or paused or found.code in ("bound", "preempts"):
            break
        time = max(due, state.time)
        found = happens(proposed.ask, time, world.step(time))
    if proposed.ask in state.asks and found.code not in ("bound", "preempts"):
        return _waits(world, proposed.ask)
    return _decided(found)


def _new_application(state: State, proposed: v.AskSubmitted) -> v.ApplicationSubmitted | None:
    """Return the application that has to come with an ask; None: it is there, or is none's matter.

    A workload of Kueue is an application by itself, and what names none joins that of its queue.
    """
    known = proposed.application in state.applications
    if known or not proposed.application or admits_by_quota(state.configuration):
        return None
    return v.ApplicationSubmitted(
        application=proposed.application,
        queue=proposed.queue,
        user=proposed.user,
        groups=proposed.groups,
    )


def _old_enough(state: State, proposed: v.AskSubmitted) -> v.AskSubmitted:
    """Return the ask just old enough to preempt: those that wait longer go first all the same."""
    if proposed.created is not None:
        return proposed
    application = state.applications.get(proposed.application)
    leaf = state.queues.get(proposed.queue) or (application.leaf if application else None)
    delay = leaf.settings.preemption_delay_ms if leaf is not None and leaf.quota is None else 0
    return replace(proposed, created=state.time - delay)


def _decided(found: Happens) -> PlanAnswer:
    return PlanAnswer(
        outcome="bound" if found.code == "bound" else "preempts",
        summary=wording.planned(found.code, found.facts()),
        node=found.node,
        flavors=found.flavors,
        podsets=found.podsets,
        victims=found.victims,
    )


def _waits(world: Engine, ask_id: str) -> PlanAnswer:
    found = explain_ask(world, ask_id)
    return PlanAnswer(
        outcome="waits",
        summary=wording.planned("waits", {"causes": found.summary}),
        causes=found.causes,
        unblock=found.unblock,
    )

"""What the engine will do about an ask: a copy of it takes its next steps, with a clock and a tracer of its own.

Nothing here calls a policy. The copy is an engine like any other, behind the same gates (preemption
that is disabled, a delay, a pause, the pace of cycles), so it cannot promise what the engine itself
would not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from events import vocabulary as v

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.engine import Engine
    from replays.explaining.tracer import RecordingTracer

STEPS_AHEAD = 16
"""How many steps a copy takes at most until something happens to the ask; no promise is made beyond."""


class Happens(Struct, frozen=True, kw_only=True):
    """What a step of the engine does about an ask.

    Attributes:
        time: Of the step, milliseconds; None: no step is due until an input comes.
        code: ``bound``; ``preempts``; ``nominated``: it is promised room that others' victims leave;
            ``tried``: a preemption cycle looks at it in vain for the
            first time; ``waits``: nothing happens to it.
        node: Where; None for Kueue, and when it waits.
        flavors: (Kueue) Resource to flavor; podsets: the same by podset.
        victims: In the order in which they are chosen.
    """

    time: int | None
    code: Literal["bound", "preempts", "nominated", "tried", "waits"]
    node: str | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[v.PodSet, ...] = ()
    victims: tuple[v.Victim, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return it as the facts of a note: flavors by podset, victims by name."""
        podsets = {one.name: one.flavors or {} for one in self.podsets}
        return {
            "time": self.time,
            "code": self.code,
            "node": self.node,
            "flavors": podsets or ({"": self.flavors} if self.flavors else {}),
            "victims": tuple(one.id for one in self.victims),
        }


def happens(ask_id: str, time: int | None, events: Iterable[v.AnyEvent]) -> Happens:
    """Return what the events of one step do about an ask; the first that decides about it counts."""
    tried = False
    for event in events:
        if isinstance(event, v.AllocationBound) and event.ask == ask_id:
            return Happens(
                time=time,
                code="bound",
                node=event.node,
                flavors=event.flavors,
                podsets=event.podsets,
            )
        if isinstance(event, v.PreemptionDecided) and event.ask == ask_id:
            return Happens(time=time, code="preempts", node=event.node, victims=event.victims)
        if isinstance(event, v.AskNominated) and event.ask == ask_id:
            return Happens(time=time, code="nominated", node=event.node)
        tried = tried or (isinstance(event, v.CycleStarted) and ask_id in event.tried)
    return Happens(time=time, code="tried" if tried else "waits")


def next_step(world: Engine, ask_id: str) -> Happens:
    """Take the next step of a copy and return what it does about an ask.

    The step comes when it is due. Where none is due, the step that any input would cause is taken
    without one: after a step that did not decide, it has decisions to make.
    """
    due = world.next_due()
    now = world.state.time
    time = None if due is None else max(due, now)
    events = world.step(now if time is None else time)
    return happens(ask_id, time, events)


def look_ahead(world: Engine, ask_id: str) -> tuple[Happens, Happens | None]:
    """Step a copy on until something happens to an ask, as if no more input came.

    Returns:
        What its next step does, and the first thing that happens to the ask; None where nothing
        does, within `STEPS_AHEAD` steps.
    """
    first = found = next_step(world, ask_id)
    for _ in range(STEPS_AHEAD - 1):
        if found.code != "waits":
            return first, found
        if world.next_due() is None:
            return first, None
        found = next_step(world, ask_id)
    return first, found if found.code != "waits" else None


def look_again(world: Engine, ask_id: str, tracer: RecordingTracer) -> int:
    """Let a copy look at one ask as if it had not been tried yet, and every other one had; the tracer hears why.

    An ask that was tried in vain is not looked at before something changes, so that nothing would
    be heard of it. Which cycle looks at whom is all that is changed; what it decides by is the
    state of the log.

    Returns:
        How many notes were taken by the first step, at the time of the state itself.
    """
    state = world.state
    state.unschedulable_since = {
        name: state.unschedulable_since.get(name, state.cycles) for name in state.asks
    }
    if ask_id not in state.preemptions:
        del state.unschedulable_since[ask_id]
    state.retry_needed = False
    state.dirty_cohorts = {}
    world.tracer = tracer
    world.step(state.time)
    heard = len(tracer.notes)
    for _ in range(STEPS_AHEAD):
        waits = ask_id in state.asks and ask_id not in state.preemptions
        due = world.next_due()
        if due is None or not waits or ask_id in state.unschedulable_since:
            break
        world.step(max(due, state.time))
    return heard

"""What would become of an ask: decided on a copy of the state, nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from events import vocabulary as v
from replays.explaining.explain import copy, explain_ask
from replays.history.mentions import mention_in

if TYPE_CHECKING:
    from evsched.core.engine import Engine


class Planned(Struct, frozen=True, kw_only=True):
    """What would become of an ask.

    Attributes:
        outcome: ``bound``: it would run at once; ``preempts``: others would be told to go;
            ``waits``; ``refused``.
        node: Where; None for Kueue, or when it waits.
        unblock: What would let it run, when it waits.
    """

    outcome: Literal["bound", "preempts", "waits", "refused"]
    summary: str
    node: str | None = None
    flavors: dict[str, str] | None = None
    victims: tuple[v.Victim, ...] = ()
    unblock: tuple[str, ...] = ()


def plan_ask(engine: Engine, proposed: v.AskSubmitted) -> Planned:
    """Return what would become of an ask that were submitted now, its preemption delay past; the engine is only read."""
    world = copy(engine)
    time = world.state.time
    if proposed.created is None:
        # Just old enough to preempt: those who wait longer go first all the same.
        application = world.state.applications.get(proposed.application)
        leaf = world.state.queues.get(proposed.queue) or (
            application.leaf if application is not None else None
        )
        delay = leaf.settings.preemption_delay_ms if leaf is not None and leaf.quota is None else 0
        proposed = replace(proposed, created=time - delay)
    events = list(world.step(time, [v.Proposal(input=proposed)]))
    for _ in range(2):
        due = world.next_due()
        if (
            due is None
            or proposed.ask not in world.state.asks
            or proposed.ask in world.state.preemptions
        ):
            break
        if (
            proposed.application in world.state.paused
        ):  # the next that is due may be the end of the pause
            break
        events.extend(world.step(max(due, world.state.time)))
    for event in events:
        if isinstance(event, v.InputRejected):
            return Planned(outcome="refused", summary=f"It would be refused: {event.reason}.")
        if isinstance(event, v.AllocationBound) and event.ask == proposed.ask:
            where = f"bound to {event.node}" if event.node else mention_in(proposed.ask, event)
            return Planned(
                outcome="bound",
                summary=f"It would be {where}.",
                node=event.node,
                flavors=event.flavors,
            )
        if isinstance(event, v.PreemptionDecided) and event.ask == proposed.ask:
            where = f" on {event.node}" if event.node else ""
            count = len(event.victims)
            summary = f"It would preempt {count} allocation{'s' if count > 1 else ''}{where}."
            return Planned(
                outcome="preempts", summary=summary, node=event.node, victims=event.victims
            )
    found = explain_ask(world, proposed.ask)
    return Planned(
        outcome="waits", summary=f"It would wait. {found.summary}", unblock=found.unblock
    )

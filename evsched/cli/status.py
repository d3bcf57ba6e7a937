"""`evsched status`: what the scheduler knows now, as the log says it."""

from __future__ import annotations

from typing import Any

from events.chain import Head
from events.cloudevents import rfc3339
from events.streams import Heartbeat
from evsched.cli.answers import emit
from evsched.cli.logs import HERE, Where, log_of
from evsched.cli.options import Json
from evsched.core.engine import Engine
from evsched.service.rebuilding import Warm


async def status(*, where: Where = HERE, json: Json = False) -> None:
    """Show what the scheduler knows, rebuilt from the log: who leads, what runs, who waits, and the digest of it all.

    Two readers of one log show the same digest.

    **Examples**

    `evsched status`

    `evsched status --log kafka://localhost:9092/cluster --json`

    Args:
        where: Which log.
        json: One document.
    """
    warm = Warm()
    async with log_of(where) as opened:
        await warm.catch_up(opened)
        beat = await opened.last_heartbeat()
    facts = _facts(warm.engine, warm.reader.head, beat)
    if json:
        emit(facts)
        return
    for name, value in facts.items():
        moment = name in {"time", "next_due"} and value
        print(f"{name.replace('_', ' '):<22} {rfc3339(value) if moment else '-' if value in {None, ''} else value}")


def _facts(engine: Engine, head: Head, beat: Heartbeat | None) -> dict[str, Any]:
    state = engine.state
    configuration = state.configuration
    return {
        "log_id": head.log_id,
        "term": head.term,
        "leader": head.leader,
        "address": beat.address if beat is not None and beat.term == head.term else "",
        "frame": head.frame,
        "seq": head.next_seq - 1,
        "time": head.time,
        "partition": None if configuration is None else configuration.partition,
        "nodes": len(state.nodes),
        "applications": len(state.applications),
        "allocations": len(state.allocations),
        "waiting": len(state.asks),
        "preemptions_under_way": len(state.preemptions),
        "next_due": engine.next_due(),
        "digest": state.digest(),
    }

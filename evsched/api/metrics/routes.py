"""``/metrics``: one scrape, made in the room in which the log is followed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace
from starlette.responses import Response
from starlette.routing import Route

from events.errors import StreamError
from evsched.api.metrics.scrape import Scrape, Verification, Vitals, metrics, written

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from starlette.requests import Request

    from events.streams.protocols import Heartbeat
    from evsched.api.app import Served
    from evsched.api.past import Past

PATHS = ("/metrics", "/ws/v1/metrics")


class Pulse:
    """How long ago the leader's last sign of life was seen, by this process's own clock."""

    def __init__(self) -> None:
        self._seen: tuple[str, int, int] | None = None
        self._since = 0.0

    def look(self, beat: Heartbeat | None, now: float) -> int | None:
        """Return milliseconds since this sign of life was first seen; None: there is none.

        Args:
            beat: The latest one.
            now: Seconds of a clock that nobody sets.
        """
        if beat is None:
            return None
        seen = (beat.leader, beat.term, beat.number)
        if seen != self._seen:
            self._seen, self._since = seen, now
        return int((now - self._since) * 1000)


def routes(served: Served) -> list[Route]:
    """Return the routes of the metrics: ours, and where YuniKorn has them."""
    pulse = Pulse()

    async def endpoint(request: Request) -> Response:
        tail = served.past.tail
        known = Vitals(ready=tail.ready, verification=_verification(served))
        found = await served.past.ask(_scraped(served.past, pulse, known, tail.seq))
        # Writing takes longer than looking: the log is followed meanwhile.
        accepted = request.headers.get("accept", "")
        data, media_type = await asyncio.to_thread(written, found, accepted)
        return Response(data, headers={"cache-control": "no-store", "content-type": media_type})

    return [Route(path, endpoint) for path in PATHS]


def _verification(served: Served) -> Verification:
    found = served.verified
    if found is None:
        return "none"
    if found.damage is not None:
        return "damaged"
    return "equal" if found.difference is None else "different"


async def _scraped(past: Past, pulse: Pulse, known: Vitals, told: int) -> list[Metric]:
    """Return the metrics of now; a coroutine of the room of the log.

    Args:
        past: Of the log.
        pulse: Of its leader.
        known: What is known beside the log.
        told: The last event that readers were told of; where the state is behind it, it is being
            made anew.
    """
    keeper = past.keeper
    try:
        beat = await past.log.last_heartbeat()
    except StreamError:  # a right of its own, or a broker that is away: its metrics have no value
        beat = None
    read = 0 if keeper.model is None else keeper.model.at.frame
    vitals = replace(
        known,
        heartbeat_age_ms=pulse.look(beat, asyncio.get_running_loop().time()),
        resigned=beat is not None and beat.resigned,
        ready=known.ready and keeper.state.seq >= told,
        lag_frames=None if beat is None else max(beat.head.frame - read, 0),
    )
    return metrics(Scrape(keeper.state, keeper.fold, vitals))

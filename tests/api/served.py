"""A server for tests: the whole application over a small log, asked without a network."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx

from events.streams import open_log, open_streams
from evsched.api.app import Served, application
from evsched.api.asking import Asking
from evsched.api.guard import Hosts
from evsched.api.identity import Identities
from evsched.api.jobs import Jobs
from evsched.api.keeping import Beside
from evsched.api.past import LogPlaces
from evsched.api.seen import SeenPast
from evsched.api.serving import HttpServer, Listen
from evsched.snapshots.store import SnapshotStore
from tests.replays.logs import sealed
from tests.service.clocked import START, Leader

HOST = "http://localhost"


async def kept(records, url):
    """Write records to a new embedded log."""
    async with open_streams(url) as streams:
        await streams.log.create()
        for record in records:
            await streams.log.append(record.data)


def served_over(url, folder, identities=None):
    """Return what a server of a log works on, with its files in a folder."""

    def beside(log_id):
        return Beside(folder / "model.db", SnapshotStore(folder / "snapshots", print))

    places = LogPlaces(open_log=lambda: open_log(url), beside=beside)
    return Served(
        past=SeenPast(places, identities.settings if identities else None),
        identities=identities or Identities(),
        asking=Asking(places.open_log, beside, "questions"),
        jobs=Jobs(lambda: Asking(places.open_log, beside, "job")),
        hosts=Hosts(),
        open_streams=lambda: open_streams(url),
    )


@asynccontextmanager
async def serving(url, folder, served=None):
    """Run a server and yield a client of it, once the log is read."""
    served = served or served_over(url, folder)
    app = application(served)
    async with app.router.lifespan_context(app):
        while not served.past.tail.ready:
            await served.past.tail.changed(5)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
            client.served = served
            yield client


async def reached(client, seq):
    """Return when a server has read its log up to an event."""
    while client.served.past.tail.seq < seq:
        await client.served.past.tail.changed(5)


@asynccontextmanager
async def serving_steps(steps, folder, identities=None):
    """Run a server over a log that holds these steps; anybody may ask it where nothing says who may."""
    url = f"sqlite://{folder / 'log.db'}"
    await kept(sealed(steps), url)
    async with serving(url, folder, served_over(url, folder, identities)) as client:
        yield client


@asynccontextmanager
async def listening(url, folder):
    """Run a server that listens, in this event loop, and yield its address and what it serves."""
    served = served_over(url, folder)
    server = HttpServer(served, Listen("127.0.0.1", 0))
    running = asyncio.create_task(server.run(lambda: None))
    while not served.past.tail.ready:
        await served.past.tail.changed(5)
    try:
        yield f"http://{server.listen.shown}", served
    finally:
        server.stop()
        await running


class Reader:
    """A reader of server-sent events, as a browser is one: it comes back and says which event it saw last.

    Attributes:
        seen: The events, as (seq, type, document).
    """

    def __init__(self, query=""):
        self.seen = []
        self._query = query
        self._arrived = asyncio.Event()

    @property
    def last(self):
        """The seq of the event that was seen last; 0: none was."""
        return self.seen[-1][0] if self.seen else 0

    async def reached(self, seq):
        """Return when an event was seen."""
        while self.last < seq:
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), 60)

    async def read(self, address, until):
        """Read events until this many were seen, or the stream ends."""
        headers = {"last-event-id": str(self.last)} if self.seen else {}
        async with (
            httpx.AsyncClient(timeout=10) as client,
            client.stream("GET", f"{address}/v1/events{self._query}", headers=headers) as found,
        ):
            assert found.status_code == 200, await found.aread()
            event = {}
            async for line in found.aiter_lines():
                name, _, value = line.partition(": ")
                event[name] = value
                if not line and "id" in event:
                    self.seen.append((int(event["id"]), event["event"], json.loads(event["data"])))
                    self._arrived.set()
                    event = {}
                    if len(self.seen) >= until:
                        return


@asynccontextmanager
async def led(url):
    """Let a leader answer what is proposed to a log."""
    async with open_streams(url) as streams:
        await streams.log.create()
        leader = Leader(streams, 1)
        await leader.start(START)
        leading = asyncio.create_task(_lead(leader))
        try:
            yield
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)


async def _lead(leader):
    now = START
    while True:
        position = leader.leadership.head.inbox_next
        if await leader.streams.inbox.read(position, 1, wait_s=5):
            now += 1000
            await leader.happen(now)

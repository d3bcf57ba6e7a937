"""A server for tests: the whole application over a small log, asked without a network."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx

from events.streams import open_log, open_streams
from evsched.api.app import Served, application
from evsched.api.guard import Hosts
from evsched.api.keeping import Beside
from evsched.api.past import LogPlaces, Past
from evsched.snapshots.store import SnapshotStore
from tests.replays.logs import sealed

HOST = "http://localhost"


async def kept(records, url):
    """Write records to a new embedded log."""
    async with open_streams(url) as streams:
        await streams.log.create()
        for record in records:
            await streams.log.append(record.data)


def served_over(url, folder):
    """Return what a server of a log works on, with its files in a folder."""

    def beside(log_id):
        return Beside(folder / "model.db", SnapshotStore(folder / "snapshots", print))

    return Served(
        past=Past(LogPlaces(open_log=lambda: open_log(url), beside=beside)), hosts=Hosts()
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
async def serving_steps(steps, folder):
    """Run a server over a log that holds these steps."""
    url = f"sqlite://{folder / 'log.db'}"
    await kept(sealed(steps), url)
    async with serving(url, folder) as client:
        yield client

"""A proxy before a Kafka broker that spoils writes: it loses requests, loses replies, keeps them back, resets connections.

It understands just enough of the protocol to know a Produce request when it passes: each message
begins with its length (four bytes), and a request goes on with its kind (two bytes, 0 for Produce).
Replies come in the order of the requests.
"""

import asyncio
import random
import struct
from collections import Counter
from contextlib import suppress

FATES = ("request lost", "reply lost", "reply late", "reset while answering")
PRODUCE = 0


class FaultyBroker:
    """The proxy.

    Attributes:
        port: Where it listens, on the loopback address.
        faults: How often each of `FATES` struck.
        rate: Share of the Produce requests that are struck, in percent.
    """

    def __init__(self, bootstrap: str, seed: int, rate: int, late_s: float) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._broker = (host, int(port))
        self._chance = random.Random(seed)
        self._late_s = late_s
        self.rate = rate
        self.port = 0
        self.faults: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def fate(self, kind: int) -> str:
        """Return what happens to a request."""
        if kind != PRODUCE or self._chance.randrange(100) >= self.rate:
            return ""
        fate = self._chance.choice(FATES)
        self.faults[fate] += 1
        return fate

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        upstream: asyncio.StreamWriter | None = None
        try:
            there, upstream = await asyncio.open_connection(*self._broker)
            await self._converse(Line(reader, writer), Line(there, upstream))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for one in (writer, upstream):
                if one is not None:
                    one.close()
                    with suppress(OSError):
                        await one.wait_closed()

    async def _converse(self, client: "Line", broker: "Line") -> None:
        """Pass requests and replies on, one after the other, until a fault ends the connection."""
        while True:
            request = await client.message()
            fate = self.fate(struct.unpack_from(">h", request)[0])
            if fate == "request lost":
                return
            await broker.send(request)
            reply = await broker.message()
            if fate == "reply lost":
                return
            if fate == "reply late":
                await asyncio.sleep(self._late_s)
            if fate == "reset while answering":
                client.writer.write(struct.pack(">i", len(reply)) + reply[: len(reply) // 2])
                await client.writer.drain()
                client.writer.transport.abort()
                return
            await client.send(reply)


class Line:
    """One end of a connection, message by message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def message(self) -> bytes:
        """Return the next message without its length."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def send(self, message: bytes) -> None:
        """Send a message with its length before it."""
        self.writer.write(struct.pack(">i", len(message)) + message)
        await self.writer.drain()

"""A way to the API server that can be cut: connections are reset and refused until it is mended."""

import asyncio
from contextlib import suppress


class Cut:
    """Passes bytes on, in both directions, without understanding them.

    Attributes:
        port: Where it listens, on the loopback address.
    """

    def __init__(self, port: int) -> None:
        """Lead to a port of the loopback address."""
        self._to = port
        self.port = 0
        self._whole = True
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Reset every connection, and each one that comes."""
        self._whole = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Let connections through again."""
        self._whole = True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        there, upstream = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, upstream}
        try:
            await asyncio.gather(_pass_on(reader, upstream), _pass_on(there, writer))
        finally:
            self._writers -= {writer, upstream}


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()

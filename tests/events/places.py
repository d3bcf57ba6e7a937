"""A place where streams can be kept."""

from contextlib import AsyncExitStack

from events.streams import Streams, open_streams


class Place:
    """A place for the streams of one cluster.

    Attributes:
        kind: Of its adapter.
        url: Its address.
    """

    def __init__(self, kind: str, url: str, stack: AsyncExitStack) -> None:
        self.kind = kind
        self.url = url
        self._stack = stack

    async def open(self, partition: int = 0, *, create: bool = True) -> Streams:
        """Return streams of their own connections, closed after the test."""
        streams = await self._stack.enter_async_context(open_streams(self.url, partition))
        if create:
            await streams.log.create()
        return streams

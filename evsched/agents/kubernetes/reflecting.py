"""Watches one kind of object without losing a change: list, watch, go on where the watch ended, list again.

The API server numbers every change. A list has the number of the state that it shows, each event of
a watch its own, and a bookmark says up to which number nothing else has happened. A watch that ends,
for whatever reason, goes on behind the last number. Only when the server no longer knows what came
behind it (410) are the objects listed again; what lies in between was not seen then, and the list
says so. A watch that has been silent for longer than bookmarks are apart may be a connection that
leads nowhere: it is closed and goes on the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import msgspec
import structlog
from msgspec import Raw, Struct

from evsched.agents.kubernetes.objects import ApiObject, ApiStruct, ObjectKind

FIRST_WAIT_S = 0.2
MOST_WAIT_S = 30.0

_log = structlog.get_logger(__name__)


class Unavailable(Exception):
    """The API server did not answer as hoped, and may do so later.

    Attributes:
        reason: What it said, or what happened to the connection.
        retry_after_s: How long it asked to be left alone; None: it did not say.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(reason)


class Gone(Exception):
    """The API server no longer knows what came behind a version, or does not know that version yet.

    Attributes:
        reason: In its words.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ObjectSource(Protocol):
    """What lists and watches: an API server, or a conversation with one that was recorded."""

    async def page(self, kind: ObjectKind, after: str) -> bytes:
        """Return a page of the list of all objects.

        Args:
            kind: Of the objects.
            after: The ``continue`` of the page before; empty: the first.

        Raises:
            Gone: The list was begun too long ago to go on with.
            Unavailable: Anything else than a page.
        """

    def watch(self, kind: ObjectKind, version: str) -> AsyncIterator[bytes]:
        """Yield the events behind a version, one line each, until the server ends the watch.

        Raises:
            Gone: It does not know what came behind it.
            Unavailable: Anything else, silence included.
        """


class Relisted(Struct, frozen=True):
    """All objects of a kind as they are at one version.

    Attributes:
        before: The version up to which everything had been seen; empty: nothing had.
        reason: Why they were listed.
    """

    kind: ObjectKind
    version: str
    objects: tuple[ApiObject, ...]
    before: str
    reason: str


class ObjectChanged(Struct, frozen=True):
    """One object as it is now; ``gone``: as it was last."""

    kind: ObjectKind
    object: ApiObject
    gone: bool


Deliver = Callable[[Relisted | ObjectChanged], Awaitable[None]]


class _ListMeta(ApiStruct, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(ApiStruct, frozen=True):
    metadata: _ListMeta
    items: tuple[Raw, ...] | None = None


class _Line(ApiStruct, frozen=True):
    type: str
    object: Raw


class _Meta(ApiStruct, frozen=True):
    resource_version: str = ""


class _Mark(ApiStruct, frozen=True):
    metadata: _Meta


class _Status(ApiStruct, frozen=True):
    code: int = 0
    reason: str = ""
    message: str = ""


_PAGE = msgspec.json.Decoder(_Page)
_LINE = msgspec.json.Decoder(_Line)
_MARK = msgspec.json.Decoder(_Mark)
_STATUS = msgspec.json.Decoder(_Status)


class Reflector:
    """Watches one kind.

    Attributes:
        version: The last one of which everything up to it was delivered; empty: nothing was listed.
    """

    def __init__(
        self,
        kind: ObjectKind,
        source: ObjectSource,
        deliver: Deliver,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Watch nothing yet.

        Args:
            kind: Of the objects.
            source: Where they are.
            deliver: Is given each list and each change, one after the other.
            sleep: Waits so many seconds.
        """
        self.version = ""
        self._kind = kind
        self._source = source
        self._deliver = deliver
        self._sleep = sleep
        self._object = msgspec.json.Decoder(kind.model)
        self._wait_s = FIRST_WAIT_S
        self._lost = ""
        self._asked = asyncio.Event()

    def list_again(self, reason: str) -> None:
        """List as soon as that can be: what was delivered is in doubt, though the watch lost nothing."""
        self._lost = self._lost or reason
        self._asked.set()

    async def begin(self) -> None:
        """List; return when the list is delivered, however long the API server is away."""
        while not self.version:
            await self._turn()

    async def run(self) -> None:
        """Watch, and list again where that is needed; never ends by itself."""
        while True:
            await self._turn()

    async def _turn(self) -> None:
        """List or watch once; on trouble, wait before the next turn."""
        try:
            if self._lost or not self.version:
                await self._list()
            else:
                await self._watch_until_asked()
        except Gone as error:
            # The version stays: the gap begins there.
            self._lost = error.reason
            _log.warning("watch lost its place", kind=self._kind.name, reason=error.reason)
        except (Unavailable, msgspec.MsgspecError) as error:
            asked = getattr(error, "retry_after_s", None)
            wait = self._wait_s if asked is None else max(asked, FIRST_WAIT_S)
            self._wait_s = min(2 * self._wait_s, MOST_WAIT_S)
            _log.warning(
                "API server asked again", kind=self._kind.name, reason=str(error), again_in_s=wait
            )
            await self._sleep(wait)

    async def _list(self) -> None:
        objects: list[ApiObject] = []
        after, version = "", ""
        while True:
            page = _PAGE.decode(await self._source.page(self._kind, after))
            objects += map(self._object.decode, page.items or ())
            version, after = page.metadata.resource_version, page.metadata.continue_
            if not after:
                break
        before, reason = self.version, self._lost
        await self._deliver(
            Relisted(self._kind, version, tuple(objects), before, reason or "first list")
        )
        self.version, self._lost, self._wait_s = version, "", FIRST_WAIT_S
        self._asked.clear()

    async def _watch_until_asked(self) -> None:
        """Watch; leave off when a list is asked for, before the next change is delivered."""
        watching = asyncio.ensure_future(self._watch())
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({watching, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            watching.cancel()
            await asyncio.wait({watching, asked})
        if not watching.cancelled():
            watching.result()

    async def _watch(self) -> None:
        async for text in self._source.watch(self._kind, self.version):
            line = _LINE.decode(text)
            if line.type == "ERROR":
                status = _STATUS.decode(line.object)
                said = f"{status.code} {status.reason}: {status.message}"
                raise Gone(said) if status.code == 410 else Unavailable(said)  # noqa: PLR2004 - Gone
            if line.type != "BOOKMARK":
                found = self._object.decode(line.object)
                await self._deliver(ObjectChanged(self._kind, found, line.type == "DELETED"))
            self.version = _MARK.decode(line.object).metadata.resource_version
            self._wait_s = FIRST_WAIT_S

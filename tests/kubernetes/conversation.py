"""A conversation with an API server: written down byte for byte as it is held, and held again without one.

A file has one line for each thing that the server said, in the order of its saying: a page of a
list, a line of a watch, the end of a watch, or the trouble that it ended in. The last line is the
cluster as it was at the end. Held again, each kind hears what it heard; how the kinds interleave is
left open, as it is between real watches.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import zstandard

from evsched.agents.kubernetes.objects import ObjectKind
from evsched.agents.kubernetes.reflecting import Gone, ObjectSource, Unavailable

FOLDER = Path(__file__).with_name("conversations")


class Written:
    """Hands on what a source says, and writes it down."""

    def __init__(self, source: ObjectSource) -> None:
        """Begin with nothing."""
        self._source = source
        self._lines: list[dict[str, Any]] = []

    async def page(self, kind: ObjectKind, after: str) -> bytes:
        """Hand on a page."""
        try:
            page = await self._source.page(kind, after)
        except (Gone, Unavailable) as trouble:
            self._note(kind, "list", **_told(trouble))
            raise
        self._note(kind, "list", after=after, text=page.decode())
        return page

    async def watch(self, kind: ObjectKind, version: str) -> AsyncIterator[bytes]:
        """Hand on a watch."""
        self._note(kind, "watch", version=version)
        try:
            async for line in self._source.watch(kind, version):
                self._note(kind, "line", text=line.decode())
                yield line
        except (Gone, Unavailable) as trouble:
            self._note(kind, "end", **_told(trouble))
            raise
        self._note(kind, "end")

    def save(self, name: str, cluster: dict[str, Any]) -> None:
        """Keep it, with the cluster as it is now."""
        lines = [*self._lines, {"kind": "", "what": "cluster", "cluster": cluster}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.jsonl.zst").write_bytes(
            zstandard.ZstdCompressor(level=19).compress(text.encode())
        )

    def _note(self, kind: ObjectKind, what: str, **more: str) -> None:
        self._lines.append({"kind": kind.name, "what": what, **more})


class Held:
    """Says what was said before, each kind in its order; then it is silent.

    Attributes:
        cluster: As it was at the end.
        unsaid: How many lines are left.
    """

    def __init__(self, path: Path) -> None:
        """Read a file."""
        text = zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode()
        *lines, last = map(json.loads, text.splitlines())
        self.cluster = last["cluster"]
        self._said: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        for line in lines:
            self._said[line["kind"]].append(line)

    @property
    def unsaid(self) -> int:
        """Return how many lines nobody has heard yet."""
        return sum(map(len, self._said.values()))

    async def page(self, kind: ObjectKind, after: str) -> bytes:
        """Say a page again; the same has to be asked."""
        line = self._said[kind.name].popleft()
        assert line["what"] == "list", f"{kind.name}: asked for a list, expected {line['what']}"
        _raise(line)
        assert line["after"] == after
        return line["text"].encode()

    async def watch(self, kind: ObjectKind, version: str) -> AsyncIterator[bytes]:
        """Say the lines of a watch again; where there are no more it is silent for ever."""
        said = self._said[kind.name]
        if said:
            line = said.popleft()
            assert (line["what"], line.get("version")) == ("watch", version)
        while said:
            line = said.popleft()
            if line["what"] == "end":
                _raise(line)
                return
            yield line["text"].encode()
        await asyncio.Event().wait()


def _told(trouble: Gone | Unavailable) -> dict[str, str]:
    return {"trouble": type(trouble).__name__, "reason": trouble.reason}


def _raise(line: dict[str, Any]) -> None:
    if "trouble" in line:
        raise {"Gone": Gone, "Unavailable": Unavailable}[line["trouble"]](line["reason"])

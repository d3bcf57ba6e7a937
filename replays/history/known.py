"""Whether a log ever held something of a name: a slip of the pen is refused, not answered with nothing."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from evsched.core.engine import Engine
from evsched.core.recorded import apply_recorded
from replays.history.expressions import THINGS

if TYPE_CHECKING:
    from collections.abc import Collection

    from replays.history.rebuild import History


class NeverThere(Exception):
    """The log never held this; the attributes ``kind`` and ``name`` say what."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{kind} {name}: never was in this log")


async def must_have_been(history: History, subjects: Collection[tuple[str, str]]) -> None:
    """Read the log until each of these was there once.

    Args:
        history: The log.
        subjects: What kind of thing (a key of `THINGS`), and its name.

    Raises:
        NeverThere: One of them never was.
    """
    missing = dict.fromkeys(subjects)
    engine = Engine()
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            for event in step.events:
                apply_recorded(engine, (event,), step.time, step.head.position)
                for kind, name in tuple(missing):
                    if name in THINGS[kind](engine.state):
                        del missing[kind, name]
            if not missing:
                return
    for kind, name in missing:
        raise NeverThere(kind, name)

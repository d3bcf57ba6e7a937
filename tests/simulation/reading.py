"""A process that keeps a read model of the log, as `evsched project run` does: killed and cut off, it goes on from its file."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from random import Random
from typing import NamedTuple

from events.errors import StreamError
from projections.following import Follower
from projections.read_model import ReadModel
from tests.service.virtual import until
from tests.simulation.broker import Broker, Line, SimulatedLog
from tests.simulation.checkers.found import Found
from tests.simulation.loop import Host, spawn

AGAIN_S = 0.2
SOON_S = 10.0
SUBJECTS = {"asks": "ask", "allocations": "allocation", "nodes": "node"}
"""Tables that are compared, and what each row is about."""
SETTINGS = ("journal_mode = MEMORY", "synchronous = OFF")
"""Of SQLite: no power is lost here, and what a killed process had not committed is rolled back."""


class Row(NamedTuple):
    """A row of a read model: what it says holds from one event up to before another."""

    table: str
    subject: str
    from_seq: int
    to_seq: int


class Reading:
    """See the top of this module.

    Attributes:
        path: The file.
        kills: How often it was killed.
    """

    def __init__(self, broker: Broker, folder: Path, seed: int) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / "model.db"
        self.dice = Random(f"read model {seed}")
        self.kills = 0
        self._broker, self._line = broker, Line(self.dice)
        self._model: ReadModel | None = None
        self._gone: list[tuple[Host, asyncio.Task[None]]] = []
        self._start()

    def _start(self) -> None:
        self._host = Host()
        self._task = spawn(self._host, self._run())

    async def _run(self) -> None:
        log = SimulatedLog(self._broker, self._line)
        while True:
            try:
                if await log.end():
                    await self._follow(log)
            except StreamError:
                pass
            await asyncio.sleep(AGAIN_S)

    async def _follow(self, log: SimulatedLog) -> None:
        log_id = json.loads(self._broker.log[0])["log_id"]
        self._model = model = ReadModel(self.path, log_id, SETTINGS)
        try:
            follower = Follower(model, log)
            reader = await follower.reader()
            await follower.catch_up(reader)
            await follower.keep_up(reader)
        finally:
            model.close()

    def turn(self) -> None:
        """Let something happen to it, or nothing."""
        match self.dice.randrange(8):
            case 0:
                self.kill()
                self._start()
            case 1:
                self._line.cut = True
            case 2 | 3:
                self._line.heal()

    def kill(self) -> None:
        """End the process where it is; what it had not committed never happened."""
        self.kills += 1
        self._host.frozen = True
        self._gone.append((self._host, self._task))
        if self._model is not None:
            # Not its own `close`, which would seal the file.
            self._model._connection.close()
            self._model._whole = False
            self._model = None

    def heal(self) -> None:
        """Mend its line."""
        self._line.heal()

    async def rows(self, seq: int) -> tuple[Row, ...]:
        """Return what the file says, once that is all that happened up to an event.

        Raises:
            Found: It never does.
        """
        try:
            await until(
                lambda: self._model is not None and self._model.committed.next_seq > seq, SOON_S
            )
        except TimeoutError as error:
            raise Found("models", f"the read model never gets to event {seq}") from error
        connection = sqlite3.connect(self.path)
        try:
            return tuple(
                Row(table, *found)
                for table, column in SUBJECTS.items()
                for found in connection.execute(
                    f"SELECT {column}, from_seq, to_seq FROM {table} ORDER BY id"
                )
            )
        finally:
            connection.close()

    async def bury(self) -> None:
        """End it, and clean up after those that were killed."""
        self.kill()
        for host, task in self._gone:
            task.cancel()
            host.thaw()
            # A killed one that goes on finds its file closed; nobody is to hear of that.
            await asyncio.gather(task, return_exceptions=True)
        self._gone.clear()

"""What another scheduler did, as a log of observations.

What was asked for, what ran where and until when become the inputs of a log, each in a step at its
own time. None of these steps decides: the log says what happened. So every question of the past can
be asked of it, and a comparison decides on it what evsched would have done.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from events import vocabulary as v
from evsched.core.engine import Engine
from replays.history.sealing import Sealer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.streams.protocols import Record

SOURCE = "/evsched/import"


class Observed(NamedTuple):
    """An input, and when the other scheduler took it in, milliseconds."""

    time: int
    input: v.AnyInput


class ObservedPast(NamedTuple):
    """What was read of another scheduler.

    Attributes:
        inputs: In any order; those of one time are taken in the order in which they are here.
        remarks: What could not be taken over, a sentence each.
    """

    inputs: list[Observed]
    remarks: list[str]


class ImportedLog:
    """Makes the records of a log from observations.

    Attributes:
        refused: The reasons of inputs that evsched refuses; they are in the log as well.
        steps: How many there are.
    """

    def __init__(self, log_id: str, leader: str) -> None:
        """Begin a log with this id, led by ``leader``."""
        self._sealer = Sealer(log_id)
        self._engine = Engine()
        self._leader = leader
        self.refused: list[str] = []
        self.steps = 0

    def records(self, inputs: Iterable[Observed]) -> Iterator[Record]:
        """Yield the records of a log that holds these inputs, by their times."""
        ordered = sorted(inputs, key=lambda one: one.time)
        if not ordered:
            return
        began = ordered[0].time
        yield from self._sealer.seal(began, self._engine.lead(began, 1, self._leader))
        position = 0
        for time, group in groupby(ordered, key=lambda one: one.time):
            proposals = [
                v.Proposal(input=one.input, position=position + number, source=SOURCE)
                for number, one in enumerate(group)
            ]
            position += len(proposals)
            events = self._engine.step(time, proposals, decide=False)
            self.refused += [one.reason for one in events if isinstance(one, v.InputRejected)]
            self.steps += 1
            yield from self._sealer.seal(time, events, decided=False, inbox_next=position)

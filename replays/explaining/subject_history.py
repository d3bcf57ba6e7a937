"""The history of one ask or allocation: what a log says of it up to a moment, and which decisions evicted others meanwhile.

The events that speak of a subject are few, and the index names the stretches of the log in which
they lie. Two things need more: what is said of an application while the ask waits in it, which is
looked up once it is known, and the last decisions that spared an allocation while it ran, which are
looked up from the moment backwards.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import aclosing
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.snapshots.names import DECIDED, names_of
from replays.explaining.mentions import Mention, mention, waits_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from events.chain import RecordedStep
    from replays.history.finding import Finder
    from replays.history.moments import Moment

DECISIONS_SHOWN = 3
"""How many decisions that spared an allocation are decided again."""


class SubjectHistory:
    """What steps say of a subject.

    Attributes:
        mentions: The events that have to do with it, in order.
        spared_in: The seqs of the last decisions that evicted others while it ran; they are looked
            for only where it runs at the moment.
    """

    def __init__(self, subject: str, until: Moment) -> None:
        """Begin with nothing; ``until`` is absolute: what happens after it does not belong here."""
        self._subject = subject
        self._until = until
        self._application = ""
        self._moves: list[int] = []
        self._ran: list[bool] = [False]
        self.mentions: list[Mention] = []
        self.spared_in: list[int] = []

    async def read(
        self, finder: Finder, progress: Callable[[RecordedStep], None] | None = None
    ) -> None:
        """Read what belongs to the subject, up to the moment."""
        lives = await self._read_covered(finder)
        late: list[int] = []
        if not finder.reaches(self._until):
            async with aclosing(finder.rest()) as steps:  # type: ignore[type-var]
                async for step, names in steps:
                    if DECIDED in names:
                        late = [*late, *self._spared(step)][-DECISIONS_SHOWN:]
                    if not self._take(step, names):
                        break
                    if progress is not None:
                        progress(step)
        if self._ran[-1]:
            early = await self._look_back(finder, lives, DECISIONS_SHOWN - len(late))
            self.spared_in = [*early, *late][-DECISIONS_SHOWN:]

    async def _read_covered(self, finder: Finder) -> list[tuple[int, int]]:
        """Read the stretches that speak of the subject; return those between which it ran, ends included."""
        if not finder.covered.stretches:
            return []
        last = finder.last(self._until)
        due = [(stretch, self._subject) for stretch in finder.stretches(self._subject)]
        looked_up: set[str] = set()
        lives: list[tuple[int, int]] = []
        begun: int | None = None
        while due and due[0][0] <= last:
            stretch, names = due[0][0], set()
            while due and due[0][0] == stretch:
                names.add(heappop(due)[1])
            # Of an application only what is said while the ask waits in it belongs here.
            if not names & {self._subject, self._application}:
                continue
            moves = len(self._moves)
            async with aclosing(finder.steps(stretch)) as steps:  # type: ignore[type-var]
                async for step in steps:
                    if not self._take(step):
                        break
            if begun is None and len(self._moves) > moves:
                begun = stretch
            if begun is not None and not self._ran[-1]:
                lives.append((begun, stretch))
                begun = None
            application = self._application
            if application and application not in looked_up:
                looked_up.add(application)
                for later in finder.stretches(application):
                    if later > stretch:
                        heappush(due, (later, application))
        return lives if begun is None else [*lives, (begun, last)]

    async def _look_back(
        self, finder: Finder, lives: Sequence[tuple[int, int]], most: int
    ) -> list[int]:
        """Return the last decisions, so many at ``most``, among those that are covered."""
        found: list[int] = []
        wanted = finder.stretches(DECIDED) if lives and most > 0 else []
        for stretch in reversed(wanted):
            if not any(first <= stretch <= last for first, last in lives):
                continue
            here: list[int] = []
            async with aclosing(finder.steps(stretch)) as steps:  # type: ignore[type-var]
                async for step in steps:
                    here += self._spared(step)
            found = [*here, *found][-most:]
            if len(found) == most:
                break
        return found

    # --------------------------------------------------------------------------------------- a step

    def _take(self, step: RecordedStep, known: set[str] | None = None) -> bool:
        """Take a step; return whether later ones may belong to the moment, too.

        Args:
            step: The next one of those that are taken.
            known: The names in all of its events; None: look at each event.
        """
        if self._is_late(step):
            return False
        until = self._until.seq
        concerns = known is None or self._subject in known or self._application in known
        for event in step.events if concerns else ():
            if until is not None and event.seq > until:
                return False
            names = names_of(event)
            if self._subject in names or (self._application and self._application in names):
                self._event(event, step.time)
        return until is None or step.head.next_seq <= until

    def _is_late(self, step: RecordedStep) -> bool:
        time = self._until.time
        return time is not None and step.time > time

    def _event(self, event: v.AnyEvent, time: int) -> None:
        """Take an event that speaks of the subject, or of its application."""
        subject = self._subject
        self._application = waits_in(subject, event, self._application)
        one = mention(subject, event, time, self._application)
        if one is not None:
            self.mentions.append(one)
        match event:
            case v.AllocationBound(ask=name) | v.BindingObserved(ask=name):
                runs = True
            case v.AllocationRestored(allocation=name):
                runs = True
            case v.AllocationReleased(allocation=name):
                runs = False
            case _:
                return
        if name == subject:
            self._moves.append(event.seq)
            self._ran.append(runs)

    def _spared(self, step: RecordedStep) -> list[int]:
        """Return the decisions of a step that evict others, where the subject ran before it."""
        until = self._until.seq
        if not step.events or self._is_late(step):
            return []
        if not self._ran[bisect_left(self._moves, step.events[0].seq)]:
            return []
        return [
            event.seq
            for event in step.events
            if isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided)
            and self._subject not in names_of(event)
            and (until is None or event.seq <= until)
        ]

"""Limits on users, groups and the number of applications (``limits`` and ``maxapplications`` of queues.yaml).

An ask that a limit holds back is passed over and waits; it is not refused, and nobody is preempted
for it. What counts, at every queue on the path of its leaf:

- A user has the limit that names them, else the one for ``*``, which is one for each user by
  itself. What all applications of the user run in the queue and below counts against it.
- An application counts for one group at most: that of the first limit in the file that names one of
  its groups, else ``*``, which is one pool of everybody else. What all applications of that group
  run there counts together.
- A type that a limit does not name is not limited by it.
- An application runs while it has an allocation. One that does not run yet may start only when the
  queue's ``maxapplications``, and those of the limits for its user and group, leave room for one
  more.

Asks in flight count as if they ran, so that several of them together cannot pass a limit that each
of them keeps.

Usage by user and group is an index: built from the state when a limit is first looked at, told by
the reducer from then on, and never there while nothing is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from events.configuration import LimitSpec
from evsched.core.queues import Application, Queue
from evsched.core.resources import Pairs
from evsched.core.state import State
from evsched.core.yunikorn import index as yunikorn_index

EVERYBODY = "*"

Key = tuple[str, str, str]
"""Path of a queue; ``user``, ``group`` or ``queue``; a name, empty for the queue itself."""


class LimitMatch(NamedTuple):
    """A limit that holds for an application in a queue, or the queue's own ``maxapplications``.

    Attributes:
        key: What counts against it.
        whom: In words: ``user ann``; empty for the queue itself.
        resources: Most that may be used, by resource name.
        applications: Most that may run; 0: not limited.
    """

    key: Key
    whom: str
    resources: dict[str, int]
    applications: int


class Blocked(NamedTuple):
    """The limit that holds an ask back, and by how much.

    Attributes:
        queue: Path of the queue that has the limit.
        whom: As of `LimitMatch`.
        resource: What would be too much; empty: it is the number of applications that run.
        used: Used or promised already; or applications that run or start.
        requested: By the ask; 1 application.
        limit: The most that is allowed.
    """

    queue: str
    whom: str
    resource: str
    used: int
    requested: int
    limit: int


class LimitCount:
    """What counts against one limit.

    Attributes:
        used: By what runs, by type index; a type that is not there is not used.
        promised: To asks in flight, likewise.
        running: Applications with an allocation.
        in_flight: Asks in flight.
        starting: Applications without an allocation that have an ask in flight.
    """

    __slots__ = ("in_flight", "promised", "running", "starting", "used")

    def __init__(self) -> None:
        """Start with nothing."""
        self.used: dict[int, int] = {}
        self.promised: dict[int, int] = {}
        self.running = self.in_flight = self.starting = 0


NOTHING = LimitCount()
"""What counts against a limit that nothing counts against; never written to."""


class LimitIndex:
    """What runs and what is promised, by what it counts against (protocol `evsched.core.yunikorn.index.Limits`)."""

    def __init__(self, state: State) -> None:
        """Count everything that runs, and every ask in flight."""
        self._counted: dict[Key, LimitCount] = {}
        self._in_flight: dict[str, int] = {}
        self._matches: dict[tuple[str, str, tuple[str, ...]], tuple[LimitMatch, ...]] = {}
        for application in state.applications.values():
            if application.allocations:
                usage = [
                    (index, amount) for index, amount in enumerate(application.usage) if amount
                ]
                for held, counted in self._counting(application):
                    _add(held, counted.used, usage, 1)
                    counted.running += 1
        for name in state.preemptions:
            ask = state.asks[name]
            pairs = state.types.shapes[ask.shape].pairs
            self.claimed(state.applications[ask.application], pairs, 1)

    def used(self, application: Application, pairs: Pairs) -> None:
        """An application got an allocation, which it already has."""
        self._run(application, pairs, 1, 1 if len(application.allocations) == 1 else 0)

    def released(self, application: Application, pairs: Pairs) -> None:
        """An application lost an allocation, which it no longer has."""
        self._run(application, pairs, -1, 0 if application.allocations else -1)

    def claimed(self, application: Application, pairs: Pairs, sign: int) -> None:
        """An ask of an application is in flight now (``sign`` 1), or no longer (-1)."""
        before = self._in_flight.get(application.id, 0)
        after = before + sign
        if after:
            self._in_flight[application.id] = after
        else:
            del self._in_flight[application.id]
        starts = 0 if application.allocations else bool(after) - bool(before)
        for held, counted in self._counting(application):
            _add(held, counted.promised, pairs, sign)
            counted.in_flight += sign
            counted.starting += starts
            self._forget(held, counted)

    def counted(self, key: Key) -> LimitCount:
        """Return what counts against a limit; only to be read."""
        return self._counted.get(key, NOTHING)

    def starting_beside(self, counted: LimitCount, application: Application) -> int:
        """Return how many other applications than this one start with asks in flight."""
        own = not application.allocations and application.id in self._in_flight
        return counted.starting - own

    def matches(self, queue: Queue, application: Application) -> tuple[LimitMatch, ...]:
        """Return what limits an application in one queue, looked up once for each user and their groups.

        The configuration replaces the index, so what was looked up stays true.
        """
        key = (queue.path, application.user, application.groups)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = tuple(held_in(queue, application))
        return found

    def _run(self, application: Application, pairs: Pairs, sign: int, started: int) -> None:
        """Count an allocation that begins or ends; ``started``: and with it the application."""
        starts = started if application.id in self._in_flight else 0
        for held, counted in self._counting(application):
            _add(held, counted.used, pairs, sign)
            counted.running += started
            counted.starting -= starts
            self._forget(held, counted)

    def _forget(self, held: LimitMatch, counted: LimitCount) -> None:
        """Forget what counts against a limit when nothing does any more: users come and go."""
        if not counted.running and not counted.in_flight:
            del self._counted[held.key]

    def _counting(self, application: Application) -> Iterator[tuple[LimitMatch, LimitCount]]:
        """Yield each limit that an application counts against, with what counts against it."""
        for queue in application.leaf.lineage:
            if queue.limits or queue.max_applications:
                for held in self.matches(queue, application):
                    yield held, self._counted.setdefault(held.key, LimitCount())


def held_in(queue: Queue, application: Application) -> Iterator[LimitMatch]:
    """Yield what limits an application in one queue: its user, its group, the queue itself."""
    if queue.limits:
        yield from _of(queue, "user", [application.user])
        yield from _of(queue, "group", application.groups)
    if queue.max_applications:
        yield LimitMatch((queue.path, "queue", ""), "", {}, queue.max_applications)


def _of(queue: Queue, kind: str, names: Iterable[str]) -> Iterator[LimitMatch]:
    """Yield the limit for a user or for one of their groups: the first in the file that names them, else that for everybody."""
    wildcard: LimitSpec | None = None
    known = tuple(names)
    for limit in queue.limits:
        listed = limit.users if kind == "user" else limit.groups
        for name in listed:
            if name == EVERYBODY:
                wildcard = wildcard or limit
            elif name in known:
                yield LimitMatch(
                    (queue.path, kind, name),
                    f"{kind} {name}",
                    limit.max_resources or {},
                    limit.max_applications,
                )
                return
    if wildcard is not None:
        # Every user has the limit for everybody by themselves; groups that no limit names share
        # one.
        name = known[0] if kind == "user" else EVERYBODY
        yield LimitMatch(
            (queue.path, kind, name),
            f"{kind} {name}",
            wildcard.max_resources or {},
            wildcard.max_applications,
        )


def index_of(state: State) -> LimitIndex:
    """Return the index of a state, built when it is not there."""
    known = yunikorn_index.index_of(state)
    index = known.limits
    if not isinstance(index, LimitIndex):
        index = known.limits = LimitIndex(state)
    return index


def blocks(state: State, application: Application, pairs: Pairs) -> Blocked | None:
    """Return a limit that keeps an application from using these amounts now, None when none does.

    Arguments as of `blocking`.
    """
    return next(blocking(state, application, pairs), None)


def blocking(state: State, application: Application, pairs: Pairs) -> Iterator[Blocked]:
    """Yield every limit that keeps an application from using these amounts now, the leaf's first.

    Not to be asked for an ask in flight: its own promise would count against it.

    Args:
        state: Only read.
        application: Whose ask it is.
        pairs: What it asks for.
    """
    names = state.types.names
    for queue in application.leaf.lineage:
        if not queue.limits and not queue.max_applications:
            continue
        index = index_of(state)
        for held in index.matches(queue, application):
            counted = index.counted(held.key)
            for kind, amount in pairs:
                most = held.resources.get(names[kind])
                if most is not None:
                    there = counted.used.get(kind, 0) + counted.promised.get(kind, 0)
                    if there + amount > most:
                        yield Blocked(queue.path, held.whom, names[kind], there, amount, most)
            if held.applications and not application.allocations:
                running = counted.running + index.starting_beside(counted, application)
                if running >= held.applications:
                    yield Blocked(queue.path, held.whom, "", running, 1, held.applications)


def _add(
    held: LimitMatch, amounts: dict[int, int], pairs: Iterable[tuple[int, int]], sign: int
) -> None:
    """Add to what counts against a limit, or take off; one of applications alone counts no amounts."""
    if held.resources:
        for index, amount in pairs:
            amounts[index] = amounts.get(index, 0) + sign * amount

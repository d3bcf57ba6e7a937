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


class LimitIndex:
    """What runs, by what it counts against (protocol `evsched.core.yunikorn.index.Limits`)."""

    def __init__(self, state: State) -> None:
        """Count everything that runs."""
        self._used: dict[Key, dict[int, int]] = {}
        self._running: dict[Key, int] = {}
        self._matches: dict[tuple[str, str, tuple[str, ...]], tuple[LimitMatch, ...]] = {}
        for application in state.applications.values():
            if application.allocations:
                self._count(
                    application,
                    [(index, amount) for index, amount in enumerate(application.usage) if amount],
                    1,
                    1,
                )

    def used(self, application: Application, pairs: Pairs) -> None:
        """An application got an allocation, which it already has."""
        self._count(application, pairs, 1, 1 if len(application.allocations) == 1 else 0)

    def released(self, application: Application, pairs: Pairs) -> None:
        """An application lost an allocation, which it no longer has."""
        self._count(application, pairs, -1, 0 if application.allocations else -1)

    def usage(self, key: Key) -> dict[int, int]:
        """Return what is used, by type index; a type that is not there is not used."""
        return self._used.get(key, {})

    def running(self, key: Key) -> int:
        """Return how many applications run."""
        return self._running.get(key, 0)

    def matches(self, queue: Queue, application: Application) -> tuple[LimitMatch, ...]:
        """Return what limits an application in one queue, looked up once for each user and their groups.

        The configuration replaces the index, so what was looked up stays true.
        """
        key = (queue.path, application.user, application.groups)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = tuple(held_in(queue, application))
        return found

    def _count(
        self, application: Application, pairs: Iterable[tuple[int, int]], sign: int, started: int
    ) -> None:
        for queue in application.leaf.lineage:
            limited = queue.limits or queue.max_applications
            for held in self.matches(queue, application) if limited else ():
                if held.resources:
                    used = self._used.setdefault(held.key, {})
                    for index, amount in pairs:
                        used[index] = used.get(index, 0) + sign * amount
                if started:
                    running = self._running.get(held.key, 0) + started
                    self._running[held.key] = running
                    if not running:
                        # The last one that counted here is gone, and its usage with it.
                        del self._running[held.key]
                        self._used.pop(held.key, None)


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
            usage = index.usage(held.key)
            promised, starting = _in_flight(state, queue, held, application)
            for kind, amount in pairs:
                most = held.resources.get(names[kind])
                there = usage.get(kind, 0) + promised.get(kind, 0)
                if most is not None and there + amount > most:
                    yield Blocked(queue.path, held.whom, names[kind], there, amount, most)
            running = index.running(held.key) + starting
            if held.applications and not application.allocations and running >= held.applications:
                yield Blocked(queue.path, held.whom, "", running, 1, held.applications)


def _in_flight(
    state: State, queue: Queue, held: LimitMatch, application: Application
) -> tuple[dict[int, int], int]:
    """Return what asks in flight will use of a limit, by type, and how many other applications start with them."""
    promised: dict[int, int] = {}
    starting: dict[str, None] = {}
    for name in state.preemptions:
        ask = state.asks[name]
        other = state.applications[ask.application]
        if queue.contains(other.leaf) and any(
            one.key == held.key for one in index_of(state).matches(queue, other)
        ):
            for index, amount in state.types.shapes[ask.shape].pairs:
                promised[index] = promised.get(index, 0) + amount
            if not other.allocations and other is not application:
                starting[other.id] = None
    return promised, len(starting)

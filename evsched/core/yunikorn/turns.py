"""Whose turn it is to preempt: the order of `evsched.core.yunikorn.ordering`, over the asks that may.

Asks of one application with the same amounts, priority and nodes stand in one line (`EqualAsks`); where
the first of them fails, all do. At each parent the first child by its key is next, in the leaf the
first line by application and ask. A queue counts with the highest priority that is left in it, so
its key is computed anew when one of its asks had its turn. Usage does not change while victims are
being chosen, so nothing else does either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from msgspec import UnsetType

from evsched.core.queues import Application, Queue
from evsched.core.state import State
from evsched.core.workloads import Ask
from evsched.core.yunikorn.guarantee import is_impatient
from evsched.core.yunikorn.ordering import (
    AskKey,
    Denominators,
    QueueKey,
    application_key,
    ask_key,
    denominators,
    is_new,
    queue_key,
    shown_priority,
)

AskKind = tuple[int, int, str | None, str | None, bool, bytes | UnsetType]
"""What makes asks of a leaf equal: amounts, priority, required node, reserved node, whether they have waited long enough, pod."""


class EqualAsks:
    """Equal asks of one application.

    Attributes:
        kind: Equal for lines that fail together, of whatever application.
    """

    __slots__ = ("asks", "key", "kind", "place", "priority", "turn")

    def __init__(self, asks: list[Ask], place: QueueTurns, kind: AskKind) -> None:
        """Stand the asks in line.

        Args:
            asks: At least one, in the order of the log; sorted by creation here.
            place: The leaf they wait in.
            kind: What makes them equal.
        """
        # They come in the order of the log, and are equal in priority, so that their age is the
        # rest of `ask_key`.
        asks.sort(key=attrgetter("created"))
        self.asks = asks
        self.turn = 0
        first = asks[0]
        self.kind = (first.queue, kind)
        self.priority = first.priority
        self.place = place
        self.key: tuple[tuple[int, int, int, int, str], AskKey] = ((0, 0, 0, 0, ""), (0, 0, 0, ""))

    @property
    def first(self) -> Ask:
        """Whose turn it is in this line."""
        return self.asks[self.turn]

    def in_order(self) -> Iterator[Ask]:
        """Yield those that had no turn yet, the first first."""
        return islice(self.asks, self.turn, None)


class QueueTurns:
    """A queue in which an ask may preempt, there or below.

    Attributes:
        queue: The queue itself.
        parent: None for root.
        children: Those in which something is left, in no order.
        lines: Of a leaf: the last one is next.
        priorities: Of a leaf: how many lines it has by priority.
        highest: The highest priority that is left here.
        key: By which its parent compares it with the other children; the smallest is next.
        compared_with: The denominators of shares here, which do not change during a cycle.
    """

    __slots__ = (
        "children",
        "compared_with",
        "highest",
        "key",
        "lines",
        "parent",
        "priorities",
        "queue",
    )

    def __init__(
        self, queue: Queue, parent: QueueTurns | None, compared_with: Denominators
    ) -> None:
        """Make an empty place."""
        self.queue = queue
        self.parent = parent
        self.compared_with = compared_with
        self.children: list[QueueTurns] = []
        self.lines: list[EqualAsks] = []
        self.priorities: dict[int, int] = {}
        self.highest = 0
        self.key: QueueKey = (0, 0, (), "")

    def settle(self) -> None:
        """Compute the highest priority that is left here, and the key.

        It needs the children's, so it is called from the leaves upwards, and only while something
        is left.
        """
        if self.queue.leaf:
            self.highest = max(self.priorities)
        else:
            self.highest = max(
                shown_priority(child.queue, child.highest) for child in self.children
            )
        if self.parent is not None:
            self.key = queue_key(self.queue, self.highest, self.compared_with)


class PreemptionQueue:
    """The lines of all asks that may preempt now, in the order of scheduling.

    `next` is cheap: one comparison of children for each level of the tree. A turn changes one
    line, and the keys of the queues above it.
    """

    def __init__(self, state: State, asks: Iterable[Ask]) -> None:
        """Stand these asks in line.

        Asks that differ in what they have reserved, or in whether they still wait for room that is
        leaving, are not equal: a plan for the one says nothing about the other.
        """
        self._state = state
        self._places: dict[str, QueueTurns] = {}
        self._root: QueueTurns | None = None
        lines: dict[tuple[str, AskKind], list[Ask]] = {}
        reservations = state.reservations
        for ask in asks:
            kind = (
                ask.shape,
                ask.priority,
                ask.required_node,
                reservations.get(ask.id),
                is_impatient(state, ask),
                ask.pod,
            )
            lines.setdefault((ask.application, kind), []).append(ask)
        for (name, kind), equal in lines.items():
            self._stand(
                EqualAsks(equal, self._place(state.applications[name].leaf), kind),
                state.applications[name],
            )
        for place in self._places.values():
            place.lines.sort(key=attrgetter("key"), reverse=True)
            if place.queue.settings.sort_policy == "stateaware":
                _one_new(place, state)
            for line in place.lines:
                place.priorities[line.priority] = place.priorities.get(line.priority, 0) + 1
        for place in sorted(self._places.values(), key=lambda place: -place.queue.depth):
            if place.lines or place.children:
                place.settle()
            else:
                self._leave(place)

    def _place(self, queue: Queue) -> QueueTurns:
        """Return the place of a queue; those above it come into being with it."""
        place = self._places.get(queue.path)
        if place is None:
            parent = self._place(queue.parent) if queue.parent is not None else None
            place = self._places[queue.path] = QueueTurns(
                queue, parent, denominators(queue, self._state.total)
            )
            if parent is None:
                self._root = place
            else:
                parent.children.append(place)
        return place

    @staticmethod
    def _stand(line: EqualAsks, application: Application) -> None:
        """Give a line its key: the one of its application, then of its first ask."""
        place = line.place
        line.key = (
            application_key(application, line.priority, place.compared_with),
            ask_key(line.first),
        )
        place.lines.append(line)

    def next(self) -> EqualAsks | None:
        """Return the line whose first ask has its turn; None when nobody is left."""
        place = self._root
        if place is None or not (place.lines or place.children):
            return None
        while place.children:
            place = min(place.children, key=attrgetter("key"))
        return place.lines[-1]

    def done(self, line: EqualAsks) -> None:
        """Note that the first ask of the line that is next had its turn.

        The next of the line may be younger than the first of another one, so the lines are put in
        order again where they are not any more.
        """
        line.turn += 1
        if line.turn < len(line.asks):
            line.key = (line.key[0], ask_key(line.first))
            place = line.place
            if len(place.lines) > 1 and line.key > place.lines[-2].key:
                place.lines.sort(key=attrgetter("key"), reverse=True)
        else:
            self.drop(line)

    def drop(self, line: EqualAsks) -> None:
        """Take a whole line out, the one that is next.

        It failed, or has no ask left. A leaf that lost its last line of a priority may show
        another one to its parent, so the keys up to root are computed anew, and places without
        anything left go.
        """
        place: QueueTurns | None = line.place
        assert place is not None
        assert place.lines[-1] is line
        place.lines.pop()
        left = place.priorities[line.priority] - 1
        if left:
            place.priorities[line.priority] = left
        else:
            del place.priorities[line.priority]
        while place is not None:
            if place.lines or place.children:
                place.settle()
            else:
                self._leave(place)
            place = place.parent

    @staticmethod
    def _leave(place: QueueTurns) -> None:
        """Take a place out of its parent; root stays."""
        if place.parent is not None and place in place.parent.children:
            place.parent.children.remove(place)


def _one_new(place: QueueTurns, state: State) -> None:
    """Leave only the first of the applications that have yet to start.

    A ``stateaware`` leaf starts one new application at a time (seed priority_scheduling,
    "StateAware"). Others that are new neither run nor preempt until that one has an allocation.
    """
    chosen: str | None = None
    kept = []
    for line in reversed(place.lines):
        application = state.applications[line.first.application]
        if is_new(application):
            chosen = application.id if chosen is None else chosen
            if application.id != chosen:
                continue
        kept.append(line)
    place.lines = kept[::-1]

"""Which nodes may take a pod, all nodes at once: a mark for each row of the columns of nodes.

It says what `evsched.core.node_rules` says of one node and one pod. Each label that a pod asks for
has a column: the number of the node's value, 0 where there is none. So a condition is a table over
the few values that there are, read in the order of the column. The taints of a node are one value
as well. Columns follow the nodes; the marks that follow from them are kept until a node gets other
labels or taints.

Nothing is built before a pod asks, so clusters without pods' facts pay for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from events.pods import NodeSelectorTerm, PodFacts, Toleration
from evsched.core.node_rules import compares, untolerated
from evsched.core.pods import facts
from evsched.core.yunikorn.repulsion import Repulsion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from events.pods import LabelRequirement, Taint
    from evsched.core.state import State
    from evsched.core.workloads import Node

    Bools = NDArray[np.bool_]

V = TypeVar("V")

MOST_KEPT = 512
"""Of so many kinds of pods the marks are kept."""

MOST_PODS = 16_384
"""Of so many different pods it is kept what kind they are."""

SPARE_VALUES = 1024
"""A column may know so many values beside one a node; then it is built anew without old ones."""


class ValueColumn(Generic[V]):
    """A value of each node, by row, as a number; 0 stands for no value.

    Attributes:
        numbers: By value, from 1 on.
        rows: By row.
    """

    __slots__ = ("numbers", "rows")

    def __init__(self, size: int) -> None:
        """Begin with rows without a value."""
        self.numbers: dict[V, int] = {}
        self.rows = np.zeros(size, np.int64)

    def write(self, row: int, value: V | None) -> None:
        """Give a row a value; None takes it away."""
        if value is None:
            self.rows[row] = 0
        else:
            self.rows[row] = self.numbers.setdefault(value, len(self.numbers) + 1)

    def among(self, values: Sequence[V]) -> Bools:
        """Return the rows with one of these values."""
        table = np.zeros(len(self.numbers) + 1, np.bool_)
        table[[self.numbers[value] for value in values if value in self.numbers]] = True
        found: Bools = table[self.rows]
        return found

    def where(self, fulfils: Callable[[V], bool], *, missing: bool) -> Bools:
        """Return the rows whose value fulfils something; ``missing`` is said of those without one."""
        table = np.array([missing, *map(fulfils, self.numbers)], np.bool_)
        found: Bools = table[self.rows]
        return found


NodeKey = tuple[tuple[tuple[str, str], ...], tuple[NodeSelectorTerm, ...], tuple[Toleration, ...]]


class PodKind(NamedTuple):
    """What a pod says of nodes, and of its neighbours.

    Attributes:
        key: Equal for pods that may run on the same nodes, neighbours aside.
        pod: All of it.
    """

    key: NodeKey
    pod: PodFacts


class NodeMarks:
    """The marks over the rows of one table of nodes."""

    def __init__(self, state: State, rows: dict[str, int]) -> None:
        """Take the row of each node by name; the mapping is the one that the table keeps."""
        self._state = state
        self._rows = rows
        self._size = 0
        self._labels: dict[str, ValueColumn[str]] = {}
        self._taints: ValueColumn[tuple[Taint, ...]] = ValueColumn(0)
        self._node_names: ValueColumn[str] = ValueColumn(0)
        # Labels and taints by row, as the columns have them; None before a pod asked.
        self._seen: list[tuple[dict[str, str], tuple[Taint, ...]] | None] | None = None
        self._kinds: dict[bytes, PodKind] = {}
        self._marks: dict[NodeKey, Bools] = {}
        self._usual: dict[NodeKey, bool] = {}
        self.repulsion = Repulsion(state, rows)

    # -------------------------------------------------------------------------------------- changes

    def write(self, row: int, node: Node) -> bool:
        """Follow a node that came or changed; tell whether its labels or taints are other ones now."""
        if self._seen is None:
            return False
        if row >= self._size:  # the table was widened: everything is read again when a pod asks
            return True
        seen = self._seen[row]
        if seen is not None and seen[0] is node.labels and seen[1] is node.taints:
            return False
        self._write(row, node)
        self._marks.clear()
        self._usual.clear()
        return True

    def clear(self, row: int) -> None:
        """Follow a node that left; what ran there is counted anew when a pod asks."""
        if self._seen is not None and row < self._size:
            self._seen[row] = None
        self.repulsion.forget()

    def forget(self) -> None:
        """Drop all columns; they are built again from the state when a pod asks."""
        self._seen = None
        self._labels.clear()
        self._marks.clear()
        self._usual.clear()
        self.repulsion.forget()

    def _write(self, row: int, node: Node) -> None:
        """Write one row of all columns."""
        assert self._seen is not None
        self._seen[row] = (node.labels, node.taints)
        self._taints.write(row, node.taints or None)
        self._node_names.write(row, node.name)
        for key, column in tuple(self._labels.items()):
            column.write(row, node.labels.get(key))
            if len(column.numbers) > self._size + SPARE_VALUES:
                del self._labels[key]

    # --------------------------------------------------------------------------------------- answers

    def takes(self, pod: bytes, size: int) -> Bools:
        """Return the rows whose node may take a pod, room and ``schedulable`` aside.

        Rows without a node may be marked: the table has no room there.

        Args:
            pod: As the state keeps it.
            size: Of the table's columns.
        """
        kind = self._kind(pod, size)
        marks = self._static(kind)
        repelled = self.repulsion.rows(pod, kind.pod, size)
        return marks if repelled is None else marks & ~repelled

    def is_usual(self, pod: bytes, size: int) -> bool:
        """Tell whether a pod may run just where one may that says nothing."""
        kind = self._kind(pod, size)
        usual = self._usual.get(kind.key)
        if usual is None:
            nothing = self._static(_kind_of(PodFacts()))
            usual = self._usual[kind.key] = bool(np.array_equal(self._static(kind), nothing))
        return usual and self.repulsion.rows(pod, kind.pod, size) is None

    # --------------------------------------------------------------------------------------- columns

    def _kind(self, pod: bytes, size: int) -> PodKind:
        """Return what a pod says, and see that there are columns to compare it with."""
        if self._seen is None or size != self._size:  # the table was widened
            self.forget()
            self._build(size)
        kind = self._kinds.get(pod)
        if kind is None:
            if len(self._kinds) >= MOST_PODS:
                self._kinds.clear()
            kind = self._kinds[pod] = _kind_of(facts(pod))
        return kind

    def _build(self, size: int) -> None:
        """Read all nodes once."""
        self._size = size
        self._seen = [None] * size
        self._taints, self._node_names = ValueColumn(size), ValueColumn(size)
        for name, row in self._rows.items():
            self._write(row, self._state.nodes[name])

    def _label_column(self, key: str) -> ValueColumn[str]:
        """Return the column of a label, built when a pod first asks for it."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = ValueColumn(self._size)
            nodes = self._state.nodes
            for name, row in self._rows.items():
                column.write(row, nodes[name].labels.get(key))
        return column

    def _static(self, kind: PodKind) -> Bools:
        """Return the rows that the conditions on nodes leave, kept until a node changes."""
        marks = self._marks.get(kind.key)
        if marks is None:
            if len(self._marks) >= MOST_KEPT:
                self._marks.clear()
            marks = self._marks[kind.key] = self._work_out(kind.pod)
        return marks

    def _work_out(self, pod: PodFacts) -> Bools:
        """Return the rows that tolerations, selector and affinity leave."""
        marks = self._taints.where(
            lambda taints: untolerated(pod.tolerations, taints) is None, missing=True
        )
        for key, value in sorted(pod.node_selector.items()):
            marks &= self._label_column(key).among((value,))
        if pod.node_affinity:
            any_of = np.zeros(self._size, np.bool_)
            for term in pod.node_affinity:
                any_of |= self._matching(term)
            marks &= any_of
        return marks

    def _matching(self, term: NodeSelectorTerm) -> Bools:
        """Return the rows on which all conditions of a term hold; none where it has none."""
        marks = np.full(self._size, bool(term.expressions or term.fields))
        for one in term.expressions:
            marks &= _holding(self._label_column(one.key), one)
        for one in term.fields:
            marks &= _holding(self._node_names, one)
        return marks


def _kind_of(pod: PodFacts) -> PodKind:
    """Return what a pod says of nodes as a key."""
    selector = tuple(sorted(pod.node_selector.items()))
    return PodKind((selector, pod.node_affinity, pod.tolerations), pod)


def _holding(column: ValueColumn[str], one: LabelRequirement) -> Bools:
    """Return the rows on whose value a condition holds."""
    match one.operator:
        case "In":
            return column.among(one.values)
        case "NotIn":
            return ~column.among(one.values)
        case "Exists":
            return column.where(lambda _: True, missing=False)
        case "DoesNotExist":
            return column.where(lambda _: False, missing=True)
        case _:
            return column.where(lambda value: compares(one, value), missing=False)

"""Anti-affinity over the hostname: the nodes that a pod keeps away from because of who runs there.

Two pods repel each other when a term of either selects the other (`node_rules.repel`). Of the
labels only those count that some term names, so pods are put together by these, by namespace and by
terms: a *profile*. Profiles that run have a column each, which nodes they run on. What a pod keeps
away from is the union of the columns of the profiles that repel it, so a look costs as much as
there are of those, not as many as there are pods or nodes.

Without any term nothing is kept but counts. A term that names a label for the first time has
everything counted anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from events.pods import AntiAffinityTerm, PodFacts
from evsched.core.node_rules import repel
from evsched.core.pods import facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evsched.core.state import State
    from evsched.core.workloads import Allocation

    Bools = NDArray[np.bool_]

MOST_PROFILES = 16_384
"""With more of them, those that nothing has any more are forgotten."""

MOST_PODS = 65_536
"""Of so many different pods the profile is kept."""

ProfileKey = tuple[str, tuple[tuple[str, str], ...], tuple[AntiAffinityTerm, ...]]


class Profile:
    """Pods that repel the same others, and are repelled by the same.

    Attributes:
        pod: One of them, with the labels alone that some term names.
        rows: How many of them run, by row of their node.
        column: The same as marks; None until somebody asks.
        foes: The profiles that repel this one, of the first ``compared``.
    """

    __slots__ = ("column", "compared", "foes", "pod", "rows")

    def __init__(self, pod: PodFacts) -> None:
        """Make a profile of which nothing runs."""
        self.pod = pod
        self.rows: dict[int, int] = {}
        self.column: Bools | None = None
        self.foes: list[Profile] = []
        self.compared = 0


class Repulsion:
    """Who runs where, as far as anti-affinity is concerned."""

    def __init__(self, state: State, rows: dict[str, int]) -> None:
        """Take the row of each node by name; the mapping is the one that the table keeps."""
        self._state = state
        self._rows = rows
        self._built = False
        self._keys: dict[str, None] = {}
        self._profiles: dict[ProfileKey, Profile] = {}
        self._in_order: list[Profile] = []
        self._of_pod: dict[bytes, Profile] = {}
        self._where: dict[str, tuple[Profile, int]] = {}
        self._terms = False

    def forget(self) -> None:
        """Forget who runs where; it is counted anew when a pod asks."""
        self._built = False

    def rows(self, pod: bytes, said: PodFacts, size: int) -> Bools | None:
        """Return the rows of the nodes that a pod keeps away from; None when there are none.

        Args:
            pod: As the state keeps it.
            said: The same, decoded.
            size: Of the table's columns.
        """
        if self._learn(said) or not self._built or len(self._in_order) > MOST_PROFILES:
            self._build()
        profile = self._of_pod.get(pod) or self._profile(pod, said)
        if not self._terms:
            return None
        found: Bools | None = None
        for foe in self._foes(profile):
            if foe.rows:
                column = _column(foe, size)
                found = column.copy() if found is None else found | column
        return found

    def started(self, allocation: Allocation) -> None:
        """An allocation runs now; nothing is kept of one without a pod, or without a node."""
        if not self._built or allocation.node is None or allocation.pod is UNSET:
            return
        profile = self._of_pod.get(allocation.pod)
        if profile is None:
            said = facts(allocation.pod)
            if self._learn(said):
                self._built = False
                return
            profile = self._profile(allocation.pod, said)
        row = self._rows.get(allocation.node)
        if row is not None:
            self._count(allocation.id, profile, row)

    def ended(self, allocation: Allocation) -> None:
        """An allocation is gone."""
        where = self._where.pop(allocation.id, None) if self._built else None
        if where is not None:
            profile, row = where
            profile.rows[row] -= 1
            if not profile.rows[row]:
                del profile.rows[row]
                if profile.column is not None:
                    profile.column[row] = False

    def _learn(self, said: PodFacts) -> bool:
        """Note the labels that a pod's terms name; tell whether one of them is new."""
        known = len(self._keys)
        for term in said.anti_affinity:
            for one in term.selector:
                self._keys[one.key] = None
        return len(self._keys) > known

    def _build(self) -> None:
        """Count who runs where: once through all allocations, after all that their terms name is known."""
        self._built, self._terms = True, False
        self._profiles.clear()
        self._in_order.clear()
        self._of_pod.clear()
        self._where.clear()
        running = [
            (one.id, one.pod, one.node)
            for one in self._state.allocations.values()
            if one.pod is not UNSET and one.node in self._rows
        ]
        said = {pod: facts(pod) for _, pod, _ in running}
        for each in said.values():
            self._learn(each)
        for name, pod, node in running:
            assert node is not None
            profile = self._of_pod.get(pod) or self._profile(pod, said[pod])
            self._count(name, profile, self._rows[node])

    def _count(self, name: str, profile: Profile, row: int) -> None:
        """Count one more of a profile on a node."""
        self._where[name] = (profile, row)
        profile.rows[row] = profile.rows.get(row, 0) + 1
        if profile.column is not None:
            profile.column[row] = True

    def _profile(self, pod: bytes, said: PodFacts) -> Profile:
        """Return the profile of a pod that is not known yet."""
        if len(self._of_pod) >= MOST_PODS:
            self._of_pod.clear()
        labels = {key: said.labels[key] for key in self._keys if key in said.labels}
        key = (said.namespace, tuple(labels.items()), said.anti_affinity)
        profile = self._profiles.get(key)
        if profile is None:
            like = PodFacts(
                namespace=said.namespace, labels=labels, anti_affinity=said.anti_affinity
            )
            profile = self._profiles[key] = Profile(like)
            self._in_order.append(profile)
            self._terms = self._terms or bool(said.anti_affinity)
        self._of_pod[pod] = profile
        return profile

    def _foes(self, profile: Profile) -> list[Profile]:
        """Return the profiles that repel one, itself included where it repels its like."""
        for other in self._in_order[profile.compared :]:
            terms = profile.pod.anti_affinity or other.pod.anti_affinity
            if terms and repel(profile.pod, other.pod):
                profile.foes.append(other)
        profile.compared = len(self._in_order)
        return profile.foes


def _column(profile: Profile, size: int) -> Bools:
    """Return the nodes on which a profile runs as marks, made when they are first asked for."""
    if profile.column is None:
        profile.column = np.zeros(size, np.bool_)
        profile.column[list(profile.rows)] = True
    return profile.column

"""A second implementation of the victim searches, straight from the rules and as simple as can be: the oracle of the fast ones.

Usage is recounted from the workloads whenever it is asked for, candidates are sorted as a whole,
shares are fractions. It reads the configuration and a list of workloads, and nothing of the state
or the indices that the real searches use.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from events.configuration import ClusterQueueSpec, KueueSpec

Key = tuple[str, str]
"""(flavor, resource)."""


@dataclass(frozen=True)
class Work:
    """A workload that runs, or the ask."""

    id: str
    queue: str
    usage: tuple[tuple[Key, int], ...]
    priority: int
    created: int
    admitted: int = 0
    evicted: bool = False


class Tree:
    """The quota tree of a configuration, with workloads in it."""

    def __init__(self, spec: KueueSpec, running: list[Work]) -> None:
        """Take a configuration and what runs."""
        self.spec = spec
        self.running = list(running)
        self.queues = {one.name: one for one in spec.cluster_queues}
        self.cohorts = {one.name: one for one in spec.cohorts}
        self.extra: list[Work] = []

    # nodes are ("q", name) or ("c", name)

    def parent(self, node):
        """Return the cohort above a node, None at the top."""
        kind, name = node
        above = (
            self.queues[name].cohort
            if kind == "q"
            else (self.cohorts[name].parent if name in self.cohorts else None)
        )
        return None if above is None else ("c", above)

    def path(self, node):
        """Return a node and all above it, upwards."""
        found = [node]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return found

    def children(self, node):
        """Return the nodes right below a cohort: queues, then cohorts, in the order of the configuration."""
        queues = [("q", one.name) for one in self.spec.cluster_queues if one.cohort == node[1]]
        names = dict.fromkeys(
            [*self.cohorts, *(one.cohort for one in self.spec.cluster_queues if one.cohort)]
        )
        return queues, [("c", name) for name in names if self.parent(("c", name)) == node]

    def quota(self, node, key):
        """Return the own quota of a node, or None."""
        owner = self.queues.get(node[1]) if node[0] == "q" else self.cohorts.get(node[1])
        for group in owner.groups if owner is not None else ():
            for flavor in group.flavors:
                if flavor.flavor == key[0] and key[1] in flavor.quotas:
                    return flavor.quotas[key[1]]
        return None

    def subtree(self, node, key):
        """Return what a node and those below share."""
        own = self.quota(node, key)
        total = own.nominal if own else 0
        if node[0] == "c":
            for kind in self.children(node):
                total += sum(self.subtree(child, key) - self.local(child, key) for child in kind)
        return total

    def local(self, node, key):
        """Return what a node keeps for itself."""
        own = self.quota(node, key)
        if own is None or own.lending_limit is None:
            return 0
        return max(0, self.subtree(node, key) - own.lending_limit)

    def usage(self, node, key):
        """Return what counts as used at a node."""
        if node[0] == "q":
            return sum(
                dict(one.usage).get(key, 0)
                for one in (*self.running, *self.extra)
                if one.queue == node[1]
            )
        return sum(
            max(0, self.usage(child, key) - self.local(child, key))
            for kind in self.children(node)
            for child in kind
        )

    def available(self, node, key):
        """Return what a node may still use, unclipped."""
        above = self.parent(node)
        if above is None:
            return self.subtree(node, key) - self.usage(node, key)
        rest, local, used = self.available(above, key), self.local(node, key), self.usage(node, key)
        own = self.quota(node, key)
        if own is not None and own.borrowing_limit is not None:
            rest = min(
                rest, self.subtree(node, key) - local - max(0, used - local) + own.borrowing_limit
            )
        return max(0, local - used) + rest

    def potential(self, node, key):
        """Return what a node could use if nothing were used."""
        above = self.parent(node)
        if above is None:
            return self.subtree(node, key)
        found = self.local(node, key) + self.potential(above, key)
        own = self.quota(node, key)
        if own is not None and own.borrowing_limit is not None:
            found = min(found, self.subtree(node, key) + own.borrowing_limit)
        return found

    def above(self, node, keys):
        """Tell whether a node uses more than its quota of any of these."""
        return any(self.usage(node, key) > self.subtree(node, key) for key in keys)

    def keys(self, node):
        """Return every (flavor, resource) of the tree that a node is in."""
        top = self.path(node)[-1]
        found, stack = {}, [top]
        while stack:
            one = stack.pop()
            owner = self.queues.get(one[1]) if one[0] == "q" else self.cohorts.get(one[1])
            for group in owner.groups if owner is not None else ():
                for flavor in group.flavors:
                    found.update(dict.fromkeys((flavor.flavor, name) for name in flavor.quotas))
            if one[0] == "c":
                stack += [child for kind in self.children(one) for child in kind]
        return list(found)

    def share(self, node):
        """Return (borrows, weightless, value)."""
        above = self.parent(node)
        if above is None:
            return False, False, Fraction(0)
        over, lendable = {}, {}
        for key in self.keys(node):
            excess = self.usage(node, key) - self.subtree(node, key)
            over[key[1]] = over.get(key[1], 0) + max(0, excess)
            lendable[key[1]] = lendable.get(key[1], 0) + self.potential(above, key)
        ratios = [
            Fraction(amount, lendable[name])
            for name, amount in over.items()
            if amount and lendable[name] > 0
        ]
        ratio = max(ratios, default=Fraction(0))
        owner = self.queues[node[1]] if node[0] == "q" else self.cohorts.get(node[1])
        weight = owner.weight_nano if owner is not None else 10**9
        if not weight and ratio:
            return True, True, ratio
        return any(over.values()), False, ratio * 10**9 / weight if weight else Fraction(0)


def fits(tree: Tree, ask: Work, *, borrowing: bool = True) -> bool:
    """Tell whether the ask fits now."""
    node = ("q", ask.queue)
    for key, amount in ask.usage:
        own = tree.quota(node, key)
        if not borrowing and tree.usage(node, key) + amount > (own.nominal if own else 0):
            return False
        if amount > max(0, tree.available(node, key)):
            return False
    return True


def order(ask: Work):
    """Return the sort key of candidates."""
    return lambda one: (
        not one.evicted,
        one.queue == ask.queue,
        one.priority,
        -one.admitted,
        one.id,
    )


def own_allowed(spec: ClusterQueueSpec, ask: Work, one: Work) -> bool:
    """Tell whether ``withinClusterQueue`` gives up a workload."""
    if spec.within_cluster_queue == "Never":
        return False
    newer = (
        spec.within_cluster_queue == "LowerOrNewerEqualPriority"
        and one.priority == ask.priority
        and ask.created < one.created
    )
    return one.priority < ask.priority or newer


def reclaim_allowed(spec: ClusterQueueSpec, ask: Work, one: Work) -> bool:
    """Tell whether ``reclaimWithinCohort`` gives up a workload."""
    return spec.reclaim_within_cohort == "Any" or (
        spec.reclaim_within_cohort == "LowerPriority" and one.priority < ask.priority
    )


def uses(one: Work, contested: list[Key]) -> bool:
    """Tell whether a workload uses something contested."""
    return any(key in contested for key, _ in one.usage)


def minimise(tree: Tree, ask: Work, targets: list, *, borrowing: bool) -> list:
    """Put back what is not needed."""
    for place in range(len(targets) - 2, -1, -1):
        tree.running.append(targets[place][0])
        if fits(tree, ask, borrowing=borrowing):
            targets[place] = targets[-1]
            targets.pop()
        else:
            tree.running.remove(targets[place][0])
    return targets


def classic(
    spec: KueueSpec, running: list[Work], ask: Work, contested: list[Key]
) -> list[tuple[str, str]]:
    """Return (id, reason) of the victims of the classic search."""
    tree = Tree(spec, running)
    me, policy = ("q", ask.queue), tree.queues[ask.queue]
    kinds: dict[str, list] = {"H": [], "P": [], "S": []}
    for one in running:
        if one.queue == ask.queue and uses(one, contested) and own_allowed(policy, ask, one):
            kinds["S"].append((one, "InClusterQueue", False, None))
    rest = dict(ask.usage)
    advantage = all(
        tree.usage(me, key) + amount <= tree.subtree(me, key) for key, amount in rest.items()
    )
    rest = {
        key: max(0, amount - max(0, tree.local(me, key) - tree.usage(me, key)))
        for key, amount in rest.items()
    }
    done = me
    for level in tree.path(me)[1:]:
        for name in below(tree, level, done, contested):
            for one in running:
                if one.queue == name and uses(one, contested) and reclaim_allowed(policy, ask, one):
                    kinds["H" if advantage else "P"].append(
                        (one, *variant(policy, ask, one, advantage=advantage), level)
                    )
        advantage = advantage or all(
            tree.usage(level, key) + amount <= tree.subtree(level, key)
            for key, amount in rest.items()
        )
        rest = {
            key: max(0, amount - max(0, tree.local(level, key) - tree.usage(level, key)))
            for key, amount in rest.items()
        }
        done = level
    rank = order(ask)
    for found in kinds.values():
        found.sort(key=lambda one: rank(one[0]))
    walk = [
        one
        for evicted in (True, False)
        for kind in "HPS"
        for one in kinds[kind]
        if one[0].evicted is evicted
    ]
    for borrowing in _attempts(tree, policy, kinds, contested):
        targets = []
        for candidate in walk:
            if not usable(tree, ask, candidate, contested, borrowing=borrowing):
                continue
            tree.running.remove(candidate[0])
            targets.append(candidate)
            if fits(tree, ask, borrowing=borrowing):
                return [
                    (one[0].id, one[1]) for one in minimise(tree, ask, targets, borrowing=borrowing)
                ]
        tree.running += [one[0] for one in targets]
    return []


def _attempts(
    tree: Tree, policy: ClusterQueueSpec, kinds: dict[str, list], contested: list[Key]
) -> list[bool]:
    me, forbidden = ("q", policy.name), policy.borrow_within_cohort == "Never"
    below_nominal = all(tree.usage(me, key) < tree.subtree(me, key) for key in contested)
    if not (kinds["H"] or kinds["P"]) or (forbidden and not below_nominal):
        return [True]
    return [False, True] if forbidden and not kinds["H"] else [True, False]


def below(tree: Tree, level, done, contested: list[Key]) -> list[str]:
    """Return the queues below a cohort, without a branch and without subtrees that are within nominal."""
    queues, cohorts = tree.children(level)
    found = [node[1] for node in queues if node != done and tree.above(node, contested)]
    for cohort in cohorts:
        if cohort != done and tree.above(cohort, contested):
            found += below(tree, cohort, done, contested)
    return found


def variant(policy: ClusterQueueSpec, ask: Work, one: Work, *, advantage: bool) -> tuple[str, bool]:
    """Return the reason of a candidate of another queue, and whether it is usable without borrowing only."""
    if advantage:
        return "InCohortReclamation", False
    threshold = policy.max_priority_threshold
    if (
        policy.borrow_within_cohort == "Never"
        or one.priority >= ask.priority
        or (threshold is not None and one.priority > threshold)
    ):
        return "InCohortReclamation", True
    return "InCohortReclaimWhileBorrowing", False


def usable(tree: Tree, ask: Work, candidate, contested: list[Key], *, borrowing: bool) -> bool:
    """Tell whether a candidate may be taken at its turn."""
    one, _, without_only, level = candidate
    if one.queue == ask.queue:
        return True
    if borrowing and without_only:
        return False
    for node in tree.path(("q", one.queue)):
        if node == level:
            return True
        if not tree.above(node, contested):
            return False
    return True


def fair(
    spec: KueueSpec, running: list[Work], ask: Work, contested: list[Key]
) -> list[tuple[str, str]]:
    """Return (id, reason) of the victims of the fair search."""
    tree = Tree(spec, running)
    me, policy = ("q", ask.queue), tree.queues[ask.queue]
    top = tree.path(me)[-1]
    rank = order(ask)
    candidates = []
    for one in sorted(running, key=rank):
        node = ("q", one.queue)
        if not uses(one, contested):
            continue
        if one.queue == ask.queue:
            if own_allowed(policy, ask, one):
                candidates.append(one)
        elif (
            tree.path(node)[-1] == top
            and tree.above(node, contested)
            and reclaim_allowed(policy, ask, one)
        ):
            candidates.append(one)
    tree.extra = [ask]
    targets: list = []
    strategies = spec.fair_strategies or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    found, retry = _first(tree, ask, candidates, targets, (contested, strategies[0]))
    if not found and len(strategies) > 1:
        found = _second(tree, ask, retry, targets)
    tree.extra = []
    if not found:
        return []
    return [(one.id, reason) for one, reason in minimise(tree, ask, targets, borrowing=True)]


def _take(tree: Tree, ask: Work, one: Work, reason: str, targets: list) -> bool:
    tree.running.remove(one)
    targets.append((one, reason))
    tree.extra = []
    found = fits(tree, ask)
    tree.extra = [ask]
    return found


def _first(
    tree: Tree, ask: Work, candidates: list[Work], targets: list, rule
) -> tuple[bool, list[Work]]:
    contested, strategy = rule
    me, left, retry = ("q", ask.queue), list(candidates), []
    dropped: set = set()
    while (name := _next(tree, ask, left, dropped)) is not None:
        mine = [one for one in left if one.queue == name]
        if name == ask.queue:
            left.remove(mine[0])
            if _take(tree, ask, mine[0], "InClusterQueue", targets):
                return True, retry
            continue
        if tree.spec.preempt_within_nominal and not tree.above(me, contested):
            left.remove(mine[0])
            if _take(tree, ask, mine[0], "InCohortReclamation", targets):
                return True, retry
            continue
        ours, theirs = sides(tree, ask, name)
        share, before = tree.share(ours)[1:], tree.share(theirs)[1:]
        for one in mine:
            left.remove(one)
            tree.running.remove(one)
            after = tree.share(theirs)[1:]
            tree.running.append(one)
            if share <= after if strategy == "LessThanOrEqualToFinalShare" else share < before:
                if _take(tree, ask, one, "InCohortFairSharing", targets):
                    return True, retry
                break
            retry.append(one)
    return False, retry


def _second(tree: Tree, ask: Work, retry: list[Work], targets: list) -> bool:
    left, dropped = list(retry), set()
    while (name := _next(tree, ask, left, dropped)) is not None:
        one = next(one for one in left if one.queue == name)
        ours, theirs = sides(tree, ask, name)
        taken = tree.share(ours)[1:] < tree.share(theirs)[1:]
        if taken and _take(tree, ask, one, "InCohortFairSharing", targets):
            return True
        dropped.add(("q", name))
    return False


def sides(tree: Tree, ask: Work, name: str):
    """Return the nodes just below the lowest common cohort."""
    mine, theirs = tree.path(("q", ask.queue)), tree.path(("q", name))
    common = next(node for node in mine if node in theirs)
    return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]


def _next(tree: Tree, ask: Work, left: list[Work], dropped: set) -> str | None:
    path = tree.path(("q", ask.queue))
    top = path[-1]
    if len(path) == 1:
        return ask.queue if any(one.queue == ask.queue for one in left) else None
    while top not in dropped:
        level = top
        while True:
            queues, cohorts = tree.children(level)
            alive = []
            for node in queues:
                mine = [one for one in left if one.queue == node[1]]
                if (
                    node in dropped
                    or not mine
                    or (not tree.share(node)[0] and node[1] != ask.queue)
                ):
                    dropped.add(node)
                else:
                    alive.append((node, mine[0]))
            better = cmp_to_key(lambda a, b: _compare(tree, ask, a, b))
            queue = min(alive, key=better)[0] if alive else None
            cohort = None
            for node in cohorts:
                if node in dropped or (not tree.share(node)[0] and node not in path):
                    dropped.add(node)
                elif cohort is None or tree.share(node)[1:] >= tree.share(cohort)[1:]:
                    cohort = node
            if cohort is not None and (
                queue is None or tree.share(cohort)[1:] >= tree.share(queue)[1:]
            ):
                level = cohort
                continue
            if queue is not None:
                return queue[1]
            dropped.add(level)
            break
    return None


def _compare(tree: Tree, ask: Work, a, b) -> int:
    first, second = tree.share(a[0])[1:], tree.share(b[0])[1:]
    if first != second:
        return -1 if first > second else 1
    rank = order(ask)
    return -1 if rank(a[1]) < rank(b[1]) else 1

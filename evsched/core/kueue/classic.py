"""Classic preemption (seed kueue_preemption "Classic Preemption"; reference section 4).

Candidates come in three kinds. *Advantaged* ones use quota of a subtree that could hold the ask
within its own quota; they are always usable. *Plain* ones, of other queues as well, are usable
without borrowing, or while borrowing when ``borrowWithinCohort`` allows it for their priority.
*Own* ones are of the ask's queue. One attempt walks them in a fixed order, with borrowing allowed
or not, and takes each whose queue, and every cohort between it and the meeting point, is still
above its quota of something contested.

Nothing is sorted: a heap holds the first remaining candidate of every group of every borrowing
queue. Usage only falls during an attempt, so a queue that is found within its quota stays so, and a
priority that is spared is followed by none that is not: in both cases all the rest of a group is
dropped at once.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evsched.core.kueue.messages import IN_CLUSTER_QUEUE, RECLAMATION, WHILE_BORROWING
from evsched.core.kueue.wanted import MANY, PreemptionRequest, Target, minimise, put_back

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evsched.core.kueue.candidates import Entry, WorkloadGroup
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay


class Source(NamedTuple):
    """One group of another queue's workloads.

    Attributes:
        group: The workloads, all of which use the same types.
        queue: Their ClusterQueue.
        meeting: The lowest cohort that contains that queue and the ask's.
    """

    group: WorkloadGroup
    queue: Quota
    meeting: Quota


class Sources(NamedTuple):
    """All groups that hold a candidate."""

    advantaged: list[Source]
    plain: list[Source]
    own: list[WorkloadGroup]


def search(trial: QuotaOverlay, wanted: PreemptionRequest) -> list[Target]:
    """Return the victims that make room for a request, in the order in which they were chosen.

    Two attempts at most, the one with borrowing allowed and the other without; the first that
    succeeds counts. Its victims are minimised in the same terms. The trial is left as it was.

    Returns:
        At least one victim; empty when none help.
    """
    if not wanted.can_ever_fit():
        return []
    sources = collect(trial, wanted)
    for borrowing in attempts(trial, wanted, sources):
        targets = _attempt(trial, wanted, sources, borrowing=borrowing)
        if targets:
            targets = minimise(trial, wanted, targets, borrowing=borrowing)
            put_back(trial, targets)
            return targets
    return []


def attempts(trial: QuotaOverlay, wanted: PreemptionRequest, sources: Sources) -> tuple[bool, ...]:
    """Return whether borrowing is allowed in the first and in the second attempt.

    With victims in the ask's own queue alone one attempt is enough: nothing is reclaimed, so
    borrowing does no harm. Where the queue may not borrow while it preempts, a request above its
    nominal quota can only be met by advantaged candidates, and without them by staying within that
    quota first.
    """
    if not sources.advantaged and not sources.plain:
        return (True,)
    if wanted.spec.borrow_within_cohort == "Never":
        if _at_nominal(trial, wanted):
            return (True,)
        if not sources.advantaged:
            return (False, True)
    return (True, False)


# --------------------------------------------------------------------------------------- candidates


def collect(trial: QuotaOverlay, wanted: PreemptionRequest) -> Sources:
    """Find the groups that hold at least one usable candidate.

    A group is the workloads of one queue that use the same types, so that it is in or out as a
    whole. Only queues above their nominal quota are walked, from each meeting point down, and
    nothing below a cohort that is within its quota.
    """
    own = [
        group
        for group in wanted.groups(trial, wanted.queue)
        if any(True for part in (group.leaving, group.staying) for _ in wanted.own_entries(part))
    ]
    sources = Sources([], [], own)
    if not wanted.reclaims:
        return sources
    advantage = _advantages(trial, wanted)
    plain_helps = _plain_helps(trial, wanted, own)
    if not plain_helps and not any(advantage.values()):
        return sources
    for meeting, branch in pairwise(wanted.queue.down):
        if plain_helps or advantage[meeting]:
            kind = sources.advantaged if advantage[meeting] else sources.plain
            kind += _sources(trial, wanted, meeting, branch)
    return sources


def _sources(
    trial: QuotaOverlay, wanted: PreemptionRequest, meeting: Quota, branch: Quota
) -> Iterator[Source]:
    """Yield the groups below a meeting point that hold a candidate, but for the branch of the ask.

    A cohort within its quota spares all in it: what is in it has only what belongs to it.
    """
    limit, contested = wanted.reclaim_limit, wanted.contested
    levels = [meeting]
    for level in levels:
        for child in trial.borrowers(level, contested):
            if child is branch:
                continue
            if child.spec is None:
                if trial.above(child, contested):
                    levels.append(child)
                continue
            for group in wanted.groups(trial, child):
                if _first(group.staying, limit) or _first(group.leaving, limit):
                    yield Source(group, child, meeting)


def _plain_helps(trial: QuotaOverlay, wanted: PreemptionRequest, own: list[WorkloadGroup]) -> bool:
    """Tell whether a plain candidate can be of any use; most asks of a full tree are answered by this alone.

    Under ``borrowWithinCohort: Never`` plain candidates are usable without borrowing alone. The
    request then has to fit into the queue's nominal quota, and only workloads of the queue itself
    make room there.
    """
    if wanted.spec.borrow_within_cohort != "Never":
        return True
    if _at_nominal(trial, wanted):
        return False
    usage, nominal = trial.usage(wanted.queue), wanted.queue.nominal
    return bool(own) or all(
        usage.get(index, 0) + amount <= nominal.get(index, 0) for index, amount in wanted.request
    )


def _at_nominal(trial: QuotaOverlay, wanted: PreemptionRequest) -> bool:
    """Tell whether the ask's queue uses all of its nominal quota of something contested."""
    usage, nominal = trial.usage(wanted.queue), wanted.queue.nominal
    return any(usage.get(index, 0) >= nominal.get(index, 0) for index in wanted.contested)


def _first(entries: list[Entry], limit: int | None) -> bool:
    """Tell whether a sorted list holds a candidate below the limit: its first one tells."""
    return bool(entries) and (limit is None or entries[0][0] < limit)


def _advantages(trial: QuotaOverlay, wanted: PreemptionRequest) -> dict[Quota, bool]:
    """Return, for every cohort above the ask's queue, whether candidates there are advantaged.

    They are when some node below that cohort, on the ask's side, could hold what is left of the
    request within its own quota: the others only have what they borrowed from there.
    """
    found: dict[Quota, bool] = {}
    rest, advantage = dict(wanted.request), False
    for node in reversed(wanted.queue.down):
        if node is not wanted.queue:
            found[node] = advantage
        advantage = advantage or not any(
            trial.borrowing_with(node, index, amount) for index, amount in rest.items()
        )
        for index, amount in rest.items():
            rest[index] = max(0, amount - trial.kept_free(node, index))
    return found


# ------------------------------------------------------------------------------------------ attempt


def _attempt(
    trial: QuotaOverlay, wanted: PreemptionRequest, sources: Sources, *, borrowing: bool
) -> list[Target]:
    """Take candidates until the request fits.

    After `MANY` of them in vain it is asked once whether all of them together would do, as a
    search that cannot succeed would otherwise empty the whole tree.

    Returns:
        The victims, gone from the trial; or nothing, with the trial as it was.
    """
    targets: list[Target] = []
    queue, request = wanted.queue, wanted.request
    for target in _walk(trial, wanted, sources, borrowing=borrowing):
        trial.remove(target.queue, target.pairs)
        targets.append(target)
        if trial.fits(queue, request, borrowing=borrowing):
            return targets
        if len(targets) == MANY and not _enough(
            trial, wanted, sources, targets, borrowing=borrowing
        ):
            break
    put_back(trial, targets)
    return []


def _walk(
    trial: QuotaOverlay, wanted: PreemptionRequest, sources: Sources, *, borrowing: bool
) -> Iterator[Target]:
    """Yield the candidates of an attempt in their order.

    Those on their way out come first, as they cost nothing more; within both halves advantaged
    ones, then plain ones, then the ask's own queue. Each must be gone from the trial before the
    next is asked for, because whether a queue is still above its quota depends on it.
    """
    plain = [] if borrowing and wanted.spec.borrow_within_cohort == "Never" else sources.plain
    limit = wanted.reclaim_limit
    plain_limit = (
        wanted.borrow_limit
        if borrowing and (limit is None or wanted.borrow_limit < limit)
        else limit
    )
    for leaving in (True, False):
        yield from _merge(trial, wanted, sources.advantaged, _Part(leaving, limit, advantaged=True))
        yield from _merge(trial, wanted, plain, _Part(leaving, plain_limit, advantaged=False))
        yield from _own(wanted, sources.own, leaving=leaving)


class _Part:
    """Which part of the groups is walked.

    Attributes:
        leaving: Those on their way out, or the others.
        limit: The priority from which on workloads are spared; None: none is.
        advantaged: Whether the groups are.
    """

    __slots__ = ("advantaged", "leaving", "limit")

    def __init__(self, leaving: bool, limit: int | None, *, advantaged: bool) -> None:
        self.leaving = leaving
        self.limit = limit
        self.advantaged = advantaged

    def entries(self, source: Source) -> list[Entry]:
        """Return the sorted list of a group that this part walks."""
        return source.group.leaving if self.leaving else source.group.staying


def _merge(
    trial: QuotaOverlay, wanted: PreemptionRequest, sources: list[Source], part: _Part
) -> Iterator[Target]:
    """Yield the candidates of other queues, smallest first.

    A queue is left once it is within its quotas: usage only falls during an attempt, so it stays
    so.
    """
    limit, contested = part.limit, wanted.contested
    heap = []
    for number, source in enumerate(sources):
        entries = part.entries(source)
        if _first(entries, limit):
            heap.append((entries[0], number, 0))
    heapify(heap)
    while heap:
        entry, number, place = heap[0]
        source = sources[number]
        if not _still_above(trial, source, contested):
            heappop(heap)
            continue
        yield wanted.target(entry, source.queue, _reason(wanted, entry, advantaged=part.advantaged))
        entries = part.entries(source)
        place += 1
        if place < len(entries) and (limit is None or entries[place][0] < limit):
            heapreplace(heap, (entries[place], number, place))
        else:
            heappop(heap)


def _own(
    wanted: PreemptionRequest, groups: list[WorkloadGroup], *, leaving: bool
) -> Iterator[Target]:
    """Yield the candidates of the ask's own queue, smallest first.

    The policy within the queue alone decides about them: whether the queue borrows plays no part.
    """
    if len(groups) == 1:
        merged = wanted.own_entries(groups[0].leaving if leaving else groups[0].staying)
    else:
        merged = iter(
            sorted(
                entry
                for group in groups
                for entry in wanted.own_entries(group.leaving if leaving else group.staying)
            )
        )
    for entry in merged:
        yield wanted.target(entry, wanted.queue, IN_CLUSTER_QUEUE)


def _still_above(trial: QuotaOverlay, source: Source, contested: tuple[int, ...]) -> bool:
    """Tell whether a queue and every cohort below the meeting point are above their quotas.

    It is asked for what is contested alone, and before each victim, as each lowers usage.
    """
    node: Quota | None = source.queue
    while node is not None and node is not source.meeting:
        if not trial.above(node, contested):
            return False
        node = node.parent
    return True


def _reason(wanted: PreemptionRequest, entry: Entry, *, advantaged: bool) -> str:
    """Return the reason that the victim's owner reads.

    It is reclamation, but where the policy allowed to borrow at the expense of lower priorities.
    """
    if advantaged or wanted.spec.borrow_within_cohort == "Never" or entry[0] >= wanted.borrow_limit:
        return RECLAMATION
    return WHILE_BORROWING


def _enough(
    trial: QuotaOverlay,
    wanted: PreemptionRequest,
    sources: Sources,
    targets: list[Target],
    *,
    borrowing: bool,
) -> bool:
    """Tell whether the request could fit once every queue gave all it can; False ends a search that cannot succeed.

    Each queue is emptied by itself, without looking at the cohorts between, so that at least as
    much goes as in any attempt: in order until it is within its quotas where it has one group,
    wholly where its groups would have to be merged first.
    """
    empty = trial.copy()
    put_back(empty, targets)
    contested, pairs_of = wanted.contested, wanted.candidates.pairs
    others = (*sources.advantaged, *sources.plain)
    several = Counter(source.queue for source in others)
    for source in others:
        merged = several[source.queue] > 1
        for entry in (*source.group.leaving, *source.group.staying):
            if not merged and not empty.above(source.queue, contested):
                break
            empty.remove(source.queue, pairs_of(entry[4]))
    for group in sources.own:
        for entry in (*group.leaving, *group.staying):
            empty.remove(wanted.queue, pairs_of(entry[4]))
    return empty.fits(wanted.queue, wanted.request, borrowing=borrowing)

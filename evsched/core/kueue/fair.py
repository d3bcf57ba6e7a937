"""Preemption under fair sharing (seed kueue_preemption "Fair Sharing"; reference section 5).

While the ask does not fit, the queue that has borrowed the largest share
(`evsched.core.kueue.contest`) is asked for a victim. It gives its next candidate when a strategy
holds between the two sides just below the lowest cohort that contains both queues. The usage of the
ask counts in its own queue all the while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.kueue import tracing
from evsched.core.kueue.contest import Contest, Cursor
from evsched.core.kueue.messages import FAIR_SHARING, IN_CLUSTER_QUEUE, RECLAMATION
from evsched.core.kueue.shares import order_of, share_of
from evsched.core.kueue.wanted import MANY, PreemptionRequest, Target, minimise, put_back

if TYPE_CHECKING:
    from evsched.core.kueue.candidates import Entry
    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.trial import QuotaOverlay

FINAL = "LessThanOrEqualToFinalShare"


def search(trial: QuotaOverlay, wanted: PreemptionRequest) -> list[Target]:
    """Return the victims that make room for a request, in the order in which they were chosen.

    The ask counts as admitted in its own queue meanwhile, as its share is compared with those of
    the others. The trial is left as it was.

    Returns:
        At least one victim; empty when none help.
    """
    if not wanted.can_ever_fit():
        return []
    cursors = collect(trial, wanted)
    if not cursors:
        return []
    trial.add(wanted.queue, wanted.request)
    run = _Run(trial, wanted)
    strategies = wanted.kueue.fair_strategies
    found = run.first(cursors, final=not strategies or strategies[0] == FINAL)
    if not found and len(strategies) != 1 and not run.hopeless:
        found = run.second()
    trial.remove(wanted.queue, wanted.request)
    targets = run.targets
    if found:
        targets = minimise(trial, wanted, targets, borrowing=True)
    put_back(trial, targets)
    return targets if found else []


def collect(trial: QuotaOverlay, wanted: PreemptionRequest) -> dict[Quota, Cursor]:
    """Return the candidates by queue: the ask's own, and those of queues of its tree that borrow.

    A queue within its nominal quota on all that is contested has only what belongs to it, whatever
    its share is. The lists of several groups are merged; that of one group is used as it is.
    """
    found: dict[Quota, Cursor] = {}
    own_staying: list[Entry] = []
    own_leaving: list[Entry] = []
    for group in wanted.groups(trial, wanted.queue):
        own_staying += wanted.own_entries(group.staying)
        own_leaving += wanted.own_entries(group.leaving)
    if own_staying or own_leaving:
        found[wanted.queue] = Cursor(sorted(own_leaving), sorted(own_staying), None)
    if not wanted.reclaims:
        return found
    limit = wanted.reclaim_limit
    for queue in trial.borrowers(wanted.queue.top, wanted.contested):
        if queue is wanted.queue:
            continue
        groups = list(wanted.groups(trial, queue))
        if len(groups) == 1:
            cursor = Cursor(groups[0].leaving, groups[0].staying, limit)
        else:
            cursor = Cursor(
                sorted(entry for group in groups for entry in group.leaving),
                sorted(entry for group in groups for entry in group.staying),
                limit,
            )
        if cursor.head is not None:
            found[queue] = cursor
    return found


class _Run:
    """One search under way.

    Attributes:
        targets: Chosen so far; their usage is gone from the trial.
        retry: By queue, its first candidate that the first strategy refused.
        hopeless: Taking everything would not be enough.
    """

    def __init__(self, trial: QuotaOverlay, wanted: PreemptionRequest) -> None:
        self.trial = trial
        self.wanted = wanted
        self.targets: list[Target] = []
        self.retry: dict[Quota, Cursor] = {}
        self.hopeless = False
        self._within_nominal = wanted.kueue.preempt_within_nominal
        self._side = dict(zip(wanted.queue.down, wanted.queue.down[1:], strict=False))

    def first(self, cursors: dict[Quota, Cursor], *, final: bool) -> bool:
        """Run the first strategy; return whether the ask fits now.

        Args:
            cursors: The candidates by queue; stepped through.
            final: ``LessThanOrEqualToFinalShare``: the ask's side may not end with a larger share
                than the victim's has then. Else ``LessThanInitialShare``: than it has now.

        In its own queue the ask takes by priority alone. What belongs to its queue by nominal
        quota it claims without comparing shares (``preemptWithinNominal``); rules 2 ask that once,
        at the start, as Kueue does.
        """
        contest = Contest(self.trial, self.wanted.queue, cursors)
        at_start = self._claims()
        while (queue := contest.next()) is not None:
            cursor = cursors[queue]
            if queue is self.wanted.queue:
                taken = self._take(contest, queue, cursor.pop(), IN_CLUSTER_QUEUE)
            elif at_start if self.wanted.rules.claim_at_start else self._claims():
                taken = self._take(contest, queue, cursor.pop(), RECLAMATION)
            else:
                taken = self._compare(contest, queue, cursor, final=final)
            if taken and self._fits():
                return True
            if taken and len(self.targets) == MANY and not self._enough(cursors):
                self.hopeless = True
                return False
        return False

    def _claims(self) -> bool:
        """Tell whether the ask's queue is within its nominal quota of all that is contested, the ask counted."""
        return self._within_nominal and not self.trial.above(
            self.wanted.queue, self.wanted.contested
        )

    def second(self) -> bool:
        """Run the second strategy over what the first refused: at most one victim a queue, judged by the shares before."""
        contest = Contest(self.trial, self.wanted.queue, self.retry)
        while (queue := contest.next()) is not None:
            entry = self.retry[queue].pop()
            ours, theirs = self._sides(queue)
            if order_of(contest.share(ours)) < order_of(contest.share(theirs)):
                self._take(contest, queue, entry, FAIR_SHARING)
                if self._fits():
                    return True
            contest.update(queue)
        return False

    def _take(self, contest: Contest, queue: Quota, entry: Entry, reason: str) -> bool:
        """Choose a victim: its usage goes from the trial, and the shares along its path are new."""
        target = self.wanted.target(entry, queue, reason)
        self.trial.remove(queue, target.pairs)
        self.targets.append(target)
        contest.used_less(queue)
        contest.update(queue)
        return True

    def _compare(self, contest: Contest, queue: Quota, cursor: Cursor, *, final: bool) -> bool:
        """Take the first candidate of a queue that the first strategy allows.

        Those before it are spared, and the first of them is left to the second strategy.
        Candidates of one shape change the shares alike, so each shape is judged once.
        """
        ours, theirs = self._sides(queue)
        share, before = order_of(contest.share(ours)), order_of(contest.share(theirs))
        judged: dict[int, bool] = {}
        while cursor.head is not None:
            entry = cursor.pop()
            if final:
                shape = entry[4].shape
                allowed = judged.get(shape)
                if allowed is None:
                    allowed = judged[shape] = share <= self._share_without(queue, theirs, entry)
            else:
                allowed = share < before
            if allowed:
                return self._take(contest, queue, entry, FAIR_SHARING)
            if self.wanted.tracer is not None:
                tracing.note_share(
                    self.trial, self.wanted, (ours, theirs, queue), entry, self.wanted.tracer
                )
            if queue not in self.retry:
                self.retry[queue] = Cursor(
                    *(([entry], []) if cursor.popped_leaving else ([], [entry])), None
                )
        contest.update(queue)
        return False

    def _share_without(self, queue: Quota, theirs: Quota, entry: Entry) -> int:
        """Return the share of the other side, once a candidate has gone as well."""
        pairs = self.wanted.candidates.pairs(entry[4])
        self.trial.remove(queue, pairs)
        share = order_of(share_of(theirs, self.trial.usage(theirs)))
        self.trial.add(queue, pairs)
        return share

    def _sides(self, queue: Quota) -> tuple[Quota, Quota]:
        """Return the nodes just below the lowest common cohort.

        The first is on the side of the ask, the second on the side of the queue: these two
        compete, and what is further down is their own matter.
        """
        side = self._side
        theirs = queue
        while theirs.parent is not None and theirs.parent not in side:
            theirs = theirs.parent
        assert theirs.parent is not None
        return side[theirs.parent], theirs

    def _fits(self) -> bool:
        """Tell whether the ask fits; it is counted in its queue, so it is taken out first."""
        trial, wanted = self.trial, self.wanted
        trial.remove(wanted.queue, wanted.request)
        fits = trial.fits(wanted.queue, wanted.request)
        trial.add(wanted.queue, wanted.request)
        return fits

    def _enough(self, cursors: dict[Quota, Cursor]) -> bool:
        """Tell whether the ask could fit if all candidates went, those left to the second strategy included.

        Where a queue stops to borrow is not looked at: which of its candidates go before depends on
        their shares.
        """
        wanted = self.wanted
        empty = self.trial.copy()
        empty.remove(wanted.queue, wanted.request)
        pairs_of = wanted.candidates.pairs
        for queue, cursor in (*self.retry.items(), *cursors.items()):
            total: dict[int, int] = {}
            for entry in cursor.rest():
                for index, amount in pairs_of(entry[4]):
                    total[index] = total.get(index, 0) + amount
            empty.remove(queue, total.items())
        return empty.fits(wanted.queue, wanted.request)

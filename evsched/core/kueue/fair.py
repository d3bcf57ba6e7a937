"""Preemption under fair sharing (seed kueue_preemption "Fair Sharing"; reference section 5).

While the ask does not fit, the queue that has borrowed the largest share
(`evsched.core.kueue.contest`) is asked for a victim. It gives its next candidate when a strategy
holds between the two sides just below the lowest cohort that contains both queues. The usage of the
ask counts in its own queue all the while.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from evsched.core.kueue import tracing
from evsched.core.kueue.contest import Contest, Cursor, levels_of
from evsched.core.kueue.messages import FAIR_SHARING, IN_CLUSTER_QUEUE, RECLAMATION
from evsched.core.kueue.shares import order_of, share_of
from evsched.core.kueue.wanted import MANY, PreemptionRequest, Target, minimise, put_back

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    trial.add(wanted.queue, wanted.request)
    run = _Run(trial, wanted)
    strategies = wanted.kueue.fair_strategies
    found = run.first(final=not strategies or strategies[0] == FINAL)
    if not found and len(strategies) != 1 and not run.hopeless:
        found = run.second()
    trial.remove(wanted.queue, wanted.request)
    targets = run.targets
    if found:
        targets = minimise(trial, wanted, targets, borrowing=True)
    put_back(trial, targets)
    return targets if found else []


def own_cursor(trial: QuotaOverlay, wanted: PreemptionRequest) -> Cursor:
    """Return the candidates of the ask's queue: those that its policy within the queue gives up.

    Shares play no part there, so no limit is set beyond the policy's own.
    """
    staying: list[Entry] = []
    leaving: list[Entry] = []
    for group in wanted.groups(trial, wanted.queue):
        staying += wanted.own_entries(group.staying)
        leaving += wanted.own_entries(group.leaving)
    return Cursor(sorted(leaving), sorted(staying), None)


def cursor_of(trial: QuotaOverlay, wanted: PreemptionRequest, queue: Quota) -> Cursor:
    """Return the candidates of a queue that is above its nominal quota of something contested.

    The lists of one group are used as they are; those of several are merged. Priorities that
    ``reclaimWithinCohort`` spares are left out.
    """
    groups = list(wanted.groups(trial, queue))
    limit = wanted.reclaim_limit
    if len(groups) == 1:
        return Cursor(groups[0].leaving, groups[0].staying, limit)
    return Cursor(
        sorted(entry for group in groups for entry in group.leaving),
        sorted(entry for group in groups for entry in group.staying),
        limit,
    )


class _Field:
    """The candidates of the first strategy.

    Those of a level of the tree are looked up when the contest comes there: a search that ends in
    one branch does not pay for the others.

    Attributes:
        cursors: The candidates of the queues looked up so far; the ask's own only if it has some.
    """

    def __init__(self, trial: QuotaOverlay, wanted: PreemptionRequest) -> None:
        self._trial = trial
        self._wanted = wanted
        own = own_cursor(trial, wanted)
        self.cursors: dict[Quota, Cursor] = {}
        if own.head is not None:
            self.cursors[wanted.queue] = own
        self._next = dict(pairwise(wanted.queue.down))

    def below(self, level: Quota) -> tuple[list[Quota], list[Quota]]:
        """Return the queues with candidates and the cohorts right below a cohort.

        The ask's own branch is there whether it borrows or not, as its victims need not; a branch
        that is the ask's queue, only with candidates. Of the others only those are that borrow
        something contested, or may lead to such; none where the policy reclaims nothing.
        """
        branch = self._next.get(level)
        queues, cohorts = [], []
        if branch is not None and branch.spec is None:
            cohorts.append(branch)
        elif branch is not None and branch in self.cursors:
            queues.append(branch)
        if not self._wanted.reclaims:
            return queues, cohorts
        for child in self._trial.borrowers(level, self._wanted.contested):
            if child is branch:
                continue
            if child.spec is None:
                cohorts.append(child)
            elif self.cursor(child).head is not None:
                queues.append(child)
        return queues, cohorts

    def cursor(self, queue: Quota) -> Cursor:
        """Return the candidates of a queue, as far as they are left; looked up once."""
        found = self.cursors.get(queue)
        if found is None:
            found = self.cursors[queue] = cursor_of(self._trial, self._wanted, queue)
        return found

    def queues(self, level: Quota) -> Iterator[Quota]:
        """Yield all queues below a cohort that may have candidates, level by level."""
        levels = [level]
        for node in levels:
            queues, cohorts = self.below(node)
            yield from queues
            levels += cohorts


class _Run:
    """One search under way.

    Attributes:
        trial: The tree with the ask in and the victims so far gone.
        wanted: What is asked for.
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
        self._side = dict(pairwise(wanted.queue.down))
        self._field = _Field(trial, wanted)
        self._refused: list[Quota] = []

    def first(self, *, final: bool) -> bool:
        """Run the first strategy; return whether the ask fits now.

        In its own queue the ask takes by priority alone. What belongs to its queue by nominal
        quota it claims without comparing shares (``preemptWithinNominal``); rules 2 ask that once,
        at the start, as Kueue does.

        Args:
            final: ``LessThanOrEqualToFinalShare``: the share of the ask's side is at most what the
                victim's side has afterwards. Else ``LessThanInitialShare``: less than it has now.
        """
        field, own = self._field, self.wanted.queue
        at_start = self._claims()

        def claims() -> bool:
            return at_start if self.wanted.rules.claim_at_start else self._claims()

        def refuses(cohort: Quota) -> bool:
            """Tell whether shares spare all below a cohort, now and for the rest of this strategy."""
            if self.wanted.tracer is not None or claims():
                return False
            if not self._spares(contest, cohort, final=final):
                return False
            self._refused.append(cohort)
            return True

        contest = Contest(self.trial, own, field.cursors, field.below, refuses)
        while (queue := contest.next()) is not None:
            cursor = field.cursors[queue]
            if queue is own:
                taken = self._take(contest, queue, cursor.pop(), IN_CLUSTER_QUEUE)
            elif claims():
                taken = self._take(contest, queue, cursor.pop(), RECLAMATION)
            else:
                taken = self._compare(contest, queue, cursor, final=final)
            if taken and self._fits():
                return True
            if taken and len(self.targets) == MANY and not self._enough():
                self.hopeless = True
                return False
        return False

    def _spares(self, contest: Contest, theirs: Quota, *, final: bool) -> bool:
        """Tell whether the share of the other side is too small to preempt any of its workloads.

        It only falls from here on, and without a victim the ask's does not. So a whole branch is
        refused by two numbers.
        """
        ours, _ = self._sides(theirs)
        share, before = order_of(contest.share(ours)), order_of(contest.share(theirs))
        return share > before if final else share >= before

    def _claims(self) -> bool:
        """Tell whether the ask's queue is within its nominal quota of all that is contested.

        The ask is counted in that: what it claims belongs to its queue.
        """
        return self._within_nominal and not self.trial.above(
            self.wanted.queue, self.wanted.contested
        )

    def second(self) -> bool:
        """Run the second strategy over what the first refused; return whether the ask fits now.

        It is ``LessThanInitialShare``: the shares before the victim goes decide, and the ask's
        must be smaller. At most one victim a queue, its first candidate that was refused; then the
        queue drops out.
        """
        own = self.wanted.queue
        if own in self._field.cursors:
            self._retry_refused()
        contest = Contest(self.trial, own, self.retry, levels_of(self.retry))
        while (queue := contest.next()) is not None:
            entry = self.retry[queue].pop()
            ours, theirs = self._sides(queue)
            if order_of(contest.share(ours)) < order_of(contest.share(theirs)):
                self._take(contest, queue, entry, FAIR_SHARING)
                if self._fits():
                    return True
            contest.update(queue)
        return False

    def _retry_refused(self) -> None:
        """Give what was refused as a whole another turn.

        Victims of the ask's own queue may have made the ask's share smaller since. Each queue gets
        its first candidate back, as if it had been refused by itself.
        """
        for cohort in self._refused:
            for queue in self._field.queues(cohort):
                cursor = self._field.cursors[queue]
                if queue not in self.retry and cursor.head is not None:
                    first = [cursor.head]
                    parts = (first, []) if cursor.leaving else ([], first)
                    self.retry[queue] = Cursor(*parts, None)

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
        spared = self.wanted.tracer is None and (share > before if final else share >= before)
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
            if spared:
                cursor.end()  # those behind it fare the same
        contest.update(queue)
        return False

    def _share_without(self, queue: Quota, theirs: Quota, entry: Entry) -> int:
        """Return the share of the other side, once a candidate has gone as well.

        The trial is not changed for it: only the usage on the way up to that side is computed.
        """
        pairs = self.wanted.candidates.pairs(entry[4])
        return order_of(share_of(theirs, self.trial.usage_without(queue, theirs, pairs)))

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

    def _enough(self) -> bool:
        """Tell whether the ask could fit if all candidates went, those left to the second strategy included.

        Where a queue stops to borrow is not looked at: which of its candidates go before depends on
        their shares.
        """
        wanted = self.wanted
        empty = self.trial.copy()
        empty.remove(wanted.queue, wanted.request)
        pairs_of = wanted.candidates.pairs
        field = self._field
        if self.wanted.queue.parent is not None:
            dict.fromkeys(field.queues(self.wanted.queue.top))
        for queue, cursor in (*self.retry.items(), *field.cursors.items()):
            total: dict[int, int] = {}
            for entry in cursor.rest():
                for index, amount in pairs_of(entry[4]):
                    total[index] = total.get(index, 0) + amount
            empty.remove(queue, total.items())
        return empty.fits(wanted.queue, wanted.request)

"""One scheduling cycle: one head per ClusterQueue, considered together (reference section 7).

All heads get their flavors and victims on one picture of the tree. Then they are handled in an
order (`evsched.core.kueue.turns`), and what is decided for one counts for those after it. The
outcome is a plan; `evsched.core.kueue.family` makes events of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evsched.core.kueue.flavors import FIT, NO_FIT, PREEMPT, Assigner, FlavorAssignment, PodSetWish
from evsched.core.kueue.model import quota_in, quota_of
from evsched.core.kueue.trial import QuotaOverlay
from evsched.core.kueue.wanted import Target, put_back

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from evsched.core.kueue.model import Quota
    from evsched.core.kueue.search import Searcher
    from evsched.core.state import State
    from evsched.core.workloads import Ask

Outcome = Literal["admit", "preempt", "no-fit", "no-victims", "overlap", "crowded-out", "deferred"]
"""What a cycle makes of a head.

``overlap``: its victims were taken by another head; ``crowded-out``: those before it left no room;
``deferred``: it fits once the victims of others are gone.
"""


class Nominee:
    """A head with what was found for it.

    Attributes:
        ask: The head.
        queue: Its ClusterQueue.
        assignment: Its flavors on the picture that all heads share; replaced when it is recomputed.
        targets: Its victims, when it needs some and there are some.
        outcome: Set when it is handled.
    """

    __slots__ = ("ask", "assignment", "outcome", "queue", "targets")

    def __init__(
        self, ask: Ask, queue: Quota, assignment: FlavorAssignment, targets: list[Target]
    ) -> None:
        """Nominate an ask."""
        self.ask = ask
        self.queue = queue
        self.assignment = assignment
        self.targets = targets
        self.outcome: Outcome = "no-fit"


def wishes(
    ask: Ask, resources: Mapping[str, int], keep: Sequence[Mapping[str, str]] | None = None
) -> tuple[PodSetWish, ...]:
    """Return what the podsets of an ask ask for.

    Args:
        ask: An ask without podsets is a single one.
        resources: Of the whole ask, used when it has no podsets.
        keep: For each podset the flavors nominated before, to which it is restricted; None: any
            that the ask itself allows.
    """
    if ask.podsets:
        plain = [PodSetWish(podset.resources, podset.flavors) for podset in ask.podsets]
    else:
        plain = [PodSetWish(resources, ask.flavors)]
    if keep is None:
        return tuple(plain)
    return tuple(
        PodSetWish(one.resources, flavors) for one, flavors in zip(plain, keep, strict=True)
    )


class Cycle:
    """One cycle over some heads of one state; it reads the state and writes nothing.

    Attributes:
        order: The nominees in the order in which they were handled.
    """

    def __init__(
        self, state: State, searcher: Searcher, reserving: Container[str] = frozenset()
    ) -> None:
        """Start with the state as it is.

        Args:
            state: Of a Kueue partition.
            searcher: Searches victims in it.
            reserving: Ids of heads for which nothing can be done and that only keep room
                (`evsched.core.kueue.heads`): no victims are searched for them.
        """
        self._state = state
        self._reserving = reserving
        self._searcher = searcher
        self._trial = QuotaOverlay()
        # The same picture, with the victims of all handled nominees gone. Kept beside the other one,
        # so that a nominee pays for its own victims and not for those of all before it.
        self._after = QuotaOverlay()
        self.order: list[Nominee] = []

    # ----------------------------------------------------------------------------------- nomination

    def nominate(self, heads: Iterable[Ask], kept: int, budget: int) -> list[Nominee]:
        """Find flavors and victims for the heads on the same picture.

        Args:
            heads: In the order in which they have their turn.
            kept: The first so many are nominated, whatever they cost, and one more.
            budget: After so much work (`evsched.core.kueue.search.Searcher.work`) on those behind
                them, the rest waits for another cycle.
        """
        found: list[Nominee] = []
        searcher, preemptions = self._searcher, self._state.preemptions
        keeps = self._state.rules.keeps_victims
        for number, ask in enumerate(heads):
            in_flight = ask.id in preemptions
            if number == kept:
                searcher.work = 0
            elif number > kept and searcher.work >= budget:
                break
            searcher.consider()
            queue = quota_of(self._state.queues[ask.queue])
            held = self._keep(ask, queue) if in_flight and keeps else None
            found.append(held or Nominee(ask, queue, *self._assign(self._trial, ask, queue)))
        return found

    def _keep(self, ask: Ask, queue: Quota) -> Nominee | None:
        """Return an ask in flight with the victims that it waits for; None when they are not enough.

        It needs none of them when it fits already. Its flavors are those that fit once these victims
        are gone. No other victims are searched.
        """
        trial, searcher = self._trial, self._searcher
        running, shapes = self._state.allocations, self._state.types.shapes
        targets = []
        for name in self._state.preemptions[ask.id].waiting_for:
            victim = running[name]
            quota = quota_in(self._state.queues[victim.queue])
            if quota is not None:  # a queue that left the configuration gives no quota back
                targets.append(Target(victim, quota, shapes[victim.shape].pairs, ""))
        for target in targets:
            trial.remove(target.queue, target.pairs)
        resources = shapes[ask.shape].resources
        assigner = Assigner(searcher, trial, ask, queue, searches=False)
        assignment = assigner.assign(wishes(ask, resources))
        put_back(trial, targets)
        if assignment.mode != FIT:
            return None
        if trial.fits(queue, assignment.usage.items()):
            return Nominee(ask, queue, assignment, [])
        return Nominee(ask, queue, assignment._replace(mode=PREEMPT), targets)

    def _assign(
        self,
        trial: QuotaOverlay,
        ask: Ask,
        queue: Quota,
        keep: Sequence[Mapping[str, str]] | None = None,
    ) -> tuple[FlavorAssignment, list[Target]]:
        """Find flavors for an ask on a trial, and victims where it needs them.

        A head that only keeps room gets flavors and no victims: its assignment says how much to
        keep.

        Args:
            trial: The picture to look at; left as it was.
            ask: The head.
            queue: Its ClusterQueue.
            keep: As in `wishes`.
        """
        resources = self._state.types.shapes[ask.shape].resources
        searches = ask.id not in self._reserving
        assigner = Assigner(self._searcher, trial, ask, queue, searches=searches)
        assignment = assigner.assign(wishes(ask, resources, keep))
        if assignment.mode in (FIT, NO_FIT) or not searches:
            return assignment, []
        return assignment, assigner.targets(assignment)

    # ------------------------------------------------------------------------------------- handling

    def handle(self, nominee: Nominee) -> None:
        """Decide about the next nominee; what it will use counts from here on."""
        self.order.append(nominee)
        nominee.outcome = self._decide(nominee)
        tracer = self._searcher.tracer
        if tracer is not None:
            tracer.note(
                nominee.ask.id,
                nominee.outcome,
                queue=nominee.queue.path,
                level=nominee.assignment.level,
                reason=nominee.assignment.reason,
                usage=self._state.types.named(nominee.assignment.usage.items()),
                victims=tuple(target.allocation.id for target in nominee.targets),
            )

    def _decide(self, nominee: Nominee) -> Outcome:
        """Return what becomes of the next nominee, and count what it takes (section 7).

        A nominee whose victims were taken meanwhile has another search only where the
        configuration says so. One that fits once the victims of others are gone takes that room,
        but is not admitted yet.
        """
        if nominee.assignment.mode == NO_FIT:
            return "no-fit"
        if self._overlaps(nominee.targets):
            if not self._searcher.kueue.recompute_on_overlap:
                return "overlap"
            if not self._recompute(nominee):
                return "overlap"
            if nominee.assignment.mode == FIT:
                self._use(nominee.queue, nominee.assignment.usage.items())
                return "deferred"
        if nominee.assignment.mode != FIT and not nominee.targets:
            self._reserve(nominee)
            return "no-victims"
        if not self._fits(nominee):
            return "crowded-out"
        self._take(nominee.targets)
        self._use(nominee.queue, nominee.assignment.usage.items())
        return "admit" if nominee.assignment.mode == FIT else "preempt"

    def _overlaps(self, targets: list[Target]) -> bool:
        """Tell whether a victim was taken by a nominee that was handled before.

        The same usage cannot make room twice.
        """
        gone = self._after.gone
        return any(target.allocation.id in gone.get(target.queue, ()) for target in targets)

    def _use(self, queue: Quota, amounts: Iterable[tuple[int, int]]) -> None:
        """Count amounts as used in both pictures from here on."""
        pairs = tuple(amounts)
        self._trial.add(queue, pairs)
        self._after.add(queue, pairs)

    def _take(self, targets: Iterable[Target]) -> None:
        """Take victims out of the second picture; further searches do not see them."""
        for target in targets:
            self._after.remove(target.queue, target.pairs)
            self._after.gone.setdefault(target.queue, {})[target.allocation.id] = None

    def _recompute(self, nominee: Nominee) -> bool:
        """Search anew with the victims of the cycle gone and the flavors as nominated.

        Returns:
            Whether the ask fits or has other victims now.
        """
        nominee.assignment, nominee.targets = self._assign(
            self._after, nominee.ask, nominee.queue, nominee.assignment.flavors
        )
        return nominee.assignment.mode == FIT or bool(nominee.targets)

    def _reserve(self, nominee: Nominee) -> None:
        """Keep free what a head without victims waits for (section 7).

        A queue that may reclaim from any priority can always take it back, so nothing is kept for
        it. Else what is asked for is kept: at most what is left of the nominal quota, or, for a
        head that borrows, of nominal quota and borrowing limit together where there is a limit.
        """
        queue, spec = nominee.queue, nominee.queue.spec
        if spec is None or spec.reclaim_within_cohort == "Any":
            return
        usage = self._trial.usage(queue)
        kept = []
        for index, amount in nominee.assignment.usage.items():
            rest = queue.nominal.get(index, 0) - usage.get(index, 0)
            if nominee.assignment.level == 0:
                kept.append((index, max(0, min(amount, rest))))
            elif index in queue.borrowing:
                kept.append((index, max(0, min(amount, rest + queue.borrowing[index]))))
            else:
                kept.append((index, amount))
        self._use(queue, kept)

    def _fits(self, nominee: Nominee) -> bool:
        """Tell whether a nominee fits when its victims and those of all before it are gone.

        An earlier nominee may have taken the room that was there at nomination.
        """
        trial = self._after
        for target in nominee.targets:
            trial.remove(target.queue, target.pairs)
        fits = trial.fits(nominee.queue, nominee.assignment.usage.items())
        put_back(trial, nominee.targets)
        return fits

    @property
    def trial(self) -> QuotaOverlay:
        """The tree with all that this cycle has decided so far; victims still count in it."""
        return self._trial

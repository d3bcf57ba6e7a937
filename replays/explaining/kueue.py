"""Explain for Kueue: which quota at which level of the cohorts holds a workload, which flavors were looked at, and the shares.

A request is followed up the tree as the scheduler does: what a level keeps for itself (a lending
limit) and has free need not come from above, the rest must. So the amount that is asked for gets
smaller on the way, and each level is held against its own limit: the borrowing limit below the top,
the quota of the whole tree at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from events.configuration import KueueSpec
from evsched.core.kueue import shares
from evsched.core.kueue.cycle import Cycle, Nominee
from evsched.core.kueue.model import COHORT_PREFIX, Quota, quota_of
from evsched.core.kueue.search import Searcher
from evsched.core.kueue.stopping import held_local_queues
from evsched.core.kueue.trial import Trial
from evsched.core.kueue.waiting import waiting_of
from evsched.core.quantity import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evsched.core.state import State
    from evsched.core.workloads import Ask
    from replays.explaining.notebook import Note, Notebook

MODES = {
    "noFit": "it can never hold the request with these quotas and policies",
    "noCandidates": "it is full, and nobody may be preempted",
    "preempt": "by preemption in its own ClusterQueue",
    "reclaim": "by preemption in other ClusterQueues",
    "fit": "it has room",
}
"""What the modes of `evsched.core.kueue.flavors` mean."""


class QuotaLevel(Struct, frozen=True, kw_only=True):
    """One ClusterQueue or cohort on the path, for one flavor and resource.

    Attributes:
        requested: What this level has to provide: less than the ask wants where a level below keeps
            some free for itself.
        used: What counts here.
        quota: Its nominal quota, with what those below it lend.
        nominal: Its own part of that.
        borrowing_limit, lending_limit: None: not set.
        binding: The limit that does not let the request pass: ``quota`` or ``borrowing limit``;
            empty: it passes here.
        missing: How much it is too much.
    """

    queue: str
    flavor: str
    resource: str
    requested: int
    used: int
    quota: int
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    binding: str = ""
    missing: int = 0


class FlavorLook(Struct, frozen=True, kw_only=True):
    """A flavor that was considered, and how far it would go.

    Attributes:
        resources: What is asked of it; a podset is looked at together with what those before it
            take.
        borrow_level: How high it would have to borrow; 0: not.
    """

    flavor: str
    resources: dict[str, int]
    mode: str
    sentence: str
    borrow_level: int


class FairShare(Struct, frozen=True, kw_only=True):
    """The weighted share of a ClusterQueue or cohort, as its status shows it, before and after; 2**63 - 1 is infinite."""

    queue: str
    before: int
    after: int


class Moved(NamedTuple):
    """What a node uses of one type before and after a decision; the quota is None where it has none of the type."""

    queue: str
    resource: str
    before: int
    after: int
    quota: int | None


class Look(Struct, frozen=True, kw_only=True):
    """What a cycle would make of one workload if it were its turn, and why.

    Attributes:
        summary: Why it waits, in a sentence or two.
        unblock: What would change that.
    """

    summary: str
    unblock: tuple[str, ...]
    quotas: tuple[QuotaLevel, ...]
    flavors: tuple[FlavorLook, ...]
    shares: tuple[FairShare, ...]


def look(state: State, ask: Ask, notebook: Notebook) -> Look:
    """Look at one workload with its turn come, on a state of one's own (indices are built in it).

    Args:
        state: Of a Kueue partition; decides nothing here.
        ask: Waits in it.
        notebook: Hears what is considered.
    """
    queue = state.queues[ask.queue].quota
    if queue is None:
        gone = f"ClusterQueue {ask.queue} is no longer in the configuration; it admits nobody."
        return Look(summary=gone, unblock=(), quotas=(), flavors=(), shares=())
    cycle = Cycle(state, Searcher(state, notebook))
    nominee = cycle.nominate([ask])[0]
    cycle.handle(nominee)
    held, release = held_by(state, ask)
    quotas = levels(state, ask)
    said = [held] if held else _why(nominee, quotas)
    would = [release] if release else _would(nominee)
    return Look(
        summary=" ".join(said),
        unblock=(*would, *_uncovered(state, queue, ask), *_unblock(nominee, quotas)),
        quotas=tuple(quotas),
        flavors=tuple(_considered(notebook.about(ask.id))),
        shares=tuple(fair_shares(state, [queue], with_running(nominee))),
    )


# ----------------------------------------------------------------------------------------- the path


def levels(state: State, ask: Ask) -> list[QuotaLevel]:
    """Return what is asked of every level of the path, ClusterQueue first, for every flavor that may provide it."""
    queue = quota_of(state.queues[ask.queue])
    found: list[QuotaLevel] = []
    for resource, amount in sorted(state.types.shapes[ask.shape].resources.items()):
        group = next((group for group in queue.groups if resource in group.resources), None)
        if group is None or not amount:
            continue
        fixed = (ask.flavors or {}).get(resource)
        for flavor, indices in group.flavors:
            if fixed in (None, flavor):
                found += _climb(queue, indices[resource], (flavor, resource), amount)
    return found


def _climb(queue: Quota, index: int, named: tuple[str, str], amount: int) -> list[QuotaLevel]:
    trial, found = Trial(), []
    for node in reversed(queue.down):
        used, quota, limit = (
            node.usage.get(index, 0),
            node.subtree.get(index, 0),
            node.borrowing.get(index),
        )
        most = quota if node.parent is None else None if limit is None else quota + limit
        over = 0 if most is None else max(0, used + amount - most)
        binding = ("quota" if node.parent is None else "borrowing limit") if over else ""
        found.append(
            QuotaLevel(
                queue=node.path, flavor=named[0], resource=named[1], requested=amount, used=used, quota=quota,
                nominal=node.nominal.get(index, 0), borrowing_limit=limit, lending_limit=node.lending.get(index),
                binding=binding, missing=over,
            )
        )  # fmt: skip
        amount -= trial.kept_free(node, index)
        if amount <= 0:
            break
    return found


def titled(path: str) -> str:
    """Return a path with what it is: ``ClusterQueue a``, ``Cohort all``."""
    return (
        f"Cohort {path.removeprefix(COHORT_PREFIX)}"
        if path.startswith(COHORT_PREFIX)
        else f"ClusterQueue {path}"
    )


# ------------------------------------------------------------------------------------------ reasons


def held_by(state: State, ask: Ask) -> tuple[str, str]:
    """Return what keeps an ask from having its turn at all, and what would change that; both empty when nothing does."""
    spec = quota_of(state.queues[ask.queue]).spec
    if spec is not None and spec.stop_policy != "None":
        return (
            f"ClusterQueue {spec.name} admits nobody: its stopPolicy is {spec.stop_policy}.",
            "a stopPolicy of None",
        )
    held = held_local_queues(state)
    if ask.local_queue in held:
        return (
            f"LocalQueue {ask.local_queue} is stopped: nobody who comes through it is admitted.",
            "a stopPolicy of None",
        )
    waiting = (state.asks[place[3]] for place in waiting_of(state).queues.get(ask.queue, ()))
    head = next((one for one in waiting if one.local_queue not in held), ask)
    if spec is not None and spec.strict_fifo and head is not ask:
        found = f"Workload {head.id} is before it in ClusterQueue {spec.name}, which is StrictFIFO."
        return found, f"the admission or withdrawal of {head.id}"
    return "", ""


def _why(nominee: Nominee, quotas: list[QuotaLevel]) -> list[str]:
    if nominee.outcome in ("admit", "preempt"):
        return ["Nothing holds it: the next cycle looks at it."]
    binding = [_over(level) for level in quotas if level.binding]
    reason = nominee.assignment.reason
    if nominee.outcome == "no-fit" and reason:
        binding.insert(0, f"{reason[0].upper()}{reason[1:]}.")
    return binding or [
        f"{reason[0].upper()}{reason[1:]}." if reason else "The next cycle looks at it."
    ]


def _over(level: QuotaLevel) -> str:
    def shown(amount: int) -> str:
        return format_amount(level.resource, amount)

    most = level.quota + (level.borrowing_limit or 0 if level.binding == "borrowing limit" else 0)
    which = f"quota {shown(level.quota)}"
    if level.binding == "borrowing limit":
        which += f" and borrowing limit {shown(level.borrowing_limit or 0)}"
    return (
        f"{titled(level.queue)}: {shown(level.requested)} {level.resource} of flavor {level.flavor} requested, "
        f"{shown(level.used)} used, {shown(most)} allowed ({which})."
    )


def _would(nominee: Nominee) -> list[str]:
    """Return what would happen at once if it were its turn."""
    if nominee.outcome == "admit":
        flavors = ", ".join(
            f"{name} from {one}"
            for chosen in nominee.assignment.flavors
            for name, one in chosen.items()
        )
        return [f"nothing has to change: it would be admitted now ({flavors})"]
    if nominee.outcome == "preempt":
        return [
            f"it would preempt {', '.join(target.allocation.id for target in nominee.targets)} now"
        ]
    return []


def _unblock(nominee: Nominee, quotas: list[QuotaLevel]) -> list[str]:
    """Return what quotas would have to become, or usage, for an ask that has to wait for one."""
    found = []
    for level in quotas if nominee.outcome not in ("admit", "preempt") else ():
        if level.binding:
            missing = f"{format_amount(level.resource, level.missing)} {level.resource} of flavor {level.flavor}"
            more = "quota" if level.binding == "quota" else "borrowing limit or quota"
            if level.missing <= level.used:
                found.append(
                    f"{missing} less used in {titled(level.queue)}, or as much more {more}"
                )
            else:
                found.append(f"{missing} more {more} in {titled(level.queue)}")
    if not nominee.ask.may_preempt:
        found.append("it may not preempt others (preemption policy Never)")
    return found


def _uncovered(state: State, queue: Quota, ask: Ask) -> list[str]:
    """Return what a ClusterQueue would have to cover: resources that none of its groups names."""
    resources = sorted(state.types.shapes[ask.shape].resources.items())
    missing = [
        name
        for name, amount in resources
        if amount and not any(name in group.resources for group in queue.groups)
    ]
    return [f"a quota for {name} in ClusterQueue {queue.name}" for name in missing]


def _considered(notes: list[Note]) -> list[FlavorLook]:
    return [
        FlavorLook(
            flavor=note.facts["flavor"], resources=note.facts["resources"], mode=note.facts["mode"],
            sentence=MODES.get(note.facts["mode"], note.facts["mode"]), borrow_level=note.facts["level"],
        )
        for note in notes
        if note.code == "flavor"
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------- shares


def fair_shares(state: State, concerned: Iterable[Quota], trial: Trial) -> list[FairShare]:
    """Return the shares along the paths of some ClusterQueues and of who borrows beside them, largest first; none without them.

    Before: as the state is. After: as the trial is.
    """
    if not isinstance(state.configuration, KueueSpec) or not state.configuration.fair_sharing:
        return []
    nodes: dict[Quota, None] = {}
    for queue in concerned:
        for cohort in queue.down[:-1]:
            beside = (*cohort.cohorts, *cohort.queues)
            nodes |= {
                node: None
                for node in beside
                if node in queue.down or shares.status(node, node.usage)
            }
    found = [
        FairShare(
            queue=node.path,
            before=shares.status(node, node.usage),
            after=shares.status(node, trial.usage(node)),
        )
        for node in nodes
    ]
    return sorted(found, key=lambda one: (-one.before, one.queue))


def with_running(nominee: Nominee) -> Trial:
    """Return a trial in which a nominee runs and its victims are gone."""
    trial = Trial()
    for target in nominee.targets:
        trial.remove(target.queue, target.pairs)
    trial.add(nominee.queue, nominee.assignment.usage.items())
    return trial


def before_and_after(
    state: State, ask: Ask | None, victims: Iterable[str]
) -> tuple[list[Moved], list[FairShare]]:
    """Return what a decision changes in the quotas that it touches, and the fair shares before and after.

    Args:
        state: After the step of the decision, when victims are told and still count; indices are
            built in it.
        ask: For whom; None for an enforcement.
        victims: Their ids; those that are gone already are left out.
    """
    trial = Trial()
    touched: dict[Quota, None] = {}
    if ask is not None and state.queues[ask.queue].quota is not None:
        nominee = Cycle(state, Searcher(state)).nominate([ask])[0]
        trial.add(nominee.queue, nominee.assignment.usage.items())
        touched[nominee.queue] = None
    for allocation in (state.allocations[name] for name in victims if name in state.allocations):
        queue = state.queues[allocation.queue].quota
        if queue is not None:
            trial.remove(queue, state.types.shapes[allocation.shape].pairs)
            touched[queue] = None
    nodes = {node: None for queue in touched for node in reversed(queue.down)}
    moved = [
        Moved(
            node.path,
            state.types.names[index],
            node.usage.get(index, 0),
            trial.usage(node).get(index, 0),
            node.subtree.get(index),
        )
        for node in nodes
        for index in sorted(trial.usage(node))
        if trial.usage(node).get(index, 0) != node.usage.get(index, 0)
    ]
    return moved, fair_shares(state, touched, trial)

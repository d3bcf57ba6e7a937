"""Explain for Kueue: which quota at which level of the cohorts holds a workload, which flavors were looked at, and the shares.

A request is followed up the tree as the scheduler does: what a level keeps for itself (a lending
limit) and has free need not come from above, the rest must. So the amount that is asked for gets
smaller on the way, and each level is held against its own limit: the borrowing limit below the top,
the quota of the whole tree at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from evsched.core.kueue import shares
from evsched.core.kueue.model import Quota, quota_in, quota_of
from evsched.core.kueue.stopping import held_local_queues
from evsched.core.kueue.trial import QuotaOverlay
from evsched.core.kueue.waiting import place_of
from replays.explaining.tracer import Note, RecordingTracer, cause, remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evsched.core.state import State
    from evsched.core.workloads import Ask

OUTCOMES = ("admit", "preempt", "no-fit", "no-victims", "overlap", "crowded-out", "deferred")
"""Codes of what a cycle makes of a workload (`evsched.core.kueue.cycle.Outcome`)."""

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
    """What there is to say of a workload that waits.

    Attributes:
        causes: What holds it.
        unblock: What would change that.
    """

    causes: tuple[Note, ...]
    unblock: tuple[Note, ...]
    quotas: tuple[QuotaLevel, ...] = ()
    flavors: tuple[FlavorLook, ...] = ()
    shares: tuple[FairShare, ...] = ()


def look(state: State, ask: Ask, tracer: RecordingTracer) -> Look:
    """Return what holds a workload, what would change that, and what was looked at.

    Args:
        state: Of a Kueue partition; only read.
        ask: Waits in it.
        tracer: With what a cycle considered that looked at the workload; empty where none may.
    """
    queue = quota_in(state.queues[ask.queue])
    if queue is None:
        return Look(causes=(cause(ask.queue, "queue-gone", queue=ask.queue),), unblock=())
    outcome = next((facts for code in OUTCOMES if (facts := tracer.of(ask.id, code))), None)
    quotas = levels(state, ask)
    held = held_by(state, ask)
    binding = [(level.queue, msgspec.structs.asdict(level)) for level in quotas if level.binding]
    causes = [held[0]] if held else []
    if not held and outcome is not None and outcome["reason"]:
        no_flavor = cause(ask.queue, "no-flavor", reason=outcome["reason"])
        if tracer.of(ask.id, "no-fit") or not binding:
            causes.append(no_flavor)
    if not held:
        causes += [cause(path, "quota", **facts) for path, facts in binding]
    trial = running(state, queue, outcome)
    return Look(
        causes=tuple(causes),
        unblock=(
            *held[1:],
            *_uncovered(state, queue, ask),
            *(remedy(path, "quota", **facts) for path, facts in binding),
        ),
        quotas=tuple(quotas),
        flavors=tuple(_considered(tracer.about(ask.id))),
        shares=tuple(fair_shares(state, [queue], trial)),
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
    trial, found = QuotaOverlay(), []
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


# ------------------------------------------------------------------------------------------ reasons


def held_by(state: State, ask: Ask) -> tuple[Note, ...]:
    """Return what keeps an ask from having its turn at all, and what would change that; empty when nothing does."""
    spec = quota_of(state.queues[ask.queue]).spec
    if spec is not None and spec.stop_policy != "None":
        stopped = cause(ask.queue, "queue-stopped", queue=spec.name, stop_policy=spec.stop_policy)
        return stopped, remedy(ask.queue, "stop-policy")
    held = held_local_queues(state)
    if ask.local_queue in held:
        stopped = cause(ask.local_queue, "local-queue-stopped", local_queue=ask.local_queue)
        return stopped, remedy(ask.local_queue, "stop-policy")
    if spec is None or not spec.strict_fifo:
        return ()
    waiting = (
        one for one in state.asks.values() if one.queue == ask.queue and one.local_queue not in held
    )
    head = min(waiting, key=place_of, default=ask)
    if head is ask:
        return ()
    return (
        cause(head.id, "strict-fifo", ask=head.id, queue=spec.name),
        remedy(head.id, "before-it", ask=head.id),
    )


def _uncovered(state: State, queue: Quota, ask: Ask) -> list[Note]:
    """Return what a ClusterQueue would have to cover: resources that none of its groups names."""
    resources = sorted(state.types.shapes[ask.shape].resources.items())
    missing = [
        name
        for name, amount in resources
        if amount and not any(name in group.resources for group in queue.groups)
    ]
    return [remedy(queue.path, "uncovered", resource=name, queue=queue.name) for name in missing]


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


def fair_shares(state: State, concerned: Iterable[Quota], trial: QuotaOverlay) -> list[FairShare]:
    """Return the shares along the paths of some ClusterQueues and of who borrows beside them, largest first; none without them.

    Before: as the state is. After: as the trial is.
    """
    if not shares.are_shared(state):
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


def running(state: State, queue: Quota, outcome: Mapping[str, Any] | None) -> QuotaOverlay:
    """Return a trial in which a workload runs and its victims are gone.

    Args:
        state: Of the moment.
        queue: Its ClusterQueue.
        outcome: What a cycle noted of it (`OUTCOMES`); None: no cycle looked at it.
    """
    trial = QuotaOverlay()
    if outcome is None:
        return trial
    for allocation in (state.allocations[name] for name in outcome["victims"]):
        from_queue = quota_of(state.queues[allocation.queue])
        trial.remove(from_queue, state.types.shapes[allocation.shape].pairs)
    trial.add(queue, [(state.types.index[name], one) for name, one in outcome["usage"].items()])
    return trial


def before_and_after(
    state: State, ask: Ask | None, victims: Iterable[str], usage: Mapping[str, int]
) -> tuple[list[Moved], list[FairShare]]:
    """Return what a decision changes in the quotas that it touches, and the fair shares before and after.

    Args:
        state: After the step of the decision, when victims are told and still count.
        ask: For whom; None for an enforcement.
        victims: Their ids; those that are gone already are left out.
        usage: What the ask will use, by flavor and resource, as the cycle noted it.
    """
    trial = QuotaOverlay()
    touched: dict[Quota, None] = {}
    queue = None if ask is None else quota_in(state.queues[ask.queue])
    if queue is not None:
        trial.add(queue, [(state.types.index[name], one) for name, one in usage.items()])
        touched[queue] = None
    for allocation in (state.allocations[name] for name in victims if name in state.allocations):
        from_queue = quota_in(state.queues[allocation.queue])
        if from_queue is not None:
            trial.remove(from_queue, state.types.shapes[allocation.shape].pairs)
            touched[from_queue] = None
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

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

CROWDED = ("crowded-out", "overlap", "deferred")
"""Those of them in which other workloads, and not quota, are in the way."""

Needs = tuple[tuple[tuple[int, ...], ...], ...]
"""All of: one of: all of the causes at these places."""

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
        needs: Which of the causes have to go, as of `replays.explaining.explain.Explanation`.
        unblock: What would change that.
    """

    causes: tuple[Note, ...]
    needs: Needs
    unblock: tuple[Note, ...]
    quotas: tuple[QuotaLevel, ...] = ()
    flavors: tuple[FlavorLook, ...] = ()
    shares: tuple[FairShare, ...] = ()


def look(state: State, ask: Ask, notebook: RecordingTracer) -> Look:
    """Return what holds a workload, what would change that, and what was looked at.

    Args:
        state: Of a Kueue partition; only read.
        ask: Waits in it.
        notebook: With what a cycle considered that looked at the workload; empty where none may.
    """
    queue = quota_in(state.queues[ask.queue])
    if queue is None:
        gone = cause(ask.queue, "queue-gone", queue=ask.queue)
        return Look(causes=(gone,), needs=(((0,),),), unblock=())
    outcome = next((facts for code in OUTCOMES if (facts := notebook.of(ask.id, code))), None)
    quotas, after = levels(state, ask), levels(state, ask, _without_victims(state, ask))
    held = Held(state, ask)
    crowd, leaving = _crowd(state, ask, notebook), _leaving(state, ask, notebook)
    if crowd is not None:
        held.all_of(crowd, _before_it(crowd))
    elif leaving is not None:
        held.all_of(leaving)
        held.unblock += [
            remedy(name, "victims-end", allocation=name) for name in leaving.facts["waiting_for"]
        ]
    else:
        for resource in _uncovered(state, queue, ask):
            facts = {"resource": resource, "queue": queue.name}
            held.all_of(
                cause(queue.path, "uncovered", **facts), remedy(queue.path, "uncovered", **facts)
            )
        for names, flavors in _groups(queue, ask, state.types.shapes[ask.shape].resources):
            binding = [
                [
                    one
                    for one in after
                    if one.binding and one.flavor == flavor and one.resource in names
                ]
                for flavor in flavors
            ]
            if not flavors:
                held.all_of(cause(queue.path, "no-flavor", queue=queue.name, resources=names))
            elif all(binding):
                held.any_of(binding)
    trial = running(state, queue, outcome)
    return Look(
        causes=tuple(held.causes),
        needs=tuple(held.needs),
        unblock=tuple(held.unblock),
        quotas=tuple(quotas),
        flavors=tuple(_considered(notebook.about(ask.id))),
        shares=tuple(fair_shares(state, [queue], trial)),
    )


# ----------------------------------------------------------------------------------------- the path


def levels(state: State, ask: Ask, trial: QuotaOverlay | None = None) -> list[QuotaLevel]:
    """Return what is asked of each level of the path, by flavor that may provide it.

    Args:
        state: Of the moment.
        ask: Waits in it.
        trial: What is used otherwise than in the state; None: nothing.

    Returns:
        The ClusterQueue first, then the cohorts above it.
    """
    trial = QuotaOverlay() if trial is None else trial
    queue = quota_of(state.queues[ask.queue])
    found: list[QuotaLevel] = []
    for resource, amount in sorted(state.types.shapes[ask.shape].resources.items()):
        group = next((group for group in queue.groups if resource in group.resources), None)
        if group is None or not amount:
            continue
        fixed = (ask.flavors or {}).get(resource)
        for flavor, indices in group.flavors:
            if fixed in (None, flavor):
                found += _climb(trial, queue, indices[resource], (flavor, resource, amount))
    return found


def _climb(
    trial: QuotaOverlay, queue: Quota, index: int, wanted: tuple[str, str, int]
) -> list[QuotaLevel]:
    """Follow a request up the tree; ``wanted`` is flavor, resource and amount."""
    flavor, resource, amount = wanted
    found = []
    for node in reversed(queue.down):
        used, quota, limit = (
            trial.usage(node).get(index, 0),
            node.subtree.get(index, 0),
            node.borrowing.get(index),
        )
        most = quota if node.parent is None else None if limit is None else quota + limit
        over = 0 if most is None else max(0, used + amount - most)
        binding = ("quota" if node.parent is None else "borrowing limit") if over else ""
        found.append(
            QuotaLevel(
                queue=node.path, flavor=flavor, resource=resource, requested=amount, used=used, quota=quota,
                nominal=node.nominal.get(index, 0), borrowing_limit=limit, lending_limit=node.lending.get(index),
                binding=binding, missing=over,
            )
        )  # fmt: skip
        amount -= trial.kept_free(node, index)
        if amount <= 0:
            break
    return found


# ------------------------------------------------------------------------------------------ reasons


def _without_victims(state: State, ask: Ask) -> QuotaOverlay:
    """Return the tree with the victims that an ask in flight waits for gone."""
    trial = QuotaOverlay()
    in_flight = state.preemptions.get(ask.id)
    for name in in_flight.waiting_for if in_flight is not None else ():
        victim = state.allocations[name]
        from_queue = quota_in(state.queues[victim.queue])
        if from_queue is not None:
            trial.remove(from_queue, state.types.shapes[victim.shape].pairs)
    return trial


class Held:
    """What holds a workload: causes, and which of them have to go."""

    def __init__(self, state: State, ask: Ask) -> None:
        """Begin with what keeps an ask from having its turn at all."""
        self.causes: list[Note] = []
        self.needs: list[tuple[tuple[int, ...], ...]] = []
        self.unblock: list[Note] = []
        for found, lift in _turn(state, ask):
            self.all_of(found, lift)

    def all_of(self, found: Note, lift: Note | None = None) -> None:
        """Add a cause that has to go, whatever else does."""
        self.needs.append(((len(self.causes),),))
        self.causes.append(found)
        if lift is not None:
            self.unblock.append(lift)

    def any_of(self, binding: list[list[QuotaLevel]]) -> None:
        """Add the limits of several flavors: all of those of one flavor have to go."""
        ways = []
        for flavor in binding:
            ways.append(tuple(range(len(self.causes), len(self.causes) + len(flavor))))
            for level in flavor:
                facts = msgspec.structs.asdict(level)
                self.causes.append(cause(level.queue, "quota", **facts))
                self.unblock.append(remedy(level.queue, "quota", **facts))
        self.needs.append(tuple(ways))


def _turn(state: State, ask: Ask) -> Iterable[tuple[Note, Note]]:
    """Yield what keeps an ask from having its turn at all, each with what would change that."""
    spec = quota_of(state.queues[ask.queue]).spec
    if spec is not None and spec.stop_policy != "None":
        stopped = cause(ask.queue, "queue-stopped", queue=spec.name, stop_policy=spec.stop_policy)
        yield stopped, remedy(ask.queue, "stop-policy")
    held = held_local_queues(state)
    if ask.local_queue in held:
        stopped = cause(ask.local_queue, "local-queue-stopped", local_queue=ask.local_queue)
        yield stopped, remedy(ask.local_queue, "stop-policy")
    if spec is None:
        return
    # Those in flight stay heads, so that what their victims free is kept for them.
    before = [
        one
        for one in state.asks.values()
        if one.queue == ask.queue
        and place_of(one) < place_of(ask)
        and (one.id in state.preemptions or (spec.strict_fifo and one.local_queue not in held))
    ]
    if before:
        names = tuple(one.id for one in sorted(before, key=place_of))
        code = "strict-fifo" if spec.strict_fifo else "head-in-flight"
        found = cause(names[0], code, asks=names, queue=spec.name)
        yield found, _before_it(found)


def _before_it(found: Note) -> Note:
    return remedy(found.subject, "before-it", asks=found.facts["asks"])


def _crowd(state: State, ask: Ask, notebook: RecordingTracer) -> Note | None:
    """Return which workloads leave no room for one that fits or has victims; None: it is not so."""
    code = next((one for one in CROWDED if notebook.of(ask.id, one)), None)
    if code is None:
        return None
    top = quota_of(state.queues[ask.queue]).top
    asks = {
        note.subject: None
        for note in notebook.notes
        if note.code in OUTCOMES
        and note.subject != ask.id
        and note.subject in state.asks
        and quota_of(state.queues[state.asks[note.subject].queue]).top is top
    }
    return cause(ask.id, code, asks=tuple(asks), queue=ask.queue)


def _leaving(state: State, ask: Ask, notebook: RecordingTracer) -> Note | None:
    """Return the workloads whose leaving it waits for, where all of them leave for others already (rules 2)."""
    outcome = notebook.of(ask.id, "preempt")
    if outcome is None or ask.id in state.preemptions:
        return None
    victims = outcome["victims"]
    running = state.allocations
    if not all(name in running and running[name].victim_of for name in victims):
        return None
    return cause(ask.id, "shared-victims", queue=ask.queue, waiting_for=victims)


def _uncovered(state: State, queue: Quota, ask: Ask) -> list[str]:
    """Return what a ClusterQueue would have to cover: resources that none of its groups names."""
    resources = sorted(state.types.shapes[ask.shape].resources.items())
    return [
        name
        for name, amount in resources
        if amount and not any(name in group.resources for group in queue.groups)
    ]


def _groups(
    queue: Quota, ask: Ask, resources: Mapping[str, int]
) -> Iterable[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the resource groups that an ask needs: its resources there, and flavors it may have."""
    fixed = ask.flavors or {}
    for group in queue.groups:
        names = tuple(name for name in group.resources if resources.get(name))
        if names:
            flavors = tuple(
                flavor
                for flavor, _ in group.flavors
                if all(fixed.get(name, flavor) == flavor for name in names)
            )
            yield names, flavors


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

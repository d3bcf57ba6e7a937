"""The state of one cluster partition: the fold of its log.

Only `evsched.core.reducer` writes to it. What a snapshot holds is the truth
(`evsched.core.record`); everything else here can be made anew from it. Tallies (usage along the
queue paths, what runs on a node) are kept as events are applied, unless nobody looks before the end
of a replay (`evsched.core.tallies`). Four larger indices serve decisions alone and exist only from
their first use on: `columns` (free space of nodes), `order` (who is next), `victims` (who could go)
and `limits` (what users and groups use). They are told what changed while tallies are kept.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from evsched.core.queues import Queue
from evsched.core.resources import ResourceTypes
from evsched.core.rules import FIRST, rules_of
from evsched.core.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.configuration import Configuration, TemplateSpec
    from events.vocabulary import ApplicationSubmitted
    from evsched.core.indices import Columns, Limits, Order, Victims
    from evsched.core.queues import Application
    from evsched.core.resources import Shape
    from evsched.core.rules import Rules
    from evsched.core.workloads import Allocation, Ask, Node, Preemption

REMEMBERED_PROPOSALS = 16_384
"""How many proposal ids are kept to recognise repetitions."""


class State:
    """Everything the scheduler knows.

    Attributes:
        seq: Of the last event.
        time: Of the last frame or step, milliseconds.
        rules_version: Of the rules in force; this release may not know them.
        uncompared: How many digests of the log were passed over because this release cannot make
            their record; no part of the truth.
        queues: By path; for Kueue also cohorts, as ``cohort/NAME``.
        reservations: Ask to node, in the order they were made.
        preemptions: Asks in flight, by ask.
        quota_runs: Queue to the victims of its quota enforcement that have not left yet.
        leaving: ``seq`` of a decision to the victims of it that have not left yet; one timer
            repeats all their evictions.
        dynamic: Paths of queues that placement rules created, with True for parents.
        templates: What each dynamic leaf was made by; a later change of the template leaves it as
            it is.
        total: Capacity of all nodes by type index.
        last_cycle: When the last preemption cycle ran.
        cycles: How many of them ran.
        changed: Whether anything happened since then that could help an ask that was tried in vain.
        tried: Asks that wait and were tried in vain by a preemption cycle, with the number of the
            first such cycle.
        paused: (YuniKorn) Applications that are not looked at now, each with the time until then;
            read from the timers.
        stirred: (Kueue) The tops of the cohort trees in which something ended since the last cycle,
            by path.
        lost: Nodes that were removed and whose allocations are still to be released (empty between
            steps).
        counting: Whether tallies are kept as events are applied (`evsched.core.tallies`).
        arriving: Applications that were submitted and not yet placed (empty between steps).
        local_queues: (Kueue) ``namespace/name`` to ClusterQueue.
    """

    __slots__ = (
        "_recent", "_recent_set", "_ripe", "_waiting", "allocations", "applications", "arriving", "asks", "changed",
        "checkpoint_every", "columns", "configuration", "counting", "cycles", "dynamic", "last_checkpoint", "last_cycle",
        "leader", "leaving", "limits", "local_queues", "lost", "nodes", "order", "paused", "preemptions", "queues",
        "quota_runs", "reservations", "root", "rules_version", "seq", "stirred", "templates", "term", "time", "timers", "total",
        "tried", "types", "uncompared", "victims", "width",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start with nothing: no configuration, no nodes."""
        self.seq = 0
        self.time = 0
        self.term = 0
        self.leader = ""
        self.rules_version = FIRST
        self.uncompared = 0
        self.checkpoint_every = 0
        self.last_checkpoint = 0
        self.configuration: Configuration | None = None
        self.types = ResourceTypes()
        self.width = 0
        self.root = Queue("root", "root", None, leaf=False)
        self.queues: dict[str, Queue] = {}
        self.dynamic: dict[str, bool] = {}
        self.templates: dict[str, TemplateSpec] = {}
        self.nodes: dict[str, Node] = {}
        self.total: list[int] = []
        self.applications: dict[str, Application] = {}
        self.asks: dict[str, Ask] = {}
        self.allocations: dict[str, Allocation] = {}
        self.preemptions: dict[str, Preemption] = {}
        self.quota_runs: dict[str, dict[str, None]] = {}
        self.leaving: dict[int, dict[str, None]] = {}
        self.reservations: dict[str, str] = {}
        self.timers = Timers()
        self.last_cycle = -(2**62)
        self.changed = False
        self.cycles = 0
        self.tried: dict[str, int] = {}
        self.paused: dict[str, int] = {}
        self.stirred: dict[str, None] = {}
        self.local_queues: dict[str, str] = {}
        self.lost: dict[str, Node] = {}
        self.arriving: dict[str, ApplicationSubmitted] = {}
        self.counting = True
        self._recent: deque[str] = deque()
        self._recent_set: dict[str, None] = {}
        self._ripe: list[tuple[int, str]] | None = None
        self._waiting: list[tuple[int, str]] | None = None
        self.columns: Columns | None = None
        self.order: Order | None = None
        self.victims: Victims | None = None
        self.limits: Limits | None = None

    # -------------------------------------------------------------------------------------- amounts

    def shape(self, resources: Mapping[str, int]) -> Shape:
        """Return the shape of these amounts; a resource type that is new gets room everywhere."""
        shape = self.types.shape(resources)
        if len(self.types.names) != self.width:
            self.widen()
        return shape

    def widen(self) -> None:
        """Make room for the resource types that were added."""
        self.width = len(self.types.names)
        grow = self.width
        self.root.widen(grow)
        for queue in self.queues.values():
            queue.widen(grow)
        vectors = [self.total]
        vectors.extend(application.usage for application in self.applications.values())
        for node in self.nodes.values():
            vectors.extend((node.capacity, node.used))
        for vector in vectors:
            vector.extend([0] * (grow - len(vector)))
        self.columns = self.order = self.victims = None

    # --------------------------------------------------------------------------------------- queues

    def attach(self, queue: Queue, upper: Queue) -> None:
        """Put a queue that the configuration does not name below another one."""
        queue.order = max((other.order for other in self.queues.values()), default=-1) + 1
        upper.children[queue.name] = queue
        self.queues[queue.path] = queue
        if len(self.types.names) != self.width:
            self.widen()
        queue.widen(self.width)

    # ------------------------------------------------------------------------------------ proposals

    def remembers(self, proposal: str) -> bool:
        """Tell whether this proposal id was seen lately."""
        return proposal in self._recent_set

    def remember(self, proposal: str) -> None:
        """Keep a proposal id; the oldest one is forgotten."""
        if proposal in self._recent_set:
            return
        self._recent.append(proposal)
        self._recent_set[proposal] = None
        if len(self._recent) > REMEMBERED_PROPOSALS:
            del self._recent_set[self._recent.popleft()]

    @property
    def recent_proposals(self) -> tuple[str, ...]:
        """The remembered proposal ids, oldest first."""
        return tuple(self._recent)

    # ---------------------------------------------------------------------------- preemption cycles

    def ripe_at(self, ask: Ask) -> int:
        """Return when an ask is old enough to preempt: its leaf's delay after its creation, at once with a required node."""
        if ask.required_node is not None:
            return ask.created
        return ask.created + self.queues[ask.queue].settings.preemption_delay_ms

    def ripens(self, ask: Ask) -> None:
        """Note when an ask becomes old enough to preempt (seed preemption_design: the delay runs from its creation)."""
        ripe = self._ripe
        if ripe is not None and ask.may_preempt and not ask.preempted:
            heappush(ripe, (self.ripe_at(ask), ask.id))
            if len(ripe) > 4 * len(self.asks) + 4096:
                self._ripe = None

    def ripen_all(self) -> None:
        """Note it anew for all asks, after a configuration change or a restart: when it is next asked for, a replay does not."""
        self._ripe = None
        self._waiting = None

    def waits(self, ask: Ask) -> None:
        """Note until when an ask waits for room that is being freed for others, if it does."""
        if self._waiting is not None and ask.patient_until:
            heappush(self._waiting, (ask.patient_until, ask.id))

    def _ripening(self) -> list[tuple[int, str]]:
        """Return the heap of when asks become old enough, built when it is not there."""
        ripe = self._ripe
        if ripe is None:
            ripe = [
                (self.ripe_at(ask), ask.id)
                for ask in self.asks.values()
                if ask.may_preempt and not ask.preempted
            ]
            heapify(ripe)
            self._ripe = ripe
        return ripe

    def next_preemption(self, interval_ms: int) -> int | None:
        """Return when the next preemption cycle is due, None when nobody waits for one.

        An ask that has just become old enough is looked at when that happens, but no two cycles
        come within ``interval_ms``; asks that were tried in vain are looked at again once something
        changed, or one of them has waited long enough for others.
        """
        ripe, asks = self._ripening(), self.asks
        while ripe and ((ask := asks.get(ripe[0][1])) is None or self._no_turn(ask, ripe[0][0])):
            heappop(ripe)
        pace = self.last_cycle + interval_ms
        due = max(ripe[0][0], pace) if ripe else None
        if self.tried:
            wake = pace if self.changed else self._patience_ends()
            if wake is not None and (due is None or wake < due):
                due = max(wake, pace)
        return due

    def _patience_ends(self) -> int | None:
        """Return when the next ask will have waited long enough for room of others, after the last cycle; None when none will."""
        if self._waiting is None:
            self._waiting = [
                (ask.patient_until, ask.id) for ask in self.asks.values() if ask.patient_until
            ]
            heapify(self._waiting)
        waiting, asks = self._waiting, self.asks
        while waiting:
            until, name = waiting[0]
            ask = asks.get(name)
            if (
                ask is not None
                and ask.patient_until == until
                and not ask.preempted
                and until > self.last_cycle
            ):
                return until
            heappop(waiting)
        return None

    def missed(self, ask: str) -> int:
        """Return how many opportunities an ask missed: preemption cycles from the first one that tried it in vain on."""
        first = self.tried.get(ask)
        return 0 if first is None else self.cycles - first + 1

    def _no_turn(self, ask: Ask, ripe: int) -> bool:
        """Tell whether an entry of the heap means nothing: of a former ask, or one without a turn.

        An entry outlives its ask, whose id may come back with another policy.
        """
        return (
            not ask.may_preempt
            or ripe != self.ripe_at(ask)
            or ask.preempted
            or ask.id in self.tried
            or ask.application in self.paused
        )

    def owes_turn(self, ask: Ask) -> bool:
        """Tell whether a preemption cycle is due that an ask has a turn in, whatever the pace says."""
        may = ask.may_preempt and not ask.preempted and self.ripe_at(ask) <= self.time
        return may and (self.changed or ask.id not in self.tried)

    @property
    def rules(self) -> Rules:
        """The rules in force, by which the next event is decided.

        Raises:
            WrittenByNewer: This release does not know them.
        """
        return rules_of(self.rules_version)

    def digest(self, record: int | None = None) -> str:
        """Return the digest of this state: SHA-256, in hexadecimal.

        Args:
            record: Version of the record; None: that of the rules in force.
        """
        from evsched.core.record import digest  # noqa: PLC0415 - the record knows the state

        return digest(self, self.rules.record if record is None else record)

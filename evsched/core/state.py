"""The state of one cluster partition: the fold of its log.

Only `evsched.core.reducer` writes to it. What a snapshot holds is the truth
(`evsched.core.record`); everything else here can be made anew from it. Tallies (usage along the
queue paths, what runs on a node) are kept as events are applied, unless nobody looks before the end
of a replay (`evsched.core.tallies`). The index of the family in force serves decisions alone and
exists only from its first use on (`evsched.core.indices`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from evsched.core.queues import Queue
from evsched.core.record import digest
from evsched.core.resources import ResourceTypes
from evsched.core.rules import FIRST, NEWEST, RULES, rules_of
from evsched.core.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.configuration import Configuration, TemplateSpec
    from events.vocabulary import ApplicationSubmitted
    from evsched.core.indices import Index
    from evsched.core.queues import Application
    from evsched.core.resources import Shape
    from evsched.core.rules import Rules
    from evsched.core.workloads import Allocation, Ask, Node, Preemption, Suspension

REMEMBERED_PROPOSALS = 16_384
"""How many proposal ids are kept to recognise repetitions."""

SHAPES_KEPT = 4096
"""How many shapes are kept beside those that asks and allocations can have."""


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
        retry_needed: Whether anything happened since then that could help an ask that was tried in vain.
        unschedulable_since: Asks that wait and were tried in vain by a preemption cycle, with the number of the
            first such cycle.
        paused: (YuniKorn) Applications that are not looked at now, each with the time until then;
            read from the timers.
        dirty_cohorts: (Kueue) The tops of the cohort trees in which something ended since the last
            cycle, by path.
        suspended: What is set aside because evsched failed at it, by kind and subject
            (`evsched.core.suspension`).
        unfinished: (Kueue) The tops of the cohort trees in which the last cycle was cut, by path. An
            ask there is looked at again when the cycle that tried it last is not later than this.
        lost: Nodes that were removed and whose allocations are still to be released (empty between
            steps).
        counting: Whether tallies are kept as events are applied (`evsched.core.tallies`).
        index: Of the family in force; None until a decision needs it.
        arriving: Applications that were submitted and not yet placed (empty between steps).
        local_queues: (Kueue) ``namespace/name`` to ClusterQueue.
    """

    __slots__ = (
        "_recent",
        "_recent_set",
        "allocations",
        "applications",
        "arriving",
        "asks",
        "checkpoint_every",
        "configuration",
        "counting",
        "cycles",
        "dirty_cohorts",
        "dynamic",
        "index",
        "last_checkpoint",
        "last_cycle",
        "leader",
        "leaving",
        "local_queues",
        "lost",
        "nodes",
        "observed",
        "paused",
        "preemptions",
        "queues",
        "quota_runs",
        "reservations",
        "retry_needed",
        "root",
        "rules_version",
        "seq",
        "suspended",
        "templates",
        "term",
        "time",
        "timers",
        "total",
        "types",
        "uncompared",
        "unfinished",
        "unschedulable_since",
        "width",
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
        self.observed = False
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
        self.retry_needed = False
        self.cycles = 0
        self.unschedulable_since: dict[str, int] = {}
        self.unfinished: dict[str, int] = {}
        self.paused: dict[str, int] = {}
        self.dirty_cohorts: dict[str, None] = {}
        self.local_queues: dict[str, str] = {}
        self.suspended: dict[tuple[str, str], Suspension] = {}
        self.lost: dict[str, Node] = {}
        self.arriving: dict[str, ApplicationSubmitted] = {}
        self.counting = True
        self._recent: deque[str] = deque()
        self._recent_set: dict[str, None] = {}
        self.index: Index | None = None

    # -------------------------------------------------------------------------------------- amounts

    def shape(self, resources: Mapping[str, int]) -> Shape:
        """Return the shape of these amounts; a resource type that is new gets room everywhere.

        Shapes that were used lately are kept, as many as can be in use and some more, so that
        amounts that differ each time do not add up.
        """
        kept = max(len(self.types.shapes), len(self.types.known))
        if kept > SHAPES_KEPT + 2 * (len(self.asks) + len(self.allocations)):
            self.types.forget()
        shape = self.types.shape(resources)
        if len(self.types.names) != self.width:
            self.grow_vectors()
        return shape

    def grow_vectors(self) -> None:
        """Make room for the resource types that were added."""
        self.width = len(self.types.names)
        grow = self.width
        self.root.grow_vectors(grow)
        for queue in self.queues.values():
            queue.grow_vectors(grow)
        vectors = [self.total]
        vectors.extend(application.usage for application in self.applications.values())
        for node in self.nodes.values():
            vectors.extend((node.capacity, node.used))
        for vector in vectors:
            vector.extend([0] * (grow - len(vector)))
        self.index = None

    # --------------------------------------------------------------------------------------- queues

    def attach(self, queue: Queue, upper: Queue) -> None:
        """Put a queue that the configuration does not name below another one."""
        queue.order = max((other.order for other in self.queues.values()), default=-1) + 1
        upper.children[queue.name] = queue
        self.queues[queue.path] = queue
        if len(self.types.names) != self.width:
            self.grow_vectors()
        queue.grow_vectors(self.width)

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

    def missed(self, ask: str) -> int:
        """Return how many opportunities an ask missed: preemption cycles from the first one that tried it in vain on."""
        first = self.unschedulable_since.get(ask)
        return 0 if first is None else self.cycles - first + 1

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
            record: Version of the record; None: that of the rules in force, or the newest one that
                this release can make where it does not know them.
        """
        if record is None:
            record = RULES.get(self.rules_version, RULES[NEWEST]).record
        return digest(self, record)

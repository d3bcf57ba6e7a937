"""From events to rows.

`ReadModelRows` folds the log with the scheduler's own reducer and notes, for every event, which rows begin
and end with it. It knows no SQL beyond `Temporal` and the plain inserts of tables that only grow.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from events import vocabulary as v
from evsched.core.reducer import apply
from projections.marks import Marks
from projections.queue_rows import queue_row, text, user_limit_rows
from projections.tables import Tables
from projections.temporal import KEY
from projections.totals import QueueTotals
from projections.watched import WatchedTimers

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from evsched.core.state import State
    from evsched.core.workloads import Allocation, Ask

BUCKET = 4096
"""How many events share a row of the counting tables: a question about a long time adds up rows of whole buckets."""
WIDE = 32
"""How many of those are added up once more, for a question about a very long time."""

MOST_TEXTS = 200_000
"""How many amounts are remembered as text, so that the same ones are not written out again."""

GROWING = {
    "frames": 3,
    "cycles": 2,
    "resource_types": 3,
    "marks": 6,
    "preemptions": 11,
    "victims": 14,
    "quota_actions": 10,
    "rejected": 10,
    "failures": 6,
}
"""Tables that only grow, with their number of columns."""

EARLIEST = -(2**40)
"""From when on waiting counts, in 1935: whoever says that an ask is older must not make a sum of waits too large for SQLite."""

_ADD_WAITS = """INSERT INTO waits (events, bucket, queue, outcome, asks, waited_ms, longest_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET asks = asks + excluded.asks, waited_ms = waited_ms + excluded.waited_ms,
    longest_ms = max(longest_ms, excluded.longest_ms)"""
_ADD_COUNTS = """INSERT INTO victim_counts (events, bucket, kind, queue, reason, victims) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET victims = victims + excluded.victims"""


class ReadModelRows(Tables):
    """The rows of all tables, as of the last event taken.

    Attributes:
        state: The fold of the events taken; None of its indices for decisions is ever built.
    """

    def __init__(self, state: State) -> None:
        """Begin with a state whose rows are in the tables already (or an empty one)."""
        self.state = state
        super().__init__()
        self.watched = state.timers = WatchedTimers(list(state.timers.armed.values()))
        self._running = Counter(one.queue for one in state.allocations.values())
        self._touched: dict[str, None] = {}
        self._types = 0
        self._growing: dict[str, list[tuple[Any, ...]]] = {table: [] for table in GROWING}
        self._totals = QueueTotals(state, self.totals, self._texts)
        self._marks = Marks(state, self._growing["marks"], self._texts)
        self._shape_text: dict[int, str] = {}
        self._vector_text: dict[tuple[int, ...], str] = {}
        self._waits: dict[tuple[Any, ...], list[int]] = {}
        self._counts: dict[tuple[Any, ...], list[int]] = {}

    # --------------------------------------------------------------------------------------- tables

    def load(self, connection: sqlite3.Connection) -> None:
        """Take up what the tables hold."""
        for table in self.temporal:
            table.load(connection)
        # What the file holds was folded without rows: they are compared with the state from here on.
        self._running = Counter(one.queue for one in self.state.allocations.values())
        self.watched.changed.clear()
        self._types = len(self.state.types.names)

    def flush(self, connection: sqlite3.Connection, *, still_open: bool = True) -> None:
        """Write what changed; the caller commits. ``still_open`` as of `Temporal.flush`."""
        for table in self.temporal:
            table.flush(connection, still_open=still_open)
        for sql, sums in ((_ADD_WAITS, self._waits), (_ADD_COUNTS, self._counts)):
            for wide in (1, WIDE):
                # The first of a key is the bucket.
                of = [(BUCKET * wide, key[0] // wide, *key[1:], *sums[key]) for key in sums]
                connection.executemany(sql, of)
            sums.clear()
        for name, rows in self._growing.items():
            if rows:
                places = ", ".join("?" * GROWING[name])
                connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)  # noqa: S608
                rows.clear()

    # --------------------------------------------------------------------------------------- events

    def step(self, frame: int, time: int, seq: int) -> None:
        """Note the end of a step, by which times are turned into places, and what the leaves have then."""
        self._growing["frames"].append((frame, time, seq))
        for path in self._touched:
            self._leaf(path, seq, time)
        self._touched.clear()
        self._totals.step(seq, time)

    def take(self, event: v.AnyEvent, time: int) -> None:
        """Apply an event of a frame with this time and note its rows."""
        handler = _HANDLERS.get(type(event))
        self.state.time = time
        if handler is None:
            apply(self.state, event)
        else:
            handler(self, event, time)
        if self.watched.changed:
            self._armed(event.seq, time)
        if len(self.state.types.names) > self._types:
            names = self.state.types.names
            fresh = range(self._types, len(names))
            self._growing["resource_types"] += [(one, names[one], event.seq) for one in fresh]
            self._types = len(names)

    def _armed(self, seq: int, time: int) -> None:
        """Note the timers that were armed or taken off."""
        armed, table = self.state.timers.armed, self.timers
        for name in self.watched.changed:
            timer = armed.get(name)
            if timer is not None:
                table.put(seq, time, timer.id, timer.due, timer.kind, timer.subject, timer.cause)
            elif name in table.open:
                table.end(seq, time, name)
        self.watched.changed.clear()

    def _amounts(self, shape: int) -> str:
        found = self._shape_text.get(shape)
        if found is None:
            found = self._shape_text[shape] = text(self.state.types.shapes[shape].resources)
        return found

    def _leaf(self, path: str, seq: int, time: int) -> None:
        """Note what a leaf has at the end of a step that changed it."""
        queue = self.state.queues.get(path)
        if queue is None:
            return
        self._totals.changed(queue)
        write = self._texts
        self.usage.put(
            seq, time, path, write(tuple(queue.usage)), write(tuple(queue.pending)), write(tuple(queue.preempting)),
            queue.pending_asks, self._running[path], len(queue.applications),
        )  # fmt: skip

    def _texts(self, amounts: tuple[int, ...]) -> str:
        return self._vector_text.get(amounts) or self._vector(amounts)

    def _vector(self, amounts: tuple[int, ...]) -> str:
        if len(self._vector_text) >= MOST_TEXTS:
            self._vector_text.clear()
        names = self.state.types.names
        found = self._vector_text[amounts] = text(
            {names[i]: amount for i, amount in enumerate(amounts) if amount}
        )
        return found

    def _configuration(self, event: v.ConfigurationApplied, time: int) -> None:
        apply(self.state, event)
        configuration = msgspec.to_builtins(event.configuration)
        for key in tuple(self.configurations.open):
            self.configurations.end(event.seq, time, key)
        kind = configuration["format"]
        self.configurations.put(
            event.seq, time, kind, text(event.configuration), event.document, event.proposal,
            event.source, event.actor, event.message,
        )  # fmt: skip
        self._all_queues(event.seq, time)

    def _all_queues(self, seq: int, time: int) -> None:
        """Note every queue that came, changed or went."""
        names = self.state.types.names
        present: dict[str, tuple[Any, ...]] = {}
        limits: dict[str, tuple[Any, ...]] = {}
        for queue in (self.state.root, *self.state.queues.values()):
            if queue.path:
                present[queue.path] = queue_row(queue, names)
                limits.update((one[0], one) for one in user_limit_rows(queue))
        for path in [path for path in self.usage.open if path not in present]:
            self.usage.end(seq, time, path)
        self.queues.become(seq, time, present)
        self.user_limits.become(seq, time, limits)
        self._totals.arranged(seq, time)

    def _queue_event(self, event: v.QueueCreated | v.QueueRemoved, time: int) -> None:
        apply(self.state, event)
        self._all_queues(event.seq, time)

    def _node(self, event: v.NodeRegistered | v.NodeUpdated, time: int) -> None:
        apply(self.state, event)
        node = self.state.nodes[event.node]
        self.nodes.put(
            event.seq, time, node.name, text(node.resources), text(node.labels), int(node.schedulable),
        )  # fmt: skip

    def _node_removed(self, event: v.NodeRemoved, time: int) -> None:
        apply(self.state, event)
        self.nodes.end(event.seq, time, event.node)

    def _application(self, name: str, seq: int, time: int) -> None:
        """Note an application that may have come, aged or gone."""
        application = self.state.applications.get(name)
        held = self.applications.open.get(name)
        if application is None:
            if held is not None:
                self.applications.end(seq, time, name)
        elif held is None or held[-1] != application.created:
            # An ask that is older than its application makes the application older too.
            self.applications.put(
                seq, time, name, application.leaf.path, application.user, text(application.groups), application.created
            )  # fmt: skip

    def _placed(self, event: v.ApplicationPlaced, time: int) -> None:
        apply(self.state, event)
        self._application(event.application, event.seq, time)
        application = self.state.applications.get(event.application)
        if application is not None:
            self._touched[application.leaf.path] = None

    def _application_removed(self, event: v.ApplicationRemoved, time: int) -> None:
        application = self.state.applications.get(event.application)
        apply(self.state, event)
        self._application(event.application, event.seq, time)
        if application is not None:
            self._touched[application.leaf.path] = None

    def _asked(self, event: v.AskSubmitted, time: int) -> None:
        apply(self.state, event)
        ask = self.state.asks[event.ask]
        self.asks.put(
            event.seq, time, ask.id, ask.application, ask.queue, self._amounts(ask.shape), ask.priority, ask.created,
            ask.required_node, "",
        )  # fmt: skip
        self._application(ask.application, event.seq, time)
        self._marks.application(ask.application, event.seq)
        self._touched[ask.queue] = None

    def _withdrawn(self, event: v.AskWithdrawn, time: int) -> None:
        ask = self.state.asks.get(event.ask)
        apply(self.state, event)
        if ask is None:  # it was set aside, and withdrawn with that
            return
        self._unasked(ask, event.seq, time, "withdrawn")
        self._application(ask.application, event.seq, time)
        self._marks.application(ask.application, event.seq)
        self._touched[ask.queue] = None

    def _unasked(self, ask: Ask, seq: int, time: int, outcome: str) -> None:
        waited = time - max(min(ask.created, self.asks.open[ask.id][2]), EARLIEST)
        key = (seq // BUCKET, ask.queue, outcome)
        figures = self._waits.get(key)
        if figures is None:
            self._waits[key] = [1, waited, waited]
        else:
            figures[0] += 1
            figures[1] += waited
            figures[2] = max(figures[2], waited)
        self.asks.end(seq, time, ask.id, outcome)
        if ask.id in self.reservations.open:
            self.reservations.end(seq, time, ask.id)
        if ask.id in self.attempts.open:
            self.attempts.end(seq, time, ask.id)
        if (
            self.pauses.open
            and ask.application in self.pauses.open
            and ask.application not in self.state.paused
        ):
            # A pause ends with the last ask of its application, and no event of its own says so.
            self.pauses.end(seq, time, ask.application, f"last ask {outcome}")

    def _allocation(self, allocation: Allocation, seq: int, time: int) -> None:
        self.allocations.put(
            seq, time, allocation.id, allocation.application, allocation.queue, allocation.node,
            self._amounts(allocation.shape), allocation.priority, allocation.created, allocation.bound,
            allocation.eviction_requested, allocation.victim_of, allocation.quota_of, "",
        )  # fmt: skip

    def _bound(self, event: v.AllocationBound | v.BindingObserved, time: int) -> None:
        ask = self.state.asks.get(event.ask)
        apply(self.state, event)
        if ask is None:  # the cluster says that it runs where evsched bound it
            return
        self._unasked(ask, event.seq, time, "bound")
        self._began(self.state.allocations[event.ask], event.seq, time)

    def _restored(self, event: v.AllocationRestored, time: int) -> None:
        apply(self.state, event)
        allocation = self.state.allocations[event.allocation]
        self._application(allocation.application, event.seq, time)
        self._began(allocation, event.seq, time)

    def _began(self, allocation: Allocation, seq: int, time: int) -> None:
        self._allocation(allocation, seq, time)
        self._running[allocation.queue] += 1
        self._worked(allocation, seq)

    def _worked(self, allocation: Allocation, seq: int) -> None:
        """Note what an allocation that began or ended changed of its queue, its application and its node."""
        self._marks.application(allocation.application, seq)
        if allocation.node is not None:
            self._marks.node(allocation.node, seq)
        self._touched[allocation.queue] = None

    def _leaving(self, event: v.EvictionObserved, time: int) -> None:
        apply(self.state, event)
        self._evicted([event.allocation], event.seq, time)

    def _released(self, event: v.AllocationReleased, time: int) -> None:
        allocation = self.state.allocations[event.allocation]
        apply(self.state, event)
        self.allocations.end(event.seq, time, allocation.id, event.reason)
        self._application(allocation.application, event.seq, time)
        self._running[allocation.queue] -= 1
        self._worked(allocation, event.seq)

    def _reserved(
        self, event: v.AskNominated | v.NodeReserved | v.ReservationRestored, time: int
    ) -> None:
        apply(self.state, event)
        self.reservations.put(event.seq, time, event.ask, event.node)
        self._attempt(event.ask, event.seq, time)

    def _unreserved(self, event: v.ReservationReleased, time: int) -> None:
        apply(self.state, event)
        self.reservations.end(event.seq, time, event.ask)

    # ------------------------------------------------------------------------------------ decisions

    def _attempt(self, name: str, seq: int, time: int) -> None:
        """Note what is remembered of the attempts to preempt for an ask that waits."""
        ask = self.state.asks.get(name)
        if ask is None:
            return
        values = (name, self.state.unschedulable_since.get(name), int(ask.preempted), ask.failed)
        held = self.attempts.open.get(name)
        if values[1:] == (None, 0, ""):
            if held is not None:
                self.attempts.end(seq, time, name)
        elif held is None or tuple(held[KEY:]) != values:
            self.attempts.put(seq, time, *values)

    def _cycle(self, event: v.CycleStarted, time: int) -> None:
        apply(self.state, event)
        self._growing["cycles"].append((event.seq, self.state.cycles))
        for name in event.tried:
            self._attempt(name, event.seq, time)

    def _paused(self, event: v.ApplicationPaused, time: int) -> None:
        apply(self.state, event)
        leaf = self.state.applications[event.application].leaf
        threshold = leaf.settings.backoff_asks
        self.pauses.put(
            event.seq, time, event.application, leaf.path, event.until, event.asks, threshold, ""
        )

    def _resumed(self, event: v.ApplicationResumed, time: int) -> None:
        apply(self.state, event)
        outcome = "configuration" if event.due is None else "time over"
        self.pauses.end(event.seq, time, event.application, outcome)

    def _victims(
        self,
        event: v.PreemptionDecided | v.QuotaPreemptionDecided,
        time: int,
        *,
        for_ask: str | None,
        for_queue: str,
        kind: str,
    ) -> None:
        for number, victim in enumerate(event.victims):
            allocation = self.state.allocations[victim.id]
            key = (event.seq // BUCKET, kind, victim.queue, victim.reason)
            self._counts.setdefault(key, [0])[0] += 1
            self._growing["victims"].append((
                event.seq, number, time, victim.id, allocation.application, victim.queue, allocation.node,
                self._amounts(allocation.shape), allocation.priority, victim.reason, victim.message, for_ask, for_queue, kind,
            ))  # fmt: skip

    def _preempted(self, event: v.PreemptionDecided, time: int) -> None:
        apply(self.state, event)
        ask = self.state.asks[event.ask]
        self._growing["preemptions"].append((
            event.seq, time, event.due, ask.id, ask.application, ask.queue, ask.priority, event.node, event.algorithm,
            int(event.cut), time - ask.created,
        ))  # fmt: skip
        self._victims(event, time, for_ask=ask.id, for_queue=ask.queue, kind=event.algorithm)
        self._evicted([victim.id for victim in event.victims], event.seq, time)
        self._reservation(ask.id, event.seq, time)
        self._attempt(ask.id, event.seq, time)

    def _evicted(self, names: Sequence[str], seq: int, time: int) -> None:
        """Note allocations whose eviction was requested or called off, and what of their queues is leaving."""
        for name in names:
            self._allocation(self.state.allocations[name], seq, time)
        for queue in dict.fromkeys(self.state.allocations[name].queue for name in names):
            self._touched[queue] = None

    def _reservation(self, ask: str, seq: int, time: int) -> None:
        node = self.state.reservations.get(ask)
        held = self.reservations.open.get(ask)
        if node is None:
            if held is not None:
                self.reservations.end(seq, time, ask)
        elif held is None or held[-1] != node:
            self.reservations.put(seq, time, ask, node)

    def _preemption_withdrawn(self, event: v.PreemptionWithdrawn, time: int) -> None:
        apply(self.state, event)
        self._evicted(event.victims, event.seq, time)
        if event.ask is not None:
            self._reservation(event.ask, event.seq, time)
            self._attempt(event.ask, event.seq, time)

    def _quota(self, event: v.AnyEvent, time: int) -> None:
        apply(self.state, event)
        action = type(event).__name__.removeprefix("QuotaPreemption").lower()
        victims = getattr(event, "victims", ())
        self._growing["quota_actions"].append((
            event.seq, time, event.due, event.queue, action, getattr(event, "at", None), getattr(event, "reason", ""),  # type: ignore[union-attr]
            text(getattr(event, "target", {})), text(getattr(event, "unmet", {})), len(victims),
        ))  # fmt: skip
        if isinstance(event, v.QuotaPreemptionDecided):
            self._victims(event, time, for_ask=None, for_queue=event.queue, kind="quota")
            self._evicted([victim.id for victim in victims], event.seq, time)

    def _rejected(self, event: v.InputRejected, time: int) -> None:
        apply(self.state, event)
        kind = type(event.input).__name__ if event.input is not None else ""
        self._growing["rejected"].append((
            event.seq, time, event.code, event.reason, event.proposal, event.source, event.position, kind,
            text(event.input) if event.input is not None else event.raw, event.actor,
        ))  # fmt: skip

    def _failed(self, event: v.PreemptionFailed, time: int) -> None:
        apply(self.state, event)
        self._attempt(event.ask, event.seq, time)
        queue = self.state.asks[event.ask].queue
        row = (event.seq, time, event.ask, queue, event.reason, int(event.cut))
        self._growing["failures"].append(row)


_HANDLERS: dict[type, Callable[[ReadModelRows, Any, int], None]] = {
    v.ConfigurationApplied: ReadModelRows._configuration,  # noqa: SLF001 - the dispatch table of the class above
    v.QueueCreated: ReadModelRows._queue_event,  # noqa: SLF001
    v.QueueRemoved: ReadModelRows._queue_event,  # noqa: SLF001
    v.NodeRegistered: ReadModelRows._node,  # noqa: SLF001
    v.NodeUpdated: ReadModelRows._node,  # noqa: SLF001
    v.NodeRemoved: ReadModelRows._node_removed,  # noqa: SLF001
    v.ApplicationPlaced: ReadModelRows._placed,  # noqa: SLF001
    v.ApplicationRemoved: ReadModelRows._application_removed,  # noqa: SLF001
    v.AskSubmitted: ReadModelRows._asked,  # noqa: SLF001
    v.AskWithdrawn: ReadModelRows._withdrawn,  # noqa: SLF001
    v.AllocationBound: ReadModelRows._bound,  # noqa: SLF001
    v.AllocationRestored: ReadModelRows._restored,  # noqa: SLF001
    v.BindingObserved: ReadModelRows._bound,  # noqa: SLF001
    v.EvictionObserved: ReadModelRows._leaving,  # noqa: SLF001
    v.AllocationReleased: ReadModelRows._released,  # noqa: SLF001
    v.ApplicationPaused: ReadModelRows._paused,  # noqa: SLF001
    v.ApplicationResumed: ReadModelRows._resumed,  # noqa: SLF001
    v.AskNominated: ReadModelRows._reserved,  # noqa: SLF001
    v.NodeReserved: ReadModelRows._reserved,  # noqa: SLF001
    v.ReservationRestored: ReadModelRows._reserved,  # noqa: SLF001
    v.ReservationReleased: ReadModelRows._unreserved,  # noqa: SLF001
    v.PreemptionDecided: ReadModelRows._preempted,  # noqa: SLF001
    v.PreemptionWithdrawn: ReadModelRows._preemption_withdrawn,  # noqa: SLF001
    v.QuotaPreemptionScheduled: ReadModelRows._quota,  # noqa: SLF001
    v.QuotaPreemptionCancelled: ReadModelRows._quota,  # noqa: SLF001
    v.QuotaPreemptionDecided: ReadModelRows._quota,  # noqa: SLF001
    v.QuotaPreemptionUnhelpful: ReadModelRows._quota,  # noqa: SLF001
    v.InputRejected: ReadModelRows._rejected,  # noqa: SLF001
    v.PreemptionFailed: ReadModelRows._failed,  # noqa: SLF001
    v.CycleStarted: ReadModelRows._cycle,  # noqa: SLF001
}

"""What the scheduler knows now, and who leads: the question of `evsched status`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from events.chain import ChainReader
from events.errors import AccessDenied
from events.vocabulary import (
    QuotaPreemptionCancelled,
    QuotaPreemptionDecided,
    QuotaPreemptionScheduled,
    QuotaPreemptionUnhelpful,
)
from evsched.core.engine import Engine
from evsched.core.kueue.model import quota_in
from evsched.core.quota.targets import over
from evsched.core.suspension import in_force
from evsched.core.tallies import uncounted
from replays.history.rebuild import apply_step
from replays.history.rows import ByResource, QueueRow
from replays.history.views import queues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.chain import RecordedStep
    from events.streams.protocols import Heartbeat
    from evsched.core.state import State
    from replays.history.rebuild import History


_ACTIONS: dict[type, Literal["scheduled", "cancelled", "decided", "unhelpful"]] = {
    QuotaPreemptionScheduled: "scheduled",
    QuotaPreemptionCancelled: "cancelled",
    QuotaPreemptionDecided: "decided",
    QuotaPreemptionUnhelpful: "unhelpful",
}


class StatusQuestion(Struct, frozen=True, kw_only=True):
    """What is known now, and who leads?

    Attributes:
        inbox_end: Position at which the inbox ends, from which follows how many proposals have no
            answer yet; None: it cannot be seen.
    """

    inbox_end: int | None = None


class QueueStatus(Struct, frozen=True, kw_only=True):
    """What a queue uses, waits for, is guaranteed and may use at most, by resource; what is not there is not limited.

    Attributes:
        waiting: How many asks wait here and below.
        preempting: What of ``used`` is leaving.
        guaranteed, max: (YuniKorn)
        nominal, quota, borrowing_limit, share: (Kueue) As of `QueueRow`.
    """

    queue: str
    leaf: bool
    draining: bool
    waiting: int
    used: ByResource
    preempting: ByResource
    pending: ByResource
    guaranteed: ByResource | UnsetType = UNSET
    max: ByResource | UnsetType = UNSET
    nominal: ByResource | UnsetType = UNSET
    quota: ByResource | UnsetType = UNSET
    borrowing_limit: ByResource | UnsetType = UNSET
    share: int | UnsetType = UNSET


class TimerStatus(Struct, frozen=True, kw_only=True):
    """A timer that is armed, due at milliseconds."""

    id: str
    kind: str
    subject: str
    due: int


class SuspendedStatus(Struct, frozen=True, kw_only=True):
    """What is set aside because evsched failed at it.

    Attributes:
        kind, subject: As in the DecisionSuspended.
        since: When that was, milliseconds.
        place: Of the fault.
    """

    kind: str
    subject: str
    since: int
    place: str


class QuotaAction(Struct, frozen=True, kw_only=True):
    """The last thing that quota enforcement did about a queue.

    Attributes:
        action: ``scheduled``: it will be enforced at ``due``; ``cancelled``; ``decided``: victims
            are being evicted; ``unhelpful``: it preempted nobody.
        seq, time: Of that event.
        due: When it will be enforced; None: it was, or will not be.
        target: What had to go; unmet: what of it had no lawful victim.
        above: (YuniKorn) What the queue uses above its maximum now, once those leaving are gone.
    """

    queue: str
    action: Literal["scheduled", "cancelled", "decided", "unhelpful"]
    time: int
    seq: int
    due: int | None = None
    reason: str = ""
    target: ByResource = {}
    unmet: ByResource = {}
    above: ByResource = {}


class StatusAnswer(Struct, frozen=True, kw_only=True):
    """What the scheduler knows, rebuilt from the log.

    Attributes:
        resigned: The leader said that it no longer leads.
        release: Of the leader; empty: one from before it was named.
        observes: The leader decides nothing, as the cluster's own scheduler does that.
        rules: Version of the rules in force.
        last_heartbeat: Of the leader, by its own clock; None: none can be seen.
        frame, seq, time: Of the end of the log.
        unanswered: Proposals that have no answer yet; None: unknown.
        partition: As the configuration calls it; None: there is none.
        next_due: When the next step is due of itself; None: not before something changes.
        digest: Two readers of one log have the same.
    """

    log_id: str
    term: int
    leader: str
    release: str
    rules: int
    observes: bool
    resigned: bool
    last_heartbeat: int | None
    address: str
    frame: int
    seq: int
    time: int
    unanswered: int | None
    ignored_frames: int
    partition: str | None
    nodes: int
    applications: int
    allocations: int
    waiting: int
    preemptions_under_way: int
    next_due: int | None
    digest: str
    queues: list[QueueStatus]
    timers: list[TimerStatus]
    suspended: list[SuspendedStatus]
    quota_actions: list[QuotaAction]


async def status(history: History, question: StatusQuestion) -> StatusAnswer:
    """Rebuild the state from the whole log: the last enforcement of each queue may lie far back."""
    engine, reader = Engine(), ChainReader()
    last: dict[str, QuotaAction] = {}
    with uncounted(engine.state):
        async for step in history.steps(reader):
            apply_step(engine, step)
            _note(last, step)
    beat = None
    with suppress(AccessDenied):  # a right of its own, which an auditor need not have
        beat = await history.log.last_heartbeat()
    return _answer(engine, reader, beat, question.inbox_end, last)


def _note(last: dict[str, QuotaAction], step: RecordedStep) -> None:
    """Keep the last thing that quota enforcement did about each queue."""
    for event in step.events:
        action = _ACTIONS.get(type(event))
        if action is not None:
            # All four types name their queue; what only some of them have is empty elsewhere.
            last[event.queue] = QuotaAction(  # type: ignore[union-attr]
                queue=event.queue,  # type: ignore[union-attr]
                action=action,
                time=step.time,
                seq=event.seq,
                due=getattr(event, "at", None),
                reason=getattr(event, "reason", ""),
                target=getattr(event, "target", {}),
                unmet=getattr(event, "unmet", {}),
            )


def _actions(state: State, last: Mapping[str, QuotaAction]) -> list[QuotaAction]:
    """Return the last actions with what is above each maximum now, those that concern nothing left out."""
    found = []
    for path, action in last.items():
        queue = state.queues.get(path, state.root)
        by_maximum = queue.path == path and quota_in(queue) is None
        above = state.types.named(over(queue, queue.maximum).items()) if by_maximum else {}
        if action.action == "scheduled" or action.target or above:
            found.append(replace(action, above=above))
    return found


def _answer(
    engine: Engine,
    reader: ChainReader,
    beat: Heartbeat | None,
    inbox_end: int | None,
    last: Mapping[str, QuotaAction],
) -> StatusAnswer:
    state, head = engine.state, reader.head
    own = beat if beat is not None and beat.term == head.term else None
    armed = sorted(state.timers.armed.values(), key=lambda one: (one.due, one.id))
    return StatusAnswer(
        log_id=head.log_id,
        term=head.term,
        leader=head.leader,
        release=reader.release or "",
        rules=state.rules_version,
        observes=state.observed,
        resigned=own is not None and own.resigned,
        last_heartbeat=None if own is None else own.time,
        address="" if own is None else own.address,
        frame=head.frame,
        seq=head.next_seq - 1,
        time=head.time,
        unanswered=None if inbox_end is None else max(0, inbox_end - head.inbox_next),
        ignored_frames=reader.ignored,
        partition=None if state.configuration is None else state.configuration.partition,
        nodes=len(state.nodes),
        applications=len(state.applications),
        allocations=len(state.allocations),
        waiting=len(state.asks),
        preemptions_under_way=len(state.preemptions),
        next_due=engine.next_due(),
        digest=state.digest(),
        queues=[_queue(row) for row in sorted(queues(state), key=lambda row: row.queue)],
        timers=[
            TimerStatus(id=one.id, kind=one.kind, subject=one.subject, due=one.due) for one in armed
        ],
        suspended=[
            SuspendedStatus(kind=one.kind, subject=one.subject, since=one.since, place=one.place)
            for one in in_force(state)
        ],
        quota_actions=_actions(state, last),
    )


def _queue(row: QueueRow) -> QueueStatus:
    kueue = row.nominal is not UNSET
    return QueueStatus(
        queue=row.queue,
        leaf=row.leaf,
        draining=row.draining,
        waiting=row.pending_asks,
        used=row.usage,
        preempting=row.preempting,
        pending=row.pending,
        guaranteed=row.guaranteed,
        max=row.maximum,
        nominal=row.nominal,
        # A ClusterQueue lends to nobody below it: its quota is its own.
        quota=row.nominal if kueue and row.quota is UNSET else row.quota,
        borrowing_limit=row.borrowing_limit,
        share=row.share,
    )

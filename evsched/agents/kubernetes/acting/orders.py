"""What the log wants of each task: which node it is bound to, whether it has to leave, why it waits.

A fold of the log and nothing else. So an agent that is started anywhere wants what the one before it
wanted, and the ``seq`` of a decision together with the uid of the pod names each side effect for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AllocationRestored,
    AnyEvent,
    AskNominated,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    EvictionRefused,
    EvictionRepeated,
    InputRejected,
    NodeReserved,
    PreemptionDecided,
    PreemptionFailed,
    PreemptionWithdrawn,
    QuotaPreemptionDecided,
    ReservationReleased,
    Victim,
)
from evsched.agents.kubernetes.logged import SOURCE

_NAMED = 3
"""How many victims a sentence names before it counts the others."""


class VictimOrder(Struct, frozen=True, kw_only=True):
    """That a task has to leave.

    Attributes:
        seq: Of the decision.
        asked: Of the event that asked for it last, which may be a repetition.
        rule: What made it eligible.
        preemptor: The ask that gets its room; empty: its queue comes down to its maximum.
        beneficiary: Who gains, for people: the ask and its node, or the queue.
        refused: The log knows that it was refused since it was asked for last.
    """

    seq: int
    asked: int
    rule: str
    preemptor: str
    beneficiary: str
    refused: bool = False

    @property
    def repeated(self) -> bool:
        """Tell whether the pod had its grace and is asked again."""
        return self.asked > self.seq


class TaskOrder(Struct, gc=False, kw_only=True):
    """What the log says of a task, as far as something has to be done about it.

    Attributes:
        uid: Of the pod that it was made for; another pod of the name is another task.
        bound: The ``seq`` that bound it; 0: it waits, or was found running.
        node: Where it runs; empty: it waits, or was admitted by quota alone.
        runs: It is bound.
        confirmed: The log knows that the cluster has it there.
        leave: None: it may stay.
        nominated: The node that is kept for it while it waits; empty: none is.
        cause: Why it waits, as the log last said; empty: the log has said nothing yet.
        cause_seq: Of the event that said so.
        rejected: The log has not taken it.
    """

    uid: str
    bound: int = 0
    node: str = ""
    runs: bool = False
    confirmed: bool = False
    leave: VictimOrder | None = None
    nominated: str = ""
    cause: str = ""
    cause_seq: int = 0
    rejected: bool = False


class TaskOrders:
    """The orders of all tasks.

    Attributes:
        all: By the name of the task.
    """

    def __init__(self) -> None:
        """Begin with an empty log."""
        self.all: dict[str, TaskOrder] = {}

    def take(self, event: AnyEvent) -> tuple[str, ...]:
        """Take one event of the log; return the tasks of which it says something else."""
        handler = _HANDLERS.get(type(event))
        return () if handler is None else handler(self.all, event)

    def pod_gone(self, task: str) -> None:
        """Forget a task that the log has not taken, now that its pod is gone; every other one the log ends."""
        order = self.all.get(task)
        if order is not None and order.rejected:
            del self.all[task]


_All = dict[str, TaskOrder]
_Touched = tuple[str, ...]


def _submitted(orders: _All, event: AskSubmitted) -> _Touched:
    orders[event.ask] = TaskOrder(uid=event.uid or "", cause_seq=event.seq)
    return (event.ask,)


def _restored(orders: _All, event: AllocationRestored) -> _Touched:
    orders[event.allocation] = TaskOrder(
        uid=event.uid or "", node=event.node or "", runs=True, confirmed=True
    )
    return (event.allocation,)


def _bound(orders: _All, event: AllocationBound) -> _Touched:
    order = orders.get(event.ask)
    if order is None:
        return ()
    order.bound, order.node, order.runs = event.seq, event.node or "", True
    order.nominated, order.cause = "", ""
    return (event.ask,)


def _observed(orders: _All, event: BindingObserved) -> _Touched:
    order = orders.get(event.ask)
    if order is None:
        return ()
    order.runs = order.confirmed = True
    order.node, order.nominated, order.cause = event.node or "", "", ""
    return (event.ask,)


def _released(orders: _All, event: AllocationReleased) -> _Touched:
    orders.pop(event.allocation, None)
    return (event.allocation,)


def _withdrawn(orders: _All, event: AskWithdrawn) -> _Touched:
    orders.pop(event.ask, None)
    return (event.ask,)


def _preempted(orders: _All, event: PreemptionDecided) -> _Touched:
    where = event.node or "its quota"
    gone = _tell(orders, event.seq, event.victims, event.ask, f"{event.ask} on {where}")
    order = orders.get(event.ask)
    if order is None:
        return gone
    order.nominated = event.node or ""
    order.cause, order.cause_seq = f"waits until {_list(event.victims)} left {where}", event.seq
    return (*gone, event.ask)


def _over_quota(orders: _All, event: QuotaPreemptionDecided) -> _Touched:
    return _tell(orders, event.seq, event.victims, "", f"the maximum of queue {event.queue}")


def _tell(
    orders: _All, seq: int, victims: tuple[Victim, ...], preemptor: str, beneficiary: str
) -> _Touched:
    for victim in victims:
        order = orders.get(victim.id)
        # What is leaving already stays the victim of the decision that asked first.
        if order is not None and order.leave is None:
            order.leave = VictimOrder(
                seq=seq,
                asked=seq,
                rule=victim.message or victim.reason,
                preemptor=preemptor,
                beneficiary=beneficiary,
            )
    return tuple(victim.id for victim in victims)


def _list(victims: tuple[Victim, ...]) -> str:
    """Return who has to leave, as the subject of a sentence."""
    if not victims:
        return "those that are leaving have"
    names = ", ".join(victim.id for victim in victims[:_NAMED])
    more = len(victims) - _NAMED
    if more > 0:
        return f"{names} and {more} more have"
    return f"{names} {'has' if len(victims) == 1 else 'have'}"


def _nominated(orders: _All, event: AskNominated) -> _Touched:
    said = f"waits until those that are leaving have left {event.node}"
    return _because(orders, event.ask, said, event.seq, event.node)


def _reserved(orders: _All, event: NodeReserved) -> _Touched:
    return _because(orders, event.ask, f"waits for room on {event.node}", event.seq)


def _failed(orders: _All, event: PreemptionFailed) -> _Touched:
    return _because(orders, event.ask, event.reason, event.seq)


def _unreserved(orders: _All, event: ReservationReleased) -> _Touched:
    return _because(orders, event.ask, event.reason, event.seq)


def _because(
    orders: _All, ask: str, cause: str, seq: int, nominated: str | None = None
) -> _Touched:
    order = orders.get(ask)
    if order is None or order.runs:
        return ()
    order.cause, order.cause_seq = cause, seq
    if nominated is not None:
        order.nominated = nominated
    return (ask,)


def _again(orders: _All, event: EvictionRepeated) -> _Touched:
    order = orders.get(event.allocation)
    if order is None or order.leave is None:
        return ()
    order.leave = replace(order.leave, asked=event.seq, refused=False)
    return (event.allocation,)


def _eviction_refused(orders: _All, event: EvictionRefused) -> _Touched:
    order = orders.get(event.allocation)
    if order is not None and order.leave is not None:
        order.leave = replace(order.leave, refused=True)
    return ()


def _spared(orders: _All, event: PreemptionWithdrawn) -> _Touched:
    for victim in event.victims:
        if victim in orders:
            orders[victim].leave = None
    if event.ask is None:
        return event.victims
    return (*event.victims, *_because(orders, event.ask, event.reason, event.seq, ""))


def _rejected(orders: _All, event: InputRejected) -> _Touched:
    """Note why the log does not take a pod that waits; whoever owns it has to know."""
    found = event.input
    if event.source != SOURCE or not isinstance(found, AskSubmitted) or found.ask in orders:
        return ()
    orders[found.ask] = TaskOrder(
        uid=found.uid or "", cause=event.reason, cause_seq=event.seq, rejected=True
    )
    return (found.ask,)


_HANDLERS: dict[type, Callable[[_All, Any], _Touched]] = {
    AskSubmitted: _submitted,
    AskWithdrawn: _withdrawn,
    AllocationRestored: _restored,
    AllocationBound: _bound,
    BindingObserved: _observed,
    AllocationReleased: _released,
    PreemptionDecided: _preempted,
    QuotaPreemptionDecided: _over_quota,
    EvictionRepeated: _again,
    EvictionRefused: _eviction_refused,
    PreemptionWithdrawn: _spared,
    AskNominated: _nominated,
    NodeReserved: _reserved,
    ReservationReleased: _unreserved,
    PreemptionFailed: _failed,
    InputRejected: _rejected,
}

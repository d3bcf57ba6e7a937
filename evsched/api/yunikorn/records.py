"""Events as YuniKorn's event records: one record an event, so that a record's id is its ``seq`` less one.

Ids count from 0 there and have no gaps, and clients read on by them. An event that YuniKorn knows
nothing of becomes a record of type 0, which its clients pass over. The numbers are those of its
scheduler interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from events import vocabulary as v
from evsched.api.yunikorn import answers
from evsched.api.yunikorn.answers import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from projections.lives import Subject

REQUEST, APP, NODE, QUEUE = 1, 2, 3, 4
"""What an event is about; 0: nothing that YuniKorn knows."""
SET, ADD, REMOVE = 1, 2, 3
"""What happened to it; 0: nothing changed."""

DETAILS = {
    "request cancelled": 100, "allocation": 200, "request": 201, "rejected": 202, "new": 203, "completed": 210,
    "node gone": 300, "schedulable": 302, "capacity": 304, "reservation": 306, "configuration": 400, "dynamic": 401,
    "application": 405, "released": 500, "preempted": 501, "node removed": 504,
}  # fmt: skip
"""Change details that are written here, by what they say."""

_RELEASED = {"preempted": "preempted", "node removed": "node removed"}


def record(
    event: v.AnyEvent, time: int, subjects: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    """Return the record of an event of a frame with this time (milliseconds).

    Args:
        event: Any.
        time: Of its frame.
        subjects: What it is about; without them a record lacks application and amounts.
    """
    make = _RECORDS.get(type(event))
    if make is None:
        return _made(time, 0, message=type(event).__name__)
    return make(event, time, subjects)


def named(event: v.AnyEvent) -> str:
    """Return the id of the ask or allocation that has to be looked up for the record of an event; empty: none."""
    if isinstance(event, v.AllocationBound | v.BindingObserved):
        return event.ask
    if isinstance(event, v.AllocationReleased):
        return event.allocation
    return event.ask if isinstance(event, v.AskWithdrawn | v.PreemptionDecided) else ""


def _made(  # noqa: PLR0913 - one value a field
    time: int,
    kind: int,
    subject: str = "",
    *,
    change: int = 0,
    detail: str = "",
    reference: str = "",
    message: str = "",
    amounts: Mapping[str, int] | None = None,
) -> answers.EventRecordInfo:
    return answers.EventRecordInfo(
        type=kind,
        object_id=subject,
        message=message,
        timestamp_nano=time * NS,
        event_change_type=change,
        event_change_detail=DETAILS.get(detail, 0),
        reference_id=reference,
        resource=answers.EventAmountsInfo(
            resources={
                name: answers.QuantityInfo(value=amount) for name, amount in sorted(amounts.items())
            }
        )
        if amounts
        else answers.NO_AMOUNTS,
    )


def _asked(event: v.AskSubmitted, time: int, _: Mapping[str, Subject]) -> answers.EventRecordInfo:
    application = event.application or event.queue
    return _made(
        time,
        APP,
        application,
        change=ADD,
        detail="request",
        reference=event.ask,
        amounts=event.resources,
    )


def _withdrawn(
    event: v.AskWithdrawn, time: int, subjects: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    found = subjects.get(event.ask)
    return _made(
        time,
        REQUEST,
        event.ask,
        change=REMOVE,
        detail="request cancelled",
        reference="" if found is None else found.application,
        amounts=None if found is None else found.resources,
    )


def _bound(
    event: v.AllocationBound | v.BindingObserved, time: int, subjects: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    return _of_allocation(event.ask, time, subjects, change=ADD, detail="allocation")


def _restored(
    event: v.AllocationRestored, time: int, _: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    return _made(
        time,
        APP,
        event.application or event.queue,
        change=ADD,
        detail="allocation",
        reference=event.allocation,
        amounts=event.resources,
    )


def _released(
    event: v.AllocationReleased, time: int, subjects: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    detail = _RELEASED.get(event.reason, "released")
    return _of_allocation(event.allocation, time, subjects, change=REMOVE, detail=detail)


def _of_allocation(
    name: str, time: int, subjects: Mapping[str, Subject], *, change: int, detail: str
) -> answers.EventRecordInfo:
    found = subjects.get(name)
    return _made(
        time,
        APP,
        "" if found is None else found.application,
        change=change,
        detail=detail,
        reference=name,
        amounts=None if found is None else found.resources,
    )


def _rejected(
    event: v.InputRejected, time: int, _: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    asked = event.input
    if isinstance(asked, v.ApplicationSubmitted):
        return _made(
            time, APP, asked.application, change=REMOVE, detail="rejected", message=event.reason
        )
    if isinstance(asked, v.AskSubmitted):
        return _made(
            time,
            REQUEST,
            asked.ask,
            change=REMOVE,
            detail="request cancelled",
            reference=asked.application,
            message=event.reason,
        )
    return _made(time, 0, message=event.reason)


def _updated(event: v.NodeUpdated, time: int, _: Mapping[str, Subject]) -> answers.EventRecordInfo:
    if event.capacity is not None:
        return _made(time, NODE, event.node, change=SET, detail="capacity", amounts=event.capacity)
    if event.schedulable is not None:
        said = f"schedulable: {'true' if event.schedulable else 'false'}"
        return _made(time, NODE, event.node, change=SET, detail="schedulable", message=said)
    return _made(time, NODE, event.node, change=SET)


def _preempts(
    event: v.PreemptionDecided, time: int, subjects: Mapping[str, Subject]
) -> answers.EventRecordInfo:
    found = subjects.get(event.ask)
    victims = ", ".join(victim.id for victim in event.victims)
    return _made(
        time,
        REQUEST,
        event.ask,
        reference="" if found is None else found.application,
        message=f"preempts {victims}" + (f" on {event.node}" if event.node else ""),
    )


_RECORDS: dict[type, Callable[..., answers.EventRecordInfo]] = {
    v.AskSubmitted: _asked,
    v.AskWithdrawn: _withdrawn,
    v.AllocationBound: _bound,
    v.BindingObserved: _bound,
    v.AllocationRestored: _restored,
    v.AllocationReleased: _released,
    v.InputRejected: _rejected,
    v.NodeUpdated: _updated,
    v.PreemptionDecided: _preempts,
    v.NodeRegistered: lambda event, time, _: _made(
        time, NODE, event.node, change=ADD, amounts=event.capacity
    ),
    v.NodeRemoved: lambda event, time, _: _made(
        time, NODE, event.node, change=REMOVE, detail="node gone"
    ),
    v.NodeReserved: lambda event, time, _: _made(
        time, NODE, event.node, change=ADD, detail="reservation", reference=event.ask
    ),
    v.ReservationRestored: lambda event, time, _: _made(
        time, NODE, event.node, change=ADD, detail="reservation", reference=event.ask
    ),
    v.ReservationReleased: lambda event, time, _: _made(
        time,
        NODE,
        event.node,
        change=REMOVE,
        detail="reservation",
        reference=event.ask,
        message=event.reason,
    ),
    v.ApplicationSubmitted: lambda event, time, _: _made(
        time, APP, event.application, change=ADD, detail="new"
    ),
    v.ApplicationPlaced: lambda event, time, _: _made(
        time, QUEUE, event.queue, change=ADD, detail="application", reference=event.application
    ),
    v.ApplicationRemoved: lambda event, time, _: _made(
        time, APP, event.application, change=SET, detail="completed"
    ),
    v.ConfigurationApplied: lambda _, time, __: _made(
        time, QUEUE, "root", change=SET, detail="configuration"
    ),
    v.QueueCreated: lambda event, time, _: _made(
        time, QUEUE, event.queue, change=ADD, detail="dynamic"
    ),
    v.QueueRemoved: lambda event, time, _: _made(
        time, QUEUE, event.queue, change=REMOVE, detail="dynamic"
    ),
    v.PreemptionFailed: lambda event, time, _: _made(
        time, REQUEST, event.ask, message=event.reason
    ),
    v.QuotaPreemptionDecided: lambda event, time, _: _made(
        time, QUEUE, event.queue, message="quota preemption decided", amounts=event.target
    ),
    v.QuotaPreemptionUnhelpful: lambda event, time, _: _made(
        time, QUEUE, event.queue, message=event.reason, amounts=event.target
    ),
}

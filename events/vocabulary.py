"""Every event type there is.

An event is immutable and, once written, keeps its meaning for ever: a type only ever gains optional
fields, a new meaning is a new type and an upcaster. *Inputs* are what producers propose through the
inbox; a leader turns an accepted one into an event of the same type by giving it a ``seq``.
*Decisions* are what the scheduler adds; each names the ``cause`` that led to it.

Units: amounts in base units (see `events.configuration`), times in integer milliseconds since the
epoch, UTC.
"""

from __future__ import annotations

from msgspec import Struct

from events.bounds import Milliseconds, Name, Priority, Text, Version
from events.decisions import (
    AllocationBound,
    ApplicationPaused,
    ApplicationPlaced,
    ApplicationResumed,
    AskNominated,
    CheckpointRecorded,
    CycleStarted,
    DecisionResumed,
    DecisionSuspended,
    EvictionRepeated,
    InboxAttached,
    InputRejected,
    LeaderStarted,
    NodeReserved,
    PreemptionDecided,
    PreemptionFailed,
    PreemptionWithdrawn,
    QueueCreated,
    QueueRemoved,
    QuotaPreemptionCancelled,
    QuotaPreemptionDecided,
    QuotaPreemptionScheduled,
    QuotaPreemptionUnhelpful,
    ReservationReleased,
    Victim,
)
from events.inputs import (
    AllocationReleased,
    AllocationRestored,
    AnyInput,
    ApplicationRemoved,
    ApplicationSubmitted,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    ConfigurationApplied,
    Event,
    EvictionObserved,
    EvictionRefused,
    Input,
    NodeRegistered,
    NodeRemoved,
    NodeUpdated,
    ObservationGap,
    PodSet,
    ReservationRestored,
    RulesAdopted,
)
from events.pods import (
    AntiAffinityTerm,
    LabelRequirement,
    NodeSelectorTerm,
    PodFacts,
    Taint,
    Toleration,
)

AnyEvent = (
    AnyInput
    | LeaderStarted
    | InboxAttached
    | InputRejected
    | QueueCreated
    | QueueRemoved
    | ApplicationPlaced
    | AllocationBound
    | ApplicationPaused
    | ApplicationResumed
    | NodeReserved
    | ReservationReleased
    | PreemptionDecided
    | AskNominated
    | PreemptionFailed
    | EvictionRepeated
    | PreemptionWithdrawn
    | QuotaPreemptionScheduled
    | QuotaPreemptionCancelled
    | QuotaPreemptionDecided
    | QuotaPreemptionUnhelpful
    | DecisionSuspended
    | DecisionResumed
    | CycleStarted
    | CheckpointRecorded
)
"""What the log may hold."""


class Proposal(Struct, frozen=True, kw_only=True, gc=False):
    """One record of the inbox as the leader sees it.

    Attributes:
        position: Its position in the inbox; -1 when it did not come from one.
        source: The program that proposed, as it named itself; empty: that of the input counts.
        actor: The person or account behind it; empty: that of the input counts.
        input: The proposal; None when it could not be read, and then ``problem`` says why and
            ``raw`` holds its beginning.
        code: Of the refusal when ``input`` is None; empty counts as ``malformed``. A leader gives it
            anew with ``internal-error`` where it failed at a proposal, and with ``unsupported``
            where a process knows no such rules; no producer can.
    """

    input: AnyInput | None = None
    position: int = -1
    id: str = ""
    source: str = ""
    problem: str = ""
    raw: str = ""
    code: str = ""
    actor: str = ""


__all__ = [
    "AllocationBound",
    "AllocationReleased",
    "AllocationRestored",
    "AntiAffinityTerm",
    "AnyEvent",
    "AnyInput",
    "ApplicationPaused",
    "ApplicationPlaced",
    "ApplicationRemoved",
    "ApplicationResumed",
    "ApplicationSubmitted",
    "AskNominated",
    "AskSubmitted",
    "AskWithdrawn",
    "BindingObserved",
    "CheckpointRecorded",
    "ConfigurationApplied",
    "CycleStarted",
    "DecisionResumed",
    "DecisionSuspended",
    "Event",
    "EvictionObserved",
    "EvictionRefused",
    "EvictionRepeated",
    "InboxAttached",
    "Input",
    "InputRejected",
    "LabelRequirement",
    "LeaderStarted",
    "Milliseconds",
    "Name",
    "NodeRegistered",
    "NodeRemoved",
    "NodeReserved",
    "NodeSelectorTerm",
    "NodeUpdated",
    "ObservationGap",
    "PodFacts",
    "PodSet",
    "PreemptionDecided",
    "PreemptionFailed",
    "PreemptionWithdrawn",
    "Priority",
    "Proposal",
    "QueueCreated",
    "QueueRemoved",
    "QuotaPreemptionCancelled",
    "QuotaPreemptionDecided",
    "QuotaPreemptionScheduled",
    "QuotaPreemptionUnhelpful",
    "ReservationReleased",
    "ReservationRestored",
    "RulesAdopted",
    "Taint",
    "Text",
    "Toleration",
    "Version",
    "Victim",
]

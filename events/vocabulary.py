"""Every event type there is.

An event is immutable and, once written, keeps its meaning for ever: a type only ever gains optional fields, a new meaning is a
new type and an upcaster. *Inputs* are what producers propose through the inbox; a leader turns an accepted one into an event of
the same type by giving it a ``seq``. *Decisions* are what the scheduler adds; each names the ``cause`` that led to it.

Units: amounts in base units (see `events.configuration`), times in integer milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from events.configuration import Amounts, Configuration

Name = Annotated[str, Meta(min_length=1, max_length=253)]
"""A name or id. That it holds no control characters is checked by the leader (`evsched.core.validation`)."""
Text = Annotated[str, Meta(max_length=4096)]
Moment = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class Event(Struct, frozen=True, kw_only=True, gc=False, tag=True, tag_field="type", omit_defaults=True):
    """Base of all events.

    Attributes:
        seq: 1, 2, 3, … without gaps over the whole log; 0 while it is only a proposal.
        cause: The ``seq`` that led to this event; 0 for an input, which nothing in the log led to.
        due: When the timer that led to this event was due; None when no timer did.
    """

    seq: Annotated[int, Meta(ge=0)] = 0
    cause: Annotated[int, Meta(ge=0)] = 0
    due: Moment | None = None


class Input(Event, frozen=True, kw_only=True):
    """Base of what producers may propose.

    Attributes:
        proposal: Id of the proposal, given by its producer; the same id twice is recognised. Empty: not checked.
    """

    proposal: Annotated[str, Meta(max_length=128)] = ""


class PodSet(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A group of equal pods of a Kueue workload, already multiplied by its count.

    Attributes:
        flavors: Resource name to flavor name; None until assigned.
        preempt_resources: Names of the resources whose assigned flavor needs preemption; None: those that do not fit now.
    """

    name: Name
    resources: Amounts
    flavors: dict[str, str] | None = None
    preempt_resources: tuple[str, ...] | None = None


class Victim(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An allocation that was told to go.

    Attributes:
        queue: Full path of its queue (ClusterQueue name for Kueue).
        reason: The rule that made it eligible.
        message: What its owner reads; empty when the reason says it all.
    """

    id: Name
    queue: str
    reason: str
    message: str = ""


# ---------------------------------------------------------------------------------------------------------------- inputs


class ConfigurationApplied(Input, frozen=True, kw_only=True):
    """A configuration came into force as a whole.

    Attributes:
        document: The text that was applied, for audits; empty when there was none.
    """

    configuration: Configuration
    document: Annotated[str, Meta(max_length=262_144)] = ""


class NodeRegistered(Input, frozen=True, kw_only=True):
    """A node joined the cluster partition."""

    node: Name
    capacity: Amounts
    labels: dict[str, str] = {}
    schedulable: bool = True


class NodeUpdated(Input, frozen=True, kw_only=True):
    """A node changed; what is None stays as it is."""

    node: Name
    capacity: Amounts | None = None
    labels: dict[str, str] | None = None
    schedulable: bool | None = None


class NodeRemoved(Input, frozen=True, kw_only=True):
    """A node is gone, and with it what ran there (an AllocationReleased each)."""

    node: Name


class ApplicationSubmitted(Input, frozen=True, kw_only=True):
    """An application asked to be taken in.

    Attributes:
        queue: The queue it named; what placement made of it is in ApplicationPlaced. May be empty with placement rules.
        created: When its owner created it; None: the time of the step.
    """

    application: Name
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    created: Moment | None = None


class ApplicationRemoved(Input, frozen=True, kw_only=True):
    """An application ended: its asks are withdrawn and its allocations released."""

    application: Name


class AskSubmitted(Input, frozen=True, kw_only=True):
    """A task asked for resources (a pod; for Kueue a workload).

    Attributes:
        application: Its application; for Kueue the default is one of its own. One that is unknown yet is created in ``queue``.
        queue: Full path (ClusterQueue or ``namespace/localqueue`` for Kueue); empty: the application's.
        priority: int32; higher is more important.
        allow_preemption: False: asks to be spared while running (seed preemption_design, law 1).
        preemption_policy: Whether it may preempt others.
        originator: True for the manager of an application (a Spark driver).
        required_node: The only node it may run on (DaemonSet).
        created: When its owner created it; None: the time of the step.
        uid: Last tie-break; None: the id.
        podsets: For Kueue, in place of resources, flavors and preempt_resources.
        flavors: For Kueue: fixed flavors, by resource; the scheduler assigns them when None.
    """

    ask: Name
    application: str = ""
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    resources: Amounts = {}
    priority: Priority = 0
    allow_preemption: bool = True
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    originator: bool = False
    required_node: Name | None = None
    created: Moment | None = None
    uid: Name | None = None
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None
    preempt_resources: tuple[str, ...] | None = None


class AskWithdrawn(Input, frozen=True, kw_only=True):
    """An ask was taken back by its owner before it was bound."""

    ask: Name


class AllocationRestored(Input, frozen=True, kw_only=True):
    """An allocation was found running when the cluster was first connected.

    Attributes:
        node: Where it runs; None where admission is by quota alone.
        admitted: When its quota was reserved; None: unknown, which counts as just now.
        preempting: It was already told to go.
        evicted: (Kueue) it already carries the condition Evicted.
    """

    allocation: Name
    application: str = ""
    queue: str
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    node: Name | None = None
    resources: Amounts = {}
    priority: Priority = 0
    allow_preemption: bool = True
    originator: bool = False
    required_node: Name | None = None
    created: Moment | None = None
    admitted: Moment | None = None
    preempting: bool = False
    evicted: bool = False
    uid: Name | None = None
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None


class AllocationReleased(Input, frozen=True, kw_only=True):
    """An allocation ended: its resources are free.

    Attributes:
        reason: ``completed``, ``preempted`` (an eviction was confirmed), ``failed``; the scheduler itself adds ``node removed``
            and ``application removed``.
    """

    allocation: Name
    reason: Annotated[str, Meta(max_length=253)] = "completed"


class EvictionRefused(Input, frozen=True, kw_only=True):
    """The agent could not evict a victim (a disruption budget, a lost node); it will be told again."""

    allocation: Name
    reason: Text = ""


class ReservationRestored(Input, frozen=True, kw_only=True):
    """A node was found reserved for an ask when the cluster was first connected."""

    ask: Name
    node: Name


# -------------------------------------------------------------------------------------------------------------- decisions


class LeaderStarted(Event, frozen=True, kw_only=True):
    """A leader took over; the first event of its term.

    Attributes:
        checkpoint_every: A CheckpointRecorded follows after this many events; 0: never.
    """

    term: int
    leader: str
    checkpoint_every: int = 100_000


class InputRejected(Event, frozen=True, kw_only=True):
    """A proposal was refused; nothing else changed.

    Attributes:
        reason: A sentence with the subject first, what was found and what was expected.
        code: A stable word for programs: ``malformed``, ``duplicate``, ``unknown``, ``invalid``, ``conflict``.
        proposal: Id of the proposal, empty when it had none.
        source: Who proposed, as the producer named itself.
        position: Its position in the inbox, -1 when it did not come from there.
        input: The proposal itself when it could be read.
        raw: Its beginning (at most 1,024 characters) when it could not.
    """

    reason: str
    code: str = "invalid"
    proposal: str = ""
    source: str = ""
    position: int = -1
    input: AnyInput | None = None
    raw: str = ""


class QueueCreated(Event, frozen=True, kw_only=True):
    """A dynamic queue was created by a placement rule."""

    queue: str
    parent: bool = False


class QueueRemoved(Event, frozen=True, kw_only=True):
    """A dynamic queue was empty and went, or a queue that was draining after a configuration change."""

    queue: str


class ApplicationPlaced(Event, frozen=True, kw_only=True):
    """An application was taken into a queue.

    Attributes:
        rule: The placement rule that decided; ``provided`` without rules.
    """

    application: str
    queue: str
    rule: str = "provided"


class AllocationBound(Event, frozen=True, kw_only=True):
    """An ask got its resources (Kueue: was admitted); it is an allocation of the same id from here on.

    Attributes:
        node: None where admission is by quota alone.
        flavors: (Kueue) resource to flavor.
        podsets: (Kueue) when the workload has several.
    """

    ask: str
    node: str | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[PodSet, ...] = ()


class NodeReserved(Event, frozen=True, kw_only=True):
    """A node is kept for an ask; nobody else gets that room."""

    ask: str
    node: str


class ReservationReleased(Event, frozen=True, kw_only=True):
    """A reservation ended without being used."""

    ask: str
    node: str
    reason: str


class PreemptionDecided(Event, frozen=True, kw_only=True):
    """Victims were told to go so that a more entitled ask can have their room.

    Attributes:
        node: The node reserved for the preemptor from here on; None where admission is by quota alone.
        victims: In the order in which they were chosen, each with the rule that made it eligible.
        algorithm: ``guarantee``, ``required-node``, ``classic``, ``fair``.
        cut: True when the search ended at its budget, so that a cheaper plan may exist.
    """

    ask: str
    node: str | None = None
    victims: tuple[Victim, ...]
    algorithm: str
    cut: bool = False


class PreemptionFailed(Event, frozen=True, kw_only=True):
    """No lawful plan was found for an ask; written when the reason is not the one last written for this ask.

    Attributes:
        cut: True when the search ended at its budget, so that a plan may exist after all.
    """

    ask: str
    reason: str
    cut: bool = False


class EvictionRepeated(Event, frozen=True, kw_only=True):
    """A victim did not leave within its grace time and is told again.

    Attributes:
        attempt: 2 for the first repetition.
    """

    allocation: str
    attempt: int


class PreemptionWithdrawn(Event, frozen=True, kw_only=True):
    """Victims that would not leave may stay; the ask they were to make room for waits like any other.

    Attributes:
        ask: None when it was quota enforcement that wanted them to go.
    """

    ask: str | None = None
    victims: tuple[str, ...]
    reason: str


class QuotaPreemptionScheduled(Event, frozen=True, kw_only=True):
    """A maximum or delay changed; what is used above the maximum will be preempted at ``at``."""

    queue: str
    at: Moment


class QuotaPreemptionCancelled(Event, frozen=True, kw_only=True):
    """A scheduled quota enforcement will not happen."""

    queue: str
    reason: str


class QuotaPreemptionDecided(Event, frozen=True, kw_only=True):
    """Victims were told to go so that a queue comes down to its lowered maximum.

    Attributes:
        target: What had to go, by resource.
        unmet: What of it stays because no further victim was lawful; empty when nothing does.
    """

    queue: str
    victims: tuple[Victim, ...]
    target: dict[str, int]
    unmet: dict[str, int] = {}


class QuotaPreemptionUnhelpful(Event, frozen=True, kw_only=True):
    """A quota enforcement was due and preempted nobody."""

    queue: str
    reason: str
    target: dict[str, int] = {}
    unmet: dict[str, int] = {}


class CycleStarted(Event, frozen=True, kw_only=True):
    """A preemption cycle ran.

    Attributes:
        kind: ``preemption`` (YuniKorn) or ``admission`` (Kueue).
        tried: Asks that it looked at in vain for the first time; they are looked at again once something has changed.
    """

    kind: str
    tried: tuple[str, ...] = ()


class CheckpointRecorded(Event, frozen=True, kw_only=True):
    """The digest of the state after all events before this one; a reader that gets another one is wrong and stops."""

    digest: str


AnyInput = (
    ConfigurationApplied
    | NodeRegistered
    | NodeUpdated
    | NodeRemoved
    | ApplicationSubmitted
    | ApplicationRemoved
    | AskSubmitted
    | AskWithdrawn
    | AllocationRestored
    | AllocationReleased
    | EvictionRefused
    | ReservationRestored
)
"""What a producer may propose."""

AnyEvent = (
    AnyInput
    | LeaderStarted
    | InputRejected
    | QueueCreated
    | QueueRemoved
    | ApplicationPlaced
    | AllocationBound
    | NodeReserved
    | ReservationReleased
    | PreemptionDecided
    | PreemptionFailed
    | EvictionRepeated
    | PreemptionWithdrawn
    | QuotaPreemptionScheduled
    | QuotaPreemptionCancelled
    | QuotaPreemptionDecided
    | QuotaPreemptionUnhelpful
    | CycleStarted
    | CheckpointRecorded
)
"""What the log may hold."""


class Proposal(Struct, frozen=True, kw_only=True, gc=False):
    """One record of the inbox as the leader sees it.

    Attributes:
        position: Its position in the inbox; -1 when it did not come from one.
        source: Who proposed, as the producer named itself.
        input: The proposal; None when it could not be read, and then ``problem`` says why and ``raw`` holds its beginning.
    """

    input: AnyInput | None = None
    position: int = -1
    id: str = ""
    source: str = ""
    problem: str = ""
    raw: str = ""

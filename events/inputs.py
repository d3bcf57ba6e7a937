"""What producers may propose, and the base of all events.

A leader turns an accepted input into an event of the same type by giving it a ``seq``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from events.bounds import (
    MAX_DOCUMENT,
    MAX_ID,
    MAX_NAME,
    MAX_SOURCE,
    Count,
    Milliseconds,
    Name,
    Priority,
    Text,
    Version,
)
from events.configuration import Amounts, Configuration
from events.pods import PodFacts, Taints


class Event(
    Struct, frozen=True, kw_only=True, gc=False, tag=True, tag_field="type", omit_defaults=True
):
    """Base of all events.

    Attributes:
        seq: 1, 2, 3, … without gaps over the whole log; 0 while it is only a proposal.
        cause: The ``seq`` that led to this event; 0 for an input, which nothing in the log led to.
        due: When the timer that led to this event was due; None when no timer did.
    """

    seq: Count = 0
    cause: Count = 0
    due: Milliseconds | None = None


class Input(Event, frozen=True, kw_only=True):
    """Base of what producers may propose.

    Attributes:
        proposal: Id of the proposal, given by its producer; the same id twice is recognised. Empty:
            not checked.
        source: The program that proposed it, as it named itself. In a proposal it may be empty: the
            leader takes that of the record (``ce_source``), which counts where both are there.
        actor: The person or account behind it, as the program says; empty: unknown. Whoever may
            write to the inbox may say anything: what it is worth, the rights on the inbox decide.
    """

    proposal: Annotated[str, Meta(max_length=MAX_ID)] = ""
    source: Annotated[str, Meta(max_length=MAX_SOURCE)] = ""
    actor: Annotated[str, Meta(max_length=MAX_NAME)] = ""


class PodSet(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A group of equal pods of a Kueue workload, already multiplied by its count.

    Attributes:
        flavors: Resource name to flavor name; None until assigned.
        preempt_resources: Names of the resources whose assigned flavor needs preemption; None:
            those that do not fit now.
    """

    name: Name
    resources: Amounts
    flavors: dict[str, str] | None = None
    preempt_resources: tuple[str, ...] | None = None


class ConfigurationApplied(Input, frozen=True, kw_only=True):
    """A configuration came into force as a whole.

    Attributes:
        document: The text that was applied, for audits; empty when there was none.
        message: Why it was applied, in the words of its author, as the message of a commit.
    """

    configuration: Configuration
    document: Annotated[str, Meta(max_length=MAX_DOCUMENT)] = ""
    message: Text = ""


class NodeRegistered(Input, frozen=True, kw_only=True):
    """A node joined the cluster partition.

    Attributes:
        schedulable: False: it takes nobody, whatever is tolerated.
        taints: Those of Kubernetes; a pod that does not tolerate one of them does not come here.
        ready: As its kubelet says. It is kept and shown; what a cluster does about a node that is
            not ready it writes into its taints, and those decide.
    """

    node: Name
    capacity: Amounts
    labels: dict[str, str] = {}
    schedulable: bool = True
    taints: Taints = ()
    ready: bool = True


class NodeUpdated(Input, frozen=True, kw_only=True):
    """A node changed; what is None stays as it is."""

    node: Name
    capacity: Amounts | None = None
    labels: dict[str, str] | None = None
    schedulable: bool | None = None
    taints: Taints | None = None
    ready: bool | None = None


class NodeRemoved(Input, frozen=True, kw_only=True):
    """A node is gone, and with it what ran there (an AllocationReleased each)."""

    node: Name


class ApplicationSubmitted(Input, frozen=True, kw_only=True):
    """An application asked to be taken in.

    Attributes:
        queue: The queue it named; what placement made of it is in ApplicationPlaced. May be empty
            with placement rules.
        created: When its owner created it; None: the time of the step.
    """

    application: Name
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    created: Milliseconds | None = None


class ApplicationRemoved(Input, frozen=True, kw_only=True):
    """An application ended: its asks are withdrawn and its allocations released."""

    application: Name


class AskSubmitted(Input, frozen=True, kw_only=True):
    """A task asked for resources (a pod; for Kueue a workload).

    Attributes:
        application: Its application; for Kueue the default is one of its own. One that is unknown
            yet is created in ``queue``.
        queue: Full path (ClusterQueue or ``namespace/localqueue`` for Kueue); empty: the
            application's.
        priority: int32; higher is more important.
        priority_class: For Kueue: the WorkloadPriorityClass whose value, when the ask is taken in,
            becomes its ``priority``; empty: ``priority`` says it.
        allow_preemption: False: asks to be spared while running (seed preemption_design, law 1).
        preemption_policy: Whether it may preempt others.
        originator: True for the manager of an application (a Spark driver).
        required_node: The only node it may run on (DaemonSet).
        created: When its owner created it; None: the time of the step.
        uid: Last tie-break; None: the id.
        podsets: For Kueue, in place of resources, flavors and preempt_resources.
        flavors: For Kueue: fixed flavors, by resource; the scheduler assigns them when None.
        pod: Where the task may run, as its pod says; None: anywhere that takes pods without
            tolerations.
    """

    ask: Name
    application: str = ""
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    resources: Amounts = {}
    priority: Priority = 0
    priority_class: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    allow_preemption: bool = True
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    originator: bool = False
    required_node: Name | None = None
    created: Milliseconds | None = None
    uid: Name | None = None
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None
    preempt_resources: tuple[str, ...] | None = None
    pod: PodFacts | None = None


class AskWithdrawn(Input, frozen=True, kw_only=True):
    """An ask was taken back by its owner before it was bound."""

    ask: Name


class AllocationRestored(Input, frozen=True, kw_only=True):
    """An allocation was found running when the cluster was first connected.

    Attributes:
        node: Where it runs; None where admission is by quota alone.
        admitted: When its quota was reserved; None: unknown, which counts as just now.
        preempting: It is being evicted already.
        evicted: (Kueue) it already carries the condition Evicted.
        pod: What its pod says; nothing is moved because of it.
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
    created: Milliseconds | None = None
    admitted: Milliseconds | None = None
    preempting: bool = False
    evicted: bool = False
    uid: Name | None = None
    podsets: tuple[PodSet, ...] = ()
    flavors: dict[str, str] | None = None
    pod: PodFacts | None = None


class AllocationReleased(Input, frozen=True, kw_only=True):
    """An allocation ended: its resources are free.

    Attributes:
        reason: ``completed``, ``preempted`` (an eviction was confirmed), ``failed``; the scheduler
            itself adds ``node removed`` and ``application removed``.
    """

    allocation: Name
    reason: Annotated[str, Meta(max_length=MAX_NAME)] = "completed"


class EvictionRefused(Input, frozen=True, kw_only=True):
    """The agent could not evict a victim (a disruption budget, a lost node); it will be asked again."""

    allocation: Name
    reason: Text = ""


class ReservationRestored(Input, frozen=True, kw_only=True):
    """A node was found reserved for an ask when the cluster was first connected."""

    ask: Name
    node: Name


class RulesAdopted(Input, frozen=True, kw_only=True):
    """Newer rules came into force: from the next event on they decide.

    Attributes:
        rules: Their version, later than the one before.
    """

    rules: Version


class BindingObserved(Input, frozen=True, kw_only=True):
    """The cluster says that an ask runs: its own scheduler, or somebody else, bound it.

    What waits here is an allocation of the same id from then on. What runs on that node already,
    because evsched bound it, stays as it is.

    Attributes:
        ask: Waits, or runs on this node.
        node: Where it runs; None where admission is by quota alone.
        flavors: (Kueue) resource to flavor.
        podsets: (Kueue) with their flavors, when the workload has several.
        scheduler: Who bound it, as the cluster names it; empty: unknown.
        at: When, as the cluster says, milliseconds; None: unknown.
    """

    ask: Name
    node: Name | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[PodSet, ...] = ()
    scheduler: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    at: Milliseconds | None = None


class EvictionObserved(Input, frozen=True, kw_only=True):
    """The cluster says that an allocation is being evicted: its own scheduler, or somebody else, asked for it.

    It counts as leaving from then on and ends by AllocationReleased. No timer is armed, since it is
    not evsched that asks again.

    Attributes:
        allocation: Runs, and may be leaving already.
        reason: In the peer's words (the reason of a condition, such as ``PreemptionByScheduler``).
        message: The sentence that goes with it; empty: none.
        scheduler: Who evicts it, as the cluster names it; empty: unknown.
        preemptor: The ask that it makes room for. Where it waits, and this allocation has a node, it
            is in flight from then on and that node is kept for it. Empty: unknown.
        at: When, as the cluster says, milliseconds; None: unknown.
    """

    allocation: Name
    reason: Text = ""
    message: Text = ""
    scheduler: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    preemptor: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    at: Milliseconds | None = None


class ObservationGap(Input, frozen=True, kw_only=True):
    """A watch lost its place: what happened in between was not seen, only what came of it.

    The objects were listed again, and the difference is proposed beside this. Nothing is decided
    by it.

    Attributes:
        kind: Of the objects, as the API names it (``Pod``).
        before: The last version that was seen, as the API gives it; empty: none was.
        after: The version of the list.
        listed: How many objects the list holds.
        appeared, changed, vanished: How many of them differ from what was known.
        reason: Why the place was lost (``410 Gone``).
    """

    kind: Name
    before: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    after: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    listed: Count = 0
    appeared: Count = 0
    changed: Count = 0
    vanished: Count = 0
    reason: Text = ""


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
    | RulesAdopted
    | BindingObserved
    | EvictionObserved
    | ObservationGap
)
"""What a producer may propose."""

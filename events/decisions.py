"""What the scheduler adds to the log. Each decision names the ``cause`` that led to it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from events.bounds import MAX_INT64, Count, Milliseconds, Name, Position, Sum, Version
from events.inputs import AnyInput, Event, PodSet

Suspended = Literal["ask", "timer", "queue", "cycle", "allocation", "checkpoint"]
"""What can be set aside: one ask, one timer, the asks of one queue, or all decisions of a kind."""


class Victim(Struct, frozen=True, gc=False, omit_defaults=True):
    """An allocation that is being evicted.

    Attributes:
        queue: Full path of its queue (ClusterQueue name for Kueue).
        reason: The rule that made it eligible.
        message: What its owner reads; empty when the reason says it all.
    """

    id: Name
    queue: str
    reason: str
    message: str = ""


class LeaderStarted(Event, frozen=True, kw_only=True):
    """A leader took over; the first event of its term.

    Attributes:
        checkpoint_every: A CheckpointRecorded follows after this many events; 0: never.
        rules: Version of the rules in force when the term began.
        record: Version of the record that digests cover under these rules.
        release: Of the leader's evsched, for people; empty: not named.
        inbox: Id of the inbox in which ``inbox_next`` counts; empty: the leader was of a release
            that did not name it, and it is the same as before.
        observes: The leader takes what is proposed and decides nothing, as the scheduler of the
            cluster does that.
    """

    term: Count
    leader: str
    checkpoint_every: Count = 100_000
    rules: Version = 1
    record: Version = 1
    release: str = ""
    inbox: str = ""
    observes: bool = False


class InboxAttached(Event, frozen=True, kw_only=True):
    """From here on the log reads another inbox, or the same one from another position; it stands alone in its step.

    Attributes:
        inbox: Id of the inbox.
        position: Of the first proposal that is read from it; the frame's ``inbox_next``.
        replaces: Id of the inbox that was read before; empty when the log did not name it.
    """

    inbox: Annotated[str, Meta(min_length=1, max_length=253)]
    position: Annotated[int, Meta(ge=0, le=MAX_INT64)]
    replaces: str = ""


class InputRejected(Event, frozen=True, kw_only=True):
    """A proposal was refused; nothing else changed.

    Attributes:
        reason: A sentence with the subject first, what was found and what was expected.
        code: A stable word for programs: ``malformed``, ``duplicate``, ``unknown``, ``invalid``,
            ``conflict``, ``unsupported`` where a process knows no such rules, and
            ``internal-error`` where evsched itself failed at it.
        proposal: Id of the proposal, empty when it had none.
        source: The program that proposed, as it named itself.
        actor: The person or account behind it, as of `events.inputs.Input`.
        position: Its position in the inbox, -1 when it did not come from there.
        input: The proposal itself when it could be read.
        raw: Its beginning (at most 1,024 characters) when it could not, or when evsched failed at it.
    """

    reason: str
    code: str = "invalid"
    proposal: str = ""
    source: str = ""
    position: Position = -1
    input: AnyInput | None = None
    raw: str = ""
    actor: str = ""


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


class ApplicationPaused(Event, frozen=True, kw_only=True):
    """An application has so many asks that no node has room for that none of its asks is looked at for a while.

    Attributes:
        until: When it is looked at again.
        asks: How many of its asks fitted on no node.
    """

    application: str
    until: Milliseconds
    asks: Count


class ApplicationResumed(Event, frozen=True, kw_only=True):
    """A pause of an application ended: its time was over, or a configuration has no pauses for its queue any more."""

    application: str


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
    """Victims are being evicted so that a more entitled ask can have their room.

    Attributes:
        node: The node reserved for the preemptor from here on; None where admission is by quota
            alone.
        victims: In the order in which they were chosen, each with the rule that made it eligible.
        algorithm: ``guarantee``, ``required-node``, ``classic``, ``fair``.
        cut: True when the search ended at its budget, so that a cheaper plan may exist.
    """

    ask: str
    node: str | None = None
    victims: tuple[Victim, ...]
    algorithm: str
    cut: bool = False


class AskNominated(Event, frozen=True, kw_only=True):
    """An ask is promised room that others' victims leave; it is in flight, and evicts nothing itself.

    It is bound when the room is free. A PreemptionWithdrawn ends the promise when that does not come
    about.

    Attributes:
        node: Reserved for it from here on.
        until: When the last of the evictions that make the room is past its grace.
    """

    ask: str
    node: str
    until: Milliseconds


class PreemptionFailed(Event, frozen=True, kw_only=True):
    """No lawful plan was found for an ask; written when the reason is not the one last written for this ask.

    Attributes:
        cut: True when the search ended at its budget, so that a plan may exist after all.
        until: It waits for room that is being freed for others, but no longer than until then;
            None: that is not why.
    """

    ask: str
    reason: str
    cut: bool = False
    until: Milliseconds | None = None


class EvictionRepeated(Event, frozen=True, kw_only=True):
    """A victim did not leave within its grace time and is asked again.

    Attributes:
        attempt: 2 for the first repetition.
    """

    allocation: str
    attempt: Count


class PreemptionWithdrawn(Event, frozen=True, kw_only=True):
    """Victims that would not leave may stay; the ask they were to make room for waits like any other.

    Attributes:
        ask: None when it was quota enforcement that wanted them to go.
        node_lost: The node reserved for the ask was lost to it, through no fault of the victims: it
            may preempt once more.
    """

    ask: str | None = None
    victims: tuple[str, ...]
    reason: str
    node_lost: bool = False


class QuotaPreemptionScheduled(Event, frozen=True, kw_only=True):
    """A maximum or delay changed; what is used above the maximum will be preempted at ``at``."""

    queue: str
    at: Milliseconds


class QuotaPreemptionCancelled(Event, frozen=True, kw_only=True):
    """A scheduled quota enforcement will not happen."""

    queue: str
    reason: str


class QuotaPreemptionDecided(Event, frozen=True, kw_only=True):
    """Victims are being evicted so that a queue comes down to its lowered maximum.

    Attributes:
        target: What had to go, by resource.
        unmet: What of it stays because no further victim was lawful; empty when nothing does.
    """

    queue: str
    victims: tuple[Victim, ...]
    target: dict[str, Sum]
    unmet: dict[str, Sum] = {}


class QuotaPreemptionUnhelpful(Event, frozen=True, kw_only=True):
    """A quota enforcement was due and preempted nobody."""

    queue: str
    reason: str
    target: dict[str, Sum] = {}
    unmet: dict[str, Sum] = {}


class DecisionSuspended(Event, frozen=True, kw_only=True):
    """A decision failed by a fault in evsched itself: what it was about is set aside, and everything else is decided.

    An ask that is set aside is withdrawn by an AskWithdrawn that follows. The suspension ends by a
    DecisionResumed; that of an ask also when its owner submits it again or withdraws it.

    Attributes:
        kind: ``ask``; ``timer``; ``queue``; or all decisions of a kind where no single subject was
            at fault: ``cycle`` (preemption; admission for Kueue), ``allocation``, ``checkpoint``.
            A queue's asks are set aside one by one, each by a DecisionSuspended that this one
            causes, and so is each that is submitted to it later.
        subject: Id of the ask or timer, path of the queue; empty for the other kinds.
        place: Where in evsched the fault lies: file, line, function.
        reason: What went wrong there.
    """

    kind: Suspended
    subject: str = ""
    place: str
    reason: str


class DecisionResumed(Event, frozen=True, kw_only=True):
    """What was set aside is decided on again.

    Attributes:
        kind: As in the DecisionSuspended.
        subject: As there. An ask is submitted again by an AskSubmitted that follows.
        reason: Why an ask is not submitted again after all; empty when it is.
    """

    kind: Suspended
    subject: str = ""
    reason: str = ""


class CycleStarted(Event, frozen=True, kw_only=True):
    """A preemption cycle ran.

    Attributes:
        kind: ``preemption`` (YuniKorn) or ``admission`` (Kueue).
        tried: Asks that it looked at in vain for the first time; they are looked at again once
            something has changed.
        again: Its pace ended it before everybody had a turn: the next cycle comes even if nothing
            changes until then.
        unfinished: (Kueue) Tops of the cohort trees in which its budget ended it; the next step goes
            on there. ``tried`` then names every ask that it looked at in vain, those of earlier
            cycles as well.
    """

    kind: str
    tried: tuple[str, ...] = ()
    again: bool = False
    unfinished: tuple[str, ...] = ()


class CheckpointRecorded(Event, frozen=True, kw_only=True):
    """The digest of the state after all events before this one; a reader that gets another one is wrong and stops.

    Attributes:
        digest: SHA-256 over the record of the state, in hexadecimal.
        rules: Version of the rules in force.
        record: Version of the record; a reader that cannot make this one counts the digest as not
            compared.
    """

    digest: str
    rules: Version = 1
    record: Version = 1

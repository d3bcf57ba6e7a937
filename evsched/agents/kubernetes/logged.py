"""What the log says of the cluster: nodes, tasks and applications, folded from its events.

Beside the log's word stands what is expected of it: a proposal that was sent and not yet answered.
The next one builds on that. Once the last proposal about a node or task is answered, accepted or
refused, the log's word alone counts again, since the inbox is read in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from events.configuration import Configuration
from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AllocationRestored,
    AnyEvent,
    AnyInput,
    ApplicationRemoved,
    ApplicationSubmitted,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    ConfigurationApplied,
    EvictionObserved,
    InputRejected,
    LeaderStarted,
    NodeRegistered,
    NodeRemoved,
    NodeUpdated,
    ObservationGap,
    PodSet,
    RulesAdopted,
)
from evsched.agents.kubernetes import nodes
from evsched.agents.kubernetes.nodes import NodeFacts

SOURCE = "kubernetes"
"""How the agent names itself, and how its proposal ids begin."""


class TaskFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What the log says of a task.

    Attributes:
        uid: Of its pod.
        wish: Digest of all that it asks for.
        amounts: Digest of how much it asks for, or was admitted with.
        rest: Digest of what else counts while it runs.
        runs: It is bound.
        observed: The cluster bound it, and not the log's leader alone.
        leaving: An eviction was observed.
        ours: This agent proposed it; what others proposed is theirs to end.
    """

    uid: str
    wish: bytes
    amounts: bytes
    rest: bytes
    application: str
    runs: bool = False
    observed: bool = False
    node: str = ""
    leaving: bool = False
    ours: bool = True


class ApplicationFacts(Struct, frozen=True):
    """That the log knows an application."""


class Entity(NamedTuple):
    """What a proposal is about."""

    kind: str
    name: str


NODE, TASK, APPLICATION = "node", "task", "application"


class LoggedCluster:
    """What the log says, and what is expected of it.

    Attributes:
        configuration: In force; None: none was applied.
        rules: Version of the rules in force.
        versions: ObjectKind to the highest resourceVersion that the log has proof of.
    """

    def __init__(self) -> None:
        """Begin with an empty log."""
        self.configuration: Configuration | None = None
        self.rules = 1
        self.versions: dict[str, int] = {}
        self._logged: dict[Entity, Any] = {}
        self._expected: dict[Entity, tuple[Any, str]] = {}

    def take(self, event: AnyEvent) -> None:
        """Take one event of the log."""
        handler = _FOLDS.get(type(event))
        if handler is not None:
            subject = _subject(event)
            self._set(subject, handler(self._logged.get(subject), event))
        elif isinstance(event, ConfigurationApplied):
            self.configuration = event.configuration
        elif isinstance(event, LeaderStarted | RulesAdopted):
            self.rules = event.rules
        elif isinstance(event, ObservationGap) and event.source == SOURCE:
            self._note(event.kind, event.after)
        proposal = getattr(event, "proposal", "")
        if not proposal:
            return
        answered = event.input if isinstance(event, InputRejected) else event
        if isinstance(answered, tuple(_FOLDS)):
            subject = _subject(answered)
            if self._expected.get(subject, (None, ""))[1] == proposal:
                del self._expected[subject]
        match proposal.split(":"):
            case [source, kind, version, *_] if source == SOURCE:
                self._note(kind, version)

    def expect(self, proposed: AnyInput) -> None:
        """Note a proposal that is being sent."""
        handler = _FOLDS.get(type(proposed))
        if handler is not None:
            subject = _subject(proposed)
            after = handler(self._current(subject), proposed)
            self._expected[subject] = (after, proposed.proposal)

    def awaits(self, kind: str, name: str) -> bool:
        """Tell whether a proposal about something is not answered yet."""
        return Entity(kind, name) in self._expected

    def node(self, name: str) -> NodeFacts | None:
        """Return what is known of a node; None: it is not there."""
        found: NodeFacts | None = self._current(Entity(NODE, name))
        return found

    def task(self, name: str) -> TaskFacts | None:
        """Return what is known of a task; None: it is not there, or its node is gone and took it along."""
        found: TaskFacts | None = self._current(Entity(TASK, name))
        if found is not None and found.runs and found.node and self.node(found.node) is None:
            return None
        return found

    def knows_application(self, name: str) -> bool:
        """Tell whether an application is there."""
        return self._current(Entity(APPLICATION, name)) is not None

    def names(self, kind: str) -> Iterator[str]:
        """Yield the names of all nodes or tasks that are known, in the order of their names."""
        both = {subject for subject in (*self._logged, *self._expected) if subject.kind == kind}
        yield from sorted(subject.name for subject in both if self._current(subject) is not None)

    def _current(self, subject: Entity) -> Any:
        if subject in self._expected:
            return self._expected[subject][0]
        return self._logged.get(subject)

    def _set(self, subject: Entity, facts: Any) -> None:
        if facts is None:
            self._logged.pop(subject, None)
        else:
            self._logged[subject] = facts

    def _note(self, kind: str, version: str) -> None:
        if version.isdigit():
            self.versions[kind] = max(self.versions.get(kind, 0), int(version))


def wish_of(ask: AskSubmitted | AllocationRestored) -> bytes:
    """Return a digest of all that a task asks for; its owner may change it while it waits."""
    return _digest(
        (
            *(amounts_of(ask, ask.podsets), ask.queue, ask.priority),
            *(ask.allow_preemption, ask.required_node, ask.pod),
        )
    )


def amounts_of(ask: AskSubmitted | AllocationRestored, podsets: tuple[PodSet, ...]) -> bytes:
    """Return a digest of how much a task holds; a resize in place changes it while it runs."""
    return _digest((sorted(ask.resources.items()), _of_podsets(podsets)))


def rest_of(ask: AskSubmitted | AllocationRestored) -> bytes:
    """Return a digest of what else counts while a task runs, which may change by then."""
    labels = None if ask.pod is None else sorted(ask.pod.labels.items())
    return _digest((ask.priority, ask.allow_preemption, labels))


def _of_podsets(podsets: tuple[PodSet, ...]) -> Any:
    return [
        (one.name, sorted(one.resources.items()), sorted((one.flavors or {}).items()))
        for one in podsets
    ]


def _digest(parts: Any) -> bytes:
    return blake2b(msgspec.json.encode(parts), digest_size=8).digest()


def _subject(event: Any) -> Entity:
    match event:
        case NodeRegistered() | NodeUpdated() | NodeRemoved():
            return Entity(NODE, event.node)
        case ApplicationSubmitted() | ApplicationRemoved():
            return Entity(APPLICATION, event.application)
        case AllocationRestored() | AllocationReleased() | EvictionObserved():
            return Entity(TASK, event.allocation)
        case _:
            return Entity(TASK, event.ask)


def _begun(_: TaskFacts | None, event: AskSubmitted) -> TaskFacts:
    return TaskFacts(
        uid=event.uid or "",
        wish=wish_of(event),
        amounts=amounts_of(event, event.podsets),
        rest=rest_of(event),
        application=event.application,
        ours=not event.seq or event.source == SOURCE,
    )


def _restored(_: TaskFacts | None, event: AllocationRestored) -> TaskFacts:
    return TaskFacts(
        uid=event.uid or "",
        wish=wish_of(event),
        amounts=amounts_of(event, event.podsets),
        rest=rest_of(event),
        application=event.application,
        runs=True,
        observed=True,
        node=event.node or "",
        leaving=event.preempting,
        ours=not event.seq or event.source == SOURCE,
    )


def _bound(known: TaskFacts | None, event: AllocationBound) -> TaskFacts | None:
    return None if known is None else replace(known, runs=True, node=event.node or "")


def _observed(known: TaskFacts | None, event: BindingObserved) -> TaskFacts | None:
    if known is None:
        return None
    amounts = _digest(([], _of_podsets(event.podsets))) if event.podsets else known.amounts
    node = event.node or ""
    return replace(known, runs=True, observed=True, node=node, amounts=amounts)


def _leaves(known: TaskFacts | None, _: EvictionObserved) -> TaskFacts | None:
    return None if known is None else replace(known, leaving=True)


def _ended(_: Any, __: Any) -> None:
    return None


def _known(_: Any, __: ApplicationSubmitted) -> ApplicationFacts:
    return ApplicationFacts()


_FOLDS: dict[type, Callable[[Any, Any], Any]] = {
    NodeRegistered: nodes.folded,
    NodeUpdated: nodes.folded,
    NodeRemoved: nodes.folded,
    AskSubmitted: _begun,
    AskWithdrawn: _ended,
    AllocationRestored: _restored,
    AllocationBound: _bound,
    BindingObserved: _observed,
    EvictionObserved: _leaves,
    AllocationReleased: _ended,
    ApplicationSubmitted: _known,
    ApplicationRemoved: _ended,
}

"""A log without names: to be shown to others, with every decision in it unchanged.

Ties between equals are broken by names, so the new names stand in the same alphabetical order as
the old ones. There is one space of names for everything (a user's name may be part of a queue's
path by a placement rule), path by path, part by part. Free text goes: documents, descriptions,
sentences of producers. Nothing is rewritten in place: the steps are taken again with the new names
by a new engine, and every decision is compared with the recorded one under the renaming; a log
whose decisions depend on the names themselves (a regular expression in a placement rule) is
refused.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import fields, replace

from events import configuration as c
from events import vocabulary as v
from evsched.core.engine import Engine
from evsched.core.registry import admits_by_quota
from replays.history.sealing import Sealer
from replays.history.steps import note, proposals_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from events.chain import RecordedStep
    from events.streams.protocols import Record
    from replays.history.rebuild import History

PUBLIC = frozenset({"", "*", "root", "default", "nobody", "cohort"})
"""Names that everybody uses; they stay."""

NAMES = frozenset({
    "ask", "allocation", "application", "node", "required_node", "user", "uid", "id", "proposal", "source", "cohort",
    "cluster_queue", "namespace", "flavor", "groups", "users", "namespaces", "victims", "tried", "name", "parent",
    "inbox", "replaces", "priority_class", "actor", "owner_uid", "values", "scheduler", "preemptor",
})  # fmt: skip
"""Fields that hold a name, or several."""

PATHS = frozenset({"queue", "value", "unfinished"})
"""Fields that hold names joined by dots or slashes."""

VALUES = frozenset({"tags", "labels", "node_labels", "node_selector", "flavors"})
"""Mappings whose values are names; the keys are public terms."""

FLAVORED = frozenset({"target", "unmet"})
"""Mappings whose keys are ``flavor/resource`` under Kueue; a flavor has a name, a resource is a public term."""

CLEARED = frozenset({"document", "raw", "description"})
"""Fields that hold what people wrote."""

UNKNOWABLE = frozenset({"sections"})
"""Settings of a family that was added: whether they hold names is known to that family alone."""

DERIVED = frozenset({"reason", "message", "digest"})
"""Fields of decisions that hold names in sentences, or depend on every name: they are made anew and not compared."""

_REASONS = frozenset(
    {"completed", "preempted", "failed", "withdrawn", "node removed", "application removed"}
)
_PLAIN = re.compile(r"[\w:#/@.\-]*")
_SEPARATORS = re.compile(r"([./])")


class CannotAnonymise(Exception):
    """The decisions of this log depend on the names in it; the message says where."""


class Names:
    """The renaming: filled by `collect`, fixed by `freeze`, used by `rename`."""

    def __init__(self) -> None:
        """Start without names."""
        self._found: dict[str, None] = {}
        self._new: dict[str, str] = {}

    def note_step(self, step: RecordedStep) -> None:
        """Remember every name in a step."""
        walker = _Walker(self.note)
        for event in step.events:
            walker.struct(event)

    def note_input(self, found: v.AnyInput) -> None:
        """Remember every name in an input."""
        _Walker(self.note).struct(found)

    def note(self, name: str) -> str:
        """Remember a name; return it unchanged."""
        self._found[_canonical(name)] = None
        return name

    def freeze(self) -> None:
        """Give every name its number, in alphabetical order."""
        ordered = sorted(name for name in self._found if name not in PUBLIC)
        digits = len(str(len(ordered)))
        self._new = {name: f"x{number:0{digits}}" for number, name in enumerate(ordered, 1)}

    def new(self, name: str) -> str:
        """Return the new name."""
        return self._new.get(_canonical(name), name)


def _canonical(name: str) -> str:
    # A placement rule writes a dot in a name as `_dot_`; both mean the same.
    return name.replace(".", "_dot_")


class _Walker:
    """Applies one function to every name in a value.

    Attributes:
        flavored: Amounts of decisions belong to flavors, which have names: the configuration is one
            of Kueue.
    """

    def __init__(self, name: Any) -> None:
        self._name = name
        self.flavored = False

    def path(self, text: str) -> str:
        return "".join(
            part if part in (".", "/") else self._name(part) for part in _SEPARATORS.split(text)
        )

    def acl(self, text: str) -> str:
        return " ".join(
            ",".join(self._name(name) for name in part.split(",")) for part in text.split(" ")
        )

    def subject(self, event: v.DecisionSuspended | v.DecisionResumed) -> str:
        """Return what is set aside under the new names; the id of a timer is its kind, a colon, and what it is about."""
        if event.kind == "queue":
            return self.path(event.subject)
        if event.kind != "timer":
            return self._name(event.subject) if event.subject else ""
        kind, _, about = event.subject.partition(":")
        if kind == "evict":  # by the number of a decision
            return event.subject
        return f"{kind}:{self.path(about) if kind == 'quota' else self._name(about)}"

    def struct(self, value: msgspec.Struct) -> Any:
        if any(getattr(value, field, None) for field in UNKNOWABLE):
            message = "configuration: only its family knows which of its settings are names"
            raise CannotAnonymise(message)
        if isinstance(value, v.DecisionSuspended | v.DecisionResumed):
            return replace(value, subject=self.subject(value), reason="")
        if isinstance(value, v.LabelRequirement) and value.operator in {"Gt", "Lt"}:
            message = f"node affinity: {value.key} {value.operator} compares numbers; labels cannot be replaced under it"
            raise CannotAnonymise(message)
        changed = {
            field.name: self.field(value, field.name, getattr(value, field.name))
            for field in fields(value)
        }
        return replace(value, **changed)

    def field(self, owner: msgspec.Struct, field: str, value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            return tuple(self.struct(item) for item in value)
        if field in CLEARED and isinstance(value, str):
            return ""
        if field in ("reason", "message") and isinstance(owner, v.Input):
            return value if value in _REASONS else "other" if field == "reason" else ""
        if field in ("submit_acl", "admin_acl"):
            return self.acl(value)
        if field == "name" and isinstance(owner, c.PlacementRuleSpec):
            return value
        if (
            isinstance(owner, c.FilterSpec)
            and field in ("users", "groups")
            and not all(map(_PLAIN.fullmatch, value))
        ):
            message = f"placement rule: filter {value} is a regular expression; names cannot be replaced under it"
            raise CannotAnonymise(message)
        if field == "priority_classes":
            return {self._name(key): amount for key, amount in value.items()}
        if isinstance(value, dict) and field in VALUES:
            return {key: self._name(item) for key, item in value.items()}
        if self.flavored and isinstance(value, dict) and field in FLAVORED:
            return {
                "/".join((self._name(key.partition("/")[0]), key.partition("/")[2])): item
                for key, item in value.items()
            }
        # An ask that names no application makes one that is called as its queue.
        by_queue = field == "application" and value.startswith("root.")
        if (field in PATHS or by_queue) and isinstance(value, str | tuple):
            return self.path(value) if isinstance(value, str) else tuple(map(self.path, value))
        if field in NAMES:
            if isinstance(value, str):
                return self._name(value.lower() if isinstance(owner, c.QueueSpec) else value)
            if isinstance(value, tuple):
                return tuple(self._name(item) for item in value)
        return value


def collect(steps: Iterable[RecordedStep]) -> Names:
    """Return the renaming for everything that these steps name."""
    names = Names()
    for step in steps:
        names.note_step(step)
    names.freeze()
    return names


class Anonymiser:
    """Takes the steps of a log again under new names.

    Attributes:
        engine: With the state after the last step, under the new names.
    """

    def __init__(self, names: Names) -> None:
        """Begin before the first step."""
        self.engine = Engine()
        self._walker = _Walker(names.new)

    def take(self, step: RecordedStep) -> tuple[v.AnyEvent, ...]:
        """Return the events of the next step under the new names, decided anew.

        Raises:
            CannotAnonymise: A decision came out differently.
        """
        engine, walker = self.engine, self._walker
        # A step that is only taken note of names an inbox at most.
        renamed = tuple(walker.struct(event) for event in step.events[:1])
        events = note(engine, step._replace(events=renamed))
        if events is None:
            proposals = self.proposals(proposals_of(step))
            events = engine.step(step.time, proposals, decide=step.decided)
        walker.flavored = admits_by_quota(engine.state.configuration)
        _must_agree(walker, step, events)
        return events

    def proposals(self, proposals: Iterable[v.Proposal]) -> tuple[v.Proposal, ...]:
        """Return proposals under the new names."""
        return tuple(_proposal(self._walker, proposal) for proposal in proposals)


def anonymise(
    names: Names, steps: Iterable[RecordedStep]
) -> Iterator[tuple[RecordedStep, tuple[v.AnyEvent, ...]]]:
    """Yield every step with its events under the new names; raises as `Anonymiser.take`."""
    anonymiser = Anonymiser(names)
    for step in steps:
        yield step, anonymiser.take(step)


class NamelessLog:
    """A log without the names that are in another one, with frames of its own: what `events.streams.export.export_log` reads.

    Nothing of the other log's frames stays: neither its id nor its void frames. Times, amounts and
    decisions do.
    """

    def __init__(self, history: History, log_id: str) -> None:
        """Take the log that is to be shown, and the id of the new one, which must not lead to the old one."""
        self.name = f"{history.log.name} without names"
        self.partition = history.log.partition
        self._history = history
        self._log_id = log_id

    async def read(self, after: int = -1) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records of the new log, one batch a step.

        Raises:
            CannotAnonymise: Names decide in this log.
        """
        names = Names()
        async with aclosing(self._history.steps()) as steps:  # type: ignore[type-var]
            async for step in steps:
                names.note_step(step)
        names.freeze()
        anonymiser, sealer = Anonymiser(names), Sealer(self._log_id)
        async with aclosing(self._history.steps()) as steps:  # type: ignore[type-var]
            async for step in steps:
                events = anonymiser.take(step)
                sealed = sealer.seal(
                    step.time, events, decided=step.decided, inbox_next=step.head.inbox_next
                )
                yield [record for record in sealed if record.position > after]


def _proposal(walker: _Walker, proposal: v.Proposal) -> v.Proposal:
    named = replace(
        proposal,
        id=walker.field(proposal, "proposal", proposal.id),
        source=walker.field(proposal, "source", proposal.source),
        actor=walker.field(proposal, "actor", proposal.actor),
    )
    if proposal.input is None:
        return replace(named, raw="", problem="proposal: cannot be read")
    return replace(named, input=walker.struct(proposal.input))


def _must_agree(walker: _Walker, step: RecordedStep, events: tuple[v.AnyEvent, ...]) -> None:
    expected = [_comparable(walker.struct(event)) for event in step.events]
    found = [_comparable(event) for event in events]
    for index in range(max(len(expected), len(found))):
        if index >= len(expected) or index >= len(found) or expected[index] != found[index]:
            seq = (
                step.events[min(index, len(step.events) - 1)].seq
                if step.events
                else step.head.next_seq
            )
            message = (
                f"event {seq}: came out differently under other names, so names decide in this log"
            )
            raise CannotAnonymise(message)


def _comparable(event: msgspec.Struct) -> Any:
    found = msgspec.to_builtins(event)
    _strip(found)
    return found


def _strip(value: Any) -> None:
    if isinstance(value, dict):
        for field in DERIVED & value.keys():
            del value[field]
        for item in value.values():
            _strip(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _strip(item)

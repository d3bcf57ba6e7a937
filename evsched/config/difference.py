"""What a new configuration would do, said before it is applied.

The difference is made from the two configurations and, where there is one, from the state that the
new one would meet: what is there to be enforced, held up or left above a limit depends on what
runs. Nothing is decided here a second time: the new configuration is installed in a copy of the
state, the leader's own checks say whether it would be refused, and `evsched.core.quota.enforcement`
says what happens to timers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from events.configuration import Configuration
from events.vocabulary import ConfigurationApplied
from evsched.config.difference_fields import fields_of
from evsched.core import snapshot, trees, validation
from evsched.core.kueue.model import quota_in, quota_of
from evsched.core.quantity import format_amount
from evsched.core.queues import Queue
from evsched.core.quota import enforcement as quota
from evsched.core.quota import timers as quota_timers
from evsched.core.quota.targets import over
from evsched.core.registry import family_of
from evsched.core.state import State
from evsched.core.workloads import Ask
from evsched.core.yunikorn.limits import held_in


class ChangedField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of something that is in both configurations; None where one of them does not say it.

    Attributes:
        subject: ``queue root.a``, ``partition default``, ``ClusterQueue team-a``.
        field: In the words of the file format: ``resources.max.vcore``.
    """

    subject: str
    field: str
    before: str | None
    after: str | None


class TimerChange(msgspec.Struct, frozen=True, kw_only=True):
    """What would happen to the timer of a quota enforcement.

    Attributes:
        delay_ms: It fires so long after the configuration is applied; None: it is cancelled.
    """

    queue: str
    action: Literal["starts", "restarts", "is cancelled"]
    delay_ms: int | None
    reason: str


class HeldUp(msgspec.Struct, frozen=True, kw_only=True):
    """An ask that waits and could not be bound any more, however empty the cluster was."""

    ask: str
    queue: str
    reason: str


class Above(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue would use above its new maximum (a ClusterQueue: above all it could ever have or borrow), in base units."""

    queue: str
    resource: str
    used: int
    maximum: int


class ConfigurationDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a configuration would change.

    Attributes:
        refused: Why the leader would refuse it; None: it would not. When it would, nothing is said
            of the state.
        added, removed: Subjects that only the new or only the old one has.
        changed: Fields of the others, in the order of the new configuration.
        timers: Of quota enforcement, those that start or end.
        held_up: Asks that become unschedulable.
        above: What runs above new maxima.
    """

    partition: str
    refused: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ChangedField, ...] = ()
    timers: tuple[TimerChange, ...] = ()
    held_up: tuple[HeldUp, ...] = ()
    above: tuple[Above, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the two configurations mean the same."""
        return not (self.added or self.removed or self.changed)

    def sentences(self) -> Iterator[str]:
        """Yield the difference for people, a line each, subject first; equal reasons of many asks in one line."""
        if self.refused is not None:
            yield f"it would be refused: {self.refused}"
        yield from (f"{subject}: added" for subject in self.added)
        yield from (f"{subject}: removed" for subject in self.removed)
        for one in self.changed:
            before, after = (
                "not set" if text is None else text for text in (one.before, one.after)
            )
            yield f"{one.subject}: {one.field} {before} → {after}"
        for timer in self.timers:
            yield f"queue {timer.queue}: quota enforcement {timer.action}: {timer.reason}"
        for above in self.above:
            # Kueue counts a resource by flavor; its unit is that of the resource.
            unit = above.resource.rpartition("/")[2]
            used, maximum = (format_amount(unit, amount) for amount in (above.used, above.maximum))
            yield f"queue {above.queue}: uses {above.resource} {used}, above its maximum {maximum}"
        together: dict[tuple[str, str], list[str]] = {}
        for held in self.held_up:
            together.setdefault((held.queue, held.reason), []).append(held.ask)
        for (_, reason), asks in together.items():
            who = f"ask {asks[0]}" if len(asks) == 1 else f"{len(asks)} asks ({asks[0]}, …)"
            yield f"{who}: cannot be bound any more: {reason}"


def describe(
    old: Configuration | None, new: Configuration, state: State | None = None
) -> ConfigurationDifference:
    """Return what a configuration would do.

    Args:
        old: The one in force; None: the state's, or none at all.
        new: The one to be applied.
        state: What the new one would meet, only read; None: nothing runs and waits.
    """
    base = State() if state is None else snapshot.decode(snapshot.encode(state), state.time)
    if old is not None and old != base.configuration:
        trees.install(base, old)
    before = fields_of(base.configuration) if base.configuration is not None else {}
    after = fields_of(new)
    refused = validation.check(base, ConfigurationApplied(configuration=new))
    found = ConfigurationDifference(
        partition=new.partition,
        refused=None if refused is None else refused.reason,
        added=tuple(subject for subject in after if subject not in before),
        removed=tuple(subject for subject in before if subject not in after),
        changed=tuple(_changed(before, after)),
    )
    if refused is not None:
        return found
    trial = snapshot.decode(snapshot.encode(base), base.time)
    trees.install(trial, new)
    return msgspec.structs.replace(
        found,
        timers=tuple(_timers(base, trial)),
        held_up=tuple(_held_up(base, trial)),
        above=tuple(_above(trial)),
    )


def _changed(
    before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> Iterator[ChangedField]:
    for subject, fields in after.items():
        known = before.get(subject)
        if known is not None:
            for field in (*fields, *(field for field in known if field not in fields)):
                if known.get(field) != fields.get(field):
                    yield ChangedField(
                        subject=subject,
                        field=field,
                        before=known.get(field),
                        after=fields.get(field),
                    )


def _timers(base: State, trial: State) -> Iterator[TimerChange]:
    armed = quota.armed(base)
    spec = trial.configuration
    enabled = spec is not None and family_of(spec).enforces_quotas(spec)
    for path, change in quota_timers.changes(
        quota.before(base), quota.before(trial), armed, enabled=enabled
    ):
        starts: Literal["starts", "restarts"] = "restarts" if path in armed else "starts"
        action = "is cancelled" if change.delay_ms is None else starts
        # In a ClusterQueue the nominal quota stands in the place of a maximum.
        kueue = path in trial.queues and trial.queues[path].quota is not None
        reason = change.reason.replace("maximum", "nominal quota") if kueue else change.reason
        yield TimerChange(queue=path, action=action, delay_ms=change.delay_ms, reason=reason)


def _above(trial: State) -> Iterator[Above]:
    names = trial.types.names
    for path, queue in trial.queues.items():
        quota = quota_in(queue)
        if quota is None:
            limits = queue.maximum
        elif queue.leaf:
            limits = {index: quota.potential(index) for index in quota.usage}
        else:
            continue
        for index in over(queue, limits):
            used = queue.usage[index] - queue.preempting[index]
            yield Above(queue=path, resource=names[index], used=used, maximum=limits[index])


# ----------------------------------------------------------------------------------- asks that wait


def _held_up(base: State, trial: State) -> Iterator[HeldUp]:
    """Yield the asks that could be bound before and cannot any more; equal ones are looked at once."""
    known: dict[tuple[str, int, str], str | None] = {}
    for name, ask in trial.asks.items():
        kind = (ask.application, ask.shape, ask.queue)
        if kind not in known:
            reason = _impossible(trial, ask)
            known[kind] = (
                None if reason is None or _impossible(base, base.asks[name]) is not None else reason
            )
        reason = known[kind]
        if reason is not None:
            yield HeldUp(ask=name, queue=ask.queue, reason=reason)


def _impossible(state: State, ask: Ask) -> str | None:
    """Return why an ask could not be bound in an empty cluster, by its queues alone; None when it could."""
    leaf = state.queues[ask.queue]
    if leaf.draining:
        return f"queue {leaf.path} is no longer in the configuration"
    if leaf.quota is not None:
        return _beyond_cohort(state, leaf, ask)
    application = state.applications[ask.application]
    names = state.types.names
    for queue in leaf.lineage:
        limits = [
            (f"queue {queue.path}", {names[index]: most for index, most in queue.maximum.items()})
        ]
        limits += [
            (f"queue {queue.path}: {held.whom}", held.resources)
            for held in held_in(queue, application)
        ]
        for whose, most in limits:
            for index, amount in state.types.shapes[ask.shape].pairs:
                limit = most.get(names[index])
                if limit is not None and amount > limit:
                    found, expected = (
                        format_amount(names[index], amount),
                        format_amount(names[index], limit),
                    )
                    return (
                        f"{whose} may use at most {names[index]} {expected}, {found} are asked for"
                    )
    return None


def _beyond_cohort(state: State, leaf: Queue, ask: Ask) -> str | None:
    """Return which resource a ClusterQueue could never have enough of, own, borrowed and all flavors together."""
    quota = quota_of(leaf)
    for resource, amount in state.types.shapes[ask.shape].resources.items():
        most = quota.lendable(resource)
        if amount > most:
            found, expected = format_amount(resource, amount), format_amount(resource, most)
            return f"ClusterQueue {leaf.path} could use at most {resource} {expected}, {found} are asked for"
    return None

"""Which queue takes an application in: placement rules, the queues they create, and those that go when they are empty.

Rules are tried in their order. A rule finds the path of a queue or says why it does not; the first
whose queue can take the application in, and lets its user submit, decides:

========  =======================================================================================
fixed     the queue that is its value
tag       the application's tag of that name
user      the user's name
provided  the queue that the application names; the only rule, without ``create``, where none is
          configured
========  =======================================================================================

A full path (``root.…``) is meant as it is. Any other name is a queue below the one that the parent
rule finds, or below root; its dots become ``_dot_``, except in a fixed value, where they separate.
A queue that does not exist yet is made when its rule has ``create``, with what is missing above it;
the parents are *dynamic* too. A dynamic queue goes with its last application, a draining one as
well (it left the configuration while it was in use).

Asks and restored allocations whose application is unknown come from the cluster's own agent: they
name their leaf, and neither rules nor access lists are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from events import vocabulary as v
from events.configuration import FilterSpec, PlacementRuleSpec, YunikornSpec
from evsched.core.refusals import Rejection
from evsched.core.state import State
from evsched.core.step import Step
from evsched.core.yunikorn.access import may_submit
from evsched.core.yunikorn.placement_rules import is_pattern

DEFAULT_RULES = (PlacementRuleSpec(name="provided"),)
MAX_DEPTH = 32
"""How deep below root a queue may be created."""

_NAME = re.compile(r"[a-z0-9_:#/@-]{1,64}")
_BELOW_ROOT = "root."


class Placement(NamedTuple):
    """Where an application goes.

    Attributes:
        path: Of a leaf, which may have to be created.
        rule: Name of the rule that decided.
    """

    path: str
    rule: str


class _Miss(NamedTuple):
    """Why a rule does not decide: a word for programs and a part of a sentence."""

    code: str
    reason: str


def refuse(state: State, proposed: v.AnyInput) -> Rejection | None:
    """Return why no queue takes an input in; None when one does.

    Only applications are placed. Tasks go where their application is.
    """
    if isinstance(proposed, v.ApplicationSubmitted):
        found = find(state, proposed)
        return found if isinstance(found, Rejection) else None
    return None


def place(step: Step, event: v.ApplicationSubmitted) -> None:
    """Take an accepted application into its queue, which is created if need be, parents first."""
    state = step.state
    found = find(state, event)
    assert not isinstance(found, Rejection), found.reason  # `refuse` has looked at this very state
    parts = found.path.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        if path not in state.queues:
            step.emit(v.QueueCreated, cause=event.seq, queue=path, parent=depth < len(parts))
    step.emit(
        v.ApplicationPlaced,
        cause=event.seq,
        application=event.application,
        queue=found.path,
        rule=found.rule,
    )


# -------------------------------------------------------------------------------------------- rules


def find(state: State, application: v.ApplicationSubmitted) -> Placement | Rejection:
    """Return where an application goes, or why nowhere; the state is only read.

    Without rules the application's own queue is the only choice, and the reason is that queue's.
    With rules the refusal names each of them with its reason, in their order.
    """
    spec = state.configuration
    subject = f"application {application.application}"
    rules = spec.placement_rules if isinstance(spec, YunikornSpec) else ()
    missed: list[_Miss] = []
    for rule in rules or DEFAULT_RULES:
        path = _resolve(state, rule, application)
        miss = _cannot_take(state, path, application) if isinstance(path, str) else path
        if isinstance(path, str) and miss is None:
            return Placement(path, rule.name)
        if miss is not None:
            missed.append(miss)
    if not rules:
        return Rejection(missed[0].code, f"{subject}: {missed[0].reason}")
    said = "; ".join(
        f"{rule.name}: {miss.reason}" for rule, miss in zip(rules, missed, strict=True)
    )
    return Rejection("conflict", f"{subject}: no placement rule takes it in ({said})")


def _resolve(
    state: State, rule: PlacementRuleSpec, application: v.ApplicationSubmitted
) -> str | _Miss:
    """Return the path that a rule finds, in lower case.

    The queue exists, or the rule may create it.

    A parent rule is resolved in the same way and has to lead to a parent. Names of users are never
    taken for a path, or a user named ``root.x`` could choose a queue.
    """
    if rule.filter is not None and not passes(rule.filter, application.user, application.groups):
        return _Miss("conflict", f"its filter does not let user {application.user} pass")
    name = _name(state, rule, application)
    if isinstance(name, _Miss):
        return name
    name = name.lower()
    if rule.name != "user" and (name == "root" or name.startswith(_BELOW_ROOT)):
        path = name
    else:
        above = "root" if rule.parent is None else _resolve(state, rule.parent, application)
        if isinstance(above, _Miss):
            return _Miss(
                above.code,
                f"its parent rule {rule.parent.name if rule.parent is not None else ''}: {above.reason}",
            )
        known = state.queues.get(above)
        if known is not None and known.leaf:
            return _Miss(
                "invalid",
                f"queue {above}, which its parent rule finds, is a leaf, expected a parent",
            )
        path = f"{above}.{name if rule.name == 'fixed' else name.replace('.', '_dot_')}"
    if path not in state.queues and not rule.create:
        may = " and the rule may not create it" if _has_rules(state) else ""
        return _Miss("unknown", f"queue {path} does not exist{may}")
    return path


def _has_rules(state: State) -> bool:
    return isinstance(state.configuration, YunikornSpec) and bool(
        state.configuration.placement_rules
    )


def _name(
    state: State, rule: PlacementRuleSpec, application: v.ApplicationSubmitted
) -> str | _Miss:
    """Return the name that a rule looks at; a miss where the application does not bring it."""
    match rule.name:
        case "fixed":
            return rule.value
        case "user":
            return application.user or _Miss("invalid", "the application has no user")
        case "tag":
            return _tag(application.tags, rule.value, folds=state.rules.folds_tags) or _Miss(
                "unknown", f"the application has no tag {rule.value}"
            )
        case "provided":
            return application.queue or _Miss("unknown", "the application names no queue")


def _tag(tags: Mapping[str, str], name: str, *, folds: bool) -> str:
    """Return the value of a tag; empty: there is none.

    The exact name wins. Of others that differ in case alone it is the first by name, as an order is
    needed and YuniKorn has none.
    """
    if name in tags or not folds:
        return tags.get(name, "")
    return next((tags[key] for key in sorted(tags) if key.lower() == name.lower()), "")


def passes(filter_: FilterSpec, user: str, groups: Iterable[str]) -> bool:
    """Tell whether a placement rule holds for a user; a filter that names nobody holds for everybody."""
    if not filter_.users and not filter_.groups:
        return True
    matched = _matches(filter_.users, user) or any(
        _matches(filter_.groups, group) for group in groups
    )
    return matched is filter_.allow


def _matches(entries: tuple[str, ...], name: str) -> bool:
    """Tell whether entries of a filter name a user or group.

    The rules of the configuration bound what a pattern may cost
    (`placement_rules.pattern_problem`).
    """
    if is_pattern(entries):
        return re.search(entries[0], name) is not None
    return name in entries


def _cannot_take(state: State, path: str, application: v.ApplicationSubmitted) -> _Miss | None:
    """Return why the queue that a rule found cannot take an application in; None when it can.

    A queue that is to be created is judged by the nearest one above that exists: it must not be a
    leaf, and its access list decides, as the new queue will have none.
    """
    queue = state.queues.get(path)
    missing: list[str] = []
    while queue is None:
        path, _, name = path.rpartition(".")
        missing.append(name)
        queue = state.queues.get(path) if path else state.root
    if queue.draining:
        return _Miss(
            "conflict", f"queue {queue.path} is no longer in the configuration and takes nothing in"
        )
    if not missing and not queue.leaf:
        return _Miss("invalid", f"queue {queue.path} is a parent, expected a leaf")
    if missing:
        if queue.leaf:
            return _Miss(
                "invalid", f"queue {queue.path} is a leaf, no queue can be created below it"
            )
        wrong = next((name for name in reversed(missing) if not _NAME.fullmatch(name)), None)
        if wrong is not None:
            return _Miss(
                "invalid",
                f"{wrong[:64]!r} cannot be the name of a queue, expected up to 64 letters, digits and _:#/@-",
            )
        if queue.depth + len(missing) > MAX_DEPTH:
            return _Miss(
                "invalid",
                f"a queue {queue.depth + len(missing)} levels below root, expected at most {MAX_DEPTH}",
            )
    if not may_submit(queue, application.user, application.groups):
        reason = f"user {application.user} may not submit to queue {queue.path}, no access list on its path says so"
        return _Miss("conflict", reason)
    return None

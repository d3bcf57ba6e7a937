"""What the properties of a YuniKorn queue mean.

Properties travel as they were written; this module alone gives them their meaning, for the queues
of a file and for dynamic queues alike. A queue takes over the properties of its parent unless it
sets them itself, except where the seeds want it otherwise:

- ``priority.policy`` and ``priority.offset`` are never taken over and have no effect on root
  (priority_scheduling, "Queue Configuration");
- of ``application.sort.priority`` only ``disabled`` is taken over;
- of ``preemption.policy`` only ``disabled`` is taken over; ``fence`` has no effect on root;
- ``preemption.delay`` is never taken over: it has an effect on a leaf alone (preemption_design).

A key that is set wins over what the parent hands down even where its value is not understood; it
then has its default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from evsched.core.duration import DurationError, format_duration, parse_duration_ms
from evsched.core.queues import (
    DEFAULT_BACKOFF_DELAY_MS,
    DEFAULT_PREEMPTION_DELAY_MS,
    PreemptionPolicy,
    QueueSettings,
    SortPolicy,
)

PREEMPTION_POLICY = "preemption.policy"
PREEMPTION_DELAY = "preemption.delay"
PRIORITY_POLICY = "priority.policy"
PRIORITY_OFFSET = "priority.offset"
SORT_POLICY = "application.sort.policy"
SORT_PRIORITY = "application.sort.priority"
QUOTA_DELAY = "quota.preemption.delay"
BACKOFF = "application.unschedasks.backoff"
BACKOFF_DELAY = "application.unschedasks.backoff.delay"

KEYS = (
    PREEMPTION_POLICY,
    PREEMPTION_DELAY,
    PRIORITY_POLICY,
    PRIORITY_OFFSET,
    SORT_POLICY,
    SORT_PRIORITY,
    QUOTA_DELAY,
    BACKOFF,
    BACKOFF_DELAY,
)
"""All properties that have a meaning."""

LARGE_OFFSET = 999_999_999
"""Beyond this an offset lifts ordinary tasks above the system's own priority classes."""

_MAX_DIGITS = 20
_INT32 = re.compile(r"[+-]?[0-9]{1,20}")
_UINT = re.compile(r"[0-9]{1,20}")


def resolve(
    properties: Mapping[str, str],
    parent: QueueSettings | None,
    *,
    leaf: bool,
    quota_delay_ms: int | None = None,
) -> QueueSettings:
    """Return the meaning of a queue's properties.

    Args:
        properties: Its own, as written (for a dynamic queue: those of the template).
        parent: The resolved settings of the queue above; None for root.
        leaf: Whether the queue holds applications.
        quota_delay_ms: ``resources: quota.preemption.delay`` of the queue itself, which wins over
            the property of that name and is not handed down; None when absent.

    A value that is not understood never fails here: YuniKorn logs a warning and uses the default,
    and so does this. `warnings` is what tells the administrator.
    """
    effective = {**(parent.inherited if parent is not None else {}), **properties}
    policy = _policy(effective.get(PREEMPTION_POLICY, ""))
    sort_priority = effective.get(SORT_PRIORITY, "").lower() != "disabled"
    return QueueSettings(
        preemption_policy="default" if parent is None and policy == "fence" else policy,
        preemption_delay_ms=_positive_ms(
            properties.get(PREEMPTION_DELAY, "") if leaf else "", DEFAULT_PREEMPTION_DELAY_MS
        ),
        priority_fence=parent is not None
        and properties.get(PRIORITY_POLICY, "").lower() == "fence",
        priority_offset=(_int32(properties.get(PRIORITY_OFFSET, "")) or 0)
        if parent is not None
        else 0,
        sort_priority=sort_priority,
        sort_policy=_sort_policy(effective.get(SORT_POLICY, "")) if leaf else "fair",
        quota_preemption_delay_ms=_positive_ms(effective.get(QUOTA_DELAY, ""), 0)
        if quota_delay_ms is None
        else quota_delay_ms,
        backoff_asks=_count(effective.get(BACKOFF, "")) or 0,
        backoff_delay_ms=_positive_ms(effective.get(BACKOFF_DELAY, ""), DEFAULT_BACKOFF_DELAY_MS),
        inherited=_handed_down(effective, policy, sort_priority=sort_priority),
    )


def warnings(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return what an administrator should know about a queue's own properties.

    Sorted by key, each naming the key first. A key without a meaning is worth a warning, too: most
    are misspelt.
    """
    found = []
    for key in sorted(properties):
        check = _CHECKS.get(key)
        message = check(properties[key]) if check is not None else "is not known and has no effect"
        if message:
            found.append(f"property {key} {message}")
    return tuple(found)


def _handed_down(
    effective: Mapping[str, str], policy: PreemptionPolicy, *, sort_priority: bool
) -> dict[str, str]:
    """Return what queues below take over, in a fixed order of keys.

    Values travel as they were written, also those that are not understood: they hide what is
    further up.
    """
    inherited = {
        key: effective[key]
        for key in (SORT_POLICY, QUOTA_DELAY, BACKOFF, BACKOFF_DELAY)
        if key in effective
    }
    if policy == "disabled":
        inherited[PREEMPTION_POLICY] = "disabled"
    if not sort_priority:
        inherited[SORT_PRIORITY] = "disabled"
    return inherited


def _policy(text: str) -> PreemptionPolicy:
    """Return a preemption policy, in any case; what is not understood is the default."""
    match text.lower():
        case "fence":
            return "fence"
        case "disabled":
            return "disabled"
        case _:
            return "default"


def _sort_policy(text: str) -> SortPolicy:
    """Return a policy of application sorting; what is not understood is ``fifo``."""
    match text.lower():
        case "fair":
            return "fair"
        case "stateaware":
            return "stateaware"
        case _:
            return "fifo"


def _positive_ms(text: str, default: int) -> int:
    """Return a Go duration in milliseconds.

    Where it is absent, cannot be read, or is not positive, it is the default.
    """
    try:
        ms = parse_duration_ms(text) if text else 0
    except DurationError:
        return default
    return ms if ms > 0 else default


def _int32(text: str) -> int | None:
    """Return a number as Go's ``strconv.ParseInt(s, 10, 32)`` reads it; None where that fails."""
    if _INT32.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None


def _count(text: str) -> int | None:
    """Return a number as Go's ``strconv.ParseUint(s, 10, 64)`` reads it; None where that fails.

    A sign, a space or an underscore makes it fail, as it does there.
    """
    number = int(text) if _UINT.fullmatch(text) else None
    return number if number is not None and number < 2**64 else None


def _check_word(*words: str) -> Callable[[str], str]:
    """Return a check that a value is one of some words in any case.

    The first of them is the default, which the message names.
    """

    def check(text: str) -> str:
        return (
            ""
            if text.lower() in words
            else f"is {text!r}, expected {', '.join(words)}; {words[0]} is used"
        )

    return check


def _check_duration(default_ms: int) -> Callable[[str], str]:
    """Return a check that a value is a positive duration.

    ``default_ms`` is what is used otherwise, and is allowed as it is: a delay of 0 where 0 is the
    default.
    """
    default = format_duration(default_ms)

    def check(text: str) -> str:
        try:
            ms = parse_duration_ms(text)
        except DurationError as error:
            return f"is {error.found!r}, expected {error.expected}; {default} is used"
        return (
            ""
            if ms > 0 or default_ms == ms
            else f"is {text!r}, expected a positive duration; {default} is used"
        )

    return check


def _check_offset(text: str) -> str:
    """Return what is wrong with a priority offset; empty when nothing is.

    Priorities are held within int32. A very large offset lifts tasks above the classes of the
    cluster's own components, which is never what was meant.
    """
    offset = _int32(text)
    if offset is None:
        return (
            f"is {text[:_MAX_DIGITS]!r}, expected an integer of 32 bits; 0 is used" if text else ""
        )
    if abs(offset) > LARGE_OFFSET:
        return f"is {offset}, beyond {LARGE_OFFSET}: priorities may be clamped or pass those of the system's own classes"
    return ""


def _check_count(text: str) -> str:
    """Return what is wrong with a number of asks."""
    found = _count(text)
    return (
        ""
        if found is not None
        else f"is {text[:_MAX_DIGITS]!r}, expected a whole number from 0; 0 is used"
    )


_CHECKS: dict[str, Callable[[str], str]] = {
    PREEMPTION_POLICY: _check_word("default", "fence", "disabled"),
    PREEMPTION_DELAY: _check_duration(DEFAULT_PREEMPTION_DELAY_MS),
    PRIORITY_POLICY: _check_word("default", "fence"),
    PRIORITY_OFFSET: _check_offset,
    SORT_POLICY: _check_word("fifo", "fair", "stateaware"),
    SORT_PRIORITY: _check_word("enabled", "disabled"),
    QUOTA_DELAY: _check_duration(0),
    BACKOFF: _check_count,
    BACKOFF_DELAY: _check_duration(DEFAULT_BACKOFF_DELAY_MS),
}

"""When a change of the configuration starts, restarts or cancels the timer of a quota enforcement.

The seed (quota_enforcement, "Quota Preemption Delay") compares the values in use with the new ones
and nothing else: usage is looked at when the timer fires. The table, for a queue of the
configuration while the partition's switch is on:

==============================================  =========================
change                                          timer
==============================================  =========================
delay is 0 now                                  cancelled
no maximum now                                  cancelled
a type of the maximum is lower, or limited now  starts from zero
though it was not before, whatever other types
do
the maximum changed without that (an increase)  cancelled
only the delay changed                          starts from zero
neither changed                                 goes on as it is
==============================================  =========================

A queue that is new has had no maximum, so its first one is a decrease from unlimited: row 2 of the
seed's table, and the case of an *initial setup*, after which allocations that ran before the
scheduler came are restored. A delay that changes alone starts the timer too, since it may have been
0 when the maximum was lowered. A queue that left the configuration, and every queue once the switch
is off, loses its timer. Dynamic queues never have one ("the currently used dynamic queue can be
left as is").

This module decides and changes nothing, so that `evsched.config.difference` can ask it what a
configuration would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evsched.core.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evsched.core.queues import Queue

TIMER = "quota:"
"""What the id of a quota timer begins with; the path of its queue follows."""


class Rule(NamedTuple):
    """What counts for the timer of one queue: its maximum by resource and its delay, both as in force."""

    maximum: Mapping[int, int]
    delay_ms: int


class TimerDecision(NamedTuple):
    """What happens to the timer of one queue.

    Attributes:
        delay_ms: The timer starts from zero with this delay; None: it is cancelled.
        reason: Why, for people.
    """

    delay_ms: int | None
    reason: str


NONE = Rule({}, 0)
"""What counts for a queue that does not exist."""


def rule_of(queue: Queue) -> Rule:
    """Return what counts for the timer of a queue.

    Dynamic and draining queues have no timer, so they count as unlimited. The maximum of a Kueue
    ClusterQueue are its nominal quotas.
    """
    if queue.dynamic or queue.draining:
        return NONE
    return Rule(queue.maximum, queue.settings.quota_preemption_delay_ms)


def rules(queues: Mapping[str, Queue]) -> dict[str, Rule]:
    """Return what counts for every queue, by path; those without a maximum are left out."""
    return {path: rule for path, queue in queues.items() if (rule := rule_of(queue)).maximum}


def lowered(old: Mapping[int, int], new: Mapping[int, int]) -> bool:
    """Tell whether a decrease is in this change.

    It is a type with a lower maximum, or with one for the first time.
    """
    return any(index not in old or amount < old[index] for index, amount in new.items())


def change(old: Rule, new: Rule, *, armed: bool) -> TimerDecision | None:
    """Return what a change of a queue does to its timer.

    Args:
        old: What counted before; `NONE` for a new queue.
        new: What counts now.
        armed: Whether the queue has a timer.

    Returns:
        None when a timer goes on as it is, or there is none to cancel.
    """
    if new.delay_ms == 0 or not new.maximum:
        reason = "has no delay of quota enforcement now" if new.maximum else "has no maximum now"
        return TimerDecision(None, reason) if armed else None
    if lowered(old.maximum, new.maximum):
        what = "maximum was lowered" if old.maximum else "has a maximum now"
        return TimerDecision(
            new.delay_ms, f"{what}; enforced after {format_duration(new.delay_ms)}"
        )
    if old.maximum != new.maximum:
        return TimerDecision(None, "maximum was raised") if armed else None
    if old.delay_ms != new.delay_ms:
        return TimerDecision(
            new.delay_ms, f"delay is {format_duration(new.delay_ms)} now, from the start"
        )
    return None


def changes(
    old: Mapping[str, Rule], new: Mapping[str, Rule], armed: Mapping[str, object], *, enabled: bool
) -> Iterator[tuple[str, TimerDecision]]:
    """Yield what a configuration does to timers, by path of the queue.

    Queues that are there come first, in their order, then those that lose their timer.

    Args:
        old: What counted before, as `rules` gives it.
        new: What counts now.
        armed: The paths of queues with a timer, in a fixed order.
        enabled: The partition's switch, as it is now.
    """
    for path, rule in new.items():
        found = change(old.get(path, NONE), rule, armed=path in armed) if enabled else None
        if found is not None:
            yield path, found
    for path in armed:
        if not enabled:
            yield path, TimerDecision(None, "quota enforcement is switched off")
        elif path not in new:
            yield (
                path,
                TimerDecision(None, "has no maximum now, or is no longer in the configuration"),
            )

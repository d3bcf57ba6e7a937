"""A quota timer fires at the first decided step at or after its time, never before, and is never forgotten."""

from __future__ import annotations

from itertools import pairwise

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.truth import Step

AHEAD_MS = 30_000
"""How far the time of the log may be ahead of the true one: clocks are a few seconds off at most, or not believed."""


def check(steps: list[Step], arrived: tuple[int, ...], end: int) -> None:
    """Hold each timer against the steps.

    Args:
        steps: Those that count.
        arrived: When each record was written, true milliseconds since the epoch.
        end: True time at which the log was looked at last.

    Raises:
        Found: One fired early, late, or not at all.
    """
    armed: dict[str, int] = {}
    causes: dict[str, int] = {}
    for step in steps:
        for event in step.events:
            queue, kind = event.get("queue", ""), event["type"]
            if kind == "QuotaPreemptionScheduled":
                armed[queue], causes[queue] = event["at"], event["seq"]
            elif kind == "QuotaPreemptionCancelled":
                armed.pop(queue, None)
            elif kind in ("QuotaPreemptionDecided", "QuotaPreemptionUnhelpful"):
                at = armed.pop(queue, None)
                if at is None and "due" in event:
                    raise Found("timers", f"event {event['seq']}: the timer was called off")
                # What a configuration drains at once is not the timer's doing; it ends the timer.
                fired = at is not None and event.get("cause") == causes[queue]
                if fired and at > step.time:
                    raise Found("timers", f"event {event['seq']}: {at - step.time} ms early")
        late = [queue for queue, at in armed.items() if at <= step.time and step.decided]
        if late:
            raise Found("timers", f"position {step.place}: the timer of {late[0]} did not fire")
    for step in steps:
        ahead = step.time - arrived[step.place]
        if ahead > AHEAD_MS:
            raise Found("timers", f"position {step.place}: the time is {ahead} ms ahead")
    if steps:
        now = steps[-1].time + end - arrived[steps[-1].place]
        late = [queue for queue, at in armed.items() if at + 2000 < now]
        if late:
            raise Found("timers", f"the timer of {late[0]} never fired")


def check_pace(steps: list[Step], arrived: tuple[int, ...], calm: int) -> None:
    """Hold the pace of the log's time, once faults have ended, against the true one.

    Raises:
        Found: It stands still, or runs ahead.
    """
    terms = {step.term for step in steps}
    if not terms:
        return
    last = [one for one in steps if one.term == max(terms) and arrived[one.place] > calm + 1000]
    for before, after in pairwise(last):
        true = arrived[after.place] - arrived[before.place]
        told = after.time - before.time
        if abs(true - told) > 1500 and told < true:
            raise Found("timers", f"position {after.place}: {told} ms passed in {true}")

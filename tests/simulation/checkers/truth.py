"""The log followed naively from its bytes: one chain of frames, each with the hash of the one before.

Nothing of `events` is used: JSON, a hash, and the rules of the chain in their plainest form.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from tests.simulation.checkers.found import Found


class Step(NamedTuple):
    """A step that counts; ``place`` is the position of its last frame, ``hash`` that frame's."""

    place: int
    hash: str
    term: int
    time: int
    decided: bool
    inbox_next: int
    events: tuple[dict[str, Any], ...]


class _Cut:
    """What there is of a step that was cut into several frames."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._text = ""

    def take(self, frame: dict[str, Any], place: int) -> tuple[dict[str, Any], ...] | None:
        """Take its next frame; return all events once it is whole."""
        self._text += frame.get("fragment", "")
        if frame.get("fragment_ends", False):
            self._events.append(json.loads(self._text))
            self._text = ""
        self._events += frame.get("events", ())
        if not frame.get("last", True):
            return None
        if self._text:
            raise Found("truth", f"position {place}: a step ends in the middle of an event")
        whole, self._events = tuple(self._events), []
        return whole


def follow(log: tuple[bytes, ...]) -> list[Step]:
    """Return the steps of a log that count, in order: a step counts when its last frame is there.

    Raises:
        Found: The log does not hold together.
    """
    steps: list[Step] = []
    cut = _Cut()
    term, leader, number, last, log_id = 0, "", 0, "", ""
    for place, data in enumerate(log):
        frame = json.loads(data)
        events = tuple(frame.get("events", ()))
        opens = len(events) == 1 and events[0]["type"] == "LeaderStarted"
        own = (frame["term"], frame["leader"]) == (term, leader)
        follows = frame["prev"] == last and frame["frame"] == number + 1
        if follows and (own or (opens and frame["term"] == term + 1)):
            log_id = log_id or frame["log_id"]
            if frame["log_id"] != log_id:
                raise Found("truth", f"position {place}: of another log")
            if not own:
                cut = _Cut()  # what a former leader began is void
            term, leader, number = frame["term"], frame["leader"], frame["frame"]
            last = hashlib.blake2b(data, digest_size=16).hexdigest()
            inbox_next = frame.get("inbox_next", 0)
            decided = frame.get("decided", True)
            whole = cut.take(frame, place)
            if whole is not None:
                steps.append(Step(place, last, term, frame["time"], decided, inbox_next, whole))
        elif own or (frame["term"] > term and not opens):
            raise Found("truth", f"position {place}: frame {frame['frame']} follows no other")
        elif opens and frame["term"] > term + 1:
            raise Found("truth", f"position {place}: term {frame['term']} after {term}")
    return steps


def check(steps: list[Step], acknowledged: tuple[str, ...]) -> None:
    """Hold what leaders believed against what counts, and look at numbers and times.

    Raises:
        Found: A step that was acknowledged does not count; numbers have gaps; time goes back.
    """
    counts = {step.hash for step in steps}
    lost = [one for one in acknowledged if one not in counts]
    if lost:
        raise Found("truth", f"{len(lost)} acknowledged steps do not count, first {lost[0]}")
    if len(set(acknowledged)) != len(acknowledged):
        raise Found("truth", "a step was acknowledged twice")
    seq, time = 0, 0
    for step in steps:
        if step.time < time:
            raise Found("truth", f"position {step.place}: time goes back")
        time = step.time
        for event in step.events:
            seq += 1
            if event.get("seq") != seq:
                raise Found("truth", f"position {step.place}: event {event.get('seq')}, not {seq}")

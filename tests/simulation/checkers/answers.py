"""Every proposal that was acknowledged is answered once, in the order of the inbox, by what it says."""

from __future__ import annotations

import json
from typing import Any

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.truth import Step


def check(steps: list[Step], inbox: tuple[Any, ...], told: tuple[tuple[int, str], ...]) -> None:
    """Walk log and inbox side by side.

    Args:
        steps: Those that count.
        inbox: Its records, each with ``data`` and ``id``.
        told: Position and id of each proposal that its producer knows to be there.

    Raises:
        Found: A proposal is passed over, answered twice, out of order, or by something else.
    """
    for place, name in told:
        if inbox[place].id != name:
            raise Found("answers", f"proposal {name} is not at position {place}")
    place, accepted = 0, set[str]()
    for step in steps:
        for event in step.events:
            if not _answers(event):
                continue
            if place >= len(inbox):
                raise Found("answers", f"event {event['seq']} answers nothing")
            _compare(event, inbox[place], place, accepted)
            place += 1
        if step.inbox_next != place:
            raise Found(
                "answers",
                f"position {step.place}: the inbox is read to {step.inbox_next}, answered to {place}",
            )
    if place != len(inbox):
        raise Found("answers", f"{len(inbox) - place} proposals are never answered")


def _answers(event: dict[str, Any]) -> bool:
    return event["type"] == "InputRejected" or bool(event.get("proposal"))


def _compare(event: dict[str, Any], record: Any, place: int, accepted: set[str]) -> None:
    """Raise Found unless this event answers this record."""
    if event["type"] == "InputRejected":
        if event.get("position") != place:
            raise Found("answers", f"position {place} has the answer of {event.get('position')}")
        if event.get("code") == "internal-error":
            raise Found("answers", f"position {place} made the engine raise: {event['reason']}")
        return
    name = event["proposal"]
    if name != record.id:
        raise Found("answers", f"position {place} of {record.id} has the answer to {name}")
    if name in accepted:
        raise Found("answers", f"proposal {name} is accepted twice")
    accepted.add(name)
    said = json.loads(record.data)
    wrong = [key for key in said if key not in ("seq", "cause") and event.get(key) != said[key]]
    if wrong:
        raise Found("answers", f"proposal {name} is accepted with another {', '.join(wrong)}")

"""A tracer that writes down why everything was passed over."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from replays.wording import CAUSES, REMEDIES, sentence


class Note(Struct, frozen=True, kw_only=True):
    """One consideration: what was looked at, the code of the rule that decided, what it means, and on which facts."""

    subject: str
    code: str
    sentence: str
    facts: dict[str, Any] = {}


def cause(subject: str, code: str, /, **facts: object) -> Note:
    """Return what holds an ask, with its sentence; the code is one of `CAUSES`."""
    return Note(subject=subject, code=code, sentence=CAUSES[code](facts), facts=facts)


def remedy(subject: str, code: str, /, **facts: object) -> Note:
    """Return what would let an ask run, with its sentence; the code is one of `REMEDIES`."""
    return Note(subject=subject, code=code, sentence=REMEDIES[code](facts), facts=facts)


class RecordingTracer:
    """A tracer that keeps what it hears, each consideration once."""

    def __init__(self, asks: frozenset[str] | None = None) -> None:
        """Start with empty pages.

        Args:
            asks: Those that are explained; None: all.
        """
        self.notes: list[Note] = []
        self._asks = asks
        self._seen: dict[str, None] = {}

    def wants(self, ask: str) -> bool:
        """Tell whether this ask is explained."""
        return self._asks is None or ask in self._asks

    def note(self, subject: str, code: str, **facts: object) -> None:
        """Take down one consideration."""
        found = Note(subject=subject, code=code, sentence=sentence(code, facts), facts=facts)
        if repr(found) not in self._seen:
            self._seen[repr(found)] = None
            self.notes.append(found)

    def about(self, ask: str) -> list[Note]:
        """Return what was noted for or about an ask."""
        return [note for note in self.notes if note.subject == ask or note.facts.get("ask") == ask]

    def of(self, ask: str, code: str) -> dict[str, Any] | None:
        """Return the facts of the last note with this code about an ask itself; None when there is none."""
        for note in reversed(self.notes):
            if note.subject == ask and note.code == code:
                return note.facts
        return None

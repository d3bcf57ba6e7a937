"""A tracer that writes down why everything was passed over."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from replays.explaining.wording import sentence


class Note(Struct, frozen=True, kw_only=True):
    """One consideration: what was looked at, the code of the rule that decided, what it means, and on which facts."""

    subject: str
    code: str
    sentence: str
    facts: dict[str, Any] = {}


class Notebook:
    """A tracer that keeps what it hears, each consideration once."""

    def __init__(self) -> None:
        """Start with empty pages."""
        self.notes: list[Note] = []
        self._seen: dict[str, None] = {}

    def note(self, subject: str, code: str, **facts: object) -> None:
        """Take down one consideration."""
        found = Note(subject=subject, code=code, sentence=sentence(code, facts), facts=facts)
        if repr(found) not in self._seen:
            self._seen[repr(found)] = None
            self.notes.append(found)

    def about(self, ask: str) -> list[Note]:
        """Return what was noted for or about an ask."""
        return [note for note in self.notes if note.subject == ask or note.facts.get("ask") == ask]

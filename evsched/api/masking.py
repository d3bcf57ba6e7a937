"""Names of foreign queues, and of what is in them, are masked in what a principal is told.

An answer is walked through, and each word of it that names a queue, ask, allocation, application or
user that the principal does not see becomes ``hidden-1``, ``hidden-2``, …: the same name gets the
same number within one answer. What a word names is looked up in the states and in the read model,
which knows all names that ever were.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from evsched.api.rights import Rights, queue_in
from evsched.core.state import State

_CUTS = (
    re.compile(r"\S+"),
    re.compile(r"[^\s,;()\[\]{}<>\"'`|…→“”\u2018\u2019«»]+"),
    re.compile(r"[^\s,;()\[\]{}<>\"'`|…→“”\u2018\u2019«»:=]+"),
)
"""How a sentence is cut into words, the longest first: a name may hold almost any letter, and may
stand in quotes, with an ``'s``, or behind a colon."""

_MARKS = ",.;:!?()[]{}\"'`…"


class Masker:
    """Masks one answer after the other for one principal."""

    def __init__(
        self,
        rights: Rights,
        states: tuple[State, ...],
        queue_ever: Callable[[str], str | None],
        is_queue: Callable[[str], bool],
    ) -> None:
        """Look names up.

        Args:
            rights: Of the principal.
            states: Of the moment asked about, and now.
            queue_ever: From an id to a queue in which it was; None: it never was.
            is_queue: Whether there ever was a queue of this name.
        """
        self._rights = rights
        self._states = states
        self._queue_ever = queue_ever
        self._is_queue = is_queue
        self._foreign: dict[str, bool] = {}
        self._users: frozenset[str] | None = None
        self._numbers: dict[str, int] = {}

    def answer(self, document: Any) -> Any:
        """Return an answer, made of what JSON has, without foreign names."""
        self._numbers = {}
        return self._masked(document)

    def foreign(self, name: str) -> bool:
        """Tell whether this is a name that the principal does not see."""
        found = self._foreign.get(name)
        if found is None:
            found = self._foreign[name] = self._is_foreign(name)
        return found

    def _is_foreign(self, name: str) -> bool:
        if any(name in state.queues for state in self._states) or self._is_queue(name):
            return not self._rights.knows(name)
        queues = [queue for state in self._states if (queue := queue_in(state, name)) is not None]
        ever = self._queue_ever(name) if not queues else None
        queues += [ever] if ever is not None else []
        if queues:
            return not all(self._rights.sees(queue) for queue in queues)
        return name in self._foreign_users()

    def _foreign_users(self) -> frozenset[str]:
        """Return the users all of whose applications are foreign."""
        if self._users is None:
            own: set[str] = set()
            other: set[str] = set()
            for state in self._states:
                for one in state.applications.values():
                    (own if self._rights.sees(one.leaf.path) else other).add(one.user)
            self._users = frozenset(other - own)
        return self._users

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(key): self._masked(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(one) for one in value]
        return value

    def _text(self, text: str) -> str:
        if not text:
            return text
        if self.foreign(text):
            return self._hidden(text)
        for cut in _CUTS:
            text = cut.sub(self._word, text)
        return text

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        bare = word.strip(_MARKS)
        if not bare or not self.foreign(bare):
            return word
        return word.replace(bare, self._hidden(bare), 1)

    def _hidden(self, name: str) -> str:
        return f"hidden-{self._numbers.setdefault(name, len(self._numbers) + 1)}"

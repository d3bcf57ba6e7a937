"""Where a cluster keeps its queues: which objects these are, and what configuration they make together."""

from __future__ import annotations

from typing import Protocol

from events.configuration import Configuration
from evsched.agents.kubernetes.objects import ApiObject, ObjectKind


class Queues(Protocol):
    """Objects that are configuration; what is noted of them makes one document.

    Attributes:
        kinds: Of the objects, in the order in which they are listed before anything refers to them.
    """

    kinds: tuple[ObjectKind, ...]

    def listed(self, kind: ObjectKind, objects: tuple[ApiObject, ...]) -> None:
        """Note all objects of a kind; those that were noted before and are not among them are gone."""

    def changed(self, kind: ObjectKind, found: ApiObject, *, gone: bool) -> None:
        """Note one object of a kind."""

    def document(self) -> str | None:
        """Return the text that they make together; None: not all of them are known yet."""

    def read(self, document: str) -> Configuration:
        """Return the configuration that a text makes.

        Raises:
            ValueError: With every fault.
        """

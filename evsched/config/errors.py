"""What is wrong with a configuration document, with its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, or worth knowing, in a document.

    Attributes:
        source: Name of the file, ``config`` where the document came as a part of another one.
        line: Line of the file from 1; 0 when unknown.
        path: Place inside the document (``partitions[0].queues[1].resources.max``); empty for the
            whole of it.
        message: What was found and what was expected.
    """

    source: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        """Return ``file:line path: message``, without what is unknown."""
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place} {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class ConfigurationError(ValueError):
    """A configuration was refused as a whole; whoever wrote it has to change it.

    Attributes:
        faults: Everything that is wrong, in the order of the document; at least one.
    """

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("\n".join(str(fault) for fault in faults))

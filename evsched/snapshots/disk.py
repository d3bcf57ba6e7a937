"""The few things that snapshots do to a disk, one method each, so that a test can stop after every one of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from events.streams import private_files

if TYPE_CHECKING:
    from pathlib import Path


class Disk:
    """A real disk."""

    def create(self, path: Path) -> int:
        """Create a new file that only its owner may read; return its descriptor. Raises FileExistsError."""
        return private_files.create(path)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of the data."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, descriptor: int) -> None:
        """Return when what was written would survive a loss of power."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Close a file."""
        os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its final name, in one step."""
        old.replace(new)

    def sync_folder(self, folder: Path) -> None:
        """Return when the names in a folder would survive a loss of power."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Remove a file; one that is gone is no error."""
        path.unlink(missing_ok=True)

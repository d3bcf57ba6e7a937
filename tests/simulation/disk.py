"""A disk that is full, tears files, and forgets what it said was safe."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

from evsched.snapshots.disk import Disk


class SimulatedDisk(Disk):
    """Files lie in a real folder; what `sync` said of them may not be true.

    Attributes:
        full: A write stops somewhere in the file.
        lies: What was synced is not safe all the same.
    """

    def __init__(self, dice: Random) -> None:
        self.full = self.lies = False
        self._dice = dice
        self._unsafe: list[Path] = []
        self._written: list[Path] = []

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of the data, or what there is room for."""
        if self.full:
            super().write(descriptor, data[: self._dice.randrange(len(data))])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Take no time: what a loss of power does is drawn in `lose_power`."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file its name."""
        super().rename(old, new)
        self._unsafe.append(new)
        self._written = [*self._written[-5:], new]

    def sync_folder(self, folder: Path) -> None:
        """Make files safe, or say so."""
        if not self.lies:
            self._unsafe.clear()

    def lose_power(self) -> None:
        """Tear or lose what was not safe, and now and then flip a bit of what was."""
        dice = self._dice
        for path in self._unsafe:
            if not path.exists():
                continue
            if dice.random() < 0.3:
                path.unlink()
            else:
                os.truncate(path, dice.randrange(path.stat().st_size))
        self._unsafe.clear()
        if self._written and dice.random() < 0.2:
            path = dice.choice(self._written)
            if path.exists() and (data := bytearray(path.read_bytes())):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
                path.write_bytes(data)

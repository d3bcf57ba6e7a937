"""Numbers for sets of amounts, by first appearance in the log, for ever: a few dozen bytes each.

The record of the state names the amounts of an ask by such a number, and holds all amounts that ever
appeared (record versions 1 and 2). So none may be forgotten, even when nothing that is there has
them any more. What is kept here is their encoding alone, one behind the other, as the record has it;
`evsched.core.resources` makes shapes of those that are in use.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b

import msgspec

FEWEST_SLOTS = 64


class Numbers:
    """Byte strings and their numbers, from 0 on."""

    __slots__ = ("_ends", "_slots", "_written")

    def __init__(self) -> None:
        """Start empty."""
        self._written = bytearray()
        self._ends = array("Q")
        # Open addressing: each slot holds a number plus 1, or 0.
        self._slots = array("L", [0]) * FEWEST_SLOTS

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._ends)

    def __getitem__(self, number: int) -> bytes:
        """Return the bytes with a number; raise IndexError when there are none."""
        end = self._ends[number]
        return bytes(self._written[self._ends[number - 1] if number else 0 : end])

    def of(self, data: bytes) -> int:
        """Return the number of these bytes, the next one when they are new."""
        place = self._place(data)
        if self._slots[place]:
            return self._slots[place] - 1
        self._written += data
        self._ends.append(len(self._written))
        self._slots[place] = len(self._ends)
        if 2 * len(self._ends) > len(self._slots):
            self._slots = array("L", [0]) * (2 * len(self._slots))
            for number in range(len(self._ends)):
                self._slots[self._place(self[number])] = number + 1
        return len(self._ends) - 1

    def _place(self, data: bytes) -> int:
        """Return the slot of these bytes, or the free one where they belong."""
        slots = self._slots
        mask = len(slots) - 1
        # Strong, as strangers choose the amounts, and many that meet in one slot would be slow.
        place = int.from_bytes(blake2b(data, digest_size=8).digest(), "little") & mask
        while (found := slots[place]) and self[found - 1] != data:
            place = (place + 1) & mask
        return place

    def encoded(self) -> msgspec.Raw:
        """Return all of them, each a MessagePack value, as one MessagePack array."""
        count = len(self._ends)
        if count < 16:  # noqa: PLR2004 - the sizes of an array in MessagePack
            header = bytes([0x90 | count])
        elif count < 2**16:
            header = b"\xdc" + count.to_bytes(2, "big")
        else:
            header = b"\xdd" + count.to_bytes(4, "big")
        return msgspec.Raw(header + self._written)

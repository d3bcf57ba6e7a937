"""Whether the file of a read model is as it was written: SQLite notices a torn page, but no letter that was altered.

When nothing writes a read model any more, its file is *sealed*: a small file beside it, `NAME.db.seal`,
holds size and hash of all its bytes. Who asks a question compares; who begins to write compares and then
takes the seal away. A file that is being followed has no seal, and neither has one whose follower was
killed: what is altered then goes unseen until the follower ends in order or the file is made anew.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import msgspec

from events.streams import private_files

if TYPE_CHECKING:
    from pathlib import Path


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What a file was when it was sealed.

    Attributes:
        size: In bytes.
        blake2b: Hash of all of them, 128 bits, in hexadecimal.
    """

    size: int
    blake2b: str


class SealBroken(Exception):
    """The file is not the one that was sealed; the message says what differs."""


def seal_of(path: Path) -> Path:
    """Return where the seal of a file lies."""
    return path.with_name(f"{path.name}.seal")


def seal(path: Path) -> None:
    """Seal a file that nothing writes."""
    draft = path.with_name(f".{path.name}.seal.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(private_files.create(draft), "wb") as file:
        file.write(msgspec.json.encode(_measured(path)))
    draft.replace(seal_of(path))


def compare(path: Path) -> None:
    """Compare a file with its seal, if it has one.

    Raises:
        SealBroken: The file or the seal was altered.
    """
    try:
        expected = msgspec.json.decode(seal_of(path).read_bytes(), type=Seal)
    except FileNotFoundError:
        return
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SealBroken(f"its seal cannot be read: {error}") from error
    found = _measured(path)
    # A follower that began meanwhile broke the seal, and then it is no longer of this file.
    if found != expected and seal_of(path).exists():
        raise SealBroken(
            f"was altered since it was written: found {found.size} bytes of hash {found.blake2b}, "
            f"expected {expected.size} of {expected.blake2b}"
        )


def tear(path: Path) -> None:
    """Take the seal of a file away, before it is written."""
    seal_of(path).unlink(missing_ok=True)


def _measured(path: Path) -> Seal:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        return Seal(size=file.tell(), blake2b=found.hexdigest())

"""Recorded logs: for each section of each seed, one that shows what it says, in a folder for every released version.

``index.json`` names them with a sentence each and the digest of the state at their end. A test
decides all of them again and rebuilds the digests, so that no version ever decides or reads
otherwise unnoticed. ``python -m replays.recordings`` makes those of the present version anew from
the repository's scenario files; nothing else does.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

FOLDER = Path(__file__).resolve().parent
INDEX = "index.json"


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded log.

    Attributes:
        file: Its name, in the folder of its version.
        seed: The document it belongs to, and which section of it.
        shows: What it shows, in a sentence.
        events: How many it has.
        decisions: How many of each kind of decision.
        hash: Of its last frame.
        digest: Of the state at its end.
    """

    file: str
    seed: str
    section: str
    shows: str
    events: int
    decisions: dict[str, int]
    hash: str
    digest: str


def versions() -> list[Path]:
    """Return the folders of all released versions."""
    return sorted(path.parent for path in FOLDER.glob(f"*/{INDEX}"))


def recordings(folder: Path) -> list[Recording]:
    """Return the recordings of one version, in the order of the seeds."""
    return msgspec.json.decode((folder / INDEX).read_bytes(), type=list[Recording])

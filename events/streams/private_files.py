"""Files and folders for their owner alone, whatever the umask, and the one check of ids that become names of files.

A log may come from a stranger, and so may its id. An id that is used as the name of a file or folder
passes `plain_name` first; there is no other way from a log to a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PLAIN_NAME = "1 to 100 lower-case letters, digits and hyphens, the first no hyphen"
"""What an id must consist of to be the name of a file."""

_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_FILE, _FOLDER = 0o600, 0o700


def plain_name(log_id: str) -> str | None:
    """Return the id of a log for use as the name of a file or folder; None when it cannot be one.

    Ids that evsched gives are 32 hexadecimal digits, those of recordings words with hyphens. Capital
    letters are refused, as some file systems do not tell them from small ones.
    """
    return log_id if _PLAIN.fullmatch(log_id) else None


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for its owner alone; one that is there stays as it is.

    Raises:
        OSError: It cannot be made, or something else is there.
    """
    if not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(mode=_FOLDER, exist_ok=True)


def create(path: Path) -> int:
    """Make a new file that its owner alone can read and write; return its descriptor, open for writing.

    Raises:
        FileExistsError: Something is there, be it a link.
        OSError: It cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, _FILE)


def touch(path: Path) -> None:
    """Make a file that its owner alone can read and write, if there is none yet.

    Raises:
        OSError: It cannot be made, or the one that is there cannot be opened.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE))

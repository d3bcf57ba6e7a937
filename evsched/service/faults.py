"""Where a fault of our own lies, in words that fit into one line of a log."""

from __future__ import annotations

import traceback
from pathlib import Path

UNKNOWN = "?"


def place_of(error: BaseException) -> str:
    """Return file, line and function of the innermost frame that raised this; ``?`` when it was never raised."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return UNKNOWN
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"

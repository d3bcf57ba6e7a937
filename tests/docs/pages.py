"""The pages in `docs/` as tests see them: their blocks of code."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page, language):
    """Return the blocks of code in a page that are in a language, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [found[2] for found in _BLOCK.finditer(text) if found[1] == language]


def commands(page):
    """Return the lines of a page that call evsched: indented ones, as a reader would type them."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return [
        line.strip().partition("    #")[0].strip()
        for line in lines
        if line.startswith("    evsched ")
    ]

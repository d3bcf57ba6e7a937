"""The page names what it needs at first, so that a browser fetches it all at once and not one level behind the other."""

from __future__ import annotations

import re
from pathlib import Path

import evsched.page

PAGE = Path(evsched.page.__file__).parent
IMPORT = re.compile(r"""(?:from ?|import ?)["'](\.[^"']+\.js)["']""")


def needed(path: Path, found: set[Path]) -> set[Path]:
    """Add a module and all that it imports when it is loaded."""
    if path not in found:
        found.add(path)
        for name in IMPORT.findall(path.read_text(encoding="utf-8")):
            needed((path.parent / name).resolve(), found)
    return found


def test_everything_that_the_first_view_needs_is_fetched_at_once():
    """`index.html` preloads what `app.js` and the view `now` import, and nothing else."""
    found = needed(PAGE / "app.js", set())
    needed(PAGE / "views" / "now.js", found)
    names = {path.relative_to(PAGE).as_posix() for path in found} - {"app.js"}
    index = (PAGE / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'"modulepreload" href="([^"]+)"', index)) == names

"""YuniKorn's web interface: static files of somebody else, served below ``/yunikorn/``.

They are built to lie at the root of their server, which here is our own page; so the base address in
their first page is put right as it is sent. Their framework writes styles into the page, which our
own policy forbids; theirs allows that, and nothing from elsewhere either.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

PREFIX = "/yunikorn"
FIRST = "index.html"
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
)
_BASE = re.compile(r'<base href="[^"]*"\s*/?>')


class WebFiles(StaticFiles):
    """The files of a folder, the first page with its base address put right."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file; 404 where there is none."""
        if path in {"", ".", FIRST}:
            full, _ = self.lookup_path(FIRST)
            if not full:
                raise HTTPException(404)
            written = await asyncio.to_thread(Path(full).read_text, "utf-8")
            text = _BASE.sub(f'<base href="{PREFIX}/">', written, count=1)
            found = Response(text, media_type="text/html", headers={"cache-control": "no-cache"})
        else:
            found = await super().get_response(path, scope)
        found.headers["content-security-policy"] = POLICY
        return found


def routes(folder: Path | None) -> list[Route | Mount]:
    """Return the routes of the files in a folder; none without one."""
    if folder is None:
        return []

    async def there(_: Request) -> Response:
        return RedirectResponse(f"{PREFIX}/")

    return [Route(PREFIX, there), Mount(f"{PREFIX}/", WebFiles(directory=folder))]

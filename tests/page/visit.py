"""A visit to the page: what it draws, and what goes wrong while it does."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

AXE = (Path(__file__).parent / "vendor" / "axe.js").read_text(encoding="utf-8")
NOTHING = "\N{EN DASH}"
"""What stands in a cell where there is no amount."""

WAIT_MS = 10_000

RESTS = """() => {
  const still = document.querySelector("main[aria-busy=false]:not(:has(.old))") !== null;
  window.stillness = still ? (window.stillness ?? 0) + 1 : 0;
  return window.stillness > 2;
}"""
"""Whether in three frames one behind the other nothing was asked for, and all that is drawn was of the moment."""


class Visit:
    """A tab of its own.

    Attributes:
        page: Playwright's.
        wrong: What went wrong so far: errors on the console, requests to other places, answers that
            say no.
    """

    def __init__(self, browser, address: str, context: dict, refused: tuple[str, ...] = ()) -> None:
        """Open an address, and wait for what is there first; requests for the paths ``refused`` may be."""
        self.wrong: list[str] = []
        self.refused = refused
        self._context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **context}
        )
        self._home = urlsplit(address).netloc
        self.page = self._context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)
        self.go(address)

    def go(self, address: str) -> None:
        """Open an address in this tab."""
        self.page.goto(address)
        self.page.wait_for_selector("main :is(section, .token)")
        self.rest()

    def rest(self) -> None:
        """Return when everything that was asked for is drawn."""
        self.page.evaluate("window.stillness = 0")
        self.page.wait_for_function(RESTS)

    def at(self, seq: int) -> None:
        """Return when the state after an event is drawn."""
        self.page.wait_for_selector(f"main section[data-seq='{seq}']:not(.old)")

    def cells(self, label: str) -> list[list[str]]:
        """Return the texts of a table, row by row."""
        rows = self.page.locator(f"[role=grid][aria-label='{label}'] .rows [role=row]")
        return rows.evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('[role=gridcell]')].map(cell => cell.textContent.trim()))"
        )

    def inaccessible(self) -> list[str]:
        """Return what axe finds serious or critical in the page as it is drawn now."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{one['id']}: {json.dumps(one['nodes'][0]['target'])} {one['nodes'][0]['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
        ]

    def end(self) -> None:
        """Close the tab; fail on what went wrong. A server that stops must stop after that."""
        self._context.close()
        self.check()

    def check(self) -> None:
        """Fail on what went wrong since this was asked last."""
        wrong, self.wrong = self.wrong, []
        assert not wrong, "\n".join(wrong)

    def _heard(self, message) -> None:
        path = urlsplit(message.location.get("url", "")).path
        if message.type in {"error", "warning"} and path not in self.refused:
            self.wrong.append(f"{message.type}: {message.text}")

    def _asked(self, request) -> None:
        place = urlsplit(request.url)
        if place.scheme not in {"data", "blob"} and place.netloc != self._home:
            self.wrong.append(f"foreign request: {request.url}")

    def _answered(self, response) -> None:
        path = urlsplit(response.url).path
        if response.status >= 400 and path not in self.refused:
            self.wrong.append(f"{response.status}: {response.url}")

"""Take the pictures of the README and the documentation: the page, over the log of `evsched demo`.

    .venv/bin/python -m scripts.pictures

Needs Chromium, as the tests of the page do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PICTURES = {
    "now": "?at=20&sel=queue:root.web",
    "timeline": "?view=timeline&at=30",
    "why": "?view=why&at=30&sel=ask:web-5~1",
}
"""File's name to the address of what is on it."""

SIZE = {"width": 1200, "height": 640}


def serve(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server over a new log of the demo; return it and its address."""
    evsched = [sys.executable, "-m", "evsched"]
    log = folder / "demo.db"
    subprocess.run([*evsched, "demo", "--keep", log, "--json"], check=True, capture_output=True)  # noqa: S603
    where = ["--log", f"sqlite:///{log}", "--db", str(folder / "model.db")]
    command = [*evsched, "serve", *where, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    assert server.stderr is not None
    line = next(line for line in server.stderr if line.startswith("http://"))
    return server, line.split()[0]


def main() -> None:
    """Take all of them anew."""
    chromium = os.environ.get("EVSCHED_TEST_CHROMIUM") or shutil.which("chromium")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server, address = serve(Path(folder))
        # Chromium refuses its sandbox to root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        for name, query in PICTURES.items():
            page.goto(address + query)
            page.wait_for_selector("main section:not(.old) h2, main section:not(.old) canvas")
            page.wait_for_selector("main[aria-busy=false]:not(:has(.old))")
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)


if __name__ == "__main__":
    main()

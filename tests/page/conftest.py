"""What the tests of the page share: a browser, servers over a few logs, and a visit that notices what goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.page.visit import Visit

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "the tests of the page need Chromium and found none: install it (Debian: apt-get install chromium), "
    "or name it: EVSCHED_TEST_CHROMIUM=/path/to/chromium"
)


def pytest_collection_modifyitems(items):
    """Mark the tests that need a browser, and leave them to the end.

    The client of the browser runs an event loop in the thread of the tests as long as the browser is
    there, so that no asynchronous test can come behind them in the same process.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def browser():
    """Return the Chromium of this machine, started once."""
    path = os.environ.get("EVSCHED_TEST_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUMS)), None
    )
    if path is None:
        pytest.fail(MISSING)
    # Chromium refuses its sandbox to root, and containers run as root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()


@contextmanager
def serving(log: Path, folder: Path, *options: str):
    """Run `evsched serve` over an embedded log with further options, yield its address, and stop it."""
    command = [sys.executable, "-m", "evsched", "serve", "--log", f"sqlite:///{log}", "--listen", "127.0.0.1:0",
               "--db", str(folder / "model.db"), "--snapshots", str(folder / "snapshots"), *options]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("http://"):
                break
        else:
            pytest.fail(f"evsched serve did not begin: {''.join(said)}")
        yield said[-1].split()[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.fixture(scope="session")
def demo_log(tmp_path_factory):
    """Return the log of `evsched demo`: 41 events, two preemptions, a lowered maximum."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    command = [sys.executable, "-m", "evsched", "demo", "--keep", str(path), "--json"]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def demo(demo_log, tmp_path_factory):
    """Return the address of a server over the demo's log."""
    with serving(demo_log, tmp_path_factory.mktemp("served")) as address:
        yield address


@pytest.fixture
def visit(browser):
    """Return a function that opens an address; what goes wrong in the page fails the test at its end."""
    visits = []

    def opened(address: str, refused: tuple[str, ...] = (), **context) -> Visit:
        visits.append(Visit(browser, address, context, refused))
        return visits[-1]

    yield opened
    for one in visits:
        one.end()


@pytest.fixture(scope="module")
def tab(browser, demo):
    """Return a tab over the demo's log that the tests of a module share: the modules of the page are fetched once."""
    one = Visit(browser, demo, {})
    yield one
    one.end()


@pytest.fixture
def on_demo(tab, demo):
    """Return a function that opens a place of the demo's log in the shared tab; what goes wrong fails the test at its end."""

    def opened(query: str = "") -> Visit:
        tab.go(demo + query)
        return tab

    yield opened
    tab.check()


@pytest.fixture
def thread():
    """Return a function that calls another one in a thread of its own: that of the test runs the event loop of the browser."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()

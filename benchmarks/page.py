"""What the page takes in a browser over a large log: the first view, a drag of the time bar, and each list.

The log: a million events, 5,000 nodes, 50 leaves; 100,000 asks wait and 50,000 tasks run at its end.
It is made once and kept in build/large. A server of its own serves it, Chromium draws it; both share
this machine. Times are those of the page's own clock, from the input to the frame after which
everything asked for is drawn. Limit: the same for a log of a few events.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from benchmarks.looking_back import EVENTS, NODES, percentile, records
from benchmarks.rows import Benchmark, Row
from events.streams import open_streams

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

KEPT = Path(__file__).resolve().parents[1] / "build" / "large"
"""Where the log, its read model and its snapshots lie; removed, they are made anew."""

WAITING = 100_000
GROUP = 200
READY_S = 400.0
VIEWS, DRAGGED, LISTED = 12, 120, 20
"""How often the page is opened, how many places the time bar is dragged to, how often each list is asked for."""

FIRST_MS, REDRAW_MS = 1000.0, 100.0

LISTS = {
    "queues and nodes": "?",
    "nodes": "?tab=nodes",
    "applications": "?tab=applications",
    "asks": "?tab=asks",
    "asks of a queue": "?tab=asks&sel=queue:root.p1.l1",
    "allocations": "?tab=allocations",
    "settings": "?tab=config",
    "events": "?view=log",
}
"""Each list, and its place."""

DRAWN = "main[aria-busy=false]:not(:has(.old)) section"

WATCH = """
window.drawn = (ready) => new Promise((done, fail) => {
  const look = () => requestAnimationFrame((now) => {
    if (ready()) done(performance.now());
    else if (now > end) fail(new Error(`not drawn: ${location.href}`));
    else look();
  });
  const end = performance.now() + 20_000;
  look();
});
window.stands = (seq) => document.querySelector("main:not(:has(.old))")
  && [...document.querySelectorAll("main [data-seq], main [data-list]")].every(
    (one) => (one.dataset.seq ?? one.dataset.list) === String(seq))
  && document.querySelector(`main [data-seq="${seq}"]`) !== null;
window.stand = async (seq) => {
  const slider = document.querySelector("input[type=range]");
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(slider, seq);
  const began = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return (await drawn(() => stands(seq))) - began;
};
window.first = drawn(() => document.querySelector(".heat canvas")
  && document.querySelector("main:not(:has(.old)) [role=grid] .rows [role=row]"));
"""
"""What the page tells about itself."""


async def _write(path: Path, events: int) -> None:
    async with open_streams(f"sqlite:///{path}") as streams:
        await streams.log.create()
        group = []
        for record in records(events, waiting=WAITING):
            group.append(streams.log.append(record.data))
            if len(group) == GROUP:
                await asyncio.gather(*group)
                group = []
        await asyncio.gather(*group)


def large_log() -> Path:
    """Return the log of a million events, made where it is not there yet."""
    path = KEPT / "log.db"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            draft = Path(folder) / "log.db"
            asyncio.run(_write(draft, EVENTS))
            draft.rename(path)
    return path


@contextmanager
def served(log: Path, folder: Path) -> Iterator[str]:
    """Run `evsched serve` over an embedded log, and yield its address once all of it is read."""
    command = [
        sys.executable, "-m", "evsched", "serve", "--log", f"sqlite:///{log}", "--listen", "127.0.0.1:0",
        "--db", str(folder / "model.db"), "--snapshots", str(folder / "snapshots"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("http://"))
        address = said.split()[0]
        _wait_ready(f"{address}readyz")
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def _wait_ready(address: str) -> None:
    """Return once the server has read its log; raise `TimeoutError` after a while."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address):  # noqa: S310 - our own server
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(address)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the Chromium of this machine."""
    path = os.environ.get("EVSCHED_TEST_CHROMIUM") or shutil.which("chromium")
    # Chromium refuses its sandbox to root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()


def _opened(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_selector(DRAWN)
    return page


def first_views(browser: Browser, address: str) -> list[float]:
    """Return how long it takes from the request of the page to queues and nodes, milliseconds; nothing is cached."""
    found = []
    for _ in range(VIEWS):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(address)
        found.append(float(page.evaluate("first")))
        context.close()
    return found


def drag(page: Page, seqs: Iterable[int]) -> list[float]:
    """Return how long each place takes to be drawn, milliseconds, one behind the other."""
    return [float(page.evaluate("(seq) => stand(seq)", seq)) for seq in seqs]


def page_rows() -> Iterable[Row]:
    """All of it; the slowest in a hundred of each, beside what was asked for."""
    log = large_log()
    with served(log, KEPT) as address, chromium() as browser:
        yield _row(
            "first view",
            first_views(browser, address),
            FIRST_MS,
            "queues and nodes, nothing cached",
        )
        page = _opened(browser, f"{address}?at=0")
        step = EVENTS // DRAGGED
        found = drag(page, range(step, EVENTS, step))
        yield _row(
            "drag of the time bar, a place redrawn",
            found,
            REDRAW_MS,
            f"{step} events apart, queues and {NODES} nodes",
        )
        draw = Random(1)
        for name, place in LISTS.items():
            page.goto(f"{address}{place}&at={EVENTS // 2}")
            page.wait_for_selector(DRAWN)
            found = drag(page, (draw.randrange(EVENTS // 2, EVENTS) for _ in range(LISTED)))
            yield _row(f"list of {name} at a random moment", found, REDRAW_MS, "")


def _row(name: str, took: list[float], target: float, note: str) -> Row:
    return Row(
        name=f"page, {EVENTS:,} events: {name}, p95",
        value=percentile(took, 95),
        unit="ms",
        target=target,
        better="less",
        note=f"p50 {percentile(took, 50):.0f}, worst {max(took):.0f}; {note}".removesuffix("; "),
    )


BENCHMARKS: dict[str, Benchmark] = {"large": page_rows}

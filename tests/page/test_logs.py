"""Other logs than the demo's in a real browser: Kueue's words, an empty log, names that are meant to do harm."""

from __future__ import annotations

import asyncio

import pytest

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from events.streams import open_streams
from tests.api.histories import kueue
from tests.api.served import kept
from tests.page.conftest import serving
from tests.page.visit import NOTHING
from tests.replays.logs import sealed, taken


@pytest.fixture
def served(tmp_path):
    """Return a function that serves the log of these steps, and gives its address."""

    def run(steps):
        log = tmp_path / "log.db"
        asyncio.run(kept(sealed(steps), f"sqlite:///{log}"))
        return serving(log, tmp_path)

    return run


def test_a_log_of_kueue_is_shown_in_the_words_of_kueue(served, visit, thread):
    """ClusterQueues and cohorts with nominal quotas, workloads instead of asks, and no nodes."""
    with thread(served, kueue(2)) as address:
        one = visit(address)
        one.page.get_by_role("heading", name="ClusterQueues and cohorts").wait_for()
        one.page.get_by_role("columnheader", name="nominal").wait_for()
        tabs = one.page.get_by_role("tab").all_text_contents()
        assert [tab.strip() for tab in tabs] == [
            "Overview", "Applications", "Pending workloads", "Admitted workloads", "Timers", "Configuration",
        ]  # fmt: skip
        assert one.inaccessible() == []
        one.end()


def test_an_empty_log_says_what_to_do(tmp_path, visit, thread):
    """Before the first event there is no configuration, and the page says how one is applied."""

    async def create():
        async with open_streams(f"sqlite:///{tmp_path / 'log.db'}") as streams:
            await streams.log.create()

    thread(asyncio.run, create())
    with serving(tmp_path / "log.db", tmp_path) as address:
        one = visit(address)
        one.page.get_by_text("evsched config apply").wait_for()
        assert one.inaccessible() == []
        one.end()


def test_queues_without_any_amount_are_shown(served, visit, thread):
    """Nothing is limited or used yet: the figures are those of what waits, and before that there are none."""
    spec = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(QueueSpec(name="prod"),)))
    submitted = v.ApplicationSubmitted(application="a", queue="root.prod")
    ask = v.AskSubmitted(ask="a-1", application="a", resources={"vcore": 10**9})
    with thread(served, taken(spec, [(10, [submitted], False), (20, [ask], False)])) as address:
        one = visit(address)
        one.page.get_by_label("resource").wait_for()
        assert one.cells("Queues")[1][:6] == ["prod", "", NOTHING, "0", NOTHING, "1000000"]
        one.go(f"{address}?at=2")
        assert [row[:4] for row in one.cells("Queues")] == [
            ["root", "", NOTHING, "0"], ["prod", "", NOTHING, "0"],
        ]  # fmt: skip
        one.end()


HOSTILE = "<img src=x onerror=alert(1)>"


PLACES = ("?tab=allocations", "?view=log", "?view=why&sel=ask:", "?sel=allocation:")


def test_a_name_that_is_markup_stays_a_name(served, visit, thread):
    """It is shown letter by letter, wherever it stands; nothing of it becomes a part of the page."""
    spec = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(QueueSpec(name="prod"),)))
    ask = v.AskSubmitted(
        ask=HOSTILE, application="a&b", queue="root.prod", resources={"vcore": 1000}
    )
    with thread(served, taken(spec, [(10, [ask], False)])) as address:
        one = visit(address)
        for query in PLACES:
            one.go(address + query + (HOSTILE if query.endswith(":") else ""))
            one.page.get_by_text(HOSTILE).first.wait_for()
            assert one.page.locator("main img").count() == 0
        one.end()

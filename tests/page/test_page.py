"""The page in a real browser: every view of a real log, nothing wrong on the console, and the figures of `evsched at`."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from evsched.cli.main import run
from evsched.core.quantity import format_amount
from tests.page.visit import NOTHING

VIEWS = {
    "now": ("", "guaranteed"),
    "nodes": ("?tab=nodes&at=20", "node-1"),
    "asks": ("?tab=asks", "web-1~1"),
    "configuration": ("?tab=config", "quota_preemption_enabled"),
    "selected": ("?at=20&sel=queue:root.web", "leaving"),
    "timeline": ("?view=timeline&at=30", "root.research"),
    "why it waits": ("?view=why&sel=ask:web-5~1", "What would let it run"),
    "why it was evicted": ("?view=why&at=22&sel=allocation:web-5", "by this rule"),
    "preemptions": ("?view=preemptions", "root.research"),
    "difference": ("?view=difference&from=20&at=26", "since when?"),
    "log": ("?view=log&event=20", "PreemptionDecided"),
    "what if": ("?view=whatif", "configuration to try"),
    "audit": ("?view=audit&ask=config-history", "Which configurations were in force"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_shows_the_demo_without_a_fault(on_demo, name):
    """What it is about is there; no error on the console, no request to elsewhere, nothing serious for axe."""
    query, expected = VIEWS[name]
    one = on_demo(query)
    one.page.locator("main").get_by_text(expected).filter(visible=True).first.wait_for()
    assert one.inaccessible() == []


def state_of(log, seq, view, capsys, thread):
    """Return the rows that `evsched at --json` prints."""
    command = ["at", str(seq), view, "--json", "--log", f"sqlite:///{log}"]
    assert thread(run, command) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def shown(row):
    """Return a queue's cells as the page has them, for vcore."""

    def amount(amounts):
        return format_amount("vcore", amounts["vcore"]) if "vcore" in amounts else NOTHING

    used = format_amount("vcore", row["usage"].get("vcore", 0))
    name = row["queue"].rpartition(".")[2]
    return [name, "", amount(row["guaranteed"]), used, amount(row["preempting"]), amount(row["pending"]),
            amount(row["maximum"]), str(row["pending_asks"])]  # fmt: skip


def test_dragging_the_time_bar_shows_what_at_shows(on_demo, demo_log, capsys, thread):
    """Over the whole log, by mouse: at every place the table has the figures of `evsched at --json`."""
    one = on_demo("?at=0")
    slider = one.page.get_by_role("slider")
    box = slider.bounding_box()
    one.page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2)
    one.page.mouse.down()
    seen = []
    for step in range(51):
        one.page.mouse.move(box["x"] + 9 + (box["width"] - 18) * step / 50, box["y"] + 15)
        seq = int(slider.input_value())
        one.at(seq)
        if seq in seen:
            continue
        seen.append(seq)
        rows = state_of(demo_log, seq, "queues", capsys, thread)
        if any(
            row["usage"] or row["pending"] or row["guaranteed"] or row["maximum"] for row in rows
        ):
            assert one.cells("Queues") == [shown(row) for row in rows], seq
    one.page.mouse.up()
    assert seen == sorted(seen)
    assert len(seen) > 35
    one.page.wait_for_url(f"**at={seen[-1]}")


def test_keys_step_through_events_and_decisions(on_demo):
    """The address follows: an event on, a decision back and on, live again."""
    one = on_demo("?at=18")
    place = one.page.get_by_role("slider")
    for key, seq in ((".", 19), ("]", 20), ("]", 21), ("[", 20), (",", 19), ("[", 17)):
        one.page.locator("main").press(key)
        one.at(seq)
        assert place.input_value() == str(seq)
    one.page.locator("main").press("l")
    one.at(41)
    assert "at" not in parse_qs(urlsplit(one.page.url).query)
    one.page.go_back()
    one.at(17)


def test_a_moment_that_is_typed_becomes_an_address_that_stays(on_demo):
    """A time, time before the end, and what is no moment, which is refused with what was expected."""
    one = on_demo()
    entry = one.page.get_by_label("Moment")
    for typed, seq in (("2026-01-01T09:01:40Z", 34), ("-35s", 36), ("7", 7)):
        entry.fill(typed)
        entry.press("Enter")
        one.at(seq)
        assert parse_qs(urlsplit(one.page.url).query)["at"] == [str(seq)]
    entry.fill("yesterday")
    entry.press("Enter")
    assert "expected a seq" in one.page.get_by_role("alert").text_content()


def test_since_when_finds_the_event(on_demo):
    """The maximum of web, lowered between two moments, has its value since the configuration at event 32."""
    one = on_demo("?view=difference&from=30&at=41&q=root.web")
    row = one.page.locator("tr", has_text="maximum")
    row.get_by_role("button", name="since when?").click()
    row.get_by_text("since 32 ConfigurationApplied").wait_for()


def test_a_row_leads_from_list_to_reason(on_demo):
    """From the evictions to why one was evicted, at the moment of the decision, by keyboard alone."""
    one = on_demo("?view=preemptions")
    table = one.page.get_by_role("grid", name="Evictions")
    table.focus()
    table.press("ArrowDown")
    table.press("Enter")
    one.page.get_by_text("decided again: the same").first.wait_for()
    query = parse_qs(urlsplit(one.page.url).query)
    assert (query["view"], query["at"], query["sel"]) == (["why"], ["20"], ["allocation:web-5"])


@pytest.mark.parametrize("name", ["selected", "log"])
def test_a_narrow_dark_window_shows_it_too(demo, visit, name):
    """360 px wide and dark: nothing sticks out to the side, and the colours have contrast."""
    one = visit(demo + VIEWS[name][0], viewport={"width": 360, "height": 740}, color_scheme="dark")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert one.inaccessible() == []

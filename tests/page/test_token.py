"""A server that asks who asks, in a real browser: the page wants a token, and keeps it for its tab alone."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tests.page.conftest import serving

TOKEN = "a-long-random-one"
UNKNOWN = ("/v1/log/stream",)
"""What is asked for before there is a token; all else waits for its answer."""


@pytest.fixture
def guarded(demo_log, tmp_path):
    """Return the address of a server over the demo's log that answers to one token."""
    (tmp_path / "tokens").write_text(f"{sha256(TOKEN.encode()).hexdigest()} carol\n")
    access = tmp_path / "access.yaml"
    access.write_text(f"tokens: {tmp_path / 'tokens'}\naudit: {{users: [carol]}}\n")
    with serving(demo_log, tmp_path, "--access", str(access)) as address:
        yield address


def test_the_page_asks_for_a_token_and_keeps_it_out_of_the_address(guarded, visit):
    """A wrong one is refused; with the right one the same address is shown, live too, until it is let go."""
    one = visit(f"{guarded}?at=20", UNKNOWN)
    entry = one.page.get_by_label("bearer token")
    assert one.inaccessible() == []
    entry.fill("another")
    entry.press("Enter")
    one.page.get_by_role("alert").wait_for()
    entry.fill(TOKEN)
    entry.press("Enter")
    one.at(20)
    assert TOKEN not in one.page.url
    one.page.locator("main").press("l")
    one.at(41)
    assert one.page.evaluate("localStorage.length") == 0
    one.page.get_by_role("button", name="sign out").click()
    entry.wait_for()
    one.end()

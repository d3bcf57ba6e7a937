"""Moments as people type them."""

from __future__ import annotations

import pytest

from replays.history.moments import END, Moment, MomentInvalid, format_time, parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1234", Moment(seq=1234)),
        ("start", Moment(seq=0)),
        ("end", END),
        ("-15m", Moment(before_end_ms=900_000)),
        ("-1h30m", Moment(before_end_ms=5_400_000)),
        ("2026-11-20T14:03:00Z", Moment(time=1_795_183_380_000)),
        ("2026-11-20T14:03:00.250Z", Moment(time=1_795_183_380_250)),
        ("2026-11-20T15:03:00+01:00", Moment(time=1_795_183_380_000)),
        ("2026-11-20T14:03:00", Moment(time=1_795_183_380_000)),
        ("1969-12-31T23:59:59.999Z", Moment(time=-1)),
    ],
)
def test_a_moment_is_a_seq_a_time_or_before_the_end(text, moment):
    """Everything that the documentation shows."""
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "-15", "-m", "12.5", "2026-13-01T00:00:00Z"])
def test_what_is_no_moment_is_refused_with_examples(text):
    """The message shows what could have been typed."""
    with pytest.raises(MomentInvalid, match="expected a seq"):
        parse_moment(text)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_795_183_380_250, "2026-11-20T14:03:00.250Z"),
        (2**53, "9999-12-31T23:59:59.999Z"),
        (-(2**53), "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_shown_in_utc(time, text):
    """Milliseconds only where there are some; what a calendar cannot show, but a proposal may name, is drawn to its ends."""
    assert format_time(time) == text

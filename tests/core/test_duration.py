"""Durations as Go reads them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evsched.core.duration import (
    DurationError,
    format_duration,
    parse_duration_ms,
    parse_duration_ns,
)

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-5s", -5 * SECOND),
        ("1478s", 1478 * SECOND),
        ("5.0s", 5 * SECOND),
        ("5.6s", 5_600_000_000),
        ("5.s", 5 * SECOND),
        (".5s", SECOND // 2),
        ("1.004s", 1_004_000_000),
        ("100.00100s", 100_001_000_000),
        ("10ns", 10),
        ("11us", 11_000),
        ("12\u00b5s", 12_000),
        ("12\u03bcs", 12_000),
        ("13ms", 13_000_000),
        ("1m30s", 90 * SECOND),
        ("3h30m", 3 * HOUR + 30 * MINUTE),
        ("10.5s4m", 4 * MINUTE + 10_500_000_000),
        ("-2m3.4s", -(2 * MINUTE + 3_400_000_000)),
        ("1h2m3s4ms5us6ns", HOUR + 2 * MINUTE + 3 * SECOND + 4_005_006),
        ("39h9m14.425s", 39 * HOUR + 9 * MINUTE + 14_425_000_000),
        ("52763797000ns", 52_763_797_000),
        ("0.3333333333333333333h", 20 * MINUTE - 1),
        ("9007199254740993ns", 2**53 + 1),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.9223372036854775807h", 3320413933267),
        ("0.100000000000000000000h", 6 * MINUTE),
        ("0.830103483285477580700h", 49 * MINUTE + 48_372_539_827),
    ],
)
def test_duration_in_nanoseconds(text, ns):
    """Go's own reading of a duration, but for the last nanosecond of a long fraction."""
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "-",
        "+",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1d",
        "1 s",
        "5S",
        " 5s",
        "5s ",
        "--5s",
        "5s-3s",
        "bogus",
        "1e3s",
        "9223372036854775808ns",
        "9223372036854775.808us",
        "-9223372036854775809ns",
        "2562048h",
        "9" * 100 + "s",
        "1s" * 1000,
        "\u0663s",
    ],
)
def test_duration_refused(text):
    """What Go refuses is refused, with what was found and expected."""
    with pytest.raises(DurationError, match=r"found .* expected"):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("text", "ms"), [("1s", 1000), ("1ns", 1), ("1500us", 2), ("0", 0), ("-1ns", 0), ("-1s", -1000)]
)
def test_duration_in_milliseconds_rounds_up(text, ms):
    """A positive duration never becomes nothing."""
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (30_000, "30s"),
        (90_000, "1m30s"),
        (7_200_000, "2h"),
        (1_500, "1s500ms"),
        (-5_000, "-5s"),
    ],
)
def test_duration_for_people(ms, text):
    """A duration is written without empty parts."""
    assert format_duration(ms) == text


@given(st.integers(-(2**53), 2**53).map(lambda ms: ms % (2**62 // 10**6)))
def test_written_duration_reads_back(ms):
    """A written duration is read back as the same number."""
    assert parse_duration_ms(format_duration(ms)) == ms


@given(st.integers(1, 2**62), st.sampled_from([1, 10**3, 10**6, 10**9, 60 * 10**9, 3600 * 10**9]))
def test_a_fraction_is_exact_and_next_to_floating_point(number, unit):
    """It is the whole nanoseconds of the digits; Go's 64-bit floating point is at most one of them away."""
    digits = str(number)
    name = {1: "ns", 10**3: "us", 10**6: "ms", 10**9: "s", 60 * 10**9: "m", 3600 * 10**9: "h"}[unit]
    found = parse_duration_ns(f".{digits}{name}")
    assert found == int(Fraction(number, 10 ** len(digits)) * unit)
    assert abs(found - int(float(number) * (float(unit) / float(10 ** len(digits))))) <= 1


@given(st.text(alphabet="0123456789.nuµmsh+-", max_size=12))
def test_any_text_is_read_or_refused(text):
    """No text makes the parser fail in another way than by refusing it."""
    try:
        ns = parse_duration_ns(text)
    except DurationError:
        return
    assert -(2**63) <= ns < 2**63

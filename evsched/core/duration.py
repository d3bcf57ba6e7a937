"""Durations as Go's ``time.ParseDuration`` reads them, in integers.

queues.yaml takes its durations from Go programs, so the same texts have to mean the same here. Go
adds the fraction of a number in floating point; here it is exact, and what is left below a
nanosecond is dropped. The two differ by a nanosecond at most, behind some fifteen digits
(``0.3333333333333333333h`` is 20 minutes there and 1 ns less here). Durations are used in
milliseconds, rounded up, where that is the same.
"""

from __future__ import annotations

import re

MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond."""

_MAX_LENGTH = 256
_MAX_NS = 2**63
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter
    "ms": MILLISECOND,
    "s": 1_000 * MILLISECOND,
    "m": 60_000 * MILLISECOND,
    "h": 3_600_000 * MILLISECOND,
}
_TERM = re.compile(r"([0-9]*)(\.?)([0-9]*)([^0-9.]*)")
_EXPECTED = "a duration such as 30s, 1m30s or 2h (units ns us ms s m h)"


class DurationError(ValueError):
    """A text is no duration, or one beyond 292 years. The fault is that of whoever wrote it.

    Attributes:
        found: The text.
        expected: What would have been right, for a person.
    """

    def __init__(self, found: str, expected: str = _EXPECTED) -> None:
        self.found = found if len(found) <= _MAX_LENGTH else found[:_MAX_LENGTH] + "…"
        self.expected = expected
        super().__init__(f"found {self.found!r}, expected {expected}")


def parse_duration_ns(text: str) -> int:
    """Return a Go duration in nanoseconds; it may be negative.

    Raises:
        DurationError: Go would refuse the text: empty, a number without a unit (other than 0), an
            unknown unit, out of range.
    """
    if len(text) > _MAX_LENGTH:
        raise DurationError(text)
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(text)
    total = 0
    while rest:
        match = _TERM.match(rest)
        assert match is not None  # every part of the pattern may be empty
        total += _term(text, match)
        if total > _MAX_NS:
            raise DurationError(text, "a duration within 292 years")
        rest = rest[match.end() :]
    if total == _MAX_NS and not negative:
        raise DurationError(text, "a duration within 292 years")
    return -total if negative else total


def parse_duration_ms(text: str) -> int:
    """Return a Go duration in milliseconds, rounded up, so that what is longer than nothing stays longer than nothing.

    Raises:
        DurationError: As `parse_duration_ns`.
    """
    return -(-parse_duration_ns(text) // MILLISECOND)


def format_duration(ms: int) -> str:
    """Return milliseconds as a person would write them, exactly: ``1m30s``, ``2h``, ``1s500ms``, ``0s``.

    `parse_duration_ms` reads it back as the same number.
    """
    if ms < 0:
        return "-" + format_duration(-ms)
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, millis = divmod(rest, 1000)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _term(text: str, match: re.Match[str]) -> int:
    """Return one number with its unit in nanoseconds."""
    whole, _, fraction, name = match.groups()
    unit = _UNITS.get(name)
    if unit is None or not (whole or fraction):
        raise DurationError(text)
    number = int(whole or "0")
    if number > _MAX_NS // unit:
        raise DurationError(text, "a duration within 292 years")
    return number * unit + _fraction(fraction, unit)


def _fraction(digits: str, unit: int) -> int:
    """Return the whole nanoseconds of the digits behind the point."""
    scale: int = 10 ** len(digits)
    return int(digits or "0") * unit // scale

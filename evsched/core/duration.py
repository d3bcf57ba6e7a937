"""Durations as Go's ``time.ParseDuration`` reads them, in integers.

queues.yaml takes its durations from Go programs, so the same texts have to mean the same here, to
the nanosecond. Go adds the fraction of a number with two operations in floating point, which shows
in the last digit of long fractions (``0.3333333333333333333h`` is 20 minutes there). Those two
operations are done here as integers rounded to 53 bits, half to even, with the same result.
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
_MANTISSA_BITS = 53


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
    """Return the nanoseconds of the digits behind the point, with Go's rounding."""
    number, scale = 0, 1
    for digit in digits:
        # Go drops the digits that its 64 bits cannot hold, and goes on reading.
        if number > (_MAX_NS - 1) // 10 or number * 10 + int(digit) > _MAX_NS:
            break
        number, scale = number * 10 + int(digit), scale * 10
    if number == 0:
        return 0
    step, step_scale = _nearest(unit, scale)
    exact, exact_scale = _nearest(number, 1)
    product, product_scale = _nearest(exact * step, exact_scale * step_scale)
    return product // product_scale


def _nearest(numerator: int, denominator: int) -> tuple[int, int]:
    """Return the fraction with a mantissa of 53 bits that is nearest to a positive one, half to even.

    The denominator of the result is a power of two, or one.
    """
    shift = _MANTISSA_BITS - (numerator.bit_length() - denominator.bit_length())
    # The quotient has 53 or 54 bits with this shift; one less where it is 54.
    if _shifted(numerator, shift) // _shifted(denominator, -shift) >> _MANTISSA_BITS:
        shift -= 1
    quotient, rest = divmod(_shifted(numerator, shift), _shifted(denominator, -shift))
    twice = 2 * rest - _shifted(denominator, -shift)
    if twice > 0 or (twice == 0 and quotient & 1):
        quotient += 1
    return _shifted(quotient, -shift), _shifted(1, shift)


def _shifted(number: int, bits: int) -> int:
    """Return the number times two to the power of ``bits``, or the number itself when ``bits`` is negative."""
    return number << bits if bits > 0 else number

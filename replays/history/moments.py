"""Moments as people type them: a ``seq`` (``1234``), a time (``2026-11-20T14:03:00Z``), or time before the end (``-15m``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from msgspec import Struct

from events.cloudevents import rfc3339
from evsched.core.duration import DurationError, parse_duration_ms

_NUMBER = re.compile(r"[0-9]{1,18}")
_EXPECTED = "expected a seq (1234), a time (2026-11-20T14:03:00Z), time before the end of the log (-15m), `start` or `end`"


class MomentInvalid(ValueError):
    """What was typed is no moment; the message says what was expected."""


class Moment(Struct, frozen=True, kw_only=True):
    """A place in a log; exactly one of the three is set, or none for its end.

    Attributes:
        seq: After this event.
        time: After everything that happened up to this time, milliseconds.
        before_end_ms: So long before the time of the last frame.
    """

    seq: int | None = None
    time: int | None = None
    before_end_ms: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether it is the end of the log."""
        return self.seq is None and self.time is None and self.before_end_ms is None


END = Moment()
START = Moment(seq=0)


def parse_moment(text: str) -> Moment:
    """Return the moment that was typed.

    A time without a zone is UTC. Raises `MomentInvalid`.
    """
    typed = text.strip()
    if typed == "end":
        return END
    if typed == "start":
        return Moment(seq=0)
    if _NUMBER.fullmatch(typed):
        return Moment(seq=int(typed))
    if typed.startswith("-"):
        try:
            return Moment(before_end_ms=parse_duration_ms(typed[1:]))
        except DurationError as error:
            message = f"moment {text!r}: {error}; {_EXPECTED}"
            raise MomentInvalid(message) from error
    try:
        found = datetime.fromisoformat(typed)
    except ValueError as error:
        message = f"moment {text!r}: {_EXPECTED}"
        raise MomentInvalid(message) from error
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    elapsed = found - datetime(1970, 1, 1, tzinfo=UTC)
    return Moment(
        time=elapsed.days * 86_400_000 + elapsed.seconds * 1000 + elapsed.microseconds // 1000
    )


def format_time(time: int) -> str:
    """Return a time (milliseconds) as RFC 3339 in UTC, with milliseconds when there are any; bounded as `rfc3339` says."""
    return rfc3339(time).replace(".000Z", "Z")

"""Amounts of resources as people write them, to exact integers in base units and back.

Two notations are read. That of queues.yaml is digits and a suffix, nothing else; that of Kubernetes
adds decimals, exponents and the suffixes below one. Neither ever passes through floating point: a
number is kept as a whole mantissa with powers of ten and two beside it, and the one rounding there
is (up to the next whole base unit, as Kubernetes does) is a division of integers.

Base units: thousandths of a core for ``cpu`` and ``vcore``, bytes for ``memory`` and
``ephemeral-storage``, pieces otherwise.
"""

from __future__ import annotations

import re

from events.bounds import MAX_AMOUNT, MAX_INT64

NANO = 1_000_000_000
"""Billionths in one: the unit of fair sharing weights."""

MILLI_RESOURCES = frozenset({"cpu", "vcore"})
"""Resources that are counted in thousandths; only asked for membership, never iterated over."""

_MAX_LENGTH = 64
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_WHOLE = {"": 1, **_DECIMAL, **_BINARY}
_PARTS = {"n": -9, "u": -6, "m": -3}
_YUNIKORN = re.compile(r"([0-9]+)([A-Za-z]*)")
_KUBERNETES = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+)|([A-Za-z]*))"
)
_FAR_EXPONENT = 200
"""An exponent beyond this decides alone: such a number is larger than any bound, or rounds up to one unit."""


class QuantityError(ValueError):
    """A text is no amount, or one that is out of bounds. The fault is that of whoever wrote it.

    Attributes:
        found: The text.
        expected: What would have been right, for a person.
    """

    def __init__(self, found: str, expected: str) -> None:
        self.found = found if len(found) <= _MAX_LENGTH else found[:_MAX_LENGTH] + "…"
        self.expected = expected
        super().__init__(f"found {self.found!r}, expected {expected}")


def parse_yunikorn(resource: str, text: str) -> int:
    """Return a quantity of queues.yaml in base units.

    Digits, then nothing or one of k M G T P E Ki Mi Gi Ti Pi Ei; ``vcore`` and ``cpu`` may also say
    ``m`` (thousandths) and count cores without it. No signs, no fractions, no spaces.

    Raises:
        QuantityError: The text is something else, or the amount is above `MAX_AMOUNT` (2**53) base
            units.
    """
    milli = resource in MILLI_RESOURCES
    expected = (
        f"digits and a suffix ({'m ' if milli else ''}k M G T P E Ki Mi Gi Ti Pi Ei, or none)"
    )
    match = _YUNIKORN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise QuantityError(text, expected)
    number, suffix = int(match[1]), match[2]
    if milli and suffix == "m":
        amount = number
    elif suffix in _WHOLE:
        amount = number * _WHOLE[suffix] * (1000 if milli else 1)
    else:
        raise QuantityError(text, expected)
    return _bounded(text, resource, amount, MAX_AMOUNT)


def parse_kubernetes(resource: str, text: str) -> int:
    """Return a Kubernetes quantity in base units, rounded up to the next whole one.

    Decimals (``1.5``), exponents (``1e3``) and all suffixes (n u m k M G T P E Ki Mi Gi Ti Pi Ei);
    ``cpu`` counts cores and comes out in thousandths. A value above 2**63 - 1 base units is
    refused, where Kubernetes would silently cap it.

    Raises:
        QuantityError: The text is something else, negative, or too large.
    """
    scale = 1000 if resource in MILLI_RESOURCES else 1
    return _bounded(text, resource, _scaled_up(text, scale), MAX_INT64)


def weight_nano(text: str) -> int:
    """Return a fair sharing weight (a Kubernetes quantity) in billionths, rounded up.

    Raises:
        QuantityError: The text is no quantity, negative, or above 2**63 - 1 billionths.
    """
    return _bounded(text, "weight", _scaled_up(text, NANO), MAX_INT64)


def format_amount(resource: str, amount: int) -> str:
    """Return an amount in base units as a person would write it, in the shortest exact form.

    What `parse_yunikorn` reads back as the same amount, with a minus before it where the amount is
    negative.
    """
    if amount < 0:
        return "-" + format_amount(resource, -amount)
    if resource in MILLI_RESOURCES:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    forms = [str(amount)]
    forms += [
        f"{amount // unit}{suffix}"
        for suffix, unit in (_DECIMAL | _BINARY).items()
        if amount and amount % unit == 0
    ]
    # The shortest; among equally short ones the larger unit, decimal before binary.
    return min(reversed(forms), key=lambda form: (len(form), form.endswith("i")))


def _scaled_up(text: str, scale: int) -> int:
    """Return a Kubernetes quantity times ``scale``, rounded up to a whole number that is at least 0."""
    expected = "a quantity such as 4, 1.5, 500m, 10Gi or 1e3"
    match = _KUBERNETES.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise QuantityError(text, expected)
    sign, whole, fraction, bare_fraction, exponent, suffix = match.groups()
    digits = fraction or bare_fraction or ""
    mantissa = int((whole or "") + digits) * scale
    if mantissa == 0 and (suffix or "") in _WHOLE | _PARTS:
        return 0
    if sign == "-":
        raise QuantityError(text, "a quantity that is not negative")
    tens = -len(digits)
    if exponent is not None:
        tens += int(exponent)
    elif suffix in _PARTS:
        tens += _PARTS[suffix]
    elif suffix in _WHOLE:
        mantissa *= _WHOLE[suffix]
    else:
        raise QuantityError(text, expected)
    # A mantissa has far fewer digits than the bound of the exponent, so that a far one leaves one
    # unit, or too many.
    factor: int = 10 ** min(abs(tens), _FAR_EXPONENT)
    # The floor of the negative is the ceiling.
    return mantissa * factor if tens >= 0 else -(-mantissa // factor)


def _bounded(text: str, resource: str, amount: int, bound: int) -> int:
    """Return the amount when it is within its bound."""
    if amount > bound:
        raise QuantityError(text, f"at most {bound} base units of {resource}")
    return amount

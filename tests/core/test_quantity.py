"""Quantities of queues.yaml and of Kubernetes, and weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.bounds import MAX_AMOUNT
from evsched.core.quantity import (
    MAX_INT64,
    QuantityError,
    format_amount,
    parse_kubernetes,
    parse_yunikorn,
    weight_nano,
)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("vcore", "0", 0),
        ("vcore", "10", 10_000),
        ("vcore", "500m", 500),
        ("vcore", "1k", 1_000_000),
        ("cpu", "2", 2_000),
        ("memory", "10", 10),
        ("memory", "007", 7),
        ("memory", "10k", 10_000),
        ("memory", "10M", 10**7),
        ("memory", "10G", 10**10),
        ("memory", "10T", 10**13),
        ("memory", "9P", 9 * 10**15),
        ("memory", "1Ki", 1024),
        ("memory", "1Mi", 2**20),
        ("memory", "10Gi", 10 * 2**30),
        ("memory", "1Ti", 2**40),
        ("memory", "8Pi", MAX_AMOUNT),
        ("memory", "0Ei", 0),
        ("nvidia.com/gpu", "4", 4),
        ("vcores", "4", 4),
    ],
)
def test_yunikorn_quantity_in_base_units(resource, text, amount):
    """A quantity of queues.yaml comes out in base units."""
    assert parse_yunikorn(resource, text) == amount


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        ("memory", ""),
        ("memory", "500m"),
        ("memory", "-1"),
        ("memory", "+1"),
        ("memory", "1.5"),
        ("memory", "1e3"),
        ("memory", "1 G"),
        ("memory", " 1"),
        ("memory", "1K"),
        ("memory", "1ki"),
        ("memory", "1g"),
        ("memory", "G"),
        ("memory", "\u0661"),
        ("memory", "1\n"),
        ("memory", "1E"),
        ("memory", "9007199254740993"),
        ("vcore", "9007199254741"),
        ("vcore", "1u"),
        ("memory", "9" * 5000),
        ("memory", "unlimited"),
    ],
)
def test_yunikorn_quantity_refused(resource, text):
    """What is no quantity of queues.yaml, or beyond 2**53 base units, is refused with what was found and expected."""
    with pytest.raises(QuantityError, match=r"found .* expected") as caught:
        parse_yunikorn(resource, text)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1.5", 1500),
        ("cpu", "500m", 500),
        ("cpu", "1u", 1),
        ("cpu", "1n", 1),
        ("cpu", "1001u", 2),
        ("cpu", ".5", 500),
        ("cpu", "5.", 5000),
        ("cpu", "+5", 5000),
        ("cpu", "-0", 0),
        ("cpu", "0.0001", 1),
        ("memory", "1e3", 1000),
        ("memory", "1E3", 1000),
        ("memory", "1e-3", 1),
        ("memory", "1.5e1", 15),
        ("memory", "1E", 10**18),
        ("memory", "1.5Gi", 3 * 2**29),
        ("memory", "0.1Ki", 103),
        ("memory", "1500m", 2),
        ("memory", "100m", 1),
        ("memory", "0e999999999999", 0),
        ("memory", "1e-999999999999", 1),
        ("example.com/gpu", "3", 3),
        ("memory", "9223372036854775807", MAX_INT64),
    ],
)
def test_kubernetes_quantity_rounds_up_to_base_units(resource, text, amount):
    """A Kubernetes quantity comes out in base units, rounded up."""
    assert parse_kubernetes(resource, text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "1.2.3",
        "1e",
        "1ee3",
        "1K",
        "0K",
        "-1",
        "-1m",
        "1 ",
        "0x10",
        "1_000",
        "inf",
        "nan",
        "8Ei",
        "1e19",
        "1e99999999",
        "9" * 5000,
    ],
)
def test_kubernetes_quantity_refused(text):
    """What is no Kubernetes quantity, negative or beyond 2**63 - 1 is refused."""
    with pytest.raises(QuantityError):
        parse_kubernetes("memory", text)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1", 10**9),
        ("0", 0),
        ("0.5", 5 * 10**8),
        ("250m", 25 * 10**7),
        ("1n", 1),
        ("0.1n", 1),
        ("123456789", 123456789 * 10**9),
    ],
)
def test_weight_in_billionths(text, nano):
    """A weight is exact to the billionth."""
    assert weight_nano(text) == nano


@pytest.mark.parametrize("text", ["-1", "1e10", "heavy"])
def test_weight_refused(text):
    """A weight that is negative, too large or no number is refused."""
    with pytest.raises(QuantityError):
        weight_nano(text)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("vcore", 10_000, "10"),
        ("vcore", 1_500, "1500m"),
        ("memory", 0, "0"),
        ("memory", 10**10, "10G"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1000, "1k"),
        ("memory", 1001, "1001"),
        ("gpu", 8, "8"),
        ("memory", -(10**9), "-1G"),
    ],
)
def test_amount_for_people(resource, amount, text):
    """An amount is written in its shortest exact form."""
    assert format_amount(resource, amount) == text


@given(st.sampled_from(["vcore", "memory", "gpu"]), st.integers(0, MAX_AMOUNT))
def test_written_amount_reads_back(resource, amount):
    """Both notations read a written amount back as the same number."""
    text = format_amount(resource, amount)
    assert parse_yunikorn(resource, text) == amount
    assert parse_kubernetes(resource, text) == amount


@given(st.text(alphabet="0123456789.eE+-munkKMGTPi ", max_size=12))
def test_any_text_is_read_or_refused(text):
    """No text makes a parser fail in another way than by refusing it."""
    for parse in (parse_yunikorn, parse_kubernetes):
        try:
            amount = parse("vcore", text)
        except QuantityError:
            continue
        assert 0 <= amount <= MAX_INT64

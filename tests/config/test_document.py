"""Documents as trees: what is read, with its place, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from events.bounds import MAX_DEPTH, MAX_DOCUMENT
from evsched.config.document import ParsedNode, from_object, parse_yaml
from evsched.config.errors import ConfigurationError


def plain(node: ParsedNode):
    """Return a tree as Python values, scalars as their kind and text."""
    match node.kind:
        case "mapping":
            return {key: plain(value) for key, value in node.fields.items()}
        case "list":
            return [plain(item) for item in node.items]
        case "null":
            return None
        case kind:
            return (kind, node.text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("abc", "text"),
        ("'12'", "text"),
        ('"true"', "text"),
        ("12", "integer"),
        ("010", "integer"),
        ("0x10", "integer"),
        ("1_000", "integer"),
        ("12:30:00", "integer"),
        ("1.5", "number"),
        (".inf", "number"),
        ("1e3", "text"),
        ("no", "boolean"),
        ("true", "boolean"),
        ("~", "null"),
        ("", "null"),
        ("2026-01-01", "other"),
        ("<<", "text"),
        ("=", "text"),
    ],
)
def test_scalar_keeps_its_text_and_kind(text, kind):
    """A scalar is what YAML 1.1 takes it for, and its text is what was written."""
    (document,) = parse_yaml(f"a: {text}\n", "f")
    assert document.fields["a"].kind == kind
    assert document.fields["a"].text == text.strip("'\"")


def test_nodes_know_their_place():
    """Path and line of every node."""
    (document,) = parse_yaml("a:\n  b.c:\n    - x\n    - y:\n        z: 1\n", "f")
    deepest = document.fields["a"].fields["b.c"].items[1].fields["y"].fields["z"]
    assert (deepest.path, deepest.line, deepest.source) == ("a.b.c[1].y.z", 5, "f")


def test_several_documents():
    """Each document is a tree of its own; empty ones are left out."""
    documents = parse_yaml("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n", "f")
    assert [plain(document) for document in documents] == [
        {"a": ("integer", "1")},
        {"b": ("integer", "2")},
    ]
    assert documents[1].fields["b"].line == 7


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: &x 1\nb: 2\n", 1, "anchor &x"),
        ("a: 1\nb: *x\n", 2, "alias"),
        ("a: !!python/object:os.system 1\n", 1, "tag"),
        ("a: !!str 1\n", 1, "tag"),
        ("a: !!map {}\n", 1, "tag"),
        ("a: 1\nb: 2\na: 3\n", 3, "a second time (first in line 1)"),
        ("a: {b: 1, b: 2}\n", 1, "second time"),
        ("? [1]\n: 2\n", 1, "as a key"),
        ("? {a: 1}\n: 2\n", 1, "as a key"),
        ("a: [1\n", 2, "no YAML"),
        ("a: 'x\n", 2, "no YAML"),
        ("a:\n\t- b\n", 2, "no YAML"),
        ("a: \x01\n", 0, "no YAML"),
        ("%YAML 9.9\n---\na: 1\n", 1, "no YAML"),
        ("[" * (MAX_DEPTH + 1), 1, "nested more than"),
        ("[" * 100_000, 1, "nested more than"),
        ("{a: " * 50_000, 1, "nested more than"),
        ("- " * 50_000, 1, "nested more than"),
        ("a" * (MAX_DOCUMENT + 1), 0, "bytes"),
        ("é" * (MAX_DOCUMENT // 2 + 1), 0, "bytes"),
    ],
)
def test_refused(text, line, words):
    """What makes YAML dangerous is refused at its place."""
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml(text, "f")
    (fault,) = caught.value.faults
    assert fault.line == line
    assert words in fault.message


def test_laughter_is_short():
    """A few lines that stand for a billion nodes are refused at the first anchor."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"] + [
        f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]"
        for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    with pytest.raises(ConfigurationError, match="anchor"):
        parse_yaml("\n".join(lines), "f")


def test_every_second_key_is_told():
    """Several faults of one kind are found in one go."""
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml("a: 1\na: 2\nb: 1\nb: 2\n", "f")
    assert [fault.line for fault in caught.value.faults] == [2, 4]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"a": [1, 1.5, True, None, "x"]},
            {"a": [("integer", "1"), ("number", "1.5"), ("boolean", "true"), None, ("text", "x")]},
        ),
        ((), []),
    ],
)
def test_parsed_values(value, expected):
    """A value that was parsed elsewhere makes the same tree."""
    assert plain(from_object(value, "f")) == expected


@pytest.mark.parametrize("value", [{1: 2}, {"a": {1, 2}}, {"a": b"x"}, {"a": object()}])
def test_parsed_values_refused(value):
    """Only what JSON can say is taken."""
    with pytest.raises(ConfigurationError, match="expected"):
        from_object(value, "f")


def test_parsed_values_too_deep():
    """Depth is bounded here too."""
    value: list = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(ConfigurationError, match="deep"):
        from_object(value, "f")


def test_huge_integer():
    """An integer of any size becomes a node, to be refused by whoever reads it."""
    assert from_object(10**5000, "f").kind == "integer"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc.", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), json_values, min_size=1, max_size=4))
def test_yaml_and_parsed_values_agree(value):
    """Writing a value as YAML and reading that gives the tree of the value, with the same paths."""
    (document,) = parse_yaml(yaml.safe_dump(value, sort_keys=False), "f")
    direct = from_object(value, "f")
    assert plain(document) == plain(direct)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    """No text makes the parser fail in another way than by refusing it."""
    with contextlib.suppress(ConfigurationError):
        parse_yaml(text, "f")

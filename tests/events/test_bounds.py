"""Bounds: what may travel is measured before it is decoded, and every integer has an end."""

import json
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import bounds
from events.bounds import FRAME_DEPTH, MAX_DEPTH, id_problem, printable, too_deep
from events.configuration import PlacementRuleSpec, QueueSpec, YunikornSpec
from events.frame import (
    Frame,
    NestedTooDeep,
    decode_event,
    decode_frame,
    decode_header,
    decode_input,
    encode_event,
    encode_frame,
)
from events.vocabulary import AnyEvent, ConfigurationApplied, InputRejected
from tests.examples import examples


def depth(value: object) -> int:
    """Return how deep a JSON value nests, the slow and plain way."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


json_values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\{}[]\n', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='b"\\{}[]', max_size=3), inner, max_size=3)
    ),
    max_leaves=30,
)


@examples(1000)
@given(json_values, st.integers(0, 6), st.booleans())
def test_depth_is_measured_without_decoding(value: object, most: int, ascii_only: bool) -> None:
    """The measure agrees with the depth of the decoded value, whatever brackets and quotes its texts hold."""
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert too_deep(data, most) == (depth(value) > most)


@examples(1000)
@given(st.text(alphabet='{}[]"\\,:1 ', max_size=60), st.integers(1, 5))
def test_what_is_no_json_never_takes_a_decoder_far(text: str, most: int) -> None:
    """Text that may be decoded opens at most twice the levels before the decoder meets its error."""
    if too_deep(text.encode(), most):
        return
    for end in range(len(text)):
        opened = open_levels(text[:end])
        assert opened is None or opened <= 2 * most


def open_levels(text: str) -> int | None:
    """Return how many levels the beginning of a JSON text leaves open; None where it closes too many."""
    level, quoted, escaped = 0, False, False
    for letter in text:
        if escaped:
            escaped = False
        elif quoted:
            quoted, escaped = letter != '"', letter == "\\"
        elif letter == '"':
            quoted = True
        elif letter == "\\":
            return None  # no JSON from here on
        else:
            level += (letter in "{[") - (letter in "}]")
            if level < 0:
                return None
    return level


@pytest.mark.parametrize("data", [b"[" * 400_000, b"[" * 200_000 + b"]" * 200_000, b"[{" * 100_000])
def test_depth_beyond_any_stack_is_measured(data: bytes) -> None:
    """A proposal of brackets alone is as deep as it is long, and is refused like any other."""
    assert too_deep(data)


def nested(levels: int) -> bytes:
    """Return an input with an unknown field, so many levels deep in all."""
    inner = b"[" * (levels - 1) + b"]" * (levels - 1)
    return b'{"type":"NodeRemoved","node":"n","new":' + inner + b"}"


def test_one_depth_holds_for_all_that_is_decoded() -> None:
    """The deepest proposal is read, and as a refused one in a frame as well; one level more is not, by any decoder."""
    deepest, deeper = nested(MAX_DEPTH), nested(MAX_DEPTH + 1)
    # As deep as may be it is refused for its field alone: it was decoded.
    with pytest.raises(msgspec.ValidationError, match="unknown field 'new'"):
        decode_input(deepest)
    with pytest.raises(NestedTooDeep):
        decode_input(deeper)
    frame = (
        b'{"log_id":"l","term":1,"leader":"l","frame":1,"prev":"","time":1,"events":'
        b'[{"type":"InputRejected","reason":"","input":%s}]}'
    )
    assert decode_frame(frame % deepest).events
    for decode in (decode_frame, decode_header):
        with pytest.raises(NestedTooDeep):
            decode(frame % deeper)
    with pytest.raises(NestedTooDeep):
        decode_event(nested(FRAME_DEPTH + 1))


def test_the_deepest_configuration_fits() -> None:
    """32 queues with limits and templates, and a chain of 32 placement rules, can be proposed and be refused."""
    queue: dict[str, Any] = {
        "name": "q",
        "limits": [{"max_resources": {"vcore": 1}, "users": ["u"]}],
    }
    queue["template"] = {"guaranteed": {"vcore": 1}}
    for _ in range(bounds.MAX_QUEUE_DEPTH - 1):
        queue = {"name": "q", "parent": True, "queues": [queue]}
    rule: dict[str, Any] = {"name": "user", "filter": {"users": ["u"]}}
    for _ in range(31):
        rule = {"name": "user", "parent": rule}
    spec = msgspec.convert(
        {"format": "yunikorn", "root": queue, "placement_rules": [rule]}, YunikornSpec
    )
    proposed = ConfigurationApplied(configuration=spec)
    assert decode_input(encode_event(proposed)) == proposed
    frame = Frame(
        log_id="l",
        term=1,
        leader="l",
        frame=1,
        prev="",
        time=1,
        events=(InputRejected(seq=1, reason="no", input=proposed),),
    )
    assert decode_frame(encode_frame(frame)) == frame


def structs_of(kind: Any, seen: dict[type, None]) -> None:
    """Collect the structs that a type can hold, itself included."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in seen:
            seen[kind] = None
            for hint in get_type_hints(kind, include_extras=True).values():
                structs_of(hint, seen)
        return
    for part in get_args(kind):
        structs_of(part, seen)


def plain_integers(kind: Any) -> bool:
    """Tell whether a type takes an integer without an upper end."""
    if kind is int:
        return True
    if hasattr(kind, "__metadata__"):
        (meta,) = [one for one in kind.__metadata__ if isinstance(one, msgspec.Meta)]
        inner = get_args(kind)[0]
        if inner is int:
            return meta.le is None or meta.ge is None
        return plain_integers(inner)
    origin = get_origin(kind)
    return origin is not None and any(map(plain_integers, get_args(kind)))


def test_every_integer_that_travels_has_bounds() -> None:
    """No field of a frame, an event, an input or a configuration takes more than a column of 64 bits holds."""
    seen: dict[type, None] = {}
    structs_of(Frame, seen)
    structs_of(AnyEvent, seen)
    assert {QueueSpec, PlacementRuleSpec, Frame} <= set(seen)
    unbounded = [
        f"{kind.__name__}.{name}"
        for kind in seen
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if plain_integers(hint)
    ]
    assert unbounded == []


def test_sums_leave_room_for_differences() -> None:
    """Capacity less usage less what is reserved fits into 64 bits, whichever of them is at its end; so does a timer."""
    assert 0 - bounds.SUM_LIMIT - bounds.SUM_LIMIT >= -(2**63)
    assert bounds.SUM_LIMIT + bounds.MAX_AMOUNT <= bounds.MAX_INT64
    assert bounds.MAX_MOMENT + bounds.MAX_SPAN <= bounds.MAX_INT64


@examples(1000)
@given(st.characters())
def test_printable_letters_do_not_depend_on_the_interpreter(letter: str) -> None:
    """Of letters that every supported version knows the answer is that of Python; of newer ones it is yes."""
    import unicodedata  # noqa: PLC0415 - the oracle alone asks the interpreter

    if unicodedata.category(letter) != "Cn":
        assert printable(letter) == letter.isprintable()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", ""),
        ("submit:1 é", ""),
        ("x" * 128, ""),
        ("x" * 129, "has 129 characters"),
        ("a\nb", r"'a\nb' holds control characters"),
        ("a\x9b", r"'a\x9b' holds control characters"),
        ("a\u202eb", r"'a\u202eb' holds control characters"),
    ],
)
def test_an_id_is_short_and_printable(name: str, said: str) -> None:
    """One rule for the id of a proposal, wherever it stands; the sentence itself is safe to show."""
    found = id_problem(name)
    assert said in found
    assert bool(found) == bool(said)
    assert printable(found)

"""Frames: the events of one step, as they are written.

One step is one frame is one record, atomic by itself. A step that is too large for one record is
cut into several frames of which only the last says ``last``; a reader takes the step when it has
all of its frames and forgets the beginning of a step whose end a new term overtook. A frame is
hashed over its bytes as written (blake2b, 128 bits, hex), and the next one carries that hash, so
that a hole, a cut or an edit shows, with its place.

An event that is too large for one frame all by itself (a preemption with thousands of victims)
travels as ``fragment``s of its JSON text.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from events.bounds import FRAME_DEPTH, MAX_DEPTH, Count, Milliseconds, too_deep
from events.configuration import Spec
from events.unknown_fields import LOG_ONLY, unknown_field
from events.upcasters import UPCASTERS, upcast
from events.vocabulary import AnyEvent, AnyInput, InboxAttached, LeaderStarted


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The events of one step, or a part of them.

    Attributes:
        log_id: Random id from the first frame; every frame repeats it, so that a recreated or wrong
            topic is noticed.
        term: Who leads: the first frame of a term owns it; a frame of a term that has been
            superseded is ignored.
        leader: Random id of the leader's process and term.
        frame: 1, 2, 3, … without gaps.
        prev: Hash of the frame before, empty for the first.
        time: Milliseconds since the epoch, never decreasing.
        decided: Whether the step decided (False while a new leader catches up).
        inbox_next: Position of the next proposal to read.
        last: False when the step goes on in the next frame.
        fragment: A piece of the JSON text of one event that is too large for a frame; ``events`` is
            empty then.
        fragment_ends: Whether the event is whole with this piece.
        requires: Names of what a reader must know to understand this frame, beyond its event types;
            none so far. A reader that does not know one of them is too old for the log.
    """

    log_id: str
    term: Count
    leader: str
    frame: Count
    prev: str
    time: Milliseconds
    decided: bool = True
    inbox_next: Count = 0
    last: bool = True
    events: tuple[AnyEvent, ...] = ()
    fragment: str = ""
    fragment_ends: bool = False
    requires: tuple[str, ...] = ()


class FrameHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a frame says about itself, read without looking at its events."""

    log_id: str
    term: Count
    leader: str
    frame: Count
    time: Milliseconds


class _Kind(msgspec.Struct, frozen=True, gc=False):
    """The type of an event, and of the input in a refusal."""

    type: str = ""
    input: _Kind | None = None


class _Named(msgspec.Struct, frozen=True, gc=False):
    """The id of a proposal and its actor, and nothing else of it."""

    proposal: str = ""
    actor: str = ""


class FrameOutline(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A frame whose events this release may not know: what the rules of the chain need, and their types."""

    log_id: str
    term: Count
    leader: str
    frame: Count
    prev: str
    time: Milliseconds
    requires: tuple[str, ...] = ()
    events: tuple[_Kind, ...] = ()

    @property
    def unknown(self) -> str:
        """What in it this release does not know, as a phrase; empty: nothing."""
        if self.requires:
            return f"a frame that requires {self.requires[0]!r}"
        return next(filter(None, map(_unknown, self.events)), "")


def _unknown(kind: _Kind) -> str:
    if kind.type not in _TYPES:
        return f"event type {kind.type!r}"
    return _unknown(kind.input) if kind.input is not None else ""


_TYPES = frozenset(kind.__name__ for kind in AnyEvent.__args__) | frozenset(UPCASTERS)


class NestedTooDeep(msgspec.DecodeError):
    """JSON text nests deeper than is read here (`events.bounds`); it was not decoded."""


UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError)
"""What decoding raises for bytes that hold no frame, no event, or one that no machine of ours could have written."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Frame)
_outline_decoder = msgspec.json.Decoder(FrameOutline)
_kind_decoder = msgspec.json.Decoder(_Kind)
_header_decoder = msgspec.json.Decoder(FrameHeader)
_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_named_decoder = msgspec.json.Decoder(_Named)
_input_decoder: msgspec.json.Decoder[AnyInput] = msgspec.json.Decoder(AnyInput)


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame as they are written: JSON in field order, the same on every machine."""
    return _encoder.encode(frame)


def decode_frame(data: bytes) -> Frame:
    """Return the frame in these bytes, its events brought up to date; raise one of `UNREADABLE` when there is none."""
    _must_be_shallow(data, FRAME_DEPTH)
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        # An event of a type that is no longer written looks invalid at first; the slow way round
        # costs only old logs anything.
        if not UPCASTERS:
            raise
    document: dict[str, Any] = msgspec.json.decode(data, type=dict)
    document["events"] = [upcast(event) for event in document.get("events", ())]
    return msgspec.convert(document, Frame)


def decode_outline(data: bytes) -> FrameOutline:
    """Return what any release can read of a frame; raise one of `UNREADABLE` when these bytes hold none."""
    _must_be_shallow(data, FRAME_DEPTH)
    return _outline_decoder.decode(data)


def unknown_event(data: bytes | str) -> str:
    """Return what this release does not know of the event in this JSON, as a phrase; empty: nothing."""
    try:
        _must_be_shallow(data, FRAME_DEPTH)
        return _unknown(_kind_decoder.decode(data))
    except UNREADABLE:
        return ""


def decode_header(data: bytes) -> FrameHeader:
    """Return what these bytes say about their frame; raise one of `UNREADABLE` when they hold none."""
    _must_be_shallow(data, FRAME_DEPTH)
    return _header_decoder.decode(data)


def encode_event(event: AnyEvent | Spec) -> bytes:
    """Return one event as JSON in field order."""
    return _encoder.encode(event)


def decode_event(data: bytes | str) -> AnyEvent:
    """Return the event in this JSON, brought up to date by the upcasters; raise one of `UNREADABLE` when there is none."""
    _must_be_shallow(data, FRAME_DEPTH)
    found: AnyEvent = _upcasting(_event_decoder, data, AnyEvent)
    return found


def decode_input(data: bytes | str) -> AnyInput:
    """Return the input in this JSON, brought up to date by the upcasters; raise one of `UNREADABLE` when there is none.

    A proposal is read more strictly than what a log holds: a field that no input has is refused,
    and so are ``seq``, ``cause`` and ``due``, which only the scheduler gives.
    """
    _must_be_shallow(data, MAX_DEPTH)
    found: AnyInput = _upcasting(_input_decoder, data, AnyInput)
    document = upcast(msgspec.json.decode(data, type=dict))
    if any(name in document for name in LOG_ONLY):
        raise msgspec.ValidationError("sets seq, cause or due, which only the scheduler gives")
    problem = unknown_field(type(found), document)
    if problem:
        raise msgspec.ValidationError(problem)
    return found


def provenance_in(data: bytes) -> tuple[str, str]:
    """Return id and actor that a proposal names, however wrong the rest is; empty: unreadable."""
    try:
        _must_be_shallow(data, MAX_DEPTH)
        found = _named_decoder.decode(data)
    except UNREADABLE:
        return "", ""
    return found.proposal, found.actor


def _must_be_shallow(data: bytes | str, most: int) -> None:
    """Raise NestedTooDeep for text that some version of Python might not be able to follow."""
    if too_deep(data.encode() if isinstance(data, str) else data, most):
        raise NestedTooDeep(f"is nested more than {most} deep")


def _upcasting(decoder: msgspec.json.Decoder[Any], data: bytes | str, kind: Any) -> Any:
    """Decode; only what cannot be read as it is goes through the upcasters."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        if not UPCASTERS:
            raise
    return msgspec.convert(upcast(msgspec.json.decode(data, type=dict)), kind)


def frame_hash(data: bytes) -> str:
    """Return the hash of a frame's bytes: blake2b with 128 bits, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def is_fence(frame: Frame) -> bool:
    """Tell whether this is the first frame of a term: one LeaderStarted that names the frame's own term and leader."""
    if len(frame.events) != 1 or not frame.last:
        return False
    event = frame.events[0]
    return (
        isinstance(event, LeaderStarted)
        and event.term == frame.term
        and event.leader == frame.leader
    )


def attachment(frame: Frame) -> InboxAttached | None:
    """Return the InboxAttached that is all this frame holds; None for any other frame."""
    if len(frame.events) != 1 or not frame.last:
        return None
    event = frame.events[0]
    return event if isinstance(event, InboxAttached) else None

"""Frames: the events of one step, as they are written.

One step is one frame is one record, atomic by itself. A step that is too large for one record is cut into several frames of which
only the last says ``last``; a reader takes the step when it has all of its frames and forgets the beginning of a step whose end
a new term overtook. A frame is hashed over its bytes as written (blake2b, 128 bits, hex), and the next one carries that hash, so
that a hole, a cut or an edit shows, with its place.
"""

from __future__ import annotations

import hashlib

import msgspec

from events.configuration import Spec
from events.vocabulary import AnyEvent

MAX_FRAME_BYTES = 512_000
"""Larger steps are cut into several frames (reliability: client and broker limit is about 1 MiB)."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The events of one step, or a part of them.

    Attributes:
        log_id: Random id from the first frame; every frame repeats it, so that a recreated or wrong topic is noticed.
        term: Who leads: the first frame of a term owns it; a frame of a term that has been superseded is ignored.
        leader: Random id of the leader's process and term.
        frame: 1, 2, 3, … without gaps.
        prev: Hash of the frame before, empty for the first.
        time: Milliseconds since the epoch, never decreasing.
        decided: Whether the step decided (False while a new leader catches up).
        inbox_next: Position of the next proposal to read.
        last: False when the step goes on in the next frame.
    """

    log_id: str
    term: int
    leader: str
    frame: int
    prev: str
    time: int
    decided: bool = True
    inbox_next: int = 0
    last: bool = True
    events: tuple[AnyEvent, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Frame)
_event_decoder = msgspec.json.Decoder(AnyEvent)


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame as they are written: JSON in field order, the same on every machine."""
    return _encoder.encode(frame)


def decode_frame(data: bytes) -> Frame:
    """Return the frame in these bytes; raise `msgspec.ValidationError` or `msgspec.DecodeError` when there is none."""
    return _decoder.decode(data)


def encode_event(event: AnyEvent | Spec) -> bytes:
    """Return one event as JSON in field order."""
    return _encoder.encode(event)


def decode_event(data: bytes | str) -> AnyEvent:
    """Return the event in this JSON; raise `msgspec.ValidationError` or `msgspec.DecodeError` when there is none."""
    return _event_decoder.decode(data)


def frame_hash(data: bytes) -> str:
    """Return the hash of a frame's bytes: blake2b with 128 bits, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()

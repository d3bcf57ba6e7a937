"""What is kept of the pod behind an ask or allocation: what placement depends on, as bytes.

Many pods are alike but for their uids, so those are left out here (they stay in the log, where an
agent reads them). What is left is written in one canonical form: equal pods have equal bytes, which
serve as a key, and the record of the state covers them as they are.
"""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from events.pods import PodFacts

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(PodFacts).decode

INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
"""What ``Gt`` and ``Lt`` compare; 19 digits hold every integer of 64 bits."""

NODE_NAME = "metadata.name"
"""The only field of a node that a term may name."""

NOTHING = _encode(PodFacts())


def kept(pod: PodFacts | None) -> bytes | msgspec.UnsetType:
    """Return what the state keeps of a pod; UNSET when nothing of it matters for placement."""
    if pod is None:
        return msgspec.UNSET
    data = _encode(replace(pod, uid="", owner_uid=""))
    return msgspec.UNSET if data == NOTHING else data


def facts(data: bytes | msgspec.UnsetType) -> PodFacts:
    """Return what is kept of a pod, without uids; no facts where nothing is kept."""
    return PodFacts() if data is msgspec.UNSET else _decode(data)


def integer(text: str) -> int | None:
    """Return the integer in a text, as ``Gt`` and ``Lt`` read it; None when it is none."""
    return int(text) if INTEGER.fullmatch(text) else None

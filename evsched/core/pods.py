"""What is kept of the pod behind an ask or allocation: what placement depends on, as bytes.

Many pods are alike but for their uids, so those are left out here (they stay in the log, where an
agent reads them). What is left is written in one canonical form: equal pods have equal bytes, which
serve as a key, and the record of the state covers them as they are.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from events.pods import PodFacts

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(PodFacts).decode

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

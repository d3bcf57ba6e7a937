"""The record of a state, encoded piece by piece, is byte for byte what the encoder makes of it at once."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import record as module
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.record import OrderedRecord, digest, orders, pieces, record
from tests.core.histories import START, configurations, first_step, histories
from tests.examples import examples

ENCODERS = (msgspec.msgpack.Encoder(order="deterministic"), msgspec.msgpack.Encoder())


class Listed(msgspec.Struct):
    """A record with one list."""

    items: list[int]
    left_out: int | msgspec.UnsetType = msgspec.UNSET


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1_001, 65_535, 65_536, 70_000])
def test_a_list_of_any_length_is_cut(count: int) -> None:
    """The head of a list has one, three or five bytes; what is left out counts as no field."""
    for encoder in ENCODERS:
        found = list(pieces(Listed(items=list(range(count))), encoder))
        assert b"".join(found) == encoder.encode(Listed(items=list(range(count))))
        assert len(found) > count / module.PIECE


@given(configurations(), histories, st.integers(1, 3))
@examples(25)
def test_pieces_are_the_whole(configuration, history, cut) -> None:
    """After any history, for digests of both versions and for snapshots, wherever lists are cut."""
    engine, time = Engine(), START
    engine.step(time, first_step(configuration))
    for later, inputs, _ in history:
        time += later
        engine.step(time, [v.Proposal(input=one) for one in inputs])
    state = engine.state
    whole = OrderedRecord(state=record(state), orders=orders(state))
    kept = snapshot.Kept(state=record(state), added=list(state.queues))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE", cut)
        for encoder in ENCODERS:
            for one in (record(state), whole, kept):
                assert b"".join(pieces(one, encoder)) == encoder.encode(one)
        for version, one in ((1, record(state)), (2, whole)):
            assert digest(state, version) == hashlib.sha256(ENCODERS[0].encode(one)).hexdigest()

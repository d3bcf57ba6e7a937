"""Amounts keep their numbers for ever, and no shape in memory: what nobody asks for any more costs next to nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.numbering import Numbers
from evsched.core.resources import ResourceTypes
from evsched.core.state import SHAPES_KEPT
from tests.core.small import ask, engine, queue, step
from tests.examples import examples


@given(st.lists(st.binary(max_size=3), max_size=200))
@examples(300)
def test_numbers_are_those_of_a_dictionary(found):
    """Every string has the number of its first appearance, and a number leads back to its string."""
    numbers, naive = Numbers(), dict[bytes, int]()
    for one in found:
        assert numbers.of(one) == naive.setdefault(one, len(naive))
    assert len(numbers) == len(naive)
    assert [numbers[number] for number in range(len(numbers))] == list(naive)
    with pytest.raises(IndexError):
        numbers[len(naive)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 65_535, 65_536])
def test_the_record_has_them_as_one_list(count):
    """All amounts are encoded as a deterministic encoder would encode the list of them."""
    types = ResourceTypes()
    amounts = [{"vcore": number, "memory": 1} for number in range(count)]
    for one in amounts:
        types.number(one)
    assert bytes(types.numbers.encoded()) == msgspec.msgpack.encode(amounts, order="deterministic")


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)), max_size=40), st.data())
@examples(200)
def test_a_shape_that_was_forgotten_comes_back_the_same(found, data):
    """Whatever was forgotten in between, equal amounts have one number, their pairs, and their types in the same order."""
    kept, forgetful = ResourceTypes(), ResourceTypes()
    for resources in found:
        one, other = kept.shape(resources), forgetful.shape(resources)
        assert (one.index, one.pairs, one.resources) == (other.index, other.pairs, other.resources)
        if data.draw(st.booleans()):
            forgetful.forget()
    assert kept.names == forgetful.names
    for number in range(len(kept.numbers)):
        assert kept.shapes[number].pairs == forgetful.shapes[number].pairs


def test_amounts_that_differ_each_time_do_not_add_up():
    """Asks of ever new amounts that are withdrawn leave a bounded number of shapes, live, replayed and restored."""
    live = engine(queue("a"))
    step(live, 0, ask("kept", "root.a", 7))
    for number in range(2 * SHAPES_KEPT):
        step(live, 0, ask("t", "root.a", 10 + number), v.AskWithdrawn(ask="t"), decide=False)
    types = live.state.types
    assert len(types.numbers) > 2 * SHAPES_KEPT
    assert max(len(types.shapes), len(types.known)) <= SHAPES_KEPT + 8
    assert types.shapes[live.state.asks["kept"].shape].resources == {"vcore": 7}
    again = Engine(snapshot.decode(snapshot.encode(live.state), live.state.time))
    assert len(again.state.types.shapes) <= 1
    assert again.state.digest() == live.state.digest()
    proposed = ask("u", "root.a", 10)
    assert step(again, 1, proposed) == step(live, 1, proposed)
    assert live.state.asks["u"].shape == again.state.asks["u"].shape == 1

"""The one heap with entries that may be out of date."""

from hypothesis import given
from hypothesis import strategies as st

from evsched.core.lazy_heap import SPARE, LazyHeap
from tests.examples import examples

changes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9) | st.none()), max_size=400)
"""Owner, and its new key; None: it has none any more."""


@examples(300)
@given(changes)
def test_the_first_entry_is_the_smallest_of_those_that_are_current(steps):
    """As the smallest pair of a plain dictionary, after every change, whatever lies in the heap; which stays small."""
    keys = {}
    heap = LazyHeap(lambda entry: keys.get(entry[1]) == entry[0])
    for owner, key in steps:
        if key is None:
            keys.pop(owner, None)
        else:
            keys[owner] = key
            heap.push((key, owner), len(keys))
        assert heap.first() == min(((key, owner) for owner, key in keys.items()), default=None)
        assert len(heap.entries) <= 4 * 6 + SPARE + 1


def test_entries_given_at_the_start_come_in_order():
    """In whatever order they are given, and repeated ones are one when it is cleaned."""
    heap = LazyHeap(lambda _: True, [(3, "c"), (1, "a"), (1, "a")])
    assert heap.first() == (1, "a")
    heap.clean()
    assert heap.entries == [(1, "a"), (3, "c")]


def test_an_entry_that_is_current_can_be_taken_out():
    """The next one is first then, though nothing said that the other is out of date."""
    heap = LazyHeap(lambda _: True, [(2, "b"), (1, "a")])
    assert heap.first() == (1, "a")
    heap.pop()
    assert heap.first() == (2, "b")

"""The sorted list with rows, against plain sorting."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evsched.core.yunikorn.ranking import Ranking
from tests.examples import examples


class Owner(NamedTuple):
    """An owner of an entry."""

    row: int


@examples(60)
@given(st.integers(0, 2**64))
def test_the_first_marked_entry_is_that_of_a_sorted_list(seed):
    """Whatever is replaced, one by one or many at once, and whatever is marked."""
    draw = Random(seed)
    ranking: Ranking[tuple[int, int, Owner]] = Ranking()
    plain: dict[int, tuple[int, int, Owner]] = {}
    for _ in range(30):
        changes = []
        for row in draw.sample(range(100), draw.choice((1, 2, 60))):
            old, new = plain.pop(row, None), None
            if draw.random() < 0.7:
                new = plain[row] = (draw.randrange(50), row, Owner(row))
            changes.append((old, new))
        ranking.change(changes)
        marks = np.array([draw.random() < draw.choice((0.02, 0.5)) for _ in range(100)])
        expected = min((entry for row, entry in plain.items() if marks[row]), default=None)
        assert ranking.first(marks) == expected
        assert ranking.entries == sorted(plain.values())

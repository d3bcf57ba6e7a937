"""Marks of possible victims that are kept from one ask to the next: they equal those that are made anew."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from evsched.core.yunikorn.eligible import LEVELS, Eligible, LeafBounds

PAGES, PLACES = 40, 3


def columns(dice: Random) -> SimpleNamespace:
    """Return columns of two types over pages of three places, as a victim index has them."""
    size = PAGES * PLACES
    return SimpleNamespace(
        amounts=[np.array([dice.randrange(4) for _ in range(size)]) for _ in range(2)],
        priority=np.array([dice.randrange(3) for _ in range(size)]),
        leaf=np.array([dice.randrange(3) for _ in range(size)]),
        flags=np.array([dice.choice((0, 1, 2, 3)) for _ in range(size)]),
        written=[],
        names=[str(page) for page in range(PAGES)],
        starts=np.arange(PAGES) * PLACES,
        page_end=lambda page: (page + 1) * PLACES,
        sums=lambda column: column.reshape(PAGES, PLACES).sum(axis=1),
    )


def bounds(dice: Random) -> LeafBounds:
    """Return what the laws say of three leaves: room is seldom short of the largest amount at first."""
    return LeafBounds(
        np.array([-1, 1, 2]),
        {kind: np.array([dice.choice((4, 4, 4, 9, 12)) for _ in range(3)]) for kind in range(2)},
    )


def write(dice: Random, index: SimpleNamespace, page: int) -> None:
    """Write a page anew, now and then with an amount larger than any before."""
    for place in range(page * PLACES, (page + 1) * PLACES):
        for column in index.amounts:
            column[place] = dice.choice((0, 1, 3, 8, 11))
        index.priority[place] = dice.randrange(3)
    index.written.append(page)


@pytest.mark.parametrize("seed", range(40))
def test_kept_marks_are_those_made_anew(seed):
    """Whatever is written and however the bounds move: marks, and what is summed up by them."""
    dice = Random(seed)
    index, now = columns(dice), bounds(dice)
    kept = Eligible(index, (0, 1), now)
    for _ in range(60):
        for _ in range(dice.randrange(3)):
            write(dice, index, dice.randrange(PAGES))
        now = now if dice.random() < 0.5 else bounds(dice)
        if not kept.catch_up(now):
            kept = Eligible(index, (0, 1), now)
        fresh = Eligible(index, (0, 1), now)
        assert (kept.marks == fresh.marks).all()
        for level in LEVELS:
            assert kept.count(level) == fresh.count(level)
            assert (kept.given(level, 0) == fresh.given(level, 0)).all()

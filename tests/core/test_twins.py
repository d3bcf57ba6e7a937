"""Engines that decide, follow, are restored from a snapshot and replayed from the log agree on the next step, always."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evsched.core import snapshot, trees
from evsched.core.yunikorn.agenda import Agenda, preemption_eligible_at
from tests.core.twins import HISTORY, Twins
from tests.examples import examples


@given(st.integers(0, 2**32))
@examples(110)
def test_every_engine_takes_the_same_next_step(seed):
    """No input raises, and live, follower, restored and replayed give the same events and the same next due time."""
    Twins(seed).live(HISTORY)


def _sorted_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshot, "_encoder", msgspec.msgpack.Encoder(order="deterministic"))


def _stale_entries(patch: pytest.MonkeyPatch) -> None:
    def has_turn(agenda: Agenda, moment: tuple[int, str]) -> bool:
        state = agenda._state
        ask = state.asks.get(moment[1])
        return (
            ask is not None
            and not ask.preempted
            and ask.id not in state.unschedulable_since
            and ask.application not in state.paused
            and moment[0] == preemption_eligible_at(state, ask)
        )

    patch.setattr(Agenda, "_has_turn", has_turn)


def _order_of_queues(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trees, "arrange", lambda state, added: None)


@pytest.mark.parametrize("sabotage", [_sorted_keys, _stale_entries, _order_of_queues])
def test_the_comparison_finds_what_was_wrong_once(monkeypatch, sabotage):
    """Each defect that was found from outside, put back, is found again within a few hundred histories."""
    sabotage(monkeypatch)
    with pytest.raises(AssertionError):
        _live_through(100)


def _live_through(histories: int) -> None:
    for seed in range(histories):
        Twins(seed).live(HISTORY)

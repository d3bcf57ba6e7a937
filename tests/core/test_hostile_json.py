"""Hostile proposals, end to end: one answer each, frames that can be read, and readers who agree.

What `tests.core.test_poison` does with spoilt bytes of sensible proposals, this does with documents
that are made to hurt.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.chain import ChainReader, Head, RecordedStep, cut_into_frames
from events.cloudevents import read_proposal
from evsched.core import snapshot
from evsched.core.engine import Engine
from replays.checking.verify import verify
from replays.history.steps import is_proposed
from tests.core.histories import START
from tests.core.hostile_json import Producer
from tests.examples import examples

BATCHES = 5
WAITS = (0, 1, 1_000, 40_000, 2**50)
"""Milliseconds between two steps; several of the last one end well before the latest moment of an event."""


class World:
    """An engine that leads, and a reader of what it writes.

    Attributes:
        steps: As the reader got them.
    """

    def __init__(self) -> None:
        """Begin a term."""
        self.engine, self.reader = Engine(), ChainReader()
        self.steps: list[RecordedStep] = []
        self.time = START
        self.append(self.engine.lead(START, 1, "me"), Head(log_id="log", term=1, leader="me"))

    def append(self, events: tuple[v.AnyEvent, ...], head: Head | None = None) -> None:
        """Write a step as a leader would, and read it as everybody would."""
        for sealed in cut_into_frames(
            head or self.reader.head,
            events,
            time=self.time,
            decided=head is None,
            inbox_next=0,
        ):
            step = self.reader.accept(sealed.data, self.reader.tip.position + 1)
            if step is not None:
                self.steps.append(step)
                assert step.events == events


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kueue", [False, True])
@examples(150)
@given(seed=st.integers(0, 2**32))
def test_hostile_proposals_are_answered_and_nothing_else_happens(kueue: bool, seed: int) -> None:
    """Every proposal has one answer; every frame is read back; a rebuilt state, a snapshot and verify agree."""
    producer, world = Producer(seed), World()
    engine, position = world.engine, 0
    for number in range(BATCHES):
        records = producer.records(kueue) if number else producer.opening(kueue)
        proposals = [read_proposal(record, position + i) for i, record in enumerate(records)]
        position += len(records)
        events = engine.step(world.time, proposals)
        assert sum(map(is_proposed, events)) == len(records)
        world.append(events)
        world.time += producer.dice.choice(WAITS)
    digest = engine.state.digest()
    rebuilt = Engine()
    for step in world.steps:
        for event in step.events:
            rebuilt.apply(event, step.time)
    assert rebuilt.state.digest() == digest
    again = snapshot.decode(snapshot.encode(engine.state), engine.state.time)
    assert again.digest() == digest
    assert verify(Engine(), world.steps) is None

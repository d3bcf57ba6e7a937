"""Three engines that live through one history and must not differ: one decides, one is restored anew, one follows.

Before every step an engine is restored from a snapshot of the one that decides; it takes the same
step. A third one applies every event as a standby does, and now and then takes over while the other
goes on as the standby. At some steps a fourth is replayed from the first frame. What is compared is
what they do **next**: the events of the step and the time of the next one; and the truth in its
order, which could matter later.

`python -m tests.core.twins STEPS [SEED]` lives through so many steps and prints how fast.
"""

from __future__ import annotations

import sys
from itertools import count
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from events.frame import Frame, decode_frame, encode_frame
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.record import record
from tests.core.histories import START
from tests.core.hostile import Hostile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from events import vocabulary as v
    from evsched.core.state import State

CHECKPOINTS = 40
"""Every so many events the log holds a digest, which the follower compares."""


class Twins:
    """One history and its engines."""

    def __init__(self, seed: int) -> None:
        """Begin an empty log."""
        self.hostile = Hostile(seed)
        self.chance = Random(seed + 1)
        self.leader, self.follower = Engine(), Engine()
        self.frames: list[bytes] = []
        self.time = START
        self.steps = 0
        self.kinds: dict[str, int] = {}

    def live(self, steps: int) -> None:
        """Live through so many steps."""
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        """Let all engines take the next step and compare what they did."""
        chance = self.chance
        self.steps += 1
        restored = Engine(
            snapshot.decode(snapshot.encode(self.leader.state), self.leader.state.time)
        )
        asked = restored.next_due()
        if chance.random() < 0.8:  # to ask is a look at lazy heaps, which tidies them
            assert self.leader.next_due() == asked
        if chance.random() < 0.8:
            assert self.follower.next_due() == asked
        others = [restored]
        if chance.random() < 0.1:
            replayed = Engine()
            replayed.apply_frames(map(decode_frame, self.frames))
            assert replayed.next_due() == asked
            others.append(replayed)
        if chance.random() < 0.03:
            events = self.leader.lead(self.time, self.steps, "l", CHECKPOINTS)
            for other in others:
                assert other.lead(self.time, self.steps, "l", CHECKPOINTS) == events
            self.write(events)
            return
        self.time = max(self.time, self.hostile.pause(self.time, asked))
        proposals = self.hostile.proposals(self.leader.state)
        decide = chance.random() > 0.05
        events = self.leader.step(self.time, proposals, decide=decide)
        _nodes_hold_what_is_reserved(self.leader.state)
        for other in others:
            again = other.step(self.time, proposals, decide=decide)
            assert again == events
            assert in_order(other.state) == in_order(self.leader.state)
        self.write(events)

    def write(self, events: Sequence[v.AnyEvent]) -> None:
        """Write the frame of a step and let the follower read it; now and then it takes over."""
        frame = Frame(
            log_id="log",
            term=1,
            leader="l",
            frame=len(self.frames) + 1,
            prev="",
            time=self.leader.state.time,
            events=tuple(events),
        )
        self.frames.append(encode_frame(frame))
        for event in decode_frame(self.frames[-1]).events:
            name = type(event).__name__
            self.kinds[name] = self.kinds.get(name, 0) + 1
            if name == "CheckpointRecorded":
                assert self.follower.state.digest() == event.digest  # type: ignore[union-attr]
            self.follower.apply(event, frame.time)
        self.follower.state.time = frame.time
        if self.chance.random() < 0.2:
            self.leader, self.follower = self.follower, self.leader


def _nodes_hold_what_is_reserved(state: State) -> None:
    """Compare the reservations that each node holds with those that the asks have."""
    held = {ask: name for name, node in state.nodes.items() for ask in node.reserved}
    assert sum(len(node.reserved) for node in state.nodes.values()) == len(held)
    assert held == {ask: name for ask, name in state.reservations.items() if name in state.nodes}


def in_order(state: State) -> bytes:
    """Return the truth with everything in the order in which it is held, and the order of the queues."""
    queues = [
        (path, list(queue.children), list(queue.applications))
        for path, queue in sorted(state.queues.items(), key=lambda one: one[1].order)
    ]
    reserved = {name: list(node.reserved) for name, node in state.nodes.items()}
    return msgspec.msgpack.encode((record(state), list(state.queues), queues, reserved))


HISTORY = 30
"""Steps of one history."""


def main(steps: int, first: int) -> None:
    """Live through histories until so many steps are taken; the number of a history is printed when it fails."""
    started, taken = perf_counter(), 0
    kinds: dict[str, int] = {}
    for seed in count(first):
        twins = Twins(seed)
        try:
            twins.live(HISTORY)
        except BaseException:
            print(f"history {seed}, step {twins.steps}", file=sys.stderr)
            raise
        taken += twins.steps
        for name, number in twins.kinds.items():
            kinds[name] = kinds.get(name, 0) + number
        if taken >= steps:
            break
    seconds = perf_counter() - started
    print(f"{taken} steps in {seconds:.0f} s; last history {seed}")
    print(", ".join(f"{name} {number}" for name, number in sorted(kinds.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)

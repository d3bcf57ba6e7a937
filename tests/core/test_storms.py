"""No preemption storm: what is preempted is created anew, as a ReplicaSet does, and still nothing goes round in circles."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from events import vocabulary as v
from evsched.core import snapshot
from evsched.core.engine import Engine
from tests.core.clusters import NOW, built
from tests.core.oracle import World
from tests.core.wide import wide_cluster
from tests.examples import examples

seeds = st.integers(0, 2**32)


class History:
    """A cluster that lives on: victims leave sooner or later, or not at all, and what left is submitted anew."""

    def __init__(self, seed: int, *, judged: bool):
        """Set the cluster up."""
        self.random = Random(seed)
        self.judged = judged
        self.engine = built(wide_cluster(seed))
        self.time = NOW
        self.count = 0
        self.decisions: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.leaving: dict[str, int] = {}
        self.step([])

    def step(self, inputs, *, time=None):
        """Take a step and look at what came of it."""
        if time is not None:
            self.time = time
        before = snapshot.encode(self.engine.state) if self.judged else b""
        events = self.engine.step(self.time, [v.Proposal(input=one) for one in inputs])
        if self.judged and any(isinstance(one, v.PreemptionDecided) for one in events):
            self.judge(snapshot.decode(before, self.time), events)
        for one in events:
            if isinstance(one, v.PreemptionDecided):
                self.decisions[one.ask] += 1
                for victim in one.victims:
                    self.leaving[victim.id] = self.time + self.random.choice(
                        [0, 500, 3000, 40_000, 10**9]
                    )
            elif isinstance(one, v.PreemptionWithdrawn):
                self.lost[one.ask] += one.node_lost
                for name in one.victims:
                    self.leaving.pop(name, None)

    def judge(self, state, events):
        """Replay a step and hold its decisions against the laws."""
        engine = Engine(state)
        for one in events:
            if isinstance(one, v.PreemptionDecided) and one.algorithm == "guarantee":
                world = World(engine.state)
                assert (
                    world.broken(
                        world.asks[one.ask],
                        one.node,
                        [world.allocations[victim.id] for victim in one.victims],
                    )
                    == []
                )
            engine.apply(one, self.time)

    def pass_time(self, milliseconds):
        """Let victims leave and timers fire up to a moment; what leaves is created anew at once."""
        until = self.time + milliseconds
        while True:
            exits = [
                (at, name)
                for name, at in self.leaving.items()
                if name in self.engine.state.allocations
            ]
            due = self.engine.next_due()
            at = min([at for at, _ in exits] + ([] if due is None else [due]), default=until + 1)
            if at > until:
                break
            gone = [name for when, name in sorted(exits) if when <= at]
            self.step(
                [one for name in gone for one in self.recreated(name)], time=max(at, self.time)
            )
        self.time = until

    def recreated(self, name):
        """Return the exit of a victim and the ask that takes its place."""
        del self.leaving[name]
        state = self.engine.state
        gone = state.allocations[name]
        self.count += 1
        resources = state.types.shapes[gone.shape].resources
        return [
            v.AllocationReleased(allocation=name, reason="preempted"),
            v.AskSubmitted(
                ask=f"{name.split('+')[0]}+{self.count}",
                application=gone.application,
                queue=gone.queue,
                resources=resources,
                priority=gone.priority,
                allow_preemption=gone.allow_preemption,
                originator=gone.originator,
            ),
        ]

    def disturb(self):
        """Let something else happen: a node goes, an ask comes, a task ends, the process restarts."""
        random, state = self.random, self.engine.state
        match random.randrange(8):
            case 0 if state.nodes:
                self.step([v.NodeRemoved(node=random.choice(sorted(state.nodes)))])
            case 1 | 2:
                self.count += 1
                leaf = random.choice([path for path, queue in state.queues.items() if queue.leaf])
                ask = {
                    "ask": f"x{self.count}",
                    "application": f"{leaf}-x",
                    "queue": leaf,
                    "priority": random.choice([0, 1, 3]),
                }
                self.step([v.AskSubmitted(resources={"vcore": random.randint(1, 6)}, **ask)])
            case 3 if state.allocations:
                self.step(
                    [v.AllocationReleased(allocation=random.choice(sorted(state.allocations)))]
                )
            case 4 if state.nodes:
                self.step(
                    [
                        v.NodeUpdated(
                            node=random.choice(sorted(state.nodes)),
                            schedulable=random.random() < 0.7,
                        )
                    ]
                )
            case 5 if self.leaving:
                name = random.choice(sorted(self.leaving))
                if name in state.allocations:
                    self.step([v.EvictionRefused(allocation=name, reason="budget")])
            case _:
                self.engine = Engine(snapshot.decode(snapshot.encode(state), state.time))


@given(seeds)
@examples(200)
def test_no_ask_preempts_twice_unless_its_node_was_lost(seed):
    """Over a long history with refusals, stubborn victims, lost nodes and restarts every decision is lawful."""
    history = History(seed, judged=True)
    for _ in range(12):
        history.pass_time(history.random.choice([500, 2000, 20_000, 70_000]))
        history.disturb()
    history.pass_time(600_000)
    event(f"decisions: {min(sum(history.decisions.values()), 5)}")
    for ask, times in history.decisions.items():
        assert times <= 1 + history.lost[ask]


@given(seeds)
@examples(250)
def test_without_disturbance_preemption_comes_to_an_end(seed):
    """A circle would go on for ever; instead no more decisions are taken than asks that were there when it began had unmet."""
    history = History(seed, judged=False)
    first = set(history.engine.state.asks)
    history.pass_time(1_000_000)
    assert max(history.decisions.values(), default=0) <= 1
    assert set(history.decisions) <= first | {ask for ask in history.decisions if "+" in ask}
    again = [ask for ask in history.decisions if ask not in first]
    event(f"recreated tasks that preempted: {len(again)}")
    before = sum(history.decisions.values())
    history.pass_time(10_000_000)
    assert sum(history.decisions.values()) == before

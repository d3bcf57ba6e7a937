"""Histories drawn from a number, for processes that must agree: `python -m tests.core.seeded COUNT` prints a digest of each.

Every history is stepped at fixed times from fixed inputs; what is digested are the frames as they
would be written, byte by byte.
"""

from __future__ import annotations

import hashlib
import random
import sys

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from events.frame import Frame, encode_frame
from evsched.core.engine import Engine
from tests.core.histories import START

LEAVES = ("root.a", "root.p.b", "root.p.c")


def configuration(chance: random.Random) -> YunikornSpec:
    """Return a tree of three leaves with guarantees, maxima and properties by chance."""

    def leaf(name: str) -> QueueSpec:
        properties = {
            "preemption.delay": chance.choice(["1s", "10s"]),
            "quota.preemption.delay": "20s",
        }
        if chance.random() < 0.3:
            properties["priority.offset"] = str(chance.randrange(-5, 5))
        if chance.random() < 0.3:
            properties |= {
                "application.unschedasks.backoff": "1",
                "application.unschedasks.backoff.delay": "5s",
            }
        return QueueSpec(
            name=name,
            guaranteed=chance.choice([None, {"vcore": 4000}, {"vcore": 8000, "memory": 10}]),
            maximum=chance.choice([None, {"vcore": 12_000}]),
            properties=properties,
        )

    above = QueueSpec(name="p", parent=True, queues=(leaf("b"), leaf("c")))
    root = QueueSpec(name="root", parent=True, queues=(leaf("a"), above))
    return YunikornSpec(root=root, quota_preemption_enabled=True)


def proposal(chance: random.Random, number: int) -> v.AnyInput:
    """Return something that could come through the inbox."""
    task, node = f"t{chance.randrange(30)}", f"n{chance.randrange(4)}"
    kind = chance.randrange(10)
    if kind < 5:
        resources = {"memory": chance.randrange(1, 9), "vcore": chance.randrange(1, 5) * 1000}
        queue = chance.choice(LEAVES)
        return v.AskSubmitted(
            ask=task,
            application=f"app-{queue}",
            queue=queue,
            resources=resources,
            priority=chance.randrange(3),
        )
    if kind == 5:
        return v.NodeRegistered(
            node=node,
            capacity={"vcore": 10_000, "memory": 20},
            labels={"zone": "a", "rack": f"r{number}"},
        )
    if kind == 6:
        return v.ConfigurationApplied(configuration=configuration(chance))
    if kind == 7:
        return v.NodeRemoved(node=node) if chance.random() < 0.3 else v.AskWithdrawn(ask=task)
    return v.AllocationReleased(allocation=task, reason="preempted")


def frames(seed: int) -> list[bytes]:
    """Return the frames of the history with this number."""
    chance = random.Random(seed)
    engine = Engine()
    time, found = START, []
    first: list[v.AnyInput] = [
        v.ConfigurationApplied(configuration=configuration(chance)),
        *(
            v.NodeRegistered(node=f"n{number}", capacity={"vcore": 10_000, "memory": 20})
            for number in range(2)
        ),
    ]
    for number in range(40):
        inputs = (
            first if number == 0 else [proposal(chance, number) for _ in range(chance.randrange(4))]
        )
        events = engine.step(
            time,
            [v.Proposal(input=one, id=f"{number}-{place}") for place, one in enumerate(inputs)],
        )
        frame = Frame(
            log_id="log", term=1, leader="l", frame=number + 1, prev="", time=time, events=events
        )
        found.append(encode_frame(frame))
        time += chance.choice([1, 1000, 11_000])
    return found


def main(count: int) -> None:
    """Print a digest a history."""
    for seed in range(count):
        print(hashlib.sha256(b"\n".join(frames(seed))).hexdigest())


if __name__ == "__main__":
    main(int(sys.argv[1]))

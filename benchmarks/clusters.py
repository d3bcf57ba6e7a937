"""The clusters that are measured: of the shapes of the scenario files beside the repository, which are used when they are there.

Shapes: a root with 5 parents of 10 leaves each, applications spread evenly over the leaves, nodes
of 64 cores, tasks of 1 core.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from events.configuration import QueueSpec, YunikornSpec
from events.vocabulary import (
    AnyInput,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
    Proposal,
)
from evsched.core.engine import Engine
from replays.scenarios.scenario import read_scenario
from replays.scenarios.staging import Staging

SHARED = Path(__file__).resolve().parents[2] / "shared" / "perf" / "yunikorn"
START = 1_767_225_600_000
PARENTS, LEAVES, APPLICATIONS = 5, 10, 200


def leaf(number: int) -> str:
    """Return the path of a leaf; numbers go round."""
    return f"root.p{number % PARENTS}.l{number // PARENTS % LEAVES}"


def tree(*queues: QueueSpec) -> YunikornSpec:
    """Return a configuration with these queues below root, without any the one of 50 leaves."""
    parents = tuple(
        QueueSpec(
            name=f"p{one}",
            parent=True,
            queues=tuple(QueueSpec(name=f"l{two}") for two in range(LEAVES)),
        )
        for one in range(PARENTS)
    )
    return YunikornSpec(
        root=QueueSpec(name="root", parent=True, submit_acl="*", queues=queues or parents)
    )


def cluster(nodes: int, configuration: YunikornSpec | None = None) -> list[AnyInput]:
    """Return the inputs that set up the tree and empty nodes, and the applications unless the tree is another one."""
    inputs: list[AnyInput] = [ConfigurationApplied(configuration=configuration or tree())]
    inputs += [
        NodeRegistered(node=f"node-{one:05}", capacity={"vcore": 64_000, "memory": 256 * 2**30})
        for one in range(nodes)
    ]
    if configuration is None:
        inputs += [
            ApplicationSubmitted(application=f"app-{one}", queue=leaf(one), created=START)
            for one in range(APPLICATIONS)
        ]
    return inputs


def waiting(nodes: int, asks: int, *, priorities: bool, shapes: int = 1) -> list[AnyInput]:
    """Return the inputs of an empty cluster and of asks that all fit.

    Args:
        nodes: How many.
        asks: How many.
        priorities: Ten different ones, or one.
        shapes: How many different amounts the asks are of.
    """
    draw = Random(1)
    inputs = cluster(nodes)
    for one in range(asks):
        inputs.append(
            AskSubmitted(
                ask=f"a{one}",
                application=f"app-{one % APPLICATIONS}",
                resources={"vcore": 1000 + one % shapes},
                priority=draw.randrange(10) if priorities else 0,
                created=START,
            )
        )
    return inputs


def from_file(name: str) -> list[AnyInput] | None:
    """Return the inputs of second 0 of a scenario file beside the repository; None when there is no such file."""
    path = SHARED / f"{name}.json.gz"
    return Staging(read_scenario(path)).beginning() if path.exists() else None


def taken_in(inputs: list[AnyInput]) -> Engine:
    """Return an engine that has taken these inputs in and decided nothing."""
    engine = Engine()
    engine.step(START, [Proposal(input=one) for one in inputs], decide=False)
    return engine

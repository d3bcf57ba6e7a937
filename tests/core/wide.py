"""Wider random clusters, from a seed: many more nodes than hypothesis could draw in the same time."""

from __future__ import annotations

from random import Random

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from tests.core.clusters import HOUR, NOW, leaves


def wide_cluster(seed: int) -> list[v.AnyInput]:
    """Return the inputs that set up a cluster of up to seven nodes, full or nearly so, and a few asks with a guarantee."""
    random = Random(seed)
    root = _root(random)
    paths = leaves(root)
    own = next(path for path in paths if path.endswith(".own"))
    inputs: list[v.AnyInput] = [v.ConfigurationApplied(configuration=YunikornSpec(root=root))]
    tasks: list[v.AnyInput] = []
    share, same_age, same_priority = (
        random.choice([0.0, 0.2, 0.8]),
        random.random() < 0.4,
        random.random() < 0.4,
    )
    for number in range(random.randint(2, 7)):
        node = f"n{number}"
        here = [
            _task(random, f"r{number}-{index}", random.choice(paths), node, share)
            for index in range(random.randint(1, 5))
        ]
        used = {
            kind: sum(task.resources.get(kind, 0) for task in here) for kind in ("vcore", "memory")
        }
        capacity = {kind: amount + random.choice([0, 0, 1]) for kind, amount in used.items()}
        inputs.append(
            v.NodeRegistered(node=node, capacity=capacity, schedulable=random.random() > 0.05)
        )
        for task in here:
            age = 0 if same_age else random.choice([0, 1, 2, HOUR, HOUR + 5, 5 * HOUR])
            priority = 0 if same_priority else task.priority
            fields = {name: getattr(task, name) for name in task.__struct_fields__}
            tasks.append(
                v.AllocationRestored(**{**fields, "created": NOW - age, "priority": priority})
            )
    inputs += tasks
    for number in range(random.randint(1, 4)):
        leaf = own if random.random() < 0.9 else random.choice(paths)
        resources = {
            "vcore": random.randint(1, 8),
            **({"memory": random.randint(0, 5)} if random.random() < 0.6 else {}),
        }
        priority = random.choice([0, 1, 2, 2])
        asked = {
            "application": f"{leaf}-p",
            "queue": leaf,
            "resources": resources,
            "priority": priority,
            "created": NOW - 9999,
        }
        inputs.append(v.AskSubmitted(ask=f"p{number}", **asked))
        if random.random() < 0.05:
            inputs.append(v.ReservationRestored(ask=f"p{number}", node="n0"))
    return inputs


def _root(random: Random) -> QueueSpec:
    own = QueueSpec(**_fields(random, "own", own=True))
    parents = [
        QueueSpec(
            parent=True,
            queues=tuple(
                QueueSpec(**_fields(random, f"l{index}")) for index in range(random.randint(1, 3))
            ),
            **_fields(random, f"s{number}"),
        )
        for number in range(random.randint(1, 2))
    ]
    queues = [*parents, QueueSpec(**_fields(random, "z"))]
    if random.random() < 0.5:
        first = parents[0]
        guaranteed = first.guaranteed if random.random() < 0.3 else None
        queues[0] = QueueSpec(
            name="s0",
            parent=True,
            queues=(own, *first.queues),
            guaranteed=guaranteed,
            maximum=first.maximum,
        )
    else:
        queues.insert(0, own)
    return QueueSpec(name="root", parent=True, queues=tuple(queues), submit_acl="*")


def _fields(random: Random, name: str, *, own: bool = False) -> dict:
    guaranteed = None
    if own:
        guaranteed = {
            "vcore": random.randint(5, 30),
            **({"memory": random.randint(0, 20)} if random.random() < 0.5 else {}),
        }
    elif random.random() < 0.4:
        guaranteed = {
            kind: random.randint(0, 4) for kind in ("vcore", "memory") if random.random() < 0.6
        }
    properties = {"preemption.delay": "1s"}
    if random.random() < 0.1:
        properties["preemption.policy"] = random.choice(["fence", "disabled"])
    if random.random() < 0.2:
        properties["priority.offset"] = str(random.randint(-2, 1))
    if random.random() < 0.1:
        properties["priority.policy"] = "fence"
    maximum = {"vcore": random.randint(3, 20)} if random.random() < 0.15 else None
    return {"name": name, "guaranteed": guaranteed, "properties": properties, "maximum": maximum}


def _task(random: Random, name: str, leaf: str, node: str, share: float) -> v.AllocationRestored:
    resources = {
        "vcore": random.randint(1, 4),
        **({"memory": random.randint(0, 3)} if random.random() < 0.6 else {}),
    }
    if random.random() < 0.1:
        resources = {"memory": random.randint(1, 3)}
    return v.AllocationRestored(
        allocation=name,
        application=f"{leaf}-{random.randint(0, 3)}",
        queue=leaf,
        node=node,
        resources=resources,
        priority=random.choice([0, 0, 1, -1, 2]),
        allow_preemption=random.random() >= share,
        originator=random.random() < share,
        preempting=random.random() < 0.05,
        required_node=node if random.random() < 0.05 else None,
    )

"""Small random clusters in which somebody wants to preempt, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from evsched.core.reducer import apply
from evsched.core.step import Step

NOW = 1_767_225_600_000
HOUR = 3_600_000
TYPES = ("vcore", "memory")

amounts = st.fixed_dictionaries(
    {"vcore": st.integers(1, 4)}, optional={"memory": st.integers(0, 3)}
) | st.fixed_dictionaries({"memory": st.integers(1, 3)})
large = st.fixed_dictionaries({"vcore": st.integers(1, 6)}, optional={"memory": st.integers(0, 4)})
modest = st.fixed_dictionaries(
    {}, optional={"vcore": st.integers(0, 3), "memory": st.integers(0, 2)}
)
seldom_few = st.integers(0, 9).flatmap(
    lambda choice: st.none() if choice else st.fixed_dictionaries({"vcore": st.integers(6, 20)})
)
few = st.fixed_dictionaries({}, optional={"vcore": st.integers(0, 9), "memory": st.integers(0, 6)})


@st.composite
def queue_specs(draw: st.DrawFn, name: str, depth: int) -> QueueSpec:
    """Return a queue with everything below it, seldom limited, often guaranteed."""
    children = ()
    if depth > 0 and draw(st.booleans()):
        children = tuple(
            draw(queue_specs(f"{name}{letter}", depth - 1))
            for letter in "xy"[: draw(st.integers(1, 2))]
        )
    properties = draw(
        st.fixed_dictionaries(
            {"preemption.delay": st.just("1s")},
            optional={
                "preemption.policy": st.sampled_from(
                    ["default", "default", "default", "fence", "default", "disabled"]
                ),
                "priority.policy": st.sampled_from(["default", "default", "fence"]),
                "priority.offset": st.sampled_from(["-1", "-2", "1"]),
            },
        )
    )
    return QueueSpec(
        name=name,
        parent=bool(children),
        queues=children,
        guaranteed=draw(st.none() | st.none() | modest | few),
        maximum=draw(
            st.none() | st.none() | st.none() | st.fixed_dictionaries({"vcore": st.integers(4, 14)})
        ),
        properties=properties,
    )


@st.composite
def configurations(draw: st.DrawFn, **fields) -> YunikornSpec:
    """Return a tree of two to three levels. What a file could not hold (sums of guarantees, say) is in it, too."""
    # The first queue is where most asks wait: it has a guarantee, or there would be little to see.
    own = QueueSpec(
        name="own",
        guaranteed=draw(
            st.fixed_dictionaries(
                {"vcore": st.integers(6, 14)}, optional={"memory": st.integers(0, 9)}
            )
        ),
        properties={
            "preemption.delay": "1s",
            **draw(st.fixed_dictionaries({}, optional={"priority.offset": st.just("1")})),
        },
        maximum=draw(st.none() | st.none() | st.fixed_dictionaries({"vcore": st.integers(4, 14)})),
    )
    others = [draw(queue_specs(name, 2)) for name in "abc"[: draw(st.integers(1, 3))]]
    if draw(st.booleans()):
        others[0] = QueueSpec(
            name="a",
            parent=True,
            queues=(own, others[0] if others[0].name != "own" else own),
            guaranteed=draw(st.none() | few),
        )
        queues = tuple(others)
    else:
        queues = (own, *others)
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", queues=queues, maximum=draw(seldom_few)
    )
    return YunikornSpec(root=root, **fields)


def leaves(spec: QueueSpec, above: str = "") -> list[str]:
    """Return the paths of all leaves."""
    path = f"{above}.{spec.name}" if above else spec.name
    if not spec.queues:
        return [path]
    return [leaf for child in spec.queues for leaf in leaves(child, path)]


def _tasks(
    draw: st.DrawFn, where: st.SearchStrategy[str], kind: str, most: int, held=amounts
) -> list[dict]:
    count = draw(st.integers(1, most) | st.just(most))
    return [
        {
            "id": f"{kind}{number}",
            "queue": draw(where),
            "resources": draw(held),
            "priority": draw(st.sampled_from([0, 0, 1, -1, 2])),
            "allow_preemption": draw(st.integers(0, 4)) > 0,
            "originator": draw(st.integers(0, 4)) == 0,
            "created": NOW
            - draw(st.sampled_from([0, 1000, 60_000, HOUR, 3 * HOUR, 3 * HOUR, 50 * HOUR])),
        }
        for number in range(count)
    ]


@st.composite
def clusters(
    draw: st.DrawFn, most: int = 8, nodes: int = 3, *, required: bool = False, **fields
) -> list[v.AnyInput]:
    """Return the inputs that set a cluster up: nodes nearly full, a few asks; with ``required`` most of them want one node."""
    spec = draw(configurations(**fields))
    paths = leaves(spec.root)
    own = [path for path in paths if path.endswith(".own")]
    names = [f"n{number}" for number in range(draw(st.integers(1, nodes)))]
    others = [path for path in paths if path not in own]
    running = _tasks(draw, st.sampled_from([*others * 5, *own]), "r", most)
    placed: dict[str, dict[str, int]] = {name: dict.fromkeys(TYPES, 0) for name in names}
    inputs: list[v.AnyInput] = [v.ConfigurationApplied(configuration=spec)]
    tasks: list[v.AnyInput] = []
    for task in running:
        node = draw(st.sampled_from(names))
        for name, amount in task["resources"].items():
            placed[node][name] += amount
        tasks.append(
            v.AllocationRestored(
                allocation=task["id"],
                application=f"{task['queue']}-{draw(st.integers(0, 1))}",
                queue=task["queue"],
                node=node,
                resources=task["resources"],
                priority=task["priority"],
                allow_preemption=task["allow_preemption"],
                originator=task["originator"],
                required_node=draw(st.sampled_from([None, None, None, None, None, node])),
                preempting=draw(st.integers(0, 9)) == 0,
                created=task["created"],
            )
        )
    for name in names:
        spare = draw(
            st.fixed_dictionaries(
                {"vcore": st.sampled_from([0, 0, 0, 0, 1]), "memory": st.sampled_from([0, 1, 3])}
            )
        )
        capacity = {kind: placed[name][kind] + spare[kind] for kind in TYPES}
        inputs.append(
            v.NodeRegistered(node=name, capacity=capacity, schedulable=draw(st.integers(0, 9)) > 0)
        )
    inputs += tasks
    for task in _tasks(draw, st.sampled_from([*own * 12, *paths]), "p", 3, large):
        wanted = draw(
            st.sampled_from(
                [*names, *names, None] if required else [None, None, None, None, None, names[0]]
            )
        )
        inputs.append(
            v.AskSubmitted(
                ask=task["id"],
                application=f"{task['queue']}-{draw(st.integers(0, 2))}",
                queue=task["queue"],
                resources=task["resources"],
                priority=task["priority"] + draw(st.sampled_from([2, 1, 0])),
                allow_preemption=task["allow_preemption"],
                originator=task["originator"],
                preemption_policy=draw(st.sampled_from([*["PreemptLowerPriority"] * 3, "Never"])),
                required_node=wanted,
                created=task["created"],
            )
        )
        if draw(st.integers(0, 7)) == 0:
            inputs.append(v.ReservationRestored(ask=task["id"], node=draw(st.sampled_from(names))))
    return inputs


def built(inputs: list[v.AnyInput]) -> Engine:
    """Return an engine that has these inputs behind it and has decided nothing."""
    engine = Engine()
    step = Step(engine.state, NOW, apply)
    for proposed in inputs:
        kind = type(proposed)
        fields = {
            name: getattr(proposed, name)
            for name in kind.__struct_fields__
            if name not in {"seq", "cause", "due"}
        }
        step.emit(kind, cause=0, **fields)
    return engine

"""Hostile histories from a number: what clumsy and hostile producers could propose, step by step, to either family.

Configurations change shape with work in flight (parents become leaves and back, queues go and come
again, cohorts move, formats change), ids are used again, nodes shrink and vanish while victims leave,
amounts are huge, zero and of types that nobody has, time stands or jumps. Most of it is legal, so
that the engine has something to decide about.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from events import vocabulary as v
from events.configuration import (
    KueueSpec,
    LimitSpec,
    LocalQueueSpec,
    PaceSpec,
    PlacementRuleSpec,
    QueueSpec,
    TemplateSpec,
    YunikornSpec,
)
from tests.core.histories import START
from tests.core.kueue import cohorts

if TYPE_CHECKING:
    from evsched.core.state import State

TASKS, NODES, APPS, USERS = 16, 4, 5, ("ann", "bob", "")
HUGE = 2**53
LEAVES = ("root.a", "root.p.b", "root.p.c", "root.team", "root.team.x", "root.users", "root.p")
PAUSES = (0, 0, 1, 999, 1000, 5000, 11_000, 31_000, 150_000, 10**9)


class Hostile:
    """One history: what is proposed next, and when.

    Attributes:
        families: The formats that may come: a change of it is legal while nothing is there.
        quiet: Configurations and nodes seldom change.
        contest: One queue holds everything, and others have a guarantee: much is preempted.
    """

    def __init__(self, seed: int) -> None:
        """Draw the temper of the history."""
        self.dice = Random(seed)
        self.families = self.dice.choice(("yunikorn", "yunikorn", "kueue", "both"))
        self.kueue = self.families == "kueue"
        self.quiet = self.dice.random() < 0.5
        self.contest = not self.kueue and self.dice.random() < 0.5
        self.count = 0

    # ------------------------------------------------------------------------------------- time

    def pause(self, now: int, due: int | None) -> int:
        """Return the time of the next step: what is due, or any other, an earlier one too."""
        if due is not None and self.dice.random() < 0.6:
            return max(due, now)
        if self.dice.random() < 0.02:
            return now - 5000
        return now + self.dice.choice(PAUSES[: 7 if self.contest else None])

    # ---------------------------------------------------------------------------- configurations

    def configuration(self, state: State) -> v.AnyInput:
        """Return a configuration of any shape."""
        dice = self.dice
        if self.families == "both" and dice.random() < 0.3:
            self.kueue = not self.kueue
        if not self.kueue:
            return v.ConfigurationApplied(configuration=self.tree())
        known = state.configuration
        if isinstance(known, KueueSpec) and dice.random() < 0.6:
            spec = cohorts.random_limits(dice, known)
        else:
            spec = cohorts.configuration(dice, fair=dice.random() < 0.5)
        names = {one.name for one in spec.cluster_queues}
        through = tuple(
            LocalQueueSpec(
                name=f"l{number}",
                namespace="ns",
                cluster_queue=f"q{number}",
                stop_policy=dice.choice(("None", "None", "None", "Hold", "HoldAndDrain")),
            )
            for number in range(2)
            if f"q{number}" in names
        )
        return v.ConfigurationApplied(configuration=_with(spec, local_queues=through))

    def tree(self) -> YunikornSpec:
        """Return a tree in which each of a few names is a leaf, a parent or not there."""
        dice = self.dice
        queues = [self.leaf("a")] if self.contest or dice.random() < 0.9 else []
        match dice.randrange(4):
            case 0:
                queues.append(self.leaf("p"))
            case 1 | 2:
                below = tuple(self.leaf(name) for name in "bc" if dice.random() < 0.8)
                queues.append(self.parent("p", *below))
            case _:
                pass
        match dice.randrange(4):
            case 0:
                queues.append(self.leaf("team"))
            case 1 | 2:
                deep = self.parent("x", self.leaf("y")) if dice.random() < 0.3 else self.leaf("x")
                queues.append(self.parent("team", deep))
            case _:
                pass
        rules: tuple[PlacementRuleSpec, ...] = ()
        if dice.random() < 0.4:
            users = PlacementRuleSpec(name="fixed", value="users", create=dice.random() < 0.7)
            rules = (
                PlacementRuleSpec(name="provided"),
                PlacementRuleSpec(name="user", create=True, parent=users),
            )
        if dice.random() < 0.4:
            template = TemplateSpec(
                maximum=dice.choice((None, {"vcore": 6000})),
                properties=self.properties(),
            )
            queues.append(self.parent("users", template=template))
        limits = ()
        if dice.random() < 0.3:
            limits = (
                LimitSpec(
                    users=("*",),
                    max_resources=dice.choice((None, {"vcore": 9000})),
                    max_applications=dice.choice((1, 2, 3)),
                ),
            )
        dice.shuffle(queues)
        return YunikornSpec(
            root=QueueSpec(
                name="root", parent=True, submit_acl="*", queues=tuple(queues), limits=limits
            ),
            placement_rules=rules,
            preemption_enabled=dice.random() < 0.9,
            quota_preemption_enabled=dice.random() < 0.7,
            quota_miss_percent=dice.choice((100, 100, 10, 0)),
            node_sort_policy=dice.choice(("fair", "binpacking")),
            eviction_grace_ms=30_000 if self.contest else dice.choice((1, 5000, 30_000)),
            eviction_attempts=dice.choice((1, 2, 5, 5)),
            cost=dice.choice(("default", "default", "youngest", "smallest")),
            pace=PaceSpec(
                interval_ms=dice.choice((1, 1000, 20_000)),
                max_victims=dice.choice((None, None, 1)),
                max_resources=dice.choice((None, None, {"vcore": 2000, "gpu": 1})),
            ),
        )

    def parent(self, name: str, *below: QueueSpec, **fields: object) -> QueueSpec:
        """Return a parent, which may hold nothing."""
        maximum = self.dice.choice((None, None, {"vcore": 14_000}))
        return QueueSpec(name=name, parent=True, queues=below, maximum=maximum, **fields)  # type: ignore[arg-type]

    def leaf(self, name: str) -> QueueSpec:
        """Return a leaf."""
        dice = self.dice
        if self.contest and dice.random() < 0.8:
            guaranteed = None if name == "a" else {"vcore": dice.choice((4000, 8000))}
            return QueueSpec(
                name=name, guaranteed=guaranteed, properties={"preemption.delay": "1s"}
            )
        return QueueSpec(
            name=name,
            guaranteed=dice.choice(
                (None, {"vcore": 2000}, {"vcore": 5000}, {"vcore": 5000, "memory": 4}, {"gpu": 0})
            ),
            maximum=dice.choice((None, None, {"vcore": 6000}, {"vcore": 10_000}, {"vcore": 5000})),
            max_applications=dice.choice((0, 0, 0, 1, 2)),
            properties=self.properties(),
        )

    def properties(self) -> dict[str, str]:
        """Return properties of a leaf."""
        possible = {
            "preemption.policy": ("fence", "disabled", "default"),
            "preemption.delay": ("1s", "1s", "10s"),
            "priority.policy": ("fence",),
            "priority.offset": ("-5", "3", "100"),
            "application.sort.policy": ("fifo", "fair", "stateaware"),
            "application.sort.priority": ("disabled",),
            "quota.preemption.delay": ("5s", "60s"),
            "application.unschedasks.backoff": ("0", "1", "2"),
            "application.unschedasks.backoff.delay": ("5s", "20s"),
        }
        found = {
            key: self.dice.choice(values)
            for key, values in possible.items()
            if self.dice.random() < 0.25
        }
        return {"preemption.delay": "1s", **found}

    # ---------------------------------------------------------------------------------- proposals

    def proposals(self, state: State) -> list[v.Proposal]:
        """Return what comes through the inbox next."""
        dice = self.dice
        self.count += 1
        if self.count == 1:
            inputs = [self.configuration(state), *(self.node(number) for number in range(2))]
            if self.contest:
                inputs += [
                    v.AllocationRestored(
                        allocation=f"h{number}",
                        application="hog",
                        queue="root.a",
                        node=f"n{number % 2}",
                        resources={"vcore": 2000},
                    )
                    for number in range(10)
                ]
        else:
            inputs = [self.input(state) for _ in range(dice.choice((0, 1, 1, 2, 3, 6)))]
            if state.asks and dice.random() < 0.08:
                inputs += self.again(state)
        found = [
            v.Proposal(input=one, id=f"{self.count}-{number}" if dice.random() < 0.98 else "same")
            for number, one in enumerate(inputs)
        ]
        if dice.random() < 0.01:
            found.append(v.Proposal(problem="proposal: cannot be read", raw="{"))
        return found

    def input(self, state: State) -> v.AnyInput:
        """Return one input, sensible or not."""
        dice = self.dice
        roll = dice.random()
        if self.contest and dice.random() < 0.4:
            return self.ask(state)
        if roll < 0.45:
            return self.ask(state)
        if roll < 0.61:
            return self.exit(state)
        if roll < 0.67:
            return v.AskWithdrawn(ask=self.among(state.asks))
        if roll < 0.78:
            return self.change_of_nodes(state)
        if roll < 0.83:
            return self.found_running(state)
        if roll < 0.87:
            return v.ApplicationSubmitted(
                application=f"x{dice.randrange(APPS)}",
                queue=self.queue(state) if dice.random() < 0.5 else "",
                user=dice.choice(USERS),
                groups=dice.choice(((), ("dev",))),
            )
        if roll < 0.90:
            return v.ApplicationRemoved(application=self.among(state.applications))
        if roll < 0.92:
            told = {one: None for one, it in state.allocations.items() if it.eviction_requested}
            if dice.random() < 0.5:
                return v.EvictionObserved(allocation=self.among(state.allocations))
            return v.EvictionRefused(allocation=self.among(told))
        if roll < 0.94:
            if dice.random() < 0.5:
                where = None if self.kueue else f"n{dice.randrange(NODES)}"
                return v.BindingObserved(ask=self.among(state.asks), node=where)
            return v.ReservationRestored(
                ask=self.among(state.asks), node=f"n{dice.randrange(NODES)}"
            )
        if self.quiet and roll < 0.985:
            return self.ask(state)
        return self.configuration(state)

    def among(self, things: object) -> str:
        """Return the id of something that is there, seldom of something that need not be."""
        assert isinstance(things, dict)
        if not things or self.dice.random() < 0.05:
            return f"t{self.dice.randrange(TASKS)}"
        found: str = self.dice.choice(list(things))
        return found

    def fresh(self, state: State) -> str:
        """Return the id of a task: one that was used before, and is seldom still there."""
        name = f"t{self.dice.randrange(TASKS)}"
        free = [
            one
            for one in (f"t{number}" for number in range(TASKS))
            if one not in state.asks and one not in state.allocations
        ]
        return self.dice.choice(free) if free and self.dice.random() < 0.95 else name

    def home(self, state: State) -> tuple[str, str]:
        """Return an application and the queue that a task of it names, which may contradict each other."""
        dice = self.dice
        queue = self.queue(state)
        if self.kueue:
            return "", queue
        name = f"x{dice.randrange(APPS)}"
        known = state.applications.get(name)
        if known is not None and dice.random() < 0.5:
            return name, known.leaf.path
        return (name if dice.random() < 0.1 else f"{queue}-{name}"), queue

    def queue(self, state: State) -> str:
        """Return a leaf that is there, or a name that may mean nothing."""
        dice = self.dice
        if dice.random() < 0.1:
            return dice.choice((*LEAVES, "root", "", "ns/l0", "ns/l1", "cohort/top"))
        leaves = [
            path
            for path, queue in state.queues.items()
            if queue.leaf and (not queue.draining or dice.random() < 0.05)
        ]
        if self.contest and len(leaves) > 1 and dice.random() < 0.7:
            leaves = [path for path in leaves if path != "root.a"]
        if state.local_queues and dice.random() < 0.3:
            return dice.choice(list(state.local_queues))
        return dice.choice(leaves or LEAVES)

    def amounts(self) -> dict[str, int]:
        """Return amounts, seldom extreme ones."""
        dice = self.dice
        first, second = ("cpu", "memory") if self.kueue else ("vcore", "memory")
        if dice.random() < 0.04:
            return dice.choice(
                (
                    {},
                    {first: 0},
                    {first: HUGE},
                    {"unheard-of": 1},
                    {first: 1, "unheard-of": 0},
                    {first: HUGE, second: HUGE},
                )
            )
        unit = 1 if self.kueue else 1000
        found = {first: dice.randint(1, 2 if self.contest else 5) * unit}
        if dice.random() < 0.3:
            found[second] = dice.randint(0, 8)
        return found

    def ask(self, state: State) -> v.AnyInput:
        """Return an ask."""
        dice = self.dice
        if len(state.asks) + len(state.allocations) >= TASKS and dice.random() < 0.9:
            if state.allocations and dice.random() < 0.5:
                return v.AllocationReleased(allocation=self.among(state.allocations))
            return v.AskWithdrawn(ask=self.among(state.asks))
        resources, podsets = self.amounts(), ()
        if self.kueue and dice.random() < 0.15:
            podsets = (
                v.PodSet(name="head", resources={"cpu": 1}),
                v.PodSet(name="workers", resources=resources),
            )
            resources = {}
        application, queue = self.home(state)
        return v.AskSubmitted(
            ask=self.fresh(state),
            application=application,
            queue=queue,
            resources=resources,
            podsets=podsets,
            priority=dice.choice((0, 0, 0, 0, 0, 1, 2, -1, 2**31 - 1, -(2**31))),
            allow_preemption=dice.random() < 0.8,
            originator=dice.random() < 0.2,
            preemption_policy=dice.choice(("PreemptLowerPriority",) * 4 + ("Never",)),
            required_node=f"n{dice.randrange(NODES)}" if dice.random() < 0.12 else None,
            created=dice.choice(
                (None, None, START, START + 500, state.time - 100_000, state.time + 7000, 0)
            ),
            user=dice.choice(USERS),
        )

    def again(self, state: State) -> list[v.AnyInput]:
        """Return an ask's withdrawal and an ask of its id and age that may differ in all else."""
        dice = self.dice
        known = state.asks[self.dice.choice(list(state.asks))]
        same = v.AskSubmitted(
            ask=known.id,
            application=known.application,
            queue=known.local_queue or known.queue,
            resources=self.amounts(),
            created=known.created,
            priority=known.priority,
            preemption_policy=dice.choice(("PreemptLowerPriority", "Never")),
            required_node=dice.choice((None, None, known.required_node)),
        )
        return [v.AskWithdrawn(ask=known.id), same]

    def exit(self, state: State) -> v.AnyInput:
        """Return the end of a task, of a victim more often than not."""
        told = [one.id for one in state.allocations.values() if one.eviction_requested]
        if told and self.dice.random() < 0.7:
            return v.AllocationReleased(allocation=self.dice.choice(told), reason="preempted")
        if self.dice.random() < 0.6 or not state.allocations:
            return self.ask(state)
        return v.AllocationReleased(allocation=self.among(state.allocations), reason="completed")

    def found_running(self, state: State) -> v.AnyInput:
        """Return an allocation that ran before the scheduler came."""
        dice = self.dice
        flavors, (application, queue) = None, self.home(state)
        if self.kueue:
            flavors = {"cpu": dice.choice("ab"), "memory": dice.choice("ab")}
        return v.AllocationRestored(
            allocation=self.fresh(state),
            application=application,
            queue=queue,
            node=None if self.kueue else self.among(state.nodes),
            resources=self.amounts(),
            flavors=flavors,
            priority=dice.randint(-1, 2),
            preempting=dice.random() < 0.15,
            evicted=self.kueue and dice.random() < 0.1,
        )

    def node(self, number: int) -> v.AnyInput:
        """Return a node that joins."""
        small = not self.contest and self.dice.random() < 0.5
        capacity = {"vcore": 4000 if small else 10_000, "memory": 20}
        return v.NodeRegistered(node=f"n{number}", capacity=capacity)

    def change_of_nodes(self, state: State) -> v.AnyInput:
        """Return what becomes of a node: it joins, shrinks, grows, is closed, vanishes."""
        dice = self.dice
        match dice.randrange(6):
            case 0 | 1:
                absent = [one for one in range(NODES) if f"n{one}" not in state.nodes]
                return self.node(dice.choice(absent or [0]))
            case 2:
                return v.NodeRemoved(node=self.among(state.nodes))
            case 3:
                sizes = (
                    {"vcore": 0},
                    {},
                    {"vcore": 3000},
                    {"vcore": 20_000, "gpu": 2, "memory": 9},
                )
                return v.NodeUpdated(node=self.among(state.nodes), capacity=dice.choice(sizes))
            case 4:
                return v.NodeUpdated(node=self.among(state.nodes), schedulable=dice.random() < 0.6)
            case _:
                return v.NodeUpdated(node=self.among(state.nodes), capacity={"vcore": HUGE})


def _with(spec: KueueSpec, **fields: object) -> KueueSpec:
    """Return a specification with other values in some fields."""
    return KueueSpec(
        **{name: getattr(spec, name) for name in spec.__struct_fields__} | fields  # type: ignore[arg-type]
    )

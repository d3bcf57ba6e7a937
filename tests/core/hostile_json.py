"""Hostile proposals: JSON of every input type with what no sensible producer would write into it.

Values are drawn from what is known to hurt: extreme integers, deep and long and unprintable texts,
many keys. Names are few, so that proposals meet each other: an ask that waits, a node that is there.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from events.bounds import MAX_AMOUNT, MAX_COUNT, MAX_DEPTH, MAX_INT64, MAX_RESOURCE_TYPES, SUM_LIMIT
from events.cloudevents import InboxRecord

INTEGERS = (
    0, 1, 2, 1000, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, MAX_AMOUNT, MAX_AMOUNT + 1, -MAX_AMOUNT,
    MAX_COUNT - 1, SUM_LIMIT, MAX_INT64, MAX_INT64 + 1, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 10**30,
)  # fmt: skip
TEXTS = (
    "", " ", "a\nb", "\x00", "\x1b[2J", "\x9b", "\u202e", "\xad", "\u2028", "\ufeff", "\U0001f600", "\U000e0041",
    "x" * 129, "x" * 254, "y" * 5000, "é" * 300, '"{[', "\\", "root", "ROOT.a", "root.a", "root..a", "*", "default",
)  # fmt: skip
KINDS = (
    "NodeRegistered", "NodeUpdated", "NodeRemoved", "ApplicationSubmitted", "ApplicationRemoved", "AskSubmitted",
    "AskWithdrawn", "AllocationRestored", "AllocationReleased", "EvictionRefused", "ReservationRestored",
)  # fmt: skip
WEIGHTS = (4, 2, 1, 2, 1, 8, 1, 6, 2, 1, 4)

Json = dict[str, Any]


class Producer:
    """Draws hostile records from a seed.

    Attributes:
        spice: How often, of a hundred values, one is hostile.
    """

    def __init__(self, seed: int) -> None:
        """Draw everything from this number."""
        self.dice = Random(seed)
        self.spice = self.dice.choice((0, 1, 3, 10))

    def records(self, kueue: bool) -> list[InboxRecord]:
        """Return a batch of records, now and then with a configuration first."""
        documents = [self.configuration(kueue)] if self.dice.random() < 0.2 else []
        documents += [self.input(kueue) for _ in range(self.dice.randrange(1, 16))]
        return [self.record(document) for document in documents]

    def opening(self, kueue: bool) -> list[InboxRecord]:
        """Return a first batch without anything hostile: a configuration and two nodes."""
        spice, self.spice = self.spice, 0
        nodes = [
            {"type": "NodeRegistered", "node": name, "capacity": {"vcore": 4, "memory": 4}}
            for name in ("n0", "n1")
        ]
        found = [self.record(document) for document in (self.configuration(kueue), *nodes)]
        self.spice = spice
        return found

    def record(self, document: Json) -> InboxRecord:
        """Return a record with this document, wrapped and named as by a stranger."""
        dice = self.dice
        if dice.randrange(100) < self.spice:
            document[
                dice.choice(("proposal", "new", "seq", "cause", "due", "document", "type"))
            ] = self.any()
        data = json.dumps(document, ensure_ascii=dice.random() < 0.5).encode(errors="replace")
        if dice.randrange(300) < self.spice:
            levels = dice.choice((MAX_DEPTH - 1, MAX_DEPTH, 200, 2000))
            data = data[:-1] + b',"deep":' + b"[" * levels + b"]" * levels + b"}"
        name = self.text(f"p{dice.randrange(10**6)}")
        return InboxRecord(data=data, id=name, source=self.text("fuzz"))

    # --------------------------------------------------------------------------------------- values

    def any(self) -> Any:
        """Return any hostile value."""
        dice = self.dice
        return dice.choice(
            (
                None,
                True,
                1.5,
                [],
                {},
                [[]],
                dice.choice(INTEGERS),
                dice.choice(TEXTS),
                {"a": {"b": 1}},
            )
        )

    def hot(self) -> bool:
        """Tell whether the next value is to be a hostile one."""
        return self.dice.randrange(100) < self.spice

    def text(self, usual: str) -> str:
        """Return a text, seldom another one than the usual one."""
        return self.dice.choice(TEXTS) if self.hot() else usual

    def integer(self, usual: int) -> int:
        """Return an integer, seldom another one than the usual one."""
        return self.dice.choice(INTEGERS) if self.hot() else usual

    def amounts(self) -> Json:
        """Return amounts: small ones, the largest, or of very many types."""
        dice = self.dice
        if self.hot() and dice.random() < 0.2:
            return {f"r{number}": 1 for number in range(dice.choice((300, MAX_RESOURCE_TYPES + 1)))}
        large = dice.random() < 0.3
        return {
            self.text(name): self.integer(MAX_AMOUNT if large else dice.randrange(5))
            for name in dice.choice((("cpu",), ("vcore",), ("vcore", "memory"), ("cpu", "memory")))
        }

    # -------------------------------------------------------------------------------------- inputs

    def input(self, kueue: bool) -> Json:
        """Return an input with the fields of its type, about few names."""
        dice = self.dice
        (kind,) = dice.choices(KINDS, WEIGHTS)
        task, node = f"t{dice.randrange(12)}", self.text(f"n{dice.randrange(2)}")
        queue = (
            dice.choice(("q0", "q1"))
            if kueue
            else dice.choice(("root.a", "root.a", "root.p.b", "root.p.b", "root.p"))
        )
        match kind:
            case "NodeRegistered" | "NodeUpdated":
                labels = {self.text("zone"): self.text("a")}
                return {"type": kind, "node": node, "capacity": self.amounts(), "labels": labels}
            case "NodeRemoved":
                return {"type": kind, "node": node}
            case "ApplicationSubmitted":
                made = {"type": kind, "application": "app", "queue": self.text(queue)}
                return made | {
                    "user": self.text("u"),
                    "created": self.integer(5),
                    "tags": {"a": self.text("b")},
                }
            case "ApplicationRemoved":
                return {"type": kind, "application": "app"}
            case "AskSubmitted":
                return {"type": kind, "ask": self.text(task)} | self.work(queue, kueue)
            case "AllocationRestored":
                made = {"type": kind, "allocation": self.text(task)} | self.work(queue, kueue)
                return made if kueue else made | {"node": node}
            case "ReservationRestored":
                return {"type": kind, "ask": task, "node": node}
            case "AskWithdrawn":
                return {"type": kind, "ask": task}
            case _:
                return {"type": kind, "allocation": task, "reason": self.text("preempted")}

    def work(self, queue: str, kueue: bool) -> Json:
        """Return what asks and allocations share."""
        made: Json = {"queue": self.text(queue), "priority": self.integer(self.dice.randrange(3))}
        if self.dice.random() < 0.3:
            made["created"] = self.integer(7)
        if kueue and self.dice.random() < 0.3:
            number = 600 if self.hot() else 2
            sets = [{"name": f"s{i}", "resources": self.amounts()} for i in range(number)]
            return made | {"podsets": sets}
        if kueue and self.dice.random() < 0.5:
            made["flavors"] = {"cpu": self.text("f")}
        return made | {"resources": self.amounts()}

    # ------------------------------------------------------------------------------- configurations

    def configuration(self, kueue: bool) -> Json:
        """Return a configuration of one format or the other."""
        spec = self.kueue() if kueue else self.yunikorn()
        if self.hot():
            spec[self.dice.choice(tuple(spec))] = self.any()
        return {"type": "ConfigurationApplied", "configuration": spec}

    def yunikorn(self) -> Json:
        """Return a partition of queues.yaml."""
        dice = self.dice
        leaves = [self.leaf("a"), self.leaf("b")]
        root = {"name": "root", "parent": True, "queues": [leaves[0], self.above("p", [leaves[1]])]}
        if self.hot():
            for _ in range(dice.choice((20, 30, 40, 400))):
                leaves[1] = {"name": self.text("d"), "parent": True, "queues": [leaves[1]]}
            root["queues"] = leaves
        rule: Json = {"name": "provided", "create": True}
        for _ in range(dice.choice((5, 40, 900)) if self.hot() else 0):
            rule = {"name": "fixed", "value": self.text("a"), "parent": rule}
        return {
            "format": "yunikorn",
            "partition": self.text("default"),
            "root": root,
            "placement_rules": [rule] if dice.random() < 0.3 else [],
            "quota_preemption_enabled": True,
            "eviction_grace_ms": self.integer(1000),
            "eviction_attempts": self.integer(2),
            "quota_miss_percent": self.integer(100),
            "node_sort_weights": {self.text("vcore"): self.integer(1000)},
            "pace": {"interval_ms": self.integer(1000)} | self.held(),
        }

    def held(self) -> Json:
        """Return what a cycle's victims may hold together: not limited but seldom."""
        return {"max_resources": self.amounts()} if self.hot() else {}

    def above(self, name: str, queues: list[Json]) -> Json:
        """Return a queue that holds others, with a template."""
        template = {"maximum": self.amounts(), "properties": {"preemption.delay": self.text("1s")}}
        return {"name": name, "parent": True, "queues": queues, "template": template}

    def leaf(self, name: str) -> Json:
        """Return a leaf whose every setting may be hostile."""
        dice = self.dice
        properties = {
            "preemption.delay": self.text("1s"),
            "priority.offset": str(self.integer(1)),
            "application.unschedasks.backoff": str(self.integer(1)),
            "application.unschedasks.backoff.delay": f"{self.integer(1)}h",
            "quota.preemption.delay": f"{self.integer(1)}s",
            self.text("x"): self.text("y"),
        }
        made: Json = {"name": self.text(name), "properties": properties}
        if dice.random() < 0.8:
            made["guaranteed"] = {"vcore": 4} if dice.random() < 0.8 else self.amounts()
        if dice.random() < 0.15:
            made["maximum"] = self.amounts()
        if self.hot():
            made["max_applications"] = self.integer(1)
            made["limits"] = [{"users": [self.text("u")], "max_resources": self.amounts()}]
        return made

    def kueue(self) -> Json:
        """Return Kueue manifests of two ClusterQueues in one cohort."""
        queues = []
        for name in ("q0", "q1"):
            quota = {"nominal": self.integer(self.dice.choice((2, MAX_INT64 // 2)))}
            if self.dice.random() < 0.3:
                quota["borrowing_limit"] = self.integer(3)
            flavors = [{"flavor": self.text("f"), "quotas": {"cpu": quota}}]
            queues.append(
                {
                    "name": self.text(name),
                    "cohort": "c",
                    "groups": [{"resources": ["cpu"], "flavors": flavors}],
                    "within_cluster_queue": "LowerPriority",
                    "reclaim_within_cohort": "Any",
                    "weight_nano": self.integer(10**9),
                    "quota_preemption_delay_ms": self.integer(1000),
                }
            )
        local = {"name": "l", "namespace": "n", "cluster_queue": self.text("q0")}
        return {
            "format": "kueue",
            "cluster_queues": queues,
            "cohorts": [{"name": "c", "parent": "c" if self.hot() else None}],
            "local_queues": [local],
            "fair_sharing": self.dice.random() < 0.5,
            "fair_strategies": ["LessThanOrEqualToFinalShare"],
        }

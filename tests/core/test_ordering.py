"""The sort keys: priorities with fences and offsets, exact shares, total orders."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.configuration import QueueSpec, YunikornSpec
from evsched.core.queues import Application, Queue
from evsched.core.resources import ResourceTypes
from evsched.core.workloads import Ask
from evsched.core.yunikorn.order_nodes import QueueNode, shift
from evsched.core.yunikorn.ordering import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    application_key,
    ask_key,
    denominators,
    queue_key,
    share,
    shown_priority,
)
from evsched.core.yunikorn.settings import resolve
from evsched.core.yunikorn.tree import build

large = st.integers(1, 2**63 - 1)


def leaf(**properties: str) -> Queue:
    """Return a leaf below root with these properties (underscores stand for dots)."""
    root = Queue("root", "root", None, leaf=False)
    queue = Queue("root.a", "a", root, leaf=True)
    written = {key.replace("_", "."): value for key, value in properties.items()}
    queue.settings = resolve(written, root.settings, leaf=True)
    return queue


def application(
    queue: Queue, name: str, created: int = 0, seq: int = 1, usage: int = 0
) -> Application:
    """Return an application that uses one type of resource."""
    made = Application(id=name, leaf=queue, user="u", groups=(), created=created, seq=seq, width=1)
    made.usage[0] = usage
    return made


@given(large, large, large, large)
def test_shares_compare_as_exact_ratios(a, b, c, d):
    """The integer of a share orders ratios as fractions do, and tells any two different ones apart."""
    first, second = share([a], ((0, b),)), share([c], ((0, d),))
    assert (first < second, first == second) == (
        Fraction(a, b) < Fraction(c, d),
        Fraction(a, b) == Fraction(c, d),
    )


@pytest.mark.parametrize(
    ("usage", "compared_with", "expected"),
    [
        ([0, 0], ((0, 4), (1, 4)), Fraction(0)),
        ([1, 3], ((0, 4), (1, 4)), Fraction(3, 4)),
        ([1, 0], ((0, 0),), Fraction(1)),
        ([0, 0], ((0, 0),), Fraction(0)),
        ([1, 9], ((0, 4),), Fraction(1, 4)),
        ([6, 0], ((0, 4),), Fraction(3, 2)),
    ],
    ids=[
        "nothing-used",
        "the-largest-counts",
        "used-of-nothing",
        "unused-of-nothing",
        "no-denominator",
        "above-its-guarantee",
    ],
)
def test_share_is_the_dominant_one(usage, compared_with, expected):
    """The largest ratio counts; a guarantee of 0 is used up by any usage; a type without a denominator is left out."""
    assert Fraction(share(usage, compared_with), 2**128) == expected


def test_a_type_without_a_guarantee_is_compared_with_the_fair_maximum():
    """Guarantee first, then the nearest maximum on the path, then the cluster's total; types that nobody has are left out."""
    types = ResourceTypes()
    for name in ("vcore", "memory", "gpu", "disk"):
        types.type_index(name)
    below = QueueSpec(name="b", guaranteed={"vcore": 5})
    above = QueueSpec(name="a", parent=True, queues=(below,), maximum={"memory": 70})
    _, queues, _ = build(
        YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(above,))), types
    )
    assert denominators(queues["root.a.b"], [100, 200, 8, 0]) == ((0, 5), (1, 70), (2, 8))


@pytest.mark.parametrize(
    ("properties", "highest", "expected"),
    [
        ({}, 7, 7),
        ({"priority_offset": "5"}, 7, 12),
        ({"priority_offset": "-5"}, MIN_PRIORITY + 2, MIN_PRIORITY),
        ({"priority_offset": "5"}, MAX_PRIORITY - 2, MAX_PRIORITY),
        ({"priority_policy": "fence"}, 7, 0),
        ({"priority_policy": "FENCE", "priority_offset": "-9"}, 7, -9),
        ({"priority_offset": "five"}, 7, 7),
    ],
    ids=[
        "plain",
        "offset",
        "clamped-below",
        "clamped-above",
        "fence-is-default",
        "fence-shows-its-offset",
        "unparsable-is-0",
    ],
)
def test_shown_priority(properties, highest, expected):
    """What a queue shows above it: its highest priority plus offset within int32, or behind a fence the offset alone."""
    assert shown_priority(leaf(**properties), highest) == expected


def test_queues_by_priority_then_share_then_pending_then_path():
    """Each criterion decides when those before it are equal."""
    compared_with = ((0, 10),)

    def key(path: str, highest: int, usage: int, pending: int) -> object:
        queue = leaf()
        queue.path, queue.usage, queue.pending = path, [usage], [pending]
        return queue_key(queue, highest, compared_with)

    ordered = [
        key("root.z", 2, 9, 1), key("root.y", 1, 1, 1), key("root.x", 1, 2, 5), key("root.v", 1, 2, 4), key("root.w", 1, 2, 4),
    ]  # fmt: skip
    assert sorted(ordered) == ordered


def test_with_priorities_off_on_the_parent_the_share_comes_first():
    """``application.sort.priority: disabled`` makes queues fair; priority then breaks ties."""
    keys = []
    for path, highest, usage in (("root.c", 0, 1), ("root.b", 9, 2), ("root.a", 1, 2)):
        queue = leaf()
        queue.parent.settings = resolve({"application.sort.priority": "Disabled"}, None, leaf=False)
        queue.path, queue.usage, queue.pending = path, [usage], [1]
        keys.append(queue_key(queue, highest, ((0, 10),)))
    assert sorted(keys) == keys


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"application_sort_policy": "fifo"}, ["high", "old", "young", "twin"]),
        ({"application_sort_policy": "fair"}, ["high", "young", "twin", "old"]),
        (
            {"application_sort_policy": "fifo", "application_sort_priority": "disabled"},
            ["old", "high", "young", "twin"],
        ),
        (
            {"application_sort_policy": "fair", "application_sort_priority": "disabled"},
            ["young", "twin", "old", "high"],
        ),
    ],
    ids=["fifo", "fair", "fifo-without-priority", "fair-without-priority"],
)
def test_applications_by_priority_and_policy(properties, expected):
    """Priority comes before the policy unless it is disabled; equal ones go by their place in the log."""
    queue = leaf(**properties)
    some = [
        (application(queue, "high", created=5, seq=1, usage=9), 7),
        (application(queue, "old", created=1, seq=2, usage=3), 0),
        (application(queue, "young", created=5, seq=3, usage=1), 0),
        (application(queue, "twin", created=5, seq=4, usage=1), 0),
    ]
    some.sort(key=lambda one: application_key(one[0], one[1], ((0, 10),)))
    assert [one.id for one, _ in some] == expected


def test_asks_by_priority_then_age_then_log():
    """Inside an application the higher priority goes first, then the older ask, then the one submitted first."""
    rows = (("a", 5, 9, 3), ("b", 0, 1, 9), ("c", 0, 2, 1), ("d", 0, 2, 2))
    asks = [
        Ask(id=name, application="x", queue="q", shape=0, priority=p, created=c, seq=seq)
        for name, p, c, seq in rows
    ]
    assert sorted(asks, key=ask_key) == asks


changing = st.tuples(st.integers(0, 3), st.integers(-3, 3), st.booleans())


@given(st.lists(changing, max_size=40), st.lists(st.booleans(), min_size=3))
def test_current_priority_follows_its_asks(changes, fences):
    """After any asks came and went, each queue's cached priority is the maximum of what is inside."""
    queues = [Queue("root", "root", None, leaf=False)]
    for name, above in (("p", 0), ("a", 1), ("b", 1), ("c", 0)):
        queues.append(Queue(name, name, queues[above], leaf=name != "p"))
        queues[-1].parent.children[name] = queues[-1]
    for queue, fence in zip(queues[1:], fences, strict=False):
        policy = "fence" if fence else "default"
        queue.settings = resolve(
            {"priority.policy": policy, "priority.offset": "2"}, queues[0].settings, leaf=queue.leaf
        )
    queue_nodes = {queue: QueueNode(queue, None, ()) for queue in queues}
    for queue in queues[1:]:
        queue_nodes[queue].parent = queue_nodes[queue.parent]
    waiting: dict[Queue, list[int]] = {queue: [] for queue in queues if queue.leaf}
    for which, priority, leaves in changes:
        queue = list(waiting)[which % len(waiting)]
        if leaves and waiting[queue]:
            shift(queue_nodes[queue], waiting[queue].pop(), None)
        else:
            waiting[queue].append(priority)
            shift(queue_nodes[queue], None, priority)

    def highest(queue: Queue) -> int | None:
        inside = waiting[queue] if queue.leaf else [
            shown_priority(child, below) for child in queue.children.values() if (below := highest(child)) is not None
        ]  # fmt: skip
        return max(inside, default=None)

    assert {queue.path: queue_nodes[queue].highest for queue in queues} == {
        queue.path: highest(queue) for queue in queues
    }

"""What the properties of a queue mean, and what of them a queue takes over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evsched.core.yunikorn import settings
from evsched.core.yunikorn.settings import QueueSettings, resolve

ROOT = resolve({}, None, leaf=False)


def leaf(*levels: dict[str, str], quota_delay_ms: int | None = None) -> QueueSettings:
    """Return the settings of a leaf below root whose ancestors have these properties, outermost (below root) first."""
    above = ROOT
    for properties in levels[:-1]:
        above = resolve(properties, above, leaf=False)
    return resolve(levels[-1], above, leaf=True, quota_delay_ms=quota_delay_ms)


def test_defaults():
    """Without properties nothing is fenced, offset, disabled or enforced."""
    assert leaf({}) == QueueSettings(sort_policy="fifo")


@pytest.mark.parametrize(
    ("levels", "policy"),
    [
        ([{}], "default"),
        ([{"preemption.policy": "fence"}], "fence"),
        ([{"preemption.policy": "FENCE"}], "fence"),
        ([{"preemption.policy": "Disabled"}], "disabled"),
        ([{"preemption.policy": "sometimes"}], "default"),
        ([{"preemption.policy": "fence"}, {}], "default"),
        ([{"preemption.policy": "disabled"}, {}], "disabled"),
        ([{"preemption.policy": "disabled"}, {}, {}], "disabled"),
        ([{"preemption.policy": "disabled"}, {"preemption.policy": "default"}], "default"),
        ([{"preemption.policy": "disabled"}, {"preemption.policy": "fence"}], "fence"),
        ([{"preemption.policy": "disabled"}, {"preemption.policy": "fence"}, {}], "default"),
    ],
)
def test_preemption_policy(levels, policy):
    """In any case; the own value wins, and of the inherited ones only ``disabled`` counts."""
    assert leaf(*levels).preemption_policy == policy


def test_root_is_no_fence():
    """A fence on root has no effect; disabling preemption there reaches every queue."""
    assert resolve({"preemption.policy": "fence"}, None, leaf=False).preemption_policy == "default"
    root = resolve({"preemption.policy": "disabled"}, None, leaf=False)
    assert resolve({}, root, leaf=True).preemption_policy == "disabled"


@pytest.mark.parametrize(
    ("levels", "delay_ms"),
    [
        ([{}], 30_000),
        ([{"preemption.delay": "10s"}], 10_000),
        ([{"preemption.delay": "1m30s"}], 90_000),
        ([{"preemption.delay": "1ns"}], 1),
        ([{"preemption.delay": "0s"}], 30_000),
        ([{"preemption.delay": "-5s"}], 30_000),
        ([{"preemption.delay": "bogus"}], 30_000),
        ([{"preemption.delay": "10"}], 30_000),
        ([{"preemption.delay": ""}], 30_000),
        ([{"preemption.delay": "10s"}, {}], 30_000),
        ([{"preemption.delay": "10s"}, {"preemption.delay": "20s"}], 20_000),
    ],
)
def test_preemption_delay(levels, delay_ms):
    """30 s unless a positive duration stands on the leaf itself."""
    assert leaf(*levels).preemption_delay_ms == delay_ms


def test_preemption_delay_of_a_parent_has_no_effect():
    """A queue that is no leaf has no delay of its own."""
    assert resolve({"preemption.delay": "1s"}, ROOT, leaf=False).preemption_delay_ms == 30_000


@pytest.mark.parametrize(
    ("levels", "fence", "offset"),
    [
        ([{}], False, 0),
        ([{"priority.policy": "fence"}], True, 0),
        ([{"priority.policy": "FENCE", "priority.offset": "5"}], True, 5),
        ([{"priority.policy": "default", "priority.offset": "-10"}], False, -10),
        ([{"priority.policy": "wall"}], False, 0),
        ([{"priority.offset": "+7"}], False, 7),
        ([{"priority.offset": "2147483647"}], False, 2**31 - 1),
        ([{"priority.offset": "-2147483648"}], False, -(2**31)),
        ([{"priority.offset": "2147483648"}], False, 0),
        ([{"priority.offset": "9" * 5000}], False, 0),
        ([{"priority.offset": "x"}], False, 0),
        ([{"priority.offset": "1.0"}], False, 0),
        ([{"priority.offset": "1_0"}], False, 0),
        ([{"priority.offset": " 1"}], False, 0),
        ([{"priority.offset": ""}], False, 0),
        ([{"priority.policy": "fence", "priority.offset": "5"}, {}], False, 0),
    ],
)
def test_priority(levels, fence, offset):
    """Policy and offset count where they stand and are not taken over."""
    assert (leaf(*levels).priority_fence, leaf(*levels).priority_offset) == (fence, offset)


def test_priority_of_root_has_no_effect():
    """Nothing is above root that could see its priority."""
    root = resolve({"priority.policy": "fence", "priority.offset": "100"}, None, leaf=False)
    assert (root.priority_fence, root.priority_offset) == (False, 0)


@pytest.mark.parametrize(
    ("levels", "enabled"),
    [
        ([{}], True),
        ([{"application.sort.priority": "Disabled"}], False),
        ([{"application.sort.priority": "off"}], True),
        ([{"application.sort.priority": "disabled"}, {}], False),
        ([{"application.sort.priority": "disabled"}, {}, {}], False),
        (
            [{"application.sort.priority": "disabled"}, {"application.sort.priority": "enabled"}],
            True,
        ),
        (
            [
                {"application.sort.priority": "disabled"},
                {"application.sort.priority": "enabled"},
                {},
            ],
            True,
        ),
    ],
)
def test_sort_priority(levels, enabled):
    """Only ``disabled`` is taken over, and the own value wins."""
    assert leaf(*levels).sort_priority is enabled


@pytest.mark.parametrize(
    ("levels", "policy"),
    [
        ([{}], "fifo"),
        ([{"application.sort.policy": "fair"}], "fair"),
        ([{"application.sort.policy": "FAIR"}], "fair"),
        ([{"application.sort.policy": "stateaware"}], "stateaware"),
        ([{"application.sort.policy": "random"}], "fifo"),
        ([{"application.sort.policy": "fair"}, {}], "fair"),
        ([{"application.sort.policy": "fair"}, {"application.sort.policy": "fifo"}], "fifo"),
    ],
)
def test_sort_policy(levels, policy):
    """A leaf sorts by its own policy, else by the one handed down, else first in, first out."""
    assert leaf(*levels).sort_policy == policy


def test_parents_sort_fairly():
    """The order of queues is fair whatever the property says."""
    assert resolve({"application.sort.policy": "fifo"}, ROOT, leaf=False).sort_policy == "fair"


@pytest.mark.parametrize(
    ("levels", "own_ms", "delay_ms"),
    [
        ([{}], None, 0),
        ([{}], 7_200_000, 7_200_000),
        ([{"quota.preemption.delay": "60s"}], None, 60_000),
        ([{"quota.preemption.delay": "60s"}, {}], None, 60_000),
        ([{"quota.preemption.delay": "60s"}, {"quota.preemption.delay": "5s"}], None, 5_000),
        ([{"quota.preemption.delay": "60s"}, {"quota.preemption.delay": "bogus"}], None, 0),
        ([{"quota.preemption.delay": "60s"}, {}], 5_000, 5_000),
        ([{"quota.preemption.delay": "60s"}, {}], 0, 0),
        ([{"quota.preemption.delay": "-60s"}], None, 0),
    ],
)
def test_quota_preemption_delay(levels, own_ms, delay_ms):
    """The queue's own resources win over its property, and that over the one handed down."""
    assert leaf(*levels, quota_delay_ms=own_ms).quota_preemption_delay_ms == delay_ms


def test_delay_in_resources_is_not_handed_down():
    """Only properties are taken over."""
    above = resolve({}, ROOT, leaf=False, quota_delay_ms=5_000)
    assert resolve({}, above, leaf=True).quota_preemption_delay_ms == 0


def test_backoff():
    """The pause of applications with unplaceable asks is off, and 30 s long, unless set."""
    assert (leaf({}).backoff_asks, leaf({}).backoff_delay_ms) == (0, 30_000)
    above = {"application.unschedasks.backoff": "5", "application.unschedasks.backoff.delay": "1m"}
    assert (leaf(above, {}).backoff_asks, leaf(above, {}).backoff_delay_ms) == (5, 60_000)
    assert leaf(above, {"application.unschedasks.backoff": "-1"}).backoff_asks == 0


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        (
            {"preemption.policy": "sometimes"},
            ["preemption.policy", "'sometimes'", "default, fence, disabled"],
        ),
        ({"preemption.delay": "bogus"}, ["preemption.delay", "'bogus'", "30s is used"]),
        ({"preemption.delay": "0s"}, ["preemption.delay", "positive"]),
        ({"priority.policy": "wall"}, ["priority.policy"]),
        ({"priority.offset": "x"}, ["priority.offset", "'x'"]),
        ({"priority.offset": "1000000000"}, ["priority.offset", "clamped"]),
        ({"priority.offset": "-2000000000"}, ["priority.offset", "clamped"]),
        ({"application.sort.policy": "random"}, ["fifo is used"]),
        ({"application.sort.priority": "off"}, ["enabled is used"]),
        ({"quota.preemption.delay": "soon"}, ["0s is used"]),
        ({"application.unschedasks.backoff": "many"}, ["whole number"]),
        ({"application.unschedasks.backoff.delay": "x"}, ["30s is used"]),
        ({"preemption.delays": "5s"}, ["preemption.delays", "not known"]),
    ],
)
def test_warning(properties, words):
    """One sentence that names the property, what was found and what is used instead."""
    (message,) = settings.warnings(properties)
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {
            "preemption.policy": "FENCE",
            "priority.policy": "Fence",
            "priority.offset": "999999999",
            "preemption.delay": "1s",
        },
        {
            "application.sort.policy": "fair",
            "application.sort.priority": "DISABLED",
            "quota.preemption.delay": "0s",
        },
        {
            "application.unschedasks.backoff": "0",
            "application.unschedasks.backoff.delay": "1m",
            "priority.offset": "",
        },
        {"application.unschedasks.backoff": "5"},
    ],
)
def test_no_warning(properties):
    """What is understood is not remarked on."""
    assert settings.warnings(properties) == ()


@given(
    st.dictionaries(st.sampled_from(sorted(settings._CHECKS)), st.text(max_size=20)), st.booleans()
)
def test_any_properties_have_a_meaning(properties, is_leaf):
    """No value makes the resolution fail, and all amounts stay within their bounds."""
    found = resolve(properties, ROOT, leaf=is_leaf)
    assert found.preemption_delay_ms > 0
    assert -(2**31) <= found.priority_offset < 2**31
    assert found.quota_preemption_delay_ms >= 0
    settings.warnings(properties)

"""The status of a log: what is known at its end, and what a person has to know of how it came about."""

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from replays.history.rebuild import History
from replays.history.status import StatusQuestion, status
from tests.replays.logs import sealed, taken, written


def spec(maximum):
    """Return a configuration with one limited queue."""
    leaf = QueueSpec(
        name="test", maximum={"vcore": maximum}, properties={"quota.preemption.delay": "10s"}
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
    return YunikornSpec(root=root, quota_preemption_enabled=True)


def pod(name, required_node=None):
    """Return an ask of the queue."""
    return v.AskSubmitted(
        ask=name,
        application="x",
        queue="root.test",
        resources={"vcore": 2000},
        required_node=required_node,
    )


IN_VAIN = [
    (0, [pod("bound-1", "n1"), pod("bound-2", "n1")], False),
    (1000, [v.ConfigurationApplied(configuration=spec(2000))], False),
    (20_000, [], False),
]
HELPED = [
    *IN_VAIN,
    (1000, [v.ConfigurationApplied(configuration=spec(9000)), pod("free-1")], False),
    (1000, [v.ConfigurationApplied(configuration=spec(4000))], False),
    (20_000, [], False),
]


async def asked(history):
    """Return the status of a log with this history."""
    log = await written(sealed(taken(spec(9000), history)))
    return await status(History(log), StatusQuestion(inbox_end=1000))


async def test_an_enforcement_that_helped_nobody_is_told_with_what_remains():
    """Both allocations are bound to their node, so that 2 vcore too many go on to run."""
    found = await asked(IN_VAIN)
    (one,) = found.quota_actions
    assert (one.queue, one.action) == ("root.test", "unhelpful")
    assert one.target == one.unmet == one.above == {"vcore": 2000}
    (queue,) = (one for one in found.queues if one.queue == "root.test")
    assert (queue.used, queue.max) == ({"vcore": 4000}, {"vcore": 2000})


async def test_an_older_enforcement_in_vain_is_no_longer_told():
    """The last one of the queue found a victim: what was said of the one before is over."""
    found = await asked(HELPED)
    (one,) = found.quota_actions
    assert (one.action, one.target, one.unmet) == ("decided", {"vcore": 2000}, {})
    assert one.above == {}
    (queue,) = (one for one in found.queues if one.queue == "root.test")
    assert queue.preempting == {"vcore": 2000}


async def test_a_first_configuration_leaves_no_enforcement_to_tell_of():
    """Nothing is above its maximum, so an enforcement that found nothing to do is not shown."""
    assert (await asked([(20_000, [], False)])).quota_actions == []


async def test_what_is_used_above_a_maximum_is_shown_until_it_is_gone():
    """The timer of the lowered maximum still runs, and says when it fires."""
    found = await asked(IN_VAIN[:2])
    (one,) = found.quota_actions
    assert (one.action, one.above) == ("scheduled", {"vcore": 2000})
    assert one.due > one.time

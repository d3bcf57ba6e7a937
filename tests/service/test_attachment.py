"""A log reads the inbox that it names and no other: restored logs, inboxes made again, inboxes cut short."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from msgspec.structs import replace

from events import errors
from events.chain import ChainReader
from events.cloudevents import InboxRecord
from events.streams import open_streams
from events.streams.attachment import attach, must_be_attached
from events.streams.export import export_log, import_log
from events.streams.leadership import Leadership
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.streams.protocols import Streams
from events.vocabulary import InboxAttached, InputRejected, LeaderStarted, NodeRegistered
from evsched.service.environment import SystemClock, environment
from evsched.service.leading import Pace
from evsched.service.member import Member
from replays.checking.chain_check import check_log
from replays.checking.verify import verify_log
from replays.history.rebuild import History
from tests.events.conftest import another_place, kind, place  # noqa: F401 - a test that takes one runs once for each adapter
from tests.events.world import steps_of, world

QUICK = Pace(beat=0.05, lease=0.5, idle=0.02, retry=0.05, retry_most=0.1)


def node(name):
    """Return the proposal of a node."""
    return NodeRegistered(node=name, capacity={"vcore": 1000}, proposal=f"p-{name}")


@asynccontextmanager
async def led(streams):
    """Let a member take part for as long as the body runs."""
    member = Member(streams, SystemClock(), pace=QUICK)
    task = asyncio.create_task(member.run())
    try:
        yield member
    finally:
        member.stop()
        await asyncio.wait_for(task, 20)


async def answers(streams):
    """Return the ids of all answered proposals, in order."""
    found = [event for step in await steps_of(streams.log) for event in step.events]
    kinds = (NodeRegistered, InputRejected)
    return [event.proposal for event in found if isinstance(event, kinds)]


async def until_answered(streams, count):
    """Return the ids once there are so many."""
    async with asyncio.timeout(30):
        while len(found := await answers(streams)) < count:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.02)
    return found


async def until(holds):
    """Return as soon as this holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.02)


async def exported(where, file, *names):
    """Fill a log, lead it, and export it."""
    streams = await where.open()
    await streams.inbox.propose([node(name) for name in names])
    async with led(streams):
        await until_answered(streams, len(names))
    await export_log(streams.log, file)
    return streams


async def restored(where, file):
    """Return a new log that holds what the file does, with its inbox attached."""
    streams = await where.open()
    await import_log(file, streams.log)
    await attach(streams, environment(SystemClock()))
    return streams


async def test_a_restored_log_answers_everything_once(another_place, tmp_path: Path):  # noqa: F811
    """What was proposed before the import, before the first leader and after: each is answered, in order, none of them twice."""
    file = tmp_path / "log.jsonl"
    await exported(another_place(), file, "a", "b", "c", "d")
    there = another_place()
    early = await there.open()
    await early.inbox.propose([node("before")])
    streams = await restored(there, file)
    await must_be_attached(streams)
    await streams.inbox.propose([node("between-1"), node("between-2")])
    async with led(streams) as member:
        await until_answered(streams, 7)
        assert member.role == "leading"
        await must_be_attached(streams)
        await streams.inbox.propose([node("after")])
        found = await until_answered(streams, 8)
    expected = ["a", "b", "c", "d", "before", "between-1", "between-2", "after"]
    assert found == [f"p-{name}" for name in expected]
    outcome = await verify_log(History(streams.log))
    assert (outcome.difference, outcome.damage) == (None, None)
    report = await check_log(streams.log)
    assert [one.inbox for one in report.attachments] == [await streams.inbox.identity()]
    assert (report.inbox, report.inbox_next) == (await streams.inbox.identity(), 4)
    # What was imported once can be imported again: nothing differs, and nothing is written.
    quiet = await restored(another_place(), file)
    end = await quiet.log.end()
    assert (await import_log(file, quiet.log)).there == (await check_log(quiet.log)).records - 2
    assert not (await attach(quiet, environment(SystemClock()))).changed
    assert await quiet.log.end() == end


async def test_a_log_whose_inbox_is_not_attached_is_not_led(another_place, tmp_path: Path):  # noqa: F811
    """However much lies in the inbox, nothing is passed over, and producers are told; once attached, the same process leads."""
    file = tmp_path / "log.jsonl"
    await exported(another_place(), file, "a", "b")
    streams = await another_place().open()
    await import_log(file, streams.log)
    end = await streams.log.end()
    with pytest.raises(errors.InboxDetached, match=r"the log reads inbox .*attach-inbox"):
        await must_be_attached(streams)
    await streams.inbox.propose([node(name) for name in ("c", "d", "e", "f")])
    async with led(streams) as member:
        await asyncio.sleep(0.5)
        assert member.role in {"starting", "standby"}
        assert member.failure is None
        assert await streams.log.end() == end
        assert (await attach(streams, environment(SystemClock()))).position == 0
        found = await until_answered(streams, 6)
    assert found == [f"p-{name}" for name in "abcdef"]


async def test_an_inbox_of_a_log_without_names_must_hold_what_was_answered(another_place):  # noqa: F811
    """A log of 0.1.0: its own inbox is named by the next leader, without an event; one that only is as long is refused."""
    streams = await another_place().open()
    await streams.inbox.propose([node("a"), node("b")])
    await old_leader(streams, 2)
    assert not (await check_log(streams.log)).inbox
    async with led(streams) as member:
        await until(lambda: member.role == "leading")
        await streams.inbox.propose([node("c")])
        assert await until_answered(streams, 3) == ["p-a", "p-b", "p-c"]
    report = await check_log(streams.log)
    assert (report.inbox, report.attachments) == (await streams.inbox.identity(), [])

    other = await another_place().open()
    await other.inbox.propose([node("a"), node("x"), node("y"), node("z")])
    await old_leader(other, 1)
    foreign = await another_place().open()
    await foreign.inbox.propose([node("x"), node("y"), node("z")])
    async for batch in other.log.read():
        for record in batch:
            await foreign.log.append(record.data)
    async with led(foreign) as member:
        await asyncio.sleep(0.3)
        assert member.role != "leading"
    assert await answers(foreign) == ["p-a"]


async def old_leader(streams, count):
    """Answer so many proposals as a leader of 0.1.0 did, which did not name its inbox."""
    leadership = await Leadership.acquire(streams.log, ChainReader(), lambda _: None, world())
    for proposal in await streams.inbox.read(0, count):
        event = NodeRegistered(
            seq=leadership.head.next_seq,
            node=proposal.input.node,
            capacity=proposal.input.capacity,
            proposal=proposal.id,
        )
        await leadership.append_step(
            (event,), time=2_000, decided=False, inbox_next=proposal.position + 1
        )
    await leadership.heartbeat(2_000, resigned=True)


async def test_a_place_with_another_leader_before_is_asked_for_the_position(another_place):  # noqa: F811
    """A log that was led here but does not name its inbox may have read this one: nothing is guessed."""
    streams = await another_place().open()
    await streams.inbox.put([InboxRecord(data=b"{}", id="", source="")] * 3)
    leadership = await Leadership.acquire(streams.log, ChainReader(), lambda _: None, world())
    await leadership.append_step((), time=2_000, decided=False, inbox_next=2)
    await leadership.heartbeat(2_000, resigned=True)
    with pytest.raises(errors.InboxDetached, match="say from which position"):
        await attach(streams, environment(SystemClock()))
    with pytest.raises(errors.InboxDetached, match="ends at 3, position 4"):
        await attach(streams, environment(SystemClock()), 4)
    assert (await attach(streams, environment(SystemClock()), 2)).position == 2
    assert (await check_log(streams.log)).inbox_next == 2


async def test_an_inbox_that_lost_its_tail_is_not_read_on(another_place):  # noqa: F811
    """The log has read further than it goes; who leads stops, and what comes after the loss is answered once attached."""
    streams = await another_place().open()
    leadership = await Leadership.acquire(
        streams.log, ChainReader(), lambda _: None, await naming(streams)
    )
    await leadership.append_step((), time=2_000, decided=False, inbox_next=3)
    await leadership.heartbeat(2_000, resigned=True)
    await streams.inbox.propose([node("a")])
    async with led(streams) as member:
        await asyncio.sleep(0.3)
        assert member.role != "leading"
        with pytest.raises(errors.InboxDetached, match="ends at 1, position 3"):
            await attach(streams, environment(SystemClock()))
        await attach(streams, environment(SystemClock()), 0)
        assert await until_answered(streams, 1) == ["p-a"]


async def naming(streams):
    """Return a world in which a leader names the inbox."""
    found = await streams.inbox.identity()

    async def named(head):
        return found

    return replace(world(), inbox=named)


async def test_attaching_back_goes_on_where_reading_stopped(another_place, tmp_path: Path):  # noqa: F811
    """From one place to another and back: nothing of the first inbox is read twice, also what has no id."""
    file, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    first = another_place()
    await exported(first, file, "a", "b")
    second = await restored(another_place(), file)
    await export_log(second.log, back)
    old = await first.open()
    await old.inbox.propose([node("late")])
    found = await old.inbox.identity()
    third = await another_place().open()
    await import_log(back, third.log)

    class Elsewhere:
        """The new log with the first inbox."""

        log, inbox = third.log, old.inbox

    attached = await attach(Elsewhere(), environment(SystemClock()))
    assert (attached.inbox, attached.position) == (found, 2)


async def test_a_topic_made_again_stops_its_leader(kafka_bootstrap, kafka_topic_name):
    """The leader notices it also when the new topic is longer than what it had read, and passes nothing over."""
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.create()
        await streams.inbox.propose([node("a"), node("b")])
        async with led(streams):
            await until_answered(streams, 2)
    topic = f"{kafka_topic_name}-inbox"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([topic])
    finally:
        await admin.close()
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.create()
        with pytest.raises(errors.InboxDetached, match=r"is inbox .* the log reads inbox"):
            await must_be_attached(streams)
        await streams.inbox.propose([node(name) for name in "cdef"])
        async with led(streams) as member:
            await asyncio.sleep(0.5)
            assert member.role != "leading"
            assert await answers(streams) == ["p-a", "p-b"]
            assert (await attach(streams, environment(SystemClock()))).position == 0
            assert await until_answered(streams, 6) == [f"p-{name}" for name in "abcdef"]


async def test_a_leader_sees_that_its_inbox_was_exchanged():
    """While it leads: its term ends at once, and nothing of the new inbox is answered before it is attached."""
    store = MemoryStore()
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    await streams.inbox.propose([node("a"), node("b")])
    async with led(streams) as member:
        await until_answered(streams, 2)
        store.inbox_id = "another"
        await until(lambda: member.role != "leading")
        await streams.inbox.propose([node("c")])
        await asyncio.sleep(0.3)
        assert await answers(streams) == ["p-a", "p-b"]
        await attach(streams, environment(SystemClock()), 2)
        assert await until_answered(streams, 3) == ["p-a", "p-b", "p-c"]
    kinds = [type(event) for step in await steps_of(streams.log) for event in step.events]
    assert kinds.count(InboxAttached) == 1
    assert kinds.index(InboxAttached) > kinds.index(LeaderStarted)

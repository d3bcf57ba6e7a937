"""Events over HTTP: each once and in order, whoever restarts, whatever they are narrowed to."""

from __future__ import annotations

import asyncio
import json
import signal

import httpx
import pytest

from events.streams import open_streams
from evsched.api import event_routes, heads, past, tail
from evsched.api.told import ToldStep
from evsched.cli.logs import steps_of
from evsched.service.proposing import send_and_wait
from tests.api.served import Reader, kept, listening, serving_steps
from tests.replays.logs import read, sealed, story
from tests.service.inputs import cluster
from tests.service.running import Running, wait_until


@pytest.fixture
def log(tmp_path):
    """Return the address of a log that is empty yet."""
    return f"sqlite://{tmp_path / 'log.db'}"


async def test_a_reader_sees_each_event_once_across_restarts_of_the_server(tmp_path, log):
    """It is there as events come, says what it saw last, and the next server goes on behind that."""
    records = sealed(story())
    reader = Reader()
    for begin in range(0, len(records), 3):
        folder = tmp_path / str(begin)
        folder.mkdir()
        await kept(records[:1] if begin == 0 else [], log)
        async with listening(log, folder) as (address, _):
            last = read(records[: begin + 3])[-1].head.next_seq - 1
            reading = asyncio.create_task(reader.read(address, last))
            await kept(records[max(begin, 1) : begin + 3], log)
            await asyncio.wait_for(reading, 10)
    assert [seq for seq, _, _ in reader.seen] == list(range(1, 36))
    events = [event for step in read(records) for event in step.events]
    assert [kind for _, kind, _ in reader.seen] == [type(event).__name__ for event in events]


async def test_a_stream_ends_when_the_server_does(tmp_path, log):
    """A reader that waits for events is not left hanging, and the server need not wait for it."""
    await kept(sealed(story()), log)
    reader = Reader()
    async with listening(log, tmp_path) as (address, served):
        reading = asyncio.create_task(reader.read(address, 1000))
        while len(reader.seen) < 35:
            await served.past.tail.changed(0.01)
    await asyncio.wait_for(reading, 10)
    assert len(reader.seen) == 35


async def test_from_memory_and_from_the_log_it_is_the_same(tmp_path, log, monkeypatch):
    """Wherever a reader begins, and however little is kept in memory."""
    monkeypatch.setattr(tail, "KEPT_EVENTS", 5)
    monkeypatch.setattr(past, "READ_EVENTS", 4)
    monkeypatch.setattr(heads, "APART", 6)
    async with serving_steps(story(), tmp_path) as client:
        whole = (await client.get("/v1/events?form=ndjson")).text.splitlines()
        assert [json.loads(line)["event"]["seq"] for line in whole] == list(range(1, 36))
        for after in range(36):
            found = (await client.get(f"/v1/events?form=ndjson&after={after}")).text.splitlines()
            assert found == whole[after:], after
        queried = await client.get("/v1/events?form=ndjson&after=3&until=7")
        assert queried.text.splitlines() == whole[3:7]


def narrowed(whole, keep):
    """Return the lines whose event is to be kept."""
    return [line for line in whole if keep(json.loads(line)["event"])]


PODS = {f"test-{number}" for number in range(1, 6)}
TYPES = ("PreemptionDecided", "AllocationBound")


def about_test(event, name):
    """Tell whether an event of the story is about its tenant test, as a person would; ``name`` of the queue or application."""
    if event["type"] == "InputRejected":
        return about_test({"type": "", **event.get("input", {})}, name)
    victims = {one["id"] if isinstance(one, dict) else one for one in event.get("victims", ())}
    names = {event.get(field) for field in ("ask", "allocation", "queue", "application")}
    return bool((names | victims) & (PODS | {name}))


async def test_filters_leave_out_what_is_about_something_else(tmp_path, monkeypatch):
    """By type, queue and application, the same from memory and from the log."""
    for kept_events in (1000, 2):
        monkeypatch.setattr(tail, "KEPT_EVENTS", kept_events)
        folder = tmp_path / str(kept_events)
        folder.mkdir()
        async with serving_steps(story(), folder) as client:

            async def found(query, client=client):
                return (await client.get(f"/v1/events?form=ndjson&{query}")).text.splitlines()

            whole = await found("after=0")
            assert await found("types=" + ",".join(TYPES)) == narrowed(
                whole, lambda event: event["type"] in TYPES
            )
            for query, name in (("queue=root.test", "root.test"), ("application=test", "test")):
                assert await found(query) == narrowed(
                    whole, lambda event, name=name: about_test(event, name)
                )
            assert await found("queue=root.none") == []
            assert len(await found("queue=root")) > len(await found("queue=root.test"))


async def test_cloud_events_come_in_batches(tmp_path):
    """Each a CloudEvent of its own; a header leads to the next batch, and a closed stretch lasts."""
    async with serving_steps(story(), tmp_path) as client:
        seen, address = [], "/v1/events?limit=10&until=35"
        while address:
            found = await client.get(
                address, headers={"accept": "application/cloudevents-batch+json"}
            )
            assert found.headers["content-type"] == "application/cloudevents-batch+json"
            assert "immutable" in found.headers["cache-control"]
            seen += found.json()
            address = found.links.get("next", {}).get("url")
        assert [int(one["sequence"]) for one in seen] == list(range(1, 36))
        first = seen[0]
        assert first["specversion"] == "1.0"
        assert first["type"] == f"evsched.event.{first['data']['type']}"
        assert len({(one["source"], one["id"]) for one in seen}) == 35
        assert "immutable" not in (await client.get("/v1/events?form=cloudevents")).headers.get(
            "cache-control"
        )


async def test_a_reader_may_come_from_a_server_that_was_ahead(tmp_path, log):
    """It is not turned away: what it saw last is read here a moment later."""
    records = sealed(story())
    await kept(records[:4], log)
    async with listening(log, tmp_path) as (address, served):
        assert served.past.tail.seq < 35
        reader = Reader("?after=35")
        reading = asyncio.create_task(reader.read(address, 1))
        await kept(records[4:], log)
        while served.past.tail.seq < 35:
            await served.past.tail.changed(1)
        assert not reading.done()
        reading.cancel()


async def test_mistakes_about_events(tmp_path, monkeypatch):
    """A seq that the log has not reached may be one of another log; an unknown type or form is refused."""
    monkeypatch.setattr(event_routes, "NEARLY_S", 0.01)
    async with serving_steps(story(), tmp_path) as client:
        for address, headers, status, name in (
            ("/v1/events?after=36", {}, 404, "after"),
            ("/v1/events", {"last-event-id": "36"}, 404, "last-event-id"),
            ("/v1/events", {"last-event-id": "x"}, 400, "last-event-id"),
            ("/v1/events?types=Nothing", {}, 400, "types"),
            ("/v1/events?form=xml", {}, 400, "form"),
            ("/v1/events", {"accept": "image/png"}, 406, "accept"),
        ):
            found = await client.get(address, headers=headers)
            assert found.status_code == status, address
            assert found.json()["place"]["name"] == name


def test_a_gap_is_never_told(tmp_path):
    """Steps that do not follow on each other end the stream."""
    known = tail.Tail()
    steps = [ToldStep(step, None) for step in read(sealed(story()))]
    known.add(read(sealed(story()))[-1].head, steps[2:])
    assert known.behind(0) is None
    assert known.behind(steps[1].last)[0] is steps[2]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("stream", ["sqlite", "kafka"])
async def test_a_reader_sees_each_event_once_across_kills(tmp_path, stream, log, request):
    """Leader and server are killed with SIGKILL while events come; who says what it saw last misses and repeats none."""
    topics = []
    if stream == "kafka":
        bootstrap = request.getfixturevalue("kafka_bootstrap")
        log = f"kafka://{bootstrap}/{request.getfixturevalue('kafka_topic_name')}"
        topics = ["--create-topics"]
    files = ["--db", str(tmp_path / "model.db"), "--snapshots", str(tmp_path / "snapshots")]
    leader = Running(tmp_path, "run", "--log", log, *topics).start()
    place = ["--log", log, "--listen", "127.0.0.1:0"]
    server = Running(tmp_path, "serve", *place, *files, name="serve")
    reader = Reader()
    inputs = cluster(9)
    try:
        await asyncio.to_thread(leader.wait_ready)
        for turn in range(2):
            reading = asyncio.create_task(reader.read(await started(server), 10_000))
            async with open_streams(log) as streams:
                await send_and_wait(streams, inputs[turn * 6 : turn * 6 + 6], "test", lambda: None)
                if turn == 1:
                    leader.kill()
                    leader.start()
                    await asyncio.to_thread(leader.wait_ready)
                end = max([step.head.next_seq - 1 async for step in steps_of(streams.log)])
            await reader.reached(end)
            server.signal(signal.SIGKILL)
            server.wait()
            with pytest.raises(httpx.TransportError):
                await reading
        assert [seq for seq, _, _ in reader.seen] == list(range(1, end + 1))
        assert [kind for _, kind, _ in reader.seen].count("LeaderStarted") == 2
    finally:
        leader.kill()
        server.kill()


async def started(server):
    """Start a server and return its address, once it has read the log."""
    before = server.said() if server.errors.exists() else ""
    server.start()

    def address():
        lines = server.said()[len(before) :].splitlines()
        return next((line.split(" serves ")[0] for line in lines if " serves " in line), None)

    def ready():
        try:
            return address() and httpx.get(f"{address()}readyz").status_code == 200
        except httpx.TransportError:
            return False

    await asyncio.to_thread(wait_until, ready, 60, server)
    return address().rstrip("/")

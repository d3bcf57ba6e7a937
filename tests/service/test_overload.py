"""Overload by ten: more proposals than the leader can take, for a while, with a calm load before it and after it.

Nothing is refused at the door of the inbox: what is too much waits there, on the disk, and the
leader takes as much of it at a time as fits into one step. So its memory does not follow the
backlog, its signs of life and its timers do not wait for the end of it, every proposal gets its one
answer (a refusal says why), and who comes after the backlog is served as quickly as before it.

How long all of this takes is measured by the longest burst alone (`make fuzz`): a short one runs
beside other tests, where seconds say nothing.

The burst leaves nothing behind: of five proposals two are accepted, an ask that fits nowhere and
its withdrawal, and three are refused. What the process may legitimately hold afterwards are the ids
of the proposals that it has seen lately.
"""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaProducer

from events.bounds import MAX_FRAME_BYTES
from events.chain import ChainReader, RecordedStep
from events.cloudevents import InboxRecord, proposal_headers, proposals
from events.streams import open_streams
from events.streams.kafka_client import MAX_BATCH_BYTES
from events.streams.protocols import Streams
from events.vocabulary import AskWithdrawn, InputRejected, QuotaPreemptionDecided, RulesAdopted
from evsched.service.leading import Pace
from replays.history.steps import is_proposed
from tests.service.histories import check
from tests.service.inputs import ask, cluster, queues
from tests.service.running import Running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
    ),
]

CALM_RATE = 300
"""Proposals a second when all is calm."""
CALM_S = 2.0
FIVE = {"accepted": 2, "duplicate": 1, "unknown": 1, "malformed": 1}
"""What five proposals of the burst are answered."""
AT_ONCE = 10_000
"""Proposals of one write of the burst."""
RECOVERY_S = 10.0
SLOWER = 5.0
"""How many times as long as before an answer may take when the load is calm again, if it takes longer than `QUICK_S` at all."""
QUICK_S = 1.0
KEPT_BYTES = 12_000_000
"""More than what 16,384 remembered ids and the buffers of a broker's client take."""
SHORT = 20_000
"""The proposals of a burst whose log is decided again; a longer one is measured instead."""
DEADLINE_S = 1500.0
"""For the burst; a slow machine may take that long for the longest."""


class Look(NamedTuple):
    """What an onlooker saw of the process."""

    at: float
    beat: int
    roles: dict[int, str]
    waiting: int


class Onlooker:
    """Follows the log, and measures how long answers take.

    Attributes:
        sent: When each proposal was sent that an answer is awaited to, by id.
        took: Seconds until the answer, of those that came.
        taken: Position of the first proposal that is not answered yet.
        term: Of the last step.
        largest: Bytes of the largest frame.
        answered: Ids of the proposals, in the order in which the log answers them.
        answers: How many answers there are of each kind: ``accepted``, or the code of the refusal.
        looks: What was seen of the process, in order.
    """

    def __init__(self, url: str, process: Running) -> None:
        self.sent: dict[str, float] = {}
        self.took: list[float] = []
        self.taken = 0
        self.term = 0
        self.largest = 0
        self.answered: list[str] = []
        self.answers: Counter[str] = Counter()
        self.looks: list[Look] = []
        self._moved = asyncio.Event()
        self._url = url
        self._process = process

    @asynccontextmanager
    async def watching(self):
        """Follow and look for as long as the body runs."""
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._look())]
        try:
            yield self
        finally:
            over = [task.exception() for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not over

    async def _follow(self) -> None:
        reader = ChainReader()
        async with open_streams(self._url) as streams:
            async for batch in streams.log.follow():
                now = time.monotonic()
                for position, data in batch:
                    self.largest = max(self.largest, len(data))
                    step = reader.accept(data, position)
                    if step is None:
                        continue
                    self._note(step, now)
                await asyncio.sleep(0)

    def _note(self, step: RecordedStep, now: float) -> None:
        self.taken, self.term = step.head.inbox_next, step.head.term
        self._moved.set()
        for event in filter(is_proposed, step.events):
            if isinstance(event, RulesAdopted):
                continue  # a new log begins with the newest rules; nothing in the inbox asked for them
            self.answered.append(event.proposal)
            self.answers[event.code if isinstance(event, InputRejected) else "accepted"] += 1
            if event.proposal in self.sent:
                self.took.append(now - self.sent.pop(event.proposal))

    async def _look(self) -> None:
        async with open_streams(self._url) as streams:
            while True:
                beat = await streams.log.last_heartbeat()
                waiting = await streams.inbox.end() - self.taken
                number = beat.number if beat is not None else 0
                self.looks.append(Look(time.monotonic(), number, self._process.roles(), waiting))
                await asyncio.sleep(0.1)

    async def until_taken(self, position: int, seconds: float) -> None:
        """Wait until everything before this position of the inbox is answered."""
        async with asyncio.timeout(seconds):
            while self.taken < position:
                self._moved.clear()
                await self._moved.wait()

    def longest_silence(self) -> float:
        """Return the longest time between two looks in which no sign of life came, in seconds."""
        new = [after for before, after in pairwise(self.looks) if after.beat != before.beat]
        return max(after.at - before.at for before, after in pairwise(new))


def memory(process: Running, field: str) -> int:
    """Return how many bytes of memory a process holds (``VmRSS``), or held at its worst (``VmHWM``)."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {process.pid} has no {field}")


@pytest.fixture
def run(tmp_path):
    """Return a function that starts `evsched run`; all are killed in the end."""
    with ExitStack() as stack:

        def start(url: str) -> Running:
            options = ["--create-topics"] if url.startswith("kafka:") else []
            running = Running(tmp_path, "run", "--log", url, *options)
            stack.callback(running.kill)
            return running.start()

        yield start


@pytest.fixture(params=["sqlite", "kafka"])
def url(request, tmp_path):
    """Return the address of a log that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'log.db'}"
    bootstrap, name = (
        request.getfixturevalue("kafka_bootstrap"),
        request.getfixturevalue("kafka_topic_name"),
    )
    return f"kafka://{bootstrap}/{name}"


def too_large(name: str):
    """Return an ask that fits on no node."""
    return ask(name, cores=100)


def withdrawal(name: str, proposal: str) -> AskWithdrawn:
    """Return the end of an ask."""
    return AskWithdrawn(ask=name, proposal=proposal)


def burst(fives: int) -> list[InboxRecord]:
    """Return five times as many proposals."""
    records: list[InboxRecord] = []
    for number in range(fives):
        name = f"burst-{number}"
        asked, ended, again = (
            too_large(name),
            withdrawal(name, f"out:{name}"),
            withdrawal(name, f"again:{name}"),
        )
        nonsense = InboxRecord(data=b"{", id=f"nonsense:{name}", source="burst")
        records += [*proposals([asked, asked, ended, again], "burst"), nonsense]
    return records


async def calm_load(streams: Streams, onlooker: Onlooker, seconds: float, name: str) -> float:
    """Ask and withdraw at `CALM_RATE`; return within which time nine of ten were answered, in seconds."""
    onlooker.took.clear()
    begun = time.monotonic()
    count = round(seconds * CALM_RATE / 2)
    for number in range(count):
        pair = [
            too_large(f"{name}-{number}"),
            withdrawal(f"{name}-{number}", f"out:{name}-{number}"),
        ]
        onlooker.sent |= dict.fromkeys((one.proposal for one in pair), time.monotonic())
        await streams.inbox.propose(pair, "calm")
        await asyncio.sleep(max(0.0, begun + (number + 1) * 2 / CALM_RATE - time.monotonic()))
    await onlooker.until_taken(await streams.inbox.end(), DEADLINE_S)
    assert len(onlooker.took) == 2 * count
    return sorted(onlooker.took)[len(onlooker.took) * 9 // 10]


async def everything(streams: Streams) -> list[str]:
    """Return the ids of all proposals in the inbox, in their order."""
    found: list[str] = []
    position, end = 0, await streams.inbox.end()
    while position < end:
        batch = await streams.inbox.read(position)
        found += [one.id for one in batch]
        position = batch[-1].position + 1
    return found


async def flood(url: str, records: list[InboxRecord]) -> None:
    """Write these to the inbox several times as fast as a leader takes them."""
    if url.startswith("kafka:"):
        await flood_topic(url.removeprefix("kafka://"), records)
        return
    async with open_streams(url) as streams:
        for begin in range(0, len(records), AT_ONCE):
            await streams.inbox.put(records[begin : begin + AT_ONCE])


async def flood_topic(address: str, records: list[InboxRecord]) -> None:
    """Write these in batches of the wire's own form: our writer, record by record, is hardly quicker than the leader."""
    bootstrap, _, name = address.partition("/")
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", max_batch_size=MAX_BATCH_BYTES
    ) as producer:
        batch, sent = producer.create_batch(), []
        for record in records:
            value = {
                "timestamp": None,
                "key": b"0",
                "value": record.data,
                "headers": list(proposal_headers(record, 0)),
            }
            if batch.append(**value) is None:
                sent.append(await producer.send_batch(batch, f"{name}-inbox", partition=0))
                batch = producer.create_batch()
                batch.append(**value)
        sent.append(await producer.send_batch(batch, f"{name}-inbox", partition=0))
        await asyncio.gather(*sent)


async def recovered(streams: Streams, onlooker: Onlooker, promised: float) -> float:
    """Put a calm load on until it is answered as promised; return after how many seconds it was."""
    begun = time.monotonic()
    number = 0
    while (took := await calm_load(streams, onlooker, 1.0, f"after-{number}")) > promised:
        number += 1
        assert time.monotonic() - begun < RECOVERY_S, (
            f"answers still take {took:.3f} s, expected {promised:.3f} s"
        )
    return time.monotonic() - begun


class Run(NamedTuple):
    """What came of a calm load, a burst and a calm load.

    Attributes:
        onlooker: What it saw.
        usual: Within how many seconds nine of ten were answered before the burst.
        proposed: Ids of all proposals, in their order.
        calm_bytes: Memory of the process at its worst before the burst.
        worst_bytes: And in all.
        during: What was seen while the burst was written and worked off.
    """

    onlooker: Onlooker
    usual: float
    proposed: list[str]
    calm_bytes: int
    worst_bytes: int
    during: list[Look]


async def overload(url: str, process: Running, count: int) -> Run:
    """Put a calm load on, then this many proposals at once, then a calm load until it is answered as promised."""
    onlooker, records = Onlooker(url, process), burst(count // 5)
    async with open_streams(url) as streams, onlooker.watching():
        await streams.inbox.propose(cluster(), "test")
        usual = await calm_load(streams, onlooker, CALM_S, "before")
        calm_bytes = memory(process, "VmHWM")
        # A timer that is due in the middle of the burst.
        await streams.inbox.propose([queues(4, "100ms", name="less")], "test")
        begun, looked = time.monotonic(), len(onlooker.looks)
        await asyncio.to_thread(lambda: asyncio.run(flood(url, records)))
        written = time.monotonic()
        await onlooker.until_taken(await streams.inbox.end(), DEADLINE_S)
        done, during = time.monotonic(), onlooker.looks[looked:]
        promised = max(SLOWER * usual, QUICK_S) if count > SHORT else DEADLINE_S
        again = await recovered(streams, onlooker, promised)
        proposed = await everything(streams)
    print(
        f"calm: {usual:.3f} s; {count} written in {written - begun:.1f} s, answered in {done - begun:.1f} s, at most"
        f" {max(one.waiting for one in during)} waiting; silent for {onlooker.longest_silence():.1f} s at most; calm again after"
        f" {again:.1f} s; largest frame {onlooker.largest} bytes"
    )
    return Run(onlooker, usual, proposed, calm_bytes, memory(process, "VmHWM"), during)


@pytest.mark.parametrize(
    "count", [SHORT, pytest.param(1_000_000, marks=[pytest.mark.fuzz, pytest.mark.timeout(1800)])]
)
async def test_a_burst_is_worked_off_and_leaves_nothing_behind(run, url, count):
    """Every proposal is answered once, timers do not wait, the leader stays the leader, and its memory stays small."""
    process = run(url)
    await asyncio.to_thread(process.wait_ready)
    seen = await overload(url, process, count)
    onlooker = seen.onlooker
    assert max(one.waiting for one in seen.during) > Pace().batch, (
        "the leader kept up: this was no overload"
    )
    # Each proposal has one answer, in the order of the inbox.
    assert onlooker.answered == seen.proposed
    calm = len(seen.proposed) - count
    assert onlooker.answers == Counter(
        {code: number * count // 5 for code, number in FIVE.items()}
    ) + Counter(accepted=calm)
    # The leader gave its signs of life all the time, and nobody took its place.
    assert onlooker.term == 1
    assert all(one.roles == {0: "leading"} for one in onlooker.looks)
    assert count == SHORT or onlooker.longest_silence() < Pace().lease
    # It took what it could carry.
    print(f"memory: {seen.calm_bytes >> 20} MiB, at most {seen.worst_bytes >> 20} MiB")
    assert seen.worst_bytes <= 2 * seen.calm_bytes + KEPT_BYTES
    steps = [line for line in process.lines() if line["event"] == "step"]
    assert max(one["proposals"] for one in steps) <= Pace().batch
    assert onlooker.largest <= MAX_FRAME_BYTES
    assert await asyncio.to_thread(process.stop) == 0
    await hold_against_the_rules(url, process, count)


async def hold_against_the_rules(url: str, process: Running, count: int) -> None:
    """Check the log in full, if that does not take longer than all the rest."""
    if count > SHORT:
        return
    async with open_streams(url) as streams:
        history = await check(streams, process.acknowledged())
    assert not history.engine.state.asks
    (fired,) = [
        (place, step.time - event.due)
        for place, step in enumerate(history.steps)
        for event in step.events
        if isinstance(event, QuotaPreemptionDecided)
    ]
    last = max(
        place
        for place, step in enumerate(history.steps)
        for event in filter(is_proposed, step.events)
        if event.proposal.startswith("nonsense:")
    )
    assert fired[0] < last, "the timer waited for the end of the burst"
    assert fired[1] >= 0

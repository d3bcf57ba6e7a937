"""Importing a log again: it goes on behind what is there, or writes nothing; whatever interrupted it, the end is the same log."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from events import errors
from events.frame import frame_hash
from events.streams import EventLog, Record, open_log, open_streams
from events.streams.export import Imported, export_log, import_log
from tests.events.places import Place
from tests.events.world import Unreliable, Wrapped, lead, records_of, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Return a file with a log of six records: two terms, three steps, and a void frame between them."""
    path = tmp_path / "log.jsonl.zst"
    async with open_streams("memory://") as streams:
        old = await lead(streams.log)
        await write(old, "a")
        new = await lead(streams.log)
        with pytest.raises(errors.LeadershipLost):
            await write(old, "stale")
        for name in ("b", "c"):
            await write(new, name)
        assert await export_log(streams.log, path) == 6
    return path


@pytest.fixture
async def frames(file: Path) -> list[bytes]:
    """Return what is in the file."""
    return await content(open_log(str(file)))


async def content(log: EventLog) -> list[bytes]:
    """Return the bytes of all records; where they stand is the log's matter."""
    return [record.data for record in await records_of(log)]


async def holding(place: Place, *frames: bytes) -> EventLog:
    """Return a log in this place that holds these."""
    log = (await place.open()).log
    for data in frames:
        await log.append(data)
    return log


@pytest.mark.parametrize("there", [0, 1, 3, 4, 5, 6])
async def test_a_beginning_is_gone_on_with(
    file: Path, frames: list[bytes], place: Place, there: int
) -> None:
    """Nothing, the first, up to the void frame, with it, all but the last, all: it ends as the file, and stays so once more."""
    log = await holding(place, *frames[:there])
    assert await import_log(file, log) == Imported(6, there)
    assert await content(log) == frames
    assert await import_log(file, (await place.open()).log) == Imported(6, 6)
    assert await content(log) == frames


Alter = Callable[[list[bytes]], list[bytes]]
ALTERED: dict[str, tuple[Alter, int, bool]] = {
    "another first record": (
        lambda all_: [all_[0].replace(b'"time":1000', b'"time":1001')],
        1,
        True,
    ),
    "a differing record in the middle": (
        lambda all_: [*all_[:2], all_[2].replace(b'"time":', b'"time": '), *all_[3:]],
        3,
        True,
    ),
    "a differing last record": (lambda all_: [*all_[:5], all_[5].replace(b'"c"', b'"C"')], 6, True),
    "no void frame": (lambda all_: [*all_[:3], all_[4]], 4, True),
    "a record twice": (lambda all_: [*all_[:2], all_[1]], 3, True),
    "one record more": (lambda all_: [*all_, all_[5]], 7, False),
}


@pytest.mark.parametrize("target", ALTERED)
async def test_it_is_refused_where_the_target_holds(
    file: Path, frames: list[bytes], place: Place, target: str
) -> None:
    """The error names the place, what was found there and what was expected; nothing is written."""
    alter, number, expected = ALTERED[target]
    held = alter(frames)
    log = await holding(place, *held)
    with pytest.raises(errors.TargetDiffers) as caught:
        await import_log(file, log)
    assert (caught.value.number, caught.value.position) == (number, number - 1)
    assert caught.value.found == frame_hash(held[number - 1])
    assert caught.value.expected == (frame_hash(frames[number - 1]) if expected else "")
    said = f"record {number} at position {number - 1} has hash {caught.value.found}, expected {caught.value.expected or 'none'}"
    assert said in str(caught.value)
    assert await content(log) == held


# ------------------------------------------------------------------------------------ interruptions


@pytest.mark.parametrize("fate", ["reply", "write"])
@pytest.mark.parametrize("number", range(6))
async def test_what_became_of_a_lost_append_is_read(
    file: Path, frames: list[bytes], number: int, fate: str
) -> None:
    """The first import ends there and guesses nothing; the next finds the record, or finds that it is missing."""
    async with open_streams("memory://") as streams:
        with pytest.raises(errors.OutcomeUnknown):
            await import_log(file, Unreliable(streams.log, *["ok"] * number, fate))
        assert await import_log(file, streams.log) == Imported(6, number + (fate == "reply"))
        assert await content(streams.log) == frames


async def test_on_kafka_a_lost_append_is_read_from_the_broker(
    file: Path, frames: list[bytes], kafka_bootstrap: str, kafka_topic_name: str
) -> None:
    """Each import on connections of its own, as after the death of the process."""
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    async with open_streams(url) as streams:
        await streams.log.create()
    held = 0
    for fates in (["ok", "reply"], ["write"], ["ok", "write"], ["reply"]):
        async with open_streams(url) as streams:
            with pytest.raises(errors.OutcomeUnknown):
                await import_log(file, Unreliable(streams.log, *fates))
            held += len(fates) - fates.count("write")
            assert await content(streams.log) == frames[:held]
    async with open_streams(url) as streams:
        assert await import_log(file, streams.log) == Imported(6, 4)
        assert await content(streams.log) == frames


async def test_on_kafka_offsets_may_have_holes(
    file: Path, frames: list[bytes], kafka_bootstrap: str, kafka_topic_name: str
) -> None:
    """A transaction's end takes an offset, too; what counts are the records."""
    async with open_streams(f"kafka://{kafka_bootstrap}/{kafka_topic_name}") as streams:
        await streams.log.create()
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka_bootstrap, transactional_id=kafka_topic_name
        )
        async with producer:
            for data in frames[:2]:
                async with producer.transaction():
                    await producer.send_and_wait(f"{kafka_topic_name}-log", data, partition=0)
        await streams.log.append(frames[2])
        assert [record.position for record in await records_of(streams.log)] == [0, 2, 4]
        assert await import_log(file, streams.log) == Imported(6, 3)
        assert await content(streams.log) == frames
        assert await import_log(file, streams.log) == Imported(6, 6)


@pytest.mark.slow
def test_a_kill_after_any_operation_leaves_a_beginning(
    file: Path, frames: list[bytes], tmp_path: Path
) -> None:
    """In SQLite, between every two operations of every append; importing again makes the log whole."""
    command = [
        sys.executable,
        "-m",
        "tests.events.sqlite_process",
        "load",
        str(tmp_path),
        str(file),
    ]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    *died, done, last = ended.stdout.split()
    assert (set(died), done, last) == ({"9"}, "done", "10"), ended.stderr
    number = len(died)
    held = [
        asyncio.run(recovered(tmp_path / f"{one}.sqlite", file, frames))
        for one in range(1, number + 2)
    ]
    assert number > 4 * len(frames), "an append takes four operations: begin, look, insert, commit"
    assert held == sorted(held)
    assert set(held) == set(range(len(frames) + 1))


async def recovered(target: Path, file: Path, frames: list[bytes]) -> int:
    """Return how many records a killed import left, a beginning of the file, after importing again."""
    async with open_streams(f"sqlite://{target}") as streams:
        held = await content(streams.log)
        assert held == frames[: len(held)]
        assert await import_log(file, streams.log) == Imported(len(frames), len(held))
        assert await content(streams.log) == frames
    return len(held)


async def test_a_full_disk_ends_it_and_room_lets_it_go_on(tmp_path: Path) -> None:
    """What was written before stays."""
    file = tmp_path / "large.jsonl"
    async with open_streams("memory://") as streams:
        leader = await lead(streams.log)
        for names in (["a"], [f"{number:04}" * 60 for number in range(3_000)], ["b"]):
            await write(leader, *names)
        await export_log(streams.log, file)
        frames = await content(streams.log)
    async with open_streams(f"sqlite://{tmp_path}/log.sqlite") as streams:
        await streams.log.create()
        await streams.log.append(frames[0])
        writer = streams.log._file._writer
        await writer.execute("pragma max_page_count = 1")
        with pytest.raises(errors.LogFull):
            await import_log(file, streams.log)
        held = await content(streams.log)
        assert held == frames[:2]
        await writer.execute("pragma max_page_count = 1000000")
        assert await import_log(file, streams.log) == Imported(len(frames), 2)
        assert await content(streams.log) == frames


# ----------------------------------------------------------------------------- somebody else writes


class Sparse(Wrapped):
    """A log with holes, in which something else may come to stand before what is appended.

    Attributes:
        before: What it will be, by the number of the append.
    """

    def __init__(self, log: EventLog) -> None:
        super().__init__(log)
        self.before: dict[int, bytes] = {}
        self._appends = 0

    async def read(self, after: int = -1) -> AsyncGenerator[Sequence[Record], None]:
        """See `EventLog.read`."""
        async for batch in self.log.read((after - 2) // 3 if after >= 0 else -1):
            yield [Record(record.position * 3 + 2, record.data) for record in batch]

    async def append(self, data: bytes) -> int:
        """See `EventLog.append`."""
        self._appends += 1
        if self._appends in self.before:
            await self.log.append(self.before.pop(self._appends))
        return await self.log.append(data) * 3 + 2


async def test_holes_that_appear_while_it_writes_change_nothing(
    file: Path, frames: list[bytes]
) -> None:
    """The records follow each other, whatever their positions."""
    async with open_streams("memory://") as streams:
        assert await import_log(file, Sparse(streams.log)) == Imported(6, 0)
        assert await import_log(file, Sparse(streams.log)) == Imported(6, 6)
        assert await content(streams.log) == frames


@pytest.mark.parametrize("late", [True, False])
async def test_what_came_between_is_noticed_at_once(
    file: Path, frames: list[bytes], late: bool
) -> None:
    """Another writer's frame, or our own that an import before had given up: nothing more is written, and nothing denied."""
    async with open_streams("memory://") as streams:
        for data in frames[:2]:
            await streams.log.append(data)
        log = Sparse(streams.log)
        between = frames[2] if late else frames[0]
        log.before[1] = between
        with pytest.raises(
            errors.LogDamaged,
            match=r"at position 11: record 3 .* behind position 5: .* at position 8",
        ):
            await import_log(file, log)
        assert await content(streams.log) == [*frames[:2], between, frames[2]]
        with pytest.raises(errors.TargetDiffers):
            await import_log(file, log)


async def test_a_record_that_is_gone_is_missed(file: Path) -> None:
    """The log says that it wrote, but does not hold it."""

    class Forgetful(Sparse):
        async def append(self, data: bytes) -> int:
            return 17

    async with open_streams("memory://") as streams:
        with pytest.raises(errors.PositionLost, match="position 17"):
            await import_log(file, Forgetful(streams.log))

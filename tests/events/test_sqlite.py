"""What is SQLite's own: append-only by the database, group commit, crashes at every statement, full disks, second processes."""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from subprocess import PIPE
from threading import Event

import aiosqlite
import pytest

from events import errors
from events.cloudevents import InboxRecord
from events.streams import Streams, open_streams, sqlite, sqlite_file
from events.streams.protocols import Heartbeat
from events.streams.sqlite_file import SqliteFile
from events.vocabulary import NodeRemoved
from tests.events.world import lead, names_in, records_of, steps_of, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the file is to be."""
    return tmp_path / "log.sqlite"


@pytest.fixture
async def streams(path: Path) -> AsyncIterator[Streams]:
    """Return streams in a new file."""
    async with open_streams(f"sqlite://{path}") as opened:
        await opened.log.create()
        yield opened


def make(path: Path) -> None:
    """Make an empty file."""
    path.touch()


def move(file: Path, there: Path) -> None:
    """Give a file another name."""
    file.rename(there)


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run another process of `sqlite_process` to its end."""
    command = [sys.executable, "-m", "tests.events.sqlite_process", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


CHANGES = {
    "changing a record": "update log set data = x'00' where position = 0",
    "removing a record": "delete from log where position = 1",
    "writing over a record": "insert or replace into log (partition, position, data) values (0, 0, x'00')",
    "leaving a hole": "insert into log (partition, position, data) values (0, 7, x'00')",
    "a record before the first": "insert into log (partition, position, data) values (0, -1, x'00')",
    "changing a proposal": "update inbox set data = x'00'",
    "removing a proposal": "delete from inbox",
    "a hole in the inbox": "insert into inbox (partition, position, id, source, data) values (0, 7, '', '', x'00')",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_the_database_refuses(streams: Streams, path: Path, change: str) -> None:
    """Nobody who opens the file by other means changes what is in it by mistake."""
    await write(await lead(streams.log), "a")
    await streams.inbox.propose([NodeRemoved(node="n")])
    before = await records_of(streams.log)
    other = sqlite3.connect(path, isolation_level=None)
    try:
        with pytest.raises(sqlite3.IntegrityError, match=r"append-only|CHECK"):
            other.execute(CHANGES[change])
    finally:
        other.close()
    assert await records_of(streams.log) == before


async def test_concurrent_writes_share_a_transaction(path: Path) -> None:
    """Four cluster partitions and many producers at once: far fewer commits than writes."""
    opened = [open_streams(f"sqlite://{path}", partition) for partition in range(4)]
    await opened[0].log.create()
    leaders = [await lead(one.log) for one in opened]
    file = opened[0].log._file
    before = file._commits
    await asyncio.gather(
        *(write(leader, "a") for leader in leaders),
        *(one.inbox.put([InboxRecord(data=b"x")]) for one in opened for _ in range(50)),
    )
    assert file._commits - before <= 4
    for one in opened:
        assert names_in(await steps_of(one.log)) == ["a"]
        assert await one.inbox.end() == 50
    for one in opened:
        await one.close()


def test_a_crash_at_any_statement_leaves_the_step_whole_or_absent(tmp_path: Path) -> None:
    """Before and after every operation of an append: what was acknowledged is there, the log is sound and can be led again."""
    found: dict[str, int] = {"there": 0, "absent": 0}
    for number in range(1, 50):
        outcomes = []
        for when in ("before", "after"):
            file = tmp_path / f"{number}-{when}.sqlite"
            ended = process("crash", str(file), str(number), when)
            assert ended.returncode == 9, ended.stderr
            names, again = asyncio.run(recovered(file))
            assert names in (["a"], ["a", "b"])
            assert again == [*names, "c"]
            if "done" in ended.stdout:
                assert names == ["a", "b"]
            found["there" if "b" in names else "absent"] += 1
            outcomes.append("done" in ended.stdout)
        if all(outcomes):
            break
    assert number >= 5, "an append takes four operations: begin, look, insert, commit"
    assert min(found.values()) > 0


def test_many_make_the_same_file_at_once(tmp_path: Path) -> None:
    """Each of them finds it whole: `run` and `submit` may be started in one breath."""
    files = [tmp_path / f"{number}.sqlite" for number in range(30)]
    command = [sys.executable, "-m", "tests.events.sqlite_process", "create", *map(str, files)]
    with ExitStack() as stack:
        start = partial(
            subprocess.Popen, command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True, bufsize=1
        )
        makers = [stack.enter_context(start()) for _ in range(4)]
        for _ in files:
            assert [maker.stdout.readline() for maker in makers] == ["ready\n"] * len(makers)
            for maker in makers:
                maker.stdin.write("go\n")
        assert [maker.wait(60) for maker in makers] == [0] * len(makers)
    for file in files:
        assert asyncio.run(proposed(file)) == len(makers)
    left = {path.name for path in tmp_path.iterdir()} - {
        f"{file.name}{end}" for file in files for end in ("", ".checkpoint")
    }
    assert not left


async def proposed(file: Path) -> int:
    """Return how many proposals a sound file holds."""
    async with open_streams(f"sqlite://{file}") as streams:
        await streams.log.check()
        return await streams.inbox.end()


async def recovered(file: Path) -> tuple[list[str], list[str]]:
    """Return what a log holds after a crash, and after a new leader wrote ``c``."""
    async with open_streams(f"sqlite://{file}") as streams:
        await streams.log.check()
        names = names_in(await steps_of(streams.log))
        await write(await lead(streams.log), "c")
        return names, names_in(await steps_of(streams.log))


async def test_another_process_proposes_and_reads_while_one_leads(
    streams: Streams, path: Path
) -> None:
    """It never checkpoints: only the holder of the lock does, as two at once can corrupt the file."""
    leader = await lead(streams.log)
    await write(leader, "a")
    ended = await asyncio.to_thread(process, "propose", str(path))
    assert ended.stdout == "2 0\n", ended.stderr
    await write(leader, "b")
    (proposal,) = await streams.inbox.read(0)
    assert (proposal.input, proposal.source) == (NodeRemoved(node="theirs"), "another%20process")
    await streams.close()
    ended = await asyncio.to_thread(process, "propose", str(path))
    assert ended.stdout == "3 1000\n", "with nobody else there, it takes that duty over"


async def test_a_full_disk_writes_nothing_and_says_so(streams: Streams) -> None:
    """The step is absent, the leader's term over; with room again a new term goes on."""
    leader = await lead(streams.log)
    await write(leader, "a")
    writer = streams.log._file._writer
    await writer.execute("pragma max_page_count = 1")
    with pytest.raises(errors.LogFull):
        await write(leader, *(f"{number:04}" * 60 for number in range(3_000)))
    assert not leader.alive
    with pytest.raises(errors.LogFull):
        await streams.inbox.put([InboxRecord(data=b"x" * 100_000)])
    await writer.execute("pragma max_page_count = 1000000")
    leader = await lead(streams.log)
    await write(leader, "b")
    assert names_in(await steps_of(streams.log)) == ["a", "b"]
    assert await streams.inbox.end() == 0


async def test_a_new_file_needs_nothing_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing brings everything into the file, but fails in silence on a full disk: it gets its name only when all is in it."""
    connect, named = SqliteFile._connect, []

    async def never_the_last(self: SqliteFile, made: Path) -> aiosqlite.Connection:
        connection = await connect(self, made)
        close = connection.close

        async def close_beside_another() -> None:
            other = others.enter_context(closing(sqlite3.connect(made)))
            other.execute(
                "select count(*) from sqlite_master"
            ).fetchone()  # only the last one to close brings anything over
            await close()

        monkeypatch.setattr(connection, "close", close_beside_another)
        return connection

    def link(new: Path, _: Path) -> None:
        with closing(sqlite3.connect(shutil.copy(new, path.with_name("alone")))) as alone:
            named.append(alone.execute("select count(*) from log").fetchone())

    monkeypatch.setattr(SqliteFile, "_connect", never_the_last)
    monkeypatch.setattr(sqlite_file, "_link", link)
    with ExitStack() as others:
        async with open_streams(f"sqlite://{path}") as streams:
            await streams.log.create()
    assert named == [(0,)]


@pytest.mark.parametrize("instead", ["nothing", "another log"])
async def test_a_file_that_is_not_there_any_more_takes_nothing(
    streams: Streams, path: Path, instead: str
) -> None:
    """It could be written on, but nobody else would ever see it; when it is put back, all goes on."""
    leader = await lead(streams.log)
    await write(leader, "a")
    away = path.with_name("away")
    move(path, away)
    if instead == "another log":
        make(path)
    for _ in range(2):
        with pytest.raises(errors.LogUnreachable, match="was replaced or removed"):
            await streams.inbox.put([InboxRecord(data=b"x")])
    with pytest.raises(errors.LogUnreachable, match="was replaced or removed"):
        await write(leader, "b")
    with pytest.raises(errors.LogUnreachable, match="was replaced or removed"):
        await records_of(streams.log)
    move(away, path)
    await write(await lead(streams.log), "c")
    assert names_in(await steps_of(streams.log)) == ["a", "c"]


async def test_a_file_that_cannot_be_written_is_there_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a read-only disk SQLite cannot open it, which does not mean that it is missing."""
    make(path)

    def refusing(*_: object, **__: object) -> object:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN"
        raise error

    monkeypatch.setattr(aiosqlite, "connect", refusing)
    async with open_streams(f"sqlite://{path}") as streams:
        with pytest.raises(errors.AccessDenied, match="even to read it"):
            await streams.log.check()


async def test_a_locked_file_is_reported_as_such(path: Path) -> None:
    """Another program holds a write transaction for longer than we wait: nothing is written, later it works again."""
    async with open_streams(f"sqlite://{path}", timeout=0.05) as streams:
        await streams.log.create()
        leader = await lead(streams.log)
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("begin immediate")
            with pytest.raises(errors.LogBusy):
                await write(leader, "a")
            assert await records_of(streams.log), "reading goes on"
            other.execute("rollback")
        finally:
            other.close()
        await write(await lead(streams.log), "b")
        assert names_in(await steps_of(streams.log)) == ["b"]


async def test_an_error_while_committing_is_an_unknown_outcome(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit record may be on the disk although the call failed, so nobody may say that it is not."""
    leader = await lead(streams.log)
    writer = streams.log._file._writer
    original = writer.execute

    async def failing(statement: str, *arguments: object) -> object:
        if statement == "commit":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR, "SQLITE_IOERR"
            raise error
        return await original(statement, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "execute", failing)
        with pytest.raises(errors.OutcomeUnknown, match="disk I/O error"):
            await write(leader, "a")
    await write(await lead(streams.log), "b")
    assert names_in(await steps_of(streams.log)) == ["b"]


async def test_a_cancelled_write_is_written_all_the_same(streams: Streams) -> None:
    """What was handed over is written; only its answer gets lost."""
    leader = await lead(streams.log)
    tasks = [asyncio.create_task(streams.inbox.put([InboxRecord(data=b"x")])) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    assert await tasks[0] == (0,)
    assert await tasks[2] == (2,)
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    await write(leader, "a")
    assert await streams.inbox.end() == 3


@pytest.mark.parametrize("turns", [*range(6), 10, 20])
async def test_a_close_that_is_cancelled_closes_all_the_same(path: Path, turns: int) -> None:
    """Each connection has a thread, for which the process would wait for ever when it ends."""
    before = set(threading.enumerate())
    leaving = asyncio.Event()

    async def work() -> None:
        async with open_streams(f"sqlite://{path}") as streams:
            await streams.log.create()
            await streams.inbox.put([InboxRecord(data=b"{}", id="p1")])
            await streams.inbox.end()
            leaving.set()

    working = asyncio.create_task(work())
    await leaving.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    for thread in [one for one in set(threading.enumerate()) - before if "connection" in one.name]:
        await asyncio.to_thread(thread.join, 2)
        assert not thread.is_alive()


async def test_a_file_without_its_guards_is_refused(streams: Streams, path: Path) -> None:
    """Whoever drops a trigger has plans; configuration drift is refused at the start."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("drop trigger log_keeps_deleted")
    other.close()
    with pytest.raises(errors.TopicMisconfigured, match="trigger log_keeps_deleted is missing"):
        await streams.log.check()
    await streams.log.create()
    await streams.log.check()


async def test_the_file_of_somebody_else_is_left_alone(path: Path) -> None:
    """A log is not made among the tables of another program."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table theirs (a)")
    before = await asyncio.to_thread(path.read_bytes)
    async with open_streams(f"sqlite://{path}") as streams:
        with pytest.raises(errors.TopicMisconfigured, match="table is theirs, expected none"):
            await streams.log.create()
    assert await asyncio.to_thread(path.read_bytes) == before


@pytest.mark.parametrize("setting", ["application_id", "user_version"])
async def test_a_file_of_another_format_is_refused(
    streams: Streams, path: Path, setting: str
) -> None:
    """Neither somebody else's database nor one of a later version is taken for a log."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"pragma {setting} = 77")
    other.close()
    with pytest.raises(errors.TopicMisconfigured, match=f"{setting} is 77"):
        await streams.log.check()


async def test_the_file_is_its_owners_alone(streams: Streams, path: Path) -> None:
    """Nobody else on the machine reads proposals, whatever the umask."""
    await lead(streams.log)
    for name in os.listdir(path.parent):  # noqa: PTH208 - an asynchronous test
        assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600, name


async def test_paths_with_special_letters_work(tmp_path: Path) -> None:
    """What means something in an address of SQLite is quoted."""
    for name in ("a b.sqlite", "50%25.sqlite", "q%3Fx%23y.sqlite"):
        async with open_streams(f"sqlite://{tmp_path}/{name}") as streams:
            await streams.log.create()
            await lead(streams.log)
    found = os.listdir(tmp_path)  # noqa: PTH208 - an asynchronous test
    assert {name for name in found if name.endswith(".sqlite")} == {
        "a b.sqlite",
        "50%.sqlite",
        "q?x#y.sqlite",
    }


async def test_a_producer_without_a_pause_does_not_keep_the_leader_out(
    streams: Streams, path: Path
):
    """SQLite lets in whoever finds the file free, so one that writes again and again leaves it to others in between."""
    over = Event()

    async def produce() -> None:
        async with open_streams(f"sqlite://{path}") as own:
            number = 0
            while not over.is_set():
                number += 500
                await own.inbox.put(
                    [InboxRecord(data=b"{}", id=f"p{number + one}") for one in range(500)]
                )

    producing = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(produce())))
    try:
        took = []
        for number in range(40):
            await asyncio.sleep(0.02)  # in which the other one writes several times
            begun = time.monotonic()
            await streams.log.heartbeat(Heartbeat(leader="l", term=1, time=number))
            took.append(time.monotonic() - begun)
    finally:
        over.set()
        await producing
    assert await streams.inbox.end() > 5000
    assert sorted(took)[len(took) * 9 // 10] < 0.2


async def test_large_proposals_are_read_a_few_at_a_time(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many a leader would take, it gets no more bytes at once than it can carry, but always the first one."""
    monkeypatch.setattr(sqlite, "BATCH_BYTES", 1000)
    sizes = [400, 600, 1, 2000, 10, 990, 1]
    await streams.inbox.put(
        [InboxRecord(data=b"x" * size, id=f"p{number}") for number, size in enumerate(sizes)]
    )
    batches, position = [], 0
    while batch := await streams.inbox.read(position):
        batches.append([one.id for one in batch])
        position = batch[-1].position + 1
    assert batches == [["p0", "p1"], ["p2"], ["p3"], ["p4", "p5"], ["p6"]]


async def test_records_that_vanish_while_they_are_read_are_missed(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes are read first; who empties the inbox before the records are read is told of, as for any that are gone."""
    await streams.inbox.put([InboxRecord(data=b"x", id="p1")])
    rows = SqliteFile.rows

    async def vanish(file: SqliteFile, query: str, *arguments: object) -> list[tuple[object, ...]]:
        return [] if query == "read_inbox" else await rows(file, query, *arguments)

    monkeypatch.setattr(SqliteFile, "rows", vanish)
    with pytest.raises(errors.PositionLost):
        await streams.inbox.read(0)

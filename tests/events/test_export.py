"""A log in a file: whoever altered, cut or mixed it is found out; a file that is not complete never has the name."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard

from events import errors
from events.bounds import MAX_FRAME_BYTES
from events.frame import frame_hash
from events.streams import Record, open_log, open_streams
from events.streams.export import BATCH_BYTES, ExportedLog, Imported, export_log, import_log
from tests.events.world import Wrapped, lead, records_of, steps_of, write


def content(path: Path) -> bytes:
    """Return what is in a file."""
    return path.read_bytes()


def contents(folder: Path) -> list[tuple[str, bytes]]:
    """Return names and contents of all files in a folder."""
    return [(file.name, file.read_bytes()) for file in folder.iterdir()]


@pytest.fixture
async def exported(tmp_path: Path) -> Path:
    """Return a file with a log of four frames."""
    path = tmp_path / "log.jsonl"
    async with open_streams("memory://") as streams:
        leader = await lead(streams.log)
        for name in ("a", "b", "c"):
            await write(leader, name)
        await export_log(streams.log, path)
    return path


def test_the_format_is_as_described(exported: Path) -> None:
    """One header line, then position, hash and the frame's text of each record."""
    header, *lines = [msgspec.json.decode(line) for line in exported.read_bytes().splitlines()]
    assert list(header) == ["format", "version", "log_id", "partition"]
    assert (header["format"], header["version"], header["partition"]) == ("evsched-log", 1, 0)
    assert [line["position"] for line in lines] == [0, 1, 2, 3]
    for line in lines:
        assert frame_hash(line["data"].encode()) == line["hash"]
        assert msgspec.json.decode(line["data"])["log_id"] == header["log_id"]


Spoil = Callable[[list[bytes]], list[bytes]]
SPOILED: dict[str, tuple[Spoil, str]] = {
    "an altered frame": (
        lambda lines: [*lines[:2], lines[2].replace(b'\\"a\\"', b'\\"A\\"'), *lines[3:]],
        "line 3 of the file was altered",
    ),
    "an altered hash": (
        lambda lines: [*lines[:2], lines[2].replace(b'"hash":"', b'"hash":"0'), *lines[3:]],
        "line 3 of the file was",
    ),
    "a line that is no JSON": (
        lambda lines: [*lines[:2], b"{\n", *lines[3:]],
        "line 3 of the file cannot be read",
    ),
    "a line that is no text": (
        lambda lines: [*lines[:2], b"\xff\n", *lines[3:]],
        "line 3 of the file cannot be read",
    ),
    "a line that is cut": (
        lambda lines: [*lines[:-1], lines[-1][:-5]],
        "ends in the middle of a line",
    ),
    "no header": (lambda lines: lines[1:], "line 1 of the file is not the beginning"),
    "nothing": (lambda lines: [], "line 1 of the file is not the beginning"),
    "a later version": (
        lambda lines: [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]],
        "format evsched-log 2",
    ),
    "a missing line": (lambda lines: [*lines[:2], *lines[3:]], "frame 3 found after frame 1"),
    "swapped lines": (
        lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
        "frame 3 found after frame 1",
    ),
}


@pytest.mark.parametrize("spoiled", SPOILED)
async def test_a_file_with(exported: Path, tmp_path: Path, spoiled: str) -> None:
    """Reading it stops with the line or the position, and importing it brings nothing of it after that."""
    spoil, said = SPOILED[spoiled]
    path = tmp_path / "spoiled.jsonl"
    path.write_bytes(b"".join(spoil(content(exported).splitlines(keepends=True))))
    with pytest.raises(errors.LogDamaged) as caught:
        await steps_of(open_log(str(path)))
    assert said in str(caught.value)


async def test_a_damaged_compression_is_found(exported: Path, tmp_path: Path) -> None:
    """A flipped byte or a cut file is told as damage, whatever the library says."""
    whole = zstandard.compress(content(exported), 3)
    for number, data in enumerate(
        (whole[: len(whole) // 2], whole[:40] + b"\x00\x00\x00\x00" + whole[44:], b"no zstandard")
    ):
        path = tmp_path / f"{number}.jsonl.zst"
        path.write_bytes(data)
        with pytest.raises(errors.LogDamaged):
            await steps_of(open_log(str(path)))


async def test_an_exported_log_can_only_be_read(exported: Path) -> None:
    """Nobody leads a file."""
    log = open_log(str(exported))
    with pytest.raises(errors.ReadOnly):
        await lead(log)
    with pytest.raises(errors.ReadOnly):
        await log.create()
    await log.check()
    assert await log.end() == 4
    assert [record.position for record in await records_of(log, 1)] == [2, 3]
    with pytest.raises(errors.PositionLost):
        await records_of(log, 9)


async def test_a_file_that_is_not_there_is_missing(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(errors.StreamMissing, match=r"none\.jsonl"):
        await open_log(str(tmp_path / "none.jsonl")).check()


async def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Neither under its name nor beside it, and what was there before stays."""

    class Breaking(Wrapped):
        async def read(self, after: int = -1) -> object:
            yield [Record(0, b'{"log_id":"l","term":1,"leader":"x","frame":1,"time":0}')]
            raise errors.LogUnreachable(self.name, "in the middle")

    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(b"before")
    async with open_streams("memory://") as streams:
        with pytest.raises(errors.LogUnreachable):
            await export_log(Breaking(streams.log), path)
        with pytest.raises(errors.AccessDenied):
            await export_log(streams.log, tmp_path / "no" / "folder.jsonl")
    assert contents(tmp_path) == [("log.jsonl.zst", b"before")]


async def test_an_empty_log_makes_an_empty_export(tmp_path: Path) -> None:
    """With a header, so that it is one."""
    path = tmp_path / "log.jsonl"
    async with open_streams("memory://") as streams, open_streams("memory://") as other:
        assert await export_log(streams.log, path) == 0
        assert await import_log(path, other.log) == Imported(0, 0)
    assert await ExportedLog(path).end() == 0


async def test_large_frames_come_in_small_batches(tmp_path: Path) -> None:
    """However many there are, reading a file takes little memory; nothing is left out and nothing comes twice."""
    path = tmp_path / "log.jsonl.zst"
    async with open_streams("memory://") as streams:
        leader = await lead(streams.log)
        for number in range(50):
            await write(leader, *(f"{number}-{part}-" + "x" * 240 for part in range(1_500)))
        await export_log(streams.log, path)
        batches = [batch async for batch in open_log(str(path)).read()]
        assert [record for batch in batches for record in batch] == await records_of(streams.log)
    assert (
        max(sum(len(record.data) for record in batch) for batch in batches)
        <= BATCH_BYTES + MAX_FRAME_BYTES
    )

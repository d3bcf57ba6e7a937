"""Read models over logs that are out of order, doubled or cut, and over altered files: refused, or rightly answered."""

import asyncio
import random
import sqlite3
from contextlib import closing

import pytest

from events.errors import StreamError
from evsched.cli.main import run
from projections.following import Follower
from projections.read_model import ReadModel
from tests.replays.logs import LOG_ID, sealed, story, written

PLACES = ('INSERT INTO "position"', 'INSERT INTO "kept_state"')
FAULT = 70
"""The exit code of a fault of our own."""


def rows(path):
    """Return all rows of all tables of a read model, but for where it is in its log: a doubled record has a place, too."""
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(one for one in connection.iterdump() if not one.startswith(PLACES))


async def followed(path, records):
    """Let a read model follow a log to its end; it is closed in the end, whatever happens."""
    model = ReadModel(path, LOG_ID)
    try:
        follower = Follower(model, await written(records))
        await follower.catch_up(await follower.reader())
    finally:
        model.close()


def disordered(chance, records):
    """Return a log with a few of its records exchanged, doubled or left out, or with its end cut off."""
    found = list(records)
    for _ in range(chance.randint(1, 3)):
        one, other = (chance.randrange(len(found)) for _ in range(2))
        match chance.randrange(4):
            case 0:
                found[one], found[other] = found[other], found[one]
            case 1:
                found.insert(other, found[one])
            case 2:
                del found[min(one, other) :]
                found = found or list(records)
            case _:
                found.pop(one)
                found = found or list(records)
    return found


@pytest.mark.parametrize("count", [20, pytest.param(5_000, marks=pytest.mark.fuzz)])
def test_what_is_read_in_disorder_is_refused_or_right(tmp_path, count):
    """A read model holds what an honest reader of the beginning holds, whatever comes after it."""
    records, honest = list(sealed(story())), {}
    for length in range(len(records) + 1):
        path = tmp_path / f"honest-{length}.db"
        asyncio.run(followed(path, records[:length]))
        honest[rows(path)] = length
    refused = 0
    for seed in range(count):
        path = tmp_path / f"{seed}.db"
        try:
            asyncio.run(followed(path, disordered(random.Random(seed), records)))
        except StreamError:
            refused += 1
        if path.exists():
            assert rows(path) in honest, f"seed {seed}"
            path.unlink()
    assert 0 < refused <= count


QUESTIONS = (("life-of", "--of", "test-1"), ("config-history",), ("rejected-inputs",))


@pytest.mark.parametrize("count", [12, pytest.param(20_000, marks=pytest.mark.fuzz)])
def test_an_altered_file_without_a_seal_is_no_fault_of_ours(tmp_path, count, capsys):
    """While a follower writes it nothing can be compared: a question is answered, or fails in order."""
    path, seal = tmp_path / "model.db", tmp_path / "model.db.seal"
    asyncio.run(followed(path, sealed(story())))
    good, codes = path.read_bytes(), set()
    # Seed 63 leaves a text in no encoding, where the driver raises another class of errors.
    for seed in (63, *range(count)):
        chance, data = random.Random(seed), bytearray(good)
        for _ in range(chance.choice([1, 1, 8, 64])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data[: chance.choice([len(data), len(data), chance.randrange(len(data))])])
        for question in QUESTIONS:
            for beside in tmp_path.glob("model.db-*"):
                beside.unlink()
            seal.unlink(missing_ok=True)
            codes.add(run(["audit", *question, "--db", str(path)]))
        capsys.readouterr()
    assert len(codes) > 1
    assert FAULT not in codes

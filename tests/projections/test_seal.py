"""The seal of a read model: no letter of a file at rest can be altered without being noticed."""

import asyncio
import random

import pytest

from evsched.cli.main import run
from projections import seal
from projections.following import Follower
from projections.read_model import ReadModel, Rebuild, RebuildNeeded, place_of
from tests.replays.logs import LOG_ID, read, sealed, story, written

FLIPS = 180


@pytest.fixture
def steps():
    """Return the steps of a small log."""
    return read(sealed(story()))


@pytest.fixture
def path(tmp_path, steps):
    """Return the file of a read model that was made anew and is at rest."""
    model = Rebuild(tmp_path / "model.db", LOG_ID)
    for step in steps:
        model.take(step)
    model.finish()
    model.close()
    return tmp_path / "model.db"


def asked(path):
    """Return whether a question was answered."""
    return run(["audit", "life-of", "--of", "test-1", "--db", str(path)]) == 0


def test_no_altered_letter_is_answered_from(path, capsys):
    """One letter, anywhere in the file: every question is refused with what was found, and nothing is written."""
    assert asked(path)
    good = path.read_bytes()
    for place in random.Random(5).sample(range(len(good)), FLIPS):
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with pytest.raises(RebuildNeeded, match="altered"):
            place_of(path)
    path.write_bytes(good[:-1])
    assert not asked(path)
    assert "was altered since it was written" in capsys.readouterr().err
    path.write_bytes(good)
    assert asked(path)


def test_no_altered_file_is_written_on(path):
    """A follower refuses it as well, so that nothing altered is ever sealed."""
    good = path.read_bytes()
    path.write_bytes(good[:-9] + b"x" + good[-8:])
    with pytest.raises(RebuildNeeded, match="altered"):
        ReadModel(path, LOG_ID)
    path.write_bytes(good)
    ReadModel(path, LOG_ID).close()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"size":1,"blake2b":"00"}'])
def test_an_altered_seal_is_none(path, content):
    """A seal that cannot be read, or is of another file, is as bad as an altered file."""
    seal.seal_of(path).write_bytes(content)
    with pytest.raises(RebuildNeeded):
        place_of(path)


def test_what_is_followed_has_no_seal_until_its_follower_ends(tmp_path):
    """The file is sealed again when the last one that writes it closes it, and a killed follower leaves none."""
    path = tmp_path / "model.db"
    model, other = ReadModel(path, LOG_ID), ReadModel(path, LOG_ID)

    async def follow():
        follower = Follower(model, await written(sealed(story())))
        await follower.catch_up(await follower.reader())

    asyncio.run(follow())
    other.close()
    assert not seal.seal_of(path).exists()
    assert asked(path)
    model.close()
    assert seal.seal_of(path).exists()
    assert asked(path)
    ReadModel(path, LOG_ID)._connection.close()
    assert not seal.seal_of(path).exists()
    assert asked(path)


def test_a_file_that_was_replaced_is_not_sealed_by_who_had_the_old_one(path, tmp_path, steps):
    """The seal in its place stays the new file's."""
    model = ReadModel(path, LOG_ID)
    again = Rebuild(path, LOG_ID)
    for step in steps:
        again.take(step)
    again.finish()
    again.close()
    before = seal.seal_of(path).read_bytes()
    model.close()
    assert seal.seal_of(path).read_bytes() == before
    assert asked(path)

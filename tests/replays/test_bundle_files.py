"""Bundles of failures come from strangers too."""

import json

import msgspec
import pytest
import zstandard

from evsched.cli.main import run
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.snapshots.store import LARGEST_STATE
from replays.checking.bundle import Bundle, NoBundle, read, take

EVIL = "\x1b[31m\x9b2J\u202e\nforged line"
WITHOUT_END = bytes.fromhex("28b52ffd") + b"\xe0" + (LARGEST_STATE << 20).to_bytes(8, "little")
"""The head of a frame of zstandard: one segment, its size in eight bytes."""


def file_with(state):
    """Return the bytes of a bundle with this packed state, and evil in every text."""
    return msgspec.json.encode(
        Bundle(
            release=EVIL, python=EVIL, log_id=EVIL, frame=1, kind=EVIL, subject=EVIL, place=EVIL,
            reason=EVIL, traceback=EVIL, time=1, decide=True, state_time=0, state=state, proposals=(),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "state",
    [
        WITHOUT_END,
        zstandard.ZstdCompressor(write_content_size=False).compress(b"x"),
        zstandard.compress(b"\x93"),
        zstandard.compress(b"\x91" * 100_000),
        b"",
    ],
)
def test_a_state_that_no_leader_wrote_is_refused(state, tmp_path, capsys):
    """One that unpacks without end, says no size, nests without end or is none: an error, and exit code 2."""
    data = file_with(state)
    with pytest.raises(NoBundle):
        take(read(data))
    (tmp_path / "bundle.json").write_bytes(data)
    assert run(["debug", "replay", str(tmp_path / "bundle.json")]) == 2
    assert "its state cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_its_texts_do_not_speak(form, tmp_path, capsys):
    """What a bundle says is replaced in text and escaped in JSON."""
    state = zstandard.compress(snapshot.encode(Engine().state))
    (tmp_path / "bundle.json").write_bytes(file_with(state))
    assert run(["debug", "replay", *form, str(tmp_path / "bundle.json")]) == 1
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    assert not any(line.startswith("forged") for line in out.split("\n"))
    assert not form or json.loads(out)["subject"] == EVIL

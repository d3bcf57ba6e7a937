"""Poison: whatever bytes come through the inbox, the engine goes on, what it writes can be written, and a rebuild agrees.

Sensible proposals of both families are encoded and then spoilt: bytes flipped, cut and put in,
values replaced by what clumsy or hostile producers send, keys taken out, added and exchanged.
Seldom enough that the engine also has something to decide about.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

from events import vocabulary as v
from events.cloudevents import InboxRecord, proposals, read_proposal
from events.configuration import KueueSpec
from events.frame import Frame, decode_frame, encode_frame
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.service.companions import judged, nobody
from tests.core import seeded
from tests.core.histories import START
from tests.core.kueue import cohorts
from tests.core.kueue.test_history import step_of

BATCH = 20
COMPARED_EVERY = 100
"""So many batches of one partition come before its state is compared with a rebuilt one, and the next partition begins."""

NUMBERS = (0, 1, -1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**63, 10**30, -(10**30), 0.5, 1e308)
NAMES = (
    "",
    " ",
    "-",
    "0",
    "x" * 5000,
    "root",
    "root.a",
    "ROOT.A",
    "root..a",
    ".",
    "a/b",
    "n0",
    "t1",
    "cpu",
    "Never",
    "*",
)
LETTERS = ("a\nb", "\0", "\x1b[2J", "\ud800", "\u202e", "\xe9", "\U0001d54f", "1e9", "NaN")
SHAPES = (
    None,
    True,
    False,
    [],
    [None],
    [[]],
    {},
    {"": 0},
    {"vcore": -1},
    {"vcore": 10**20},
    {"vcore": "1"},
    {"a": {"b": {}}},
)
WEIRD: tuple[Any, ...] = (*NUMBERS, *NAMES, *LETTERS, *SHAPES)


def weird(dice: Random) -> Any:
    """Return something that hardly ever belongs where it is put."""
    return copy(dice.choice(WEIRD))


def copy(value: Any) -> Any:
    """Return a value of a document that shares nothing with it."""
    return json.loads(json.dumps(value))


def spoilt_bytes(dice: Random, data: bytes) -> bytes:
    """Return bytes with a few of them changed."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(found) + 1)
        match dice.randrange(4):
            case 0 if place < len(found):
                found[place] ^= 1 << dice.randrange(8)
            case 1:
                del found[place : place + dice.randint(1, 20)]
            case 2:
                found[place:place] = bytes(
                    dice.choice(b'{}[]",:0-9e\\\xff\x00') for _ in range(dice.randint(1, 5))
                )
            case _:
                found[place:place] = found[: dice.randrange(len(found) + 1)]
    return bytes(found)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return every place in a document: what holds it, and its key or index."""
    found, rest = [], [document]
    while rest:
        holder = rest.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                rest.append(holder[key])
    return found


def spoilt_values(dice: Random, data: bytes) -> bytes:
    """Return a document with a few of its values changed, its keys taken out, added or exchanged."""
    document = json.loads(data)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        there = places(document)
        if not there:
            break
        holder, key = dice.choice(there)
        match dice.randrange(5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[
                    dice.choice(("type", "seq", "cause", "due", "proposal", "new", "", "resources"))
                ] = weird(dice)
            case 2:
                other, place = dice.choice(there)
                if place in other if isinstance(other, dict) else place < len(other):
                    holder[key] = copy(other[place])
            case _:
                holder[key] = weird(dice)
    return json.dumps(document).encode()


def spoilt(dice: Random, data: bytes) -> bytes:
    """Return a proposal as a clumsy or hostile producer would send it; half of the time it is left as it is."""
    match dice.randrange(10):
        case 0 | 1:
            return spoilt_bytes(dice, data)
        case 2 | 3 | 4:
            return spoilt_values(dice, data)
        case _:
            return data


class Partition:
    """An engine, and what it has written."""

    def __init__(self, dice: Random, *, kueue: bool) -> None:
        self.dice, self.kueue = dice, kueue
        self.engine = Engine()
        self.time, self.number = START, 0
        self.frames: list[bytes] = []
        self.taken = self.refused = 0
        first: list[v.AnyInput] = (
            [
                v.ConfigurationApplied(
                    configuration=cohorts.configuration(dice, fair=dice.random() < 0.5)
                )
            ]
            if kueue
            else [
                v.ConfigurationApplied(configuration=seeded.configuration(dice)),
                *(
                    v.NodeRegistered(node=f"n{number}", capacity={"vcore": 10_000, "memory": 20})
                    for number in range(4)
                ),
            ]
        )
        self.step(proposals(first))

    def step(self, records: tuple[InboxRecord, ...]) -> None:
        """Take records as they come from the inbox, and write the frame."""
        taken = tuple(
            read_proposal(record, self.number + place) for place, record in enumerate(records)
        )
        if any(isinstance(one.input, v.RulesAdopted) for one in taken):
            taken = asyncio.run(judged(taken, nobody))  # as the leader does before it takes a step
        self.number += len(records)
        events = self.engine.step(self.time, taken)
        self.refused += sum(isinstance(event, v.InputRejected) for event in events)
        self.taken += len(records)
        frame = Frame(
            log_id="log",
            term=1,
            leader="l",
            frame=len(self.frames) + 1,
            prev="",
            time=self.time,
            events=events,
        )
        self.frames.append(encode_frame(frame))
        self.time += self.dice.choice((0, 1, 1000, 11_000))

    def sensible(self) -> list[v.AnyInput]:
        """Return what a sensible producer would propose now."""
        if self.kueue:
            spec = self.engine.state.configuration
            if isinstance(spec, KueueSpec) and spec.cluster_queues:
                return step_of(self.dice, self.engine, self.number)
            return [
                v.ConfigurationApplied(configuration=cohorts.configuration(self.dice, fair=True))
            ]
        return [seeded.proposal(self.dice, self.number + place) for place in range(3)]

    def work(self) -> None:
        """Take one batch."""
        records: list[InboxRecord] = []
        while len(records) < BATCH:
            for record in proposals(self.sensible()):
                name = (
                    f"{self.number}-{len(records)}"
                    if self.dice.random() < 0.9
                    else self.dice.choice(("", "same", "x" * 3000))
                )
                records.append(
                    InboxRecord(data=spoilt(self.dice, record.data), id=name, source="fuzz")
                )
        self.step(tuple(records))

    def compare(self) -> None:
        """Hold the state against one rebuilt from what was written, and one from a snapshot."""
        rebuilt = Engine()
        rebuilt.apply_frames(map(decode_frame, self.frames))
        digest = self.engine.state.digest()
        assert rebuilt.state.digest() == digest
        assert (
            snapshot.decode(snapshot.encode(self.engine.state), self.engine.state.time).digest()
            == digest
        )


@pytest.mark.parametrize("inputs", [20_000, pytest.param(1_000_000, marks=pytest.mark.fuzz)])
def test_poison_is_refused_and_nothing_else_happens(inputs: int) -> None:
    """No input makes the engine stop, or write what cannot be written, read or rebuilt; and most of the rest is taken."""
    dice, taken, refused, kueue = Random(5), 0, 0, False
    while taken < inputs:
        partition = Partition(dice, kueue=kueue)
        for _ in range(COMPARED_EVERY):
            partition.work()
        partition.compare()
        taken, refused, kueue = taken + partition.taken, refused + partition.refused, not kueue
    assert taken / 5 < refused < taken * 4 / 5

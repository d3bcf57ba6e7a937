"""What every adapter promises about the inbox."""

import asyncio

import pytest

from events import errors
from events.cloudevents import InboxRecord
from events.vocabulary import ConfigurationApplied, NodeRegistered, NodeRemoved
from tests.events.places import Place


async def test_proposals_arrive_in_order_with_id_and_source(place: Place) -> None:
    """The positions that the producer got are those that the leader sees."""
    streams = await place.open()
    inputs = [NodeRemoved(node=f"n{number}", proposal=f"p{number}") for number in range(5)]
    assert await streams.inbox.propose(inputs[:3], "here") == (0, 1, 2)
    assert await streams.inbox.propose(inputs[3:], "there") == (3, 4)
    found = await (await place.open()).inbox.read(0)
    assert [proposal.input for proposal in found] == inputs
    assert [(proposal.position, proposal.id) for proposal in found] == [
        (number, f"p{number}") for number in range(5)
    ]
    assert [proposal.source for proposal in found] == ["here"] * 3 + ["there"] * 2
    assert await streams.inbox.end() == 5


async def test_reading_the_inbox_goes_on_from_any_position(place: Place) -> None:
    """In small bites, again from before, and at the end nothing."""
    streams = await place.open()
    await streams.inbox.propose([NodeRemoved(node=f"n{number}") for number in range(10)])
    assert [proposal.position for proposal in await streams.inbox.read(3, limit=4)] == [3, 4, 5, 6]
    assert [proposal.position for proposal in await streams.inbox.read(7, limit=4)] == [7, 8, 9]
    assert [proposal.position for proposal in await streams.inbox.read(0, limit=2)] == [0, 1]
    assert await streams.inbox.read(10) == ()
    with pytest.raises(errors.PositionLost):
        await streams.inbox.read(11)


async def test_reading_the_inbox_waits_for_the_first(place: Place) -> None:
    """A proposal that comes from another connection ends the waiting; without one it ends by itself."""
    streams, other = await place.open(), await place.open()
    assert await streams.inbox.read(0, wait_s=0.05) == ()
    waiting = asyncio.create_task(streams.inbox.read(0, wait_s=20))
    await asyncio.sleep(0)
    await other.inbox.propose([NodeRemoved(node="n")])
    async with asyncio.timeout(10):
        assert len(await waiting) == 1


async def test_a_repeated_proposal_keeps_its_id(place: Place) -> None:
    """Proposing again after an error makes two records of one id: the engine recognises that."""
    streams = await place.open()
    for _ in range(2):
        await streams.inbox.propose([NodeRemoved(node="n", proposal="same")])
    assert [proposal.id for proposal in await streams.inbox.read(0)] == ["same", "same"]


async def test_poison_stops_nobody(place: Place) -> None:
    """What cannot be read comes as a problem with its beginning, and what lies behind it is read."""
    streams = await place.open()
    poison = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":"Nothing"}',
        b'{"type":"NodeRemoved","node":7}',
        b"x" * 450_000,
    ]
    await streams.inbox.put(
        [
            InboxRecord(data=data, id=f"p{number}", source="evil")
            for number, data in enumerate(poison)
        ]
    )
    await streams.inbox.propose([NodeRemoved(node="good")])
    found = await streams.inbox.read(0)
    assert [proposal.input for proposal in found] == [None] * len(poison) + [
        NodeRemoved(node="good")
    ]
    assert all(proposal.problem for proposal in found[:-1])
    assert [proposal.id for proposal in found[:-1]] == [
        f"p{number}" for number in range(len(poison))
    ]


async def test_a_proposal_that_is_too_large_is_refused_whole(place: Place) -> None:
    """Nothing of the call is written."""
    streams = await place.open()
    huge = NodeRegistered(node="n", capacity={}, labels={"l": "x" * 500_000}, proposal="huge")
    with pytest.raises(errors.ProposalTooLarge) as caught:
        await streams.inbox.propose([NodeRemoved(node="n"), huge])
    assert caught.value.id == "huge"
    assert await streams.inbox.end() == 0


async def test_the_largest_document_can_be_proposed_and_written(place: Place) -> None:
    """A configuration with a document of a quarter of a megabyte passes through inbox and log."""
    from events.configuration import QueueSpec, YunikornSpec  # noqa: PLC0415

    streams = await place.open()
    applied = ConfigurationApplied(
        configuration=YunikornSpec(root=QueueSpec(name="root")), document="ü" * 131_072
    )
    await streams.inbox.propose([applied])
    (proposal,) = await streams.inbox.read(0)
    assert proposal.input == applied

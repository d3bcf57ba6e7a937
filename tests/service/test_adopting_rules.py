"""Rules that change while a cluster is served: who may adopt them, and what a process does that is too old for them."""

import asyncio

import pytest
from msgspec.structs import replace

from events.chain import cut_into_frames
from events.errors import LogUnreachable, WrittenByNewer
from events.vocabulary import InputRejected, LeaderStarted, Proposal, RulesAdopted
from evsched.core.rules import FIRST, NEWEST
from evsched.service.companions import (
    Companion,
    judged,
    nobody,
    own_client,
    rules_of_client,
)
from tests.service.inputs import ask
from tests.service.processes import Process
from tests.service.test_member import PACE, told


@told
async def test_a_new_log_begins_with_the_newest_rules(world):
    """Its first leader adopts them right behind its fence; the next one finds them in force."""
    newest = replace(PACE, rules=NEWEST)
    first = Process(world.store, pace=newest)
    world.processes.append(first)
    await world.fill()
    await first.stop()
    world.processes.append(Process(world.store, seed=1, pace=newest))
    await asyncio.sleep(2)
    history = await world.end()
    assert history.events[1] == RulesAdopted(seq=2, rules=NEWEST, source="evsched")
    assert len(history.only(RulesAdopted)) == 1
    assert [one.rules for one in history.only(LeaderStarted)] == [FIRST, NEWEST]


@told
async def test_a_log_that_has_begun_keeps_its_rules(world):
    """An upgraded process decides by the rules of the log until others are adopted."""
    first = world.start()
    await world.fill()
    await first.stop()
    world.processes.append(Process(world.store, seed=1, pace=replace(PACE, rules=NEWEST)))
    await world.propose(ask("more"))
    await asyncio.sleep(2)
    history = await world.end()
    assert history.only(RulesAdopted) == []
    assert history.engine.state.rules_version == FIRST


@told
async def test_rules_are_adopted_in_the_middle_of_work(world):
    """What is proposed before is decided by the former rules, what comes later by the new ones, and all of it verifies."""
    first, second = await world.start_two()
    await world.fill()
    await world.propose(RulesAdopted(rules=NEWEST, proposal="r"), ask("later"))
    await asyncio.sleep(1)
    await first.stop()
    await asyncio.sleep(2)
    await world.propose(ask("last"))
    await asyncio.sleep(1)
    assert second.member.role == "leading"
    history = await world.end()
    assert [one.rules for one in history.only(LeaderStarted)] == [FIRST, NEWEST]


@told
async def test_rules_that_a_process_does_not_know_are_refused(world):
    """With its name and what it knows; the log stays readable for it, and verifies as any other."""

    async def others():
        return (Companion("at h1", NEWEST), Companion("at h2", FIRST))

    world.start(others=others)
    await world.fill()
    await world.propose(RulesAdopted(rules=NEWEST, proposal="r"))
    await asyncio.sleep(1)
    history = await world.end()
    (refused,) = history.only(InputRejected)
    assert (refused.code, refused.proposal) == ("unsupported", "r")
    assert refused.reason == (
        f"rules {NEWEST}: process at h2 could lead and knows rules 1 alone; upgrade it first"
    )
    assert refused.input is None
    assert history.only(RulesAdopted) == []


@pytest.mark.parametrize("version", [NEWEST + 1, FIRST])
def test_a_refusal_leaves_no_type_that_0_1_0_cannot_read(version):
    """Rules that the leader does not know, or that are in force, are refused in words alone."""

    @told
    async def story(world):
        world.start()
        await world.fill()
        await world.propose(RulesAdopted(rules=version, proposal="r"))
        await asyncio.sleep(1)
        history = await world.end()
        (refused,) = history.only(InputRejected)
        assert refused.input is None
        assert '"RulesAdopted"' in refused.raw

    story()


def test_not_knowing_who_else_is_there_is_no_consent():
    """When the group cannot be asked, adoption is refused and may be tried again."""

    async def others():
        raise LogUnreachable("group", "no answer")

    proposal = Proposal(input=RulesAdopted(rules=NEWEST))
    (found,) = asyncio.run(judged((proposal,), others))
    assert "cannot be found out now" in found.problem
    assert asyncio.run(judged((proposal,), nobody)) == (proposal,)


def test_a_client_id_says_which_rules_its_process_knows():
    """One of 0.1.0 says nothing, and so knows the first."""
    assert rules_of_client(own_client()) == NEWEST
    assert rules_of_client("evsched") == rules_of_client("evsched-rules-x") == FIRST


def newer_step(process, *events):
    """Return the frame of a step that a leader wrote which knows more than this release."""
    head = process.member._warm.reader.head
    (sealed,) = cut_into_frames(
        head, events, time=head.time, decided=True, inbox_next=head.inbox_next
    )
    return sealed


@told
async def test_a_process_that_is_too_old_for_the_rules_stands_by(world):
    """It follows the log, says so, is not ready, and writes nothing, however long nobody leads."""
    first = world.start()
    await world.fill()
    adopted = RulesAdopted(seq=first.member.engine.state.seq + 1, rules=99)
    sealed = newer_step(first, adopted)
    await first.kill()
    world.store.log.append(sealed.data)
    length = len(world.store.log)
    second = world.start()
    await asyncio.sleep(60)
    assert second.member.role == "standby"
    assert second.member.outdated == (
        f"log: written by a newer evsched (rules 99 are in force, this release knows 1 to {NEWEST})"
    )
    assert not second.member.ready
    assert len(world.store.log) == length
    await second.stop()


@told
async def test_a_process_that_meets_an_unknown_event_stops_and_says_newer(world):
    """It is no damage: the message names the type, the place, and the release that wrote it."""
    first = world.start()
    first.member._world = replace(first.member._world, release="0.9.0")
    await world.fill()
    adopted = RulesAdopted(seq=first.member.engine.state.seq + 1, rules=99)
    data = newer_step(first, adopted).data.replace(b"RulesAdopted", b"QueueMerged")
    await first.kill()
    world.store.log.append(data)
    second = world.start()
    await asyncio.sleep(5)
    assert second.member.role == "failed"
    assert isinstance(second.member.failure, WrittenByNewer)
    assert second.member.outdated.startswith(
        "log: written by a newer evsched (release 0.9.0: event type 'QueueMerged') at position"
    )

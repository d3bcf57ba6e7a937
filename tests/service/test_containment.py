"""Whatever raises in the engine, its cause pays and nothing else: faults are put into every part of a step.

Each test breaks one function of the core for one id, in virtual time and over streams in memory. The
log that results is then decided again by honest code, and nothing may differ.
"""

import asyncio

import pytest
from msgspec.structs import replace

from events.errors import StepUnprovable
from events.streams import leadership
from events.vocabulary import (
    AllocationBound,
    ApplicationRemoved,
    AskSubmitted,
    AskWithdrawn,
    CheckpointRecorded,
    DecisionResumed,
    DecisionSuspended,
    InputRejected,
    PreemptionDecided,
    QuotaPreemptionDecided,
)
from evsched.cli.answers import CommandError
from evsched.cli.debug import replay
from evsched.core import evictions, state, suspension, validation
from evsched.core.quota import enforcement
from evsched.core.yunikorn import allocation, guarantee, turns
from evsched.core.yunikorn.family import YunikornFamily
from evsched.service.rebuilding import Snapshots
from replays.checking import bundle
from tests.service.breaking import BAD, bound, ended, make_room, suspended, told, waits
from tests.service.inputs import ask, cluster, node, queues, release
from tests.service.test_member import World
from tests.service.virtual import simulate

# --------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("part", ["validation", "fold", "family"])
def test_a_proposal_that_raises_is_refused(broken, part):
    """It is answered with `internal-error`, the place of the fault and its text; those before and behind it are accepted."""

    async def story():
        world = World()
        world.start()
        match part:
            case "validation":
                broken(validation, "check", lambda _, one: getattr(one, "ask", "") == BAD)
            case "fold":
                broken.fold(AskSubmitted, lambda event: event.ask == BAD)
            case "family":
                family = "evsched.core.yunikorn.application_placement"
                module = __import__(family, fromlist=["refuse"])
                broken(module, "refuse", lambda _, one: getattr(one, "ask", "") == BAD)
        await world.propose(*cluster(2), ask(BAD), ask("last"))
        history = await ended(world, broken)
        (refused,) = history.only(InputRejected)
        assert refused.code == "internal-error"
        assert refused.proposal == f"ask:{BAD}"
        assert refused.input is None
        assert '"ask":"bad"' in refused.raw
        assert "Sabotage" in refused.reason
        assert "breaking.py" in refused.reason
        assert refused.position == 6
        assert bound(history) == {"web-0", "web-1", "last"}
        assert not suspended(history)

    simulate(story())


@told
async def test_an_input_that_breaks_all_decisions_is_refused(world, broken):
    """A node on which nothing can be decided pays itself, after a few asks were set aside."""
    world.start()
    broken(allocation, "_place", lambda _, columns, __: BAD in columns.rows)
    waiting = [ask(f"large-{number}", "research", 11 + number) for number in range(10)]
    await world.propose(*cluster(0), *waiting)
    await asyncio.sleep(1)
    await world.propose(ask("before"), node(BAD, 100), ask("after"))
    history = await ended(world, broken)
    assert [one.proposal for one in history.only(InputRejected)] == [f"node:{BAD}"]
    assert len(suspended(history)) <= 6
    assert {kind for kind, _ in suspended(history)} <= {"ask"}
    assert bound(history) == {"before", "after"}


@told
async def test_a_release_is_no_victim_of_an_ask_that_raises(world, broken):
    """The allocation ended, whatever is decided next: the ask pays."""
    world.start()
    await world.propose(*cluster(5), ask(BAD))
    await asyncio.sleep(1)
    broken(allocation, "_place", lambda _, __, demand: demand.shape.pairs and True)
    await world.propose(release("web-0"))
    history = await ended(world, broken)
    assert not history.only(InputRejected)
    assert suspended(history) == [("ask", BAD)]
    assert "web-0" not in history.engine.state.allocations


@told
async def test_a_frame_that_cannot_be_made_is_its_inputs_fault(world, broken):
    """Encoding fails for one event: what led to it is refused, the rest is written."""
    world.start()

    def hopeless(_, events, **__):
        for one in events:
            if getattr(one, "ask", "") == BAD:
                raise StepUnprovable(2, one.seq, type(one).__name__, "cannot be encoded")

    broken(leadership, "cut_into_frames", hopeless)
    await world.propose(*cluster(2), ask(BAD), ask("last"))
    history = await ended(world, broken)
    assert [one.proposal for one in history.only(InputRejected)] == [f"ask:{BAD}"]
    assert bound(history) == {"web-0", "web-1", "last"}


# ------------------------------------------------------------------------------ decisions


@told
async def test_an_ask_that_cannot_be_decided_on_is_set_aside(world, broken):
    """Its decision names place and reason, the ask is withdrawn, all others are bound."""
    world.start()
    await waits(world)
    broken.fold(AllocationBound, lambda event: event.ask == BAD)
    await make_room(world)
    history = await ended(world, broken)
    (decision,) = history.only(DecisionSuspended)
    assert (decision.kind, decision.subject, decision.cause) == ("ask", BAD, 0)
    assert decision.place.startswith("breaking.py:")
    assert decision.reason == "Sabotage: AllocationBound is broken"
    (withdrawn,) = history.only(AskWithdrawn)
    assert (withdrawn.ask, withdrawn.cause) == (BAD, decision.seq)
    assert "last" in bound(history)
    assert BAD not in bound(history)
    assert [one.subject for one in suspension.in_force(history.engine.state)] == [BAD]


@told
async def test_an_ask_that_cannot_preempt_is_set_aside(world, broken):
    """Thirty seconds later another one of its queue preempts."""
    world.start()
    broken(guarantee, "find_plan", lambda _, __, one, ___: one.id == BAD)
    good = ask("good", "research", cores=1)
    await world.propose(*cluster(5))
    await asyncio.sleep(1)
    await world.propose(ask(BAD, "research"), good)
    history = await ended(world, broken, 60)
    assert suspended(history) == [("ask", BAD)]
    assert [one.ask for one in history.only(PreemptionDecided)] == ["good"]


@told
async def test_a_cycle_that_raises_for_nobody_in_particular_is_set_aside(world, broken):
    """Preemption stops, allocation goes on; a configuration that is applied again takes it up."""
    world.start()
    broken(turns.PreemptionQueue, "__init__", lambda *_, **__: True)
    await world.propose(*cluster(5))
    await asyncio.sleep(1)
    await world.propose(ask("research-1", "research"))
    await asyncio.sleep(40)
    await world.propose(release("web-4"))
    await asyncio.sleep(5)
    assert world.processes[0].member.role == "leading"
    broken.mend()
    await world.propose(ask("research-2", "research"), queues(name="again"))
    await asyncio.sleep(60)
    history = await world.end()
    assert suspended(history) == [("cycle", "")]
    assert [one.kind for one in history.only(DecisionResumed)] == ["cycle"]
    assert {"research-1"} <= bound(history)
    assert [one.ask for one in history.only(PreemptionDecided)] == ["research-2"]


@told
async def test_a_queue_that_raises_is_set_aside(world, broken):
    """Where allocation fails with one queue's asks, the asks of others are bound; a configuration takes it up again."""
    world.start()
    await world.propose(*cluster(6), ask("research-1", "research", 11))
    await asyncio.sleep(1)
    broken(
        YunikornFamily,
        "allocate",
        lambda _, step: any(one.queue == "root.research" for one in step.state.asks.values()),
    )
    await world.propose(release("web-0"), ask("web-6"))
    await asyncio.sleep(5)
    await world.propose(release("web-1"), ask("research-2", "research", 11), ask("web-7"))
    await asyncio.sleep(5)
    broken.mend()
    await world.propose(release("web-2"), queues(name="again"))
    await asyncio.sleep(5)
    history = await world.end()
    first, *others = suspended(history)
    assert first == ("queue", "root.research")
    assert set(others) == {("ask", "research-1"), ("ask", "research-2")}
    assert bound(history) >= {"web-5", "web-6", "web-7"}
    assert ("queue", "root.research") in {
        (one.kind, one.subject) for one in history.only(DecisionResumed)
    }


@told
async def test_a_timer_that_raises_is_set_aside(world, broken):
    """The quota of one queue is not enforced; everything else goes on, until the configuration is applied again."""
    world.start()
    broken(enforcement, "enforce", lambda *_, **__: True)
    await world.propose(*cluster(5))
    await asyncio.sleep(1)
    await world.propose(queues(4))
    await asyncio.sleep(70)
    await world.propose(release("web-0"), ask("research-1", "research"))
    await asyncio.sleep(5)
    assert world.processes[0].member.engine.next_due() is None
    broken.mend()
    await world.propose(queues(4, name="again"))
    await asyncio.sleep(70)
    history = await world.end()
    assert suspended(history) == [("timer", "quota:root.web")]
    assert "research-1" in bound(history)
    assert len(history.only(QuotaPreemptionDecided)) == 1


@told
async def test_victims_that_cannot_be_told_again_are_left_alone(world, broken):
    """The timer of their eviction is set aside."""
    world.start()
    broken(evictions, "overdue", lambda *_, **__: True)
    await world.propose(*cluster(5))
    await asyncio.sleep(1)
    await world.propose(ask("research-1", "research"))
    await asyncio.sleep(1000)
    await world.propose(release("web-0"))
    history = await ended(world, broken)
    assert [kind for kind, _ in suspended(history)] == ["timer"]


def test_a_digest_that_cannot_be_made_ends_checkpoints(broken):
    """Decisions go on without them."""

    async def story():
        world = World()
        process = world.start()
        process.member._world = _often(process.member._world)
        await world.propose(*cluster(2))
        await asyncio.sleep(1)
        broken(state, "digest", lambda state, _: "more-3" in state.asks)
        for number in range(20):
            await world.propose(ask(f"more-{number}", cores=20))
            await asyncio.sleep(1)
        assert process.member.role == "leading"
        broken.mend()
        history = await world.end()
        # Before anything was known to be broken, each proposal that met a checkpoint could be it.
        assert ("checkpoint", "") in suspended(history)
        assert history.only(CheckpointRecorded)
        assert history.engine.state.asks

    simulate(story())


def _often(world):
    return replace(world, checkpoint_every=10)


def test_what_cannot_be_set_aside_stops_the_partition(broken, tmp_path):
    """Neither an input nor a subject: the member gives up with the place, leaves a bundle, and writes nothing more."""

    async def story():
        world = World()
        process = world.start(snapshots=Snapshots(tmp_path))
        await world.propose(*cluster(2))
        await asyncio.sleep(1)

        def hopeless(*_, decided, **__):
            raise StepUnprovable(2, 0, "", "its header cannot be encoded")

        broken(leadership, "cut_into_frames", hopeless)
        await world.propose(ask("one"))
        await asyncio.wait_for(process.task, 60)
        assert process.member.role == "failed"
        assert "StepUnprovable" in str(process.member.failure)
        files = sorted((tmp_path / "faults").iterdir(), key=lambda file: file.stat().st_mtime_ns)
        found = bundle.read(files[-1].read_bytes())
        assert found.kind == "frame"
        assert "StepUnprovable" in found.traceback
        broken.mend()
        await world.end()

    simulate(story())


# ------------------------------------------------------------------- how it goes on


@told
async def test_what_is_set_aside_stays_so_in_another_process(world, broken):
    """The mark is in the log: whoever leads next passes the ask over, and so does a restart."""
    first = world.start()
    await waits(world)
    broken.fold(AllocationBound, lambda event: event.ask == BAD)
    await make_room(world)
    await asyncio.sleep(5)
    await first.kill()
    second = world.start()
    await asyncio.sleep(10)
    assert second.member.role == "leading"
    await world.propose(ask("more"))
    history = await ended(world, broken)
    assert suspended(history) == [("ask", BAD)]
    assert {"last", "more"} <= bound(history)


@told
async def test_a_standby_that_takes_over_in_the_middle_contains_it_too(world, broken):
    """What one process has learned and not yet written, another learns by itself."""
    await world.start_two()
    broken.fold(AskSubmitted, lambda event: event.ask == BAD)
    await world.propose(*cluster(2), ask(BAD), ask("last"))
    await asyncio.sleep(0.02)
    await world.processes[0].kill()
    history = await ended(world, broken)
    assert [one.code for one in history.only(InputRejected)] == ["internal-error"]
    assert bound(history) == {"web-0", "web-1", "last"}


@pytest.mark.parametrize("ends", ["submitted", "withdrawn", "application", "configuration"])
def test_how_the_suspension_of_an_ask_ends(broken, ends):
    """Its owner submits it again or withdraws it, its application is removed, or the configuration is applied again."""

    async def story():
        world = World()
        world.start()
        await waits(world)
        broken.fold(AllocationBound, lambda event: event.ask == BAD)
        await make_room(world)
        await asyncio.sleep(5)
        broken.mend()
        (again,) = {
            "submitted": [AskSubmitted(**_fields(ask(BAD)), proposal="again")],
            "withdrawn": [AskWithdrawn(ask=BAD, proposal="again")],
            "application": [ApplicationRemoved(application="web", proposal="again")],
            "configuration": [queues(name="again")],
        }[ends]
        await world.propose(again)
        await asyncio.sleep(5)
        history = await world.end()
        assert not history.engine.state.suspended
        assert not history.only(InputRejected)
        assert (BAD in bound(history)) == (ends in {"submitted", "configuration"})

    simulate(story())


def _fields(one):
    return {"ask": one.ask, "application": one.application, "resources": one.resources}


@told
async def test_an_ask_that_raises_still_is_set_aside_again(world, broken):
    """Applying a configuration before the fault is mended costs a term and nothing else."""
    world.start()
    await waits(world)
    broken.fold(AllocationBound, lambda event: event.ask == BAD)
    await make_room(world)
    await asyncio.sleep(5)
    await world.propose(queues(name="again"))
    await asyncio.sleep(5)
    await world.propose(release("web-2"), ask("more"))
    history = await ended(world, broken)
    assert suspended(history) == [("ask", BAD)] * 2
    assert {"last", "more"} <= bound(history)


def test_a_failure_leaves_a_file_that_fails_again(broken, tmp_path, capsys):
    """It holds the state before and the proposals; the command says that it fails, and that it does not once it is mended."""

    async def story():
        world = World()
        world.start(snapshots=Snapshots(tmp_path / "snapshots"))
        await world.propose(*cluster(2))
        await asyncio.sleep(1)
        broken.fold(AskSubmitted, lambda event: event.ask == BAD)
        await world.propose(ask(BAD), ask("last"))
        await asyncio.sleep(10)
        (file,) = (tmp_path / "snapshots" / "faults").iterdir()
        assert file.stat().st_mode & 0o077 == 0
        found = bundle.read(file.read_bytes())
        assert (found.kind, [one.input.ask for one in found.proposals]) == ("input", [BAD, "last"])
        assert "Sabotage: AskSubmitted is broken" in found.traceback
        again = bundle.take(found)
        assert (again.kind, again.place) == (found.kind, found.place)
        assert replay(file) == 0
        broken.mend()
        assert [type(one) for one in bundle.take(found)][:2] == [AskSubmitted] * 2
        assert replay(file, json=True) == 1
        assert '"reproduced":false' in capsys.readouterr().out.replace(" ", "")
        await world.end()

    simulate(story())


def test_at_most_ten_files_are_left(broken, tmp_path):
    """A flood of failures fills no disk."""

    async def story():
        world = World()
        world.start(snapshots=Snapshots(tmp_path))
        broken.fold(AskSubmitted, lambda event: event.ask.startswith(BAD))
        await world.propose(*cluster(2), *(ask(f"{BAD}-{number}") for number in range(15)))
        await asyncio.sleep(10)
        assert len(list((tmp_path / "faults").iterdir())) == 10
        history = await ended(world, broken)
        assert len(history.only(InputRejected)) == 15

    simulate(story())


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b'{"format":2}'])
def test_a_file_that_is_no_bundle_is_named(tmp_path, data):
    """It is the caller's mistake, told with the name of the file."""
    file = tmp_path / "other.json"
    file.write_bytes(data)
    with pytest.raises(CommandError, match=r"other\.json"):
        replay(file)

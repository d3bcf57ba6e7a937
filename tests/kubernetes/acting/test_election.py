"""Which agent acts: the rules of the Lease, on a clock that the test moves."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evsched.agents.kubernetes.acting.election import (
    LASTS_S,
    RENEWED_WITHIN_S,
    ElectionClock,
    LeaseElection,
)
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer
from evsched.agents.kubernetes.acting.session import act_while_elected
from tests.kubernetes.acting.standin import StandInApi

LEASE = "evsched/evsched-agent"


class Candidates:
    """Several candidates for one Lease, each of which may be cut off from the API server.

    Attributes:
        now: Seconds of the clock that all of them have, since candidates compare no clocks.
        cut: Who is cut off.
    """

    def __init__(self, count):
        self.api = StandInApi()
        self.now = 1000.0
        self.cut = set()
        self.all = [self._candidate(number) for number in range(count)]

    def _candidate(self, number):
        async def send(request):
            return ApiAnswer(0) if number in self.cut else self.api.answer(request)

        clock = ElectionClock(
            steady=lambda: self.now, moment=lambda: f"at {self.now}", sleep=self._sleep
        )
        return LeaseElection(send, "evsched", "evsched-agent", f"agent-{number}", clock)

    async def _sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    async def turn(self, number):
        """Let a candidate look at the Lease once."""
        await self.all[number]._try()

    @property
    def holders(self):
        """Return who may act now."""
        return [number for number, one in enumerate(self.all) if one.holds()]


@pytest.fixture
def two():
    """Return two candidates."""
    return Candidates(2)


async def test_the_first_takes_it_and_the_others_wait(two):
    """The Lease names its holder as Kubernetes' own components do."""
    for number in (0, 1, 0, 1):
        await two.turn(number)
    assert two.holders == [0]
    spec = two.api.objects["Lease"][LEASE]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("agent-0", LASTS_S)
    assert spec["leaseTransitions"] == 0


async def test_a_holder_that_is_cut_off_stops_before_another_may_begin(two):
    """It counts from before it asked for the last renewal; the other from when it saw that."""
    await two.turn(0)
    await two.turn(1)
    two.cut.add(0)
    two.now += RENEWED_WITHIN_S - 0.001
    await two.turn(1)
    assert two.holders == [0]
    two.now += 0.001
    await two.turn(1)
    assert two.holders == []
    two.now += LASTS_S - RENEWED_WITHIN_S
    await two.turn(1)
    assert two.holders == [1]
    assert two.api.objects["Lease"][LEASE]["spec"]["leaseTransitions"] == 1


async def test_a_lease_that_is_given_back_is_taken_at_once(two):
    """Nobody waits for an agent that was told to stop."""
    await two.turn(0)
    await two.turn(1)
    await two.all[0].release()
    await two.turn(1)
    assert two.holders == [1]


async def test_of_two_that_take_it_at_the_same_time_one_has_it(two):
    """The version of the Lease is the precondition of each write."""
    await two.turn(0)
    await two.all[0].release()
    read = await two.all[1]._read()
    await two.turn(0)
    answer = await two.all[1]._send(two.all[1]._wanted(read))
    assert answer.code == 409
    assert two.holders == [0]


@given(
    st.lists(
        st.tuples(st.sampled_from(["turn", "cut", "mend", "wait"]), st.integers(0, 2)), max_size=60
    )
)
def test_never_do_two_agents_act(steps):
    """Whatever is cut off, mended and waited for, and in whatever order they look at the Lease."""
    made = Candidates(3)
    for what, number in steps:
        if what == "turn":
            asyncio.run(made.turn(number))
        elif what == "cut":
            made.cut.add(number)
        elif what == "mend":
            made.cut.discard(number)
        else:
            made.now += (0.5, 2.0, 7.0)[number]
        assert len(made.holders) <= 1


async def test_an_agent_acts_while_it_holds_the_lease_and_begins_again_when_it_is_back():
    """Cut off, it is stopped; back again, it acts anew; told to stop, it gives the Lease back."""
    made = Candidates(1)
    begun, stopped = asyncio.Queue(), asyncio.Queue()

    async def act():
        begun.put_nowait(made.now)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.put_nowait(made.now)

    work = asyncio.create_task(act_while_elected(made.all[0], act))
    await begun.get()
    made.cut.add(0)
    await stopped.get()
    made.cut.clear()
    await begun.get()
    work.cancel()
    await asyncio.wait({work})
    assert made.api.objects["Lease"][LEASE]["spec"]["holderIdentity"] == ""

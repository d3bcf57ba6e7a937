"""Time as a leader stamps it, and which process is which."""

import subprocess
import sys

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from evsched.service.environment import AHEAD_MS, TOLERATED_MS, BoundedClock, RecordTime
from evsched.service.process_identity import own_name, surely_gone


class Hand:
    """A clock that is moved by hand; the wall's is set at will, the other only goes on."""

    def __init__(self):
        self.wall = 1_000_000
        self.seconds = 0.0

    def now(self):
        """Return the wall's time."""
        return self.wall

    def elapsed(self):
        """Return the seconds that really passed."""
        return self.seconds

    def passes(self, ms):
        """Let time pass."""
        self.wall += ms
        self.seconds += ms / 1000


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(-(10**7), 10**7))),
    st.integers(-(10**6), 10**6),
)
def test_it_never_goes_back_and_never_stands_still_for_long(moves, ahead):
    """Whatever is done to the clock: from any moment on, as much time passes in the record as really does, or more."""
    hand = Hand()
    time = RecordTime(hand, hand.wall + ahead)
    last, shown = time.now(), 0.0
    for passed, jump in moves:
        hand.passes(passed)
        hand.wall += jump
        now = time.now()
        assert now >= last
        assert now >= hand.wall
        shown += passed
        last = now
    before = time.now()
    hand.passes(10_000)
    assert time.now() - before >= 10_000 - TOLERATED_MS - 1


def test_many_looks_do_not_slow_it_down():
    """A clock that was set back an hour: asked every third of a millisecond, ten seconds are still ten seconds."""
    hand = Hand()
    time = RecordTime(hand, hand.wall)
    begin = time.now()
    hand.wall -= 3_600_000
    for _ in range(30_000):
        hand.seconds += 1 / 3000
        time.now()
    assert abs(time.now() - begin - 10_000) <= 1


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(-(10**9), 10**9))))
def test_a_jump_ahead_is_not_followed(moves):
    """Whatever is done to the clock: the time is never further ahead than the bound, and else it is the clock's."""
    hand = Hand()
    clock = BoundedClock(hand)
    most = hand.wall
    for passed, jump in moves:
        hand.passes(passed)
        hand.wall += jump
        found = clock.now()
        most += passed
        assert found <= most + AHEAD_MS + 1
        assert found == hand.wall or hand.wall > most + AHEAD_MS - 1
        most = max(most, found)


def test_a_day_ahead_moves_nothing_and_is_told_once():
    """The time goes on at its pace, over several terms, until the clock is right again."""
    structlog.reset_defaults()
    hand = Hand()
    clock = BoundedClock(hand)
    begin = clock.now()
    hand.wall += 86_400_000
    with capture_logs() as lines:
        for _ in range(3):
            time = RecordTime(clock, clock.now())
            hand.passes(1_000)
            time.now()
    assert clock.now() == begin + 3_000
    assert [(line["event"], line["by_ms"]) for line in lines] == [("clock ahead", 86_400_000)]
    hand.wall -= 86_400_000
    hand.passes(1_000)
    assert clock.now() == hand.wall == begin + 4_000


@pytest.mark.parametrize("jump", [-3_600_000, AHEAD_MS, 1])
def test_a_clock_that_is_set_back_or_a_little_ahead_is_followed(jump):
    """Also when it comes back to where it was."""
    hand = Hand()
    clock = BoundedClock(hand)
    for step in (jump, -jump if jump < 0 else 0):
        hand.wall += step
        assert clock.now() == hand.wall


def test_a_process_is_gone_when_it_has_ended():
    """While it runs, while it waits to be buried, and after; nobody else's name is ever thought gone."""
    script = "from evsched.service.process_identity import own_name; print(own_name(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        name = child.stdout.readline().strip()
        assert not surely_gone(name)
        child.kill()
        child.wait()
        if own_name():
            assert surely_gone(name)
            assert surely_gone(f"{name}0")
    for foreign in ("", "x", "another/pid:[1]/1/1", f"{own_name().partition('/')[0]}/pid:[0]/1/1"):
        assert not surely_gone(foreign)
    assert not surely_gone(own_name())

"""Functions of the core that raise for one id, and what is told of the services that meet them."""

import asyncio

from events.vocabulary import AllocationBound, DecisionSuspended
from evsched.core import reducer
from tests.service.inputs import ask, cluster, release
from tests.service.test_member import World
from tests.service.virtual import simulate

BAD = "bad"


class Sabotage(RuntimeError):
    """What a broken function raises."""


class Broken:
    """Lets other functions raise where their arguments say so; `mend` takes it back."""

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def __call__(self, place, name, when):
        """Let a function raise when its arguments say so."""
        honest = getattr(place, name)

        def function(*arguments, **named):
            if when(*arguments, **named):
                raise Sabotage(f"{name} is broken")
            return honest(*arguments, **named)

        self._patch.setattr(place, name, function)

    def fold(self, kind, when):
        """Let the fold of these events raise."""
        honest, has_proposal = reducer._FOLDS[kind]

        def fold(state, event):
            if when(event):
                raise Sabotage(f"{kind.__name__} is broken")
            honest(state, event)

        self._patch.setitem(reducer._FOLDS, kind, (fold, has_proposal))

    def few(self, place, name, number):
        """Let a bound be another one."""
        self._patch.setattr(place, name, number)

    def mend(self):
        """Let everything be as it was."""
        self._patch.undo()


def told(story):
    """Make a test of a story: it is given a new world, and the fixture, and runs in virtual time."""

    def test(broken):
        simulate(story(World(), broken))

    test.__doc__ = story.__doc__
    return test


def suspended(history):
    """Return what was set aside: kinds and subjects."""
    return [(one.kind, one.subject) for one in history.only(DecisionSuspended)]


def bound(history):
    """Return the asks that were bound."""
    return {one.ask for one in history.only(AllocationBound)}


async def waits(world):
    """Fill the node, and let two asks wait: the bad one and the last one."""
    await world.propose(*cluster(5), ask(BAD), ask("last"))
    await asyncio.sleep(1)


async def make_room(world, *more):
    """Let two asks be bound, and propose more."""
    await world.propose(release("web-0"), release("web-1"), *more)


async def ended(world, broken, seconds=10):
    """Give time, mend what was broken, hold the log against all rules by honest code; return it."""
    await asyncio.sleep(seconds)
    assert any(one.alive and one.member.role == "leading" for one in world.processes)
    broken.mend()
    return await world.end()

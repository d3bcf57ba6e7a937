"""Random histories of both families, as the steps of a log."""

from __future__ import annotations

from random import Random

from events import vocabulary as v
from evsched.core.engine import Engine
from tests.core.histories import configurations as trees
from tests.core.histories import histories
from tests.core.kueue.cohorts import START, configuration
from tests.core.kueue.test_history import step_of
from tests.replays.logs import taken

STEPS = 24


def kueue(seed, steps=STEPS):
    """Return the steps of a partition of ClusterQueues that is used at random."""
    dice = Random(seed)
    engine = Engine()
    spec = configuration(dice, fair=seed % 2 == 0)
    found = [(START, engine.lead(START, 1, "leader-1", 50), 0)]
    inputs = [v.ConfigurationApplied(configuration=spec)]
    time, position = START, 0
    for number in range(steps):
        proposals = [v.Proposal(input=one, position=position + at) for at, one in enumerate(inputs)]
        position += len(proposals)
        found.append((time, engine.step(time, proposals), position))
        time += dice.choice((0, 1, 1000, 7000))
        inputs = step_of(dice, engine, number)
    return [step for step in found if step[1]]


def yunikorn(drawn):
    """Return the steps of a tree of queues that is used at random; ``drawn`` is of `trees` and `histories`."""
    return taken(*drawn)


__all__ = ["histories", "kueue", "trees", "yunikorn"]

"""The simulation finds bugs: each sabotage of the service is found by a checker within a few stories."""

import pytest

from tests.simulation.checkers.found import Found
from tests.simulation.damage import Edited, TailLost
from tests.simulation.judging import judge
from tests.simulation.sabotages import SABOTAGES
from tests.simulation.story import run

SEEDS = 500
LATE = {
    "a clock that is wrong at the start is believed": (41,),
    "timers begin anew with a term": (5,),
    "a lease is measured by the wall clock": (12,),
    "a clock that jumps ahead is believed": (17,),
}
"""Stories that showed it last time, where the first that does is late; they are told first."""


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_found(name):
    """Some story within 500 shows it, by what a checker says and not by a crash of the simulation."""
    with pytest.raises(Found):
        _tell(name)


def _tell(name):
    sabotage = SABOTAGES[name]
    for seed in (*LATE.get(name, ()), *range(SEEDS)):
        with sabotage.patch():
            outcome = run(seed, sabotage.story)
        if sabotage.story not in (TailLost, Edited):
            judge(outcome)

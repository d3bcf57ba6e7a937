"""Many failures behind each other: a term goes back to its last good state as often as it has to."""

import asyncio

from events.vocabulary import AskSubmitted, InputRejected
from evsched.service import savepoint
from tests.service.breaking import BAD, ended, told
from tests.service.inputs import ask, cluster, release


@told
async def test_any_number_of_bad_proposals_costs_one_term(world, broken):
    """The one behind the first failure keeps a state to go back to; good ones among them are taken in order."""
    world.start()
    broken.fold(AskSubmitted, lambda event: event.ask.startswith(BAD))
    await world.propose(*cluster(2))
    await asyncio.sleep(1)
    asks = [ask(f"{BAD}-{number}" if number % 3 else f"good-{number}") for number in range(100)]
    await world.propose(*asks, release("web-0"))
    history = await ended(world, broken)
    refused = [one.proposal for one in history.only(InputRejected) if one.code == "internal-error"]
    assert refused == [f"ask:{one.ask}" for one in asks if one.ask.startswith(BAD)]
    assert [one.ask for one in history.only(AskSubmitted)][2:] == [
        f"good-{n}" for n in range(0, 100, 3)
    ]
    assert "web-0" not in history.engine.state.allocations
    assert world.processes[0].member.term == 2


@told
async def test_the_state_to_go_back_to_is_kept_as_long_as_there_is_trouble(world, broken):
    """It is kept anew when much was written since, and dropped when no step failed meanwhile; then a failure costs a term."""
    world.start()
    broken.few(savepoint, "MOST_EVENTS", 10)
    broken.fold(AskSubmitted, lambda event: event.ask.startswith(BAD))
    await world.propose(*cluster(2))
    terms = []
    for rounds, batch in enumerate((2, 2, 0, 2)):
        asks = [
            ask(f"{BAD if number < batch else 'good'}-{rounds}-{number}") for number in range(12)
        ]
        await world.propose(*asks)
        await asyncio.sleep(5)
        terms.append(world.processes[0].member.term)
    assert terms == [2, 2, 2, 3]
    await ended(world, broken)

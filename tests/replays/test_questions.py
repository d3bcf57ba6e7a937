"""The questions: functions from a history and a typed question to a typed answer, with schemas that are checked in."""

from pathlib import Path

import msgspec
import pytest

import replays.questions
from events import vocabulary as v
from replays.history.rebuild import History
from replays.questions import QUESTIONS, schemas
from tests.replays.logs import sealed, story, written

FOLDER = Path(replays.questions.__file__).parent
ASK = v.AskSubmitted(ask="new", application="new", queue="root.prod", resources={"vcore": 1000})


def test_the_schemas_are_those_of_the_types():
    """After a change of a question or an answer: ``python -m replays.questions``."""
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.json")} == schemas()


ASKED = {
    "at": {"view": "queues"},
    "diff": {"before": {"seq": 5}},
    "explain": {"subject": "prod-1", "moment": {"seq": 21}},
    "plan": {"ask": msgspec.to_builtins(ASK)},
    "whatif": None,
    "bisect": {"expression": "allocations > 3"},
    "forecast": {"subject": "root.prod", "moment": {"seq": 21}, "runs": 2, "backtest": 1},
    "verify": {},
    "shadow": {"rules": 2},
    "shadow-free": {"rules": 2},
    "status": {"inbox_end": 99},
}


@pytest.mark.parametrize("name", sorted(ASKED.keys() - {"whatif"}))
async def test_a_question_that_comes_as_a_document_is_answered_by_one(name):
    """What an interface has to do: read the question, ask the library, write the answer, which can be read again."""
    kind = QUESTIONS[name]
    asked = msgspec.json.decode(msgspec.json.encode(ASKED[name]), type=kind.question)
    history = History(await written(sealed(story())))
    answer = await kind.ask(history, asked)
    assert type(answer) is kind.answer
    document = msgspec.json.encode(answer)
    again = msgspec.json.decode(document, type=kind.answer)
    assert msgspec.json.encode(again) == document
    assert await kind.ask(history, asked) == answer


async def test_another_configuration_comes_as_a_document_too():
    """The one in force, tried on what happened, changes nothing."""
    history = History(await written(sealed(story())))
    in_force = (await history.at(replays.questions.AtQuestion().moment)).state.configuration
    kind = QUESTIONS["whatif"]
    document = msgspec.json.encode(kind.question(configurations=(in_force,)))
    answer = await kind.ask(history, msgspec.json.decode(document, type=kind.question))
    assert (answer.identical, answer.changes) == (True, ())


def test_every_question_of_the_command_line_is_in_the_library():
    """Each has a function of its own; audit and timeline are asked of a read model and tried with it."""
    assert set(QUESTIONS) == ASKED.keys() | {"audit", "timeline"}
    assert len({kind.ask for kind in QUESTIONS.values()}) == len(QUESTIONS)

"""The schemas that are checked in are those of the types."""

from pathlib import Path

import events.schemas
from events.schemas import schemas
from events.vocabulary import AnyEvent, AnyInput

FOLDER = Path(events.schemas.__file__).parent


def test_the_schemas_are_those_of_the_types() -> None:
    """After a change of the vocabulary: ``python -m events.schemas``."""
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.json")} == schemas()


def test_every_event_type_is_described() -> None:
    """Each type has its definition, and a proposal can be nothing but an input."""
    made = schemas()
    for kind in AnyEvent.__args__:
        assert f'"{kind.__name__}": {{' in made["event.json"].decode()
    decisions = {kind.__name__ for kind in AnyEvent.__args__} - {
        kind.__name__ for kind in AnyInput.__args__
    }
    assert decisions
    for name in decisions:
        assert f'"{name}": {{' not in made["proposal.json"].decode()

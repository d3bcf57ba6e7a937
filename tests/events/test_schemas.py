"""The schemas that are checked in are those of the types."""

from pathlib import Path

import msgspec

import events.schemas
from events.schemas import VERSION, schemas
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


def test_the_schema_of_proposals_describes_what_is_accepted() -> None:
    """No field that the log alone gives, and no field that is not named: both are refused."""
    made = msgspec.json.decode(schemas()["proposal.json"])
    for name, definition in made["$defs"].items():
        if "properties" in definition:
            assert definition["additionalProperties"] is False, name
    for kind in AnyInput.__args__:
        fields = set(made["$defs"][kind.__name__]["properties"])
        assert fields == {"type", *kind.__struct_fields__} - {"seq", "cause", "due"}
    # What an event of a log holds is open, as readers ignore what a newer leader added.
    event = msgspec.json.decode(schemas()["event.json"])["$defs"]["NodeRemoved"]
    assert "additionalProperties" not in event
    assert "seq" in event["properties"]


def test_every_schema_says_which_one_it_is() -> None:
    """A name that is the same everywhere, and a version."""
    for file, content in schemas().items():
        made = msgspec.json.decode(content)
        name = file.removesuffix(".json")
        assert made["$id"] == f"urn:evsched:schema:{name}:{made['version']}"
        assert made["version"] == VERSION

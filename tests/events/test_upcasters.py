"""Old logs stay readable when an event type was replaced: upcasters, at work on an example."""

from collections.abc import Iterator

import msgspec
import pytest

from events.chain import ChainReader
from events.cloudevents import InboxRecord, read_proposal
from events.errors import LogDamaged
from events.frame import decode_event
from events.upcasters import UPCASTERS, RawDocument, upcast
from events.vocabulary import InputRejected, NodeRegistered

OLD = {"type": "MachineAdded", "machine": "m", "cores": 4, "seq": 2, "proposal": "p"}
NEW = NodeRegistered(node="m", capacity={"cpu": 4000}, seq=2, proposal="p")


def first(event: RawDocument) -> RawDocument:
    """Turn the first version into the second: a machine has millicores."""
    return {"type": "MachineAdded2", "machine": event["machine"], "cpu": event["cores"] * 1000}


def second(event: RawDocument) -> RawDocument:
    """Turn the second version into today's."""
    return {
        "type": "NodeRegistered",
        "node": event["machine"],
        "capacity": {"cpu": event["cpu"]},
        "seq": 99,
    }


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register upcasters for two types that never were."""
    monkeypatch.setitem(UPCASTERS, "MachineAdded", first)
    monkeypatch.setitem(UPCASTERS, "MachineAdded2", second)
    return


def frame(*events: RawDocument) -> bytes:
    """Return a genesis frame's bytes as an old version might have written them, with these events in a second frame."""
    head = {"log_id": "l", "term": 1, "leader": "x", "time": 0}
    return msgspec.json.encode({**head, "frame": 2, "prev": "", "events": list(events)})


def test_an_old_event_is_read_as_its_successor(machines: None) -> None:
    """Over as many versions as there were; what belongs to every event stays."""
    assert decode_event(msgspec.json.encode(OLD)) == NEW


def test_a_frame_with_old_events_is_read_and_its_hash_is_that_of_its_bytes(machines: None) -> None:
    """The chain is over what was written, not over what it means today."""
    genesis = msgspec.json.encode(
        {"log_id": "l", "term": 1, "leader": "x", "frame": 1, "prev": "", "time": 0, "decided": False,
         "events": [{"type": "LeaderStarted", "seq": 1, "term": 1, "leader": "x"}]}
    )  # fmt: skip
    reader = ChainReader()
    reader.accept(genesis, 0)
    data = frame(OLD).replace(b'"prev":""', b'"prev":"%s"' % reader.head.hash.encode())
    step = reader.accept(data, 1)
    assert step is not None
    assert step.events == (NEW,)


def test_an_old_input_inside_a_rejection_is_read_too(machines: None) -> None:
    """A refused proposal is kept in the log as it was."""
    rejected = decode_event(
        msgspec.json.encode({"type": "InputRejected", "reason": "r", "input": OLD})
    )
    assert isinstance(rejected, InputRejected)
    assert rejected.input == NEW


def test_an_old_producer_is_understood(machines: None) -> None:
    """Proposals are brought up to date as well; one that cannot be is a problem and not a crash."""
    old = {name: value for name, value in OLD.items() if name != "seq"}
    assert read_proposal(
        InboxRecord(data=msgspec.json.encode(old | {"type": "MachineAdded"})), 0
    ).problem.startswith("proposal: sets seq"), (
        "the example's second upcaster makes up a seq, which no proposal may have"
    )
    broken = read_proposal(InboxRecord(data=b'{"type":"MachineAdded"}'), 0)
    assert broken.input is None
    assert "cannot be brought up to date: KeyError" in broken.problem


def test_without_an_upcaster_an_unknown_type_is_damage() -> None:
    """A reader that does not know what happened must not go on."""
    with pytest.raises(LogDamaged, match="MachineAdded"):
        ChainReader().accept(frame(OLD), 0)


def test_upcasters_in_a_circle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the registry is found at the first old event."""
    monkeypatch.setitem(UPCASTERS, "A", lambda event: {"type": "B"})
    monkeypatch.setitem(UPCASTERS, "B", lambda event: {"type": "A"})
    with pytest.raises(ValueError, match="go in a circle"):
        upcast({"type": "A"})

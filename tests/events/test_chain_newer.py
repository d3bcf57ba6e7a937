"""What a newer release wrote is told apart from damage, and from what readers pass over anyway."""

import msgspec
import pytest

from events.chain import ChainReader
from events.errors import LogDamaged, WrittenByNewer
from events.frame import encode_frame
from events.vocabulary import LeaderStarted
from tests.events.test_chain import Writer, changed, read


def newer(data: bytes, kind: str = "FromTheFuture") -> bytes:
    """Return a frame with an event of a type that this release does not know in place of its own."""
    document = msgspec.json.decode(data)
    document["events"] = [{"type": kind, "seq": event["seq"]} for event in document["events"]]
    return msgspec.json.encode(document)


def led() -> Writer:
    """Return a writer that leads an empty log."""
    writer = Writer("a", [])
    writer.lead()
    return writer


def behind(writer: Writer) -> ChainReader:
    """Return a reader at the end of a log whose leader is of a later release."""
    reader, _ = read(writer.log)
    reader.release = "0.9.0"
    return reader


def test_an_unknown_event_type_is_newer_not_damaged() -> None:
    """It names the type, the place, and the release of the leader that wrote it."""
    writer = led()
    step = writer.step()[0].data
    reader = behind(writer)
    with pytest.raises(
        WrittenByNewer, match=r"release 0\.9\.0: event type 'FromTheFuture'"
    ) as raised:
        reader.accept(newer(step), 1)
    assert raised.value.position == 1


def test_a_refused_input_of_an_unknown_type_is_newer_too() -> None:
    """A refusal carries its input, whose type may be as new."""
    writer = led()
    document = msgspec.json.decode(writer.step()[0].data)
    document["events"] = [
        {"type": "InputRejected", "seq": 2, "reason": "no", "input": {"type": "Later"}}
    ]
    reader = behind(writer)
    with pytest.raises(WrittenByNewer, match="event type 'Later'"):
        reader.accept(msgspec.json.encode(document), 1)


def test_a_frame_that_requires_something_unknown_is_newer() -> None:
    """A later release can add what no reader may ignore."""
    writer = led()
    reader = behind(writer)
    with pytest.raises(WrittenByNewer, match="a frame that requires 'compression'"):
        reader.accept(changed(writer.step()[0].data, requires=("compression",)), 1)


def test_an_unknown_type_in_pieces_is_newer() -> None:
    """A large event travels in fragments, and its type shows when it is whole."""
    writer = led()
    parts = writer.step(1, limit=2_000, size=9_000)
    assert len(parts) > 1
    reader = behind(writer)
    *first, last = [part.data.replace(b"NodeUpdated", b"NodeDissolved") for part in parts]
    for position, data in enumerate(first, start=1):
        reader.accept(changed(data, prev=reader.tip.hash), position)
    with pytest.raises(WrittenByNewer, match="event type 'NodeDissolved'"):
        reader.accept(changed(last, prev=reader.tip.hash), len(parts))


def test_what_does_not_follow_is_damage_whatever_it_holds() -> None:
    """Only a frame that carries the hash of the last one was written by a leader of this log."""
    writer = led()
    forged = newer(changed(writer.step()[0].data, prev="0" * 32))
    reader, _ = read(writer.log)
    with pytest.raises(LogDamaged, match="no frame can be read"):
        reader.accept(forged, 1)


def test_a_leader_from_before_releases_were_named_wrote_no_unknown_type() -> None:
    """All that 0.1.0 wrote is known for ever, so in its terms an unknown type is damage."""
    writer = led()
    reader, _ = read(writer.log)
    with pytest.raises(LogDamaged, match="no frame can be read"):
        reader.accept(newer(writer.step()[0].data), 1)


def test_a_superseded_leader_of_a_newer_release_is_passed_over() -> None:
    """Its frames are void, so nobody needs to understand them."""
    writer = led()
    late = newer(writer.step()[0].data)
    other = Writer("b", writer.log)
    other.lead()
    reader, _ = read(writer.log)
    assert reader.accept(late, 2) is None
    assert reader.ignored == 1


def test_a_fence_names_rules_record_and_release() -> None:
    """They stay out of the log while they are those of 0.1.0, so that its bytes are the same."""
    writer = led()
    reader, steps = read(writer.log)
    (started,) = steps[0].events
    assert isinstance(started, LeaderStarted)
    assert (started.rules, started.record, reader.release) == (1, 1, "")
    assert b"rules" not in writer.log[0]
    assert b"requires" not in encode_frame(writer.step()[0].frame)

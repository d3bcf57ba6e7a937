"""The wire form: CloudEvents headers as the Kafka binding has them, and an inbox that nothing can poison."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.bounds import MAX_PROPOSAL_BYTES, RAW_KEPT, printable
from events.cloudevents import (
    InboxRecord,
    frame_headers,
    proposal_headers,
    proposals,
    read_proposal,
    record_of_message,
    rfc3339,
    uri_reference,
)
from events.frame import FrameHeader, decode_event, decode_input, encode_event
from events.vocabulary import AskSubmitted, InputRejected, NodeRegistered, NodeRemoved, Proposal
from tests.examples import examples

CONFIGURATION = b'{"type":"ConfigurationApplied","configuration":{"format":"yunikorn","root":{"name":"root",%s}}}'
RULES = b'{"type":"ConfigurationApplied","configuration":{"format":"yunikorn","root":{"name":"r"},"placement_rules":[%s]}}'


def read(data: bytes, **more: str) -> Proposal:
    """Return what the leader makes of these bytes at position 7."""
    return read_proposal(InboxRecord(data=data, **more), 7)


def test_a_frame_travels_as_a_cloudevent() -> None:
    """All attributes that CloudEvents 1.0 requires, and the type of the content."""
    header = FrameHeader(log_id="log1", term=3, leader="me", frame=12, time=1_700_000_000_123)
    assert dict(frame_headers(header, 4)) == {
        "ce_specversion": b"1.0",
        "ce_id": b"log1/3/me/12",
        "ce_source": b"/evsched/log1",
        "ce_type": b"evsched.frame.v1",
        "ce_subject": b"4",
        "ce_time": b"2023-11-14T22:13:20.123Z",
        "content-type": b"application/json",
    }


def test_a_proposal_travels_as_a_cloudevent_and_comes_back() -> None:
    """Id and source are in the headers; the value is the input's JSON alone."""
    (record,) = proposals([NodeRemoved(node="n", proposal="p1")], "me")
    headers = proposal_headers(record, 0, 0)
    assert dict(headers)["ce_type"] == b"evsched.proposal.NodeRemoved"
    assert dict(headers)["ce_time"] == b"1970-01-01T00:00:00.000Z"
    back = record_of_message(record.data, headers)
    assert read_proposal(back, 3) == Proposal(
        input=NodeRemoved(node="n", proposal="p1"), position=3, id="p1", source="me"
    )


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**53, "9999-12-31T23:59:59.999Z"),
        (-(2**53), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_any_time_can_be_written(time: int, text: str) -> None:
    """Simulations may begin anywhere; years that RFC 3339 cannot write are drawn to the nearest end."""
    assert rfc3339(time) == text


POISON = {
    "nothing": (b"", "is empty"),
    "no JSON": (b"{", "is not JSON"),
    "no text": (b'{"type":"\xff"}', "is not JSON"),
    "half a surrogate": (b'{"type":"NodeRemoved","node":"\\ud800"}', "is not JSON"),
    "too deep": (b"[" * 100_000, "proposal: is nested more than 72 deep"),
    "deep in a known field": (
        b'{"type":"NodeRegistered","node":"n","capacity":' + b'{"a":' * 50_000,
        "proposal: is nested more than 72 deep",
    ),
    "deep in a field that nobody knows": (
        b'{"type":"NodeRemoved","node":"n","new":' + b"[" * 72 + b"]" * 72 + b"}",
        "proposal: is nested more than 72 deep",
    ),
    "485 queues below each other": (
        CONFIGURATION
        % (b'"queues":[{"name":"q","parent":true,' * 485 + b'"name":"q"' + b"}]" * 485),
        "proposal: is nested more than 72 deep",
    ),
    "970 parents of a placement rule": (
        RULES % (b'{"name":"user","parent":' * 970 + b"{}" + b"}" * 970),
        "proposal: is nested more than 72 deep",
    ),
    "a grace time beyond 64 bits": (
        RULES % b'],"eviction_grace_ms":18446744073709551615,"limits":[',
        "<= 9007199254740992",
    ),
    "too large": (b'"' + b"x" * MAX_PROPOSAL_BYTES + b'"', f"at most {MAX_PROPOSAL_BYTES}"),
    "no object": (b"[1,2]", "Expected `object`"),
    "several inputs": (b'[{"type":"NodeRemoved","node":"a"}]', "Expected `object`"),
    "no type": (b'{"node":"n"}', "missing required field `type`"),
    "an unknown type": (b'{"type":"NodeExploded","node":"n"}', "NodeExploded"),
    "a decision": (b'{"type":"AllocationBound","ask":"a","node":"n"}', "AllocationBound"),
    "a wrong type of field": (b'{"type":"NodeRemoved","node":7}', "Expected `str`, got `int`"),
    "a missing field": (b'{"type":"NodeRemoved"}', "missing required field `node`"),
    "a negative amount": (b'{"type":"NodeRegistered","node":"n","capacity":{"cpu":-1}}', ">= 0"),
    "a huge amount": (
        b'{"type":"NodeRegistered","node":"n","capacity":{"cpu":1%s}}' % (b"0" * 30),
        "<= 9007199254740992",
    ),
    "an amount of 4,000 digits": (
        b'{"type":"NodeRegistered","node":"n","capacity":{"cpu":%s}}' % (b"9" * 4_000),
        "proposal: ",
    ),
    "a fraction": (
        b'{"type":"NodeRegistered","node":"n","capacity":{"cpu":1.5}}',
        "Expected `int`",
    ),
    "an empty name": (b'{"type":"NodeRemoved","node":""}', "length >= 1"),
    "its own seq": (b'{"type":"NodeRemoved","node":"n","seq":1}', "sets seq, cause or due"),
    "its own cause": (b'{"type":"NodeRemoved","node":"n","cause":1}', "sets seq, cause or due"),
    "its own due time": (b'{"type":"NodeRemoved","node":"n","due":0}', "sets seq, cause or due"),
    "a delay that is too long": (
        CONFIGURATION % (b'"quota_preemption_delay_ms":1' + b"0" * 30),
        "<= 9007199254740992",
    ),
    "a setting beyond 64 bits": (
        CONFIGURATION % (b'"max_applications":1' + b"0" * 30),
        "<= 9007199254740992",
    ),
}


@pytest.mark.parametrize("poison", POISON)
def test_poison_becomes_a_problem(poison: str) -> None:
    """Whatever a producer writes, the leader gets a reason, the beginning of it, and where it stood."""
    data, said = POISON[poison]
    proposal = read(data, id="p", source="evil")
    assert proposal.input is None
    assert said in proposal.problem
    assert proposal.problem.startswith("proposal: ")
    assert (proposal.position, proposal.id, proposal.source) == (7, "p", "evil")
    assert len(proposal.raw) <= RAW_KEPT


@examples(400)
@given(
    st.binary(max_size=300) | st.text(max_size=100).map(str.encode),
    st.text(max_size=300),
    st.text(max_size=300),
)
def test_nothing_makes_reading_fail(data: bytes, name: str, source: str) -> None:
    """Whatever is read can be written to the log as a rejection, and read again."""
    proposal = read(data, id=name, source=source)
    if proposal.input is None:
        event = InputRejected(
            seq=1,
            reason=proposal.problem,
            proposal=proposal.id,
            source=proposal.source,
            position=7,
            raw=proposal.raw,
        )
        assert msgspec.json.decode(encode_event(event), type=InputRejected) == event
        assert printable(proposal.raw)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = (
    "node",
    "capacity",
    "labels",
    "ask",
    "resources",
    "priority",
    "seq",
    "cause",
    "due",
    "created",
    "podsets",
)


@examples(400)
@given(
    st.sampled_from(["NodeRegistered", "AskSubmitted", "AllocationRestored", "X"]),
    st.dictionaries(st.sampled_from(FIELDS), json_values),
)
def test_nothing_that_looks_like_an_input_makes_reading_fail(
    kind: str, values: dict[str, object]
) -> None:
    """Known types with any values: an input that can be written again, or a problem."""
    proposal = read(msgspec.json.encode({"type": kind, **values}))
    if proposal.input is not None:
        assert decode_input(encode_event(proposal.input)) == proposal.input
        assert (proposal.input.seq, proposal.input.cause, proposal.input.due) == (0, 0, None)
        msgspec.msgpack.encode(proposal.input)
    else:
        assert proposal.problem


UNKNOWN = {
    "a slip of the pen, and what was meant": (
        b'{"type":"AskSubmitted","ask":"a","aplication":"x"}',
        "found the unknown field 'aplication', expected 'application'",
    ),
    "nothing that is near": (
        b'{"type":"NodeRemoved","node":"n","wxyz":1}',
        "found the unknown field 'wxyz', expected one of type, proposal, source, actor, node",
    ),
    "in an element of a list": (
        b'{"type":"AskSubmitted","ask":"a","podsets":[{"name":"p","resources":{},"resource":{}}]}',
        "found the unknown field 'resource' at `$.podsets[0]`, expected 'resources'",
    ),
    "deep in a configuration": (
        CONFIGURATION % b'"queues":[{"name":"a","maxumum":{"vcore":1}}]',
        "'maxumum' at `$.configuration.root.queues[0]`, expected 'maximum'",
    ),
    "in the value of a mapping": (
        (
            b'{"type":"ConfigurationApplied","configuration":{"format":"kueue","cluster_queues":'
            b'[{"name":"c","groups":[{"resources":["cpu"],"flavors":[{"flavor":"f","quotas":'
            b'{"cpu":{"nominal":1,"borowing_limit":2}}}]}]}]}}'
        ),
        "'borowing_limit'",
    ),
    "a seq, be it 0": (b'{"type":"NodeRemoved","node":"n","seq":0}', "sets seq, cause or due"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_field_that_no_proposal_has_is_refused(case: str) -> None:
    """It would pass for a default in silence; the refusal names it, its place and what is near."""
    data, said = UNKNOWN[case]
    proposal = read(data, id="p")
    assert proposal.input is None
    assert said in proposal.problem


def test_keys_that_are_free_are_no_unknown_fields() -> None:
    """Resources, labels and tags are called as their owners like, those of the log included."""
    data = b'{"type":"NodeRegistered","node":"n","capacity":{"seq":1},"labels":{"due":"no"}}'
    assert read(data).input == NodeRegistered(node="n", capacity={"seq": 1}, labels={"due": "no"})


def test_an_event_of_a_log_may_hold_what_its_reader_does_not_know() -> None:
    """A newer leader may say more than this version understands (record 4)."""
    data = b'{"type":"NodeRemoved","seq":1,"node":"n","new":1}'
    assert decode_event(data) == NodeRemoved(seq=1, node="n")


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"NodeRemoved","proposal":"mine"}',
        b'{"type":"NodeRemoved","node":"n","proposal":"mine","seq":4}',
        b'{"type":"Unheard","proposal":"mine"}',
        b'{"type":"NodeRemoved","node":7,"proposal":"mine"}',
        b'{"type":"NodeRemoved","node":"n","nodes":1,"proposal":"mine"}',
    ],
)
def test_a_refused_proposal_keeps_the_id_in_its_body(data: bytes) -> None:
    """Its producer waits for an answer to that id, whatever else is wrong, with a header or not."""
    assert read(data).id == "mine"
    assert read(data, id="outer").id == "mine"


def test_a_refused_proposal_without_an_id_takes_that_of_its_header() -> None:
    """Where the body is no JSON, or its id is no text, the header is all there is."""
    for data in (b"{", b"[]", b'{"proposal":7}', b""):
        assert read(data, id="outer").id == "outer"


SOURCES = {
    "/evsched/submit": "/evsched/submit",
    "urn:x:agent-7": "urn:x:agent-7",
    "https://host:80/a?b=c#d": "https://host:80/a?b=c#d",
    "my tool": "my%20tool",
    "tool: mine": "tool:%20mine",
    "my tool: one": "my%20tool%3A%20one",
    "100%": "100%25",
    "a%20b": "a%20b",
    "a#b#c": "a#b%23c",
    "käse": "k%C3%A4se",
    "a[0]": "a%5B0%5D",
    "\ud800": "?",
    "": "",
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_a_uri_reference(name: str) -> None:
    """What is one stays, anything else is escaped, and escaping again changes nothing."""
    assert uri_reference(name) == SOURCES[name]
    assert uri_reference(SOURCES[name]) == SOURCES[name]


@given(st.text(max_size=100))
def test_any_name_becomes_a_uri_reference(name: str) -> None:
    """Only letters of RFC 3986 are left, on every adapter the same, and the header has it as well."""
    (record,) = proposals([NodeRemoved(node="n")], name)
    assert re.fullmatch(r"([A-Za-z0-9\-._~:/?@!$&'()*+,;=#]|%[0-9A-Fa-f]{2})*", record.source)
    assert dict(proposal_headers(record, 0))["ce_source"].decode() in {
        record.source,
        "/evsched/unnamed",
    }


def test_the_id_in_the_input_wins_over_the_header() -> None:
    """A record without an id in its input takes that of its header; both may be missing."""
    assert read(b'{"type":"NodeRemoved","node":"n","proposal":"inner"}', id="outer").id == "inner"
    assert read(b'{"type":"NodeRemoved","node":"n"}', id="outer").id == "outer"
    assert read(b'{"type":"NodeRemoved","node":"n"}').id == ""


def test_an_id_that_is_too_long_is_a_problem() -> None:
    """The engine remembers ids, so they have a size."""
    proposal = read(b'{"type":"NodeRemoved","node":"n"}', id="x" * 200)
    assert proposal.input is None
    assert "200 characters" in proposal.problem
    assert proposal.id == "x" * 128


def test_hostile_headers_are_harmless() -> None:
    """Missing, repeated, without value, no text: the record is read all the same."""
    headers = [("ce_id", b"\xff"), ("ce_id", b"second"), ("ce_source", None), ("other", b"x")]
    record = record_of_message(None, headers)
    assert (record.id, record.source, record.data) == ("�", "", b"")


def test_what_controls_a_terminal_is_not_kept() -> None:
    """The beginning of poison is shown to people: no escape sequence, no new line survives in it."""
    raw = read(b"\x1b[31m\nforged line\xff").raw
    assert raw == "\\x1b[31m\\nforged line\\xff"


def test_an_ask_with_everything_survives_the_wire() -> None:
    """What is encoded is decoded again."""
    ask = AskSubmitted(
        ask="a",
        application="b",
        resources={"cpu": 2**53},
        priority=-(2**31),
        required_node="n",
        created=-5,
    )
    (record,) = proposals([ask])
    assert read(record.data).input == ask
    assert isinstance(
        read(proposals([NodeRegistered(node="n", capacity={})])[0].data).input, NodeRegistered
    )

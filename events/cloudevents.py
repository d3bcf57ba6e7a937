"""The wire form: CloudEvents 1.0, binary mode, as the Kafka protocol binding lays it down.

The record's value is the JSON text alone; what CloudEvents adds travels in headers ``ce_*`` and
``content-type``, so a frame's bytes (and its hash) are the same on every adapter. The record's key
is the cluster partition.

Frames come from a leader and are believed only through the chain. Proposals come from anyone:
`read_proposal` never raises, whatever the bytes, and says in ``problem`` why there is no input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import msgspec

from events.bounds import (
    MAX_ID,
    MAX_NAME,
    MAX_PROPOSAL_BYTES,
    MAX_SOURCE,
    RAW_KEPT,
    id_problem,
    printable,
)
from events.errors import ProposalTooLarge
from events.frame import (
    UNREADABLE,
    FrameHeader,
    NestedTooDeep,
    decode_input,
    encode_event,
    provenance_in,
)
from events.vocabulary import AnyInput, Proposal

SPEC_VERSION = "1.0"
CONTENT_TYPE = "application/json"
FRAME_TYPE = "evsched.frame.v1"
PROPOSAL_TYPE = "evsched.proposal."

Headers = tuple[tuple[str, bytes], ...]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_URI_LETTERS = "/?@!$&'()*+,;=%"


class InboxRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record of an inbox as it is written.

    Attributes:
        data: JSON of the input, or whatever a producer put there.
        id: The proposal's id (``ce_id``).
        source: Who proposes, a URI reference (``ce_source``).
        type: The input's type (``ce_type`` without its prefix), for those who browse the topic.
    """

    data: bytes
    id: str = ""
    source: str = ""
    type: str = ""


def rfc3339(time: int) -> str:
    """Return milliseconds since the epoch as RFC 3339 in UTC; what lies outside of the years 1 to 9999 is drawn to their ends."""
    bounded = min(max(time, -62_135_596_800_000), 253_402_300_799_999)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=bounded)
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + f".{bounded % 1000:03d}Z"


def frame_headers(header: FrameHeader, partition: int) -> Headers:
    """Return the headers of a frame's record. The id names the leader: of two frames of one number, one is void."""
    return _headers(
        id=f"{header.log_id}/{header.term}/{header.leader}/{header.frame}",
        source=f"/evsched/{header.log_id}",
        type=FRAME_TYPE,
        subject=str(partition),
        time=rfc3339(header.time),
    )


def proposal_headers(record: InboxRecord, partition: int, time: int | None = None) -> Headers:
    """Return the headers of a proposal's record; ``time`` is the producer's own, milliseconds, and only informs."""
    return _headers(
        id=record.id,
        source=uri_reference(record.source) or "/evsched/unnamed",
        type=PROPOSAL_TYPE + (record.type or "Unknown"),
        subject=str(partition),
        time=None if time is None else rfc3339(time),
    )


def uri_reference(text: str) -> str:
    """Return a producer's name as the URI reference that CloudEvents wants in ``source`` (RFC 3986).

    What is one already stays as it is. Letters that none may hold are escaped, so that a name such
    as ``my tool`` is told from others and is still readable. An empty name stays empty.
    """
    scheme = _SCHEME.match(text)
    start = scheme.end() if scheme is not None else 0
    body, mark, fragment = _NO_ESCAPE.sub("%25", text[start:]).partition("#")
    first, slash, rest = body.partition("/")
    # Before the first slash a colon would end a scheme, so a name of ours may not have it there.
    safe = _URI_LETTERS + ":"
    parts = ((first, safe if start else _URI_LETTERS), (rest, safe), (fragment, safe))
    first, rest, fragment = (quote(part, safe=kept, errors="replace") for part, kept in parts)
    return text[:start] + first + slash + rest + mark + fragment


def _headers(**attributes: str | None) -> Headers:
    pairs = [("ce_specversion", SPEC_VERSION.encode())]
    pairs += [
        (f"ce_{name}", value.encode()) for name, value in attributes.items() if value is not None
    ]
    return (*pairs, ("content-type", CONTENT_TYPE.encode()))


def proposals(inputs: Iterable[AnyInput], source: str = "") -> tuple[InboxRecord, ...]:
    """Return the records that propose these inputs; each input's ``proposal`` is its id.

    Args:
        inputs: As the log will hold them, without a ``seq``.
        source: The program that proposes; made a URI reference where it is none.

    Raises:
        ProposalTooLarge: One has more than `MAX_PROPOSAL_BYTES`.
    """
    records = []
    source = uri_reference(source)
    for proposed in inputs:
        data = encode_event(proposed)
        if len(data) > MAX_PROPOSAL_BYTES:
            raise ProposalTooLarge(proposed.proposal, len(data), MAX_PROPOSAL_BYTES)
        records.append(
            InboxRecord(
                data=data, id=proposed.proposal, source=source, type=type(proposed).__name__
            )
        )
    return tuple(records)


def record_of_message(
    value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> InboxRecord:
    """Return the inbox record in a Kafka message. Never raises; of headers given twice the first counts."""
    found: dict[str, str] = {}
    for name, content in headers:
        if name not in found:
            found[name] = (content or b"").decode(errors="replace")
    return InboxRecord(
        data=value or b"", id=found.get("ce_id", ""), source=found.get("ce_source", "")
    )


def read_proposal(record: InboxRecord, position: int) -> Proposal:
    """Return what this record proposes, or the reason why nothing can be made of it. Never raises.

    The id is that of the input (``proposal``), else that of the record (``ce_id``).
    """
    source = record.source[:MAX_SOURCE]
    problem, proposed = _input(record)
    said = _provenance(record.data) if proposed is None else (proposed.proposal, proposed.actor)
    name, actor = said[0] or record.id, said[1]
    if proposed is not None and (wrong := id_problem(name)):
        problem, proposed = f"proposal: {wrong}", None
    if proposed is not None:
        return Proposal(input=proposed, position=position, id=name, source=source)
    # The id of what cannot be read still tells its producer which one it was, so it is kept, cut to
    # size.
    return Proposal(
        position=position,
        id=name[:MAX_ID],
        source=source,
        problem=problem,
        raw=_beginning(record.data),
        actor=actor[:MAX_NAME],
    )


def _input(record: InboxRecord) -> tuple[str, AnyInput | None]:
    """Return the input in a record, or the problem with it."""
    if not record.data:
        return "proposal: is empty, expected a JSON object", None
    if len(record.data) > MAX_PROPOSAL_BYTES:
        return (
            f"proposal: has {len(record.data)} bytes, at most {MAX_PROPOSAL_BYTES} are taken",
            None,
        )
    try:
        proposed = decode_input(record.data)
    except (NestedTooDeep, msgspec.ValidationError) as error:
        return f"proposal: {error}"[:RAW_KEPT], None
    except UNREADABLE as error:
        return f"proposal: is not JSON: {error}"[:RAW_KEPT], None
    except Exception as error:  # noqa: BLE001 - an upcaster may stumble over what a producer made up; progress comes first
        return f"proposal: cannot be brought up to date: {type(error).__name__}: {error}"[
            :RAW_KEPT
        ], None
    return "", proposed


def _provenance(data: bytes) -> tuple[str, str]:
    """Return id and actor in the body of a refused proposal; empty where they cannot be read."""
    return provenance_in(data) if len(data) <= MAX_PROPOSAL_BYTES else ("", "")


def _beginning(data: bytes) -> str:
    """Return the beginning of unreadable data as text for a log: what is no text or controls a terminal is escaped."""
    text = data[: RAW_KEPT * 4].decode(errors="backslashreplace")
    return "".join(
        letter if printable(letter) else ascii(letter)[1:-1] for letter in text[:RAW_KEPT]
    )[:RAW_KEPT]

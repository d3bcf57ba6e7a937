"""How large, how deep and how many: every bound of what travels, is kept and is counted.

One place, because the parts lean on each other. What a producer may write is bounded so that what
follows from it fits: a sum of amounts into a column of 64 bits, the due time of a timer into a
snapshot, a refused proposal into a frame together with the refusal. None of it depends on the
version of Python: text is measured before it is decoded, letters are judged by a list of our own.

*Integers.* An amount, a moment and a span of time end at 2**53, which JSON readers of every language
keep exactly. So a timer (moment plus span) stays below 2**54, and any sum of amounts is refused
above 2**62: capacity less usage less what is reserved stays within 64 bits whatever the order.

*Depth.* 32 queues below each other, with their limits, nest 68 deep in a proposal and 70 deep in
queues.yaml. A frame wraps a refused proposal in 3 further levels.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

# ---------------------------------------------------------------------------------------- integers

MAX_AMOUNT = 2**53
"""The largest amount of one resource that an event may carry, in base units."""

SUM_LIMIT = 2**62
"""The largest sum of amounts of one resource type: over all nodes, or over all that runs and waits."""

MAX_INT64 = 2**63 - 1
"""The largest integer of a column, a snapshot and a Kueue quota."""

MAX_MOMENT = 2**53
"""The latest moment, milliseconds since the epoch; the earliest is the same before it."""

MAX_SPAN = 2**53
"""The longest span of time, milliseconds."""

MAX_COUNT = 2**53
"""The largest number of anything that is counted."""

Amount = Annotated[int, Meta(ge=0, le=MAX_AMOUNT)]
"""Of one resource, in base units."""
Sum = Annotated[int, Meta(ge=0, le=MAX_INT64)]
"""Of amounts; also a quota of Kueue, which the API server keeps in 64 bits."""
Milliseconds = Annotated[int, Meta(ge=-MAX_MOMENT, le=MAX_MOMENT)]
"""Milliseconds since the epoch."""
Span = Annotated[int, Meta(ge=0, le=MAX_SPAN)]
"""Milliseconds."""
LastingSpan = Annotated[int, Meta(ge=1, le=MAX_SPAN)]
"""Milliseconds, at least one."""
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Number = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
"""A count that begins with one."""
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]
"""Of rules or of a record."""
SettingNumber = Annotated[int, Meta(ge=-MAX_COUNT, le=MAX_COUNT)]
"""A value in the configuration of a family that was added to evsched."""
Position = Annotated[int, Meta(ge=-1, le=MAX_INT64)]
"""A place in a stream; -1 is before the first."""
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""As Kubernetes keeps it, in 32 bits."""

# ------------------------------------------------------------------------------------------- texts

MAX_NAME = 253
"""Characters of a name or id; Kubernetes has no longer ones."""
MAX_ID = 128
"""Characters of a proposal's id."""
MAX_SOURCE = 253
"""Characters that are kept of what a producer calls itself."""
MAX_TEXT = 4096
"""Characters of a text that people write."""
MAX_DOCUMENT = 262_144
"""Characters of a configuration file."""
RAW_KEPT = 1024
"""Characters that are kept of a proposal that cannot be read."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
"""A name or id. That it is printable is checked by the leader (`evsched.core.validation`)."""
Text = Annotated[str, Meta(max_length=MAX_TEXT)]

# ------------------------------------------------------------------------------- records and counts

MAX_PROPOSAL_BYTES = 400_000
"""So that a proposal, refused or taken, fits into one frame together with what is said about it."""

MAX_FRAME_BYTES = 512_000
"""Larger steps are cut into several frames (the limit of client and broker is about 1 MiB)."""

MAX_QUEUES = 20_000
"""Queues of a configuration."""

MAX_QUEUE_DEPTH = 32
"""Queues below queues, root included."""

MAX_LABELS = 512
"""Labels of a pod, and entries of a node selector."""

MAX_TERMS = 256
"""Taints of a node; tolerations, terms and conditions of a pod, each list by itself."""

MAX_VALUES = 4096
"""Values of one condition on labels; a volume may name thousands of nodes."""

MAX_RESOURCE_TYPES = 1024
"""Distinct resource types of a partition (for Kueue: pairs of flavor and resource)."""

MAX_TALLIES = 2**21
"""Queues times resource types: each pair has a handful of sums, 32 bytes in all."""

# ------------------------------------------------------------------------------------------- depth

MAX_DEPTH = 72
"""Objects and lists within each other in a proposal or in a configuration file."""

FRAME_DEPTH = MAX_DEPTH + 3
"""The same of a frame, which holds a list of events, which may hold a proposal that was refused."""

_ONE_KIND = bytes.maketrans(b"[]", b"{}")
_OUTSIDE = bytes(letter for letter in range(256) if letter not in b'{}[]"\\')
_QUOTING = b'"\\'
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


def too_deep(data: bytes, most: int = MAX_DEPTH) -> bool:
    """Tell whether JSON text nests more than ``most`` levels, without decoding it.

    Of text that is no JSON, True or False is a sound answer: a decoder that reads what is allowed
    here meets its error before it is 2 * ``most`` levels deep.
    """
    if data.count(b"{") + data.count(b"[") <= most:
        return False
    outline = data.translate(_ONE_KIND, _OUTSIDE).replace(b'""', b"")
    # A quote is left when a text holds a bracket: the number of quotes before that one is odd.
    if b'"' in outline or b"\\" in outline:
        outline = _STRING.sub(b"", data).translate(_ONE_KIND, _OUTSIDE + _QUOTING)
    for _ in range(most):
        inside = outline.replace(b"{}", b"")
        if len(inside) == len(outline):
            break
        outline = inside
    return b"{}" in outline or outline.count(b"{") > most


# ----------------------------------------------------------------------------------------- letters

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000f0000-\U0010ffff]"
)
"""Controls, formats, surrogates, private letters and every space but the common one.

Not `str.isprintable`: that asks the Unicode of the interpreter, and another one may answer another
way about a letter that is newer than it.
"""


def printable(text: str) -> bool:
    """Tell whether a name can be shown as it is: no control, format or private letter in it."""
    # About ASCII every interpreter agrees, and answers much faster.
    return text.isprintable() if text.isascii() else _UNPRINTABLE.search(text) is None


def id_problem(name: str) -> str:
    """Return why a proposal may not have this id, as the rest of a sentence; empty when it may.

    The id that counts is judged, wherever it came from: the input, the record's ``ce_id``, the log.
    An empty one is none at all.
    """
    if len(name) > MAX_ID:
        return f"its id has {len(name)} characters, at most {MAX_ID} are taken"
    if not printable(name):
        return f"its id {name!a} holds control characters, expected printable ones"
    return ""

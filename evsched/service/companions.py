"""Which rules the other processes of a log know, so that none is left unable to lead by adopting newer ones.

The leader asks before it takes a `RulesAdopted` in. What it learns is what a process said of itself
when it joined; who cannot be seen is not asked:

- On Kafka every process is a member of the consumer group ``NAME-leaders``, and its client id says
  which rules it knows. A process that was killed counts until the group drops it (6 s); a process of
  0.1.0 is a member without such a word, and so it knows rules 1.
- On the embedded log each process leaves its name and rules in the file. A process that has ended
  does not count; one of 0.1.0 leaves no name there and cannot be seen while it only stands by.

Being wrong about it does no harm to the log: a process that meets rules which it does not know
stands by and says so, and one of 0.1.0 stops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import structlog
from msgspec import Struct

from events.errors import StreamError
from events.frame import encode_event
from events.vocabulary import Proposal, RulesAdopted
from evsched.core.rules import FIRST, NEWEST, RULES

UNSUPPORTED = "unsupported"
"""Code of the refusal of rules that a process does not know; a reader takes it as given."""

CLIENT = "evsched-rules-"
"""What a client id begins with; the newest rules that the process knows follow."""

_log = structlog.get_logger(__name__)


class Companion(Struct, frozen=True):
    """A process that could lead.

    Attributes:
        name: For people: where it runs, as far as that is known.
        rules: The newest ones that it knows.
    """

    name: str
    rules: int


Companions = Callable[[], Awaitable[Iterable[Companion]]]


async def nobody() -> tuple[Companion, ...]:
    """Return that there is no other process."""
    return ()


def own_client() -> str:
    """Return the client id of this process."""
    return f"{CLIENT}{NEWEST}"


def rules_of_client(client: str) -> int:
    """Return the newest rules that a process with this client id knows; one that does not say so is of 0.1.0."""
    said = client.removeprefix(CLIENT)
    return int(said) if said != client and said.isdecimal() else FIRST


async def judged(proposals: tuple[Proposal, ...], others: Companions) -> tuple[Proposal, ...]:
    """Return proposals in which every `RulesAdopted` that a process could not follow is refused already."""
    if not any(isinstance(one.input, RulesAdopted) for one in proposals):
        return proposals
    return tuple([await _judged(one, others) for one in proposals])


async def _judged(proposal: Proposal, others: Companions) -> Proposal:
    proposed = proposal.input
    if not isinstance(proposed, RulesAdopted):
        return proposal
    reason = await _against(proposed.rules, others)
    if not reason:
        return proposal
    # In words alone: a process of 0.1.0 does not know the type, and is to go on reading.
    return Proposal(
        position=proposal.position,
        id=proposal.id,
        source=proposal.source,
        problem=f"rules {proposed.rules}: {reason}",
        raw=encode_event(proposed).decode(),
        code=UNSUPPORTED,
        actor=proposal.actor or proposed.actor,
    )


async def _against(version: int, others: Companions) -> str:
    """Return what speaks against adopting rules now; empty: nothing."""
    if version not in RULES:
        return f"the leader knows {FIRST} to {NEWEST}; upgrade it first"
    try:
        found = tuple(await others())
    except StreamError as error:
        # Not knowing who else is there is no reason to believe that they know.
        _log.warning("companions not reached", error=type(error).__name__, reason=str(error))
        return "what the other processes know cannot be found out now; try again"
    for one in found:
        if one.rules < version:
            known = f"{FIRST} to {one.rules}" if one.rules > FIRST else f"{FIRST} alone"
            return f"process {one.name} could lead and knows rules {known}; upgrade it first"
    return ""

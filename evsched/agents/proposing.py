"""Sends the proposals of an agent, which owes them to the log whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from events.errors import EnvironmentFault, OutcomeUnknown
from events.streams.protocols import Inbox
from events.vocabulary import AnyInput

AGAIN_S = 1.0
"""Pause before the log is asked, or a proposal sent, again."""

BATCH = 500
"""Proposals sent at a time."""

_log = structlog.get_logger(__name__)


async def propose_all(inbox: Inbox, inputs: Sequence[AnyInput], source: str) -> None:
    """Propose these inputs in order; each batch is sent until it is known to be in the inbox.

    Args:
        inbox: Of the partition.
        inputs: Each has an id, so a copy that is sent again is answered as a duplicate.
        source: Names the agent.
    """
    for begin in range(0, len(inputs), BATCH):
        batch = inputs[begin : begin + BATCH]
        while True:
            try:
                await inbox.propose(batch, source)
                break
            except (EnvironmentFault, OutcomeUnknown) as error:
                _log.warning(
                    "proposals may be lost, sending them again",
                    count=len(batch),
                    error=str(error),
                )
                await asyncio.sleep(AGAIN_S)

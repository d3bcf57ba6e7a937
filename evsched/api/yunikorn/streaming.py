"""The stream of event records: one JSON document a line, without end."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from evsched.api.event_routes import steps_behind
from evsched.api.yunikorn import answers
from evsched.api.yunikorn.moments import recorded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evsched.api.app import Served


async def event_lines(served: Served, count: int) -> AsyncIterator[bytes]:
    """Yield the id of the log, the records of the last ``count`` events, and those of every event that comes."""
    past, encode = served.past, msgspec.json.encode
    yield encode(answers.InstanceInfo(instance_uuid=past.tail.head.log_id)) + b"\n"
    begin = max(past.tail.seq - count, 0)
    async with aclosing(steps_behind(served, begin, narrow=False, follow=True)) as batches:  # type: ignore[type-var]
        async for steps in batches:
            found = [
                (step.time, event) for step in steps for event in step.events if event.seq > begin
            ]
            if found:
                made = await past.ask(recorded(past, found))
                yield b"".join(encode(record) + b"\n" for record in made)

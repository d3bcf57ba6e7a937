"""The openb trace as a log: what evsched would have decided on it, on a virtual clock.

The whole cluster has far more room than the pods of the trace want at any time, so that none of
them waits. `smaller` leaves so many nodes that there is waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.openb.trace import GPU_MILLI, lives_ms, queues_yaml, timed_inputs
from events.streams.memory import open_memory
from events.vocabulary import ConfigurationApplied, Proposal
from evsched.agents.emulated.agent import Agent
from evsched.config import from_mapping
from evsched.config.document import read_value
from evsched.core.engine import Engine
from replays.history.sealing import Sealer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.openb.trace import Node, Pod
    from events.streams.protocols import EventLog

BEGIN_MS = 1_700_000_000_000
"""When the log begins; any time would do."""

GRACE_MS = 30_000


def smaller(nodes: Sequence[Node], cards: int) -> list[Node]:
    """Return nodes from all over the list with so many cards together, or a few more."""
    found: list[Node] = []
    with_cards = [node for node in nodes if node.capacity.get("gpu")]
    order = sorted(range(len(with_cards)), key=lambda at: (at * 7919) % len(with_cards))
    for at in order:
        if sum(node.capacity["gpu"] for node in found) >= cards * GPU_MILLI:
            break
        found.append(with_cards[at])
    return found


async def recorded(nodes: Sequence[Node], pods: Sequence[Pod]) -> EventLog:
    """Return a log in memory in which these pods come at their times and run as long as they did."""
    engine, sealer = Engine(), Sealer("openb")
    log = open_memory("", 0).log
    await log.create()
    agent = Agent(grace_ms=GRACE_MS, lives_ms=lives_ms(pods, 1))
    coming = [
        (BEGIN_MS + one.at_ms, number, one.input)
        for number, one in enumerate(timed_inputs(nodes, pods, 1))
    ]
    text = queues_yaml(nodes)
    (configuration,) = from_mapping("yunikorn", read_value(text, "queues"), "queues for openb")
    coming.append((BEGIN_MS, -1, ConfigurationApplied(configuration=configuration)))
    coming.sort(reverse=True)
    time = BEGIN_MS
    steps = [(time, engine.lead(time, 1, "openb"))]
    while True:
        for at, events in steps:
            for event in events:
                agent.take(event, at)
            for record in sealer.seal(at, events):
                await log.append(record.data)
        dues = [engine.next_due(), agent.next_due(), coming[-1][0] if coming else None]
        known = [due for due in dues if due is not None]
        if not known:
            return log
        time = max(time, min(known))
        inputs = agent.owed(time)
        while coming and coming[-1][0] <= time:
            inputs.append(coming.pop()[2])
        steps = [(time, engine.step(time, [Proposal(input=one) for one in inputs]))]

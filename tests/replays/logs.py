"""Small logs for tests: histories of a cluster, sealed into frames and written to a log in memory or to a file."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from events import vocabulary as v
from events.chain import ChainReader
from events.configuration import QueueSpec, YunikornSpec
from events.streams.export import export_log
from events.streams.memory import open_memory
from evsched.core.engine import Engine
from replays.history.sealing import Sealer
from tests.core.histories import START, first_step, settle

LOG_ID = "log-of-a-test"


def taken(configuration, history, checkpoint_every=7):
    """Return the steps of a history: (time, events, inbox_next)."""
    engine = Engine()
    steps = [(START, engine.lead(START, 1, "leader-1", checkpoint_every), 0)]
    time, position = START, 0
    for index, (later, inputs, restart) in enumerate([(0, [], False), *history]):
        time += later
        steps += [(at, events, position) for at, events in settle(engine, time - 1)]
        if restart:
            term = engine.state.term + 1
            steps.append(
                (time, engine.lead(time, term, f"leader-{term}", checkpoint_every), position)
            )
        proposals = (
            first_step(configuration)
            if index == 0
            else [v.Proposal(input=proposed) for proposed in inputs]
        )
        proposals = [
            replace(one, position=position + number) for number, one in enumerate(proposals)
        ]
        position += len(proposals)
        steps.append((time, engine.step(time, proposals), position))
    return [(at, events, inbox_next) for at, events, inbox_next in steps if events]


def sealed(steps, log_id=LOG_ID):
    """Return the records of steps."""
    sealer = Sealer(log_id)
    return [
        record
        for time, events, inbox_next in steps
        for record in sealer.seal(time, events, inbox_next=inbox_next)
    ]


def read(records):
    """Return the steps in records; raise what a reader raises."""
    reader = ChainReader()
    steps = [reader.accept(record.data, record.position) for record in records]
    return [step for step in steps if step is not None]


async def written(records, url_name=""):
    """Return a log in memory that holds these records, whatever they are."""
    log = open_memory(url_name, 0).log
    await log.create()
    for record in records:
        await log.append(record.data)
    return log


async def exported(records, path: Path) -> Path:
    """Write these records to a file as `evsched log export` does."""
    await export_log(await written(records), path)
    return path


def story():
    """Return the steps of a small cluster in which most kinds of decisions are made.

    Prod, below its guarantee, takes from test after its delay; then test's maximum is lowered and
    enforced.
    """

    def spec(maximum):
        test = QueueSpec(
            name="test", maximum={"vcore": maximum}, properties={"quota.preemption.delay": "10s"}
        )
        prod = QueueSpec(
            name="prod", guaranteed={"vcore": 6000}, properties={"preemption.delay": "5s"}
        )
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(prod, test))
        return YunikornSpec(root=root, quota_preemption_enabled=True)

    def pod(name, leaf):
        return v.AskSubmitted(
            ask=name,
            application=leaf,
            queue=f"root.{leaf}",
            resources={"vcore": 2000},
            user="u",
            proposal=f"p-{name}",
        )

    smaller = v.NodeUpdated(node="n1", capacity={"vcore": 8000})
    history = [
        (
            0,
            [v.NodeRemoved(node="n2"), smaller, pod("test-1", "test"), pod("test-2", "test")],
            False,
        ),
        (1000, [pod("test-3", "test"), pod("test-4", "test"), pod("test-1", "test")], False),
        (1000, [pod("prod-1", "prod"), v.AskWithdrawn(ask="nobody")], False),
        (7000, [], True),
        (500, [v.AllocationReleased(allocation="test-4", reason="preempted")], False),
        (1000, [v.ConfigurationApplied(configuration=spec(2000))], False),
        (12_000, [v.AllocationReleased(allocation="prod-1")], False),
        (1000, [pod("test-5", "test"), pod("prod-2", "prod")], False),
        (1000, [v.AskWithdrawn(ask="test-5")], False),
    ]
    return taken(spec(9000), history)

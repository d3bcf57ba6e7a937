"""The main job on real input: a recorded cluster through a real Kafka, its leader killed again and again.

    .venv/bin/python -m scripts.trace_run NODES.csv PODS.csv

Three processes as a user would start them: `evsched run`, `python -m
benchmarks.openb` and `evsched emulate`. While the trace is imported, the leader is killed with SIGKILL and started again. In the
end every pod was bound, was preempted, or waits for a stated reason; no decision was lost or
doubled; and two readers with different hash seeds arrive at the same digest. Exits 1 when any of
that is not so.

Without ``--kafka`` a broker of its own is started, as for the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks.openb.trace import lives_ms, read_pods
from events.streams import Streams, open_streams
from events.vocabulary import (
    AllocationBound,
    AskSubmitted,
    InputRejected,
    LeaderStarted,
    PreemptionDecided,
    QuotaPreemptionDecided,
)
from evsched.core.engine import Engine
from replays.explaining.explain import explain_ask
from tests.kafka.broker import own_broker
from tests.service.histories import History, check
from tests.service.running import Running, digest, wait_until

SETTLING_S = 5.0
ANSWER_S = 120.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the trace is run.

    Attributes:
        url: The log; its topics are made.
        limit: Only the first so many pods; None: all.
        seconds: How long the import takes.
        lives: How many times longer pods live, compared with the pace of the import; more of them
            run at a time then.
        kills: How often the leader is killed on the way.
        squeeze: Only every so many-th node is there: with 2 or more there is not enough room for
            all pods at a time.
    """

    nodes: Path
    pods: Path
    url: str
    limit: int | None = None
    seconds: float = 60.0
    lives: float = 3.0
    kills: int = 5
    squeeze: int = 1


class Report(msgspec.Struct, kw_only=True):
    """What came of it.

    Attributes:
        back_s: After each kill, seconds until the leader, started at once, had its own heartbeat
            seen back.
        bound: How many pods of the trace ran at some time.
        preempted: How many of them, or of those that came in their place, are being evicted.
        waiting: How many have waited from the beginning to the end.
        reasons: Why they wait, in sentences, the most frequent first.
        unexplained: How many wait without a reason; there should be none.
        refused: Asks that were refused; there should be none.
        missing: Pods of which the log says nothing; there should be none.
        terms: At least one more than there were kills. A member that was killed stays in Kafka's
            group until its session ends; when the group gives it the partition once more, the
            leader steps back, sees that nobody comes, and leads anew.
        acknowledged: Steps that some leader believed to be in the log; all of them were found
            there.
        digests: Of two readers and of the history that was checked.
    """

    pods: int
    bound: int
    preempted: int
    waiting: int
    reasons: dict[str, int]
    unexplained: int
    refused: int
    missing: int
    kills: int
    terms: int
    back_s: list[float]
    seconds: float
    steps: int
    events: int
    acknowledged: int
    digests: list[str]

    @property
    def holds(self) -> bool:
        """Whether everything is as it must be."""
        settled = (
            self.bound + self.waiting == self.pods
            and not self.refused + self.missing + self.unexplained
        )
        return settled and self.terms > self.kills and len(set(self.digests)) == 1


async def trace_run(settings: Settings, folder: Path) -> Report:
    """Run the trace and hold what is in the log against everything that must be true of it.

    Args:
        settings: How.
        folder: For what the processes say.

    Raises:
        AssertionError: Something was lost, doubled or decided otherwise than its steps say.
    """
    pods = read_pods(settings.pods)[: settings.limit]
    span = max(pod.creation for pod in pods) - min(pod.creation for pod in pods)
    speed = max(1.0, span / settings.seconds)
    where = ("--log", settings.url)
    limit = () if settings.limit is None else ("--limit", str(settings.limit))
    files = (str(_squeezed(settings, folder)), str(settings.pods))
    service = Running(folder, "run", *where, "--create-topics", "--partitions", "1")
    arguments = (*files, *where, "--speed", str(speed), "--apply-queues", *limit, "--json")
    importer = (sys.executable, "-m", "benchmarks.openb")
    imports = Running(folder, *arguments, name="import", program=importer)
    lives = folder / "lives.json"
    lives.write_bytes(msgspec.json.encode(lives_ms(pods, speed / settings.lives)))
    options = ("--grace", "1s", "--lives", str(lives))
    agent = Running(folder, "emulate", *where, *options, name="emulate")
    begun = time.monotonic()
    with ExitStack() as stack:
        for one in (service, imports, agent):
            stack.callback(one.kill)
        await asyncio.to_thread(service.start().wait_ready)
        agent.start()
        imports.start()
        back = await asyncio.to_thread(_kill, service, settings)
        assert await asyncio.to_thread(imports.wait, settings.seconds * 3 + 60) == 0, imports.said()
        async with open_streams(settings.url) as streams:
            await _answered(streams)
            await asyncio.sleep(SETTLING_S)
            assert not agent.over, agent.said()
            agent.kill()
            await _answered(streams)
            assert await asyncio.to_thread(service.stop) == 0
            seconds = time.monotonic() - begun
            history = await check(streams, service.acknowledged())
    report = _report(history, {pod.name for pod in pods})
    report.kills, report.back_s, report.seconds = settings.kills, back, round(seconds, 1)
    report.acknowledged = len(service.acknowledged())
    report.digests += [await asyncio.to_thread(digest, settings.url, seed) for seed in (1, 2)]
    return report


def _squeezed(settings: Settings, folder: Path) -> Path:
    """Return a node list with the nodes that are to be there."""
    if settings.squeeze == 1:
        return settings.nodes
    head, *lines = settings.nodes.read_text().splitlines(keepends=True)
    path = folder / "nodes.csv"
    path.write_text(head + "".join(lines[:: settings.squeeze]))
    return path


def _kill(service: Running, settings: Settings) -> list[float]:
    """Kill the leader at even distances while the import goes on; return how long it took to lead again."""
    back = []
    for _ in range(settings.kills):
        time.sleep(settings.seconds / (settings.kills + 1))
        service.kill()
        service.start()
        back.append(round(wait_until(lambda: service.leading() == {0}, 60, service), 2))
    return back


async def _answered(streams: Streams) -> None:
    """Wait until the leader has taken everything that was proposed."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        beat, end = await streams.log.last_heartbeat(), await streams.inbox.end()
        if beat is not None and beat.head.inbox_next >= end:
            return
        assert time.monotonic() < deadline, (
            f"{end} proposed, not all answered after {ANSWER_S} s: {beat}"
        )
        await asyncio.sleep(0.2)


def _report(history: History, pods: set[str]) -> Report:
    bound = {event.ask for event in history.only(AllocationBound)}
    decided = history.only(PreemptionDecided, QuotaPreemptionDecided)
    preempted = {victim.id for event in decided for victim in event.victims}
    waiting = (pods - bound) & set(history.engine.state.asks)
    reasons = Counter(_reasons(history.engine, sorted(waiting)))
    asked = {event.ask for event in history.only(AskSubmitted)}
    rejected = [
        event for event in history.only(InputRejected) if isinstance(event.input, AskSubmitted)
    ]
    return Report(
        pods=len(pods),
        bound=len(bound & pods),
        preempted=len(preempted),
        waiting=len(waiting),
        reasons=dict(reasons.most_common(10)),
        unexplained=reasons[""],
        refused=sum(event.code != "duplicate" for event in rejected),
        missing=len(pods - asked) + len(pods - bound - waiting),
        kills=0,
        terms=len(history.only(LeaderStarted)),
        back_s=[],
        seconds=0.0,
        steps=len(history.steps),
        events=len(history.events),
        acknowledged=0,
        digests=[history.digest],
    )


def _reasons(engine: Engine, names: list[str]) -> Iterator[str]:
    """Yield why each ask waits; equal asks of one application wait for the same reason, so one of them is looked into."""
    known: dict[tuple[str, int, int], str] = {}
    for name in names:
        ask = engine.state.asks[name]
        kind = (ask.application, ask.shape, ask.priority)
        if name in engine.state.preemptions:
            # What it waits for is its own.
            yield explain_ask(engine, name).summary
            continue
        if kind not in known:
            known[kind] = explain_ask(engine, name).summary
        yield known[kind]


def main() -> int:
    """Run it as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nodes", type=Path)
    parser.add_argument("pods", type=Path)
    parser.add_argument("--kafka", help="host:port of a broker; one is started by default")
    parser.add_argument("--limit", type=int, help="only the first so many pods")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the import takes")
    parser.add_argument(
        "--lives", type=float, default=3.0, help="how many times longer pods live at that pace"
    )
    parser.add_argument("--kills", type=int, default=5, help="how often the leader is killed")
    parser.add_argument(
        "--squeeze", type=int, default=1, help="only every so many-th node is there"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evsched-trace-")))
        bootstrap = given.kafka
        if bootstrap is None:
            broker = own_broker()
            stack.callback(broker.stop)
            bootstrap = broker.bootstrap
        settings = Settings(
            nodes=given.nodes,
            pods=given.pods,
            url=f"kafka://{bootstrap}/trace-{uuid.uuid4().hex[:8]}",
            limit=given.limit,
            seconds=given.seconds,
            lives=given.lives,
            kills=given.kills,
            squeeze=given.squeeze,
        )
        report = asyncio.run(trace_run(settings, folder))
    print(json.dumps({**msgspec.to_builtins(report), "holds": report.holds}, indent=1))
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())

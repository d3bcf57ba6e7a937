"""`evsched demo`: the whole story on a virtual clock, over a real log, with a real process that is really killed."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from events.chain import ChainReader
from events.streams import Streams, open_streams
from events.streams.reading import read_steps
from events.vocabulary import (
    AnyInput,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
)
from evsched.agents.emulated.agent import Agent
from evsched.cli.answers import DONE, NO, CommandError, PortTaken, emit, paper, say
from evsched.cli.demo_leader import LeaderAnswer
from evsched.cli.logs import Where
from evsched.cli.options import Json
from evsched.config import from_mapping
from evsched.core.engine import Engine
from replays.checking.verify import Difference, verify
from replays.scenarios.decisions import decision_document, is_decision

START_MS = 1_767_258_000_000
"""Second 0 of the story: 2026-01-01T09:00:00Z."""

GRACE_MS = 5_000
CORES = 10
STEP_LIMIT = 10_000


PAGE = "127.0.0.1:8080"
"""Where the page of the story is served; any other port where this one is taken."""


async def demo(
    *,
    keep: Annotated[Path | None, Parameter(name="--keep")] = None,
    serve: bool | None = None,
    json: Json = False,
) -> int:
    """Tell the story of two tenants in a few seconds, on a virtual clock and the embedded log.

    One tenant is starved below its guarantee and preempts after the delay. Then the other one's
    maximum is lowered with a delay of 60 s, the leader is killed with SIGKILL at 20 s and started
    again, and the timer fires at 60 s. In the end the state is rebuilt from the log, and has the
    same digest.

    **Examples**

    `evsched demo`

    `evsched demo --keep demo.db`, and then `evsched log show --log demo.db`

    Args:
        keep: Keep the log in this new file, to look around in it.
        serve: Serve the story to a browser at the end, until Ctrl-C; by default where this is a
            terminal, and `evsched[web]` is installed.
        json: One document at the end: the decisions and both digests.
    """
    if keep is not None and keep.exists():
        raise CommandError(f"--keep {keep}: exists already, expected a new file")
    with tempfile.TemporaryDirectory(prefix="evsched-demo-") as folder:
        path = (Path(folder) / "log.db" if keep is None else keep).absolute()
        async with open_streams(f"sqlite:///{path}") as streams:
            await streams.log.create()
            story = Story(streams, f"sqlite:///{path}", quiet=json)
            try:
                await story.tell()
            finally:
                await story.stop()
            code = _end(story, *await proven(streams), json=json)
        if serve or (serve is None and not json and _is_watched()):
            await _serve(path, Path(folder))
        return code


def _is_watched() -> bool:
    """Tell whether somebody sits there who could open a page, and it could be served."""
    return sys.stdin.isatty() and sys.stdout.isatty() and find_spec("starlette") is not None


async def _serve(path: Path, folder: Path) -> None:
    """Serve the log of the story until Ctrl-C, with what belongs to it in a folder."""
    from evsched.cli.serve import serve  # noqa: PLC0415 - needs the extra, and the story does not

    where = Where(log=str(path))
    model, snapshots = folder / "model.db", folder / "snapshots"
    say("the story is in a browser, too; Ctrl-C ends it")
    try:
        await serve(where=where, listen=PAGE, db=model, snapshots=snapshots)
    except PortTaken:
        await serve(where=where, listen="127.0.0.1:0", db=model, snapshots=snapshots)


class Story:
    """The world around the leader: the clock, the tenants, and the cluster that evicts and re-creates pods.

    Attributes:
        decisions: What the log says was decided, as documents.
        digest: Of the leader's state after its last step.
    """

    def __init__(self, streams: Streams, url: str, *, quiet: bool) -> None:
        """Stand before second 0, with nobody leading."""
        self.decisions: list[dict[str, Any]] = []
        self.digest = ""
        self._streams = streams
        self._url = url
        self._quiet = quiet
        self._reader = ChainReader()
        self._agent = Agent(grace_ms=GRACE_MS)
        self._now = START_MS
        self._next_due: int | None = None
        self._leader: asyncio.subprocess.Process | None = None

    async def tell(self) -> None:
        """Tell it from beginning to end."""
        self._say(
            "two tenants share a node of 10 cores: research is guaranteed 4 of them, web may use up to 10"
        )
        await self._start()
        await self._happen(
            [
                _queues(CORES),
                NodeRegistered(node="node-1", capacity={"vcore": CORES * 1000}),
                *_pods("web", 5),
            ]
        )
        await self._until(10)
        self._say(
            "research asks for two pods of 2 cores, and there is no room; its delay of 30 s begins to run"
        )
        await self._happen(_pods("research", 2))
        await self._until(100)
        self._say("the maximum of web is lowered from 10 cores to 4; what runs above it has 60 s")
        await self._happen([_queues(4)])
        await self._until(120)
        await self._kill()
        await self._start()
        await self._until(200)

    async def stop(self) -> None:
        """Let the leader end."""
        leader, self._leader = self._leader, None
        if leader is not None and leader.returncode is None:
            leader.kill()
            await leader.wait()

    # ------------------------------------------------------------------------------------ the clock

    async def _until(self, second: int) -> None:
        """Move the clock, stopping whenever the leader or the cluster has something to do."""
        end = START_MS + second * 1000
        for _ in range(STEP_LIMIT):
            dues = [due for due in (self._next_due, self._agent.next_due()) if due is not None]
            if not dues or min(dues) > end:
                self._now = end
                return
            self._now = max(self._now, min(dues))
            await self._happen(self._agent.owed(self._now))
        raise RuntimeError(f"demo: {STEP_LIMIT} steps were not enough to reach second {second}")

    async def _happen(self, inputs: list[AnyInput]) -> None:
        """Propose these and let the leader take a step now."""
        if inputs:
            await self._streams.inbox.propose(inputs, "/evsched/demo")
        assert self._leader is not None
        assert self._leader.stdin is not None
        self._leader.stdin.write(f"{self._now}\n".encode())
        await self._listen()
        await self._read()

    async def _listen(self) -> LeaderAnswer:
        """Take down what the leader answers."""
        assert self._leader is not None
        assert self._leader.stdout is not None
        line = await self._leader.stdout.readline()
        if not line:
            raise RuntimeError(f"demo: the leader ended with code {await self._leader.wait()}")
        answer = msgspec.json.decode(line, type=LeaderAnswer)
        self._next_due, self.digest = answer.next_due, answer.digest
        return answer

    async def _read(self) -> None:
        """Read what is new in the log, as anybody could."""
        async for steps in read_steps(self._streams.log, self._reader):
            for step in steps:
                for event in step.events:
                    self._agent.take(event, step.time)
                    if is_decision(event):
                        self.decisions.append(decision_document(event, step.time, START_MS))

    # ----------------------------------------------------------------------------------- the leader

    async def _start(self) -> None:
        """Start a leader of its own process; it rebuilds its state from the log."""
        self._leader = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evsched.cli.demo_leader", self._url, str(self._now),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        answer = await self._listen()
        self._say(
            f"process {self._leader.pid} leads in term {answer.term}, rebuilt from {answer.frames - 1} frames"
        )
        await self._read()

    async def _kill(self) -> None:
        """Kill the leader's process, without a word of warning."""
        assert self._leader is not None
        pid = self._leader.pid
        self._leader.kill()
        await self._leader.wait()
        self._say(f"process {pid} is killed with SIGKILL, 20 s after the change")

    def _say(self, sentence: str) -> None:
        if not self._quiet:
            say(f"{(self._now - START_MS) // 1000:>4} s  {sentence}")


async def proven(streams: Streams) -> tuple[str, Difference | None]:
    """Return the digest of a state that was rebuilt from the log, and what comes out differently when all is decided again."""
    reader = ChainReader()
    steps = [step async for batch in read_steps(streams.log, reader) for step in batch]
    engine = Engine()
    for step in steps:
        for event in step.events:
            engine.apply(event, step.time)
    return engine.state.digest(), verify(Engine(), steps)


def _end(story: Story, digest: str, difference: Difference | None, *, json: bool) -> int:
    """Print the timeline and the proof; the answer is no when anything came out otherwise than told."""
    fired = [one["at"] for one in story.decisions if one["type"] == "QuotaPreemptionDecided"]
    holds = digest == story.digest and fired == [160] and difference is None
    if json:
        again = None if difference is None else difference.seq
        emit(
            {
                "decisions": story.decisions,
                "digest": story.digest,
                "rebuilt_digest": digest,
                "first_difference": again,
                "holds": holds,
            }
        )
        return DONE if holds else NO
    from evsched.cli.timeline import decision_table  # noqa: PLC0415 - rich costs time that --json need not pay

    console = paper()
    console.print()
    console.table(decision_table("what was decided, and why", story.decisions))
    console.print()
    for at in fired:
        console.print(
            f"lowered at 100 s, the timer fired {at - 100} s later, although the process was killed on the way"
        )
    console.print(f"digest of the leader's state:     {story.digest}")
    console.print(f"digest of the log, applied again: {digest}")
    console.print("the two are the same" if digest == story.digest else "THE TWO DIFFER")
    console.print(
        "deciding it all again gives the same events"
        if difference is None
        else f"DECIDING AGAIN DIFFERS: {difference}"
    )
    return DONE if holds else NO


def _pods(queue: str, count: int) -> list[AnyInput]:
    """Return an application in a queue, with pods of 2 cores."""
    return [
        ApplicationSubmitted(application=queue, queue=f"root.{queue}", user=queue),
        *(
            AskSubmitted(
                ask=f"{queue}-{number}",
                application=queue,
                queue=f"root.{queue}",
                user=queue,
                resources={"vcore": 2000},
            )
            for number in range(1, count + 1)
        ),
    ]


def _queues(web_cores: int) -> AnyInput:
    """Return the configuration: research with a guarantee, web with this maximum and, once it is lowered, a delay."""
    web: dict[str, Any] = {"name": "web", "resources": {"max": {"vcore": str(web_cores)}}}
    if web_cores < CORES:
        web["properties"] = {"quota.preemption.delay": "60s"}
    research = {"name": "research", "resources": {"guaranteed": {"vcore": "4"}}}
    root = {"name": "root", "submitacl": "*", "queues": [research, web]}
    partition = {
        "name": "default",
        "preemption": {"quotapreemptionenabled": True},
        "queues": [root],
    }
    (configuration,) = from_mapping("yunikorn", {"partitions": [partition]}, "demo")
    return ConfigurationApplied(configuration=configuration)

"""A rolling upgrade over one Kafka log: a released commit and this tree take over from each other under load.

``python -m scripts.rolling_upgrade [--handovers 10] [--rate 100] [--commit 79caf5e]`` starts a broker
of its own, or uses ``EVSCHED_TEST_KAFKA``. Both processes run on one log; whichever leads is killed
(every other time asked to end), the other takes over, and the first is started again to stand by.
Meanwhile proposals come in at a steady rate. In the end every proposal must have been answered once,
nothing may be lost or doubled, and both programs must verify the log. The figures are printed as
JSON; the exit code is 1 when anything does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

from events import vocabulary as v
from events.chain import ChainReader
from events.streams import open_streams
from events.streams.protocols import Streams
from events.streams.reading import read_steps
from tests.kafka.broker import own_broker, shared_broker
from tests.service.inputs import cluster, node

ROOT = Path(__file__).resolve().parents[1]
LIVES = 20
"""How many asks are submitted before the first of them ends."""
TAKES_OVER_S = 60.0
"""After so long without a leader the run is given up."""


class Program:
    """One of the two programs, as a process that is started again and again.

    Attributes:
        name: ``old`` or ``new``.
    """

    def __init__(self, name: str, tree: Path, url: str, folder: Path) -> None:
        """Run from this source tree, on this log; ``folder`` is for its files."""
        self.name, self._tree, self._url, self._folder = name, tree, url, folder
        self._process: subprocess.Popen[bytes] | None = None

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": str(self._tree),
            "EVSCHED_LOG": self._url,
            "XDG_DATA_HOME": str(self._folder / self.name),
            "XDG_STATE_HOME": str(self._folder / self.name),
        }

    def start(self) -> None:
        """Start it: it follows, and leads when nobody does."""
        command = [sys.executable, "-m", "evsched", "run", "--snapshots", f"snapshots-{self.name}"]
        command += ["--address", self.name, "--checkpoint-every", "200"]
        log = (self._folder / f"{self.name}.log").open("ab")
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=self._folder, env=self._environment(), stdout=log, stderr=log
        )

    def end(self, how: signal.Signals) -> None:
        """End it by a signal and wait until it is gone."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def say(self, *arguments: str) -> tuple[int, str]:
        """Run a command of this program on the log; return its exit code and what it said."""
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "evsched", *arguments],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip()


def tree_of(commit: str, folder: Path) -> Path:
    """Return a folder with the source of a commit."""
    tree = folder / "old"
    tree.mkdir()
    archive = subprocess.run(  # noqa: S603 - a commit of this repository
        ["git", "archive", commit, "events", "evsched", "projections", "replays"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(tree, filter="data")
    return tree


async def leader(streams: Streams, wanted: str, term: int) -> tuple[int, float]:
    """Wait until this program leads in a term later than ``term``; return its term and how long that took, seconds."""
    begun = time.monotonic()
    while time.monotonic() - begun < TAKES_OVER_S:
        beat = await streams.log.last_heartbeat()
        if beat is not None and beat.address == wanted and beat.term > term and not beat.resigned:
            return beat.term, time.monotonic() - begun
        await asyncio.sleep(0.05)
    raise TimeoutError(f"{wanted} does not lead after {TAKES_OVER_S} s")


async def load(streams: Streams, rate: int, stop: asyncio.Event) -> list[str]:
    """Propose asks, and the end of those that are old, at this rate a second; return the ids of all proposals."""
    sent: list[str] = []
    number = 0
    while not stop.is_set():
        inputs: list[v.AnyInput] = []
        for _ in range(max(1, rate // 20)):
            number += 1
            ask = v.AskSubmitted(
                ask=f"t{number}",
                application="research",
                queue="root.research",
                resources={"vcore": 100},
                proposal=f"ask-{number}",
            )
            inputs.append(ask)
            if number > LIVES:
                gone = f"t{number - LIVES}"
                inputs.append(
                    v.AllocationReleased(allocation=gone, proposal=f"end-{number - LIVES}")
                )
        await streams.inbox.propose(inputs, "rolling upgrade")
        sent += [one.proposal for one in inputs]
        await asyncio.sleep(1 / 20)
    return sent


async def roll(
    url: str, old: Program, new: Program, handovers: int, rate: int
) -> dict[str, object]:
    """Let the two take over from each other and return what was seen."""
    async with open_streams(url, 0) as streams:
        await streams.inbox.propose([*cluster(), node("large", 1000)], "rolling upgrade")
        programs = {"old": old, "new": new}
        old.start()
        term, _ = await leader(streams, "old", 0)
        new.start()
        stop = asyncio.Event()
        loading = asyncio.create_task(load(streams, rate, stop))
        leads, without = "old", []
        for number in range(handovers):
            await asyncio.sleep(3)
            gone, leads = leads, "new" if leads == "old" else "old"
            assert programs[leads].alive, f"{leads} has ended, see its log"
            how = signal.SIGKILL if number % 2 else signal.SIGTERM
            await asyncio.to_thread(programs[gone].end, how)
            term, took = await leader(streams, leads, term)
            without.append(round(took, 2))
            programs[gone].start()
        stop.set()
        sent = await loading
        await asyncio.sleep(5)
        refused = await asyncio.to_thread(new.say, "rules", "adopt", "2")
        for program in programs.values():
            program.end(signal.SIGTERM)
        return await judged(streams, sent) | {
            "seconds_without_leader": without,
            "adoption": refused[1],
            "adoption_refused": refused[0] == 1,
        }


async def judged(streams: Streams, sent: list[str]) -> dict[str, object]:
    """Read the log and return what became of every proposal."""
    reader = ChainReader()
    events = [
        event
        async for steps in read_steps(streams.log, reader)
        for step in steps
        for event in step.events
    ]
    answered = Counter(
        getattr(event, "proposal", "") for event in events if getattr(event, "proposal", "")
    )
    bound = Counter(event.ask for event in events if isinstance(event, v.AllocationBound))
    leaders = [event for event in events if isinstance(event, v.LeaderStarted)]
    return {
        "proposals": len(sent),
        "events": len(events),
        "terms": len(leaders),
        "terms_of_new": sum(1 for one in leaders if one.release),
        "void_frames": reader.ignored,
        "bound": len(bound),
        "lost": sum(1 for name in sent if not answered[name]),
        "answered_twice": sum(1 for name in sent if answered[name] > 1),
        "bound_twice": sum(1 for count in bound.values() if count > 1),
        "checkpoints": sum(1 for one in events if isinstance(one, v.CheckpointRecorded)),
    }


def main() -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--handovers", type=int, default=10)
    parser.add_argument("--rate", type=int, default=100, help="asks a second")
    parser.add_argument("--commit", default="79caf5e")
    options = parser.parse_args()
    broker = shared_broker() if os.environ.get("EVSCHED_TEST_KAFKA") else own_broker()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            url = f"kafka://{broker.bootstrap}/rolling-{uuid.uuid4().hex[:8]}"
            old = Program("old", tree_of(options.commit, folder), url, folder)
            new = Program("new", ROOT, url, folder)
            made, said = old.say("topics", "create")
            if made:
                sys.stderr.write(said + "\n")
                return 1
            figures = asyncio.run(roll(url, old, new, options.handovers, options.rate))
            commands = (("verify",), ("log", "check"))
            judgements = {
                f"{program.name} {' '.join(command)}": program.say(*command)
                for program in (old, new)
                for command in commands
            }
    finally:
        broker.stop()
    clean = all(code == 0 for code, _ in judgements.values())
    figures |= {name: said.partition("\n")[0] for name, (_, said) in judgements.items()}
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    wrong = figures["lost"] or figures["answered_twice"] or figures["bound_twice"]
    return 0 if clean and figures["adoption_refused"] and not wrong else 1


if __name__ == "__main__":
    raise SystemExit(main())

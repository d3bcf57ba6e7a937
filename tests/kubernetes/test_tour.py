"""The tour of docs/kubernetes.md, on the control plane of the tests: its commands, as they stand there."""

import asyncio
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from events.chain import ChainReader
from events.errors import StreamMissing
from events.streams import open_streams
from events.streams.reading import read_steps
from tests.kubernetes.workload import pod_body
from tests.service.running import EVSCHED, Running

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kubernetes.md"


def lines():
    """Return the commands of evsched in the tour, without the sign that one goes on beside the others."""
    text = PAGE.read_text().partition("## Five minutes with kind or k3d")[2].partition("\n## ")[0]
    found = [line.strip() for line in text.splitlines() if line.startswith("    evsched ")]
    return [line.removesuffix(" &") for line in found]


async def logged(url, kind):
    """Return how many events of a type the log holds."""
    async with open_streams(url) as streams:
        try:
            batches = read_steps(streams.log, ChainReader())
            found = [step async for steps in batches for step in steps]
        except StreamMissing:
            return 0
    return sum(type(event).__name__ == kind for step in found for event in step.events)


async def until(url, kind, count):
    """Return once the log holds so many events of a type."""
    while True:
        if await logged(url, kind) >= count:
            return
        await asyncio.sleep(0.1)


async def test_every_command_of_the_tour_answers(world, tmp_path):
    """Pods are bound and one is deleted while it records; every command that asks says so, and the log verifies."""
    url = f"sqlite:///{tmp_path / 'tour.db'}"
    own = {"EVSCHED_LOG": url, "KUBECONFIG": str(world.plane.agent)}
    run, agent, *asked = lines()
    beside = [
        Running(tmp_path, *shlex.split(command)[1:], name=name, environment=own)
        for name, command in (("run", run), ("agent", agent))
    ]
    try:
        beside[0].start()
        await until(url, "LeaderStarted", 1)
        beside[1].start()
        await until(url, "NodeRegistered", 3)
        pods = f"/api/v1/namespaces/{world.namespace}/pods"
        for number in range(3):
            await world.do("create", pods, pod_body(f"web-{number}"))
        await until(url, "AskSubmitted", 3)
        await world.schedule()
        await until(url, "BindingObserved", 3)
        await world.do("delete", f"{pods}/web-0", {"gracePeriodSeconds": 0})
        await until(url, "AllocationReleased", 1)
        said = {}
        for command in asked:
            done = await asyncio.to_thread(
                subprocess.run,
                [str(EVSCHED), *shlex.split(command)[1:]],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, **own},
            )
            # A report exits 1 where evsched would have decided otherwise.
            assert done.returncode in ({0, 1} if "report" in command else {0}), done.stderr
            said[command] = done.stdout
    finally:
        for one in beside:
            one.kill()
    assert "observes               yes" in said["evsched status"]
    assert len(said["evsched log show --type BindingObserved"].splitlines()) == 3
    assert "web-0" in said["evsched log show --type AllocationReleased"]
    assert "of 3 decisions" in said["evsched shadow report"]
    assert "of 3 outcomes" in said["evsched shadow report --free"]
    assert "no difference" in said["evsched verify"]

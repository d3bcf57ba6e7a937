"""What it costs to record a cluster of 5,000 nodes and 50,000 pods: the agent's memory and CPU, and how soon a change is logged.

The agent runs in a process of its own, `evsched run --observe` in another, on a log in SQLite. The
API server is stood in for by JSON of the size that a real one sends, handed over as its lists and
watches would be; TLS and HTTP are not in the figures. Times are by the clock on the wall, CPU is
that of the agent's process, which also makes the JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.rows import Benchmark, Row
from events.streams import open_streams
from events.vocabulary import AnyEvent, AskSubmitted, BindingObserved
from evsched.agents.kubernetes.connection import PAGE
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.objects import NODES, PODS, ObjectKind
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recording import ClusterRecording
from tests.service.running import Running

NODE_COUNT, POD_COUNT = 5_000, 50_000
CHANGES_A_SECOND, STEADY_S = 500, 20
ALL = CHANGES_A_SECOND * STEADY_S
TICK_S = 0.02
"""Changes come a few at a time, so often."""

P99_MS = 250.0
GONE_S = 600.0

_NOISE = {"managedFields": [{"manager": "kube-controller-manager", "fieldsV1": {"f:metadata": "x" * 1500}}]}  # fmt: skip
_ENV = [{"name": f"SETTING_{number}", "value": "value" * 4} for number in range(12)]


def node(number: int) -> bytes:
    """Return a node."""
    name = f"node-{number:05}"
    size = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "900Gi"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "zone": f"z{number % 3}"}  # fmt: skip
    return json.dumps(
        {
            "metadata": _NOISE
            | {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {
                "allocatable": size,
                "capacity": size,
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": [{"names": ["registry/image" + "x" * 60], "sizeBytes": 1}] * 20,
            },
        }
    ).encode()


def pod(name: str, version: int, node_name: str = "") -> bytes:
    """Return a pod of about four kilobytes."""
    requests = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    meta = {
        "name": name,
        "namespace": f"team-{version % 20}" if name.startswith("pod") else "steady",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": name[:6], "pod-template-hash": "abcdef"},
    }
    bound = {"nodeName": node_name} if node_name else {}
    return json.dumps(
        {
            "metadata": _NOISE | meta,
            "spec": {
                "containers": [{"name": "main", "image": "i", "resources": requests, "env": _ENV}],
                "schedulerName": "default-scheduler",
                "tolerations": [
                    {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute"}
                    for word in ("not-ready", "unreachable")
                ],
            }
            | bound,
            "status": {"phase": "Running" if bound else "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
            ]},
        }
    ).encode()  # fmt: skip


class StoodIn:
    """An API server that lists a cluster, and then tells changes of pods at a steady rate.

    Attributes:
        told: Task and type of event to when its cause was handed over, seconds.
    """

    def __init__(self) -> None:
        """Hold everything back until `begin`."""
        self.told: dict[tuple[str, type], float] = {}
        self.begin = asyncio.Event()
        self._version = 10

    async def page(self, kind: ObjectKind, after: str) -> bytes:
        """Return a page of a list."""
        count = {NODES.name: NODE_COUNT, PODS.name: POD_COUNT}.get(kind.name, 0)
        begin = int(after or 0)
        end = min(begin + PAGE, count)
        items = [
            node(number)
            if kind == NODES
            else pod(f"pod-{number:05}", 2 + number % 7, f"node-{number % NODE_COUNT:05}")
            for number in range(begin, end)
        ]
        meta = {"resourceVersion": "10"} | ({"continue": str(end)} if end < count else {})
        return b'{"metadata":%s,"items":[%s]}' % (json.dumps(meta).encode(), b",".join(items))

    async def watch(self, kind: ObjectKind, version: str) -> AsyncIterator[bytes]:
        """Tell of pods that come, are bound, and go; of anything else nothing."""
        del version
        await self.begin.wait()
        if kind != PODS:
            await asyncio.Event().wait()
        started = time.monotonic()
        for number in range(ALL):
            ahead = number / CHANGES_A_SECOND - (time.monotonic() - started)
            if ahead > TICK_S:
                await asyncio.sleep(ahead)
            yield self._line(number)
        await asyncio.Event().wait()

    def _line(self, number: int) -> bytes:
        """Return the next change: every pod is told of twice, waiting and bound."""
        self._version += 1
        name, bound = f"steady-{number // 2:05}", number % 2 == 1
        body = pod(name, self._version, f"node-{number % NODE_COUNT:05}" if bound else "")
        self.told[f"steady/{name}", BindingObserved if bound else AskSubmitted] = time.monotonic()
        word = b"MODIFIED" if bound else b"ADDED"
        return b'{"type":"%s","object":%s}' % (word, body)


async def until(running: asyncio.Task[None], holds: Callable[[], bool]) -> None:
    """Return once something holds; raise where the recording ended, or it takes for ever."""
    async with asyncio.timeout(GONE_S):
        while not holds():
            if running.done():
                running.result()
            # By the clock: what is waited for has no event of its own.
            await asyncio.sleep(0.05)


async def record(url: str) -> dict[str, float]:
    """Record the stood-in cluster into a log that is led; return the figures."""
    source = StoodIn()
    seen: dict[tuple[str, type], float] = {}
    async with open_streams(url) as streams:
        recording = ClusterRecording(streams, source, Reading(masking=Masking()))
        take, logged = recording.recorder.take, 0

        def taken(event: AnyEvent) -> list[Any]:
            nonlocal logged
            logged += 1
            seen[getattr(event, "ask", ""), type(event)] = time.monotonic()
            return take(event)

        recording.recorder.take = taken  # type: ignore[method-assign]
        began, cpu = time.monotonic(), time.process_time()
        running = asyncio.create_task(recording.run())
        await until(running, lambda: logged >= NODE_COUNT + POD_COUNT)
        found = {
            "list_s": time.monotonic() - began,
            "list_cpu_s": time.process_time() - cpu,
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        cpu = time.process_time()
        source.begin.set()
        told = source.told
        await until(running, lambda: len(told) == ALL and told.keys() <= seen.keys())
        found["steady_cpu"] = (time.process_time() - cpu) / STEADY_S
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    late = [1000 * (seen[one] - when) for one, when in source.told.items()]
    found["p50_ms"], found["p99_ms"] = quantiles(late, n=100)[49], quantiles(late, n=100)[98]
    return found


def recording() -> Iterable[Row]:
    """Measure an agent that lists a large cluster and then follows it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'log.db'}"
        leader = Running(folder, "run", "--observe", "--log", url, name="leader", verbose=False)
        stack.callback(leader.kill)
        leader.start()
        while not leader.leading():
            assert not leader.over, leader.said()[-500:]
            time.sleep(0.05)
        agent = subprocess.run(
            [sys.executable, "-m", "benchmarks.kubernetes", url],
            capture_output=True, text=True, check=True, timeout=2 * GONE_S,
        )  # fmt: skip
    found: dict[str, float] = json.loads(agent.stdout.splitlines()[-1])
    size = f"{NODE_COUNT} nodes and {POD_COUNT} pods"
    rate = f"{CHANGES_A_SECOND} pod changes/s beside {POD_COUNT} pods"
    yield Row(
        name=f"listed, proposed and logged: {size}",
        value=found["list_s"],
        unit="s",
        better="less",
        note=f"{found['list_cpu_s']:.1f} s of CPU of the agent",
    )
    yield Row(
        name=f"memory of the agent, {size}",
        value=found["memory_mib"],
        unit="MiB",
        better="less",
        note="its peak, while it lists",
    )
    yield Row(
        name=f"from the watch to the log, p99, {rate}",
        value=found["p99_ms"],
        unit="ms",
        better="less",
        target=P99_MS,
        note=f"p50 {found['p50_ms']:.0f} ms; without TLS and HTTP",
    )
    yield Row(
        name=f"CPU of the agent, {rate}",
        value=found["steady_cpu"],
        unit="of a core",
        better="less",
    )


BENCHMARKS: dict[str, Benchmark] = {"recording": recording}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(record(sys.argv[1]))))

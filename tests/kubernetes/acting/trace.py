"""A recorded cluster run by evsched on a real control plane, while everything is killed that can be.

``python -m tests.kubernetes.acting.trace --folder FOLDER`` runs it in full. The first
pods of the trace become ReplicaSets and Jobs of two tenants; the second comes when the first has
taken what there is, and in the end the maximum of the first is lowered. `evsched run` and two agents
are processes of their own. The audit log of the API server says who bound and evicted what.
"""

import argparse
import asyncio
import csv
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx2

from events.chain import ChainReader
from events.streams import open_streams
from events.streams.reading import read_steps
from events.vocabulary import (
    AllocationBound,
    BindingObserved,
    EvictionObserved,
    InputRejected,
    PreemptionDecided,
    QuotaPreemptionDecided,
)
from evsched.core.engine import Engine
from tests.kubernetes.controlplane import AGENT, ControlPlane
from tests.kubernetes.manifests import component, path_of
from tests.kubernetes.model import actual, logged

NAMESPACE = "tenants"
LEASES = "evsched"
GPU = "example.com/gpu-milli"
CONFLICT = 409
NOT_READY = {403, 429, 500, 503, 504}
"""What an API server answers that has just been started, or has much to do."""

QUIET_S = 8
"""How long nothing may be decided before the next part begins."""

QUEUES = """
partitions:
  - name: default
    preemption: {{enabled: true, quotapreemptionenabled: true, eviction: {{grace: 20s, attempts: 3}}}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: first
            properties: {{preemption.delay: 2s, quota.preemption.delay: 2s}}
            resources: {{max: {{vcore: {most}m}}}}
          - name: second
            properties: {{preemption.delay: 2s}}
            resources: {{guaranteed: {{vcore: {guaranteed}m}}}}
          - name: rest
    placementrules:
      - name: provided
      - name: fixed
        value: root.rest
"""


@dataclass(frozen=True)
class Settings:
    """How large a run is, and how rough."""

    folder: Path
    nodes: int
    pods: int
    kills: int
    restarts: int
    seed: int = 1


@dataclass
class Report:
    """What came of a run; each count but the first six has to be zero."""

    seconds: float = 0
    bound: int = 0
    evicted: int = 0
    waiting: int = 0
    kills: dict = field(default_factory=dict)
    figures: dict = field(default_factory=dict)
    differing: int = 0
    bound_without_decision: int = 0
    bound_twice: int = 0
    evicted_without_decision: int = 0
    evicted_twice: int = 0
    refused_inputs: dict = field(default_factory=dict)
    verify: int = 0

    @property
    def holds(self):
        """Tell whether everything is as it must be."""
        wrong = (
            self.differing,
            self.bound_without_decision,
            self.bound_twice,
            self.evicted_without_decision,
            self.evicted_twice,
            self.verify,
        )
        return not any(wrong) and set(self.refused_inputs) <= {"duplicate", "unknown", "conflict"}


class Process:
    """One program of ours, which can be killed and is started again."""

    def __init__(self, folder, name, *arguments):
        self._command = [sys.executable, "-m", "evsched", *arguments]
        self._log = folder / f"{name}.log"
        self._running = None

    async def start(self):
        """Start it."""
        with self._log.open("ab") as log:
            self._running = await asyncio.create_subprocess_exec(
                *self._command, stdout=log, stderr=log
            )

    async def kill(self, number=signal.SIGKILL):
        """End it where it is."""
        if self._running is not None and self._running.returncode is None:
            self._running.send_signal(number)
            await self._running.wait()


class TraceRun:
    """One run."""

    def __init__(self, settings, folder):
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._plane = ControlPlane(audited=True)
        self._url = f"sqlite:///{folder}/log.db"
        self._streams = None
        self._chain = ChainReader()
        self._engine = Engine()
        self._steps = []
        self._moved = time.monotonic()
        self._kills = Counter()
        where = ["--log", self._url]
        act = [
            *("agent", "kubernetes", "--mode", "act", *where),
            *("--kubeconfig", str(self._plane.agent), "--honour-pdb", "best-effort"),
        ]
        self._leader = Process(
            folder, "leader", "run", *where, "--snapshots", f"{folder}/snapshots"
        )
        self._agents = [Process(folder, f"agent-{number}", *act) for number in range(2)]

    async def run(self):
        """Return what came of it."""
        begun = time.monotonic()
        await asyncio.to_thread(self._plane.start)
        try:
            for one in component("act"):
                if one["kind"] == "Role":
                    meta = {"metadata": {"name": LEASES}}
                    await self._do("create", "/api/v1/namespaces", meta)
                await self._do("create", path_of(one), one)
            await self._do("create", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            await self._leader.start()
            async with open_streams(self._url) as self._streams:
                report = await self._parts()
            report.seconds = time.monotonic() - begun
            return report
        finally:
            for one in (self._leader, *self._agents):
                await one.kill()
            await asyncio.to_thread(self._plane.stop)

    async def _parts(self):
        # Nodes without cards stand first in the trace, so nodes from all over it are taken.
        rows = self._rows("openb_node_list_all_node.csv", 1_000_000)
        rows = rows[:: max(1, len(rows) // self._settings.nodes)][: self._settings.nodes]
        total = sum(int(row["cpu_milli"]) for row in rows)
        await self._configure(most=total * 10, guaranteed=total // 2)
        await asyncio.gather(*(self._node(row) for row in rows))
        for agent in self._agents:
            await agent.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._make_trouble())
            for tenant in ("first", "second"):
                await self._create(tenant)
                await self._quiet()
            await self._configure(most=self._used("root.first") // 2, guaranteed=total // 2)
            await self._quiet()
        await self._quiet()
        return await self._report()

    # ------------------------------------------------------------------------------- what happens

    def _rows(self, name, count):
        with (self._settings.folder / name).open() as file:
            return [row for row, _ in zip(csv.DictReader(file), range(count), strict=False)]

    async def _do(self, what, *arguments):
        """Ask the API server until it answers; what it says is there already was created before its answer was lost."""
        while True:
            try:
                return await asyncio.to_thread(getattr(self._plane.api, what), *arguments)
            except httpx2.TransportError:
                pass
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == CONFLICT and what == "create":
                    return None
                if error.response.status_code not in NOT_READY:
                    raise
            await asyncio.sleep(0.3)

    async def _evsched(self, *arguments):
        command = [sys.executable, "-m", "evsched", *arguments]
        running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        said, _ = await running.communicate()
        return running.returncode, said.decode()

    async def _configure(self, **amounts):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(QUEUES.format(**amounts))
            file.flush()
            code, said = await self._evsched("config", "apply", file.name, "--log", self._url)
        assert code == 0, said

    async def _node(self, row):
        size = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
        if int(row["gpu"]):
            size[GPU] = str(int(row["gpu"]) * 1000)
        meta = {"name": row["sn"], "annotations": {"kwok.x-k8s.io/node": "fake"}}
        status = {"allocatable": size, "capacity": size}
        await self._do("create", "/api/v1/nodes", {"metadata": meta, "status": status})

    async def _create(self, tenant):
        """Create what a tenant runs: equal pods as one ReplicaSet or, each fourth, as a Job."""
        rows = self._rows("openb_pod_list_default.csv", self._settings.pods)
        kinds = Counter(
            (row["cpu_milli"], row["memory_mib"], int(row["num_gpu"]) * int(row["gpu_milli"] or 0))
            for row in rows[tenant == "second" :: 2]
        )
        for number, (size, count) in enumerate(sorted(kinds.items())):
            body = workload(tenant, number, size, count)
            path = "/apis/batch/v1" if body["kind"] == "Job" else "/apis/apps/v1"
            plural = f"{body['kind'].lower()}s"
            await self._do("create", f"{path}/namespaces/{NAMESPACE}/{plural}", body)

    async def _make_trouble(self):
        """Kill agents and leader, and restart the API server, in an order and at times of chance."""
        settings = self._settings
        what = ["agent", "leader"] * settings.kills + ["server"] * settings.restarts
        self._random.shuffle(what)
        for one in what:
            await asyncio.sleep(self._random.uniform(2, 8))
            self._kills[one] += 1
            if one == "server":
                await asyncio.to_thread(self._plane.stop_server)
                await asyncio.to_thread(self._plane.start_server)
                continue
            processes = [self._leader] if one == "leader" else self._agents
            for process in processes:
                await process.kill()
            for process in processes:
                await process.start()

    async def _quiet(self):
        """Return when the log and the cluster say the same, and nothing has been decided for a while."""
        self._moved = time.monotonic()
        while True:
            await self._follow()
            if time.monotonic() - self._moved > QUIET_S and not await self._differing():
                return
            await asyncio.sleep(0.5)

    async def _follow(self):
        async for steps in read_steps(self._streams.log, self._chain):
            for step in steps:
                self._steps.append(step)
                for event in step.events:
                    self._engine.apply(event, step.time)
                    if isinstance(event, AllocationBound | EvictionObserved | BindingObserved):
                        self._moved = time.monotonic()

    def _used(self, queue):
        """Return the thousandths of cpu that a queue uses."""
        state = self._engine.state
        return state.queues[queue].usage[state.types.names.index("vcore")]

    async def _differing(self):
        nodes = (await self._do("get", "/api/v1/nodes"))["items"]
        pods = (await self._do("get", "/api/v1/pods"))["items"]
        ours, theirs = logged(self._engine), actual(nodes, pods)
        return sum(ours[part] != theirs[part] for part in ours)

    # ------------------------------------------------------------------------------- what is counted

    async def _report(self):
        report = Report(kills=dict(self._kills), differing=int(await self._differing()))
        report.waiting = len(self._engine.state.asks)
        events = [(step.time, event) for step in self._steps for event in step.events]
        report.refused_inputs = dict(
            Counter(event.code for _, event in events if isinstance(event, InputRejected))
        )
        bindings, evictions = audited(self._plane.audit)
        decided = {str(e.seq): (time_, e) for time_, e in events if isinstance(e, AllocationBound)}
        waits = []
        for at, name, body in bindings:
            seq = body["metadata"]["annotations"]["evsched.io/decision"]
            time_, event = decided.get(seq, (0, None))
            wanted = event is not None and (event.ask, event.node) == (name, body["target"]["name"])
            report.bound_without_decision += not wanted
            waits.append(at - time_)
        report.bound = len(bindings)
        report.bound_twice = len(bindings) - len({name for _, name, _ in bindings})
        victims = {
            victim.id
            for _, event in events
            if isinstance(event, PreemptionDecided | QuotaPreemptionDecided)
            for victim in event.victims
        }
        report.evicted = len(evictions)
        report.evicted_twice = len(evictions) - len(set(evictions))
        report.evicted_without_decision = len(set(evictions) - victims)
        report.figures = figures([at for at, _, _ in bindings], waits)
        await self._leader.kill(signal.SIGTERM)
        report.verify, _ = await self._evsched("verify", "--log", self._url)
        return report


def workload(tenant, number, size, count):
    """Return a ReplicaSet or Job of so many equal pods."""
    cpu, memory, gpu = size
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | ({GPU: str(gpu)} if gpu else {})
    name = f"{tenant}-{number}"
    labels = {"queue": f"root.{tenant}", "applicationId": name, "app": name}
    limits = {GPU: str(gpu)} if gpu else {}
    main = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}}
    spec = {
        "schedulerName": "evsched",
        "terminationGracePeriodSeconds": 1,
        "containers": [main],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    if number % 4 == 3:
        spec["restartPolicy"] = "Never"
        body = {"template": template, "completions": count, "parallelism": count}
        return {"kind": "Job", "metadata": {"name": name}, "spec": body}
    selector = {"matchLabels": {"app": name}}
    body = {"template": template, "replicas": count, "selector": selector}
    return {"kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def audited(path):
    """Return what the agent has bound and evicted: times and names of what succeeded."""
    bindings, evictions = [], []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        ours = entry["user"]["username"] == AGENT
        if not ours or not 200 <= entry["responseStatus"].get("code", 0) < 300:
            continue
        ref = entry["objectRef"]
        name = f"{ref['namespace']}/{ref['name']}"
        at = datetime.fromisoformat(entry["stageTimestamp"]).timestamp() * 1000
        if ref.get("subresource") == "binding":
            bindings.append((at, name, entry["requestObject"]))
        elif "dryRun" not in entry["requestURI"]:
            evictions.append(name)
    return bindings, evictions


def figures(times, waits):
    """Return the figures of the note: the best ten seconds, and how long decisions took to be carried out."""
    times, waits = sorted(times), sorted(waits)
    best = max(
        (
            sum(at <= other < at + 10_000 for other in times[i : i + 5000])
            for i, at in enumerate(times)
        ),
        default=0,
    )
    at = {p: waits[min(len(waits) - 1, len(waits) * p // 100)] for p in (50, 99)} if waits else {}
    return {
        "bindings_per_second": best / 10,
        "decision_to_bound_p50_ms": round(at.get(50, 0)),
        "decision_to_bound_p99_ms": round(at.get(99, 0)),
    }


def main():
    """Run it in full and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--restarts", type=int, default=2)
    found = parser.parse_args()
    settings = Settings(**vars(found))
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(TraceRun(settings, Path(folder)).run())
    print(report)
    sys.exit(not report.holds)


if __name__ == "__main__":
    main()

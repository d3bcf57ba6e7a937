"""A cluster of a few nodes and pods in memory, a leader that observes, and the recorder between them.

The cluster changes by itself; what a watch tells of it may come late, be lost with the watch, and be
listed again. The leader takes the inbox in pieces, whenever it is asked to. Nothing here waits.
"""

from typing import Any

from events.vocabulary import InputRejected, Proposal
from evsched.agents.kubernetes.nodes import node_of
from evsched.agents.kubernetes.pods import pod_of
from evsched.agents.kubernetes.recorder import Listing, Recorder
from evsched.core.engine import Engine
from tests.kubernetes.objects import READING, node, node_json, pod, pod_json

KINDS = ("Node", "Pod")


CORDON = "node.kubernetes.io/unschedulable"


class Model:
    """The cluster with everything that records it.

    Attributes:
        objects: Kind to name to the object as JSON.
        engine: Of the leader.
        events: What the log holds.
    """

    def __init__(self) -> None:
        """Begin with an empty cluster and an empty log."""
        self.objects: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self.version = 1
        self.engine = Engine()
        self.events: list[Any] = []
        self._inbox: list[Any] = []
        self._taken = 0
        self._time = 1000
        self._untold: dict[str, list[tuple[dict[str, Any], bool]]] = {kind: [] for kind in KINDS}
        self._told = dict.fromkeys(KINDS, "")
        self._read = 0
        self.recorder = Recorder()
        self._propose(self.recorder.begin())

    # ---------------------------------------------------------------------------------- the cluster

    def put(self, kind: str, document: dict[str, Any]) -> None:
        """Create or change an object; the watch will tell."""
        self.version += 1
        name = document["metadata"]["name"]
        document["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind][name] = document
        self._untold[kind].append((document, False))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object; the watch will tell."""
        document = self.objects[kind].pop(name, None)
        if document is not None:
            self.version += 1
            last = {**document, "metadata": {**document["metadata"]}}
            last["metadata"]["resourceVersion"] = str(self.version)
            self._untold[kind].append((last, True))

    def create_pod(self, name: str, **spec: Any) -> None:
        """Create a pod, as another one than any before it."""
        uid = f"uid-{self.version + 1}"
        self.put("Pod", pod_json(name, spec, uid=uid))

    def bind(self, name: str, to: str) -> None:
        """Bind a pod that waits to a node that is there."""
        found = self.objects["Pod"].get(name)
        if found is not None and to in self.objects["Node"] and "nodeName" not in found["spec"]:
            self.change_pod(name, spec={"nodeName": to})

    def change_pod(
        self,
        name: str,
        spec: dict[str, Any] = {},  # noqa: B006 - only read
        status: dict[str, Any] = {},  # noqa: B006 - only read
        meta: dict[str, Any] = {},  # noqa: B006 - only read
    ) -> None:
        """Change fields of a pod that is there."""
        found = self.objects["Pod"].get(name)
        if found is not None:
            self.put(
                "Pod",
                {
                    "metadata": found["metadata"] | meta,
                    "spec": found["spec"] | spec,
                    "status": found["status"] | status,
                },
            )

    def join(self, name: str, cpu: str, **spec: Any) -> None:
        """Let a node join, or change."""
        self.put("Node", node_json(name, {"cpu": cpu, "pods": "110"}, **spec))

    # ------------------------------------------------------------------- what is told of the cluster

    def tell(self, kind: str, count: int = 1) -> None:
        """Let the watch of a kind tell its next changes; without a list before it there is none."""
        for _ in range(count):
            if not self._told[kind]:
                self.relist(kind)
            if not self._untold[kind]:
                return
            document, gone = self._untold[kind].pop(0)
            self._told[kind] = document["metadata"]["resourceVersion"]
            self._propose(self.recorder.saw(_seen(kind, document, gone=gone)))

    def relist(self, kind: str) -> None:
        """List a kind (again): what the watch had not told yet is lost."""
        self._untold[kind].clear()
        seen = tuple(_seen(kind, one) for one in self.objects[kind].values())
        before, self._told[kind] = self._told[kind], str(self.version)
        listing = Listing(
            kind=kind, version=str(self.version), objects=seen, before=before, reason="410"
        )
        self._propose(self.recorder.listed(listing))

    # ----------------------------------------------------------------------- the log and the recorder

    def lead(self, count: int = 1000) -> None:
        """Let the leader take so many proposals of the inbox."""
        batch = self._inbox[self._taken : self._taken + count]
        if not batch:
            return
        self._time += 1
        proposals = tuple(
            Proposal(input=one, id=one.proposal, source="kubernetes", position=self._taken + index)
            for index, one in enumerate(batch)
        )
        self._taken += len(batch)
        self.events += self.engine.step(self._time, proposals, decide=False)

    def follow(self) -> None:
        """Let the recorder read the log to its end."""
        while self._read < len(self.events):
            self._read += 1
            self._propose(self.recorder.take(self.events[self._read - 1]))

    def restart(self) -> None:
        """Kill the recorder and start another one, which knows the log and nothing else."""
        self.recorder = Recorder()
        self._read = 0
        self._told = dict.fromkeys(KINDS, "")
        self.follow()
        self._propose(self.recorder.begin())
        for kind in KINDS:
            self.relist(kind)

    def settle(self) -> None:
        """Let everything be told and taken."""
        for kind in KINDS:
            self.tell(kind, 10_000)
        while self._taken < len(self._inbox) or self._read < len(self.events):
            self.lead()
            self.follow()
            if self.recorder.doubtful:
                self.recorder.doubtful = ""
                for kind in KINDS:
                    self.relist(kind)

    def propose(self, *inputs: Any) -> None:
        """Propose what is no matter of the recorder."""
        self._propose(list(inputs))

    def _propose(self, inputs: list[Any]) -> None:
        self._inbox += inputs

    # ------------------------------------------------------------------------------- what is compared

    @property
    def rejected(self) -> list[str]:
        """Return the reasons of what the leader refused."""
        return [event.reason for event in self.events if isinstance(event, InputRejected)]

    def logged(self) -> dict[str, dict[str, Any]]:
        """Return the cluster as the leader's state has it."""
        return logged(self.engine)

    def actual(self) -> dict[str, dict[str, Any]]:
        """Return the cluster as it is."""
        pods = self.objects["Pod"].values()
        return actual(list(self.objects["Node"].values()), list(pods))


def _seen(kind: str, document: dict[str, Any], *, gone: bool = False) -> Any:
    if kind == "Node":
        return node_of(node(document), READING, gone=gone)
    return pod_of(pod(document), READING, gone=gone)


def logged(engine: Engine) -> dict[str, dict[str, Any]]:
    """Return the cluster as an engine's state has it: nodes, what waits, what runs."""
    state = engine.state
    names = state.types.names
    return {
        "nodes": {
            one.name: (
                {names[i]: amount for i, amount in enumerate(one.capacity) if amount},
                one.schedulable and not any(taint.key == CORDON for taint in one.taints),
            )
            for one in state.nodes.values()
        },
        "waiting": {one.id: one.uid for one in state.asks.values()},
        "running": {one.id: (one.uid, one.node) for one in state.allocations.values()},
    }


def actual(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a cluster as its objects have it, without any of the agent's code.

    A pod on a node that is gone runs nowhere, and one with a scheduling gate does not wait yet.
    """
    there = {one["metadata"]["name"] for one in nodes}
    waiting, running = {}, {}
    for one in pods:
        meta, spec = one["metadata"], one["spec"]
        name = f"{meta['namespace']}/{meta['name']}"
        if one["status"].get("phase") in {"Succeeded", "Failed"}:
            continue
        if spec.get("nodeName"):
            if spec["nodeName"] in there:
                running[name] = (meta["uid"], spec["nodeName"])
        elif not spec.get("schedulingGates"):
            waiting[name] = meta["uid"]
    return {
        "nodes": {
            one["metadata"]["name"]: (
                _amounts(one["status"].get("allocatable") or {}),
                not one["spec"].get("unschedulable", False),
            )
            for one in nodes
        },
        "waiting": waiting,
        "running": running,
    }


def _amounts(quantities: dict[str, str]) -> dict[str, int]:
    """Return the quantities that the tests use: whole numbers, thousandths, and powers of two."""
    factor = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    # The API server writes a whole number of thousands so.
    quantities = {
        name: f"{text[:-1]}000" if text.endswith("k") else text for name, text in quantities.items()
    }
    made = {}
    for name, text in quantities.items():
        if text.endswith("m"):
            amount = int(text[:-1])
        elif text[-2:] in factor:
            amount = int(text[:-2]) * factor[text[-2:]]
        else:
            amount = int(text) * (1000 if name == "cpu" else 1)
        made["vcore" if name == "cpu" else name] = amount
    return {name: amount for name, amount in made.items() if amount}

"""A cluster in memory, a leader that decides, and the acting agent between them, which can be killed at any call.

Nothing waits: time is moved to when something is due. Calls of the API and proposals are counted,
and the agent dies before or after the one that is asked for; another one begins with the log and a
list, and nothing else.
"""

from typing import Any

from events.vocabulary import ConfigurationApplied, InputRejected, Proposal
from evsched.agents.kubernetes.acting.actions import BindPod, SparePod
from evsched.agents.kubernetes.acting.actor import ClusterActor, Refusal
from evsched.agents.kubernetes.acting.confirming import ActingRecorder
from evsched.agents.kubernetes.acting.policy import ActingPolicy
from evsched.agents.kubernetes.acting.seen import decided_by, found_pod
from evsched.agents.kubernetes.nodes import node_of
from evsched.agents.kubernetes.pods import pod_of
from evsched.agents.kubernetes.recorder import Listing
from evsched.config import load_texts
from evsched.core.engine import Engine
from tests.kubernetes.acting.standin import StandInApi
from tests.kubernetes.model import actual, logged
from tests.kubernetes.objects import READING, node, node_json, pod, pod_json

KINDS = ("Node", "Pod")
MOMENT = "2026-01-01T00:00:00.000000Z"
OVER = {"Succeeded", "Failed"}


class Killed(Exception):
    """The agent died."""


class ActingModel:
    """The cluster with everything that acts in it.

    Attributes:
        api: The cluster.
        engine: Of the leader.
        events: What the log holds.
        ticks: How many calls and proposals the agents have made.
        fuse: The agent dies at this tick; None: never.
        fuse_after: It dies when that has happened, not before.
        deaths: How often that came about.
        bound_at: When a pod was last asked to be bound.
    """

    def __init__(
        self,
        queues: str,
        policy: ActingPolicy | None = None,
        *,
        fuse: int | None = None,
        fuse_after: bool = False,
    ) -> None:
        """Begin with an empty cluster and these queues."""
        self.api = StandInApi()
        self.policy = policy or ActingPolicy()
        self.engine = Engine()
        self.events: list[Any] = []
        self.time = 1_767_225_700_000
        self.ticks = 0
        self.fuse = fuse
        self.fuse_after = fuse_after
        self.bound_at = 0
        self.deaths = 0
        self._inbox: list[Any] = []
        self._taken = 0
        self._configuration = _read(queues)
        self.start()

    # ---------------------------------------------------------------------------------- the cluster

    def configure(self, queues: str) -> None:
        """Let an administrator apply other queues."""
        applied = ConfigurationApplied(configuration=_read(queues), proposal=f"admin:{self.time}")
        self._inbox.append(applied)

    def join(self, name: str, cpu: str = "8") -> None:
        """Let a node join."""
        document = node_json(name, {"cpu": cpu, "pods": "110"})
        del document["metadata"]["uid"]
        self.api.put("Node", document)

    def create(self, name: str, queue: str, cpu: str = "1", **spec: Any) -> None:
        """Create a pod of a queue; its application is that of the queue."""
        labels = {"queue": queue, "applicationId": queue.replace(".", "-"), "app": queue}
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        document = pod_json(
            name, {"schedulerName": "evsched", "containers": containers, **spec}, labels=labels
        )
        del document["metadata"]["uid"]
        self.api.put("Pod", document)

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod of the namespace of the tests."""
        return self.api.objects["Pod"][f"default/{name}"]

    def change(self, name: str, **parts: Any) -> None:
        """Change the metadata, spec or status of a pod."""
        found = self.pod(name)
        for part, more in parts.items():
            found.setdefault(part, {}).update(more)
        self.api.put("Pod", found)

    # ------------------------------------------------------------------------------------ the agent

    def start(self) -> None:
        """Start an agent, which knows the log and nothing else, and let it list the cluster."""
        self.actor = ClusterActor(self.policy)
        self.recorder = ActingRecorder(self.actor.orders)
        self._read = 0
        self._told = len(self.api.changes)
        for event in self.events:
            self.actor.take(event)
            self.recorder.take(event)
        self._read = len(self.events)
        begun = self.recorder.begin(has_queues=True)
        if self.recorder.view.configuration is None:
            begun = [self.recorder.configured(self._configuration, "", "default")]
        try:
            self._propose(begun)
            for kind in KINDS:
                self.show(kind)
        except Killed:
            self.start()

    def show(self, kind: str) -> None:
        """List all objects of a kind."""
        documents = self.api.objects[kind].values()
        seen = tuple(self._seen(kind, one) for one in documents)
        listing = Listing(kind=kind, version=str(self.api.version), objects=seen)
        self._propose(self.recorder.listed(listing))
        if kind == "Pod":
            self.actor.listed(
                (f"default/{one['metadata']['name']}", found_pod(pod(one)))
                for one in documents
                if one["status"].get("phase") not in OVER
            )

    def tell(self, count: int = 1_000_000) -> None:
        """Let the watches tell their next changes."""
        for _ in range(count):
            if self._told >= len(self.api.changes):
                return
            kind, document, gone = self.api.changes[self._told]
            self._told += 1
            if kind not in KINDS:
                continue
            self._propose(self.recorder.saw(self._seen(kind, document, gone=gone)))
            if kind == "Pod":
                over = gone or document["status"].get("phase") in OVER
                task = f"default/{document['metadata']['name']}"
                self.actor.saw(task, None if over else found_pod(pod(document)))

    def _seen(self, kind: str, document: dict[str, Any], *, gone: bool = False) -> Any:
        if kind == "Node":
            return node_of(node(document), READING, gone=gone)
        read = pod(document)
        return decided_by(self.policy, pod_of(read, READING, gone=gone), read)

    def act(self, count: int = 1_000_000) -> None:
        """Do so much of what is to be done now."""
        for _ in range(count):
            action = self.actor.next(self.time)
            if action is None:
                return
            if isinstance(action, SparePod):
                self._tell_of(self.actor.spared(action, self.time))
                continue
            self._tick(after=False)
            answer = self.api.answer(action.request(MOMENT))
            if isinstance(action, BindPod):
                self.bound_at = self.time
            self._tick(after=True)
            self._tell_of(self.actor.done(action, answer, self.time))

    def _tell_of(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self._propose(self.recorder.refused(refusal))

    def _propose(self, inputs: list[Any]) -> None:
        for one in inputs:
            self._tick(after=False)
            self._inbox.append(one)
            self._tick(after=True)

    def _tick(self, *, after: bool) -> None:
        self.ticks += not after
        if self.ticks == self.fuse and after == self.fuse_after:
            self.fuse = None
            self.deaths += 1
            raise Killed

    # ----------------------------------------------------------------------------------- the leader

    def lead(self) -> None:
        """Let the leader take the inbox, and decide."""
        batch = self._inbox[self._taken :]
        due = self.engine.next_due()
        if not batch and (due is None or due > self.time):
            return
        proposals = tuple(
            Proposal(input=one, id=one.proposal, source="kubernetes", position=self._taken + index)
            for index, one in enumerate(batch)
        )
        self._taken += len(batch)
        self.events += self.engine.step(self.time, proposals)

    def follow(self) -> None:
        """Let the agent read the log to its end."""
        while self._read < len(self.events):
            event = self.events[self._read]
            self._read += 1
            self.actor.take(event)
            self._propose(self.recorder.take(event))

    # ---------------------------------------------------------------------------------- everything

    def settle(self, most_ms: int = 600_000) -> None:
        """Let everything happen that comes of itself, up to so much later."""
        end = self.time + most_ms
        while True:
            try:
                before = self._mark()
                self.turn()
                if self._mark() != before:
                    continue
            except Killed:
                self.start()
                continue
            dues = [due for due in (self.engine.next_due(), self.actor.next_due()) if due]
            due = min(dues, default=end + 1)
            if due > end:
                return
            self.time = max(due, self.time + 1)

    def turn(self) -> None:
        """Let everybody have a turn."""
        self.tell()
        self.lead()
        self.follow()
        if self.recorder.doubtful:
            self.recorder.doubtful = ""
            for kind in KINDS:
                self.show(kind)
        self.act()
        self.api.kubelets()

    def _mark(self) -> tuple[int, ...]:
        return (self._taken, len(self._inbox), len(self.events), self.api.version, self.ticks)

    # ------------------------------------------------------------------------------ what is compared

    def said(self, *kinds: type) -> list[Any]:
        """Return the events of these types."""
        return [event for event in self.events if isinstance(event, kinds)]

    def logged(self) -> dict[str, Any]:
        """Return what runs where as the log has it; uids are given anew in each run."""
        return {one.id: one.node for one in self.engine.state.allocations.values()}

    def homes(self) -> dict[str, str]:
        """Return where each pod is bound."""
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "")
            for one in self.api.objects["Pod"].values()
        }

    def check(self) -> None:
        """Hold that log and cluster say the same, and that nothing was done twice or without the log."""
        nodes, pods = (list(self.api.objects[kind].values()) for kind in KINDS)
        assert logged(self.engine) == actual(nodes, pods)
        # What an agent proposed before it died the next one may propose again: the same id, or an end.
        harmless = {"duplicate", "unknown"} if self.deaths else set()
        refused = [one for one in self.said(InputRejected) if one.code not in harmless]
        assert refused == []
        once = [one for one in self.api.done if not one[1].endswith("/status")]
        assert len(once) == len(set(once))
        self._check_bindings()
        self._check_evictions()

    def _check_bindings(self) -> None:
        """Hold that each pod that was bound has the node and the number of a decision of its own."""
        decided = {
            str(event.seq): (event.ask, event.node)
            for event in self.events
            if type(event).__name__ == "AllocationBound"
        }
        for name, one in self.api.objects["Pod"].items():
            by = (one["metadata"].get("annotations") or {}).get("evsched.io/decision")
            if by is not None:
                assert decided[by] == (name, one["spec"].get("nodeName"))

    def _check_evictions(self) -> None:
        """Hold that nothing was evicted that the log did not decide, and nothing twice."""
        uids: dict[str, str] = {}
        victims = set()
        for event in self.events:
            if type(event).__name__ in {"AskSubmitted", "AllocationRestored"}:
                uids[getattr(event, "ask", "") or event.allocation] = event.uid
            for victim in getattr(event, "victims", ()):
                victims.add(uids.get(getattr(victim, "id", ""), ""))
        gone = [
            uid
            for method, path, uid in self.api.done
            if method == "DELETE" or path.endswith("/eviction")
        ]
        assert len(gone) == len(set(gone))
        assert set(gone) <= victims


def _read(queues: str) -> Any:
    return load_texts([("queues.yaml", queues)]).configurations[0]

"""The side effects on a cluster, each as one request to its API.

Each names the uid of its pod, so that it concerns no other pod of the name, and the ``seq`` of the
decision that it carries out.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from evsched.agents.kubernetes.acting.policy import (
    CONDITION,
    DECISION,
    PREEMPTED,
    SCHEDULER,
)
from evsched.agents.kubernetes.acting.seen import PodFound

JSON = "application/json"
STRATEGIC = "application/strategic-merge-patch+json"

MAX_NOTE = 1024
"""Characters that the API takes as the note of an Event; bytes, but all that is written there is short of it in ASCII."""

_LONGEST_MESSAGE = 4000


class ApiRequest(Struct, frozen=True):
    """A request to the API.

    Attributes:
        path: On the server; query parameters may follow.
        body: As JSON; None: none.
        content: Its type.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    body: Any = None
    content: str = JSON


class PodAction(Struct, frozen=True, kw_only=True):
    """Something to be done about a pod.

    Attributes:
        task: Its name in the log.
        seq: Of the decision that is carried out.
    """

    task: str
    pod: PodFound
    seq: int

    @property
    def key(self) -> str:
        """Return what sets this apart from everything else that is done about the pod."""
        return f"{type(self).__name__}:{self.seq}"

    @property
    def path(self) -> str:
        """Return the path of the pod."""
        return f"/api/v1/namespaces/{self.pod.namespace}/pods/{self.pod.name}"

    def request(self, at: str) -> ApiRequest:
        """Return the request.

        Args:
            at: The time, as the API writes it with microseconds.
        """
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        preconditions = {"uid": self.pod.uid}
        return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}

    def _status(self, status: dict[str, Any]) -> ApiRequest:
        # A uid in a patch is a precondition: the API refuses one that is not the pod's.
        body = {"metadata": {"uid": self.pod.uid}, "status": status}
        return ApiRequest("PATCH", f"{self.path}/status", body, STRATEGIC)


class BindPod(PodAction, frozen=True, kw_only=True):
    """Bind the pod to its node, and write on it which decision did so."""

    node: str

    def request(self, at: str) -> ApiRequest:
        """Return the request; a pod is bound once and never to another node."""
        del at
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": self.pod.name,
                "namespace": self.pod.namespace,
                "uid": self.pod.uid,
                "annotations": {DECISION: str(self.seq)},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node},
        }
        return ApiRequest("POST", f"{self.path}/binding", body)


class LookAtPod(PodAction, frozen=True, kw_only=True):
    """Look at the pod, as a binding was refused and the watch may be behind.

    Attributes:
        said: How the binding was refused.
    """

    said: str

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        del at
        return ApiRequest("GET", self.path)


class FreePod(PodAction, frozen=True, kw_only=True):
    """Take the scheduling gate away, and leave any other where it is."""

    gate: str

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        del at
        gates = [{"name": self.gate, "$patch": "delete"}]
        metadata = {"uid": self.pod.uid, "annotations": {DECISION: str(self.seq)}}
        body = {"metadata": metadata, "spec": {"schedulingGates": gates}}
        return ApiRequest("PATCH", self.path, body, STRATEGIC)


class MarkVictim(PodAction, frozen=True, kw_only=True):
    """Write on the pod that it is a victim, of which rule and of which decision.

    Attributes:
        again: The eviction has replaced what was written before it.
    """

    message: str
    again: bool = False

    @property
    def key(self) -> str:
        """Return what sets it apart: it is written at most once before the eviction and once after."""
        return f"MarkVictim:{self.seq}:{self.again}"

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        return self._status({"conditions": [_condition("True", self.message, at)]})


class UnmarkVictim(PodAction, frozen=True, kw_only=True):
    """Write on the pod that it is no victim any more."""

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        message = "evsched needs its room no longer"
        return self._status({"conditions": [_condition("False", message, at)]})


def _condition(status: str, message: str, at: str) -> dict[str, str]:
    return {
        "type": CONDITION,
        "status": status,
        "reason": PREEMPTED,
        "message": message[:_LONGEST_MESSAGE],
        # The API counts whole seconds here.
        "lastTransitionTime": f"{at[:19]}Z",
    }


class AnnounceEviction(PodAction, frozen=True, kw_only=True):
    """Create the Event that names both sides. Its name is made of decision and pod, so there is one."""

    message: str
    preemptor: PodFound | None = None
    instance: str = SCHEDULER

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"evsched.{self.seq}.{self.pod.uid}",
                "namespace": self.pod.namespace,
            },
            "eventTime": at,
            "type": "Normal",
            "reason": "Preempted",
            "action": "Preempting",
            "note": self.message[:MAX_NOTE],
            "regarding": _reference(self.pod),
            "reportingController": SCHEDULER,
            "reportingInstance": self.instance,
        }
        if self.preemptor is not None:
            body["related"] = _reference(self.preemptor)
        path = f"/apis/events.k8s.io/v1/namespaces/{self.pod.namespace}/events"
        return ApiRequest("POST", path, body)


def _reference(pod: PodFound) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }


class EvictPod(PodAction, frozen=True, kw_only=True):
    """Evict the pod by the Eviction API, which honours disruption budgets.

    Attributes:
        asked: Of the event that asked for it last.
        rehearsed: Only find out whether the budget allows it: nothing is written on a pod that stays.
    """

    asked: int
    rehearsed: bool

    @property
    def key(self) -> str:
        """Return what sets it apart: each repetition of the log asks anew."""
        return f"EvictPod:{self.asked}:{self.rehearsed}"

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        del at
        options = self._options() | ({"dryRun": ["All"]} if self.rehearsed else {})
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": self.pod.name, "namespace": self.pod.namespace},
            "deleteOptions": options,
        }
        path = f"{self.path}/eviction"
        return ApiRequest("POST", f"{path}?dryRun=All" if self.rehearsed else path, body)


class DeletePod(PodAction, frozen=True, kw_only=True):
    """Delete the pod, whatever a disruption budget says.

    Attributes:
        asked: Of the event that asked for it last.
    """

    asked: int

    @property
    def key(self) -> str:
        """Return what sets it apart: each repetition of the log asks anew."""
        return f"DeletePod:{self.asked}"

    def request(self, at: str) -> ApiRequest:
        """Return the request; the uid is its precondition."""
        del at
        return ApiRequest("DELETE", self.path, self._options())


class SparePod(PodAction, frozen=True, kw_only=True):
    """Evict a pod of another scheduler not at all: the log is told that it stays.

    Attributes:
        asked: Of the event that asked for it last.
    """

    asked: int

    @property
    def reason(self) -> str:
        """Return why it stays."""
        return f"the pod names scheduler {self.pod.scheduler}, which answers for it"


class TellWaiting(PodAction, frozen=True, kw_only=True):
    """Write on a pod that waits why it waits, and which node is kept for it."""

    message: str
    nominated: str

    def request(self, at: str) -> ApiRequest:
        """Return the request."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": self.message[:_LONGEST_MESSAGE],
        }
        if not self.pod.waits:
            condition["lastTransitionTime"] = f"{at[:19]}Z"
        nominated = self.nominated or None
        return self._status({"conditions": [condition], "nominatedNodeName": nominated})

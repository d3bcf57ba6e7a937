"""An API server in memory, as far as an acting agent speaks with one; `test_contract.py` holds it against a real one.

Nothing happens in it by itself: `kubelets` ends what is being deleted, and what watches are told is
asked for. Every request that changed something is written down.
"""

import json
from collections import defaultdict
from typing import Any

import msgspec

from evsched.agents.kubernetes.acting.actions import ApiRequest
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer

_PLURALS = {"nodes": "Node", "pods": "Pod", "events": "Event", "leases": "Lease"}


class StandInApi:
    """The API server.

    Attributes:
        objects: Kind to ``namespace/name`` to the object.
        changes: Kind, object and whether it is gone, of every change.
        done: What changed something: method, path and the uid of the object, in their order.
        budgets: Value of the label ``app`` to how many of its pods may be evicted.
        trouble: Answers that are given instead, each once: part of the path, and the answer.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.version = 1
        self.objects: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.changes: list[tuple[str, dict[str, Any], bool]] = []
        self.done: list[tuple[str, str, str]] = []
        self.budgets: dict[str, int] = {}
        self.trouble: list[tuple[str, ApiAnswer]] = []

    # ------------------------------------------------------------------------------- what others do

    def put(self, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        """Create an object or replace it."""
        self.version += 1
        meta = document["metadata"]
        meta["resourceVersion"] = str(self.version)
        meta.setdefault("uid", f"uid-{self.version}")
        self.objects[kind][_name(document)] = document
        self._tell(kind, document, gone=False)
        return document

    def remove(self, kind: str, name: str) -> None:
        """Remove an object at once."""
        document = self.objects[kind].pop(name, None)
        if document is not None:
            self.version += 1
            document["metadata"]["resourceVersion"] = str(self.version)
            self._tell(kind, document, gone=True)

    def kubelets(self) -> None:
        """End the pods that are being deleted and have no finalizer; those of nodes that are gone as well."""
        for name, pod in list(self.objects["Pod"].items()):
            home = pod["spec"].get("nodeName", "")
            lost = home and home not in {_bare(node) for node in self.objects["Node"]}
            leaving = "deletionTimestamp" in pod["metadata"] or lost
            if leaving and not pod["metadata"].get("finalizers"):
                self.remove("Pod", name)

    def _tell(self, kind: str, document: dict[str, Any], *, gone: bool) -> None:
        self.changes.append((kind, json.loads(json.dumps(document)), gone))

    # ------------------------------------------------------------------------------- what is asked of it

    def answer(self, request: ApiRequest) -> ApiAnswer:
        """Answer a request, as the real one does."""
        for index, (part, answer) in enumerate(self.trouble):
            if part in request.path:
                del self.trouble[index]
                return answer
        path = request.path.partition("?")[0].strip("/").split("/")
        # /api/v1/namespaces/N/pods/P/SUB or /apis/GROUP/V/namespaces/N/KIND/NAME
        at = path.index("namespaces") + 1
        namespace, plural, *rest = path[at:]
        kind = _PLURALS[plural]
        body = msgspec.to_builtins(request.body) if request.body is not None else {}
        if request.method == "POST" and not rest:
            return self._create(request, kind, namespace, body)
        found = self.objects[kind].get(f"{namespace}/{rest[0]}")
        if found is None:
            return _failure(404, "NotFound", f'{plural} "{rest[0]}" not found')
        if request.method == "GET":
            return ApiAnswer(200, msgspec.json.encode(found))
        if request.method == "PUT":
            return self._replace(request, kind, found, body)
        sub = rest[1] if len(rest) > 1 else ""
        if request.method == "DELETE":
            return self._delete(request, found, body.get("preconditions") or {})
        return {"binding": self._bind, "eviction": self._evict}.get(sub, self._patch)(
            request, found, body
        )

    def _create(
        self, request: ApiRequest, kind: str, namespace: str, body: dict[str, Any]
    ) -> ApiAnswer:
        name = f"{namespace}/{body['metadata']['name']}"
        if name in self.objects[kind]:
            return _failure(409, "AlreadyExists", f"{name} already exists")
        made = self.put(kind, body)
        self._did(request, made)
        return ApiAnswer(201, msgspec.json.encode(made))

    def _replace(
        self, request: ApiRequest, kind: str, found: dict[str, Any], body: dict[str, Any]
    ) -> ApiAnswer:
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict", "the object has been modified")
        body["metadata"]["uid"] = found["metadata"]["uid"]
        made = self.put(kind, body)
        self._did(request, made)
        return ApiAnswer(200, msgspec.json.encode(made))

    def _bind(self, request: ApiRequest, pod: dict[str, Any], body: dict[str, Any]) -> ApiAnswer:
        meta, spec = pod["metadata"], pod["spec"]
        if body["metadata"]["uid"] != meta["uid"]:
            return _failure(409, "Conflict", "Precondition failed: UID in precondition")
        if "deletionTimestamp" in meta:
            return _failure(409, "Conflict", "is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            return _failure(409, "Conflict", f"is already assigned to node {spec['nodeName']}")
        if spec.get("schedulingGates"):
            return _failure(409, "Conflict", "has non-empty .spec.schedulingGates")
        spec["nodeName"] = body["target"]["name"]
        meta.setdefault("annotations", {}).update(body["metadata"]["annotations"])
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _merge_condition(status, {"type": "PodScheduled", "status": "True"})
        self.put("Pod", pod)
        self._did(request, pod)
        return _success()

    def _evict(self, request: ApiRequest, pod: dict[str, Any], body: dict[str, Any]) -> ApiAnswer:
        app = (pod["metadata"].get("labels") or {}).get("app", "")
        options = body["deleteOptions"]
        running = pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        if running and app in self.budgets:
            if self.budgets[app] <= 0:
                said = "Cannot evict pod as it would violate the pod's disruption budget."
                causes = {"causes": [{"reason": "DisruptionBudget"}]}
                return _failure(429, "TooManyRequests", said, causes)
            if not options.get("dryRun"):
                self.budgets[app] -= 1
        if options["preconditions"]["uid"] != pod["metadata"]["uid"]:
            return _failure(409, "Conflict", "the UID in the precondition does not match")
        if options.get("dryRun"):
            return _success()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        _merge_condition(pod.setdefault("status", {}), condition)
        self.put("Pod", pod)
        return self._delete(request, pod, options["preconditions"])

    def _delete(
        self, request: ApiRequest, pod: dict[str, Any], preconditions: dict[str, Any]
    ) -> ApiAnswer:
        meta = pod["metadata"]
        if preconditions.get("uid", meta["uid"]) != meta["uid"]:
            return _failure(409, "Conflict", "Precondition failed: UID in precondition")
        if "deletionTimestamp" not in meta:
            self._did(request, pod)
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            if pod["spec"].get("nodeName") or meta.get("finalizers"):
                self.put("Pod", pod)
            else:
                self.remove("Pod", _name(pod))
        return _success()

    def _patch(self, request: ApiRequest, pod: dict[str, Any], body: dict[str, Any]) -> ApiAnswer:
        if body["metadata"]["uid"] != pod["metadata"]["uid"]:
            return _failure(422, "Invalid", "metadata.uid: field is immutable")
        before = json.dumps(pod)
        meta, status = pod["metadata"], pod.setdefault("status", {})
        meta.setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
        for gate in body.get("spec", {}).get("schedulingGates", ()):
            kept = [one for one in pod["spec"]["schedulingGates"] if one["name"] != gate["name"]]
            pod["spec"]["schedulingGates"] = kept
        for condition in body.get("status", {}).get("conditions", ()):
            _merge_condition(status, condition)
        if "nominatedNodeName" in body.get("status", {}):
            status["nominatedNodeName"] = body["status"]["nominatedNodeName"] or ""
        if json.dumps(pod) != before:
            self.put("Pod", pod)
            self._did(request, pod)
        return ApiAnswer(200, msgspec.json.encode(pod))

    def _did(self, request: ApiRequest, document: dict[str, Any]) -> None:
        self.done.append((request.method, request.path, document["metadata"]["uid"]))


def _name(document: dict[str, Any]) -> str:
    meta = document["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def _bare(name: str) -> str:
    return name.partition("/")[2]


def _merge_condition(status: dict[str, Any], condition: dict[str, Any]) -> None:
    conditions = status.setdefault("conditions", [])
    for one in conditions:
        if one["type"] == condition["type"]:
            one.update(condition)
            return
    conditions.append(dict(condition))


def _success() -> ApiAnswer:
    return ApiAnswer(201, b'{"kind":"Status","status":"Success"}')


def _failure(code: int, reason: str, message: str, details: Any = None) -> ApiAnswer:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return ApiAnswer(code, msgspec.json.encode(body | {"message": message, "details": details}))

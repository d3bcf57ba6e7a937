"""Makes objects of the Kubernetes API as the API server would send them."""

from typing import Any

import msgspec

from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.objects import NodeObject, PodObject
from evsched.agents.kubernetes.reading import Reading

READING = Reading(masking=Masking())


def pod(document: dict[str, Any]) -> PodObject:
    """Return a pod that was read from JSON."""
    return msgspec.json.decode(msgspec.json.encode(document), type=PodObject)


def node(document: dict[str, Any]) -> NodeObject:
    """Return a node that was read from JSON."""
    return msgspec.json.decode(msgspec.json.encode(document), type=NodeObject)


def pod_json(
    name: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any
) -> dict[str, Any]:
    """Return a pod of the namespace ``default`` with one container of one cpu."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "10",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **meta,
        },
        "spec": {"containers": [container(cpu="1")], "schedulerName": "default-scheduler"}
        | (spec or {}),
        "status": {"phase": "Pending"} | (status or {}),
    }


def node_json(
    name: str, allocatable: dict[str, str] | None = None, ready: str = "True", **spec: Any
) -> dict[str, Any]:
    """Return a node with 8 cpus unless told otherwise."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"},
        "spec": spec,
        "status": {
            "allocatable": allocatable or {"cpu": "8", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def container(name: str = "main", **requests: str) -> dict[str, Any]:
    """Return a container with these requests."""
    return {"name": name, "resources": {"requests": requests}}

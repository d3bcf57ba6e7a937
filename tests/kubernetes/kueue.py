"""Kueue as the tests have it: its kinds without their schemas, manifests of two teams, and a stand-in that admits and evicts.

The stand-in writes admissions and conditions as Kueue does, and chooses by no rule of its own: a test
says what is admitted and who is preempted for whom.
"""

from typing import Any

from tests.kubernetes.api import Api

GROUP, VERSION = "kueue.x-k8s.io", "v1beta1"
ROOT = f"/apis/{GROUP}/{VERSION}"
KINDS = {
    "ResourceFlavor": ("resourceflavors", "Cluster"),
    "Cohort": ("cohorts", "Cluster"),
    "ClusterQueue": ("clusterqueues", "Cluster"),
    "WorkloadPriorityClass": ("workloadpriorityclasses", "Cluster"),
    "LocalQueue": ("localqueues", "Namespaced"),
    "Workload": ("workloads", "Namespaced"),
}
"""Kind to its plural and its scope."""

NOON = "2026-01-01T12:00:00Z"


def definition(kind: str) -> dict[str, Any]:
    """Return the definition of a kind, which takes whatever fields an object has."""
    plural, scope = KINDS[kind]
    keep = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": keep},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            # The API server asks those who define kinds of this domain to name where that was agreed.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test's own"},
        },
        "spec": {
            "group": GROUP,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "scope": scope,
            "versions": [version],
        },
    }


def manifest(kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """Return an object of Kueue."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": metadata,
    } | fields


def cluster_queue(name: str, cpu: str, selector: Any = None) -> dict[str, Any]:
    """Return a ClusterQueue of the cohort ``company`` with a nominal quota of the flavor ``default-flavor``."""
    quota = {"name": "cpu", "nominalQuota": cpu}
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default-flavor", "resources": [quota]}],
    }
    spec = {"cohort": "company", "resourceGroups": [group], "namespaceSelector": selector}
    return manifest("ClusterQueue", name, spec=spec)


def workload(
    name: str, cpu: str = "1", count: int = 2, priority: int = 0, **spec: Any
) -> dict[str, Any]:
    """Return a Workload of one podset."""
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    podset = {"name": "main", "count": count, "template": pod}
    fields = {"queueName": "jobs", "priority": priority, "podSets": [podset]}
    return manifest("Workload", name, spec=fields | spec)


def condition(kind: str, reason: str, message: str = "", status: str = "True") -> dict[str, Any]:
    """Return a condition as Kueue writes it."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOON,
    }


def admission(queue: str, cpu: str, count: int = 2) -> dict[str, Any]:
    """Return an admission of the one podset."""
    assignment = {
        "name": "main",
        "flavors": {"cpu": "default-flavor"},
        "resourceUsage": {"cpu": cpu},
        "count": count,
    }
    return {"clusterQueue": queue, "podSetAssignments": [assignment]}


def admitted(queue: str, cpu: str, count: int = 2) -> dict[str, Any]:
    """Return the status of a Workload whose quota is reserved."""
    return {
        "admission": admission(queue, cpu, count),
        "conditions": [condition("QuotaReserved", "QuotaReserved")],
    }


def preempted(queue: str, cpu: str, preemptor: str) -> dict[str, Any]:
    """Return the status of a Workload that holds its quota and is preempted for another, named by uid."""
    said = (
        f"Preempted to accommodate a workload (UID: {preemptor}, JobUID: UNKNOWN) due to "
        "prioritization in the ClusterQueue"
    )
    status = admitted(queue, cpu)
    status["conditions"] += [
        condition("Evicted", "Preempted", said),
        condition("Preempted", "InClusterQueue", said),
    ]
    return status


def requeued(preemptor: str) -> dict[str, Any]:
    """Return the status of a Workload that lost its quota and waits again."""
    status = preempted("", "0", preemptor)
    status["conditions"][0] = condition("QuotaReserved", "Pending", status="False")
    return {"admission": None, "conditions": status["conditions"]}


class Kueue:
    """Kueue's objects in a cluster."""

    def __init__(self, api: Api, namespace: str) -> None:
        """Use the kinds that are defined, and define those that are not."""
        self._api = api
        self._namespace = namespace
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for kind, (plural, _) in KINDS.items():
            if api.ask("GET", f"{definitions}/{plural}.{GROUP}").status_code == 404:
                api.create(definitions, definition(kind))
        for plural, _ in KINDS.values():
            while not api.ask("GET", f"{ROOT}/{plural}").is_success:
                pass

    def path(self, kind: str, name: str = "") -> str:
        """Return where a kind's objects are, or one of them."""
        plural, scope = KINDS[kind]
        within = f"/namespaces/{self._namespace}" if scope == "Namespaced" else ""
        return f"{ROOT}{within}/{plural}" + (f"/{name}" if name else "")

    def create(self, found: dict[str, Any]) -> str:
        """Create an object; return its uid."""
        made = self._api.create(self.path(found["kind"]), found)
        return str(made["metadata"]["uid"])

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        """Change an object."""
        self._api.patch(self.path(kind, name), change)

    def write(self, name: str, status: dict[str, Any]) -> None:
        """Write the status of a Workload."""
        self._api.patch(f"{self.path('Workload', name)}/status", {"status": status})

    def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        self._api.delete(self.path(kind, name))

    def remove(self) -> None:
        """Remove all objects, but not their kinds."""
        for kind in KINDS:
            self._api.delete(self.path(kind))

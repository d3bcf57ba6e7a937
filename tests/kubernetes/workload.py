"""What runs in the cluster of the tests, and the stand-in that schedules it by a rule of its own."""

from typing import Any

from tests.kubernetes.api import Api


def node_body(name: str, test: str, cpu: str = "8") -> dict[str, Any]:
    """Return a node of a test, for KWOK to keep alive."""
    size = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "evsched-test": test},
        },
        "status": {"allocatable": size, "capacity": size},
    }


def pod_body(name: str, cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    """Return a pod that the stand-in has to schedule, as no other scheduler knows its name."""
    return {
        "metadata": {"name": name, "labels": {"app": name.rpartition("-")[0]}},
        "spec": {
            "schedulerName": "stand-in",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
            ],
        }
        | spec,
    }


def replica_set(name: str, replicas: int, cpu: str = "500m") -> dict[str, Any]:
    """Return a ReplicaSet of such pods."""
    pod = pod_body(f"{name}-0", cpu)
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]},
        },
    }


class StandIn:
    """A scheduler that binds by its own rule: the next pod by name goes to the node with the most pods that still fits it.

    Attributes:
        bound: How many pods it has bound.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self.bound = 0

    def schedule(self, most: int = 10_000) -> int:
        """Bind what waits, up to so many; return how many were bound."""
        pods = self._api.get("/api/v1/pods")["items"]
        nodes = self._api.get("/api/v1/nodes")["items"]
        free = {
            one["metadata"]["name"]: millis(one["status"]["allocatable"]["cpu"]) for one in nodes
        }
        count = dict.fromkeys(free, 0)
        for pod in pods:
            home = pod["spec"].get("nodeName")
            if home in free and pod["status"].get("phase") not in {"Succeeded", "Failed"}:
                free[home] -= cpu_of(pod)
                count[home] += 1
        waiting = [
            pod
            for pod in pods
            if pod["metadata"]["namespace"] == self._namespace
            and not pod["spec"].get("nodeName")
            and not pod["spec"].get("schedulingGates")
        ]
        done = 0
        for pod in sorted(waiting, key=lambda one: one["metadata"]["name"])[:most]:
            fitting = [node for node, left in free.items() if left >= cpu_of(pod)]
            if fitting:
                chosen = max(fitting, key=lambda node: (count[node], node))
                free[chosen] -= cpu_of(pod)
                count[chosen] += 1
                done += self._bind(pod, chosen)
        self.bound += done
        return done

    def _bind(self, pod: dict[str, Any], node: str) -> bool:
        """Bind a pod; one that is gone by now, or another, is left alone."""
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self._api.ask("POST", path, body).is_success


def cpu_of(pod: dict[str, Any]) -> int:
    """Return the thousandths of cpu that the one container of a pod requests."""
    return millis(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def millis(text: str) -> int:
    """Return a quantity of cpu in thousandths."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000

"""What a pod requests, as kube-scheduler counts it: a table of pods and their amounts."""

import pytest

from evsched.agents.kubernetes.requests import requests_of
from tests.kubernetes.objects import container, pod, pod_json

GI = 2**30


def sidecar(name, **requests):
    """Return an init container that goes on running."""
    return container(name, **requests) | {"restartPolicy": "Always"}


def given(name="main", allocated=None, **requests):
    """Return what a kubelet says that it has given a container."""
    return {"name": name, "resources": {"requests": requests}} | (
        {"allocatedResources": allocated} if allocated else {}
    )


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}

TABLE = {
    "a pod without requests is one of pods": ({"containers": [{"name": "main"}]}, {}, {}),
    "containers are added up": (
        {"containers": [container("a", cpu="1", memory="1Gi"), container("b", cpu="500m")]},
        {},
        {"cpu": 1500, "memory": GI},
    ),
    "a fraction of a unit is rounded up": (
        {"containers": [container(cpu="0.0001")]},
        {},
        {"cpu": 1},
    ),
    "an init container counts when it is larger than the sum": (
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]},
        {},
        {"cpu": 3000},
    ),
    "the largest init container counts, not their sum": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2"), container("j", cpu="3")],
        },
        {},
        {"cpu": 3000},
    ),
    "a sidecar runs beside the containers": (
        {"containers": [container(cpu="1")], "initContainers": [sidecar("s", cpu="2")]},
        {},
        {"cpu": 3000},
    ),
    "an init container runs beside the sidecars before it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [sidecar("s", cpu="2"), container("i", cpu="5")],
        },
        {},
        {"cpu": 7000},
    ),
    "an init container does not wait for the sidecars after it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="5"), sidecar("s", cpu="2")],
        },
        {},
        {"cpu": 5000},
    ),
    "overhead is added": (
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Gi"}},
        {},
        {"cpu": 1250, "memory": GI},
    ),
    "a request of the pod takes the place of the sum, for cpu and memory alone": (
        {
            "containers": [container(**{"cpu": "1", "example.com/gpu": "2"})],
            "resources": {"requests": {"cpu": "4", "example.com/gpu": "9"}},
        },
        {},
        {"cpu": 4000, "example.com/gpu": 2},
    ),
    "huge pages of the pod count as well": (
        {
            "containers": [container(**{"hugepages-2Mi": "2Mi"})],
            "resources": {"requests": {"hugepages-2Mi": "4Mi"}},
        },
        {},
        {"hugepages-2Mi": 4 * 2**20},
    ),
    "while a resize is under way the larger amount counts": (
        {"containers": [container(cpu="1")]},
        {"containerStatuses": [given(cpu="2", allocated={"cpu": "3"})]},
        {"cpu": 3000},
    ),
    "a resize that waits counts as wished": (
        {"containers": [container(cpu="4")]},
        {"containerStatuses": [given(cpu="2")], "conditions": [DEFERRED]},
        {"cpu": 4000},
    ),
    "a resize that can never be does not count": (
        {"containers": [container(cpu="9")]},
        {"containerStatuses": [given(cpu="2")], "conditions": [INFEASIBLE]},
        {"cpu": 2000},
    ),
    "a resized sidecar counts with what it was given": (
        {"containers": [container(cpu="1")], "initContainers": [sidecar("s", cpu="1")]},
        {"initContainerStatuses": [given("s", cpu="3")]},
        {"cpu": 4000},
    ),
    "an init container that is over is not resized": (
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="2")]},
        {"initContainerStatuses": [given("i", cpu="9")]},
        {"cpu": 2000},
    ),
    "a number without quotes is read like one with them": (
        {"containers": [{"name": "main", "resources": {"requests": {"cpu": 2}}}]},
        {},
        {"cpu": 2000},
    ),
    "more than can be counted is as much as can be counted": (
        {"containers": [container(**{"example.com/x": "8E"})]},
        {},
        {"example.com/x": 2**53},
    ),
}


@pytest.mark.parametrize(("spec", "status", "expected"), TABLE.values(), ids=TABLE.keys())
def test_a_pod_counts_for_what_kube_scheduler_counts(spec, status, expected):
    """Init containers, sidecars, overhead, requests of the pod and resizes count as for kube-scheduler."""
    assert requests_of(pod(pod_json("p", spec, status))) == expected | {"pods": 1}

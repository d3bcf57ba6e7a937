"""How much a pod requests, counted as kube-scheduler counts it.

The largest of two sums: what its containers and sidecars request while it runs, and what each init
container requests while it starts, together with the sidecars that started before it. A request at
the level of the pod takes the place of the sum for cpu, memory and huge pages, and the overhead of
its runtime class is added. A resize in place counts with the larger of what is wished and what is
given, until the kubelet says that it can never be. A pod is also one of ``pods``, which a node has
so many of.
"""

from __future__ import annotations

from collections.abc import Iterable

from events.bounds import MAX_AMOUNT
from events.configuration import Amounts
from evsched.agents.kubernetes.objects import (
    Container,
    ContainerStatus,
    PodObject,
    PodSpec,
    PodStatus,
    Quantities,
)
from evsched.core.quantity import parse_kubernetes

PODS_RESOURCE = "pods"


def amounts(quantities: Quantities | None) -> Amounts:
    """Return quantities in base units; one that is beyond what evsched counts is as much as it counts.

    Raises:
        QuantityError: A text is no quantity, which an API server lets nobody write.
    """
    return {
        name: min(parse_kubernetes(name, str(text)), MAX_AMOUNT)
        for name, text in (quantities or {}).items()
    }


def requests_of(pod: PodObject) -> Amounts:
    """Return what a pod counts for on its node and in its quotas, in base units; what is 0 is left out."""
    return requests(pod.spec, pod.status)


def requests(spec: PodSpec, status: PodStatus) -> Amounts:
    """Return what a pod of this kind counts for; one that is still to be made has an empty status."""
    given = {
        one.name: one
        for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    }
    infeasible = _resize_is_infeasible(status)
    running = _summed(_container(one, given, infeasible=infeasible) for one in spec.containers)
    sidecars: Amounts = {}
    starting: Amounts = {}
    for one in spec.init_containers or ():
        if one.restart_policy == "Always":
            wanted = _container(one, given, infeasible=infeasible)
            running = _summed((running, wanted))
            sidecars = _summed((sidecars, wanted))
            starting = _largest((starting, sidecars))
        else:
            # An init container ends before the pod runs, so a resize does not concern it.
            alone = amounts(one.resources.requests if one.resources else None)
            starting = _largest((starting, _summed((alone, sidecars))))
    total = _largest((running, starting))
    whole = amounts(spec.resources.requests if spec.resources else None)
    total |= {name: amount for name, amount in whole.items() if _at_pod_level(name)}
    total = _summed((total, amounts(spec.overhead), {PODS_RESOURCE: 1}))
    return {name: min(amount, MAX_AMOUNT) for name, amount in sorted(total.items()) if amount}


def _container(
    container: Container, given: dict[str, ContainerStatus], *, infeasible: bool
) -> Amounts:
    """Return what a container counts for: the largest of what it requests and what it was given."""
    wished = amounts(container.resources.requests if container.resources else None)
    status = given.get(container.name)
    if status is None or status.resources is None:
        return wished
    has = (amounts(status.resources.requests), amounts(status.allocated_resources))
    return _largest(has if infeasible else (wished, *has))


def _resize_is_infeasible(status: PodStatus) -> bool:
    """Tell whether the kubelet has said that a resize can never be; then only what is given counts."""
    return any(
        one.type == "PodResizePending" and one.reason == "Infeasible"
        for one in status.conditions or ()
    )


def _at_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def _summed(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _largest(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = max(total.get(name, 0), amount)
    return total

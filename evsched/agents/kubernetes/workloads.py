"""Translates Workloads of Kueue: an API object to the task that the log knows, with its podsets.

A Workload asks for quota for all its podsets at once, is admitted with a flavor for each resource,
and may lose its quota again and wait anew under the same uid. Which of that is so now stands in its
admission and its conditions. ``evsched import kueue`` reads the same objects from a file.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

from events.configuration import Amounts
from events.vocabulary import AskSubmitted, PodSet
from evsched.agents.kubernetes.objects import (
    ApiObject,
    ApiStruct,
    Condition,
    PodSpec,
    PodStatus,
    Quantities,
    StringMap,
    holding,
)
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.requests import PODS_RESOURCE, amounts, requests
from evsched.agents.kubernetes.tasks import Leaving, SeenTask, Stage, milliseconds

SCHEDULER = "kueue"
"""Under which name the log has what Kueue decided."""

PREEMPTED = "Preempted"
"""The reason of the condition ``Evicted`` where quota was needed for another Workload."""

_PREEMPTOR = re.compile(r"^Preempted to accommodate a workload \(UID: ([^,)\s]+)")
"""How Kueue names the other Workload, since its release 0.6."""


class PodTemplate(ApiStruct, frozen=True):
    """What the pods of a podset look like."""

    spec: PodSpec = PodSpec()


class PodSetFound(ApiStruct, frozen=True):
    """A group of equal pods of a Workload."""

    name: str = "main"
    count: int = 1
    template: PodTemplate = PodTemplate()


class WorkloadSpec(ApiStruct, frozen=True):
    """What a Workload asks for; one that is not active asks for nothing."""

    queue_name: str = ""
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    pod_sets: tuple[PodSetFound, ...] = ()
    active: bool | None = None


class PodSetAssignment(ApiStruct, frozen=True):
    """What a podset was admitted with: the flavor of each resource, and how much of it all its pods use.

    Attributes:
        count: How many pods were admitted, which may be less than were asked for; None: as many.
    """

    name: str = "main"
    flavors: StringMap | None = None
    resource_usage: Quantities | None = None
    count: int | None = None


class Admission(ApiStruct, frozen=True):
    """What a Workload was admitted with."""

    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class ReclaimablePods(ApiStruct, frozen=True):
    """How many pods of a podset need their quota no longer."""

    name: str
    count: int = 0


class WorkloadStatus(ApiStruct, frozen=True):
    """What has become of a Workload."""

    admission: Admission | None = None
    conditions: tuple[Condition, ...] | None = None
    reclaimable_pods: tuple[ReclaimablePods, ...] | None = None


class WorkloadObject(ApiObject, frozen=True):
    """A Workload of Kueue."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def when(self, condition: str) -> Condition | None:
        """Return a condition that holds; None: it is not there, or does not."""
        return holding(self.status.conditions, condition)

    @property
    def holds(self) -> bool:
        """Whether quota is reserved for it, in flavors that its admission names."""
        return self.status.admission is not None and self.when("QuotaReserved") is not None


def asked(workload: WorkloadObject) -> tuple[PodSet, ...]:
    """Return the podsets that a Workload asks for, times the counts of the pods that still need quota.

    Raises:
        QuantityError: An amount is no quantity.
    """
    done = _reclaimable(workload)
    return tuple(
        PodSet(name=one.name, resources=_requested(one, max(0, one.count - done.get(one.name, 0))))
        for one in workload.spec.pod_sets
    )


def admitted(workload: WorkloadObject) -> tuple[PodSet, ...]:
    """Return the podsets that a Workload was admitted with, less what its finished pods gave back.

    Raises:
        QuantityError: An amount is no quantity.
    """
    admission = workload.status.admission
    if admission is None:
        return ()
    done = _reclaimable(workload)
    counts = {one.name: one.count for one in workload.spec.pod_sets}
    made = []
    for one in admission.pod_set_assignments:
        count = counts.get(one.name, 1) if one.count is None else one.count
        left = max(0, count - done.get(one.name, 0))
        used = amounts(one.resource_usage)
        if left < count:
            # Kueue counts one pod as the whole divided by the pods, and that times those that are left.
            used = {name: amount // count * left for name, amount in used.items()}
        made.append(PodSet(name=one.name, resources=used, flavors=one.flavors or {}))
    return tuple(made)


def learn(workload: WorkloadObject, reading: Reading) -> str:
    """Note the name that the log has for a Workload, under the uid by which Kueue names it; return it."""
    meta = workload.metadata
    task = reading.masking.object(meta.namespace, meta.name)
    reading.workloads[meta.uid] = task
    return task


def workload_of(workload: WorkloadObject, reading: Reading, *, gone: bool = False) -> SeenTask:
    """Return a Workload as the cluster has it.

    Args:
        workload: As the API gave it.
        reading: Names of the log, and what other objects say. It learns the name of this Workload.
        gone: It was deleted, and this was its last state.
    """
    meta, spec, masking = workload.metadata, workload.spec, reading.masking
    task = learn(workload, reading)
    evicted, reserved = workload.when("Evicted"), workload.when("QuotaReserved")
    stage = _stage(workload, gone=gone)
    if stage == "over":
        reading.workloads.pop(meta.uid, None)
    return SeenTask(
        task=task,
        uid=meta.uid,
        version=meta.resource_version,
        stage=stage,
        ask=AskSubmitted(
            ask=task,
            queue=f"{masking.namespace(meta.namespace)}/{spec.queue_name}",
            priority=spec.priority or 0,
            created=milliseconds(meta.creation_timestamp),
            uid=meta.uid or None,
            podsets=asked(workload),
        ),
        scheduler=SCHEDULER,
        podsets=admitted(workload) if stage == "bound" else (),
        leaving=leaving_of(evicted, reading.workloads)
        if stage == "bound" and evicted is not None
        else None,
        ended=_ended(workload, stage),
        bound_at=None if reserved is None else milliseconds(reserved.last_transition_time),
    )


def leaving_of(evicted: Condition, names: dict[str, str]) -> Leaving:
    """Return who evicts a Workload and why.

    Args:
        evicted: Its condition ``Evicted``.
        names: The uid of each Workload to its name in the log: Kueue names by uid whom it makes
            room for.
    """
    message = evicted.message or ""
    named = _PREEMPTOR.match(message)
    return Leaving(
        reason=evicted.reason or "",
        message=message,
        scheduler=SCHEDULER,
        preemptor=names.get(named[1], "") if named is not None else "",
        at=milliseconds(evicted.last_transition_time),
    )


def _stage(workload: WorkloadObject, *, gone: bool) -> Stage:
    if gone or workload.when("Finished") is not None:
        return "over"
    if workload.holds:
        return "bound"
    return "gated" if workload.spec.active is False else "waiting"


def _ended(workload: WorkloadObject, stage: Stage) -> str:
    """Return why a Workload holds no quota, in the words of AllocationReleased; empty: it does."""
    finished, evicted = workload.when("Finished"), workload.when("Evicted")
    if stage == "bound":
        return ""
    if finished is not None:
        return "failed" if finished.reason == "Failed" else "completed"
    if evicted is not None:
        return "preempted" if evicted.reason == PREEMPTED else "evicted"
    return "deleted" if stage == "over" else ""


def _reclaimable(workload: WorkloadObject) -> dict[str, int]:
    return {one.name: one.count for one in workload.status.reclaimable_pods or ()}


def _requested(one: PodSetFound, count: int) -> Amounts:
    """Return what so many pods of a podset request; that they are pods counts where a quota says so, in the admission."""
    each = requests(one.template.spec, PodStatus())
    return {name: amount * count for name, amount in each.items() if name != PODS_RESOURCE}

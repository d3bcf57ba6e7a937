"""Translates pods: an API object to the task that the log knows, and where it is in its life.

A task is named ``namespace/name`` after its pod, and carries the pod's uid: a pod that was deleted
and created again under the same name is another task, and the log ends the one before it begins the
other.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from events.vocabulary import ApplicationSubmitted, AskSubmitted
from evsched.agents.kubernetes.constraints import facts_of, required_node
from evsched.agents.kubernetes.masking import USER_LABEL
from evsched.agents.kubernetes.objects import Condition, PodObject, holding
from evsched.agents.kubernetes.reading import ALLOW_PREEMPTION, Reading
from evsched.agents.kubernetes.requests import requests_of
from evsched.agents.kubernetes.tasks import Leaving, SeenTask, Stage, milliseconds

_QUEUE_LABELS = ("yunikorn.apache.org/queue", "queue")
_QUEUE_NOTES = ("yunikorn.apache.org/queue",)
_APPLICATION_LABELS = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
_APPLICATION_NOTES = ("yunikorn.apache.org/app-id",)
_USER_NOTE = "yunikorn.apache.org/user.info"
_NOBODY = "nobody"
_PREEMPTION = "PreemptionByScheduler"
_MAX_APPLICATION = 63


class _UserInfo(Struct):
    user: str = ""
    groups: tuple[str, ...] = ()


def pod_of(pod: PodObject, reading: Reading, *, gone: bool = False) -> SeenTask:
    """Return a pod as the cluster has it.

    Args:
        pod: As the API gave it.
        reading: Names of the log, and what other objects say.
        gone: It was deleted, and this was its last state.
    """
    meta, spec = pod.metadata, pod.spec
    ask = _ask(pod, reading)
    stage: Stage = "waiting"
    if gone or pod.status.phase in {"Succeeded", "Failed"}:
        stage = "over"
    elif spec.node_name:
        stage = "bound"
    elif spec.scheduling_gates:
        stage = "gated"
    disrupted = holding(pod.status.conditions, "DisruptionTarget")
    scheduled = holding(pod.status.conditions, "PodScheduled")
    return SeenTask(
        task=ask.ask,
        uid=meta.uid,
        version=meta.resource_version,
        stage=stage,
        ask=ask,
        application=_application(pod, ask, reading),
        scheduler=spec.scheduler_name,
        node=spec.node_name,
        leaving=None if disrupted is None else _leaving(disrupted, spec.scheduler_name),
        ended=_ended(pod, disrupted) if stage == "over" else "",
        bound_at=None if scheduled is None else milliseconds(scheduled.last_transition_time),
    )


def _ask(pod: PodObject, reading: Reading) -> AskSubmitted:
    meta, spec, masking = pod.metadata, pod.spec, reading.masking
    user, groups = _user(pod)
    return AskSubmitted(
        ask=masking.object(meta.namespace, meta.name),
        application=_application_id(pod, reading),
        queue=_said(pod, _QUEUE_LABELS, _QUEUE_NOTES, labels_first=True),
        user=masking.user(user),
        groups=tuple(masking.user(group) for group in groups),
        resources=reading.named(requests_of(pod)),
        priority=spec.priority or 0,
        allow_preemption=_allows_preemption(pod, reading),
        preemption_policy=(
            "Never" if spec.preemption_policy == "Never" else "PreemptLowerPriority"
        ),
        required_node=required_node(pod),
        created=milliseconds(meta.creation_timestamp),
        uid=meta.uid or None,
        pod=facts_of(pod, masking),
    )


def _application(pod: PodObject, ask: AskSubmitted, reading: Reading) -> ApplicationSubmitted:
    """Return the application of a task; its namespace and the quotas of that are tags, as in YuniKorn."""
    namespace = pod.metadata.namespace
    return ApplicationSubmitted(
        application=ask.application,
        queue=ask.queue,
        user=ask.user,
        groups=ask.groups,
        tags={
            "namespace": reading.masking.namespace(namespace),
            **reading.quotas.get(namespace, {}),
        },
        created=ask.created,
    )


def _application_id(pod: PodObject, reading: Reading) -> str:
    """Return the application that a pod names, as YuniKorn reads it; without one, that of its namespace."""
    named = _said(pod, _APPLICATION_LABELS, _APPLICATION_NOTES, labels_first=False)
    namespace = reading.masking.namespace(pod.metadata.namespace)
    return named or f"yunikorn-{namespace}-autogen"[:_MAX_APPLICATION]


def _said(
    pod: PodObject, labels: tuple[str, ...], notes: tuple[str, ...], *, labels_first: bool
) -> str:
    """Return the first value that is not empty. YuniKorn looks for a queue among labels first, for an application last."""
    found = pod.metadata
    of_labels = [(found.labels or {}).get(name, "") for name in labels]
    of_notes = [(found.annotations or {}).get(name, "") for name in notes]
    both = of_labels + of_notes if labels_first else of_notes + of_labels
    return next(filter(None, both), "")


def _user(pod: PodObject) -> tuple[str, tuple[str, ...]]:
    """Return user and groups as YuniKorn's admission controller wrote them; what cannot be read is nobody's."""
    note = (pod.metadata.annotations or {}).get(_USER_NOTE)
    if note:
        try:
            found = msgspec.json.decode(note, type=_UserInfo)
        except msgspec.MsgspecError:
            return _NOBODY, ()
        return found.user or _NOBODY, found.groups
    return (pod.metadata.labels or {}).get(USER_LABEL) or _NOBODY, ()


def _allows_preemption(pod: PodObject, reading: Reading) -> bool:
    """Tell whether a pod may be preempted: its own word counts before that of its priority class."""
    own = (pod.metadata.annotations or {}).get(ALLOW_PREEMPTION, "")
    if own in {"true", "false"}:
        return own == "true"
    return pod.spec.priority_class_name not in reading.spared


def _leaving(found: Condition, scheduler: str) -> Leaving:
    """Return who evicts a pod and why; only a preemption is the work of the pod's own scheduler."""
    return Leaving(
        reason=found.reason or "",
        message=found.message or "",
        scheduler=scheduler if found.reason == _PREEMPTION else "",
        at=milliseconds(found.last_transition_time),
    )


def _ended(pod: PodObject, disrupted: Condition | None) -> str:
    """Return why a pod is over, in the words of AllocationReleased.

    A pod that had completed before it was disrupted or deleted has completed.
    """
    if pod.status.phase == "Succeeded":
        return "completed"
    if disrupted is not None:
        return "preempted" if disrupted.reason == _PREEMPTION else "evicted"
    return "failed" if pod.status.phase == "Failed" else "deleted"

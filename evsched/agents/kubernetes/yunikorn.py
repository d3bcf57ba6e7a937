"""What YuniKorn keeps in objects of Kubernetes: its queues, the quotas of namespaces, who asks to be spared."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from events.configuration import Configuration
from evsched.agents.kubernetes.objects import ConfigMap, Namespace, ObjectKind, PriorityClass
from evsched.agents.kubernetes.reading import ALLOW_PREEMPTION

CONFIGMAP = "yunikorn-configs"
KEY = "queues.yaml"

_TAGS = {
    "yunikorn.apache.org/namespace.quota": "namespace.resourcequota",
    "yunikorn.apache.org/namespace.guaranteed": "namespace.resourceguaranteed",
    "yunikorn.apache.org/parentqueue": "namespace.parentqueue",
}
"""Annotation of a namespace to the tag of an application that YuniKorn makes of it."""


class Queues(Struct, frozen=True):
    """Where a cluster keeps its queues.

    Attributes:
        kind: Of the one object that holds them.
        key: Under which their text stands there.
        read: Makes a configuration of the text; raises ValueError with every fault.
    """

    kind: ObjectKind
    key: str
    read: Callable[[str], Configuration]


def queues_in(namespace: str, read: Callable[[str], Configuration]) -> Queues:
    """Return where YuniKorn keeps its queues when it runs in a namespace."""
    path = f"/api/v1/namespaces/{namespace}/configmaps?fieldSelector=metadata.name={CONFIGMAP}"
    return Queues(ObjectKind("ConfigMap", path, ConfigMap), KEY, read)


def quotas_of(namespace: Namespace) -> dict[str, str]:
    """Return the tags that an application of a namespace has for the quotas of that."""
    notes = namespace.metadata.annotations or {}
    return {tag: notes[note] for note, tag in _TAGS.items() if note in notes}


def spares(found: PriorityClass) -> bool:
    """Tell whether the pods of a priority class ask to be spared."""
    return (found.metadata.annotations or {}).get(ALLOW_PREEMPTION) == "false"

"""What YuniKorn keeps in objects of Kubernetes: its queues, the quotas of namespaces, who asks to be spared."""

from __future__ import annotations

from collections.abc import Callable

from events.configuration import Configuration
from evsched.agents.kubernetes.objects import (
    ApiObject,
    ConfigMap,
    Namespace,
    ObjectKind,
    PriorityClass,
)
from evsched.agents.kubernetes.reading import ALLOW_PREEMPTION

CONFIGMAP = "yunikorn-configs"
KEY = "queues.yaml"

_TAGS = {
    "yunikorn.apache.org/namespace.quota": "namespace.resourcequota",
    "yunikorn.apache.org/namespace.guaranteed": "namespace.resourceguaranteed",
    "yunikorn.apache.org/parentqueue": "namespace.parentqueue",
}
"""Annotation of a namespace to the tag of an application that YuniKorn makes of it."""


class YunikornQueues:
    """The queues.yaml in YuniKorn's ConfigMap; see `evsched.agents.kubernetes.queues.Queues`."""

    def __init__(self, namespace: str, read: Callable[[str], Configuration]) -> None:
        """Know nothing of them yet.

        Args:
            namespace: In which YuniKorn runs.
            read: Makes a configuration of a queues.yaml; raises ValueError with every fault.
        """
        self.kinds: tuple[ObjectKind, ...] = (config_map(namespace, CONFIGMAP),)
        self._read = read
        self._document: str | None = None

    def listed(self, kind: ObjectKind, objects: tuple[ApiObject, ...]) -> None:
        """Note the ConfigMap where it is there."""
        for one in objects:
            self.changed(kind, one, gone=False)

    def changed(self, kind: ObjectKind, found: ApiObject, *, gone: bool) -> None:
        """Note the ConfigMap; where it is gone, YuniKorn goes on with what it had, and so does this."""
        if kind in self.kinds and isinstance(found, ConfigMap) and not gone:
            self._document = (found.data or {}).get(KEY, self._document)

    def document(self) -> str | None:
        """Return the queues.yaml; None: there is none."""
        return self._document

    def read(self, document: str) -> Configuration:
        """Return the configuration of a queues.yaml; raises ValueError with every fault."""
        return self._read(document)


def config_map(namespace: str, name: str) -> ObjectKind:
    """Return what watches one ConfigMap alone, for which the right to read that one is enough."""
    path = f"/api/v1/namespaces/{namespace}/configmaps?fieldSelector=metadata.name={name}"
    return ObjectKind("ConfigMap", path, ConfigMap)


def quotas_of(namespace: Namespace) -> dict[str, str]:
    """Return the tags that an application of a namespace has for the quotas of that."""
    notes = namespace.metadata.annotations or {}
    return {tag: notes[note] for note, tag in _TAGS.items() if note in notes}


def spares(found: PriorityClass) -> bool:
    """Tell whether the pods of a priority class ask to be spared."""
    return (found.metadata.annotations or {}).get(ALLOW_PREEMPTION) == "false"

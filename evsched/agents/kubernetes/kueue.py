"""What Kueue keeps in objects of Kubernetes: ClusterQueues, Cohorts, LocalQueues, flavors, priorities, its own settings.

Each object becomes a manifest again, with what decides and nothing else, and all of them together
are the document that makes the configuration. A ClusterQueue says by a selector which namespaces may
submit to it; the log knows no labels of namespaces, so the selector is worked out here, for the
namespaces that have a LocalQueue of that ClusterQueue.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from events.configuration import Configuration
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.objects import (
    NAMESPACES,
    ApiObject,
    ConfigMap,
    LabelSelectorFound,
    ObjectKind,
    RequirementFound,
)
from evsched.agents.kubernetes.workloads import WorkloadObject
from evsched.agents.kubernetes.yunikorn import config_map

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta1", "v1beta2")
"""Of the API group, those whose manifests evsched reads."""

SETTINGS = "kueue-manager-config"
"""The ConfigMap with the settings of Kueue's manager."""

KEY = "controller_manager_config.yaml"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_DELAY_NOTE = "evsched.io/quota-preemption-delay"
_DECIDING = ("ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass")


class KueueManifest(ApiObject, frozen=True):
    """An object of Kueue that is configuration.

    Attributes:
        spec: As it stands there.
        value: Of a WorkloadPriorityClass.
    """

    spec: dict[str, Any] | None = None
    value: int | None = None


def workloads_in(version: str) -> ObjectKind:
    """Return the kind Workload of a version of Kueue's API."""
    return ObjectKind("Workload", f"/apis/{GROUP}/{version}/workloads", WorkloadObject)


class KueueQueues:
    """The manifests of Kueue; see `evsched.agents.kubernetes.queues.Queues`."""

    def __init__(
        self,
        namespace: str,
        version: str,
        masking: Masking,
        read: Callable[[str], Configuration],
    ) -> None:
        """Know nothing of them yet.

        Args:
            namespace: In which Kueue runs.
            version: Of its API, one of `VERSIONS`.
            masking: Names that are not wanted in the log.
            read: Makes a configuration of manifests; raises ValueError with every fault.
        """
        self._version = version
        self._masking = masking
        self._read = read
        self._kinds = tuple(
            ObjectKind(name, f"/apis/{GROUP}/{version}/{_plural(name)}", KueueManifest)
            for name in _DECIDING
        )
        self.kinds: tuple[ObjectKind, ...] = (
            NAMESPACES,
            config_map(namespace, SETTINGS),
            *self._kinds,
        )
        self._objects: dict[str, dict[tuple[str, str], ApiObject]] = {}

    def listed(self, kind: ObjectKind, objects: tuple[ApiObject, ...]) -> None:
        """Note all objects of a kind."""
        if kind in self.kinds:
            self._objects[kind.name] = {_key(one): one for one in objects}

    def changed(self, kind: ObjectKind, found: ApiObject, *, gone: bool) -> None:
        """Note one object of a kind."""
        if kind not in self.kinds:
            return
        held = self._objects.setdefault(kind.name, {})
        held.pop(_key(found), None)
        if not gone:
            held[_key(found)] = found

    def document(self) -> str | None:
        """Return all manifests as one text, by kind and name; None: not every kind was listed yet."""
        if len(self._objects) < len(self.kinds):
            return None
        parts = [
            text
            for one in self._objects["ConfigMap"].values()
            if isinstance(one, ConfigMap)
            for text in [(one.data or {}).get(KEY)]
            if text
        ]
        for kind in self._kinds:
            for _, one in sorted(self._objects[kind.name].items()):
                assert isinstance(one, KueueManifest)
                parts.append(json.dumps(self._manifest(kind.name, one), sort_keys=True))
        return "\n---\n".join(parts)

    def read(self, document: str) -> Configuration:
        """Return the configuration of manifests; raises ValueError with every fault."""
        return self._read(document)

    def _manifest(self, kind: str, found: KueueManifest) -> dict[str, Any]:
        """Return a manifest with what decides; names of namespaces are masked."""
        meta = found.metadata
        metadata: dict[str, Any] = {"name": meta.name}
        if meta.namespace:
            metadata["namespace"] = self._masking.namespace(meta.namespace)
        delay = (meta.annotations or {}).get(_DELAY_NOTE)
        if delay is not None:
            metadata["annotations"] = {_DELAY_NOTE: delay}
        made: dict[str, Any] = {"apiVersion": f"{GROUP}/{self._version}", "kind": kind}
        made["metadata"] = metadata
        if kind == "WorkloadPriorityClass":
            return made | {"value": found.value or 0}
        spec = dict(found.spec or {})
        if kind == "ClusterQueue":
            spec["namespaceSelector"] = self._selector(meta.name, spec.get("namespaceSelector"))
        return made | {"spec": spec}

    def _selector(self, queue: str, written: Any) -> dict[str, Any] | None:
        """Return a selector of namespaces by their names.

        One that is empty lets everybody submit, now and later; one that is missing lets nobody.
        """
        if not written:
            return None if written is None else {}
        selector = msgspec.convert(written, LabelSelectorFound)
        labels = {
            name: {NAMESPACE_LABEL: name} | (one.metadata.labels or {})
            for (_, name), one in self._objects[NAMESPACES.name].items()
        }
        submitting = {
            namespace
            for (namespace, _), one in self._objects["LocalQueue"].items()
            if isinstance(one, KueueManifest) and (one.spec or {}).get("clusterQueue") == queue
        }
        names = sorted(
            self._masking.namespace(name)
            for name in submitting
            if name in labels and matches(selector, labels[name])
        )
        if not names:
            return None
        return {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": names}]}


def matches(selector: LabelSelectorFound, labels: dict[str, str]) -> bool:
    """Tell whether a label selector, as Kubernetes reads it, matches labels."""
    equal = (labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return all(equal) and all(_holds(one, labels) for one in selector.match_expressions or ())


def _holds(one: RequirementFound, labels: dict[str, str]) -> bool:
    value = labels.get(one.key)
    match one.operator:
        case "In":
            return value in (one.values or ())
        case "NotIn":
            return value not in (one.values or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            # The API server knows no other operator, so none is a match.
            return False


def _plural(kind: str) -> str:
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _key(found: ApiObject) -> tuple[str, str]:
    return found.metadata.namespace, found.metadata.name

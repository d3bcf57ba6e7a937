"""What Kueue's Workload objects say: what was asked for, when quota was reserved from which flavors, how it ended.

A Workload keeps the last admission only. One that was evicted and waits again has lost the earlier
ones, which is told in a remark.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from events import vocabulary as v
from evsched.config import ConfigurationError
from evsched.config.document import read_value
from evsched.core.quantity import QuantityError, parse_kubernetes
from replays.importing.observed import Observed, ObservedPast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.configuration import Amounts, KueueSpec

SCHEDULER = "kueue"
_Quantities = dict[str, str | int | float]


class WorkloadsInvalid(Exception):
    """The file holds no Workload objects; the message says where and why."""


class _Object(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base: fields that are not read are passed over."""


class _Metadata(_Object, frozen=True, kw_only=True):
    name: str
    namespace: str = "default"
    uid: str | None = None
    creation_timestamp: datetime


class _Requests(_Object, frozen=True, kw_only=True):
    requests: _Quantities = field(default_factory=dict)


class _Container(_Object, frozen=True, kw_only=True):
    resources: _Requests = _Requests()


class _PodSpec(_Object, frozen=True, kw_only=True):
    containers: list[_Container] = field(default_factory=list)
    init_containers: list[_Container] = field(default_factory=list)
    overhead: _Quantities = field(default_factory=dict)


class _Template(_Object, frozen=True, kw_only=True):
    spec: _PodSpec


class _PodSet(_Object, frozen=True, kw_only=True):
    name: str = "main"
    count: int = 1
    template: _Template


class _Spec(_Object, frozen=True, kw_only=True):
    queue_name: str = ""
    priority: int = 0
    pod_sets: list[_PodSet] = field(default_factory=list)


class _Assignment(_Object, frozen=True, kw_only=True):
    name: str = "main"
    flavors: dict[str, str] = field(default_factory=dict)
    resource_usage: _Quantities = field(default_factory=dict)


class _Admission(_Object, frozen=True, kw_only=True):
    pod_set_assignments: list[_Assignment] = field(default_factory=list)


class _Condition(_Object, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime


class _Status(_Object, frozen=True, kw_only=True):
    admission: _Admission | None = None
    conditions: list[_Condition] = field(default_factory=list)


class ObservedWorkload(_Object, frozen=True, kw_only=True):
    """A Workload, as far as it is read."""

    kind: str = ""
    metadata: _Metadata
    spec: _Spec
    status: _Status = _Status()

    @property
    def name(self) -> str:
        """The name that it has in the log, which no other has in the cluster."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def when(self, condition: str) -> _Condition | None:
        """Return a condition that is true; None: it is not."""
        wanted = (one for one in self.status.conditions if one.type == condition)
        return next((one for one in wanted if one.status == "True"), None)


def read_workloads(text: str, source: str) -> list[ObservedWorkload]:
    """Return the Workloads in the output of ``kubectl get workloads -A -o json`` (or ``yaml``).

    Raises:
        WorkloadsInvalid: It is something else; with the place.
    """
    try:
        document = (
            msgspec.json.decode(text) if text.lstrip().startswith("{") else read_value(text, source)
        )
        if not isinstance(document, dict):
            raise WorkloadsInvalid(f"{source}: found no object, expected a List of Workloads")
        items = document.get("items", [document])
        kinds = sorted({str(one.get("kind", "")) for one in items if isinstance(one, dict)})
        if kinds and kinds != ["Workload"]:
            raise WorkloadsInvalid(f"{source}: found {', '.join(kinds)}, expected Workloads alone")
        return msgspec.convert(items, list[ObservedWorkload], strict=False)
    except msgspec.MsgspecError as error:
        raise WorkloadsInvalid(f"{source}: {error}, expected a List of Workloads") from error
    except ConfigurationError as error:
        raise WorkloadsInvalid(str(error)) from error


def observed(workloads: Iterable[ObservedWorkload], configuration: KueueSpec) -> ObservedPast:
    """Return what happened to these Workloads, under a configuration that was in force all the time.

    Raises:
        WorkloadsInvalid: An amount is no quantity.
    """
    inputs: list[Observed] = []
    remarks: list[str] = []
    again = 0
    for one in workloads:
        try:
            inputs += _of(one)
        except QuantityError as error:
            raise WorkloadsInvalid(f"Workload {one.name}: {error}") from error
        again += one.status.admission is None and one.when("Evicted") is not None
    if again:
        remarks.append(
            f"{again} Workloads were evicted and wait again; what they had before is no longer told."
        )
    begin = min((one.time for one in inputs), default=0)
    first = Observed(begin, v.ConfigurationApplied(configuration=configuration))
    return ObservedPast([first, *inputs], remarks)


def _of(one: ObservedWorkload) -> list[Observed]:
    """Return the inputs that one Workload stands for, in their order."""
    created = _ms(one.metadata.creation_timestamp)
    asked = v.AskSubmitted(
        ask=one.name, queue=f"{one.metadata.namespace}/{one.spec.queue_name}", priority=one.spec.priority,
        created=created, uid=one.metadata.uid, podsets=_podsets(one, flavored=False),
    )  # fmt: skip
    found = [Observed(created, asked)]
    reserved, evicted, finished = (
        one.when("QuotaReserved"),
        one.when("Evicted"),
        one.when("Finished"),
    )
    held = reserved is not None and one.status.admission is not None
    if reserved is not None and held:
        at = max(created, _ms(reserved.last_transition_time))
        podsets = _podsets(one, flavored=True)
        bound = v.BindingObserved(ask=one.name, podsets=podsets, scheduler=SCHEDULER, at=at)
        found.append(Observed(at, bound))
    if evicted is not None and held:
        at = max(found[-1].time, _ms(evicted.last_transition_time))
        leaves = v.EvictionObserved(
            allocation=one.name, reason=evicted.reason, message=evicted.message, scheduler=SCHEDULER, at=at,
        )  # fmt: skip
        found.append(Observed(at, leaves))
    if finished is not None:
        at = max(found[-1].time, _ms(finished.last_transition_time))
        ended = (
            v.AllocationReleased(allocation=one.name, reason="completed")
            if held
            else v.AskWithdrawn(ask=one.name)
        )
        found.append(Observed(at, ended))
    return found


def _podsets(one: ObservedWorkload, *, flavored: bool) -> tuple[v.PodSet, ...]:
    """Return the podsets of a Workload, times their counts; what was admitted counts as it was admitted."""
    admission = one.status.admission
    if admission is not None:
        return tuple(
            v.PodSet(
                name=part.name,
                resources=_amounts(part.resource_usage),
                flavors=part.flavors if flavored else None,
            )
            for part in admission.pod_set_assignments
        )
    return tuple(v.PodSet(name=part.name, resources=_requested(part)) for part in one.spec.pod_sets)


def _requested(part: _PodSet) -> Amounts:
    """Return what the pods of a podset request: the sum of containers or the largest that starts before, and the overhead."""
    spec = part.template.spec
    running: Amounts = {}
    for container in spec.containers:
        for name, amount in _amounts(container.resources.requests).items():
            running[name] = running.get(name, 0) + amount
    for container in spec.init_containers:
        for name, amount in _amounts(container.resources.requests).items():
            running[name] = max(running.get(name, 0), amount)
    for name, amount in _amounts(spec.overhead).items():
        running[name] = running.get(name, 0) + amount
    return {name: amount * part.count for name, amount in running.items()}


def _amounts(quantities: _Quantities) -> Amounts:
    return {name: parse_kubernetes(name, str(text)) for name, text in quantities.items()}


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)

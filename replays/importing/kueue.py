"""What Kueue's Workload objects say: what was asked for, when quota was reserved from which flavors, how it ended.

A Workload keeps the last admission only. One that was evicted and waits again has lost the earlier
ones, which is told in a remark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from events import vocabulary as v
from evsched.agents.kubernetes.tasks import milliseconds
from evsched.agents.kubernetes.workloads import (
    SCHEDULER,
    WorkloadObject,
    admitted,
    asked,
    leaving_of,
)
from evsched.config import ConfigurationError
from evsched.config.document import read_value
from evsched.core.quantity import QuantityError
from replays.importing.observed import Observed, ObservedPast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.configuration import KueueSpec
    from evsched.agents.kubernetes.objects import Condition


class WorkloadsInvalid(Exception):
    """The file holds no Workload objects; the message says where and why."""


def read_workloads(text: str, source: str) -> list[WorkloadObject]:
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
        return msgspec.convert(items, list[WorkloadObject], strict=False)
    except msgspec.MsgspecError as error:
        raise WorkloadsInvalid(f"{source}: {error}, expected a List of Workloads") from error
    except ConfigurationError as error:
        raise WorkloadsInvalid(str(error)) from error


def observed(workloads: Iterable[WorkloadObject], configuration: KueueSpec) -> ObservedPast:
    """Return what happened to these Workloads, under a configuration that was in force all the time.

    Raises:
        WorkloadsInvalid: An amount is no quantity, or it is not said when a Workload was created.
    """
    known = list(workloads)
    names = {one.metadata.uid: _name(one) for one in known}
    inputs: list[Observed] = []
    remarks: list[str] = []
    again = 0
    for one in known:
        try:
            inputs += _of(one, names)
        except QuantityError as error:
            raise WorkloadsInvalid(f"Workload {_name(one)}: {error}") from error
        again += one.status.admission is None and one.when("Evicted") is not None
    if again:
        remarks.append(
            f"{again} Workloads were evicted and wait again; what they had before is no longer told."
        )
    begin = min((one.time for one in inputs), default=0)
    first = Observed(begin, v.ConfigurationApplied(configuration=configuration))
    return ObservedPast([first, *inputs], remarks)


def _of(one: WorkloadObject, names: dict[str, str]) -> list[Observed]:
    """Return the inputs that one Workload stands for, in their order."""
    name, created = _name(one), milliseconds(one.metadata.creation_timestamp)
    if created is None:
        raise WorkloadsInvalid(f"Workload {name}: found no metadata.creationTimestamp")
    podsets = admitted(one)
    ask = v.AskSubmitted(
        ask=name, queue=f"{_namespace(one)}/{one.spec.queue_name}", priority=one.spec.priority or 0,
        created=created, uid=one.metadata.uid or None,
        # What was admitted counts as it was admitted, from the beginning.
        podsets=tuple(replace(part, flavors=None) for part in podsets) or asked(one),
    )  # fmt: skip
    found = [Observed(created, ask)]

    def then(condition: Condition, told: v.AnyInput) -> None:
        at = milliseconds(condition.last_transition_time) or created
        found.append(Observed(max(found[-1].time, at), told))

    reserved, evicted, finished = map(one.when, ("QuotaReserved", "Evicted", "Finished"))
    if one.holds and reserved is not None:
        at = max(created, milliseconds(reserved.last_transition_time) or created)
        then(reserved, v.BindingObserved(ask=name, podsets=podsets, scheduler=SCHEDULER, at=at))
    if one.holds and evicted is not None:
        leaving = leaving_of(evicted, names)
        then(
            evicted,
            v.EvictionObserved(
                allocation=name, reason=leaving.reason, message=leaving.message,
                scheduler=leaving.scheduler, preemptor=leaving.preemptor, at=leaving.at,
            ),
        )  # fmt: skip
    if finished is not None:
        held = v.AllocationReleased(allocation=name, reason="completed")
        then(finished, held if one.holds else v.AskWithdrawn(ask=name))
    return found


def _namespace(one: WorkloadObject) -> str:
    """Return the namespace; a manifest that was written by hand may leave ``default`` out."""
    return one.metadata.namespace or "default"


def _name(one: WorkloadObject) -> str:
    """Return the name that a Workload has in the log, which no other has in the cluster."""
    return f"{_namespace(one)}/{one.metadata.name}"

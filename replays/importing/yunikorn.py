"""What YuniKorn says of itself: a full state dump of its API, and the records of its event stream.

The dump has the configuration, the nodes, and every application with what of it waits and runs. What
ended before it is only in the stream: a request, its allocation, the node, and the end are records of
their own there, which the allocation key joins.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from events import vocabulary as v
from events.configuration import PlacementRuleSpec
from evsched.config.loading import from_mapping
from replays.importing.observed import Observed, ObservedPast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.configuration import YunikornSpec

NS = 1_000_000
APP, NODE = 2, 3
ADD, REMOVE = 2, 3
ALLOCATED, REQUESTED, NODE_ALLOCATED = 200, 201, 303
ENDS = {500: "completed", 501: "preempted", 502: "timeout", 503: "replaced", 504: "node removed"}
"""Numbers of YuniKorn's scheduler interface: what a record is about, what happened, and the detail."""

SCHEDULER = "yunikorn"
GONE = frozenset({"Completed", "Rejected", "Failed", "Expired"})
DEADLOCKS = frozenset({"deadlockdetectionenabled", "deadlocktimeoutseconds"})
"""What YuniKorn adds to its configuration when it is asked for it."""


class DumpInvalid(Exception):
    """The file is no full state dump of YuniKorn, or no stream of its events; the message says where and why."""


class _Part(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base: what YuniKorn says beside it is passed over."""


class DumpedTask(_Part, frozen=True, kw_only=True):
    """A request or an allocation; times in nanoseconds, 0: unknown."""

    allocation_key: str
    request_time: int = 0
    allocation_time: int = 0
    resource: dict[str, int] = field(default_factory=dict)
    priority: str = "0"
    node_id: str = ""
    required_node_id: str = ""
    originator: bool = False
    preempted: bool = False


class DumpedApplication(_Part, frozen=True, kw_only=True):
    """An application, ended ones included."""

    application_id: str = field(name="applicationID")
    queue_name: str = ""
    submission_time: int = 0
    finished_time: int | None = 0
    application_state: str = ""
    user: str = ""
    groups: list[str] | None = None
    requests: list[DumpedTask] | None = None
    allocations: list[DumpedTask] | None = None


class DumpedNode(_Part, frozen=True, kw_only=True):
    """A node; ``occupied`` is what others than YuniKorn use there."""

    node_id: str = field(name="nodeID")
    attributes: dict[str, str] | None = None
    capacity: dict[str, int] = field(default_factory=dict)
    occupied: dict[str, int] | None = None
    schedulable: bool = True


class DumpedNodes(_Part, frozen=True, kw_only=True):
    """The nodes of a partition."""

    partition_name: str = "default"
    nodes: list[DumpedNode] | None = None


class Dump(_Part, frozen=True, kw_only=True):
    """A full state dump, as far as it is read."""

    timestamp: int
    applications: list[DumpedApplication] | None = None
    nodes: list[DumpedNodes] | None = None
    config: dict[str, Any] = field(default_factory=dict)


class _Amount(Struct, frozen=True, kw_only=True):
    value: int = 0


class _Amounts(Struct, frozen=True, kw_only=True):
    resources: dict[str, _Amount] = field(default_factory=dict)


class DumpedRecord(_Part, frozen=True, kw_only=True):
    """A record of the event stream."""

    type: int = 0
    object_id: str = field(default="", name="objectID")
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0
    reference_id: str = field(default="", name="referenceID")
    resource: _Amounts | None = None


def read_dump(text: str) -> Dump:
    """Return the dump in a JSON document; raise `DumpInvalid`."""
    try:
        return msgspec.json.decode(text, type=Dump)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise DumpInvalid(f"{error}, expected the answer of /ws/v1/fullstatedump") from error


def read_records(lines: Iterable[str]) -> list[DumpedRecord]:
    """Return the records in lines of the event stream, or in answers of ``events/batch``, a document a line.

    Raises:
        DumpInvalid: A line is neither; with its number.
    """
    found: list[DumpedRecord] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            # The first line of a stream says which instance it is, and a batch has its records inside.
            listed = document.get("EventRecords", [] if "InstanceUUID" in document else [document])
            found += msgspec.convert(listed, list[DumpedRecord])
        except (ValueError, AttributeError, msgspec.ValidationError) as error:
            raise DumpInvalid(f"line {number}: {error}, expected an event record") from error
    return found


def observed(
    dump: Dump, records: Iterable[DumpedRecord] = (), configuration: YunikornSpec | None = None
) -> ObservedPast:
    """Return what happened in a partition of YuniKorn, as far as it says so.

    Args:
        dump: Of its present.
        records: Of its event stream, for what ended before the dump.
        configuration: In place of the one in the dump; None: that.

    Raises:
        DumpInvalid: There is no configuration.
        ConfigurationError: The one in the dump has faults.
    """
    past = _Past(dump)
    past.applications()
    past.ended(records)
    spec = configuration or _configured(dump)
    # Where an application was placed is known: the rules that placed it are not asked again.
    rules = (PlacementRuleSpec(name="provided", create=True),)
    spec = replace(spec, placement_rules=rules) if spec.placement_rules else spec
    begin = min([one.time for one in past.inputs], default=dump.timestamp // NS)
    first = [Observed(begin, v.ConfigurationApplied(configuration=spec)), *past.nodes(begin)]
    return ObservedPast([*first, *past.inputs], past.remarks)


def _configured(dump: Dump) -> YunikornSpec:
    document = {name: one for name, one in dump.config.items() if name not in DEADLOCKS}
    if "partitions" not in document:
        raise DumpInvalid("config: has no partitions, expected --config with the queues.yaml")
    document = {"partitions": document["partitions"]}
    (spec, *_) = from_mapping("yunikorn", document, "config of the dump")
    return cast("YunikornSpec", spec)  # what the format says


class _Past:
    """What is read from one dump."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._now = dump.timestamp // NS
        self._known: set[str] = set()
        self._queues: dict[str, DumpedApplication] = {}
        self.inputs: list[Observed] = []
        self.remarks: list[str] = []

    def nodes(self, begin: int) -> Iterator[Observed]:
        """Yield the nodes, as they are now: the dump does not say since when."""
        used = False
        for one in (node for part in self._dump.nodes or () for node in part.nodes or ()):
            occupied = one.occupied or {}
            used = used or bool(occupied)
            free = {
                name: max(0, amount - occupied.get(name, 0))
                for name, amount in one.capacity.items()
            }
            registered = v.NodeRegistered(
                node=one.node_id, capacity=free, labels=one.attributes or {}, schedulable=one.schedulable,
            )  # fmt: skip
            yield Observed(begin, registered)
        if used:
            self.remarks.append(
                "What others than YuniKorn use of nodes is taken off their capacity, as it is now."
            )

    def applications(self) -> None:
        """Take in the applications with what of them waits and runs."""
        for one in self._dump.applications or ():
            if one.application_state == "Rejected":
                continue
            self._queues[one.application_id] = one
            submitted = one.submission_time // NS or self._now
            self.inputs.append(Observed(submitted, _submitted(one, submitted)))
            for task in one.requests or ():
                self._asked(one, task, submitted)
            for task in one.allocations or ():
                asked = self._asked(one, task, submitted)
                bound = max(asked, task.allocation_time // NS or asked)
                self._bound(task.allocation_key, task.node_id, bound)
                if task.preempted:
                    evicted = v.EvictionObserved(
                        allocation=task.allocation_key, scheduler=SCHEDULER
                    )
                    self.inputs.append(Observed(self._now, evicted))
            if one.application_state in GONE:
                finished = max(submitted, (one.finished_time or 0) // NS or self._now)
                self.inputs.append(
                    Observed(finished, v.ApplicationRemoved(application=one.application_id))
                )

    def _asked(self, one: DumpedApplication, task: DumpedTask, submitted: int) -> int:
        """Take in what a task asked for, and return when."""
        time = max(submitted, task.request_time // NS or submitted)
        self._known.add(task.allocation_key)
        asked = v.AskSubmitted(
            ask=task.allocation_key, application=one.application_id, resources=task.resource,
            priority=int(task.priority or 0), originator=task.originator, created=time,
            required_node=task.required_node_id or None,
        )  # fmt: skip
        self.inputs.append(Observed(time, asked))
        return time

    def _bound(self, key: str, node: str, time: int) -> None:
        bound = v.BindingObserved(ask=key, node=node or None, scheduler=SCHEDULER, at=time)
        self.inputs.append(Observed(time, bound))

    def ended(self, records: Iterable[DumpedRecord]) -> None:
        """Take in the tasks that the stream speaks of and the dump does not: they ended before it."""
        tasks: dict[str, list[DumpedRecord]] = {}
        nodes: dict[str, str] = {}
        for record in sorted(records, key=lambda one: one.timestamp_nano):
            if record.type == NODE and record.event_change_detail == NODE_ALLOCATED:
                nodes.setdefault(record.reference_id, record.object_id)
            elif record.type == APP and record.reference_id not in self._known:
                tasks.setdefault(record.reference_id, []).append(record)
        tasks.pop("", None)
        lost = sum(not self._task(key, told, nodes.get(key, "")) for key, told in tasks.items())
        if lost:
            self.remarks.append(
                f"{lost} tasks ended before the dump whose request, application, node or end the events do not"
                " tell; they are left out."
            )

    def _task(self, key: str, told: list[DumpedRecord], node: str) -> bool:
        """Take in one task from its records; False where they do not tell all of it."""
        requested = _first(told, ADD, {REQUESTED})
        allocated = _first(told, ADD, {ALLOCATED})
        end = _first(told, REMOVE, ENDS.keys())
        first = requested or allocated
        one = None if first is None else self._queues.get(first.object_id)
        if first is None or one is None or allocated is None or end is None or not node:
            return False
        amounts = (allocated.resource or _Amounts()).resources
        task = DumpedTask(
            allocation_key=key,
            request_time=first.timestamp_nano,
            resource={name: amount.value for name, amount in amounts.items()},
        )
        asked = self._asked(one, task, one.submission_time // NS or first.timestamp_nano // NS)
        bound = max(asked, allocated.timestamp_nano // NS)
        self._bound(key, node, bound)
        released = v.AllocationReleased(allocation=key, reason=ENDS[end.event_change_detail])
        self.inputs.append(Observed(max(bound, end.timestamp_nano // NS), released))
        return True


def _submitted(one: DumpedApplication, time: int) -> v.ApplicationSubmitted:
    return v.ApplicationSubmitted(
        application=one.application_id, queue=one.queue_name, user=one.user or "nobody",
        groups=tuple(one.groups or ()), created=time,
    )  # fmt: skip


def _first(
    told: Iterable[DumpedRecord], change: int, details: Iterable[int]
) -> DumpedRecord | None:
    wanted = set(details)
    return next(
        (
            one
            for one in told
            if one.event_change_type == change and one.event_change_detail in wanted
        ),
        None,
    )

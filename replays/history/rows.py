"""The rows of a state: what the views of a moment are made of, and what a difference of two moments names.

ByResource are in base units by resource name, times in milliseconds. The first field of a row is its
key. A field that the family of the configuration does not know is left out of its documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

ByResource = dict[str, int]


class QueueRow(Struct, frozen=True, kw_only=True):
    """A queue; for Kueue a ClusterQueue or, as ``cohort/NAME``, a cohort.

    Attributes:
        usage: What runs here and below; (Kueue) of a cohort what counts against its quota, without
            what those below it use of quota that they lend to nobody (``lendingLimit``).
        guaranteed, maximum: (YuniKorn) A resource that is not there has none.
        nominal: (Kueue) Its own nominal quota.
        quota: (Kueue) Of a cohort: with what those below it lend.
        share: (Kueue, fair sharing) The weighted share of its status; 2**63 - 1 is infinite.
        pending_asks: How many asks wait here and below.
        preempting: What of the usage is leaving.
    """

    queue: str
    usage: ByResource
    guaranteed: ByResource | UnsetType = UNSET
    maximum: ByResource | UnsetType = UNSET
    nominal: ByResource | UnsetType = UNSET
    borrowing_limit: ByResource | UnsetType = UNSET
    lending_limit: ByResource | UnsetType = UNSET
    quota: ByResource | UnsetType = UNSET
    share: int | UnsetType = UNSET
    pending: ByResource
    pending_asks: int
    preempting: ByResource
    leaf: bool
    dynamic: bool
    draining: bool


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node.

    Attributes:
        allocations: How many run there.
        reserved_for: Asks for which it is reserved.
    """

    node: str
    capacity: ByResource
    used: ByResource
    free: ByResource
    allocations: int
    reserved_for: list[str]
    schedulable: bool
    labels: dict[str, str]


class ApplicationRow(Struct, frozen=True, kw_only=True):
    """An application.

    Attributes:
        asks, allocations: How many wait and run.
        paused_until: None: it is not paused.
    """

    application: str
    queue: str
    user: str
    created: int
    usage: ByResource
    asks: int
    allocations: int
    paused_until: int | None


class AskRow(Struct, frozen=True, kw_only=True):
    """An ask that waits.

    Attributes:
        required_node: The only one on which it may run; None: any.
        reserved: The node that is reserved for it; None: none.
        preempted: Whether victims were evicted for it before.
        missed: Preemption cycles since the first that tried it in vain; None: none did.
        failed: Why the last attempt failed, in the words of the event.
    """

    ask: str
    queue: str
    application: str
    resources: ByResource
    priority: int
    created: int
    required_node: str | None
    reserved: str | None
    preempted: bool
    missed: int | None
    failed: str


class AllocationRow(Struct, frozen=True, kw_only=True):
    """An allocation that runs.

    Attributes:
        node: None: admitted by quota alone.
        eviction_requested: When its eviction was requested; None: it was not.
        victim_of: The ask for which it is evicted.
        quota_of: The queue for whose quota it is evicted.
    """

    allocation: str
    queue: str
    application: str
    node: str | None
    resources: ByResource
    priority: int
    created: int
    bound: int
    eviction_requested: int | None
    victim_of: str
    quota_of: str


class TimerRow(Struct, frozen=True, kw_only=True):
    """A timer that is armed; ``cause`` is the event that armed it."""

    timer: str
    due: int
    kind: str
    subject: str
    cause: int


class SettingRow(Struct, frozen=True, kw_only=True):
    """A setting of the configuration in force, by its place in the document."""

    setting: str
    value: Any


Row = QueueRow | NodeRow | ApplicationRow | AskRow | AllocationRow | TimerRow | SettingRow


class Rows(Struct, frozen=True, kw_only=True):
    """Rows by view; a view that was not asked for is left out."""

    queues: list[QueueRow] | UnsetType = UNSET
    asks: list[AskRow] | UnsetType = UNSET
    allocations: list[AllocationRow] | UnsetType = UNSET
    nodes: list[NodeRow] | UnsetType = UNSET
    apps: list[ApplicationRow] | UnsetType = UNSET
    timers: list[TimerRow] | UnsetType = UNSET
    config: list[SettingRow] | UnsetType = UNSET

    def by_view(self) -> dict[str, Sequence[Row]]:
        """Return the rows of the views that were asked for, in their order."""
        named = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: rows for name, rows in named if rows is not UNSET}


AMOUNTS = frozenset({
    "resources", "capacity", "used", "free", "guaranteed", "maximum", "nominal", "quota", "borrowing_limit", "lending_limit",
    "usage", "pending", "preempting",
})  # fmt: skip
"""Fields that hold amounts by resource name."""

TIMES = frozenset({"created", "bound", "eviction_requested", "due", "paused_until"})
"""Fields that hold a time."""


def document(row: Row) -> dict[str, Any]:
    """Return a row as a dictionary whose first entry is its key; what is not known is left out."""
    found: dict[str, Any] = msgspec.to_builtins(row)
    return found

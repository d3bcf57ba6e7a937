"""One moment of one log in YuniKorn's words: the answers of all routes that read.

A view puts a state together with what the read model knows of its past. Nothing in it changes, so it
can be kept and asked again.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from events.configuration import YunikornSpec
from evsched.api.yunikorn import answers, applications, cluster, config, nodes, users
from evsched.api.yunikorn.answers import NS
from evsched.api.yunikorn.health import health
from evsched.api.yunikorn.queues import QueueView
from projections import lives

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from evsched.core.queues import Application, Queue
    from evsched.core.state import State
    from projections.lives import Life, Lives

KEPT_MS = 3 * 86_400_000
"""How long YuniKorn knows an application that completed or was rejected."""

DAY_MS = 86_400_000
"""How far its histories go back."""

LOG_LEVEL = "info"
"""Of a scheduler that has no levels to be set from outside."""


class NotThere(Exception):
    """What was asked for is not there; the message is YuniKorn's own word for it."""


class OtherFamily(Exception):
    """The configuration at the moment is none of YuniKorn's.

    Attributes:
        format: What it is; empty before the first configuration.
    """

    def __init__(self, format_: str) -> None:
        self.format = format_
        super().__init__(format_)


class YunikornView:
    """YuniKorn's answers about one moment.

    Attributes:
        state: At the moment.
        spec: Its configuration.
    """

    def __init__(self, state: State, tables: sqlite3.Connection, log_id: str) -> None:
        """Look at a state.

        Args:
            state: With its tallies; only read.
            tables: To the read model of the same log, complete up to the state's ``seq``.
            log_id: Of the log.

        Raises:
            OtherFamily: There is no queues.yaml in force.
        """
        spec = state.configuration
        if not isinstance(spec, YunikornSpec):
            tag = "" if spec is None else str(spec.__struct_config__.tag)
            raise OtherFamily(tag)
        self.state = state
        self.spec = spec
        self._tables = tables
        self._log_id = log_id

    # ------------------------------------------------------------------------------------- the whole

    def clusters(self) -> list[answers.ClusterInfo]:
        """Return ``clusters``."""
        return cluster.clusters(self.spec, self._log_id, lives.began(self._tables))

    def partitions(self) -> list[answers.PartitionInfo]:
        """Return ``partitions``."""
        found: dict[str, int] = {}
        there = self.state.applications.values()
        # Of one that runs the past does not matter.
        known = self._lives((one for one in there if not one.allocations), said=False)
        for one in there:
            name = applications.state_of(one, known.of(one.id))
            found[name] = found.get(name, 0) + 1
        over = lives.over_since(self._tables, self.state.seq, self.state.time - KEPT_MS)
        ended = zip(("Completed", "Rejected"), over, strict=True)
        found |= {name: number for name, number in ended if number}
        since = lives.first_configured(self._tables)
        return cluster.partitions(self.state, self.spec, self._log_id, found, since)

    def placement_rules(self, partition: str) -> answers.RulesInfo:
        """Return ``placementrules``."""
        self._check(partition)
        return cluster.placement_rules(self.spec)

    def health(self) -> answers.HealthInfo:
        """Return ``scheduler/healthcheck``."""
        return health(self.state)

    def config(self) -> dict[str, object]:
        """Return ``config`` as plain data."""
        return config.answer(self.spec)

    def dump(self) -> answers.DumpInfo:
        """Return ``fullstatedump``; its time is that of the moment."""
        name = self.spec.partition
        return answers.DumpInfo(
            timestamp=self.state.time * NS,
            partitions=self.partitions(),
            applications=[
                *self.applications_in(name, "active"),
                *self.applications_in(name, "completed"),
                *self.applications_in(name, "rejected"),
            ],
            app_history=self.app_history(),
            nodes=[answers.PartitionNodesInfo(partition_name=name, nodes=self.nodes(name))],
            cluster_info=self.clusters(),
            container_history=self.container_history(),
            queues=[self.queues(name)],
            placement_rules=[self.placement_rules(name)],
            users=self.users(name),
            groups=self.groups(name),
            rm_diagnostics={"empty": "no resource manager is registered with evsched"},
            log_level=LOG_LEVEL,
            config=self.config(),
        )

    # ------------------------------------------------------------------------- queues, applications

    def queues(self, partition: str) -> answers.QueueInfo:
        """Return ``partition/P/queues``."""
        self._check(partition)
        return QueueView(self.state, self.spec).tree()

    def queue(self, partition: str, path: str, *, subtree: bool) -> answers.QueueInfo:
        """Return ``partition/P/queue/Q``."""
        found = self._queue(partition, path)
        return QueueView(self.state, self.spec).queue(found, subtree=subtree)

    def applications_of(
        self, partition: str, path: str, status: str = ""
    ) -> list[answers.ApplicationInfo]:
        """Return ``queue/Q/applications``: those of a leaf that have not ended, of one state when a ``status`` is named."""
        found = self._queue(partition, path)
        return self._active(found.applications.values(), status)

    def applications_in(
        self, partition: str, kind: str, status: str = ""
    ) -> list[answers.ApplicationInfo]:
        """Return ``applications/S``: ``active``, ``completed`` or ``rejected``, the last two for three days."""
        self._check(partition)
        if kind == "active":
            return self._active(self.state.applications.values(), status)
        over = self._completed if kind == "completed" else self._rejected
        return [applications.ended(self.state, self.spec.partition, life) for life in over]

    def application(
        self, partition: str, name: str, path: str | None = None
    ) -> answers.ApplicationInfo:
        """Return one application that has not ended, of a queue when one is named; or, without one, one that ended lately."""
        if path is not None:
            found = self._queue(partition, path).applications.get(name)
        else:
            self._check(partition)
            found = self.state.applications.get(name)
        if found is not None:
            return self._active([found])[0]
        if path is None:
            now = self.state
            over = lives.ended_since(self._tables, now.seq, now.time - KEPT_MS, name)
            for life in (*over, *self._rejected):
                if life.application == name:
                    return applications.ended(now, self.spec.partition, life)
        message = "Application not found"
        raise NotThere(message)

    # --------------------------------------------------------------------------------- nodes, users

    def nodes(self, partition: str) -> list[answers.NodeInfo]:
        """Return ``partition/P/nodes``."""
        self._check(partition)
        return nodes.nodes(self.state)

    def node(self, partition: str, name: str) -> answers.NodeInfo:
        """Return ``partition/P/node/N``."""
        self._check(partition)
        found = self.state.nodes.get(name)
        if found is None:
            message = "Node not found"
            raise NotThere(message)
        return nodes.node(self.state, found)

    def utilizations(self) -> list[answers.UtilizationsInfo]:
        """Return ``scheduler/node-utilizations``."""
        return [nodes.utilizations(self.state, self._log_id, self.spec.partition)]

    def users(self, partition: str) -> list[answers.UserUsageInfo]:
        """Return ``usage/users``."""
        self._check(partition)
        return users.users(self.state)

    def user(self, partition: str, name: str) -> answers.UserUsageInfo:
        """Return ``usage/user/U``."""
        for one in self.users(partition):
            if one.user_name == name:
                return one
        message = "User not found"
        raise NotThere(message)

    def groups(self, partition: str) -> list[answers.GroupUsageInfo]:
        """Return ``usage/groups``."""
        self._check(partition)
        return users.groups(self.state)

    def group(self, partition: str, name: str) -> answers.GroupUsageInfo:
        """Return ``usage/group/G``."""
        for one in self.groups(partition):
            if one.group_name == name:
                return one
        message = "Group not found"
        raise NotThere(message)

    # --------------------------------------------------------------------------------------- history

    def app_history(self) -> list[answers.AppsThenInfo]:
        """Return ``history/apps``: those that had not ended, at every full minute of the last day."""
        return [
            answers.AppsThenInfo(timestamp=time * NS, total_applications=str(count))
            for time, count, _ in self._minutes
        ]

    def container_history(self) -> list[answers.ContainersThenInfo]:
        """Return ``history/containers``, at every full minute of the last day."""
        return [
            answers.ContainersThenInfo(timestamp=time * NS, total_containers=str(count))
            for time, _, count in self._minutes
        ]

    @cached_property
    def _minutes(self) -> list[tuple[int, int, int]]:
        now = self.state.time
        return lives.per_minute(self._tables, self.state.seq, now - DAY_MS, now)

    @cached_property
    def _completed(self) -> list[Life]:
        return lives.ended_since(self._tables, self.state.seq, self.state.time - KEPT_MS)

    @cached_property
    def _rejected(self) -> list[Life]:
        return lives.rejected_since(self._tables, self.state.seq, self.state.time - KEPT_MS)

    def _lives(self, found: Iterable[Application], *, said: bool = True) -> Lives:
        those = list(found)
        return lives.lives_of(
            self._tables,
            self.state.seq,
            [(one.id, one.seq) for one in those],
            [name for one in those for name in one.asks] if said else (),
        )

    def _active(
        self, found: Iterable[Application], status: str = ""
    ) -> list[answers.ApplicationInfo]:
        those = sorted(found, key=lambda one: one.id)
        known = self._lives(those)
        return [
            applications.application(self.state, self.spec.partition, one, known)
            for one in those
            if not status or applications.state_of(one, known.of(one.id)).lower() == status.lower()
        ]

    def _check(self, partition: str) -> None:
        if partition != self.spec.partition:
            message = "Partition not found"
            raise NotThere(message)

    def _queue(self, partition: str, path: str) -> Queue:
        self._check(partition)
        found = self.state.queues.get(path.lower())
        if found is None:
            message = "Queue not found"
            raise NotThere(message)
        return found

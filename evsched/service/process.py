"""A process of the service: its members, one for each cluster partition, side by side in one event loop.

A damaged log, or a fault of our own that comes back, stops its own cluster partition and no other.
The process ends when none is left to serve.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import structlog

from events.streams import private_files
from evsched.core.faults import place_of
from evsched.service.assignment import Assignment
from evsched.service.member import Member, Role

LOOK_S = 0.2
"""How often the readiness file is brought up to date."""

AGAIN_S = 3.0
"""After how long work beside the members begins again when a fault ended it."""

_log = structlog.get_logger(__name__)


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the readiness file says of one cluster partition."""

    partition: int
    role: Role
    ready: bool
    term: int
    outdated: str = ""


class ProcessReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the readiness file says."""

    pid: int
    partitions: tuple[MemberReport, ...]


class Service:
    """All cluster partitions that one process takes part in.

    Attributes:
        members: In the order of their partitions.
        ready_file: Exists as long as every member is ready; None: none is wanted.
    """

    def __init__(
        self, members: Sequence[Member], assignment: Assignment, ready_file: Path | None = None
    ) -> None:
        """Prepare with one member for each cluster partition; `run` does everything."""
        self.members = tuple(members)
        self.ready_file = ready_file
        self._assignment = assignment
        self._stopping = False

    @property
    def ready(self) -> bool:
        """Whether every member is."""
        return all(member.ready for member in self.members)

    @property
    def failed(self) -> tuple[Member, ...]:
        """The members that gave up."""
        return tuple(member for member in self.members if member.failure is not None)

    def report(self) -> ProcessReport:
        """Return what there is to say now."""
        return ProcessReport(
            pid=os.getpid(),
            partitions=tuple(
                MemberReport(
                    partition=one.partition,
                    role=one.role,
                    ready=one.ready,
                    term=one.term,
                    outdated=one.outdated,
                )
                for one in self.members
            ),
        )

    def stop(self) -> None:
        """Ask every member for a graceful end."""
        if not self._stopping:
            _log.info("stopping")
        self._stopping = True
        for member in self.members:
            member.stop()

    async def run(self) -> None:
        """Serve until stopped, or until every member gave up."""
        members = [asyncio.create_task(member.run()) for member in self.members]
        beside = [
            asyncio.create_task(self._kept_up("assignment", self._assign)),
            asyncio.create_task(self._kept_up("readiness", self._tell)),
        ]
        try:
            await asyncio.gather(*members)
        finally:
            for task in (*members, *beside):
                task.cancel()
            await asyncio.gather(*members, *beside, return_exceptions=True)
            self._write(None)

    async def _kept_up(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work for ever; a fault of our own in it is told, and it begins again."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - no partition need suffer from it
                cause = f"{type(error).__name__}: {error}"
                _log.error("fault, trying again", work=what, cause=cause, place=place_of(error))
            await asyncio.sleep(AGAIN_S)

    async def _assign(self) -> None:
        await self._assignment.run(self._given_out)

    def _given_out(self, own: frozenset[int]) -> None:
        """Give up what belongs to another process now, so that it need not wait for the lease."""
        for member in self.members:
            if member.partition not in own:
                member.resign()

    async def _tell(self) -> None:
        told: ProcessReport | None = None
        while True:
            report = self.report() if self.ready else None
            if report != told:
                await asyncio.to_thread(self._write, report)
                told = report
            await asyncio.sleep(LOOK_S)

    def _write(self, report: ProcessReport | None) -> None:
        """Put the readiness file there whole, or take it away."""
        if self.ready_file is None:
            return
        try:
            if report is None:
                self.ready_file.unlink(missing_ok=True)
                return
            draft = self.ready_file.with_name(f".{self.ready_file.name}.{os.getpid()}")
            draft.unlink(missing_ok=True)
            with os.fdopen(private_files.create(draft), "wb") as file:
                file.write(msgspec.json.encode(report) + b"\n")
            draft.replace(self.ready_file)
        except OSError as error:
            _log.warning("readiness not told", file=str(self.ready_file), reason=error.strerror)

"""`evsched run`: the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import structlog
from cyclopts import Group, Parameter

from events.errors import EnvironmentFault, LogDamaged, StreamError, WrittenByNewer
from events.streams import open_streams
from evsched.cli.answers import CRASHED, DONE, MISUSE, UNREACHABLE, CommandError
from evsched.cli.interrupts import heeding
from evsched.cli.logs import Reach, as_command_error, data_directory
from evsched.cli.serving_beside import serving_beside
from evsched.core.rules import NEWEST
from evsched.service.assignment import assignment_for, partitions_of
from evsched.service.environment import BoundedClock, SystemClock
from evsched.service.leading import Pace
from evsched.service.logs import configure
from evsched.service.member import Member
from evsched.service.process import Service
from evsched.service.rebuilding import SNAPSHOT_EVERY, Snapshots, settle

START_S = 30.0
"""How long a start is tried again where several brokers are named: one that has just died is not the end of the others."""
AGAIN_S = 1.0

_log = structlog.get_logger(__name__)

_PACE = Group("Pace", help="For tests and special networks; the defaults are good.")

PaceSeconds = Annotated[float, Parameter(group=_PACE)]


async def run(  # noqa: PLR0913 - the options of a command
    *,
    where: Reach = Reach(),  # noqa: B008 - frozen
    partitions: int | None = None,
    create_topics: Annotated[bool, Parameter(negative=())] = False,
    snapshots: Path | None = None,
    ready_file: Path | None = None,
    log_format: Literal["console", "json"] = "console",
    verbose: Annotated[bool, Parameter(negative=())] = False,
    observe: Annotated[bool, Parameter(negative=())] = False,
    address: str = "",
    listen: str | None = None,
    access: Path | None = None,
    heartbeat: PaceSeconds = 0.5,
    lease: PaceSeconds = 2.5,
    checkpoint_every: Annotated[int, Parameter(group=_PACE)] = 100_000,
) -> int:
    """Run the scheduler until it is told to stop: follow the log, and lead where nobody else does.

    Any number of processes may run on one log. Each cluster partition has one leader; the others
    stand by with a warm state. On Kafka the partitions are spread over the processes by a consumer
    group. SIGTERM and Ctrl-C end it in order, so that another leads at once; SIGKILL does no harm
    either. It goes on by itself when a broker was away. A damaged log is left alone, and so is a
    cluster partition in which evsched itself fails again and again; the others go on. The process
    ends when none is left, with code 3 or 70.

    **Examples**

    `evsched run`

    `evsched run --log kafka://localhost:9092/cluster --create-topics --partitions 4 --log-format
    json`

    Args:
        where: Which log. The embedded log is made when it is missing.
        partitions: How many cluster partitions there are; those of the topic by default, 1 on the
            embedded log.
        create_topics: Make the topics when they are missing; by default they must be there.
        snapshots: Folder for snapshots of the state, so that a restart is quick; one in your data
            directory by default.
        ready_file: A file that exists as long as every cluster partition is led or followed, and
            says by whom; for health checks.
        log_format: How this process tells what it does, on the standard error: for people or for
            machines.
        verbose: Tell of every step.
        observe: Take what is proposed and decide nothing, while another scheduler runs the cluster
            and `evsched agent kubernetes --mode record` says what it does. Every process on the log
            must be started so, as whoever leads decides otherwise.
        address: Where this process can be reached; `evsched status` shows it.
        listen: Serve the API and the web page there, too, as `evsched serve` does, in a process of
            its own beside this one.
        access: Who may ask that server (docs/api.md).
        heartbeat: PaceSeconds between two signs of life of a leader.
        lease: PaceSeconds without one after which a leader counts as gone.
        checkpoint_every: Events between two digests of the state in the log, by which every reader
            checks its own.
    """
    if not __debug__:
        raise CommandError(
            "python: runs with -O, expected without: the Kafka client guards its state by assertions"
        )
    if not 0 < heartbeat < lease / 2:
        raise CommandError(
            f"--heartbeat {heartbeat}: expected more than 0 and less than half of --lease {lease}",
            MISUSE,
        )
    if partitions is not None and partitions < 1:
        raise CommandError(f"--partitions: found {partitions}, expected 1 or more", MISUSE)
    configure(log_format, verbose=verbose)
    pace = Pace(
        beat=heartbeat,
        lease=lease,
        checkpoint_every=checkpoint_every,
        address=address,
        rules=NEWEST,
        observes=observe,
    )
    folder = snapshots if snapshots is not None else data_directory() / "snapshots"
    try:
        async with AsyncExitStack() as stack:
            preparing = partial(_prepare, where, partitions, pace, folder, create=create_topics)
            service = await _patiently(preparing, stack, START_S if "," in where.url else 0.0)
            service.ready_file = ready_file
            async with serving_beside(where, listen, access, log_format):
                await _serve(service)
    except StreamError as error:
        raise as_command_error(error) from error
    return _code(service)


def _code(service: Service) -> int:
    """Return the exit code: that of a fault of our own goes before that of a damaged log."""
    failures = [member.failure for member in service.failed]
    if all(isinstance(one, LogDamaged | WrittenByNewer) for one in failures):
        return UNREACHABLE if failures else DONE
    return CRASHED


async def _patiently(
    prepare: Callable[[AsyncExitStack], Awaitable[Service]], stack: AsyncExitStack, seconds: float
) -> Service:
    """Return the service; try again for so long when the environment is at fault. The stack closes what it holds."""
    clock = SystemClock()
    end = clock.elapsed() + seconds
    while True:
        try:
            async with AsyncExitStack() as attempt:
                service = await prepare(attempt)
                stack.push_async_exit(attempt.pop_all())
                return service
        except EnvironmentFault as error:
            if clock.elapsed() >= end:
                raise
            _log.warning("start tried again", reason=str(error), again_in_s=AGAIN_S)
            await asyncio.sleep(AGAIN_S)


async def _prepare(
    where: Reach,
    partitions: int | None,
    pace: Pace,
    folder: Path,
    stack: AsyncExitStack,
    *,
    create: bool,
) -> Service:
    """Return the service over streams that are there and set up rightly; the stack closes them."""
    url, security = where.url, where.security
    # An address that is not understood is misuse, whatever else is wrong; the last partition brings
    # those before it with it.
    async with open_streams(url, (partitions or 1) - 1, security) as last:
        if create or url.startswith("sqlite:"):
            await last.log.create()
        elif partitions is not None:
            await last.log.check()
    count = partitions or await partitions_of(url, security) or 1
    assignment = assignment_for(url, security)
    clock = BoundedClock(SystemClock())
    members: list[Member] = []
    for number in range(count):
        streams = await stack.enter_async_context(open_streams(url, number, security))
        own = Snapshots(folder, min(pace.checkpoint_every, SNAPSHOT_EVERY))
        members.append(
            Member(
                streams,
                clock,
                pace=pace,
                snapshots=own,
                assigned=lambda number=number: assignment.has(number),  # type: ignore[misc]
                on_built=settle,
                others=assignment.companions,
            )
        )
    return Service(members, assignment)


async def _serve(service: Service) -> None:
    """Serve until a signal says stop; a second one does not wait."""
    serving = asyncio.ensure_future(service.run())
    told = False

    def stop() -> None:
        nonlocal told
        if told:
            serving.cancel()
        told = True
        service.stop()

    try:
        with heeding(stop):
            await serving
    except asyncio.CancelledError:
        if not told:
            raise

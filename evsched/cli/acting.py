"""What `evsched agent kubernetes --mode act` does beside recording: it carries out what the log decides."""

from __future__ import annotations

import asyncio
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from evsched.agents.kubernetes.acting.policy import ActingPolicy, HonourPdb
from evsched.cli.answers import CommandError, say
from evsched.cli.interrupts import heeding
from evsched.service.environment import SystemClock

if TYPE_CHECKING:
    from events.streams import Streams
    from evsched.agents.kubernetes.connection import ApiServer
    from evsched.agents.kubernetes.queues import Queues
    from evsched.agents.kubernetes.reading import Reading

_ACT = Group("Act", help="For --mode act.")


@Parameter(name="*", group=_ACT)
@dataclass(frozen=True)
class ActingOptions:
    """How decisions are carried out.

    Attributes:
        scheduler_name: The schedulerName of the pods that the log decides; all others are only
            recorded.
        honour_pdb: What a PodDisruptionBudget may refuse. strict: the eviction, for as long as it
            likes. best-effort: the eviction, until the log asks for it again; then the pod is
            deleted. off: nothing; victims are deleted.
        lease: The Lease of which one agent at a time is the holder, as namespace/name.
    """

    scheduler_name: str = ActingPolicy().scheduler
    honour_pdb: Annotated[HonourPdb, Parameter(negative=())] = "strict"
    lease: str = "evsched/evsched-agent"


ACT = ActingOptions()


async def act(
    streams: Streams,
    cluster: ApiServer,
    reading: Reading,
    queues: Queues | None,
    options: ActingOptions,
) -> None:
    """Act whenever this agent holds the Lease, until told to stop."""
    from evsched.agents.kubernetes.acting.carrying import (  # noqa: PLC0415 - quick commands start quickly
        ClusterActing,
        Hands,
        moment,
    )
    from evsched.agents.kubernetes.acting.election import (  # noqa: PLC0415 - as above
        ElectionClock,
        LeaseElection,
    )
    from evsched.agents.kubernetes.acting.session import act_while_elected  # noqa: PLC0415 - as above

    namespace, _, name = options.lease.partition("/")
    if not namespace or not name:
        raise CommandError(f"--lease {options.lease}: expected namespace/name")
    steady = SystemClock().elapsed
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    clock = ElectionClock(steady=steady, moment=moment)
    election = LeaseElection(cluster.send, namespace, name, identity, clock)
    hands = Hands(
        policy=ActingPolicy(scheduler=options.scheduler_name, honour_pdb=options.honour_pdb),
        instance=identity,
        now=lambda: round(steady() * 1000),
        may_act=election.holds,
    )
    say(f"acting for {streams.inbox.name} as {identity}, once it holds the Lease {options.lease}")
    work = asyncio.ensure_future(
        act_while_elected(
            election, lambda: ClusterActing(streams, cluster, reading, queues, hands).run()
        )
    )
    with heeding(work.cancel), suppress(asyncio.CancelledError):
        await work

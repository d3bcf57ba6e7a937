"""The shell around the actor: decisions of the log become requests to the API, and what came of them goes into the log.

It is the shell that records, with an actor that listens to the same news. The recorder and the actor
are told one after the other by one task, so both know the same. Requests are under way at the same
time, but for one pod only one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol, cast

from msgspec import Struct

from events.chain import RecordedStep
from events.streams import Streams
from events.vocabulary import AnyInput
from evsched.agents.kubernetes.acting.actions import ApiRequest, PodAction, SparePod
from evsched.agents.kubernetes.acting.actor import ClusterActor, Refusal
from evsched.agents.kubernetes.acting.confirming import ActingRecorder
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer
from evsched.agents.kubernetes.acting.policy import SCHEDULER, ActingPolicy
from evsched.agents.kubernetes.acting.seen import decided_by, found_pod
from evsched.agents.kubernetes.nodes import SeenNode
from evsched.agents.kubernetes.objects import PODS, ApiObject, PodObject
from evsched.agents.kubernetes.queues import Queues
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recording import ClusterRecording
from evsched.agents.kubernetes.reflecting import ObjectChanged, ObjectSource, Relisted
from evsched.agents.kubernetes.tasks import SeenTask

AT_ONCE = 32
"""Requests that are under way at a time."""

_OVER = frozenset({"Succeeded", "Failed"})


class Cluster(ObjectSource, Protocol):
    """What is watched and changed: an API server, or something that stands in for one."""

    async def send(self, request: ApiRequest) -> ApiAnswer:
        """Return the answer to a request, whatever it is; code 0: none was heard."""


class Hands(Struct, frozen=True, kw_only=True):
    """How an agent acts.

    Attributes:
        policy: What an administrator chose.
        instance: Names this agent in Events.
        now: Milliseconds of a clock that never goes back.
        may_act: Tells whether a request may be sent now; a deposed agent sends none.
    """

    policy: ActingPolicy = ActingPolicy()
    instance: str = SCHEDULER
    now: Callable[[], int]
    may_act: Callable[[], bool] = lambda: True


class Deposed(Exception):
    """This agent may not act any more: its Lease is lost, or may be by now."""


class ClusterActing(ClusterRecording):
    """Records a cluster, and carries out there what the log decides.

    Attributes:
        actor: What is to be done.
    """

    def __init__(
        self,
        streams: Streams,
        cluster: Cluster,
        reading: Reading,
        queues: Queues | None,
        hands: Hands,
    ) -> None:
        """Do nothing yet.

        Args:
            streams: Of a cluster partition.
            cluster: The API server.
            reading: What the translation goes by.
            queues: Where the cluster keeps its queues; None: it has none.
            hands: How it acts.
        """
        super().__init__(streams, cluster, reading, queues)
        self.actor = ClusterActor(hands.policy, hands.instance)
        self._confirming = ActingRecorder(self.actor.orders)
        self.recorder = self._confirming
        self._cluster = cluster
        self._hands = hands
        self._wake = asyncio.Event()

    # ------------------------------------------------------------------------------- what is carried out

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        group.create_task(self._act(group))
        await super()._watch(group)

    async def _act(self, group: asyncio.TaskGroup) -> None:
        """Start what is to be done, so much of it at a time; sleep until something else is."""
        room = asyncio.Semaphore(AT_ONCE)
        while True:
            await room.acquire()
            self._wake.clear()
            action = self.actor.next(self._hands.now())
            if action is not None:
                group.create_task(self._carry(action, room))
                continue
            room.release()
            due = self.actor.next_due()
            wait = None if due is None else max(0, due - self._hands.now()) / 1000
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _carry(self, action: PodAction, room: asyncio.Semaphore) -> None:
        try:
            if not self._hands.may_act():
                raise Deposed
            if isinstance(action, SparePod):
                refusal = self.actor.spared(action, self._hands.now())
            else:
                answer = await self._cluster.send(action.request(moment()))
                refusal = self.actor.done(action, answer, self._hands.now())
            if refusal is not None:
                # In its turn among the news, so that proposals are sent in the order of their making.
                await self._news.put(cast("Any", refusal))
        finally:
            room.release()
            self._wake.set()

    # ------------------------------------------------------------------------------- what it is told

    def _answer(self, news: Any) -> list[AnyInput]:
        if isinstance(news, Refusal):
            return self._confirming.refused(news)
        proposals = super()._answer(news)
        match news:
            case Relisted() if news.kind == PODS:
                self.actor.listed(
                    (self._task(one), found_pod(one))
                    for one in news.objects
                    if isinstance(one, PodObject) and not _is_over(one)
                )
            case ObjectChanged(object=PodObject() as pod):
                over = news.gone or _is_over(pod)
                self.actor.saw(self._task(pod), None if over else found_pod(pod))
            case _:
                pass
        self._wake.set()
        return proposals

    def _taken(self, steps: tuple[RecordedStep, ...]) -> list[AnyInput]:
        proposals = []
        for step in steps:
            for event in step.events:
                # The recorder asks the orders, so they are told first.
                self.actor.take(event)
                proposals += self.recorder.take(event)
        return proposals

    def _seen(self, found: ApiObject, *, gone: bool) -> SeenNode | SeenTask:
        seen = super()._seen(found, gone=gone)
        if isinstance(found, PodObject) and isinstance(seen, SeenTask):
            return decided_by(self._hands.policy, seen, found)
        return seen

    def _task(self, pod: PodObject) -> str:
        return self.reading.masking.object(pod.metadata.namespace, pod.metadata.name)


def _is_over(pod: PodObject) -> bool:
    return pod.status.phase in _OVER


def moment() -> str:
    """Return now, as the API writes it with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""The shell around the recorder: reflectors bring what the cluster shows, the log what it says, and proposals go to the inbox.

One task alone asks the recorder, so lists, changes and events are taken one after the other, and
proposals are sent in the order in which they were made. One that may be lost is sent again until the
inbox has it; its id is what makes that harmless.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from contextlib import aclosing

import structlog

from events.chain import ChainReader, RecordedStep
from events.configuration import Configuration
from events.errors import EnvironmentFault, StreamError
from events.streams import Streams
from events.streams.reading import follow_steps, read_steps
from events.vocabulary import AllocationBound, AnyInput
from evsched.agents.kubernetes.logged import SOURCE
from evsched.agents.kubernetes.nodes import SeenNode, node_of
from evsched.agents.kubernetes.objects import (
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    ApiObject,
    Namespace,
    NodeObject,
    ObjectKind,
    PodObject,
    PriorityClass,
)
from evsched.agents.kubernetes.pods import pod_of
from evsched.agents.kubernetes.queues import Queues
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recorder import Listing, Recorder
from evsched.agents.kubernetes.reflecting import ObjectChanged, ObjectSource, Reflector, Relisted
from evsched.agents.kubernetes.tasks import SeenTask
from evsched.agents.kubernetes.workloads import WorkloadObject, learn, workload_of
from evsched.agents.kubernetes.yunikorn import quotas_of, spares
from evsched.agents.proposing import AGAIN_S, BATCH, propose_all

WAITING = 2000
"""Changes that may wait for the recorder before the watches are read no further."""

_REFERRED = (PRIORITY_CLASSES, NAMESPACES)
"""Kinds that pods refer to."""

_log = structlog.get_logger(__name__)

_News = Relisted | ObjectChanged | tuple[RecordedStep, ...]


class ClusterRecording:
    """Records a cluster.

    Attributes:
        recorder: What is to be proposed.
        reading: The names of the log, and what other objects say.
    """

    def __init__(
        self,
        streams: Streams,
        source: ObjectSource,
        reading: Reading,
        queues: Queues | None = None,
        workloads: ObjectKind | None = None,
    ) -> None:
        """Record nothing yet.

        Args:
            streams: Of a cluster partition.
            source: The API server.
            reading: What the translation goes by.
            queues: Where the cluster keeps its queues; None: it has none, and each namespace gets
                one.
            workloads: The kind of Kueue's Workloads, which are recorded in place of nodes and pods;
                None: nodes and pods are.
        """
        self.reading = reading
        self._streams = streams
        self._source = source
        self._queues = queues
        # What is compared with the log object by object, and what has to be known before.
        self._tasks = (NODES, PODS) if workloads is None else (workloads,)
        self._before = _REFERRED if workloads is None else ()
        self.recorder = Recorder(self._tasks[-1].name)
        self._news: asyncio.Queue[_News] = asyncio.Queue(WAITING)
        self._chain = ChainReader()
        self._compared: list[Reflector] = []
        self._document: str | None = None
        self._sent: Configuration | None = None
        self._warned = False

    async def run(self) -> None:
        """Record until cancelled.

        Raises:
            StreamError: The log is damaged, or cannot be used as it is set up.
        """
        async with aclosing(read_steps(self._streams.log, self._chain)) as batches:
            async for steps in batches:
                self._taken(steps)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._propose())
                group.create_task(self._follow())
                group.create_task(self._watch(group))
        except* StreamError as errors:
            # One of them gave up and the others were cancelled, so there is one reason.
            reason = errors.exceptions[0]
        else:
            return
        raise reason

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        """List one kind after the other, so that what a pod refers to is known first; then watch all."""
        begun = self.recorder.begin(has_queues=self._queues is not None)
        await propose_all(self._streams.inbox, begun, SOURCE)
        for kind in self._kinds():
            reflector = Reflector(kind, self._source, self._news.put)
            await reflector.begin()
            group.create_task(reflector.run())
            if kind in self._tasks:
                self._compared.append(reflector)
        # What was listed stays, so a collection that looks through all of it finds nothing, and would
        # hold up every change meanwhile: 0.2 s with fifty thousand pods.
        gc.freeze()

    def _kinds(self) -> Sequence[ObjectKind]:
        first = () if self._queues is None else self._queues.kinds
        return (*first, *self._before, *self._tasks)

    async def _follow(self) -> None:
        """Bring what is new in the log; one that cannot be reached is tried again."""
        while True:
            try:
                async with aclosing(follow_steps(self._streams.log, self._chain)) as batches:
                    async for steps in batches:
                        await self._news.put(steps)
            except EnvironmentFault as error:
                _log.warning("log not reached, following it again", error=str(error))
                await asyncio.sleep(AGAIN_S)

    async def _propose(self) -> None:
        """Take the news one after the other, and send what they make necessary."""
        while True:
            steps = self._answer(await self._news.get())
            while len(steps) < BATCH and not self._news.empty():
                steps += self._answer(self._news.get_nowait())
            await propose_all(self._streams.inbox, steps, SOURCE)
            if self.recorder.doubtful and len(self._compared) == len(self._tasks):
                for reflector in self._compared:
                    reflector.list_again(self.recorder.doubtful)
                self.recorder.doubtful = ""

    # ---------------------------------------------------------------------------------- translation

    def _answer(self, news: _News) -> list[AnyInput]:
        match news:
            case Relisted():
                return self._listed(news)
            case ObjectChanged():
                return self._changed(news)
            case _:
                return self._taken(news)

    def _taken(self, steps: tuple[RecordedStep, ...]) -> list[AnyInput]:
        if not self._warned and any(
            isinstance(e, AllocationBound) for s in steps for e in s.events
        ):
            self._warned = True
            _log.warning("the log's leader decides; record with `evsched run --observe`")
        return [
            proposed
            for step in steps
            for event in step.events
            for proposed in self.recorder.take(event)
        ]

    def _listed(self, news: Relisted) -> list[AnyInput]:
        if news.kind not in self._tasks:
            for one in news.objects:
                self._noted(one, gone=False)
            if self._queues is not None:
                self._queues.listed(news.kind, news.objects)
            return self._configured(f"{news.kind.name}:{news.version}:list")
        for one in news.objects:
            if isinstance(one, WorkloadObject):
                # A Workload may be preempted for one that the list names behind it.
                learn(one, self.reading)
        return self.recorder.listed(
            Listing(
                kind=news.kind.name,
                version=news.version,
                objects=tuple(self._seen(one, gone=False) for one in news.objects),
                before=news.before,
                reason=news.reason,
            )
        )

    def _changed(self, news: ObjectChanged) -> list[AnyInput]:
        if news.kind in self._tasks:
            return self.recorder.saw(self._seen(news.object, gone=news.gone))
        self._noted(news.object, gone=news.gone)
        if self._queues is not None:
            self._queues.changed(news.kind, news.object, gone=news.gone)
        meta = news.object.metadata
        return self._configured(f"{news.kind.name}:{meta.resource_version}:{meta.uid}")

    def _seen(self, found: ApiObject, *, gone: bool) -> SeenNode | SeenTask:
        """Return a node or task as the log may have it."""
        match found:
            case NodeObject():
                return node_of(found, self.reading, gone=gone)
            case PodObject():
                return pod_of(found, self.reading, gone=gone)
            case WorkloadObject():
                return workload_of(found, self.reading, gone=gone)
            case _:
                raise TypeError(f"{type(found).__name__} is compared with nothing in the log")

    def _noted(self, found: ApiObject, *, gone: bool) -> None:
        """Note what pods refer to."""
        name = found.metadata.name
        match found:
            case PriorityClass():
                self.reading.spared.discard(name)
                if spares(found) and not gone:
                    self.reading.spared.add(name)
            case Namespace():
                self.reading.quotas[name] = {} if gone else quotas_of(found)
            case _:
                pass

    def _configured(self, mark: str) -> list[AnyInput]:
        """Return the cluster's configuration where it is another than was last proposed; one with faults is passed over.

        Args:
            mark: Of what was noted last: kind, version and uid.
        """
        document = None if self._queues is None else self._queues.document()
        if self._queues is None or document is None or document == self._document:
            return []
        self._document = document
        try:
            configuration = self._queues.read(document)
        except ValueError as error:
            _log.warning("configuration has a fault", object=mark, error=str(error))
            return []
        if configuration == (self._sent or self.recorder.view.configuration):
            return []
        self._sent = configuration
        return [self.recorder.configured(configuration, document, mark)]

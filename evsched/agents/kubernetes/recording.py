"""The shell around the recorder: reflectors bring what the cluster shows, the log what it says, and proposals go to the inbox.

One task alone asks the recorder, so lists, changes and events are taken one after the other, and
proposals are sent in the order in which they were made. One that may be lost is sent again until the
inbox has it; its id is what makes that harmless.
"""

from __future__ import annotations

import asyncio
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
    ConfigMap,
    Namespace,
    NodeObject,
    ObjectKind,
    PodObject,
    PriorityClass,
)
from evsched.agents.kubernetes.pods import SeenPod, pod_of
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recorder import Listing, Recorder
from evsched.agents.kubernetes.reflecting import ObjectChanged, ObjectSource, Reflector, Relisted
from evsched.agents.kubernetes.yunikorn import Queues, quotas_of, spares
from evsched.agents.proposing import AGAIN_S, BATCH, propose_all

WAITING = 2000
"""Changes that may wait for the recorder before the watches are read no further."""

_COMPARED = (NODES, PODS)
"""Kinds that are compared with the log, object by object."""

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
    ) -> None:
        """Record nothing yet.

        Args:
            streams: Of a cluster partition.
            source: The API server.
            reading: What the translation goes by.
            queues: Where the cluster keeps its queues; None: it has none, and each namespace gets
                one.
        """
        self.recorder = Recorder()
        self.reading = reading
        self._streams = streams
        self._source = source
        self._queues = queues
        self._news: asyncio.Queue[_News] = asyncio.Queue(WAITING)
        self._chain = ChainReader()
        self._compared: list[Reflector] = []
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
            if kind in _COMPARED:
                self._compared.append(reflector)

    def _kinds(self) -> Sequence[ObjectKind]:
        first = () if self._queues is None else (self._queues.kind,)
        return (*first, PRIORITY_CLASSES, NAMESPACES, NODES, PODS)

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
            if self.recorder.doubtful and len(self._compared) == len(_COMPARED):
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
        if news.kind not in _COMPARED:
            return [step for one in news.objects for step in self._noted(one, gone=False)]
        seen = [self._seen(one) for one in news.objects]
        return self.recorder.listed(
            Listing(
                kind=news.kind.name,
                version=news.version,
                objects=tuple(one for one in seen if one is not None),
                before=news.before,
                reason=news.reason,
            )
        )

    def _changed(self, news: ObjectChanged) -> list[AnyInput]:
        seen = self._seen(news.object, gone=news.gone)
        if seen is None:
            return self._noted(news.object, gone=news.gone)
        return self.recorder.saw(seen)

    def _seen(self, found: ApiObject, *, gone: bool = False) -> SeenNode | SeenPod | None:
        """Return a node or pod as the log may have it; None: the object is of another kind."""
        match found:
            case NodeObject():
                return node_of(found, self.reading, gone=gone)
            case PodObject():
                return pod_of(found, self.reading, gone=gone)
            case _:
                return None

    def _noted(self, found: ApiObject, *, gone: bool) -> list[AnyInput]:
        """Note what pods refer to; a configuration is a proposal."""
        name = found.metadata.name
        match found:
            case PriorityClass():
                self.reading.spared.discard(name)
                if spares(found) and not gone:
                    self.reading.spared.add(name)
            case Namespace():
                self.reading.quotas[name] = {} if gone else quotas_of(found)
            case ConfigMap() if self._queues is not None and not gone:
                return self._configured(found, self._queues)
            case _:
                pass
        return []

    def _configured(self, found: ConfigMap, queues: Queues) -> list[AnyInput]:
        """Return the configuration of a ConfigMap where it is another than the log's; one with faults is passed over."""
        document = (found.data or {}).get(queues.key)
        if document is None:
            return []
        try:
            configuration: Configuration = queues.read(document)
        except ValueError as error:
            _log.warning("configuration has a fault", object=found.metadata.name, error=str(error))
            return []
        if configuration == self.recorder.view.configuration:
            return []
        meta = found.metadata
        mark = f"{queues.kind.name}:{meta.resource_version}:{meta.uid}"
        return [self.recorder.configured(configuration, document, mark)]

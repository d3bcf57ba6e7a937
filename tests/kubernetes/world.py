"""A namespace and nodes of a control plane, with the log that records all of it."""

import asyncio
import os
import uuid
from contextlib import suppress

from events.streams import Streams
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.vocabulary import ObservationGap
from evsched.agents.kubernetes.connection import connected
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recording import ClusterRecording
from tests.kubernetes.conversation import Written
from tests.kubernetes.model import actual, logged
from tests.kubernetes.observer import Observer
from tests.kubernetes.workload import StandIn, node_body

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


class World:
    """A namespace and nodes of a control plane, a stand-in that schedules there, and the log that records all of it.

    Attributes:
        plane: The control plane.
        observer: The leader of the log.
        stand_in: Schedules the pods of the namespace.
    """

    def __init__(self, plane):
        self.plane = plane
        self.api = plane.api
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        self.store = MemoryStore()
        self.observer = Observer(self.streams())
        self.stand_in = StandIn(plane.api, self.namespace)
        self.written = None
        self._agent = None

    def streams(self):
        """Return the log and the inbox, as a program of its own opens them."""
        return Streams(MemoryLog(self.store), MemoryInbox(self.store))

    async def open(self, nodes):
        """Make the namespace and so many nodes, and lead the log."""
        await self.observer.start()
        await self.do("create", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for number in range(nodes):
            await self.do("create", NODES, node_body(self.node(number), self.namespace))

    async def close(self):
        """End the agent and the leader, and remove everything from the cluster."""
        await self.kill()
        await self.observer.stop()
        await self.do("delete", f"/apis/apps/v1/namespaces/{self.namespace}/replicasets")
        now = {"gracePeriodSeconds": 0}
        await self.do("delete", f"/api/v1/namespaces/{self.namespace}/pods", now)
        await self.do("delete", f"{NODES}?labelSelector=evsched-test={self.namespace}")
        await self.do("delete", f"/api/v1/namespaces/{self.namespace}")

    def node(self, number):
        """Return the name of a node."""
        return f"{self.namespace}-n{number}"

    async def do(self, what, *arguments):
        """Ask the API server, in a thread; return its answer."""
        return await asyncio.to_thread(getattr(self.api, what), *arguments)

    async def record(self, kubeconfig=None, queues=None, workloads=None):
        """Start an agent; what it hears is written down."""
        await self.kill()

        async def run():
            async with connected(kubeconfig or self.plane.agent) as source:
                self.written = Written(source)
                reading = Reading(masking=Masking())
                recording = ClusterRecording(
                    self.streams(), self.written, reading, queues, workloads
                )
                await recording.run()

        self._agent = asyncio.create_task(run())

    async def kill(self):
        """End the agent where it is."""
        if self._agent is not None:
            self._agent.cancel()
            with suppress(asyncio.CancelledError):
                await self._agent
            self._agent = None

    async def schedule(self):
        """Let the stand-in bind what waits."""
        return await asyncio.to_thread(self.stand_in.schedule)

    async def cluster(self):
        """Return the cluster as the API server has it."""
        nodes, pods = await self.do("get", NODES), await self.do("get", PODS)
        return actual(nodes["items"], pods["items"])

    async def equal(self):
        """Return once the log says what the cluster is, which stays so while nothing happens."""
        while True:
            if self._agent is not None and self._agent.done():
                self._agent.result()
            if logged(self.observer.engine) == await self.cluster():
                return
            await asyncio.sleep(0.05)

    async def keep(self, name):
        """Keep what the agent heard as a recorded conversation, where that is asked for."""
        if os.environ.get("EVSCHED_RECORD"):
            self.written.save(name, await self.cluster())

    def said(self, *kinds):
        """Return the events of these types."""
        return [event for event in self.observer.events if isinstance(event, kinds)]

    def gaps(self):
        """Return the gaps within the log, without those from before its beginning."""
        return [one for one in self.said(ObservationGap) if one.before]

    async def pods(self):
        """Return the pods of the namespace."""
        return (await self.do("get", f"/api/v1/namespaces/{self.namespace}/pods"))["items"]

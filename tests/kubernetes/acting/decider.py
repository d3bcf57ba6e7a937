"""The leader of a log that decides, and can be looked into; and a world in which an agent acts by it."""

import asyncio
import time
import uuid
from contextlib import suppress

from events.vocabulary import ConfigurationApplied
from evsched.agents.kubernetes.acting.carrying import ClusterActing, Hands, moment
from evsched.agents.kubernetes.acting.election import ElectionClock, LeaseElection
from evsched.agents.kubernetes.acting.policy import ActingPolicy
from evsched.agents.kubernetes.acting.session import act_while_elected
from evsched.agents.kubernetes.connection import connected
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.reading import Reading
from evsched.config import load_texts
from tests.kubernetes.manifests import component, path_of
from tests.kubernetes.observer import Observer
from tests.kubernetes.world import World


def now_ms():
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Decider(Observer):
    """A leader that decides, and fires what is due."""

    async def _lead(self):
        while True:
            head = self._leadership.head
            due = self.engine.next_due()
            wait = 1.0 if due is None else min(1.0, max(0, due - now_ms()) / 1000)
            proposals = await self._streams.inbox.read(head.inbox_next, wait_s=wait)
            now = self._leadership.stamp(now_ms())
            due = self.engine.next_due()
            if not proposals and (due is None or due > now):
                continue
            events = self.engine.step(now, proposals)
            after = proposals[-1].position + 1 if proposals else head.inbox_next
            await self._leadership.append_step(events, time=now, decided=True, inbox_next=after)
            self.events += events
            self._stepped.set()
            self._stepped = asyncio.Event()


class ActingWorld(World):
    """A namespace and nodes of a control plane, the log that decides there, and agents that act."""

    def __init__(self, plane):
        super().__init__(plane)
        self.observer = Decider(self.streams())
        self.agents = {}

    async def open(self, nodes):
        """Make the namespace, nodes and the rights of the component, and lead the log."""
        await super().open(nodes)
        for one in component("act"):
            await self.do("create", path_of(self._here(one)), self._here(one))

    async def close(self):
        """End the agents and the leader, and remove everything from the cluster."""
        for name in list(self.agents):
            await self.stop(name)
        for one in component("act", "ClusterRole", "ClusterRoleBinding"):
            await self.do("delete", f"{path_of(one)}/{one['metadata']['name']}")
        budgets = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        await self.do("delete", budgets)
        for pod in await self.pods():
            if pod["metadata"].get("finalizers"):
                path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
                await self.do("patch", path, {"metadata": {"finalizers": None}})
        await super().close()

    def _here(self, one):
        """Return a manifest in the namespace of this world where it has one."""
        meta = {**one["metadata"]}
        if "namespace" in meta:
            meta["namespace"] = self.namespace
        return {**one, "metadata": meta}

    async def configure(self, queues):
        """Apply a queues.yaml."""
        applied = load_texts([("queues.yaml", queues)]).configurations[0]
        proposal = ConfigurationApplied(configuration=applied, proposal=uuid.uuid4().hex)
        await self.streams().inbox.propose([proposal], "tests")

    def act(self, name="agent", *, kubeconfig=None, through=lambda source: source, **policy):
        """Start an agent with the rights of the component.

        Args:
            name: Of the agent; it is no part of what it does.
            kubeconfig: Another way to the API server.
            through: Stands between the agent and the API server.
            policy: How it acts.
        """
        chosen = ActingPolicy(**policy)

        async def run():
            async with connected(kubeconfig or self.plane.agent) as source:
                cluster = through(source)
                clock = ElectionClock(steady=time.monotonic, moment=moment)
                election = LeaseElection(cluster.send, self.namespace, "evsched-agent", name, clock)
                hands = Hands(
                    policy=chosen,
                    instance=name,
                    now=lambda: time.monotonic_ns() // 1_000_000,
                    may_act=election.holds,
                )
                reading = Reading(masking=Masking())

                async def begin():
                    await ClusterActing(self.streams(), cluster, reading, None, hands).run()

                await act_while_elected(election, begin)

        self.agents[name] = asyncio.create_task(run())

    async def stop(self, name="agent"):
        """End an agent where it is; it gives its Lease back."""
        task = self.agents.pop(name)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def until(self, holds):
        """Return once something is true of the cluster, the log or both; an agent that failed fails the test."""
        while True:
            for task in self.agents.values():
                if task.done():
                    task.result()
            found = holds()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.05)

    async def pod(self, name):
        """Return a pod of the namespace; None: it is not there."""
        found = {one["metadata"]["name"]: one for one in await self.pods()}
        return found.get(name)

    async def home(self, name):
        """Return where a pod is bound; empty: nowhere."""
        found = await self.pod(name)
        return found["spec"].get("nodeName", "") if found else ""

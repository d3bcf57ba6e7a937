"""The stand-in as an API server that is watched and asked, for the shell of an acting agent."""

import asyncio
import json

from tests.kubernetes.acting.standin import StandInApi

PLURALS = {"Node": "nodes", "Pod": "pods", "PriorityClass": "", "Namespace": ""}


class ServedApi:
    """An API server in memory.

    Attributes:
        api: What it holds.
        asked: Every request but those about the Lease, in their order.
    """

    def __init__(self):
        self.api = StandInApi()
        self.asked = []
        self._changed = asyncio.Event()

    async def page(self, kind, after):
        """Return all objects of a kind."""
        del after
        items = list(self.api.objects[kind.name].values())
        page = {"metadata": {"resourceVersion": str(self.api.version)}, "items": items}
        return json.dumps(page).encode()

    async def watch(self, kind, version):
        """Yield what has changed since, for ever."""
        told = 0
        while True:
            while told < len(self.api.changes):
                name, document, gone = self.api.changes[told]
                told += 1
                if name == kind.name and int(document["metadata"]["resourceVersion"]) > int(
                    version
                ):
                    line = {"type": "DELETED" if gone else "MODIFIED", "object": document}
                    yield json.dumps(line).encode()
            await self._changed.wait()

    async def send(self, request):
        """Answer a request, and let the kubelets and the watches know."""
        answer = self.api.answer(request)
        if "/leases" not in request.path:
            self.asked.append(request)
        self.api.kubelets()
        self.stir()
        return answer

    def stir(self):
        """Let the watches look for what has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

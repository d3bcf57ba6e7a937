"""Asks an API server what the tests want of it, as whoever a kubeconfig names."""

from pathlib import Path
from typing import Any

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig


class Api:
    """An API server; raises on refusals unless told otherwise."""

    def __init__(self, kubeconfig: Path) -> None:
        """Connect when something is asked."""
        chosen = KubeConfig.from_file(kubeconfig).get()
        assert chosen is not None
        self._client = Client(chosen, ConnectionParams(timeout=httpx2.Timeout(30)))

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """Return the answer, whatever it is."""
        return self._client.request(method, path, json=body, headers=headers or None)

    def get(self, path: str) -> dict[str, Any]:
        """Return an object or a list."""
        return self.ask("GET", path).raise_for_status().json()

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object in a collection and return it."""
        return self.ask("POST", path, body).raise_for_status().json()

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merge a patch into an object (or its subresource) and return it."""
        kind = {"Content-Type": "application/merge-patch+json"}
        return self.ask("PATCH", path, body, **kind).raise_for_status().json()

    def delete(self, path: str, body: Any = None) -> None:
        """Delete an object, or what a collection holds."""
        self.ask("DELETE", path, body).raise_for_status()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()


class GivenCluster:
    """A cluster that was there before the tests, with KWOK in it.

    Attributes:
        kubeconfig: Names an administrator of it.
        agent: The one by which it is recorded: the same.
        api: Asks its API server.
    """

    def __init__(self, kubeconfig: Path) -> None:
        """Use it; nothing of it is started or stopped."""
        self.kubeconfig = self.agent = kubeconfig
        self.api = Api(kubeconfig)

    def stop(self) -> None:
        """Let go of the connections."""
        self.api.close()

"""Talks to a Kubernetes API server: configuration and authentication are lightkube's, the reading is ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError
from msgspec import Struct

from evsched.agents.kubernetes.acting.actions import ApiRequest
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer
from evsched.agents.kubernetes.objects import ObjectKind
from evsched.agents.kubernetes.reflecting import Gone, Unavailable

__all__ = ["ApiServer", "ConfigError", "connected"]

PAGE = 500
"""Objects of a page of a list."""

WATCH_S = 290
"""How long the server keeps a watch open; it ends it with a bookmark."""

SILENT_S = 90.0
"""Bookmarks come about every minute; a watch that is silent for longer leads nowhere."""

_NOT_FOUND, _GONE, _TIMEOUT = 404, 410, 504
_ANSWER_S = 60.0
_CONNECT_S = 10.0
_TOO_LARGE = b"Too large resource version"


class _GroupVersion(Struct):
    version: str


class _Group(Struct):
    versions: tuple[_GroupVersion, ...] = ()


class ApiServer:
    """A source of objects: an API server."""

    def __init__(self, client: httpx2.AsyncClient, silent_s: float = SILENT_S) -> None:
        """Use a client that knows address and credentials.

        Args:
            client: Closed by whoever made it.
            silent_s: After how many seconds without a word a watch is given up.
        """
        self._client = client
        self._silent_s = silent_s

    async def page(self, kind: ObjectKind, after: str) -> bytes:
        """Return a page of a list; see `evsched.agents.kubernetes.reflecting.ObjectSource`."""
        path, params = _parts(kind)
        params |= {"limit": str(PAGE)} | ({"continue": after} if after else {})
        try:
            answer = await self._client.get(path, params=params)
        except httpx2.HTTPError as error:
            raise _broken(error) from error
        content: bytes = answer.content
        _check(answer, content)
        return content

    async def versions(self, group: str) -> tuple[str, ...]:
        """Return the versions that the server serves of an API group, the one it prefers first; none: it has no such group.

        Raises:
            Unavailable: Anything else than an answer.
        """
        try:
            answer = await self._client.get(f"/apis/{group}")
        except httpx2.HTTPError as error:
            raise _broken(error) from error
        if answer.status_code == _NOT_FOUND:
            return ()
        _check(answer, answer.content)
        return tuple(
            one.version for one in msgspec.json.decode(answer.content, type=_Group).versions
        )

    async def send(self, request: ApiRequest) -> ApiAnswer:
        """Return the answer to a request; see `evsched.agents.kubernetes.acting.carrying.Cluster`."""
        body = b"" if request.body is None else msgspec.json.encode(request.body)
        headers = {"Content-Type": request.content} if body else {}
        try:
            answer = await self._client.request(
                request.method, request.path, content=body or None, headers=headers
            )
        except httpx2.HTTPError:
            return ApiAnswer(0)
        asked = answer.headers.get("Retry-After", "")
        return ApiAnswer(
            answer.status_code, answer.content, float(asked) if asked.isdigit() else None
        )

    async def watch(self, kind: ObjectKind, version: str) -> AsyncIterator[bytes]:
        """Yield the lines of a watch; see `evsched.agents.kubernetes.reflecting.ObjectSource`."""
        path, params = _parts(kind)
        params |= {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        patience = httpx2.Timeout(_CONNECT_S, read=self._silent_s)
        try:
            async with self._client.stream("GET", path, params=params, timeout=patience) as answer:
                if not answer.is_success:
                    _check(answer, await answer.aread())
                rest = b""
                async for data in answer.aiter_bytes():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in filter(None, lines):
                        yield line
        except httpx2.HTTPError as error:
            raise _broken(error) from error


@asynccontextmanager
async def connected(
    kubeconfig: Path | None, context: str | None = None, silent_s: float = SILENT_S
) -> AsyncIterator[ApiServer]:
    """Connect to the API server that a kubeconfig names.

    Args:
        kubeconfig: The file; None: the service account of the pod that this runs in, else the file
            that ``KUBECONFIG`` names, else ``~/.kube/config``.
        context: Of the file; None: its current one.
        silent_s: After how many seconds without a word a watch is given up.

    Raises:
        ConfigError: There is no such file or context.
    """
    config = KubeConfig.from_env() if kubeconfig is None else KubeConfig.from_file(kubeconfig)
    chosen = config.get(context)
    # None comes only of a default of None, and none is given.
    assert chosen is not None
    params = ConnectionParams(timeout=httpx2.Timeout(_ANSWER_S, connect=_CONNECT_S))
    async with AsyncClient(chosen, params) as client:
        yield ApiServer(client, silent_s)


def _parts(kind: ObjectKind) -> tuple[str, dict[str, str]]:
    """Return the path of a kind's collection, and the parameters that choose among its objects."""
    path, _, query = kind.path.partition("?")
    return path, dict(pair.split("=", 1) for pair in query.split("&") if pair)


def _check(answer: httpx2.Response, content: bytes) -> None:
    """Raise what an answer other than success means."""
    if answer.is_success:
        return
    said = f"{answer.status_code} {content[:200].decode(errors='replace')}"
    # An etcd that was restored from a backup counts on from an earlier version than was seen.
    restored = answer.status_code == _TIMEOUT and _TOO_LARGE in content
    if answer.status_code == _GONE or restored:
        raise Gone(said)
    asked = answer.headers.get("Retry-After", "")
    raise Unavailable(said, float(asked) if asked.isdigit() else None)


def _broken(error: httpx2.HTTPError) -> Unavailable:
    return Unavailable(f"{type(error).__name__}: {error}".rstrip(": "))

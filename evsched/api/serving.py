"""The server: uvicorn around the application, started and stopped by whoever calls it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from evsched.api.app import Served, application
from evsched.api.identity import PEER, TlsSettings

LAST_PORT = 65_535

WAITING = 128
"""Connections that may wait to be accepted."""

GRACE_S = 3
"""How long requests under way may take when the server stops."""


class Listen(NamedTuple):
    """Where a server listens.

    Attributes:
        host: Name or number, without the brackets of IPv6.
        port: 0: any that is free.
    """

    host: str
    port: int

    @property
    def shown(self) -> str:
        """As it stands in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ListenInvalid(ValueError):
    """What was typed is no place to listen at; the message says what was expected."""


def parse_listen(text: str) -> Listen:
    """Return the place that was typed: ``127.0.0.1:8080``, ``[::1]:8080``, ``:8080``; raise `ListenInvalid`."""
    host, mark, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not mark or not port.isascii() or not port.isdigit() or int(port) > LAST_PORT:
        raise ListenInvalid(f"{text}: expected HOST:PORT, for example 127.0.0.1:8080")
    return Listen(host or "127.0.0.1", int(port))


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever started it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


class HttpServer:
    """Serves one application until it is stopped."""

    def __init__(self, served: Served, listen: Listen) -> None:
        """Prepare; `run` does everything.

        Raises:
            OSError: Nothing can listen there.
        """
        self._socket = _bound(listen)
        port: int = self._socket.getsockname()[1]
        self.listen = Listen(listen.host, port)
        settings = served.identities.settings
        tls = _tls(settings.tls if settings is not None else None)
        config = uvicorn.Config(
            application(served),
            access_log=False,
            log_config=None,
            server_header=False,
            # Whose word counts as that of a proxy, `evsched.api.identity` says.
            proxy_headers=False,
            **tls,
            lifespan="on",
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = _Server(config)
        self._served = served

    def stop(self) -> None:
        """Answer what is under way, and end; called from the loop of the server."""
        self._served.past.tail.stop()
        self._server.should_exit = True

    async def run(self, told: Callable[[], object]) -> None:
        """Serve until it is stopped; ``told`` is called first."""
        told()
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()


def _bound(listen: Listen) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(
        listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        # From here on connections wait, so that the address may be told before the first answer.
        found.listen(WAITING)
    except OSError:
        found.close()
        raise
    return found


def _tls(settings: TlsSettings | None) -> dict[str, Any]:
    """Return the options of the server for TLS, with the certificates of clients where they are asked for."""
    if settings is None:
        return {}
    found: dict[str, Any] = {"ssl_certfile": settings.certificate, "ssl_keyfile": settings.key}
    if settings.clients is not None:
        # Whoever has none may show a token instead.
        found |= {"ssl_ca_certs": settings.clients, "ssl_cert_reqs": ssl.CERT_OPTIONAL}
        found["http"] = _WithPeer
    return found


class _WithPeer(H11Protocol):
    """A connection that says in the scope of its requests whose certificate was shown."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take note of the certificate, which TLS has verified."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        names = [
            value
            for part in (certificate or {}).get("subject", ())
            for name, value in part
            if name == "commonName"
        ]
        app, peer = self.app, names[-1] if names else ""

        async def named(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, PEER: peer}, receive, send)

        self.app = named

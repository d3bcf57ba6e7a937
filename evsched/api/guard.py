"""What stands before every request: the names under which this server answers, and the headers of every answer."""

from __future__ import annotations

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evsched.api.problems import ApiProblem, ProblemPlace
from evsched.api.responses import problem_response

POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer: nothing from elsewhere runs in the page, and no other page reads this one."""

HEALTH = ("/livez", "/readyz")

SAFE = ("GET", "HEAD", "OPTIONS")

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Hosts(Struct, frozen=True, kw_only=True):
    """Names under which this server answers, without a port.

    A page of a stranger may have its own name lead to 127.0.0.1 (DNS rebinding), and would read what
    is served there to whoever sits at this machine. Its requests carry that name.

    Attributes:
        names: In small letters; ``*``: any.
    """

    names: tuple[str, ...] = LOOPBACK

    def take(self, host: str) -> bool:
        """Tell whether a ``Host`` header names this server."""
        name = host.lower()
        if not name.endswith("]"):
            head, mark, port = name.rpartition(":")
            name = head if mark and port.isdigit() else name
        return "*" in self.names or name in self.names


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        """Stand before ``app``."""
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, and give its answer the headers of every answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                # A policy that an answer has already is that of files which are not ours.
                set_already = {name for name, _ in given}
                message["headers"] = given + [one for one in HEADERS if one[0] not in set_already]
            await send(message)

        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        # A probe calls this server by its address, and learns nothing but that it answers.
        named = scope["path"] in HEALTH or self._hosts.take(host.decode("latin-1"))
        if not named:
            problem = ApiProblem(
                "host-refused",
                "host: names another server; --host NAME lets this one answer under it",
                ProblemPlace(where="header", name="host"),
            )
            await problem_response(problem)(scope, receive, guarded)
            return
        if scope["method"] not in SAFE and _foreign(scope["headers"]):
            problem = ApiProblem(
                "cross-site",
                "origin: a page of another site may not do this",
                ProblemPlace(where="header", name="origin"),
            )
            await problem_response(problem)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def _foreign(headers: list[tuple[bytes, bytes]]) -> bool:
    """Tell whether a request was made by a page of another site; a browser says so, and a program has no page."""
    found = dict(headers)
    if found.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
        return True
    origin = found.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != found.get(b"host")

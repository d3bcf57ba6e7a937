"""`evsched run --listen`: an `evsched serve` of its own process beside the scheduler.

A process of its own, so that no question takes anything of the leader's time. It is started again when
it ends by itself, and ends with the scheduler however that ends: it listens to a pipe of which the
scheduler holds the other end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from evsched.cli.logs import Reach

AGAIN_S = 3.0
"""After how long a server that ended by itself is started again."""

STOP_S = 10.0
"""How long it may take to end."""

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def serving_beside(
    where: Reach, listen: str | None, access: Path | None, log_format: str
) -> AsyncIterator[None]:
    """Have a server run as long as the block does; ``listen`` None: none does."""
    if listen is None:
        yield
        return
    options = ["--listen", listen, "--log-format", log_format, "--with-parent", *_reached(where)]
    options += [] if access is None else ["--access", str(access)]
    keeping = asyncio.create_task(_keep(options))
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


def _reached(where: Reach) -> list[str]:
    """Return the options by which the server reaches the same log; secrets are in the environment."""
    given = {
        "--log": where.url,
        "--kafka-protocol": where.protocol,
        "--kafka-mechanism": where.mechanism,
        "--kafka-username": where.username,
        "--kafka-ca-file": where.ca_file,
        "--kafka-cert-file": where.cert_file,
        "--kafka-key-file": where.key_file,
    }
    return [part for name, value in given.items() if value for part in (name, value)]


async def _keep(options: Sequence[str]) -> None:
    """Run a server, and start it again when it ends by itself, until cancelled."""
    while True:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evsched", "serve", *options, stdin=asyncio.subprocess.PIPE
        )
        try:
            code = await process.wait()
            _log.warning("server ended, starting it again", code=code, again_in_s=AGAIN_S)
        except asyncio.CancelledError:
            await _end(process)
            raise
        await asyncio.sleep(AGAIN_S)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a server in order, or else at once."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

"""`evsched serve`: the API and the web page."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EADDRINUSE
from hashlib import sha256
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from events.streams import open_log, open_streams
from events.streams.export import SUFFIXES
from events.streams.private_files import plain_name
from evsched.cli.answers import MISUSE, CommandError, PortTaken, say
from evsched.cli.interrupts import heeding
from evsched.cli.logs import HERE, Where, data_directory, log_of
from evsched.cli.past import SnapshotFolder, snapshot_store
from evsched.cli.project import Db
from evsched.service.logs import configure
from evsched.service.rebuilding import settle
from evsched.snapshots.subjects import SubjectIndex

if TYPE_CHECKING:
    from evsched.api.app import Served
    from evsched.api.identity import Identities
    from evsched.api.keeping import Beside
    from evsched.api.serving import Listen
    from evsched.api.tail import Tail

WEB = "evsched[web]"
"""The extra that brings what this command needs."""

LOOK_S = 60.0
"""How often is looked whether the log is read, beside when something changes."""


async def serve(  # noqa: PLR0913 - the options of a command
    *,
    where: Where = HERE,
    listen: str = "127.0.0.1:8080",
    host: Annotated[list[str] | None, Parameter(name="--host", negative=())] = None,
    access: Path | None = None,
    db: Db = None,
    snapshots: SnapshotFolder = None,
    yunikorn_web: Path | None = None,
    log_format: Literal["console", "json"] = "console",
    with_parent: Annotated[bool, Parameter(negative=(), show=False)] = False,
) -> None:
    """Serve the past and the present of a log over HTTP, and the web page, until Ctrl-C.

    It is a process of its own: it follows the log, keeps a read model and snapshots, and takes
    nothing of the leader's time. Without settings it serves this machine alone.

    **Examples**

    `evsched serve`

    `evsched serve --log kafka://localhost:9092/cluster --listen 127.0.0.1:8080`

    Args:
        where: Which log.
        listen: HOST:PORT; port 0 takes any that is free.
        host: A name under which the server answers, beside localhost and the host it listens at;
            may be repeated.
        access: File of settings that say who may ask for what (docs/api.md); with them the server
            may be reached from other machines.
        db: The read model; made when it is missing. By default one of this server's own, beside
            that of `evsched project`.
        snapshots: Folder of snapshots.
        yunikorn_web: Folder with the static files of YuniKorn's web interface, to be served at
            /yunikorn/; they are not part of evsched.
        log_format: How this process tells what it does, on the standard error.
        with_parent: Stop when the standard input is closed: whoever started this is gone.
    """
    try:
        from evsched.api.serving import HttpServer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name}: is not installed, expected with `pip install '{WEB}'`"
        ) from error
    place, identities = _listen(listen), _identities(access)
    if identities.open and not _is_loopback(place.host):
        raise CommandError(
            f"--listen {listen}: is reached from other machines, expected 127.0.0.1, ::1 or localhost, or --access",
            MISUSE,
        )
    configure(log_format)
    async with log_of(where):
        pass  # a log that cannot be reached is said here, and not by every answer
    if yunikorn_web is not None and not (yunikorn_web / "index.html").is_file():
        raise CommandError(f"--yunikorn-web {yunikorn_web}: holds no index.html", MISUSE)
    served = _served(where, (place.host, *(host or ())), identities, db, snapshots)
    served.yunikorn_web = yunikorn_web
    try:
        server = HttpServer(served, place)
    except OSError as error:
        kind = PortTaken if error.errno == EADDRINUSE else CommandError
        raise kind(f"--listen {listen}: {error.strerror or error}") from error
    settling = asyncio.create_task(_settled(served.past.tail))
    try:
        with heeding(server.stop), _until_closed(server.stop, wanted=with_parent):
            await server.run(lambda: say(f"http://{server.listen.shown}/ serves {where.url}"))
    finally:
        settling.cancel()


async def _settled(tail: Tail) -> None:
    """Once the log is read, keep the garbage collector from looking through its state again and again."""
    while not tail.ready:
        await tail.changed(LOOK_S)
    settle()


@contextmanager
def _until_closed(stop: Callable[[], object], *, wanted: bool) -> Iterator[None]:
    """Call something when the standard input is closed, where that is wanted."""
    if not wanted:
        yield
        return
    loop, pipe = asyncio.get_running_loop(), sys.stdin.fileno()

    def heard() -> None:
        if not os.read(pipe, 1024):
            loop.remove_reader(pipe)
            stop()

    loop.add_reader(pipe, heard)
    try:
        yield
    finally:
        loop.remove_reader(pipe)


def _listen(text: str) -> Listen:
    """Return where to listen."""
    from evsched.api.serving import ListenInvalid, parse_listen  # noqa: PLC0415 - an extra

    try:
        return parse_listen(text)
    except ListenInvalid as error:
        raise CommandError(f"--listen {error}", MISUSE) from error


def _identities(path: Path | None) -> Identities:
    """Return how a request shows whose it is; without settings anybody may ask."""
    from evsched.api.identity import Identities, SettingsInvalid, read_settings  # noqa: PLC0415

    try:
        return Identities() if path is None else read_settings(path)
    except SettingsInvalid as error:
        raise CommandError(f"--access {error}", MISUSE) from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _served(
    where: Where,
    hosts: tuple[str, ...],
    identities: Identities,
    db: Path | None,
    snapshots: Path | None,
) -> Served:
    """Return what the server works on."""
    from evsched.api.app import Served  # noqa: PLC0415 - an extra
    from evsched.api.asking import Asking  # noqa: PLC0415
    from evsched.api.guard import LOOPBACK, Hosts  # noqa: PLC0415
    from evsched.api.jobs import Jobs  # noqa: PLC0415
    from evsched.api.keeping import Beside  # noqa: PLC0415
    from evsched.api.past import LogPlaces  # noqa: PLC0415
    from evsched.api.seen import SeenPast  # noqa: PLC0415

    url, security = where.url, where.security

    def beside(log_id: str) -> Beside:
        store = snapshot_store(snapshots, log_id)
        # A file is read from its beginning whatever is wanted of it: an index would not help.
        seeks = store is not None and not url.endswith(SUFFIXES)
        subjects = SubjectIndex(store.folder, say) if store is not None and seeks else None
        return Beside(db or _model_of(log_id), store, subjects)

    places = LogPlaces(open_log=lambda: open_log(url, where.partition, security), beside=beside)
    names = (*LOOPBACK, *hosts, *(f"[{host}]" for host in hosts))
    return Served(
        past=SeenPast(places, identities.settings),
        identities=identities,
        asking=Asking(places.open_log, beside, "evsched-questions"),
        jobs=Jobs(lambda: Asking(places.open_log, beside, "evsched-job")),
        open_streams=None
        if url.endswith(SUFFIXES)
        else lambda: open_streams(url, where.partition, security),
        hosts=Hosts(names=tuple(name.lower() for name in names)),
        partition=where.partition,
        release=version("evsched"),
    )


def _model_of(log_id: str) -> Path:
    """Return where the read model of a server is kept: apart from that of `evsched project`, so that each is written by one."""
    name = plain_name(log_id) or sha256(log_id.encode()).hexdigest()
    return data_directory() / "projections" / f"{name}-serve.db"

"""The folder of an export: it grows beside its place and is moved there when it is complete.

What lies there already is exchanged only where it is an export too, and nothing else lies in it: a
manifest names every file, and a file that it does not name is not ours to remove.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from events.streams.private_files import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"
EXPORT_VERSION = 1


class ExportRefused(Exception):
    """Nothing was written; the message says what lies in the way."""


class ExportManifest(Struct, frozen=True, kw_only=True):
    """What an export says of itself.

    Attributes:
        evsched_export: Version of this form.
        format: csv or parquet.
        log_id: Of the log.
        seq: Of the last event in it.
        time: Of that event's step, milliseconds.
        frame: Number of the frame up to which the log was read.
        head: Hash of that frame, which nothing but this past of the log has.
        schema_version: Of the read model.
        tables: Rows by table or view, ``events`` among them.
        files: Every file but this one, by its path in the folder.
    """

    evsched_export: int = EXPORT_VERSION
    format: str
    log_id: str
    seq: int
    time: int
    frame: int
    head: str
    schema_version: int
    tables: dict[str, int] = {}
    files: tuple[str, ...] = ()


def check_place(folder: Path) -> None:
    """Raise `ExportRefused` unless nothing lies at ``folder``, an empty folder, or an export with nothing else in it."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        message = f"{folder}: is no folder, expected an export, an empty folder or nothing"
        raise ExportRefused(message)
    found = files_in(folder)
    if found and MANIFEST not in found:
        message = f"{folder}: holds {found[0]} and no {MANIFEST}, expected an export, an empty folder or nothing"
        raise ExportRefused(message)
    known = {MANIFEST, *read_manifest(folder).files} if found else set()
    foreign = [name for name in found if name not in known]
    if foreign:
        message = f"{folder}: holds {foreign[0]}, which no export wrote; move it away, or name another folder"
        raise ExportRefused(message)


def files_in(folder: Path) -> list[str]:
    """Return the paths of everything in a folder that is no folder itself, in order."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


def read_manifest(folder: Path) -> ExportManifest:
    """Return what the export in a folder says of itself; raise `ExportRefused` when it cannot be read."""
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=ExportManifest)
    except (OSError, msgspec.MsgspecError) as error:
        message = f"{folder / MANIFEST}: is no manifest of an export: {error}"
        raise ExportRefused(message) from error
    if found.evsched_export != EXPORT_VERSION:
        message = (
            f"{folder / MANIFEST}: found version {found.evsched_export}, expected {EXPORT_VERSION}"
        )
        raise ExportRefused(message)
    return found


@contextmanager
def draft_of(folder: Path) -> Iterator[Path]:
    """Make a folder beside ``folder`` that takes its place at the end; after an error it is removed.

    Raises:
        ExportRefused: As `check_place`, at the beginning or at the end.
        OSError: It cannot be made or moved.
    """
    place = folder.resolve()  # a link is followed
    check_place(place)
    make_folder(place.parent)
    made = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        yield made
        _settle(made)
        check_place(place)
        _exchange(made, place)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def write_manifest(folder: Path, manifest: ExportManifest) -> ExportManifest:
    """Write a manifest beside what it describes; return it with the names of the files there."""
    found = replace(manifest, files=tuple(files_in(folder)))
    text = msgspec.json.format(msgspec.json.encode(found), indent=2)
    (folder / MANIFEST).write_bytes(text + b"\n")
    return found


def _settle(folder: Path) -> None:
    """Wait until everything in a folder is on the disk: a name must not outlive a power cut that its contents do not."""
    for path in [folder, *folder.rglob("*")]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange(made: Path, place: Path) -> None:
    """Give the new folder its name; what had it before is removed afterwards, or gets it back."""
    old = made.with_name(f"{made.name}.old")
    there = place.exists()
    if there:
        place.rename(old)
    try:
        made.rename(place)
    except BaseException:
        if there:
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)

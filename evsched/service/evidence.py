"""Where a leader leaves the bundles of its failures: a few files for the log, for whoever is to mend them."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from events.chain import Head
from events.streams import private_files
from evsched.core.engine import Engine
from evsched.service.containment import Evidence
from replays.checking.bundle import bundle

KEPT = 10
"""Most bundles of one log; the first ones are kept, as later failures often follow from them."""

_log = structlog.get_logger(__name__)


def keep(folder: Path, head: Head, engine: Engine, evidence: Evidence) -> Path | None:
    """Write a bundle; return its path, None when there are enough already or it cannot be written.

    Args:
        folder: Of the snapshots; the bundles are in ``faults`` there.
        head: Of the log, with the state of the engine.
        engine: At the state before the step that raised.
        evidence: Of that step.
    """
    name = private_files.plain_name(head.log_id)
    if name is None:
        return None
    place = folder / "faults"
    path = place / f"{name}-{head.frame}.json"
    try:
        if len(list(place.glob(f"{name}-*.json"))) >= KEPT:
            return None
        data = bundle(
            engine,
            evidence.fault,
            evidence.proposals,
            time=evidence.time,
            decide=evidence.decide,
            log_id=head.log_id,
            frame=head.frame,
        )
        private_files.make_folder(place)
        with os.fdopen(private_files.create(path), "wb") as file:
            file.write(data)
    except Exception as error:  # noqa: BLE001 - no bundle is worth a leader
        _log.warning("bundle not written", file=str(path), reason=str(error))
        return None
    _log.critical("bundle written", file=str(path))
    return path

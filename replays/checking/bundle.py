"""A step as a file: what the engine was given, so that it raises again elsewhere, or decides the same."""

from __future__ import annotations

import platform
import traceback
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec
import zstandard
from msgspec.structs import replace

from events.frame import encode_event
from events.vocabulary import AnyEvent, Proposal
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.faults import StepFailed
from evsched.snapshots.store import unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 1


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A step: one that raised, or one of a log.

    Attributes:
        release, python: Of the process that made the bundle.
        log_id, frame: Of the log, and its last frame before the step; without names, no id.
        kind, subject, place, reason: As in `StepFailed`; empty for a step that did not raise.
        traceback: As Python tells it; empty when the step was not seen to raise.
        time, decide: As the step was given them.
        state_time: Of the state, milliseconds.
        state: Snapshot of the state before the step, compressed.
        proposals: Those of the step, in order.
        events: What the log holds of the step; none when its leader made the bundle.
    """

    format: int = FORMAT
    release: str
    python: str
    log_id: str
    frame: int
    kind: str
    subject: str
    place: str
    reason: str
    traceback: str
    time: int
    decide: bool
    state_time: int
    state: bytes
    proposals: tuple[Proposal, ...]
    events: tuple[AnyEvent, ...] = ()


class NoBundle(Exception):
    """A file holds no bundle that this release can read."""


def bundle(  # noqa: PLR0913 - what a failure consists of
    engine: Engine,
    fault: StepFailed,
    proposals: Sequence[Proposal],
    *,
    time: int,
    decide: bool,
    log_id: str,
    frame: int,
) -> bytes:
    """Return a failure as the bytes of a file (JSON).

    Args:
        engine: At the state before the step.
        fault: What the step raised.
        proposals: Those of the step.
        time: As the step was given it, milliseconds.
        decide: As the step was given it.
        log_id: Of the log.
        frame: Its last frame before the step.
    """
    found = before(engine, proposals, time=time, decide=decide, log_id=log_id, frame=frame)
    return encode(blamed(found, fault))


def before(
    engine: Engine,
    proposals: Sequence[Proposal],
    *,
    time: int,
    decide: bool,
    log_id: str,
    frame: int,
) -> Bundle:
    """Return a step with the state before it, and without a failure; arguments as of `bundle`."""
    state = engine.state
    return Bundle(
        release=version("evsched"),
        python=platform.python_version(),
        log_id=log_id,
        frame=frame,
        kind="",
        subject="",
        place="",
        reason="",
        traceback="",
        time=time,
        decide=decide,
        state_time=state.time,
        state=zstandard.compress(snapshot.encode(state)),
        proposals=tuple(proposals),
    )


def blamed(found: Bundle, fault: StepFailed) -> Bundle:
    """Return a bundle with what its step raised."""
    return replace(
        found,
        kind=fault.kind,
        subject=fault.subject,
        place=fault.place,
        reason=fault.reason,
        traceback="".join(traceback.format_exception(fault)),
    )


def encode(found: Bundle) -> bytes:
    """Return the bytes of a file (JSON)."""
    return msgspec.json.encode(found)


def read(data: bytes) -> Bundle:
    """Return the bundle in the bytes of a file.

    Raises:
        NoBundle: It is none, or one of another format.
    """
    try:
        found = msgspec.json.decode(data, type=Bundle)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"no bundle of a failure can be read: {error}"
        raise NoBundle(message) from error
    if found.format != FORMAT:
        message = f"bundle: found format {found.format}, expected {FORMAT}"
        raise NoBundle(message)
    return found


def take(found: Bundle) -> StepFailed | tuple[AnyEvent, ...]:
    """Take the step of a bundle again; return what it raises with this release, or its events.

    Raises:
        NoBundle: Its state cannot be read by this release.
    """
    try:
        state = snapshot.decode(unpacked(found.state), found.state_time)
    except Exception as error:  # a forged state may make anything in the core raise
        message = f"bundle: its state cannot be read: {error}"
        raise NoBundle(message) from error
    try:
        return Engine(state).step(found.time, found.proposals, decide=found.decide)
    except StepFailed as fault:
        return fault


def is_reproduced(found: Bundle, outcome: StepFailed | tuple[AnyEvent, ...]) -> bool:
    """Tell whether a step came out as the bundle has it: it raised again, or gave the same events."""
    if found.kind or isinstance(outcome, StepFailed):
        return bool(found.kind) and isinstance(outcome, StepFailed)
    return list(map(encode_event, outcome)) == list(map(encode_event, found.events))

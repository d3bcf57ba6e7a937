"""What an answer of the API means for what was to be done; it is never an exception."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    BindPod,
    DeletePod,
    EvictPod,
    PodAction,
)
from evsched.agents.kubernetes.objects import ApiStruct

_CONFLICT, _NOT_FOUND, _TOO_MANY, _FAULT = 409, 404, 429, 500
_BUDGET = "DisruptionBudget"
_SUCCESS = range(200, 300)

AnswerVerdict = Literal["done", "later", "skip", "refused"]
"""What follows from an answer.

``done``: it is so. ``later``: it is worked out anew after a pause, from what is known by then.
``skip``: it cannot be had, and what comes behind it goes on without. ``refused``: the log has to
know.
"""


class ApiAnswer(Struct, frozen=True):
    """What the API server said.

    Attributes:
        code: Of HTTP; 0: nothing was heard, so what was asked for may or may not have happened.
        body: As it came.
        retry_after_s: How long it asked to be left alone; None: it did not say.
    """

    code: int
    body: bytes = b""
    retry_after_s: float | None = None


class _Cause(ApiStruct, frozen=True):
    reason: str = ""


class _Details(ApiStruct, frozen=True):
    causes: tuple[_Cause, ...] | None = None


class _Status(ApiStruct, frozen=True):
    kind: str = ""
    status: str | msgspec.Raw = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


class Verdicted(Struct, frozen=True):
    """An answer and what follows from it.

    Attributes:
        said: By the API server, for people and the log.
        busy: It asked every client to slow down, not this one request.
    """

    verdict: AnswerVerdict
    said: str = ""
    busy: bool = False


def verdict_of(action: PodAction, answer: ApiAnswer) -> Verdicted:
    """Return what an answer means."""
    status = _status_of(answer)
    code = answer.code
    if status.kind == "Status" and status.status == "Failure" and status.code:
        # The Eviction API says failures of its own kind under a code of success.
        code = status.code
    if code in _SUCCESS:
        return Verdicted("done")
    said = f"{code} {status.message or answer.body[:200].decode(errors='replace')}".strip()
    if code == 0:
        return Verdicted("later", "no answer")
    if isinstance(action, EvictPod | DeletePod):
        return _of_eviction(code, status, said)
    if code == _TOO_MANY or code >= _FAULT:
        return Verdicted("later", said, code == _TOO_MANY)
    if code == _CONFLICT and isinstance(action, AnnounceEviction):
        return Verdicted("done")  # it is there already
    if code == _NOT_FOUND:
        # The pod is gone, and the watch will say so. An Event needs a namespace that is there.
        return Verdicted("skip" if isinstance(action, AnnounceEviction) else "later", said)
    if isinstance(action, BindPod):
        return Verdicted("refused", said)
    return Verdicted("later" if code == _CONFLICT else "skip", said)


def _of_eviction(code: int, status: _Status, said: str) -> Verdicted:
    """Return what an answer to an eviction or deletion means.

    What a budget or anything else refuses is tried again and told to the log; a pod that is gone or
    another one by now the watch will show.
    """
    if code in {_NOT_FOUND, _CONFLICT}:
        return Verdicted("later", said)
    causes = (status.details.causes if status.details else None) or ()
    budget = any(cause.reason == _BUDGET for cause in causes)
    if code == _TOO_MANY and not budget:
        return Verdicted("later", said, busy=True)
    # More than one budget for a pod is told by a Status with 500, which no later attempt mends.
    if code >= _FAULT and "PodDisruptionBudget" not in status.message:
        return Verdicted("later", said)
    return Verdicted("refused", said)


def _status_of(answer: ApiAnswer) -> _Status:
    if answer.code in _SUCCESS and b'"Failure"' not in answer.body:
        return _Status()
    try:
        return _STATUS.decode(answer.body)
    except msgspec.MsgspecError:
        return _Status()

"""Tasks as the cluster has them, whatever kind of object asks for their resources: a pod, or a Workload of Kueue."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from events.vocabulary import ApplicationSubmitted, AskSubmitted, PodSet

Stage = Literal["gated", "waiting", "bound", "over"]


class Leaving(Struct, frozen=True, kw_only=True):
    """That a task is being evicted, as a condition of its object says.

    Attributes:
        scheduler: Who evicts it; empty: unknown.
        preemptor: The task that it makes room for, as the log names it; empty: unknown.
        at: When, milliseconds since the epoch; None: unknown.
    """

    reason: str
    message: str
    scheduler: str = ""
    preemptor: str = ""
    at: int | None


class SeenTask(Struct, frozen=True, kw_only=True):
    """A task as the cluster has it.

    Attributes:
        task: Its name in the log.
        uid: Of its object.
        version: The resourceVersion of the object.
        stage: ``gated`` asks for nothing yet, or no longer; ``over`` has ended, or is gone.
        ask: What the log is told when it begins to wait.
        application: What the log is told first when it does not know the application; None: the
            task needs none.
        scheduler: Who binds it.
        node: Where it runs; empty: nowhere yet, or admission is by quota alone.
        podsets: What it was admitted with, where admission is by quota alone.
        leaving: None: nobody evicts it.
        ended: Why it no longer runs, in the words of AllocationReleased.
        bound_at: When it was bound, milliseconds since the epoch; None: unknown.
    """

    task: str
    uid: str
    version: str
    stage: Stage
    ask: AskSubmitted
    application: ApplicationSubmitted | None = None
    scheduler: str
    node: str = ""
    podsets: tuple[PodSet, ...] = ()
    leaving: Leaving | None = None
    ended: str = ""
    bound_at: int | None = None


def milliseconds(moment: datetime | None) -> int | None:
    """Return a moment of the API, which counts whole seconds or microseconds, since the epoch."""
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)

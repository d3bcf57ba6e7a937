"""Long questions: what-if and verify run as jobs, which say how far they are and can be cancelled.

Each job has a room and a log of its own while it runs; so many run at a time, and the others wait.
Jobs belong to this process: a restart forgets them, and asking again costs nothing but time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct

from events.chain import RecordedStep
from events.errors import StreamError, WrittenByNewer
from evsched.api.asking import Asking
from evsched.api.problems import ApiProblem, what_failed
from replays.checking.tried import ConfigurationRefused, NotTried
from replays.history.rebuild import History

AT_A_TIME = 1
WAITING = 8
KEPT = 50
"""Jobs that are remembered when they are over."""

Progress = Callable[[RecordedStep], None]
LongQuestion = Callable[[History, Progress], Awaitable[Any]]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


class JobFacts(Struct, frozen=True, kw_only=True):
    """How a job stands.

    Attributes:
        kind: ``whatif`` or ``verify``.
        seq: Of the last event that was taken; 0: none yet.
        end: Of the log when the job began.
        answer: Of the question, once it is done.
        reason: Why it failed; empty: it did not.
    """

    id: str
    kind: str
    state: JobState
    seq: int
    end: int
    answer: Any = None
    reason: str = ""


class _Cancelled(Exception):
    """Whoever asked does not want to know any more."""


class Job:
    """One long question."""

    def __init__(self, name: str, kind: str, owner: str, question: LongQuestion, end: int) -> None:
        """Prepare; ``owner`` may look at it and cancel it."""
        self.id, self.kind, self.owner, self.end = name, kind, owner, end
        self.question = question
        self.state: JobState = "waiting"
        self.seq = 0
        self.answer: Any = None
        self.reason = ""
        self.stop = False

    def facts(self) -> JobFacts:
        """Return how it stands."""
        return JobFacts(
            id=self.id,
            kind=self.kind,
            state=self.state,
            seq=self.seq,
            end=self.end,
            answer=self.answer,
            reason=self.reason,
        )

    def progress(self, step: RecordedStep) -> None:
        """Note how far it is; called in the job's own thread, which ends here when it was cancelled."""
        self.seq = step.head.next_seq - 1
        if self.stop:
            raise _Cancelled


class Jobs:
    """All jobs of this process."""

    def __init__(self, room: Callable[[], Asking]) -> None:
        """Prepare; ``room`` makes what a job works in."""
        self._room = room
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(AT_A_TIME)
        self._count = 0

    def begin(self, kind: str, owner: str, question: LongQuestion, end: int) -> Job:
        """Begin a job as soon as there is room for it; raise `ApiProblem` when too many wait."""
        if sum(one.state in ("waiting", "running") for one in self._jobs.values()) >= WAITING:
            raise ApiProblem("too-many-jobs", f"jobs: {WAITING} wait or run already")
        self._count += 1
        job = Job(f"{kind}-{self._count}", kind, owner, question, end)
        self._jobs[job.id] = job
        over = [one.id for one in self._jobs.values() if one.state not in ("waiting", "running")]
        for name in over[: max(0, len(over) - KEPT)]:
            del self._jobs[name]
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def get(self, name: str) -> Job | None:
        """Return a job; None: there is none of this name, or it was forgotten."""
        return self._jobs.get(name)

    def cancel(self, job: Job) -> None:
        """Stop a job soon; one that is over stays as it is."""
        job.stop = True
        if job.state == "waiting":
            job.state = "cancelled"

    async def close(self) -> None:
        """Stop all of them."""
        for job in self._jobs.values():
            self.cancel(job)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, job: Job) -> None:
        async with self._turn:
            if job.stop:
                return
            job.state = "running"
            room = self._room()
            room.open()
            try:
                job.answer = await room.ask(lambda history: job.question(history, job.progress))
                job.state = "done"
            except _Cancelled:
                job.state = "cancelled"
            except (StreamError, WrittenByNewer, ConfigurationRefused, NotTried) as error:
                job.state, job.reason = "failed", what_failed(error)
            except Exception as error:  # noqa: BLE001 - whoever asked is told, and the server goes on
                job.state, job.reason = "failed", f"a fault of evsched: {type(error).__name__}"
            finally:
                await room.close()

"""What must be true of every log, whatever happened to those who wrote it."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from events.chain import ChainReader, RecordedStep
from events.streams.protocols import EventLog, Inbox, Streams
from events.streams.reading import read_steps
from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    InputRejected,
    LeaderStarted,
    QuotaPreemptionCancelled,
    QuotaPreemptionDecided,
    QuotaPreemptionScheduled,
    QuotaPreemptionUnhelpful,
    RulesAdopted,
)
from evsched.core.engine import Engine
from replays.checking.verify import verify
from replays.history.steps import is_proposed, proposals_of


class History:
    """A log that was read to its end.

    Attributes:
        steps: Those that count.
        events: All events of them.
        hashes: Of every frame that ended a step.
        digest: Of the state in the end.
    """

    def __init__(self, steps: list[RecordedStep]) -> None:
        self.steps = steps
        self.events = [event for step in steps for event in step.events]
        self.hashes = {step.head.hash for step in steps}
        engine = Engine()
        for step in steps:
            for event in step.events:
                engine.apply(event, step.time)
        self.engine = engine
        self.digest = engine.state.digest()

    @classmethod
    async def of(cls, log: EventLog) -> "History":
        """Read a log."""
        reader = ChainReader()
        return cls([step async for batch in read_steps(log, reader) for step in batch])

    def only(self, *kinds: type) -> list:
        """Return the events of these types."""
        return [event for event in self.events if isinstance(event, kinds)]


async def check(streams: Streams, acknowledged: Iterable[str] = ()) -> History:
    """Read a log and hold everything against it that must be true; return what was read.

    Args:
        streams: Log and inbox of a cluster partition.
        acknowledged: Hashes of the frames that some leader believed to be in the log.
    """
    history = await History.of(streams.log)
    lost = [one for one in acknowledged if one not in history.hashes]
    assert not lost, f"{len(lost)} acknowledged steps are not in the log"
    await _each_proposal_once(history, streams.inbox)
    _each_task_runs_once(history)
    _each_timer_once(history)
    difference = verify(Engine(), history.steps)
    assert difference is None, f"deciding again gives something else: {difference}"
    assert [event.term for event in history.only(LeaderStarted)] == list(
        range(1, len(history.only(LeaderStarted)) + 1)
    )
    return history


async def _each_proposal_once(history: History, inbox: Inbox) -> None:
    """The steps took the proposals of the inbox, each one once, in their order, and answered every one of them."""
    taken = 0
    for step in history.steps:
        end = step.head.inbox_next
        proposed = []
        while taken < end:
            batch = await inbox.read(taken, limit=min(1000, end - taken))
            proposed += batch
            taken = batch[-1].position + 1
        answered = [
            one.id or (one.input.proposal if one.input is not None else "")
            for one in proposals_of(step)
            # The first leader itself proposes what a new log begins with.
            if not (isinstance(one.input, RulesAdopted) and not one.input.proposal)
        ]
        assert answered == [
            one.id or (one.input.proposal if one.input is not None else "") for one in proposed
        ]
    rejected = [one for one in history.only(InputRejected) if one.code == "duplicate"]
    accepted = Counter(
        one.proposal
        for one in history.events
        if is_proposed(one) and not isinstance(one, InputRejected)
    )
    doubled = [name for name, count in accepted.items() if name and count > 1]
    assert not doubled, f"accepted twice: {doubled[:3]} (and {len(rejected)} were recognised)"


def _each_task_runs_once(history: History) -> None:
    """Nothing is bound that did not wait, nothing is bound twice, nothing ends that does not run."""
    waiting, running = set(), set()
    for event in history.events:
        if isinstance(event, AskSubmitted):
            assert event.ask not in waiting | running
            waiting.add(event.ask)
        elif isinstance(event, AllocationBound):
            waiting.remove(event.ask)
            running.add(event.ask)
        elif isinstance(event, BindingObserved):
            # What runs already may be observed as often as the cluster says it.
            waiting.discard(event.ask)
            running.add(event.ask)
        elif isinstance(event, AskWithdrawn):
            waiting.discard(event.ask)
        elif isinstance(event, AllocationReleased):
            running.remove(event.allocation)
    assert running == set(history.engine.state.allocations)


def _each_timer_once(history: History) -> None:
    """A quota timer fires once, not before its time, unless it is called off or started anew; those left are in the state."""
    armed: dict[str, int] = {}
    for step in history.steps:
        for event in step.events:
            if isinstance(event, QuotaPreemptionScheduled):
                armed[event.queue] = event.at
            elif isinstance(event, QuotaPreemptionCancelled):
                armed.pop(event.queue, None)
            elif (
                isinstance(event, QuotaPreemptionDecided | QuotaPreemptionUnhelpful)
                and event.queue in armed
            ):
                assert armed.pop(event.queue) <= step.time
    timers = history.engine.state.timers.armed.values()
    assert sorted(f"quota:{queue}" for queue in armed) == sorted(
        one.id for one in timers if one.id.startswith("quota:")
    )


def fingerprint(history: History) -> str:
    """Return what two runs of the same simulation must have in common."""
    return hashlib.sha256(
        repr([(step.time, step.decided, step.head.hash) for step in history.steps]).encode()
    ).hexdigest()

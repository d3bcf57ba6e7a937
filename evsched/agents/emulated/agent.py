"""An agent that behaves like a cluster: what is evicted leaves, what runs ends, and what was evicted comes again.

`Agent` is fed with the log and says what the cluster owes the scheduler at a given time. It holds
nothing that the log does not say, so after a restart it reads the log again and owes exactly what
it owed before. A proposal's id is made from what it answers (the allocation, and the ``seq`` of the
event that bound it), so that one which is sent twice, because nobody knew whether the first had
arrived, is recognised as the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from heapq import heapify, heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from events.bounds import MAX_ID
from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AllocationRestored,
    AnyEvent,
    AnyInput,
    AskSubmitted,
    AskWithdrawn,
    BindingObserved,
    EvictionRepeated,
    InputRejected,
    PreemptionDecided,
    PreemptionWithdrawn,
    QuotaPreemptionDecided,
)

AGAIN = "~"
"""Stands between the name of an evicted pod and the number of its successor: ``web-1`` comes again as ``web-1~1``."""

SOURCE = "emulate"
"""How the agent names itself, and how its proposal ids begin."""

_EVICTED = frozenset({"preempted", "node removed"})
"""Reasons of a release after which a replacement is made; what completed or failed stays away."""


class _Task(Struct, gc=False):
    """A task of the cluster: what it asked for, and since when it runs (``bound`` is the ``seq`` of that event)."""

    ask: AskSubmitted
    bound: int = 0


class Agent:
    """What the emulated cluster owes the scheduler.

    Attributes:
        time: Of the last event that was taken, milliseconds since the epoch.
    """

    def __init__(
        self,
        *,
        grace_ms: int,
        lives_ms: Mapping[str, int] | None = None,
        default_life_ms: int | None = None,
        recreate: bool = True,
    ) -> None:
        """Make an agent that has seen nothing.

        Args:
            grace_ms: How long a victim takes to leave after it was told to.
            lives_ms: How long an allocation runs, by the name of its first ask.
            default_life_ms: The same for those that are not named; None: for ever.
            recreate: Whether an evicted pod comes again.
        """
        self.time = 0
        self._grace_ms = grace_ms
        self._lives_ms = lives_ms or {}
        self._default_life_ms = default_life_ms
        self._recreate = recreate
        self._tasks: dict[str, _Task] = {}
        self._owed: dict[str, tuple[int, AnyInput]] = {}
        self._heap: list[tuple[int, str]] = []
        self._handlers: dict[type, Callable[[AnyEvent, int], None]] = {
            AskSubmitted: self._submitted,
            AskWithdrawn: self._withdrawn,
            AllocationBound: self._bound,
            BindingObserved: self._bound,
            AllocationRestored: self._restored,
            AllocationReleased: self._released,
            PreemptionDecided: self._told,
            QuotaPreemptionDecided: self._told,
            EvictionRepeated: self._told_again,
            PreemptionWithdrawn: self._spared,
            InputRejected: self._refused,
        }

    def take(self, event: AnyEvent, time: int) -> None:
        """Take one event of the log, from a frame with this time."""
        self.time = time
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, time)

    def next_due(self) -> int | None:
        """Return when something is owed next, milliseconds since the epoch; None: nothing is."""
        heap = self._heap
        while heap:
            due, key = heap[0]
            if key in self._owed and self._owed[key][0] == due:
                return due
            heappop(heap)
        return None

    def owed(self, now: int) -> list[AnyInput]:
        """Return the proposals that are due by now, by due time and then id. They count as made from here on."""
        proposals = []
        while (due := self.next_due()) is not None and due <= now:
            _, key = heappop(self._heap)
            proposals.append(self._owed.pop(key)[1])
        return proposals

    # ---------------------------------------------------------------------------- what the log says

    def _submitted(self, event: AnyEvent, _: int) -> None:
        assert isinstance(event, AskSubmitted)
        self._drop(f"again:{event.ask}")
        self._tasks[event.ask] = _Task(event)

    def _withdrawn(self, event: AnyEvent, _: int) -> None:
        assert isinstance(event, AskWithdrawn)
        self._tasks.pop(event.ask, None)

    def _bound(self, event: AnyEvent, time: int) -> None:
        assert isinstance(event, AllocationBound | BindingObserved)
        task = self._tasks.get(event.ask)
        if task is not None and not task.bound:  # what runs already may be observed again
            task.bound = event.seq
            self._begin(event.ask, task, time)

    def _restored(self, event: AnyEvent, time: int) -> None:
        assert isinstance(event, AllocationRestored)
        task = self._tasks[event.allocation] = _Task(_ask_of(event), event.seq)
        self._begin(event.allocation, task, time)
        if event.preempting or event.evicted:
            self._leave(event.allocation, time)

    def _begin(self, name: str, task: _Task, time: int) -> None:
        """Note when a task that runs now will end by itself."""
        life = self._lives_ms.get(name.partition(AGAIN)[0], self._default_life_ms)
        if life is not None:
            key = f"end:{name}"
            done = AllocationReleased(
                proposal=_proposal(key, task), allocation=name, reason="completed"
            )
            self._owe(key, time + life, done)

    def _released(self, event: AnyEvent, time: int) -> None:
        assert isinstance(event, AllocationReleased)
        name = event.allocation
        self._drop(f"end:{name}")
        self._drop(f"evict:{name}")
        task = self._tasks.pop(name, None)
        if task is not None and self._recreate and event.reason in _EVICTED:
            again = _successor(name)
            proposal = _proposal(f"again:{again}", task)
            fresh = replace(
                task.ask,
                seq=0,
                cause=0,
                due=None,
                created=None,
                uid=None,
                ask=again,
                proposal=proposal,
            )
            self._owe(f"again:{again}", time, fresh)

    def _told(self, event: AnyEvent, time: int) -> None:
        assert isinstance(event, PreemptionDecided | QuotaPreemptionDecided)
        for victim in event.victims:
            self._leave(victim.id, time)

    def _told_again(self, event: AnyEvent, time: int) -> None:
        assert isinstance(event, EvictionRepeated)
        self._leave(event.allocation, time)

    def _leave(self, name: str, time: int) -> None:
        """Note when a victim will be gone; being asked again does not give it more time."""
        task = self._tasks.get(name)
        key = f"evict:{name}"
        if task is not None and key not in self._owed:
            gone = AllocationReleased(
                proposal=_proposal(key, task), allocation=name, reason="preempted"
            )
            self._owe(key, time + self._grace_ms, gone)

    def _spared(self, event: AnyEvent, _: int) -> None:
        assert isinstance(event, PreemptionWithdrawn)
        for victim in event.victims:
            self._drop(f"evict:{victim}")

    def _refused(self, event: AnyEvent, _: int) -> None:
        """Owe nothing any more that was refused: asking again would be refused again."""
        assert isinstance(event, InputRejected)
        if not event.proposal.startswith(SOURCE):
            return
        match event.input:
            case AllocationReleased(allocation=name, reason="completed"):
                self._drop(f"end:{name}")
            case AllocationReleased(allocation=name):
                self._drop(f"evict:{name}")
            case AskSubmitted(ask=name):
                self._drop(f"again:{name}")
            case _:
                pass

    # --------------------------------------------------------------------------------- what is owed

    def _owe(self, key: str, due: int, proposal: AnyInput) -> None:
        self._owed[key] = (due, proposal)
        heappush(self._heap, (due, key))

    def _drop(self, key: str) -> None:
        self._owed.pop(key, None)
        if len(self._heap) > 2 * len(self._owed) + 1000:
            self._heap = [(due, name) for name, (due, _) in self._owed.items()]
            heapify(self._heap)


def _proposal(key: str, task: _Task) -> str:
    """Return the id of the proposal that answers for a task; a name that is too long for one stands there as its hash."""
    text = f"{SOURCE}:{key}:{task.bound}"
    return (
        text
        if len(text) <= MAX_ID
        else f"{SOURCE}:{blake2b(text.encode(), digest_size=16).hexdigest()}"
    )


def _successor(name: str) -> str:
    """Return the name under which an evicted pod comes again."""
    base, _, number = name.partition(AGAIN)
    return (
        f"{base}{AGAIN}{int(number or '0') + 1}"
        if not number or number.isdigit()
        else f"{name}{AGAIN}1"
    )


def _ask_of(event: AllocationRestored) -> AskSubmitted:
    """Return the ask that would lead to an allocation that was found running."""
    return AskSubmitted(
        ask=event.allocation,
        application=event.application,
        queue=event.queue,
        user=event.user,
        groups=event.groups,
        resources=event.resources,
        priority=event.priority,
        allow_preemption=event.allow_preemption,
        originator=event.originator,
        required_node=event.required_node,
        podsets=event.podsets,
        flavors=event.flavors,
    )

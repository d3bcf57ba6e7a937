"""What is to be done in the cluster, one action a pod at a time; without any I/O or clock.

The actor is told what the log says and what the watch shows, gives out what is to be done, and is
told what came of it. It remembers only what spares requests. Evictions, bindings and what is freed
go before what is written on pods that wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Literal

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from events.vocabulary import AnyEvent, EvictionRepeated
from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    BindPod,
    LookAtPod,
    PodAction,
    SparePod,
    TellWaiting,
)
from evsched.agents.kubernetes.acting.duties import next_duty
from evsched.agents.kubernetes.acting.orders import TaskOrders
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer, Verdicted, verdict_of
from evsched.agents.kubernetes.acting.policy import SCHEDULER, ActingPolicy
from evsched.agents.kubernetes.acting.seen import PodFound, found_pod
from evsched.agents.kubernetes.objects import PodObject

FIRST_PAUSE_MS = 500
MOST_PAUSE_MS = 30_000

TELL_AFTER_MS = 1000
"""How long a pod waits before it is told why: most are bound by then."""

_NOTHING: frozenset[str] = frozenset()
_log = structlog.get_logger(__name__)
_POD = msgspec.json.Decoder(PodObject)


class Refusal(Struct, frozen=True, kw_only=True):
    """That the cluster refuses what the log decided.

    Attributes:
        what: ``binding`` or ``eviction``.
        seq: Of the event that asked for it.
        said: By the API server.
    """

    what: Literal["binding", "eviction"]
    task: str
    uid: str
    seq: int
    said: str


class _Memory(Struct):
    """What is remembered of a task.

    Attributes:
        uid: Of the pod that it is about.
        done: Keys of what has been done.
        fails: How often in a row something did not succeed.
        refusals: How often the API has refused to bind it, which no other success makes good.
        not_before: When it is looked at again; 0: at once.
        look: The binding that was refused and has to be looked into; None: none was.
    """

    uid: str
    done: set[str] = msgspec.field(default_factory=set)
    fails: int = 0
    refusals: int = 0
    not_before: int = 0
    look: LookAtPod | None = None


class ClusterActor:
    """What is to be done. All times are milliseconds of one clock that never goes back."""

    def __init__(self, policy: ActingPolicy, instance: str = SCHEDULER) -> None:
        """Know nothing of the log or the cluster.

        Args:
            policy: How it is done.
            instance: Names this agent in Events.
        """
        self.orders = TaskOrders()
        self._policy = policy
        self._instance = instance
        self._pods: dict[str, PodFound] = {}
        self._memory: dict[str, _Memory] = {}
        self._ready: deque[str] = deque()
        self._is_ready: set[str] = set()
        self._flying: set[str] = set()
        self._later: list[tuple[int, str]] = []
        self._talk: list[tuple[int, str]] = []
        self._has_talk: set[str] = set()
        self._quiet_until = 0

    # --------------------------------------------------------------------------- what it is told

    def take(self, event: AnyEvent) -> None:
        """Take one event of the log."""
        for task in self.orders.take(event):
            if isinstance(event, EvictionRepeated) and task in self._memory:
                # The log asks again, so the pause of the last refusal is over.
                memory = self._memory[task]
                memory.fails = memory.not_before = 0
            self._touch(task)

    def listed(self, pods: Iterable[tuple[str, PodFound]]) -> None:
        """Take all pods that are there, with the names of their tasks; those that are over are not among them."""
        found = dict(pods)
        for task in self._pods.keys() - found.keys():
            self._gone(task)
        for task, pod in found.items():
            self.saw(task, pod)

    def saw(self, task: str, pod: PodFound | None) -> None:
        """Take a pod as it was seen; None: it is gone or over."""
        if pod is None:
            self._gone(task)
            return
        if self._pods.get(task) == pod:
            return
        self._pods[task] = pod
        self._touch(task)

    def _gone(self, task: str) -> None:
        self._pods.pop(task, None)
        self._memory.pop(task, None)
        self.orders.pod_gone(task)

    def _touch(self, task: str) -> None:
        if task in self._pods and task not in self._flying and task not in self._is_ready:
            self._is_ready.add(task)
            self._ready.append(task)

    # --------------------------------------------------------------------------- what it gives out

    def spared(self, action: SparePod, now: int) -> Refusal | None:
        """Take that a victim of another scheduler is left alone; return what the log has to know."""
        self._flying.discard(action.task)
        memory = self._memory.get(action.task)
        if memory is None:
            return None
        # The log is told once for each time that it asks, and nothing else is to be done about it.
        self._pause(action.task, memory, Verdicted("refused"), ApiAnswer(0), now)
        return self._refused_eviction(action.task, action, action.reason)

    def next(self, now: int) -> PodAction | None:
        """Return what is to be done next, which is under way from here on; None: nothing now."""
        if now < self._quiet_until:
            return None
        self._quiet_until = 0
        while self._later and self._later[0][0] <= now:
            self._touch(heappop(self._later)[1])
        while self._ready:
            task = self._ready.popleft()
            self._is_ready.discard(task)
            action = self._duty(task, now, talk=False)
            if action is not None:
                self._flying.add(task)
                return action
        while self._talk and self._talk[0][0] <= now:
            task = heappop(self._talk)[1]
            self._has_talk.discard(task)
            if task not in self._flying:
                action = self._duty(task, now, talk=True)
                if action is not None:
                    self._flying.add(task)
                    return action
        return None

    def next_due(self) -> int | None:
        """Return when something may be to be done that is not now; None: when something changes."""
        if self._quiet_until:
            return self._quiet_until
        return min((heap[0][0] for heap in (self._later, self._talk) if heap), default=None)

    def _duty(self, task: str, now: int, *, talk: bool) -> PodAction | None:
        pod = self._pods.get(task)
        if pod is None:
            return None
        memory = self._memory.get(task)
        if memory is not None and memory.uid != pod.uid:
            memory = None
        if memory is not None and now < memory.not_before:
            return None
        if memory is not None and memory.look is not None:
            return memory.look
        order = self.orders.all.get(task)
        done = _NOTHING if memory is None else memory.done
        action = next_duty(task, order, pod, done, self._policy)
        if isinstance(action, TellWaiting) and not talk:
            if task not in self._has_talk:
                self._has_talk.add(task)
                heappush(self._talk, (now + TELL_AFTER_MS, task))
            return None
        if action is not None and memory is None:
            # Most pods are never acted on, and nothing is remembered of them.
            self._memory[task] = _Memory(pod.uid)
        if isinstance(action, AnnounceEviction):
            leave = order.leave if order is not None else None
            preemptor = self._pods.get(leave.preemptor) if leave is not None else None
            return replace(action, preemptor=preemptor, instance=self._instance)
        return action

    # ------------------------------------------------------------------------- what came of it

    def done(self, action: PodAction, answer: ApiAnswer, now: int) -> Refusal | None:
        """Take what the API said; return what the log has to know."""
        task = action.task
        self._flying.discard(task)
        memory = self._memory.get(task)
        if memory is None or memory.uid != action.pod.uid:
            self._touch(task)
            return None
        found = verdict_of(action, answer)
        refusal = None
        if isinstance(action, LookAtPod):
            refusal = self._looked(action, memory, found, answer)
            if memory.look is not None or refusal is not None:
                self._pause(task, memory, found, answer, now)
        elif found.verdict in {"done", "skip"}:
            memory.done.add(action.key)
            memory.fails = 0
            if found.verdict == "skip":
                _log.warning("passed over", action=action.key, pod=task, said=found.said)
        elif found.verdict == "refused" and isinstance(action, BindPod):
            memory.look = LookAtPod(task=task, pod=action.pod, seq=action.seq, said=found.said)
        else:
            self._pause(task, memory, found, answer, now)
            if found.verdict == "refused":
                refusal = self._refused_eviction(task, action, found.said)
        self._touch(task)
        return refusal

    def _looked(
        self, look: LookAtPod, memory: _Memory, found: Verdicted, answer: ApiAnswer
    ) -> Refusal | None:
        """Decide what a refused binding was: our own that was not heard of, somebody else's, or none."""
        if found.verdict != "done":
            return None
        try:
            pod = found_pod(_POD.decode(answer.body))
        except msgspec.MsgspecError:
            # Something between us and the API server has answered in its place; it is looked again.
            return None
        memory.look = None
        memory.done.add(f"BindPod:{look.seq}")
        if pod.uid != look.pod.uid or pod.node or pod.terminating:
            # The watch tells the recorder so, and that tells the log.
            return None
        memory.refusals += 1
        return Refusal(what="binding", task=look.task, uid=pod.uid, seq=look.seq, said=look.said)

    def _refused_eviction(self, task: str, action: PodAction, said: str) -> Refusal | None:
        """Return a refusal that the log does not know yet; one is told for each time that the log asks."""
        order = self.orders.all.get(task)
        if order is None or order.leave is None or order.leave.refused:
            return None
        asked = order.leave.asked
        return Refusal(what="eviction", task=task, uid=action.pod.uid, seq=asked, said=said)

    def _pause(
        self, task: str, memory: _Memory, found: Verdicted, answer: ApiAnswer, now: int
    ) -> None:
        """Look at a task again after a pause that doubles each time."""
        doublings = min(max(memory.fails, memory.refusals), 16)
        pause = min(FIRST_PAUSE_MS << doublings, MOST_PAUSE_MS)
        if answer.retry_after_s is not None and found.verdict != "refused":
            pause = max(pause, round(answer.retry_after_s * 1000))
            if found.busy:
                self._quiet_until = now + round(answer.retry_after_s * 1000)
        memory.fails += found.verdict != "done"
        memory.not_before = now + pause
        heappush(self._later, (memory.not_before, task))

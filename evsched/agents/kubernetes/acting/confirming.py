"""The recorder of a cluster in which decisions are carried out: what evsched decided is confirmed by what is observed.

It records as the other one does. Beside that it says once of each binding that the log decided that
the cluster has it, tells the log what the cluster refuses, and asks again for pods that still wait
after the log has ended their task.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from events.bounds import MAX_NAME, MAX_TEXT
from events.vocabulary import (
    AllocationReleased,
    AnyEvent,
    AnyInput,
    BindingObserved,
    EvictionRefused,
)
from evsched.agents.kubernetes.acting.actor import Refusal
from evsched.agents.kubernetes.acting.orders import TaskOrder, TaskOrders
from evsched.agents.kubernetes.logged import SOURCE, TASK, Entity, TaskFacts
from evsched.agents.kubernetes.nodes import SeenNode
from evsched.agents.kubernetes.objects import PODS
from evsched.agents.kubernetes.recorder import Recorder
from evsched.agents.kubernetes.steps import end_of, task_steps
from evsched.agents.kubernetes.tasks import SeenTask

_EVICTED = frozenset({"evicted", "deleted"})


class ActingRecorder(Recorder):
    """What is to be proposed where the log decides."""

    def __init__(self, orders: TaskOrders) -> None:
        """Know nothing of the log or the cluster.

        Args:
            orders: What the log wants, which has taken each event before this is told of it.
        """
        super().__init__()
        self._orders = orders
        self._waiting: dict[str, SeenTask] = {}
        self._confirming: dict[str, int] = {}

    def take(self, event: AnyEvent) -> list[AnyInput]:
        """Take one event of the log; return what it makes necessary."""
        steps = super().take(event)
        match event:
            case AllocationReleased(allocation=task):
                self._confirming.pop(task, None)
                if event.cause and task in self._waiting:
                    # The node is gone; the pod never came to it and waits as before.
                    self._marks[Entity(TASK, task)] = event.seq
                    steps += self._lead_to(Entity(TASK, task), self._waiting[task])
            case BindingObserved(ask=task):
                self._confirming.pop(task, None)
            case _:
                pass
        return steps

    def refused(self, refusal: Refusal) -> list[AnyInput]:
        """Return what tells the log of a refusal; nothing where the log wants something else by now."""
        known, order = self.view.task(refusal.task), self._orders.all.get(refusal.task)
        if known is None or order is None or known.uid != refusal.uid:
            return []
        if refusal.what == "eviction":
            proposal = f"{SOURCE}:Eviction:{refusal.seq}:{refusal.uid}"
            self._sent_ids.add(proposal)
            said = refusal.said[:MAX_TEXT]
            return [EvictionRefused(allocation=refusal.task, reason=said, proposal=proposal)]
        seen = self._waiting.get(refusal.task)
        if order.bound != refusal.seq or order.confirmed or seen is None or seen.uid != known.uid:
            return []
        mark = f"{SOURCE}:{PODS.name}:{seen.version}:{seen.uid}"
        reason = f"binding refused: {refusal.said}"[:MAX_NAME]
        return list(self._sent(self._unbound(seen, known, reason), mark, refusal.seq))

    def _unbound(self, seen: SeenTask, known: TaskFacts, reason: str) -> Iterator[AnyInput]:
        """Yield what makes an ask again of a pod that was not bound."""
        yield end_of(seen.task, known, reason)
        yield from task_steps(self.view, seen, is_lost=False)

    def _lead_to(self, subject: Entity, seen: SeenNode | SeenTask) -> Iterator[AnyInput]:
        if isinstance(seen, SeenNode):
            yield from super()._lead_to(subject, seen)
            return
        if seen.stage == "waiting":
            self._waiting[seen.task] = seen
        else:
            self._waiting.pop(seen.task, None)
        order = self._orders.all.get(seen.task)
        if order is not None and order.leave is not None and seen.ended in _EVICTED:
            # Whichever way it went, it is the eviction that the log asked for.
            seen = replace(seen, ended="preempted")
        yield from super()._lead_to(subject, seen)
        mark = f"{SOURCE}:{PODS.name}:{seen.version}:{seen.uid}"
        yield from self._sent(self._confirmed(seen, order), mark, self._marks.get(subject, 0))

    def _gone(self, subject: Entity, version: str) -> Iterator[AnyInput]:
        if subject.kind == TASK:
            self._waiting.pop(subject.name, None)
        yield from super()._gone(subject, version)

    def _confirmed(self, seen: SeenTask, order: TaskOrder | None) -> Iterator[AnyInput]:
        """Yield, once for each decision, that the cluster has a pod where the log bound it."""
        known = self.view.task(seen.task)
        if known is None or order is None or order.confirmed or seen.stage != "bound":
            return
        as_decided = known.runs and known.node == seen.node and known.uid == seen.uid
        if as_decided and not known.observed and self._confirming.get(seen.task) != order.bound:
            self._confirming[seen.task] = order.bound
            yield BindingObserved(
                ask=seen.task, node=seen.node, scheduler=seen.scheduler, at=seen.bound_at
            )

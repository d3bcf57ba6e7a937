"""What to do next about a pod: the difference between what the log wants and what the watch shows, one step of it.

A pure function. It knows nothing of what this agent has done before but the keys of what has
succeeded, which only spare it requests: without them each request would be made again and answered
by the API that it is done.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    BindPod,
    DeletePod,
    EvictPod,
    FreePod,
    MarkVictim,
    PodAction,
    SparePod,
    TellWaiting,
    UnmarkVictim,
)
from evsched.agents.kubernetes.acting.orders import TaskOrder, VictimOrder
from evsched.agents.kubernetes.acting.policy import SAYS, ActingPolicy
from evsched.agents.kubernetes.acting.seen import PodFound, is_ours


def next_duty(
    task: str,
    order: TaskOrder | None,
    pod: PodFound,
    done: AbstractSet[str],
    policy: ActingPolicy,
) -> PodAction | None:
    """Return what is to be done next about a pod; None: nothing now.

    Args:
        task: Its name in the log.
        order: What the log wants of it; None: the log does not know it.
        pod: As the watch shows it.
        done: Keys of what has been done about it.
        policy: How it is done.
    """
    if order is None or order.uid != pod.uid:
        return _unmarked(task, pod, done)
    if order.leave is not None:
        return _first(_leaving(task, order.leave, pod, policy), done)
    if pod.marked and not pod.terminating:
        return _unmarked(task, pod, done)
    if pod.terminating or pod.node:
        return None
    if order.runs:
        if order.confirmed or not order.bound:
            # The log has seen it run, and the watch is behind.
            return None
        return _first(_binding(task, order, pod, policy), done)
    return _waiting(task, order, pod, done)


def _first(chain: tuple[PodAction, ...], done: AbstractSet[str]) -> PodAction | None:
    """Return the first action of a chain that is not done; each goes before the next."""
    return next((action for action in chain if action.key not in done), None)


def _binding(
    task: str, order: TaskOrder, pod: PodFound, policy: ActingPolicy
) -> tuple[PodAction, ...]:
    """Return what leads to a bound pod.

    A pod of another scheduler is only freed: that scheduler binds it. One that has other gates as
    well waits for whoever put them there, as the API binds none that has any.
    """
    chain: tuple[PodAction, ...] = ()
    if policy.gate in pod.gates:
        chain = (FreePod(task=task, pod=pod, seq=order.bound, gate=policy.gate),)
    others = set(pod.gates) - {policy.gate}
    if order.node and pod.scheduler == policy.scheduler and not others:
        chain += (BindPod(task=task, pod=pod, seq=order.bound, node=order.node),)
    return chain


def _leaving(
    task: str, leave: VictimOrder, pod: PodFound, policy: ActingPolicy
) -> tuple[PodAction, ...]:
    """Return what leads to a pod that is gone.

    What is written on it comes first, since it may vanish with the eviction. By the Eviction API it
    is rehearsed before anything is written, as a budget may refuse it for ever.
    """
    seq, message = leave.seq, sentence(leave)
    if not is_ours(pod, policy):
        return (SparePod(task=task, pod=pod, seq=seq, asked=leave.asked),)
    mark = MarkVictim(task=task, pod=pod, seq=seq, message=message)
    # The Eviction API writes its own reason over ours.
    mark_again = MarkVictim(task=task, pod=pod, seq=seq, message=message, again=True)
    if pod.terminating:
        return () if pod.marked else (mark_again,)
    announce = AnnounceEviction(task=task, pod=pod, seq=seq, message=message)
    written = (announce,) if pod.mark == message else (mark, announce)
    forced = policy.honour_pdb == "best-effort" and leave.repeated
    if policy.honour_pdb == "off" or forced:
        return (*written, DeletePod(task=task, pod=pod, seq=seq, asked=leave.asked))
    rehearsal = EvictPod(task=task, pod=pod, seq=seq, asked=leave.asked, rehearsed=True)
    eviction = EvictPod(task=task, pod=pod, seq=seq, asked=leave.asked, rehearsed=False)
    return (rehearsal, *written, eviction, mark_again)


def sentence(leave: VictimOrder) -> str:
    """Return what is written on a victim and into its Event: decision, rule, and who gains."""
    return f"{SAYS}{leave.seq}: makes room for {leave.beneficiary} ({leave.rule})"


def _unmarked(task: str, pod: PodFound, done: AbstractSet[str]) -> PodAction | None:
    """Return what takes the mark off a pod that may stay; the decision that it names sets it apart."""
    if not pod.marked or pod.terminating:
        return None
    return _first((UnmarkVictim(task=task, pod=pod, seq=_seq_of(pod.mark)),), done)


def _seq_of(mark: str) -> int:
    """Return the decision that a mark of ours names."""
    number = mark.removeprefix(SAYS).partition(":")[0]
    return int(number) if number.isdigit() else 0


def _waiting(
    task: str, order: TaskOrder, pod: PodFound, done: AbstractSet[str]
) -> PodAction | None:
    """Return what says on a pod why it waits; None: it says so already."""
    why = order.cause or "waits for its turn"
    message = f"{why}; `evsched explain {task}` says more"
    if pod.waits == message and pod.nominated == order.nominated:
        return None
    action = TellWaiting(
        task=task, pod=pod, seq=order.cause_seq, message=message, nominated=order.nominated
    )
    return _first((action,), done)

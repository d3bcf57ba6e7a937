"""`evsched status`: what the scheduler knows now, as the log says it. It only reads."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from events.chain import Step
from events.cloudevents import rfc3339
from events.errors import AccessDenied, StreamError
from events.streams import Heartbeat, open_streams
from events.vocabulary import QuotaPreemptionUnhelpful
from evsched.cli.answers import emit, paper
from evsched.cli.logs import HERE, Where, log_of
from evsched.cli.options import Json
from evsched.core.engine import Engine
from evsched.core.kueue import shares
from evsched.core.kueue.model import quota_in
from evsched.core.quantity import format_amount
from evsched.core.queues import Queue
from evsched.core.suspension import in_force
from evsched.service.rebuilding import Warm
from evsched.service.surroundings import SystemClock

if TYPE_CHECKING:
    from evsched.cli.consoles import PlainTable

SHOWN = 20
"""How many timers and unhelpful actions a person is shown."""


async def status(*, where: Where = HERE, json: Json = False) -> None:
    """Show what the scheduler knows, rebuilt from the log.

    Who leads and how many proposals it has not answered yet, the queues, the timers that run, quota
    actions that helped nobody, and the digest of it all. Two readers of one log show the same
    digest.

    **Examples**

    `evsched status`

    `evsched status --log kafka://localhost:9092/cluster --json`

    Args:
        where: Which log.
        json: One document.
    """
    warm = Observed()
    async with log_of(where) as opened:
        await warm.catch_up(opened)
        beat = None
        with suppress(AccessDenied):  # a right of its own, which an auditor need not have
            beat = await opened.last_heartbeat()
    facts = _facts(warm, beat, await _lag(where, warm.reader.head.inbox_next))
    if json:
        emit(facts)
    else:
        _show(facts)


class Observed(Warm):
    """A state, and what a person should know of how it came about.

    Attributes:
        unhelpful: The latest quota enforcement of each queue, where it preempted nobody, with its
            time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unhelpful: dict[str, tuple[int, QuotaPreemptionUnhelpful]] = {}

    def apply(self, step: Step) -> None:
        """See `Warm.apply`."""
        super().apply(step)
        for event in step.events:
            if type(event) is QuotaPreemptionUnhelpful:
                self.unhelpful.pop(event.queue, None)
                self.unhelpful[event.queue] = (step.time, event)


async def _lag(where: Where, inbox_next: int) -> int | None:
    """Return how many proposals nobody has answered yet; None where there is no inbox, or none that we may see."""
    with suppress(StreamError):
        async with open_streams(where.url, where.partition, where.security) as streams:
            return max(0, await streams.inbox.end() - inbox_next)
    return None


def _facts(warm: Observed, beat: Heartbeat | None, lag: int | None) -> dict[str, Any]:
    engine, head = warm.engine, warm.reader.head
    state = engine.state
    configuration = state.configuration
    own = beat if beat is not None and beat.term == head.term else None
    return {
        "log_id": head.log_id,
        "term": head.term,
        "leader": head.leader,
        "resigned": own is not None and own.resigned,
        "last_heartbeat": None if own is None else own.time,
        "address": "" if own is None else own.address,
        "frame": head.frame,
        "seq": head.next_seq - 1,
        "time": head.time,
        "unanswered": lag,
        "ignored_frames": warm.reader.ignored,
        "partition": None if configuration is None else configuration.partition,
        "nodes": len(state.nodes),
        "applications": len(state.applications),
        "allocations": len(state.allocations),
        "waiting": len(state.asks),
        "preemptions_under_way": len(state.preemptions),
        "next_due": engine.next_due(),
        "digest": state.digest(),
        "queues": [_queue(engine, queue) for _, queue in sorted(state.queues.items())],
        "timers": [
            {"id": one.id, "kind": one.kind, "subject": one.subject, "due": one.due}
            for one in sorted(state.timers.armed.values(), key=lambda one: (one.due, one.id))
        ],
        "suspended": [
            {"kind": one.kind, "subject": one.subject, "since": one.since, "place": one.place}
            for one in in_force(state)
        ],
        "unhelpful": [
            {
                "queue": queue,
                "time": time,
                **{
                    name: value
                    for name, value in msgspec.to_builtins(event).items()
                    if name in _KEPT
                },
            }
            for queue, (time, event) in warm.unhelpful.items()
        ],
    }


_KEPT = frozenset({"seq", "reason", "target", "unmet"})


def _queue(engine: Engine, queue: Queue) -> dict[str, Any]:
    """Return what a queue uses, waits for, is guaranteed and may use at most, by resource; an absent limit is unset.

    For Kueue: its nominal quota, and for a cohort the quota with what those below it lend, and how
    much may be borrowed.
    """
    names = engine.state.types.names

    def amounts(values: list[int]) -> dict[str, int]:
        return {names[index]: value for index, value in enumerate(values) if value}

    def limits(values: dict[int, int]) -> dict[str, int]:
        return {names[index]: value for index, value in sorted(values.items())}

    row: dict[str, Any] = {
        "queue": queue.path,
        "leaf": queue.leaf,
        "draining": queue.draining,
        "waiting": queue.pending_asks,
        "used": amounts(queue.usage),
        "preempting": amounts(queue.preempting),
        "pending": amounts(queue.pending),
    }
    quota = quota_in(queue)
    if quota is None:
        return row | {"guaranteed": limits(queue.guaranteed), "max": limits(queue.maximum)}
    row |= {
        "nominal": limits(quota.nominal),
        "quota": limits(quota.subtree),
        "borrowing_limit": limits(quota.borrowing),
    }
    if shares.are_shared(engine.state):
        row |= {"share": shares.status(quota, quota.usage)}
    return row


YUNIKORN = ("guaranteed", "max")
KUEUE = ("nominal", "quota", "borrowing_limit")
"""What a queue is entitled to, column by column."""


def _show(facts: dict[str, Any]) -> None:
    console = paper()
    for name, value in facts.items():
        if isinstance(value, list):
            continue
        moment = name in {"time", "next_due", "last_heartbeat"} and value
        known = (
            {None: "-", "": "-", True: "yes", False: "no"}
            if isinstance(value, bool | str | None)
            else {}
        )
        shown = rfc3339(value) if moment else known.get(value, str(value))
        if name == "last_heartbeat" and value:
            shown += f" ({max(0, SystemClock().now() - value) // 1000} s ago by the clock of this machine)"
        console.print(f"{name.replace('_', ' '):<22} {shown}")
    if facts["queues"]:
        console.print()
        console.print(_table(facts["queues"]))
    if facts["timers"] or facts["unhelpful"] or facts["suspended"]:
        console.print()
    for one in facts["suspended"]:
        what = f"{one['kind']} {one['subject']}".rstrip()
        sentence = f"SET ASIDE since {rfc3339(one['since'])}: {what}: evsched failed at it, at {one['place']}"
        console.print(sentence, markup=False, style="bold red")
    for one in facts["timers"][:SHOWN]:
        console.print(f"timer {one['id']} is due at {rfc3339(one['due'])}")
    if len(facts["timers"]) > SHOWN:
        console.print(f"… and {len(facts['timers']) - SHOWN} timers more")
    for one in facts["unhelpful"][-SHOWN:]:
        sentence = f"quota of {one['queue']} was enforced at {rfc3339(one['time'])} and helped nobody: {one['reason']}"
        console.print(sentence)


def _table(queues: list[dict[str, Any]]) -> PlainTable:
    """Return the table of queues, one line a queue and resource."""
    from evsched.cli.consoles import PlainTable  # noqa: PLC0415

    kueue, fair = any("nominal" in one for one in queues), any("share" in one for one in queues)
    entitled = KUEUE if kueue else YUNIKORN
    headings = [name.replace("_", " ") for name in entitled]
    table = PlainTable(
        "queue",
        *(("share",) if fair else ()),
        "resource",
        "used",
        "leaving",
        "waiting",
        *headings,
        show_edge=False,
        box=None,
    )
    for queue in queues:
        kinds = sorted(
            {name for column in ("used", "pending", *entitled) for name in queue.get(column, {})}
        ) or [""]
        for number, kind in enumerate(kinds):
            row = [
                queue.get(column, {}).get(kind)
                for column in ("used", "preempting", "pending", *entitled)
            ]
            texts = [
                "-" if one is None else format_amount(kind.rpartition("/")[2], one) for one in row
            ]
            share = (
                (str(queue["share"]) if not number and "share" in queue else "",) if fair else ()
            )
            table.add_row("" if number else queue["queue"], *share, kind, *texts)
    return table

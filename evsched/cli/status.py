"""`evsched status`: what the scheduler knows now, as the log says it. It only reads."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from events.cloudevents import rfc3339
from events.errors import StreamError
from events.streams import open_streams
from evsched.cli.answers import emit, paper
from evsched.cli.cells import amounts
from evsched.cli.logs import HERE, Where, log_of
from evsched.cli.options import Json
from evsched.core.quantity import format_amount
from evsched.service.environment import SystemClock
from replays.history.rebuild import History
from replays.history.status import StatusQuestion
from replays.history.status import status as answer

if TYPE_CHECKING:
    from evsched.cli.tables import PlainTable

SHOWN = 20
"""How many timers and quota actions a person is shown."""


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
    async with log_of(where) as opened:
        found = await answer(History(opened), StatusQuestion(inbox_end=await _inbox_end(where)))
    if json:
        emit(found)
    else:
        _show(msgspec.to_builtins(found))


async def _inbox_end(where: Where) -> int | None:
    """Return where the inbox ends; None where there is none, or none that may be seen."""
    with suppress(StreamError):
        async with open_streams(where.url, where.partition, where.security) as streams:
            return await streams.inbox.end()
    return None


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
        console.table(_table(facts["queues"]))
    if facts["timers"] or facts["quota_actions"] or facts["suspended"]:
        console.print()
    for one in facts["suspended"]:
        what = f"{one['kind']} {one['subject']}".rstrip()
        sentence = f"SET ASIDE since {rfc3339(one['since'])}: {what}: evsched failed at it, at {one['place']}"
        console.print(sentence, markup=False, style="bold red")
    for one in facts["timers"][:SHOWN]:
        console.print(f"timer {one['id']} is due at {rfc3339(one['due'])}")
    if len(facts["timers"]) > SHOWN:
        console.print(f"… and {len(facts['timers']) - SHOWN} timers more")
    for one in facts["quota_actions"][-SHOWN:]:
        console.print(f"quota of {one['queue']} {_action(one)}", markup=False)


def _action(one: dict[str, Any]) -> str:
    """Return what quota enforcement did about a queue last, and what stays above its maximum."""
    when = rfc3339(one["time"])
    match one["action"]:
        case "scheduled":
            said = f"will be enforced at {rfc3339(one['due'])}"
        case "cancelled":
            said = f"is not enforced any more since {when}: {one['reason']}"
        case "decided":
            said = f"was enforced at {when}: {amounts(one['target'])} had to go"
            said += f", {amounts(one['unmet'])} of it had no victim" if one["unmet"] else ""
        case _:
            said = f"was enforced at {when} and preempted nobody: {one['reason']}"
    return f"{said}; {amounts(one['above'])} above its maximum now" if one["above"] else said


def _table(queues: list[dict[str, Any]]) -> PlainTable:
    """Return the table of queues, one line a queue and resource."""
    from evsched.cli.tables import PlainTable  # noqa: PLC0415

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
        ruled=False,
        empty="-",
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

"""`evsched verify`: everything that was decided, decided again."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from events.vocabulary import AnyEvent
from evsched.cli.answers import DONE, NO, UNREACHABLE, emit, paper, say, say_error, tell
from evsched.cli.cells import table
from evsched.cli.logs import HERE, Where, inbox_fault
from evsched.cli.options import Json
from evsched.cli.past import Known, MomentText, Snapshots, end_of, history_of, meter, moment_of
from replays.checking.verify import Difference, Outcome, verify_log
from replays.history.moments import format_time


async def verify(
    *,
    where: Where = HERE,
    start: Annotated[MomentText, Parameter(name="--from")] = "start",
    snapshots: Snapshots = None,
    known: Known = None,
    json: Json = False,
) -> int:
    """Decide the whole log again and compare, event by event, with what it holds.

    Exits 0 when nothing differs, 1 at the first difference, which is shown with both versions and
    the state around it, and 3 when the log is damaged, with the place. An empty log proves nothing:
    exit 1.

    **Examples**

    `evsched verify`

    `evsched verify --log monday.jsonl.zst --json`

    `evsched verify --from 500000`: what came before is taken as it is, from a snapshot where there
    is one

    Args:
        where: Which log.
        start: The moment from which on to decide again.
        snapshots: Folder of snapshots.
        known: Hashes that the log must contain.
        json: One document.
    """
    moment = moment_of(start)
    async with history_of(where, snapshots) as history:
        with meter("deciding again", await end_of(history.log)) as advance:
            outcome = await verify_log(
                history, moment, lambda step: advance(step.head.position), known or ()
            )
    if json:
        emit(_document(outcome))
    else:
        _show(outcome)
    if outcome.damage is not None:
        say_error(str(outcome.damage))
        return UNREACHABLE
    if detached := await inbox_fault(where, outcome.head.inbox, outcome.head.inbox_next):
        # The decisions are not in question: the exit code stays that of the comparison.
        say(detached)
    if not outcome.head.frame:
        say_error("log: is empty, so nothing was verified")
        return NO
    return DONE if outcome.difference is None else NO


def _document(outcome: Outcome) -> dict[str, Any]:
    head, difference = outcome.head, outcome.difference
    damage = outcome.damage
    return {
        "log_id": head.log_id,
        "frames": head.frame,
        "events": head.next_seq - 1,
        "first": outcome.first,
        "hash": head.hash,
        "ignored": outcome.ignored,
        "difference": difference,
        "around": outcome.around,
        "damage": None
        if damage is None
        else {"position": damage.position, "reason": damage.reason},
    }


def _show(outcome: Outcome) -> None:
    head, difference = outcome.head, outcome.difference
    if difference is not None:
        _show_difference(difference)
        console = paper()
        for kind, rows in outcome.around.items():
            console.print()
            console.print(table(rows, f"{kind} before it"))
    elif outcome.damage is None:
        count = head.next_seq - outcome.first
        tell(
            f"{count} events decided again, from {outcome.first} to {head.next_seq - 1}: no difference"
        )
        tell(f"log {head.log_id} ends with frame {head.frame}, hash {head.hash}")
    if outcome.ignored:
        say(f"{outcome.ignored} void frames passed over")


def _show_difference(difference: Difference) -> None:
    tell(
        f"event {difference.seq} in frame {difference.frame} at {format_time(difference.time)} differs"
    )
    tell(f"  recorded: {_event(difference.recorded)}")
    tell(f"  decided:  {difference.error or _event(difference.decided)}")
    if difference.recorded is not None and type(difference.recorded) is type(difference.decided):
        ours, theirs = (
            msgspec.to_builtins(difference.decided),
            msgspec.to_builtins(difference.recorded),
        )
        names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
        tell(f"  differs in: {', '.join(names)}")


def _event(event: AnyEvent | None) -> str:
    return "nothing" if event is None else msgspec.json.encode(event).decode()

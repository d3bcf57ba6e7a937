"""`evsched verify`: everything that was decided, decided again."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from events.errors import LogDamaged
from events.vocabulary import AnyEvent
from evsched.cli.answers import DONE, NO, UNREACHABLE, emit, paper, say, say_error, tell
from evsched.cli.cells import table
from evsched.cli.logs import HERE, Where, inbox_fault
from evsched.cli.options import Json
from evsched.cli.past import (
    Known,
    MomentText,
    SnapshotFolder,
    all_cores,
    end_of,
    history_of,
    meter,
    moment_of,
)
from replays.checking.verify import Difference, VerifyAnswer, VerifyQuestion, verify_log
from replays.history.moments import format_time
from replays.history.rows import document


async def verify(
    *,
    where: Where = HERE,
    start: Annotated[MomentText, Parameter(name="--from")] = "start",
    snapshots: SnapshotFolder = None,
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
            answer = await verify_log(
                history,
                VerifyQuestion(start=moment, known=tuple(known or ())),
                lambda step: advance(step.head.position),
                await all_cores(where, history.log, advance, snapshots),
            )
    if json:
        emit(answer)
    else:
        _show(answer)
    if answer.damage is not None:
        say_error(str(LogDamaged(answer.damage.position, answer.damage.reason)))
        return UNREACHABLE
    if detached := await inbox_fault(where, answer.inbox, answer.inbox_next):
        # The decisions are not in question: the exit code stays that of the comparison.
        say(detached)
    if not answer.frames:
        say_error("log: is empty, so nothing was verified")
        return NO
    return DONE if answer.difference is None else NO


def _show(answer: VerifyAnswer) -> None:
    if answer.difference is not None:
        _show_difference(answer.difference)
        console = paper()
        for kind, rows in answer.around.by_view().items():
            console.print()
            console.table(table([document(row) for row in rows], f"{kind} before it"))
    elif answer.damage is None:
        count = answer.events + 1 - answer.first
        tell(f"{count} events decided again, from {answer.first} to {answer.events}: no difference")
        tell(f"log {answer.log_id} ends with frame {answer.frames}, hash {answer.hash}")
    if answer.ignored:
        say(f"{answer.ignored} void frames passed over")


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

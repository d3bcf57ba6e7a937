"""Shadow, free: how a recorded cluster would have gone on under evsched, beside how it went.

Both worlds get the same inputs: nodes, asks, configurations, ends. What the cluster's own scheduler
bound and evicted is an input of the recorded world alone; the supposed one decides by itself from
the first step on, with its timers, so the worlds part where the schedulers first differ and do not
meet again. How the inputs are translated, and what is supposed on the way, is that of a what-if
(`replays.checking.worlds`); the same counters say how far to trust it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from events.chain import ChainReader
from replays.checking.ledger import Decided, QueueFigures
from replays.checking.whatif import EvictionTimes
from replays.checking.worlds import WhatIf
from replays.history.moments import END, Moment
from replays.history.steps import copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from events.chain import RecordedStep
    from replays.history.rebuild import History

FreeVerdict = Literal["same", "other-node", "other-preemptor", "only-theirs", "only-ours"]


class FreeQuestion(Struct, frozen=True, kw_only=True):
    """How would a recorded cluster have gone on, had evsched decided there?

    Attributes:
        start: From when on evsched decides; the state of before is that of the cluster.
        end: Up to which moment.
        rules: Version of the rules by which evsched decides; None: those in force at each place.
    """

    start: Moment = Moment(seq=0)
    end: Moment = END
    rules: int | None = None


class FreeRow(Struct, frozen=True, kw_only=True):
    """What became of one ask or allocation in either world.

    Attributes:
        verdict: ``same`` says nothing of when: it is the same node (Kueue: the same flavors), or an
            eviction for the same ask.
        theirs, ours: None: it was not decided there.
    """

    subject: str
    kind: Literal["binding", "eviction"]
    verdict: FreeVerdict
    theirs: Decided | None
    ours: Decided | None


class FreeAnswer(Struct, frozen=True, kw_only=True):
    """Two courses of one cluster.

    Attributes:
        compared: Bindings and evictions of either world; ``same`` of them agree.
        verdicts: How many rows have each verdict; those that no row has are left out.
        theirs, ours: Figures of every leaf, by path.
        left_out: Recorded ends that were left out because the eviction before them did not happen.
        confirmed: Evictions of evsched that were supposed to take ``eviction_ms`` each.
        moved: Ends that were moved because the allocation began at another time.
        refused: Inputs that the supposed world refused although the recorded one took them.
    """

    steps: int
    compared: int
    same: int
    verdicts: dict[str, int]
    theirs: dict[str, QueueFigures]
    ours: dict[str, QueueFigures]
    left_out: int
    confirmed: int
    eviction_ms: int
    moved: int
    refused: int
    rows: tuple[FreeRow, ...]


async def shadow_free(
    history: History,
    question: FreeQuestion,
    progress: Callable[[RecordedStep], None] | None = None,
) -> FreeAnswer:
    """Let evsched decide a recorded cluster from some moment on, and compare what became of it.

    Args:
        history: A log in which the cluster was recorded.
        question: Over which stretch, and by which rules.
        progress: Called after every step.

    Raises:
        WrittenByNewer: This release does not know these rules.
    """
    recorded, reader = await history.boundary(question.start)
    # The steps are read twice rather than kept: a recording may be of a month.
    evictions = EvictionTimes()
    seq = reader.head.next_seq - 1
    async for step in history.steps(ChainReader(reader.head), question.end):
        evictions.take(step)
        seq = step.head.next_seq - 1
    run = WhatIf(
        recorded, copy(recorded), None, evictions.median_ms(), question.rules, decides=True
    )
    # Not beyond what was read the first time: the log may have grown.
    async for step in history.steps(reader, Moment(seq=seq)):
        run.take(step)
        if progress is not None:
            progress(step)
    found = run.answer()
    theirs, ours = run.ledgers
    rows = (
        *_rows("binding", theirs.bindings, ours.bindings),
        *_rows("eviction", theirs.evictions, ours.evictions),
    )
    verdicts: dict[str, int] = {}
    for row in rows:
        verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
    return FreeAnswer(
        steps=found.steps,
        compared=len(rows),
        same=verdicts.get("same", 0),
        verdicts=verdicts,
        theirs=found.recorded,
        ours=found.supposed,
        left_out=found.left_out,
        confirmed=found.confirmed,
        eviction_ms=found.eviction_ms,
        moved=found.moved,
        refused=found.refused,
        rows=rows,
    )


def _rows(
    kind: Literal["binding", "eviction"], theirs: dict[str, Decided], ours: dict[str, Decided]
) -> Iterator[FreeRow]:
    """Yield a row for each subject, in the order of the recorded world, then those of the supposed one alone."""
    for subject in dict.fromkeys((*theirs, *ours)):
        before, after = theirs.get(subject), ours.get(subject)
        yield FreeRow(
            subject=subject,
            kind=kind,
            verdict=_verdict(before, after),
            theirs=before,
            ours=after,
        )


def _verdict(theirs: Decided | None, ours: Decided | None) -> FreeVerdict:
    if ours is None:
        return "only-theirs"
    if theirs is None:
        return "only-ours"
    if (theirs.node, theirs.flavors) != (ours.node, ours.flavors):
        return "other-node"
    # Not every scheduler says for whom it evicts; then it is the same eviction.
    return "same" if not theirs.ask or theirs.ask == ours.ask else "other-preemptor"

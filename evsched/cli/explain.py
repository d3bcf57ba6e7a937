"""`evsched explain`: why something waits, had to go, or was spared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from evsched.cli.answers import NO, emit, paper, say
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.overviews import print_overview
from evsched.cli.past import MomentText, SnapshotFolder, end_of, history_of, meter, moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evsched.cli.consoles import Paper
    from replays.explaining.decision import Decision, Spared
    from replays.explaining.explain import Explanation
    from replays.explaining.kueue import FairShare
    from replays.explaining.tracer import Note

NOTES_SHOWN = 20
NAMES_SHOWN = 3
"""More considerations than the first are shown together where they are the same, each with so many names."""


async def explain(
    subject: str,
    /,
    *,
    where: Where = HERE,
    at: Annotated[MomentText, Parameter(name="--at")] = "end",
    kind: Literal["queue", "application", "node", "user"] | None = None,
    snapshots: SnapshotFolder = None,
    json: Json = False,
) -> int:
    """Explain why an ask waits, or why an allocation runs, had to go, or was spared; exits 1 when nothing has that name.

    Of a queue, application, node or user it says what it has, which limits count that, and what
    holds the asks that wait there.

    **Examples**

    `evsched explain prod-7`

    `evsched explain test-3 --at 2026-11-20T14:03:00Z`

    `evsched explain test-3 --at -15m --json`

    `evsched explain root.web`

    `evsched explain ann --kind user`

    Args:
        subject: Id of an ask or allocation; name of a queue, application, node or user.
        where: Which log.
        at: A seq, a time, or time before the end of the log (-15m).
        kind: Which one is meant, where several have the name; asks and allocations come first.
        snapshots: Folder of snapshots, and of the index that says where the log speaks of whom.
        json: One document.
    """
    from replays.explaining.question import ExplainQuestion  # noqa: PLC0415 - the core is slow to load, help is not
    from replays.explaining.question import explain as answer  # noqa: PLC0415

    question = ExplainQuestion(subject=subject, moment=moment_of(at), kind=kind)
    async with history_of(where, snapshots) as history:
        with meter("reading the log", await end_of(history.log)) as advance:
            found = await answer(history, question, lambda step: advance(step.head.position))
    if json:
        emit(found)
    else:
        _print(found.explanation, found.decisions, found.spared)
        if found.overview is not None:
            print_overview(paper(), found.overview)
    return NO if found.explanation.status == "unknown" else 0


# --------------------------------------------------------------------------------------- for people


def _print(
    explanation: Explanation, decisions: Sequence[Decision], spared: Sequence[Spared]
) -> None:
    from rich.text import Text  # noqa: PLC0415

    from replays.history.moments import format_time  # noqa: PLC0415

    console = paper()
    console.print(
        Text(f"{explanation.subject} {explanation.status}", style="bold"),
        f"at seq {explanation.seq}, {format_time(explanation.time)}",
    )
    console.print(Text(explanation.summary))
    if explanation.missed:
        console.print(Text(f"Preemption cycles missed so far: {explanation.missed}."))
    if explanation.observed:
        console.print(
            "Decided elsewhere: the leader of this log only records. This is what evsched would say."
        )
    if explanation.unmodelled:
        console.print(Text(f"Not decided by: {', '.join(explanation.unmodelled)}."))
    _print_levels(console, explanation)
    _print_quotas(console, explanation)
    _print_nodes(console, explanation)
    if explanation.unblock:
        console.heading("What would change it")
        for line in explanation.unblock:
            console.print(Text(f"  {line.sentence}"))
    _print_notes(console, "Considered and passed over", explanation.passed_over)
    _print_spared(console, spared)
    for decision in decisions:
        _print_decision(console, decision)
    if explanation.history:
        console.heading("History")
        for mention in explanation.history:
            console.print(Text(f"  {mention.seq:>8}  {format_time(mention.time)}  {mention.text}"))
    if explanation.status == "unknown":
        say(f"nothing is called {explanation.subject}")


def _amount(resource: str, amount: int | None) -> str:
    from evsched.core.quantity import format_amount  # noqa: PLC0415

    if amount is None:
        return "-"
    sign = "-" if amount < 0 else ""
    return sign + format_amount(resource.rpartition("/")[2], abs(amount))


def _print_levels(console: Paper, explanation: Explanation) -> None:
    from evsched.cli.tables import PlainTable  # noqa: PLC0415

    if not explanation.levels:
        return
    console.heading("Queue path")
    table = PlainTable()
    for name in ("queue", "resource", "requested", "used", "promised", "limit", "guaranteed", ""):
        table.add_column(name, justify="left" if name in ("queue", "resource", "") else "right")
    for level in explanation.levels:
        amounts = [
            _amount(level.resource, one)
            for one in (level.requested, level.used, level.claimed, level.limit, level.guaranteed)
        ]
        table.add_row(
            level.queue,
            level.resource,
            *amounts,
            ("does not fit", "red") if level.binding else "",
        )
    console.table(table)


def _print_quotas(console: Paper, explanation: Explanation) -> None:
    """Print what Kueue looked at: quotas level by level, flavors, shares."""
    from rich.text import Text  # noqa: PLC0415

    from evsched.cli.cells import amounts, table  # noqa: PLC0415

    if explanation.quotas:
        rows = [
            {
                "queue": one.queue, "flavor": one.flavor, "resource": one.resource,
                **{
                    name: None if amount is None else _amount(one.resource, amount)
                    for name, amount in (
                        ("requested", one.requested), ("used", one.used), ("quota", one.quota), ("nominal", one.nominal),
                        ("borrowing_limit", one.borrowing_limit), ("lending_limit", one.lending_limit),
                    )
                },
                "": f"{_amount(one.resource, one.missing)} too much ({one.binding})" if one.binding else None,
            }
            for one in explanation.quotas
        ]  # fmt: skip
        console.heading("Quotas")
        console.table(table(rows))
    if explanation.flavors:
        console.heading("Flavors considered")
    for look in explanation.flavors:
        level = (
            f", borrowing at level {look.borrow_level} of its cohorts" if look.borrow_level else ""
        )
        console.print(
            Text(
                f"  {look.flavor} for {amounts(look.resources)}: {look.sentence}{level} ({look.mode})"
            )
        )
    _print_shares(console, "Shares now and with it running", explanation.shares)


def _print_shares(console: Paper, title: str, shares: Sequence[FairShare]) -> None:
    from rich.text import Text  # noqa: PLC0415

    if shares:
        console.heading(f"{title}")
    for one in shares:
        before, after = (
            "infinite" if share == 2**63 - 1 else str(share) for share in (one.before, one.after)
        )
        console.print(Text(f"  {one.queue}: {before} → {after}"))


def _print_spared(console: Paper, spared: Sequence[Spared]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from replays.history.moments import format_time  # noqa: PLC0415

    if spared:
        console.heading("Spared")
    for one in spared:
        whom = f"ask {one.for_ask}" if one.for_ask else f"the quota of {one.for_queue}"
        console.print(
            Text(
                f"  {one.seq:>8}  {format_time(one.time)}  when {whom} needed room: {one.sentence}"
            )
        )


def _print_nodes(console: Paper, explanation: Explanation) -> None:
    from rich.text import Text  # noqa: PLC0415

    if not explanation.nodes:
        return
    console.heading("Nearest nodes")
    for node in explanation.nodes:
        lacking = ", ".join(
            f"{_amount(name, amount)} {name}" for name, amount in node.lacking.items()
        )
        says = f"lacks {lacking}" if lacking else "has room"
        if not node.schedulable:
            says += ", takes nobody at present"
        if node.reserved_for:
            says += f", reserved for {', '.join(node.reserved_for)}"
        console.print(Text(f"  {node.node}  {says}"))


def _print_notes(console: Paper, title: str, notes: Sequence[Note]) -> None:
    """Print considerations one a line; many of them by their sentence, with a few names each."""
    from rich.text import Text  # noqa: PLC0415

    if not notes:
        return
    console.heading(f"{title}")
    if len(notes) <= NOTES_SHOWN:
        for note in notes:
            console.print(Text(f"  {note.subject}  {note.sentence}"))
        return
    by_sentence: dict[str, list[str]] = {}
    for note in notes:
        by_sentence.setdefault(note.sentence, []).append(note.subject)
    for sentence, names in by_sentence.items():
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        console.print(Text(f"  {', '.join(names[:NAMES_SHOWN])}{more}  {sentence}"))


def _print_decision(console: Paper, decision: Decision) -> None:
    from rich.text import Text  # noqa: PLC0415

    from replays.history.moments import format_time  # noqa: PLC0415

    whom = (
        f"ask {decision.for_ask} of {decision.for_queue}"
        if decision.for_ask
        else f"queue {decision.for_queue}"
    )
    console.heading(
        f"Decision {decision.seq} at {format_time(decision.time)} for {whom} ({decision.algorithm})"
    )
    for victim in decision.victims:
        console.print(Text(f"  {victim.id} of {victim.queue} had to go: {victim.reason}"))
        if victim.message:
            console.print(Text(f"    {victim.message}"))
    for share in decision.shares:
        guaranteed = (
            f", guaranteed {_amount(share.resource, share.guaranteed)}"
            if share.guaranteed is not None
            else ""
        )
        guaranteed += (
            f", quota {_amount(share.resource, share.quota)}" if share.quota is not None else ""
        )
        before, after = _amount(share.resource, share.before), _amount(share.resource, share.after)
        console.print(Text(f"  {share.queue}: {share.resource} {before} → {after}{guaranteed}"))
    _print_shares(console, "Shares before and after", decision.fair)
    _print_notes(console, "Passed over then", decision.passed_over)
    if not decision.identical:
        say(f"decision {decision.seq} comes out differently today: run `evsched verify`")

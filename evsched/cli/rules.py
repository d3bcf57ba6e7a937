"""`evsched rules`: which rules there are, what each changed, and how newer ones come into force."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from cyclopts import App, Parameter

from events.vocabulary import RulesAdopted
from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, say, tell
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.proposing import propose
from evsched.core.rules import FIRST, NEWEST, RULES
from evsched.service.proposing import ACCEPTED

app = App(name="rules", help="Show the rules that decide, and adopt newer ones.")


@app.command(name="list")
def list_rules(*, json: Json = False) -> int:
    """List the rules that this evsched knows, with what each version changed.

    **Examples**

    `evsched rules list`

    Args:
        json: One document a version.
    """
    for version, rules in RULES.items():
        if json:
            emit({"rules": version, "record": rules.record, "changes": list(rules.changes)})
            continue
        tell(f"rules {version}")
        for change in rules.changes:
            tell(f"  - {change}")
    return DONE


@app.command
def diff(
    before: Annotated[int, Parameter(name="BEFORE")],
    after: Annotated[int, Parameter(name="AFTER")] = NEWEST,
    /,
    *,
    json: Json = False,
) -> int:
    """Say what is decided otherwise under later rules than under earlier ones.

    **Examples**

    `evsched rules diff 1 2`

    Args:
        before: The earlier version.
        after: The later one, the newest by default.
        json: One document a version in between.
    """
    for version in (before, after):
        _known(version)
    if after <= before:
        raise CommandError(f"rules {after}: found after {before}, expected a later version", MISUSE)
    for version in range(before + 1, after + 1):
        for change in RULES[version].changes:
            if json:
                emit({"rules": version, "change": change})
            else:
                tell(f"rules {version}: {change}")
    return DONE


@app.command
async def adopt(
    version: Annotated[int, Parameter(name="N")],
    /,
    *,
    where: Where = HERE,
    json: Json = False,
) -> int:
    """Let newer rules decide from now on, and wait for the leader's answer.

    The leader refuses while a process that could lead does not know them; upgrade it first. `evsched
    whatif --rules N` shows beforehand what they would have decided. There is no way back: a log that
    was decided by later rules is not decided by earlier ones again.

    **Examples**

    `evsched rules adopt 2`

    Args:
        version: Of the rules.
        where: Which log.
        json: One document: the proposal and its answer.
    """
    _known(version)
    proposed = RulesAdopted(rules=version, proposal=f"rules:{uuid4().hex}")
    ((_, answer),) = await propose(where, [proposed], "/evsched/rules", wait=True)
    if json:
        emit({"proposal": proposed.proposal, "rules": version, "answer": answer})
    elif answer == ACCEPTED:
        tell(f"rules {version} decide from now on")
    if answer != ACCEPTED and not json:
        say(f"refused: {answer}")
    return DONE if answer == ACCEPTED else NO


def _known(version: int) -> None:
    """Refuse a version that this release does not know."""
    if version not in RULES:
        raise CommandError(f"rules {version}: not known, expected {FIRST} to {NEWEST}", MISUSE)

"""`evsched config`: check, compare and apply configurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
from cyclopts import App, Parameter

from events.bounds import MAX_TEXT
from events.configuration import Configuration
from events.vocabulary import ConfigurationApplied
from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, paper, refused, say, tell
from evsched.cli.cells import counted
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Actor, Json
from evsched.cli.past import history_of
from evsched.cli.proposing import propose
from evsched.config import ConfigurationError, Fault, Loaded, load
from evsched.config.difference import ConfigurationDifference, describe
from evsched.service.proposing import ACCEPTED
from replays.history.moments import END

app = App(name="config", help="Check, compare and apply configurations.")

MAX_DOCUMENT = 250_000
"""Characters of a document that an event carries; a larger one is applied without its text."""

Strict = Annotated[bool, Parameter(negative=())]

Files = Annotated[list[Path], Parameter(name="FILE", negative=())]


@app.command
def check(files: Files, /, *, strict: Strict = False, json: Json = False) -> int:
    """Check a configuration without applying it; exits 1 when it would be refused.

    **Examples**

    `evsched config check queues.yaml`

    `evsched config check manifests/ --json`

    Args:
        files: One queues.yaml, or Kueue manifests in files and folders.
        strict: Warnings refuse it as well: what is not decided, or will not do what it seems to.
        json: One document: whether it is valid, its partitions, faults and warnings.
    """
    for file in files:
        if not file.exists():
            raise CommandError(f"{file}: No such file or directory")
    faults: tuple[Fault, ...] = ()
    try:
        loaded = load(files)
    except ConfigurationError as error:
        loaded, faults = Loaded(configurations=()), error.faults
    bad = bool(faults or (strict and loaded.warnings))
    if json:
        emit(
            {
                "valid": not bad,
                "partitions": [one.partition for one in loaded.configurations],
                "faults": [_fault(fault) for fault in faults],
                "warnings": [_fault(fault) for fault in loaded.warnings],
            }
        )
        return NO if bad else DONE
    for fault in faults:
        say(str(fault))
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    for one in loaded.configurations:
        verdict = "refused for its warnings" if bad else "valid"
        paper().print(f"partition {one.partition}: {verdict} ({_size(one)})")
    return NO if bad else DONE


@app.command
async def diff(
    before: Path,
    after: Path | None = None,
    /,
    *,
    where: Where = HERE,
    json: Json = False,
) -> int:
    """Say what a configuration would do; exits 0 when nothing, 1 when something, 2 when it would be refused.

    With one file: what it would do to the cluster as it is now, by the log. Queues that come, go
    and change, timers that start and end, what runs above a new maximum, who could not be bound any
    more. With two: what the second says otherwise. What is compared is the meaning: `1000m` and
    `1`, or another order of keys, make no difference.

    **Examples**

    `evsched config diff queues-next.yaml`

    `evsched config diff queues.yaml queues-next.yaml`

    Args:
        before: A queues.yaml, a manifest or a folder of them; the new one when it is the only one.
        after: The new one.
        where: Which log.
        json: One document a partition.
    """
    new = load_or_refuse([before if after is None else after])
    for warning in new.warnings:
        say(f"warning: {warning}")
    if after is None:
        async with history_of(where) as history:
            state = (await history.at(END)).state
        found = [describe(None, _choose(new, state.configuration), state)]
    else:
        was = {one.partition: one for one in load_or_refuse([before]).configurations}
        found = [describe(was.get(one.partition), one) for one in new.configurations]
        gone = set(was) - {one.partition for one in new.configurations}
        found += [
            ConfigurationDifference(partition=name, removed=(f"partition {name}",))
            for name in sorted(gone)
        ]
    sentences = 0
    for one in found:
        if json:
            emit(one)
        for sentence in one.sentences():
            sentences += 1
            if not json:
                tell(sentence)
    if not sentences:
        say("no difference")
    if any(one.refused is not None for one in found):
        return MISUSE
    return NO if sentences else DONE


def _choose(loaded: Loaded, in_force: Configuration | None) -> Configuration:
    """Return, of several partitions in a file, the one of the name that is in force."""
    found = list(loaded.configurations)
    if len(found) > 1 and in_force is not None:
        found = [one for one in found if one.partition == in_force.partition]
    if len(found) != 1:
        names = ", ".join(one.partition for one in loaded.configurations)
        wanted = "one" if in_force is None else f"one called {in_force.partition}"
        raise CommandError(f"partitions {names}: found {len(found)} to compare, expected {wanted}")
    return found[0]


@app.command
async def apply(  # noqa: PLR0913 - one parameter an option
    files: Files,
    /,
    *,
    where: Where = HERE,
    name: str | None = None,
    source: str = "/evsched/config/apply",
    actor: Actor = "",
    message: str = "",
    strict: Strict = False,
    wait: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Check a configuration and propose it to the scheduler, which takes it as a whole or refuses it as a whole.

    **Examples**

    `evsched config apply queues.yaml --wait`

    `evsched config apply queues.yaml --name gpu --partition 1`

    `evsched config apply queues.yaml --actor ann --message "More for web until the sale is over"`

    Args:
        files: One queues.yaml, or Kueue manifests in files and folders.
        where: Which log.
        name: The partition to apply, where a queues.yaml holds several.
        source: The program that applies it, for the log: a URI reference; other letters are
            escaped.
        actor: The person or account that applies it, for `evsched audit config-history`.
        message: Why, as the message of a commit.
        strict: Warnings refuse it as well.
        wait: Wait until a leader has answered; exits 1 when it refuses.
        json: One document: the id of the proposal, its position, and with --wait the answer.
    """
    if len(message) > MAX_TEXT:
        raise CommandError(
            f"--message: found {len(message)} characters, expected at most {MAX_TEXT}"
        )
    loaded = load_or_refuse(files, strict=strict)
    found = [one for one in loaded.configurations if name is None or one.partition == name]
    if len(found) != 1:
        names = ", ".join(one.partition for one in loaded.configurations)
        raise CommandError(
            f"partitions {names}: found {len(found)} to apply, expected one (choose with --name)"
        )
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    proposed = ConfigurationApplied(
        proposal=f"config:{uuid4().hex}",
        configuration=found[0],
        document=loaded.text if len(loaded.text) <= MAX_DOCUMENT else "",
        actor=actor,
        message=message,
    )
    ((position, answer),) = await propose(where, [proposed], source, wait=wait)
    if json:
        emit(
            {"proposal": proposed.proposal, "position": position}
            | ({"answer": answer} if wait else {})
        )
    refused = wait and answer != ACCEPTED
    say(f"partition {found[0].partition}: {answer if wait else 'proposed'}")
    return NO if refused else DONE


def load_or_refuse(files: Sequence[Path], *, strict: bool = False) -> Loaded:
    """Return what these files hold; ``strict``: not where there is anything to warn of.

    Raises:
        CommandError: Something is wrong with them; every fault is in the message.
    """
    try:
        loaded = load(files)
    except ConfigurationError as error:
        raise refused(error.faults) from error
    if strict and loaded.warnings:
        raise refused(loaded.warnings)
    return loaded


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "source": fault.source,
        "line": fault.line,
        "path": fault.path,
        "message": fault.message,
    }


def _size(configuration: Configuration) -> str:
    """Return how much a configuration holds, in words."""
    tree = msgspec.to_builtins(configuration)
    if tree["format"] == "kueue":
        queues, cohorts = len(tree.get("cluster_queues", ())), len(tree.get("cohorts", ()))
        return f"{counted(queues, 'ClusterQueues')}, {counted(cohorts, 'Cohorts')}"
    return counted(_queues(tree["root"]), "queues")


def _queues(queue: dict[str, Any]) -> int:
    return 1 + sum(_queues(child) for child in queue.get("queues", ()))

"""`evsched config`: check, compare and apply configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
from cyclopts import App, Parameter

from events.configuration import Configuration
from events.vocabulary import ConfigurationApplied
from evsched.cli.answers import DONE, NO, CommandError, emit, paper, say
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.proposing import ACCEPTED, propose
from evsched.config import ConfigurationError, Fault, Loaded, load

app = App(name="config", help="Check, compare and apply configurations.")

MAX_DOCUMENT = 250_000
"""Characters of a document that an event carries; a larger one is applied without its text."""

Files = Annotated[list[Path], Parameter(name="FILE", negative=())]


@app.command
def check(files: Files, /, *, json: Json = False) -> int:
    """Check a configuration without applying it; exits 1 when it would be refused.

    **Examples**

    `evsched config check queues.yaml`

    `evsched config check manifests/ --json`

    Args:
        files: One queues.yaml, or Kueue manifests in files and folders.
        json: One document: whether it is valid, its partitions, faults and warnings.
    """
    faults: tuple[Fault, ...] = ()
    try:
        loaded = load(files)
    except ConfigurationError as error:
        loaded, faults = Loaded(configurations=()), error.faults
    if json:
        emit(
            {
                "valid": not faults,
                "partitions": [one.partition for one in loaded.configurations],
                "faults": [_fault(fault) for fault in faults],
                "warnings": [_fault(fault) for fault in loaded.warnings],
            }
        )
        return NO if faults else DONE
    for fault in faults:
        say(str(fault))
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    for one in loaded.configurations:
        paper().print(f"partition {one.partition}: valid ({_size(one)})")
    return NO if faults else DONE


@app.command
def diff(before: Path, after: Path, /, *, json: Json = False) -> int:
    """Show what one configuration has that another has not; exits 1 when they differ.

    What is compared is the meaning: `1000m` and `1`, or another order of keys, make no difference.

    **Example**

    `evsched config diff queues.yaml queues-next.yaml`

    Args:
        before: A queues.yaml, a manifest or a folder of them.
        after: Another one.
        json: One document a difference, with path, before and after.
    """
    found = list(_differences(_tree(load_or_refuse([before])), _tree(load_or_refuse([after])), ""))
    for path, was, becomes in found:
        if json:
            emit({"path": path, "before": was, "after": becomes})
        else:
            paper().print(f"{path}: {_shown(was)} → {_shown(becomes)}")
    if not found:
        say("no difference")
    return NO if found else DONE


@app.command
async def apply(
    files: Files,
    /,
    *,
    where: Where = HERE,
    name: str | None = None,
    wait: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Check a configuration and propose it to the scheduler, which takes it as a whole or refuses it as a whole.

    **Examples**

    `evsched config apply queues.yaml --wait`

    `evsched config apply queues.yaml --name gpu --partition 1`

    Args:
        files: One queues.yaml, or Kueue manifests in files and folders.
        where: Which log.
        name: The partition to apply, where a queues.yaml holds several.
        wait: Wait until a leader has answered; exits 1 when it refuses.
        json: One document: the id of the proposal, its position, and with --wait the answer.
    """
    loaded = load_or_refuse(files)
    found = [one for one in loaded.configurations if name is None or one.partition == name]
    if len(found) != 1:
        names = ", ".join(one.partition for one in loaded.configurations)
        raise CommandError(f"partitions {names}: found {len(found)} to apply, expected one (choose with --name)")
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    proposed = ConfigurationApplied(
        proposal=f"config:{uuid4().hex}", configuration=found[0], document=loaded.text if len(loaded.text) <= MAX_DOCUMENT else ""
    )
    ((position, answer),) = await propose(where, [proposed], "evsched config apply", wait=wait)
    if json:
        emit({"proposal": proposed.proposal, "position": position} | ({"answer": answer} if wait else {}))
    refused = wait and answer != ACCEPTED
    say(f"partition {found[0].partition}: {answer if wait else 'proposed'}")
    return NO if refused else DONE


def load_or_refuse(files: Sequence[Path]) -> Loaded:
    """Return what these files hold.

    Raises:
        CommandError: Something is wrong with them; every fault is in the message.
    """
    try:
        return load(files)
    except ConfigurationError as error:
        raise CommandError("\n".join(str(fault) for fault in error.faults)) from error


def _fault(fault: Fault) -> dict[str, Any]:
    return {"source": fault.source, "line": fault.line, "path": fault.path, "message": fault.message}


def _size(configuration: Configuration) -> str:
    """Return how much a configuration holds, in words."""
    tree = msgspec.to_builtins(configuration)
    if tree["format"] == "kueue":
        return f"{len(tree.get('cluster_queues', ()))} ClusterQueues, {len(tree.get('cohorts', ()))} Cohorts"
    return f"{_queues(tree['root'])} queues"


def _queues(queue: dict[str, Any]) -> int:
    return 1 + sum(_queues(child) for child in queue.get("queues", ()))


def _tree(loaded: Loaded) -> dict[str, Any]:
    """Return configurations as one tree, by partition."""
    return {one.partition: _by_name(msgspec.to_builtins(one)) for one in loaded.configurations}


def _by_name(tree: Any) -> Any:
    """Return a tree in which lists of named things are mappings by name, so that a difference names the queue."""
    if isinstance(tree, dict):
        return {key: _by_name(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        names = [one.get("name") or one.get("flavor") for one in tree if isinstance(one, dict)]
        if names and len(names) == len(tree) == len(set(names)) and all(names):
            return {name: _by_name(one) for name, one in zip(names, tree, strict=True)}
        return [_by_name(one) for one in tree]
    return tree


def _differences(was: Any, becomes: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, before and after of every leaf that differs; None stands for nothing."""
    if isinstance(was, dict) and isinstance(becomes, dict):
        for key in sorted(was.keys() | becomes.keys()):
            yield from _differences(was.get(key), becomes.get(key), f"{path}.{key}" if path else str(key))
    elif was != becomes:
        yield path, was, becomes


def _shown(value: Any) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()

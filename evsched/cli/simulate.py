"""`evsched simulate`: scenario files on a virtual clock, compared with what they expect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, paper, say, say_error
from evsched.cli.options import Json
from evsched.core.rules import FIRST, NEWEST, RULES
from replays.scenarios.compare import differences
from replays.scenarios.scenario import (
    SUFFIXES,
    Expectation,
    Observation,
    Scenario,
    ScenarioError,
    read_scenario,
)
from replays.scenarios.simulate import simulate as run_scenario


def simulate(
    files: Annotated[list[Path], Parameter(name="FILE", negative=())],
    /,
    *,
    json: Json = False,
    against: Literal["expect", "observed"] = "expect",
    rules: int = NEWEST,
) -> int:
    """Run scenario files on a virtual clock and compare what is decided with what they expect.

    No broker, no cluster and no wall clock is involved, so a queue configuration can be tested in
    CI before it is applied. Exits 1 when a decision differs from the file's expectation, 2 when a
    file breaks the format.

    **Examples**

    `evsched simulate scenario.yaml`

    `evsched simulate --json tests/scenarios`

    Args:
        files: Scenario files (JSON or YAML), or folders of them.
        json: Print one document a scenario: its decisions, who waits, and the digest of the final
            state.
        against: Compare with what must come out, or with what another scheduler was observed to do.
        rules: Version of the rules that decide, the newest by default; see `evsched rules list`.
    """
    if rules not in RULES:
        raise CommandError(f"--rules {rules}: not known, expected {FIRST} to {NEWEST}", MISUSE)
    broken = differing = 0
    paths = list(_paths(files))
    for path in paths:
        try:
            scenario = read_scenario(path)
            document = run_scenario(scenario, rules)
        except ScenarioError as error:
            say_error(f"{path}: {error.problem if str(path) == error.file else error}")
            broken += 1
            continue
        wanted = scenario.expect if against == "expect" else scenario.observed
        found = [] if wanted is None else differences(wanted, document)
        differing += bool(found)
        if json:
            emit(document)
        else:
            _show(scenario, document, wanted, found)
        for difference in found:
            say(f"{path}: {difference}")
    if len(paths) > 1:
        say(
            f"{len(paths)} scenarios: {len(paths) - broken - differing} as expected, {differing} differ, {broken} refused"
        )
    return MISUSE if broken else NO if differing else DONE


def _paths(files: Sequence[Path]) -> Iterator[Path]:
    """Yield the files, and those in the folders among them by name."""
    if not files:
        raise CommandError("no scenario file was given")
    for path in files:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.name.endswith(SUFFIXES))
        else:
            yield path


def _show(
    scenario: Scenario,
    document: dict[str, Any],
    wanted: Expectation | Observation | None,
    found: Sequence[str],
) -> None:
    """Print a scenario's decisions as a table."""
    from evsched.cli.timeline import decision_table  # noqa: PLC0415 - rich costs time that --json need not pay

    verdict = "nothing expected" if wanted is None else "differs" if found else "as expected"
    console = paper()
    console.table(decision_table(scenario.name, document["decisions"]))
    console.print(
        f"waiting: {', '.join(document['pending']) or 'nobody'}; digest {document['digest'][:16]}; {verdict}"
    )
    console.print()

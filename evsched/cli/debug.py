"""`evsched debug`: what a failure of evsched left behind, and a step of a log as a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from events.streams import private_files
from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, paper, printable, say
from evsched.cli.logs import HERE, Where
from evsched.cli.options import Json
from evsched.cli.past import MomentText, SnapshotFolder, history_of, moment_of
from evsched.core.faults import StepFailed
from replays.checking import bundle
from replays.checking.cutting import NoStep, cut
from replays.history.anonymise import CannotAnonymise

app = App(name="debug", help="Make a file of a step that failed, and take it again.")


@app.command(name="bundle")
async def bundle_(
    file: Path,
    /,
    *,
    where: Where = HERE,
    at: Annotated[MomentText | None, Parameter(name="--at")] = None,
    anonymise: Annotated[bool, Parameter(name="--anonymise", negative=())] = False,
    snapshots: SnapshotFolder = None,
) -> int:
    """Write one step of a log to a new file for a bug report; `evsched debug replay` takes it again.

    It holds the state before the step, the proposals, the recorded events, the release, and the
    traceback when the step fails here. Exits 1 when the log holds no such step.

    **Examples**

    `evsched debug bundle fault.json`

    `evsched debug bundle --anonymise --at 1234 odd-decision.json`

    Args:
        file: A new one.
        where: Which log.
        at: The last step that began by this moment; without it, the last one that evsched failed
            at.
        anonymise: Replace all names, consistently, and leave out what people wrote.
        snapshots: Folder of snapshots; with --anonymise the log is read from its beginning.
    """
    moment = None if at is None else moment_of(at)
    async with history_of(where, snapshots) as history:
        try:
            found = await cut(history, moment, nameless=anonymise)
        except NoStep as error:
            raise CommandError(f"log: holds {error}", NO) from error
        except CannotAnonymise as error:
            raise CommandError(f"--anonymise: {error}", NO) from error
    _write(file, bundle.encode(found))
    fails = f"fails at {found.place}" if found.traceback else "does not fail with this release"
    say(f"{file}: the step behind frame {found.frame}, which {fails}")
    return DONE


def _write(file: Path, data: bytes) -> None:
    """Write a new file for its owner alone."""
    try:
        with os.fdopen(private_files.create(file), "wb") as opened:
            opened.write(data)
    except FileExistsError as error:
        raise CommandError(f"{file}: exists already, expected a new file") from error
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error


@app.command
def replay(file: Path, /, *, json: Json = False) -> int:
    """Take the step of a file again, and say whether it comes out the same with this release; exits 1 when it does not.

    A step that failed comes out the same when it fails again, any other when it gives the recorded
    events. The service leaves a file for each of the first ten failures of a log in the folder
    `faults` of its snapshots; `evsched debug bundle` makes one from a log.

    **Example**

    `evsched debug replay faults/2b1c-17.json`

    Args:
        file: As the service or `debug bundle` left it.
        json: One document.
    """
    try:
        found = bundle.read(file.read_bytes())
        outcome = bundle.take(found)
    except bundle.NoBundle as error:
        raise CommandError(f"{file}: {error}", MISUSE) from error
    fault = outcome if isinstance(outcome, StepFailed) else None
    same = bundle.is_reproduced(found, outcome)
    facts = {
        "release": found.release, "frame": found.frame, "kind": found.kind, "subject": found.subject,
        "place": found.place, "reason": found.reason, "proposals": len(found.proposals),
        "reproduced": same, "now": None if fault is None else f"{fault.place}: {fault.reason}",
    }  # fmt: skip
    if json:
        emit(facts)
    else:
        console = paper()
        for name, value in facts.items():
            shown = ("no", "yes")[value] if isinstance(value, bool) else value
            said = "-" if shown in {None, ""} else shown
            console.print(printable(f"{name:<11} {said}"), markup=False)
    return DONE if same else NO

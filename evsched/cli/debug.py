"""`evsched debug`: what a failure of evsched left behind."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from evsched.cli.answers import DONE, MISUSE, NO, CommandError, emit, paper, printable
from evsched.cli.options import Json
from replays.checking import bundle

app = App(name="debug", help="Look at what a failure of evsched left behind.")


@app.command
def replay(file: Path, /, *, json: Json = False) -> int:
    """Take the step of a failure again, and say whether it fails with this release; exits 1 when it does not.

    The service leaves a file for each of the first ten failures of a log in the folder `faults` of
    its snapshots. It holds the state before the step, and names with it.

    **Example**

    `evsched debug replay faults/2b1c-17.json`

    Args:
        file: As the service left it.
        json: One document.
    """
    try:
        found = bundle.read(file.read_bytes())
        fault = bundle.reproduce(found)
    except bundle.NoBundle as error:
        raise CommandError(f"{file}: {error}", MISUSE) from error
    facts = {
        "release": found.release, "frame": found.frame, "kind": found.kind, "subject": found.subject,
        "place": found.place, "reason": found.reason, "proposals": len(found.proposals),
        "reproduced": fault is not None, "now": None if fault is None else f"{fault.place}: {fault.reason}",
    }  # fmt: skip
    if json:
        emit(facts)
    else:
        console = paper()
        for name, value in facts.items():
            console.print(printable(f"{name:<11} {value}"), markup=False)
    return DONE if fault is not None else NO

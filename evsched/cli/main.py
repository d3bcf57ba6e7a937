"""The command line: `evsched COMMAND`.

Every command stands in a module of its own that is imported only when it is called, so that a quick
command starts quickly. Data goes to the standard output and everything that is said beside it to
the standard error. The exit code is 0 when the work is done, 1 when the answer is no, 2 when the
call or a file given to it is at fault, 3 when the log or the broker cannot be reached or is
damaged, 70 when evsched itself is (a bug), and 130 after Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cyclopts import App, CycloptsError

from evsched.cli.answers import CRASHED, INTERRUPTED, MISUSE, CommandError, say, say_error
from evsched.cli.interrupts import Handler, carry_out

if TYPE_CHECKING:
    from rich.console import Console

COMMANDS = {
    "run": (
        "evsched.cli.run:run",
        "Run the scheduler: lead where nobody does, stand by elsewhere.",
    ),
    "demo": (
        "evsched.cli.demo:demo",
        "Tell the story: preemption, a lowered maximum, a kill, the same digest.",
    ),
    "serve": (
        "evsched.cli.serve:serve",
        "Serve the past and the present to browsers and programs.",
    ),
    "simulate": (
        "evsched.cli.simulate:simulate",
        "Run scenario files on a virtual clock and compare.",
    ),
    "submit": ("evsched.cli.submit:submit", "Propose events from JSON lines."),
    "emulate": (
        "evsched.cli.emulate:emulate",
        "Behave like a cluster: evict, end and re-create what runs.",
    ),
    "agent": ("evsched.cli.agent:app", "Connect the log to a real cluster."),
    "status": ("evsched.cli.status:status", "Show what the scheduler knows now."),
    "explain": ("evsched.cli.explain:explain", "Why something waits, had to go, or was spared."),
    "whatif": ("evsched.cli.whatif:whatif", "What another configuration would have changed."),
    "forecast": (
        "evsched.cli.forecast:forecast",
        "How long an ask, or what waits in a queue, will still wait.",
    ),
    "shadow": (
        "evsched.cli.shadow:app",
        "Compare evsched with the scheduler of a recorded cluster.",
    ),
    "plan": ("evsched.cli.whatif:plan", "What would become of an ask, without submitting it."),
    "log": ("evsched.cli.log_files:app", "Read the log, follow it, export it, check it."),
    "topics": (
        "evsched.cli.topics:app",
        "Make the topics of a log, and verify that nothing in them is ever lost.",
    ),
    "verify": (
        "evsched.cli.verify:verify",
        "Decide the whole log again and compare, event by event.",
    ),
    "at": ("evsched.cli.at:at", "Show the state at any moment of the log."),
    "diff": ("evsched.cli.diff:diff", "Show what changed between two moments."),
    "bisect": ("evsched.cli.bisect:bisect", "Find the first event after which something is true."),
    "project": (
        "evsched.cli.project:app",
        "Keep read models of the log, for audits and for any SQL.",
    ),
    "audit": ("evsched.cli.audit:audit", "Answer questions about the past from the read model."),
    "dashboards": (
        "evsched.cli.dashboards:app",
        "Write dashboards, rules and alerts for Grafana and Prometheus.",
    ),
    "rules": ("evsched.cli.rules:app", "Show the rules that decide, and adopt newer ones."),
    "debug": ("evsched.cli.debug:app", "Make a file of a step that failed, and take it again."),
    "config": ("evsched.cli.config:app", "Check, compare and apply configurations."),
    "import": ("evsched.cli.importing:app", "Make a log of what another scheduler did."),
    "completion": ("evsched.cli.completion:app", "Complete commands and options in your shell."),
}
"""By name: where the command stands, and its line in the overview."""


def command_line(arguments: Sequence[str]) -> App:
    """Return the command line.

    The overview names every command from the table, without importing any; the command that is
    called describes itself.
    """
    app = App(
        name="evsched",
        help="An event-sourced cluster scheduler: the log is the scheduler.",
        help_epilogue="Exit codes: 0 done, 1 the answer is no, 2 the call or a file given to it is at fault, 3 log or broker "
        "unreachable or damaged, 70 a bug in evsched (--debug shows where), 130 Ctrl-C. `evsched COMMAND --help` shows examples.",
        help_format="markdown",
        version=lambda: f"evsched {version('evsched')}",
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        help_on_error=False,
        # Help for a pager that is closed early must not fail; quick commands need no console of
        # their own.
        console=_help_paper() if not arguments or {"--help", "-h"} & set(arguments) else None,
    )
    for name, (path, line) in COMMANDS.items():
        app.command(path, name=name, help=None if name in arguments else line)
    return app


def main(arguments: Sequence[str] | None = None, *, at_once: Handler | None = None) -> None:
    """Run the command line and exit with its code; ``arguments`` are those of the process when None, ``at_once`` as for `run`."""
    # Python has none where the process got none (`>&-`), and then some write elsewhere and some
    # fail.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    code = run(arguments, at_once=at_once)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None, *, at_once: Handler | None = None) -> int:
    """Run one command and return its exit code.

    ``--debug`` anywhere, or EVSCHED_DEBUG=1 in the environment, shows the whole traceback of a bug.

    Args:
        arguments: Those of the process when None.
        at_once: The handler by which Ctrl-C ends the process where there is nothing to put in
            order, when the process has such a one in force (`evsched.__main__`); None leaves
            signals alone.
    """
    tokens = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in tokens or os.environ.get("EVSCHED_DEBUG", "0") not in {"", "0"}
    tokens = [one for one in tokens if one != "--debug"]
    if not debug:
        # The Kafka client talks of everything it tries; what comes of it is said once, by the
        # command.
        logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    try:
        command, bound, _ = command_line(tokens).parse_args(tokens)
        answer = carry_out(command, bound, at_once)
        sys.stdout.flush()  # here, where it can still be said that this failed
    except CommandError as error:
        say_error(str(error), error.more)
        return error.code
    except CycloptsError as error:
        say_error(f"{' '.join(str(error).split())} (see `evsched --help`)")
        return MISUSE
    except KeyboardInterrupt:
        say_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _drop_output()
        return 0
    except OSError as error:
        # A file or folder that cannot be used as it was asked for: no room, no right, no such
        # folder.
        if debug:
            _say_traceback(error)
        say_error(f"{error.filename or 'output'}: {error.strerror or error}")
        return MISUSE
    except Exception as error:  # noqa: BLE001 - a bug must not look like the answer no
        _say_bug(error, debug=debug)
        return CRASHED
    return answer if isinstance(answer, int) else 0


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _drop_output() -> None:
    """Let nothing more be written, not even when Python closes the stream: that would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help_paper() -> Console:
    from evsched.cli.consoles import HelpPaper  # noqa: PLC0415 - only help needs it

    return HelpPaper()


def _say_traceback(error: Exception) -> None:
    for line in "".join(traceback.format_exception(error)).splitlines():
        say(line)


def _say_bug(error: Exception, *, debug: bool) -> None:
    """Say that evsched is at fault, and where; nothing that was acknowledged is lost by it."""
    if debug:
        _say_traceback(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    kind = type(error).__name__
    more = "" if debug else "; --debug shows more"
    say_error(f"a bug in evsched: {kind}: {error} ({place}); what was acknowledged is safe{more}")

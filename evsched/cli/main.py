"""The command line: `evsched COMMAND`.

Every command stands in a module of its own that is imported only when it is called, so that a quick command starts quickly. Data
goes to the standard output and everything that is said beside it to the standard error. The exit code is 0 when the work is done,
1 when the answer is no, 2 when the call or a file given to it is at fault, 3 when the log or the broker cannot be reached or is
damaged, and 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from evsched.cli.answers import INTERRUPTED, MISUSE, CommandError, say_error

COMMANDS = {
    "run": ("evsched.cli.run:run", "Run the scheduler: lead where nobody does, stand by elsewhere."),
    "demo": ("evsched.cli.demo:demo", "Tell the story: preemption, a lowered maximum, a kill, the same digest."),
    "simulate": ("evsched.cli.simulate:simulate", "Run scenario files on a virtual clock and compare."),
    "submit": ("evsched.cli.submit:submit", "Propose events from JSON lines."),
    "import": ("evsched.cli.imports:app", "Turn a recorded cluster into proposals."),
    "emulate": ("evsched.cli.emulate:emulate", "Behave like a cluster: evict, end and re-create what runs."),
    "status": ("evsched.cli.status:status", "Show what the scheduler knows now."),
    "explain": ("evsched.cli.explain:explain", "Why something waits, had to go, or was spared."),
    "whatif": ("evsched.cli.whatif:whatif", "What another configuration would have changed."),
    "plan": ("evsched.cli.whatif:plan", "What would become of an ask, without submitting it."),
    "log": ("evsched.cli.log_files:app", "Read the log, follow it, export it, check it."),
    "topics": ("evsched.cli.topics:app", "Make the topics of a log, and verify that nothing in them is ever lost."),
    "verify": ("evsched.cli.verify:verify", "Decide the whole log again and compare, event by event."),
    "at": ("evsched.cli.at:at", "Show the state at any moment of the log."),
    "diff": ("evsched.cli.diff:diff", "Show what changed between two moments."),
    "config": ("evsched.cli.config:app", "Check, compare and apply configurations."),
}
"""By name: where the command stands, and its line in the overview."""


def command_line(arguments: Sequence[str]) -> App:
    """Return the command line.

    The overview names every command from the table, without importing any; the command that is called describes itself.
    """
    app = App(
        name="evsched",
        help="An event-sourced cluster scheduler: the log is the scheduler.",
        help_epilogue="Exit codes: 0 done, 1 the answer is no, 2 misuse, 3 log or broker unreachable or damaged. "
        "`evsched COMMAND --help` shows examples.",
        help_format="markdown",
        version=lambda: f"evsched {version('evsched')}",
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        help_on_error=False,
    )
    for name, (path, line) in COMMANDS.items():
        app.command(path, name=name, help=None if name in arguments else line)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; ``arguments`` are those of the process when None."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    tokens = sys.argv[1:] if arguments is None else list(arguments)
    try:
        answer = command_line(tokens)(tokens)
    except CommandError as error:
        say_error(str(error))
        return error.code
    except CycloptsError as error:
        say_error(f"{' '.join(str(error).split())} (see `evsched --help`)")
        return MISUSE
    except KeyboardInterrupt:
        say_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more can be written, not even when Python closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return answer if isinstance(answer, int) else 0

"""Runs a command and kills it as soon as whoever started this guard is gone.

usage: guard.py COMMAND [ARGUMENT ...], with a pipe as standard input that the caller keeps open and
never writes to.

A test process can die in ways that run no clean-up of its own (SIGKILL, a time limit, a crash). The
end of its pipe is noticed in all of them, so no broker outlives the tests that wanted it.
"""

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input does; return its exit code."""
    # The command's clients are told to stop by signals to the group; the guard itself waits for the
    # command to follow them.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_default_signals)  # noqa: PLW1509 - no threads yet

    def watch() -> None:
        while os.read(0, 1):
            pass
        child.kill()

    threading.Thread(target=watch, daemon=True).start()
    return child.wait()


def _default_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

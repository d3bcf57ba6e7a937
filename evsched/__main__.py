"""Where the process `evsched` starts: by the script of that name, or as `python -m evsched`.

Python answers Ctrl-C by an exception, and code that is not made for one (modules being loaded, the
interpreter coming to its end) ends in a traceback, or swallows it. So until a command works, and
again when it has done its work, Ctrl-C simply ends the process: nothing has to be put in order
then. That is settled before anything is loaded, which takes some tenths of a second.

This is only for the process. To call the command line from Python use `evsched.cli.main`, which
leaves signals alone.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself takes milliseconds to load, in which Ctrl-C may come
import os


def _end(*_: object) -> None:
    # Not the signal's default action: the first process of a container would not heed that.
    os._exit(130)


def main() -> None:
    """Load the command line, run it with the arguments of the process, and exit with its code."""
    at_once = None
    try:
        # Where Ctrl-C is ignored (a job in the background of a shell), it stays so.
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            at_once = _end
            _signal.signal(_signal.SIGINT, at_once)
    except KeyboardInterrupt:
        os._exit(130)
    from evsched.cli.main import main as command_line  # noqa: PLC0415 - this is what takes long

    command_line(at_once=at_once)


if __name__ == "__main__":
    main()

"""The "openb" trace of a real GPU cluster, for benchmarks and long runs: its pods and nodes as proposals."""

COMMAND = {
    "openb": ("benchmarks.openb.importing:openb", "Propose the nodes and pods of the trace.")
}
"""As an entry of `evsched.cli.main.COMMANDS`."""

"""Propose the openb trace: ``python -m benchmarks.openb NODES PODS``, with the options and errors of an evsched command."""

import sys

from benchmarks.openb import COMMAND
from evsched.cli.main import COMMANDS, main

COMMANDS |= COMMAND
main([*COMMAND, *sys.argv[1:]])

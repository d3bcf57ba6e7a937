"""Which process is which on one machine, so that a standby on it need not wait for the lease of a leader that was killed.

A process is named by the machine's boot, its namespace of process ids, its number in it, and when
it started: no other process ever has the same name. Only who shares boot and namespace can tell
whether it is gone; everyone else, and every system without ``/proc``, waits for the lease.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_DEAD = frozenset("ZX")


def own_name() -> str:
    """Return the name of this process; empty where the system has no ``/proc``."""
    found = _started(os.getpid())
    place = _place()
    return f"{place}/{os.getpid()}/{found[1]}" if found is not None and place else ""


def surely_gone(name: str) -> bool:
    """Tell whether the process of this name lived on this machine and has ended; False when nobody can say."""
    place, number, started = ["", "", *name.rsplit("/", 2)][-3:]
    if not place or place != _place() or not number.isdecimal():
        return False
    found = _started(int(number))
    return found is None or found[0] in _DEAD or found[1] != started


def _place() -> str:
    """Return boot and namespace; empty when they cannot be had."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(number: int) -> tuple[str, str] | None:
    """Return a process's state letter and start time; None when there is no such process."""
    try:
        text = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything; what follows the last one is
    # regular.
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]

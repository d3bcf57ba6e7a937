"""Once faults have ended somebody leads and goes on leading, all believe the same, and what fits is bound."""

from __future__ import annotations

from typing import Any

from tests.simulation.checkers.found import Found
from tests.simulation.checkers.tasks import Ledger
from tests.simulation.checkers.truth import Step

SOON_MS = 3000


def check_leader(steps: list[Step], outcome: Any, settled_ms: int) -> None:
    """Hold the time after the faults against what was promised.

    Raises:
        Found: A machine gave up, nobody led in time, or the leader changes without a reason.
    """
    if outcome.failures:
        raise Found("liveness", outcome.failures[0])
    if outcome.leader_after_s is None:
        raise Found("liveness", "nobody leads within three leases")
    after = outcome.calm + settled_ms
    before = [step.term for step in steps if outcome.arrived[step.place] <= after][-1:]
    terms = sorted({*before, *(one.term for one in steps if outcome.arrived[one.place] > after)})
    if len(terms) > 1:
        raise Found("liveness", f"terms {terms} though nothing goes wrong")


def check_agreement(steps: list[Step], ledger: Ledger, outcome: Any) -> None:
    """Hold the machines against each other and against the log.

    Raises:
        Found: One of them is behind, or believes something else.
    """
    for one in outcome.replicas:
        if one.frame != steps[-1].hash:
            raise Found("liveness", f"machine {one.machine} is behind")
        if one.running != frozenset(ledger.running):
            raise Found("liveness", f"machine {one.machine} has other allocations than the log")
    if len({one.digest for one in outcome.replicas}) > 1:
        raise Found("liveness", "machines that read the same believe different things")


def check_asks(ledger: Ledger, now: int, web_cores: int) -> None:
    """Look for an ask of the tenants that waits though it fits: there is a node with room for all.

    Raises:
        Found: There is one.
    """
    used = sum(
        amounts["vcore"] for queue, _, amounts in ledger.running.values() if queue == "root.web"
    )
    for name, (wanted, since) in ledger.waiting.items():
        if now - since < SOON_MS:
            continue
        if wanted["queue"] == "root.research":
            raise Found("liveness", f"ask {name} waits, nothing stands in its way")
        if used + wanted["resources"]["vcore"] <= web_cores * 1000:
            raise Found("liveness", f"ask {name} waits, its queue has room for it")

"""Decisions as a person reads them: when, what, about whom, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evsched.cli.cells import amounts
from evsched.cli.tables import PlainTable

_STYLES = {
    "AllocationBound": "green",
    "BindingObserved": "green",
    "PreemptionDecided": "bold yellow",
    "QuotaPreemptionDecided": "bold yellow",
    "QuotaPreemptionScheduled": "cyan",
    "InputRejected": "red",
    "PreemptionFailed": "dim",
}


def decision_table(title: str, decisions: Iterable[Mapping[str, Any]]) -> PlainTable:
    """Return a table of decision documents, as `replays.scenarios.simulate` makes them."""
    table = PlainTable(title=title)
    table.add_column("at", justify="right")
    for name in ("decision", "about", "why"):
        table.add_column(name)
    for decision in decisions:
        if decision["type"] == "CycleStarted":
            continue
        kind = str(decision["type"])
        about, why = described(decision)
        table.add_row(f"{decision['at']} s", (kind, _STYLES.get(kind, "")), about, why)
    return table


def described(decision: Mapping[str, Any]) -> tuple[str, str]:
    """Return whom a decision is about, and why it was taken."""
    if decision["type"] == "ApplicationPlaced":
        return f"{decision['application']} in {decision['queue']}", _why(decision, ())
    subject = str(
        decision.get("ask")
        or decision.get("queue")
        or decision.get("allocation")
        or decision.get("application")
        or ""
    )
    if decision.get("node"):
        subject += f" on {decision['node']}"
    if decision.get("flavors"):
        subject += " with " + ", ".join(
            f"{resource}: {flavor}" for resource, flavor in sorted(decision["flavors"].items())
        )
    victims = decision.get("victims") or ()
    if victims:
        subject += " ← " + ", ".join(_victim(victim) for victim in victims)
    return subject.strip(), _why(decision, victims)


def _victim(victim: Any) -> str:
    return f"{victim['id']} ({victim['queue']})" if isinstance(victim, Mapping) else str(victim)


def _why(decision: Mapping[str, Any], victims: Iterable[Any]) -> str:
    parts = [str(decision["reason"])] if decision.get("reason") else []
    if decision.get("algorithm"):
        parts.append(f"{decision['algorithm']} preemption")
    parts += sorted({str(victim["reason"]) for victim in victims if isinstance(victim, Mapping)})
    if decision.get("target"):
        parts.append("above the maximum: " + amounts(decision["target"]))
    if decision.get("unmet"):
        parts.append("stays: " + amounts(decision["unmet"]))
    if "fires_at" in decision:
        parts.append(f"will fire at {decision['fires_at']} s")
    if decision["type"] == "ApplicationPaused":
        parts.append(f"{decision['asks']} of its asks fit on no node; until {decision['until']} s")
    if decision.get("rule"):
        parts.append(f"placement rule {decision['rule']}")
    return "; ".join(parts)

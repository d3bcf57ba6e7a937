"""Dashboards for Grafana, and recording rules and alerts for Prometheus; `evsched dashboards export` writes them out."""

from __future__ import annotations

from pathlib import Path

FILES = (
    "evsched-queues.json",
    "evsched-preemptions.json",
    "evsched-rules.yaml",
    "evsched-alerts.yaml",
)
"""By their names in this folder."""


def read(name: str) -> str:
    """Return the text of one of `FILES`."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")

"""Sentences about what a cluster's own scheduler was seen to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def binding_observed(facts: Mapping[str, Any]) -> str:
    """Return who bound an ask, and where to; with Kueue there is no node."""
    return f"bound by {facts['scheduler'] or 'the cluster'} to {facts['node'] or 'its quota'}"


def eviction_observed(facts: Mapping[str, Any]) -> str:
    """Return who evicts an allocation, for whom and why, as far as that is known."""
    for_whom = f" for {facts['ask']}" if facts["ask"] else ""
    why = f": {facts['reason']}" if facts["reason"] else ""
    return f"evicted by {facts['scheduler'] or 'the cluster'}{for_whom}{why}"

"""Sentences about Kubernetes: what its scheduler was seen to do, and why its nodes do not take a pod."""

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


_REFUSED = {
    "taint": "taint {detail} not tolerated on {nodes}",
    "selector": "nodeSelector {detail} not matched by {nodes}",
    "affinity": "required node affinity not matched by {nodes}",
    "anti-affinity": "anti-affinity to what runs on {nodes}",
}


def refusals(facts: Mapping[str, Any], before: str = "") -> str:
    """Return how many nodes do not take a pod, and why, in the order of `node_conditions.split`.

    Empty when all take it; else ``before`` stands before the sentence.
    """
    if not facts["refused"]:
        return ""
    reasons = "; ".join(_REFUSED[one["rule"]].format(**one) for one in facts["refused"])
    takes = facts["nodes"] - sum(one["nodes"] for one in facts["refused"])
    return f"{before}Of {facts['nodes']} nodes {takes or 'none'} may take its pod: {reasons}."


SHADOW = {
    ("other-node", "binding"): "evsched binds it to {what}",
    ("other-order", "binding"): "evsched serves others first",
    ("only-theirs", "binding"): "evsched does not bind it here",
    ("only-ours", "binding"): "evsched binds it to {what}; the cluster never does",
    ("not-modelled", "binding"): "not decided by: {what}",
    ("other-victims", "eviction"): "evsched evicts {what}",
    ("other-order", "eviction"): "evsched evicts for others first",
    ("only-theirs", "eviction"): "evsched evicts nobody for it here",
    ("only-ours", "eviction"): "evsched evicts {what} for it; the cluster never does",
    ("not-modelled", "eviction"): "not decided by: {what}",
}
"""Why evsched decides otherwise than the cluster, where no explanation of the ask says more."""

"""What is wrong with a pod or a taint that somebody proposes, beyond what its types say.

The API server refuses the same; a pod that it accepted passes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.pods import NODE_NAME, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from events.pods import LabelRequirement, PodFacts, Taint, Toleration


def names(pod: PodFacts) -> Iterator[str]:
    """Yield every text of a pod."""
    yield pod.namespace
    yield pod.uid
    yield pod.owner_uid
    for labels in (pod.labels, pod.node_selector):
        yield from labels
        yield from labels.values()
    for one in (*_of_nodes(pod), *_of_pods(pod)):
        yield one.key
        yield from one.values
    for toleration in pod.tolerations:
        yield toleration.key
        yield toleration.value
    for term in pod.anti_affinity:
        yield from term.namespaces
    yield from pod.unmodelled


def names_of_taints(taints: Iterable[Taint]) -> Iterator[str]:
    """Yield every text of some taints."""
    for taint in taints:
        yield taint.key
        yield taint.value


def problem(pod: PodFacts) -> str | None:
    """Return what contradicts itself in a pod, with what was expected; None when nothing does."""
    for term in pod.node_affinity:
        for one in term.fields:
            if one.key != NODE_NAME or one.operator not in {"In", "NotIn"} or len(one.values) != 1:
                return (
                    f"node_affinity: field {one.key} {one.operator} with {len(one.values)} values,"
                    f" expected {NODE_NAME} In or NotIn with one value"
                )
    found = (_values_problem(one) for one in (*_of_nodes(pod), *_of_pods(pod)))
    compared = (
        f"anti_affinity: {one.key} {one.operator}, expected In, NotIn, Exists or DoesNotExist"
        for one in _of_pods(pod)
        if one.operator in {"Gt", "Lt"}
    )
    tolerated = (_toleration_problem(one) for one in pod.tolerations)
    return next((text for text in (*found, *compared, *tolerated) if text is not None), None)


def _of_nodes(pod: PodFacts) -> Iterator[LabelRequirement]:
    """Yield the conditions on nodes."""
    for term in pod.node_affinity:
        yield from term.expressions
        yield from term.fields


def _of_pods(pod: PodFacts) -> Iterator[LabelRequirement]:
    """Yield the conditions on other pods."""
    for term in pod.anti_affinity:
        yield from term.selector


def _values_problem(one: LabelRequirement) -> str | None:
    """Return how the values of a condition do not go with its operator."""
    subject, count = f"condition {one.key} {one.operator}", len(one.values)
    if one.operator in {"In", "NotIn"}:
        return None if count else f"{subject}: has no values, expected at least one"
    if one.operator in {"Exists", "DoesNotExist"}:
        return f"{subject}: has {count} values, expected none" if count else None
    if count != 1 or integer(one.values[0]) is None:
        return f"{subject}: has values {list(one.values)[:3]}, expected one integer"
    return None


def _toleration_problem(one: Toleration) -> str | None:
    """Return how a toleration contradicts itself."""
    if not one.key and one.operator != "Exists":
        return "toleration: has no key and operator Equal, expected Exists"
    if one.operator == "Exists" and one.value:
        return f"toleration {one.key}: has value {one.value} and operator Exists, expected none"
    return None

"""Kubernetes objects as they lie in files: lists unfolded, a ConfigMap of YuniKorn opened.

`kubectl get -o yaml` writes one object, or a list of them; Helm charts and folders hold objects of
others beside ours. Those are passed over, with one note that says how many.
"""

from __future__ import annotations

from collections.abc import Iterator

from evsched.config.document import ParsedNode, parse_yaml
from evsched.config.reading import Reader, get

CONFIG_MAPS = ("yunikorn-defaults", "yunikorn-configs")
"""The ConfigMaps that YuniKorn reads; what the later one says counts before what the earlier one does."""

POLICY_GROUP = "service.policyGroup"
DEFAULT_GROUP = "queues"
MAX_SHOWN = 8
"""So many kinds of a long list are named in a message."""


def unfolded(documents: tuple[ParsedNode, ...]) -> tuple[ParsedNode, ...]:
    """Return the objects in these documents: a list stands for its items, all else for itself."""
    return tuple(one for document in documents for one in _items(document))


def _items(document: ParsedNode) -> Iterator[ParsedNode]:
    """Yield the objects of one document. Lists in lists are bounded by the depth of any document."""
    kind = get(document.fields, "kind").text
    items = document.fields.get("items")
    # `kind: List` of kubectl, or the ClusterQueueList of the API: both hold their objects in items.
    if kind.endswith("List") and items is not None and items.kind == "list":
        for item in items.items:
            yield from _items(item)
        return
    yield document


def is_config_map(document: ParsedNode) -> bool:
    """Tell whether a document is a ConfigMap from which YuniKorn reads its queues."""
    if get(document.fields, "kind").text != "ConfigMap":
        return False
    name = get(get(document.fields, "metadata").fields, "name").text
    return name in CONFIG_MAPS or f"{DEFAULT_GROUP}.yaml" in get(document.fields, "data").fields


def opened(documents: tuple[ParsedNode, ...], reader: Reader) -> ParsedNode | None:
    """Return the queues.yaml inside of ConfigMaps; None where there is none, with a fault.

    Args:
        documents: ConfigMaps of `is_config_map`, at least one.
        reader: Takes the faults, and the warnings for settings of the service beside the queues.

    Raises:
        ConfigurationError: The text inside is no YAML.
    """
    found = max(documents, key=_precedence)
    data = reader.mapping(get(found.fields, "data"))
    group = get(data, POLICY_GROUP).text or DEFAULT_GROUP
    key = f"{group}.yaml"
    text = get(data, key)
    if text.kind != "text":
        place = found.fields.get("data", found)
        reader.refuse(place, f"found no key {key}, expected the text of a queues.yaml there")
        return None
    for other, value in data.items():
        if other not in {key, POLICY_GROUP}:
            reader.warn(value, "is a setting of YuniKorn's service and has no effect")
    inner = parse_yaml(text.text, text.source, inside=text)
    if len(inner) != 1:
        count = f"{len(inner)} documents"
        reader.refuse(text, f"found {count if inner else 'nothing'}, expected one queues.yaml")
        return None
    return inner[0]


def _precedence(document: ParsedNode) -> tuple[int, int]:
    """Return the sort key of a ConfigMap; one that only looks like YuniKorn's comes last."""
    name = get(get(document.fields, "metadata").fields, "name").text
    return (CONFIG_MAPS.index(name) if name in CONFIG_MAPS else -1, document.line)


def pass_over(
    documents: tuple[ParsedNode, ...], reader: Reader, groups: tuple[str, ...]
) -> tuple[ParsedNode, ...]:
    """Return the objects of some API groups; one warning says which others there were.

    Args:
        documents: In their order.
        reader: Takes the warning.
        groups: The groups that are kept. What names no version, or no kind, is kept as well, so
            that its reader refuses it.
    """
    kept: list[ParsedNode] = []
    others: list[ParsedNode] = []
    for document in documents:
        version, kind = get(document.fields, "apiVersion").text, get(document.fields, "kind").text
        ours = not version or not kind or version.partition("/")[0] in groups
        (kept if ours else others).append(document)
    if others and kept:
        kinds = list(dict.fromkeys(get(one.fields, "kind").text for one in others))
        more = f" and {len(kinds) - MAX_SHOWN} more" if len(kinds) > MAX_SHOWN else ""
        what = "object" if len(others) == 1 else "objects"
        reader.warn(
            others[0],
            f"{len(others)} {what} of other API groups passed over"
            f" ({', '.join(kinds[:MAX_SHOWN])}{more})",
        )
    return tuple(kept) if kept else tuple(others)

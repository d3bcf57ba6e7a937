"""The resource groups of a ClusterQueue or Cohort, and fair sharing weights."""

from __future__ import annotations

from events.configuration import FlavorQuotaSpec, QuotaSpec, ResourceGroupSpec
from evsched.config.document import ParsedNode
from evsched.config.reading import Reader, get
from evsched.core.quantity import NANO, parse_kubernetes, weight_nano


def read_groups(node: ParsedNode, reader: Reader) -> tuple[ResourceGroupSpec, ...]:
    """Return resource groups with their flavors in manifest order."""
    return tuple(_group(item, reader) for item in reader.items(node))


def read_weight(node: ParsedNode, reader: Reader) -> int:
    """Return the weight of ``fairSharing`` in billionths; 1 when it is absent."""
    return reader.parsed(get(reader.mapping(node, ("weight",)), "weight"), weight_nano, NANO)


def _group(node: ParsedNode, reader: Reader) -> ResourceGroupSpec:
    """Return one resource group."""
    fields = reader.mapping(node, ("coveredResources", "flavors"))
    for key in ("coveredResources", "flavors"):
        if key not in fields:
            reader.refuse(node, f"found no {key}, expected a list")
    return ResourceGroupSpec(
        resources=reader.texts(get(fields, "coveredResources")),
        flavors=tuple(_flavor(item, reader) for item in reader.items(get(fields, "flavors"))),
    )


def _flavor(node: ParsedNode, reader: Reader) -> FlavorQuotaSpec:
    """Return the quotas of one flavor."""
    fields = reader.mapping(node, ("name", "resources"))
    if "name" not in fields:
        reader.refuse(node, "found a flavor without a name, expected one")
    quotas = {}
    for item in reader.items(get(fields, "resources")):
        resource = reader.mapping(item, ("name", "nominalQuota", "borrowingLimit", "lendingLimit"))
        for key in ("name", "nominalQuota"):
            if key not in resource:
                reader.refuse(item, f"found no {key}, expected one")
        name = reader.text(get(resource, "name"))
        if name in quotas:
            reader.refuse(item, f"found the resource {name} a second time, expected once")
        quotas[name] = QuotaSpec(
            nominal=_amount(name, get(resource, "nominalQuota"), reader) or 0,
            borrowing_limit=_amount(name, get(resource, "borrowingLimit"), reader),
            lending_limit=_amount(name, get(resource, "lendingLimit"), reader),
        )
    return FlavorQuotaSpec(flavor=reader.text(get(fields, "name")), quotas=quotas)


def _amount(resource: str, node: ParsedNode, reader: Reader) -> int | None:
    """Return an amount in base units; None when it is absent."""
    if node.kind == "null":
        return None
    return reader.parsed(node, lambda text: parse_kubernetes(resource, text), 0)

"""queues.yaml to the model: strict keys, exact amounts, one configuration per partition.

What is written here is only the shape of the document. Whether what it says makes sense (a maximum
below a guarantee, two queues of one name) is judged on the model by
`evsched.core.configuration_checks`, which also judges configurations that arrive as events; the
`Places` kept here lead from there back to file and line.

Three spellings are taken besides those of the real loader: the delay of quota enforcement among the
resources, in seconds, and the properties of a queue directly under the queue, both as the seeds
show them; and our own settings under the partition's ``preemption``. A maximum of zero counts as
not set, as it does for the real loader; a guarantee of zero stays one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from events.bounds import MAX_COUNT, MAX_SPAN
from events.configuration import (
    Amounts,
    FilterSpec,
    LimitSpec,
    PaceSpec,
    PlacementRuleSpec,
    QueueSpec,
    TemplateSpec,
    YunikornSpec,
)
from evsched.config.document import ParsedNode
from evsched.config.places import Places
from evsched.config.reading import Reader, get
from evsched.core.duration import DurationError, parse_duration_ms
from evsched.core.quantity import QuantityError, parse_yunikorn
from evsched.core.yunikorn import settings

MAX_INT32 = 2**31 - 1

_QUEUE_KEYS = (
    "name",
    "parent",
    "queues",
    "resources",
    "maxapplications",
    "adminacl",
    "submitacl",
    "childtemplate",
    "limits",
    "properties",
)
_RESOURCE_KEYS = ("guaranteed", "max", settings.QUOTA_DELAY)
_PARTITION_KEYS = (
    "name",
    "queues",
    "placementrules",
    "limits",
    "preemption",
    "nodesortpolicy",
    "usergroupresolver",
)
_PREEMPTION_KEYS = (
    "enabled",
    "quotapreemptionenabled",
    "quotapreemptionmiss",
    "quota.preemption.miss",
    "pace",
    "pace.interval",
    "pace.victims",
    "pace.resources",
    "eviction",
    "eviction.grace",
    "eviction.attempts",
    "cost",
)
_WEIGHT = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,3}))?")


def read_queues(document: ParsedNode, reader: Reader, places: Places) -> tuple[YunikornSpec, ...]:
    """Return the partitions of a queues.yaml document; faults are left with the reader, places with the places."""
    fields = reader.mapping(document, ("partitions", "checksum"))
    get(fields, "checksum")  # written by the real scheduler, of no meaning here
    partitions = get(fields, "partitions")
    if partitions.kind in {"null", "list"} and not partitions.items:
        reader.refuse(
            document if partitions.kind == "null" else partitions,
            "found no partitions, expected a list of at least one",
        )
    return tuple(_partition(node, reader, places) for node in reader.items(partitions))


def _partition(node: ParsedNode, reader: Reader, places: Places) -> YunikornSpec:
    """Return one partition."""
    fields = reader.mapping(node, _PARTITION_KEYS)
    name = reader.text(get(fields, "name"))
    name = "default" if name.lower() in {"", "default"} else name
    scope = places.within(name)
    scope.note(f"partition {name}", get(fields, "name"), node, fields)
    preemption = _preemption(get(fields, "preemption"), reader)
    sorting = reader.mapping(get(fields, "nodesortpolicy"), ("type", "resourceweights"))
    resolver = reader.mapping(get(fields, "usergroupresolver"), ("type",))
    limits = _limits(get(fields, "limits"), reader)
    weights = reader.mapping(get(sorting, "resourceweights"))
    return YunikornSpec(
        partition=name,
        root=_root(node, fields, limits, reader, scope),
        placement_rules=tuple(
            _rule(item, reader, 0) for item in reader.items(get(fields, "placementrules"))
        ),
        limits=limits,
        node_sort_policy=reader.word(
            get(sorting, "type"), {"": "fair", "fair": "fair", "binpacking": "binpacking"}, "fair"
        ),
        node_sort_weights={
            key: reader.parsed(value, _weight, 1000) for key, value in weights.items()
        },
        user_group_resolver=reader.word(
            get(resolver, "type"), {"": "", "os": "os", "ldap": "ldap"}, ""
        ),
        **preemption,
    )


def _preemption(node: ParsedNode, reader: Reader) -> dict[str, Any]:
    """Return the fields of a partition that stand under ``preemption``."""
    fields = reader.mapping(node, _PREEMPTION_KEYS)
    pace = _merged(fields, "pace", ("interval", "victims", "resources"), reader)
    eviction = _merged(fields, "eviction", ("grace", "attempts"), reader)
    if {"quotapreemptionmiss", "quota.preemption.miss"} <= set(fields):
        reader.refuse(
            get(fields, "quotapreemptionmiss"),
            "found both spellings of quota.preemption.miss, expected one",
        )
    victims = get(pace, "victims")
    return {
        "preemption_enabled": reader.boolean(get(fields, "enabled"), default=True),
        "quota_preemption_enabled": reader.boolean(
            get(fields, "quotapreemptionenabled"), default=False
        ),
        "quota_miss_percent": reader.integer(
            get(fields, "quota.preemption.miss", "quotapreemptionmiss"), 0, 100, 100
        ),
        "pace": PaceSpec(
            interval_ms=reader.parsed(get(pace, "interval"), _positive_ms, PaceSpec().interval_ms),
            max_victims=None
            if victims.kind == "null"
            else reader.integer(victims, 1, MAX_INT32, 1),
            max_resources=_amounts(get(pace, "resources"), reader),
        ),
        "eviction_grace_ms": reader.parsed(get(eviction, "grace"), _positive_ms, 30_000),
        "eviction_attempts": reader.integer(get(eviction, "attempts"), 1, 1000, 5),
        "cost": reader.text(get(fields, "cost"), "default"),
    }


def _merged(
    fields: Mapping[str, ParsedNode], name: str, keys: tuple[str, ...], reader: Reader
) -> dict[str, ParsedNode]:
    """Return settings that may stand in a mapping of their own or flat, with the mapping's name before them."""
    merged = dict(reader.mapping(get(fields, name), keys))
    for key in keys:
        flat = get(fields, f"{name}.{key}")
        if flat.kind == "null":
            continue
        if key in merged:
            reader.refuse(flat, f"found {name}.{key} and {key} under {name}, expected one of them")
        merged[key] = flat
    return merged


def _root(
    node: ParsedNode,
    fields: Mapping[str, ParsedNode],
    limits: tuple[LimitSpec, ...],
    reader: Reader,
    places: Places,
) -> QueueSpec:
    """Return the root queue, put on top of the partition's queues unless it stands there alone."""
    if "queues" not in fields and node.kind == "mapping":
        reader.refuse(node, "found no queues, expected a list of them")
    queues = reader.items(get(fields, "queues"))
    names = [
        get(reader.mapping(item), "name").text.lower() if item.kind == "mapping" else ""
        for item in queues
    ]
    if names == ["root"]:
        root = _queue(queues[0], "", reader, places)
        if limits and root.limits and root.limits != limits:
            reader.refuse(
                get(fields, "limits"),
                "found limits that are not those of the root queue, expected the same or one of them",
            )
        return _with_limits(root, root.limits or limits)
    if "root" in names:
        reader.refuse(
            queues[names.index("root")],
            "found root beside other queues, expected the others below it",
        )
    places.note("queue root", get(fields, "queues"), node, {"limits": get(fields, "limits")})
    return QueueSpec(
        name="root",
        parent=True,
        queues=tuple(_queue(item, "root", reader, places) for item in queues),
        limits=limits,
    )


def _with_limits(root: QueueSpec, limits: tuple[LimitSpec, ...]) -> QueueSpec:
    """Return a root queue with the partition's limits, which holds queues even where none are written."""
    return QueueSpec(
        **{name: getattr(root, name) for name in root.__struct_fields__}
        | {"parent": True, "limits": limits}
    )


def _queue(node: ParsedNode, above: str, reader: Reader, places: Places) -> QueueSpec:
    """Return a queue with everything below it; ``above`` is the path of its parent."""
    fields = reader.mapping(node, (*_QUEUE_KEYS, *settings.KEYS))
    if "name" not in fields and node.kind == "mapping":
        reader.refuse(node, "found a queue without a name, expected one")
    name = reader.text(get(fields, "name")).lower()
    path = f"{above}.{name}" if above else name
    places.note(f"queue {path}", get(fields, "name"), node, fields)
    resources = reader.mapping(get(fields, "resources"), _RESOURCE_KEYS)
    children = reader.items(get(fields, "queues"))
    return QueueSpec(
        name=name,
        parent=bool(children) or reader.boolean(get(fields, "parent"), default=False),
        queues=tuple(_queue(item, path, reader, places) for item in children),
        guaranteed=_amounts(get(resources, "guaranteed"), reader),
        maximum=_maximum(get(resources, "max"), reader),
        quota_preemption_delay_ms=_delay_seconds(get(resources, settings.QUOTA_DELAY), reader),
        max_applications=reader.integer(get(fields, "maxapplications"), 0, MAX_COUNT),
        submit_acl=reader.text(get(fields, "submitacl")),
        admin_acl=reader.text(get(fields, "adminacl")),
        properties=_properties(fields, reader),
        template=_template(get(fields, "childtemplate"), reader),
        limits=_limits(get(fields, "limits"), reader),
    )


def _properties(fields: Mapping[str, ParsedNode], reader: Reader) -> dict[str, str]:
    """Return the properties of a queue or template, with a warning for each that will not do what its author may think."""
    node = get(fields, "properties")
    written = dict(reader.mapping(node))
    for key in settings.KEYS:
        if key in fields:
            if key in written:
                reader.refuse(
                    fields[key], f"found {key} here and among the properties, expected one of them"
                )
            written[key] = fields[key]
    properties = {key: reader.text(value) for key, value in written.items()}
    for key, value in properties.items():
        for message in settings.warnings({key: value}):
            reader.warn(written[key], message)
    return properties


def _template(node: ParsedNode, reader: Reader) -> TemplateSpec | None:
    """Return what dynamic queues below a queue get."""
    if node.kind == "null":
        return None
    fields = reader.mapping(node, ("maxapplications", "properties", "resources"))
    resources = reader.mapping(get(fields, "resources"), _RESOURCE_KEYS)
    for name in ("guaranteed", "max"):
        for key, value in reader.mapping(get(resources, name)).items():
            if value.text.strip("0") == "" and value.kind in {"text", "integer"}:
                reader.refuse(
                    value, f"found {key} {value.found()}, expected an amount above 0 in a template"
                )
    return TemplateSpec(
        guaranteed=_amounts(get(resources, "guaranteed"), reader),
        maximum=_maximum(get(resources, "max"), reader),
        max_applications=reader.integer(get(fields, "maxapplications"), 0, MAX_COUNT),
        properties=_properties(fields, reader),
        quota_preemption_delay_ms=_delay_seconds(get(resources, settings.QUOTA_DELAY), reader),
    )


def _limits(node: ParsedNode, reader: Reader) -> tuple[LimitSpec, ...]:
    """Return a list of limits."""
    found = []
    for item in reader.items(node):
        fields = reader.mapping(
            item, ("limit", "users", "groups", "maxresources", "maxapplications")
        )
        found.append(
            LimitSpec(
                description=reader.text(get(fields, "limit")),
                users=reader.texts(get(fields, "users")),
                groups=reader.texts(get(fields, "groups")),
                max_resources=_maximum(get(fields, "maxresources"), reader),
                max_applications=reader.integer(get(fields, "maxapplications"), 0, MAX_COUNT),
            )
        )
    return tuple(found)


def _rule(node: ParsedNode, reader: Reader, depth: int) -> PlacementRuleSpec:
    """Return a placement rule with its parent rules."""
    fields = reader.mapping(node, ("name", "create", "value", "filter", "parent"))
    if "name" not in fields and node.kind == "mapping":
        reader.refuse(
            node, "found a placement rule without a name, expected fixed, tag, user or provided"
        )
    parent = get(fields, "parent")
    return PlacementRuleSpec(
        name=reader.word(
            get(fields, "name"),
            {"fixed": "fixed", "tag": "tag", "user": "user", "provided": "provided"},
            "provided",
            fold=True,
        ),
        create=reader.boolean(get(fields, "create"), default=False),
        value=reader.text(get(fields, "value")),
        filter=_filter(get(fields, "filter"), reader),
        parent=None if parent.kind == "null" else _rule(parent, reader, depth + 1),
    )


def _filter(node: ParsedNode, reader: Reader) -> FilterSpec | None:
    """Return for whom a placement rule holds; None: for everybody."""
    if node.kind == "null":
        return None
    fields = reader.mapping(node, ("type", "users", "groups"))
    return FilterSpec(
        allow=reader.word(
            get(fields, "type"), {"allow": True, "deny": False, "": True}, default=True, fold=True
        ),
        users=reader.texts(get(fields, "users")),
        groups=reader.texts(get(fields, "groups")),
    )


def _amounts(node: ParsedNode, reader: Reader) -> Amounts | None:
    """Return amounts in base units by resource, in the document's order; None when there are none.

    A resource without an amount is refused, as by YuniKorn: left out it would not be limited.
    """
    amounts = {}
    for value in node.fields.values():
        if value.kind == "null":
            reader.refuse(value, "found nothing, expected an amount")
    for resource, value in reader.mapping(node).items():
        amounts[resource] = reader.parsed(value, partial(parse_yunikorn, resource), 0)
    return amounts or None


def _maximum(node: ParsedNode, reader: Reader) -> Amounts | None:
    """Return the amounts of a maximum, in which zero counts as not set."""
    amounts = _amounts(node, reader) or {}
    for resource, amount in amounts.items():
        if amount == 0 and node.fields[resource].text.strip("0kmMGTPEi") == "":
            reader.warn(
                node.fields[resource],
                f"a maximum of 0 counts as not set: {resource} is not limited here",
            )
    return {resource: amount for resource, amount in amounts.items() if amount} or None


def _delay_seconds(node: ParsedNode, reader: Reader) -> int | None:
    """Return the delay of quota enforcement that stands among the resources, from seconds to milliseconds."""
    if node.kind == "null":
        return None
    return reader.integer(node, 0, MAX_SPAN // 1000) * 1000


def _positive_ms(text: str) -> int:
    """Return a duration that is longer than nothing, in milliseconds."""
    ms = parse_duration_ms(text)
    if ms <= 0:
        raise DurationError(text, "a duration above 0s")
    return ms


def _weight(text: str) -> int:
    """Return a weight in thousandths."""
    match = _WEIGHT.fullmatch(text)
    if match is None or int(match[1]) > 10**6:
        raise QuantityError(text, "a weight from 0 to 1000000 with at most three decimals")
    return int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))

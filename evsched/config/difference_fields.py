"""A configuration as plain fields: by subject, in the words of its file format, values as people write them.

Two configurations that mean the same have the same fields, whatever their files look like. What is
not said is left out, so that a field that is there on one side alone was set or taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from events.configuration import (
    Amounts,
    Configuration,
    CustomSpec,
    KueueSpec,
    LimitSpec,
    PlacementRuleSpec,
    QueueSpec,
    ResourceGroupSpec,
    YunikornSpec,
)
from evsched.core.duration import format_duration
from evsched.core.quantity import format_amount

Fields = dict[str, str]
"""Field to value, in the order of the format."""


def fields_of(configuration: Configuration) -> dict[str, Fields]:
    """Return the fields of everything in a configuration, by subject, parents before their children."""
    match configuration:
        case KueueSpec():
            return _kueue(configuration)
        case YunikornSpec():
            return _yunikorn(configuration)
        case CustomSpec():
            return {
                f"section {name}": {key: str(value) for key, value in section.items()}
                for name, section in configuration.sections.items()
            }


# ----------------------------------------------------------------------------------------- YuniKorn


def _yunikorn(spec: YunikornSpec) -> dict[str, Fields]:
    found = {f"partition {spec.partition}": _partition(spec)}
    stack = [("", spec.root)]
    while stack:
        above, queue = stack.pop()
        path = f"{above}.{queue.name}" if above else queue.name
        found[f"queue {path}"] = _queue(queue)
        stack.extend((path, child) for child in reversed(queue.queues))
    return found


def _partition(spec: YunikornSpec) -> Fields:
    fields = {
        "preemption.enabled": _word(spec.preemption_enabled),
        "preemption.quotapreemptionenabled": _word(spec.quota_preemption_enabled),
        "preemption.quota.preemption.miss": f"{spec.quota_miss_percent}%",
        "preemption.pace.interval": format_duration(spec.pace.interval_ms),
        "preemption.eviction.grace": format_duration(spec.eviction_grace_ms),
        "preemption.eviction.attempts": str(spec.eviction_attempts),
        "preemption.cost": spec.cost,
        "nodesortpolicy.type": spec.node_sort_policy,
    }
    if spec.pace.max_victims is not None:
        fields["preemption.pace.victims"] = str(spec.pace.max_victims)
    fields |= _amounts("preemption.pace.resources", spec.pace.max_resources)
    # A weight of 1 is what a resource has that is not named.
    weights = {name: weight for name, weight in spec.node_sort_weights.items() if weight != 1000}  # noqa: PLR2004
    fields |= {
        f"nodesortpolicy.resourceweights.{name}": _thousandths(weights[name])
        for name in sorted(weights)
    }
    fields |= {
        f"placementrules[{place}]": _rule(rule) for place, rule in enumerate(spec.placement_rules)
    }
    if spec.user_group_resolver:
        fields["usergroupresolver.type"] = spec.user_group_resolver
    return fields


def _queue(queue: QueueSpec) -> Fields:
    fields = {"kind": "parent" if queue.parent or queue.queues else "leaf"}
    fields |= _amounts("resources.guaranteed", queue.guaranteed) | _amounts(
        "resources.max", queue.maximum
    )
    if queue.quota_preemption_delay_ms is not None:
        fields["resources.quota.preemption.delay"] = format_duration(
            queue.quota_preemption_delay_ms
        )
    if queue.max_applications:
        fields["maxapplications"] = str(queue.max_applications)
    fields |= {
        name: text
        for name, text in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl))
        if text
    }
    fields |= {f"properties.{key}": queue.properties[key] for key in sorted(queue.properties)}
    if queue.template is not None:
        template = queue.template
        fields["childtemplate"] = "set"
        fields |= _amounts("childtemplate.resources.guaranteed", template.guaranteed)
        fields |= _amounts("childtemplate.resources.max", template.maximum)
        if template.quota_preemption_delay_ms is not None:
            fields["childtemplate.resources.quota.preemption.delay"] = format_duration(
                template.quota_preemption_delay_ms
            )
        if template.max_applications:
            fields["childtemplate.maxapplications"] = str(template.max_applications)
        fields |= {
            f"childtemplate.properties.{key}": template.properties[key]
            for key in sorted(template.properties)
        }
    for limit in queue.limits:
        fields |= _limit(limit)
    return fields


def _limit(limit: LimitSpec) -> Fields:
    """Return a limit by whom it limits, so that another order or grouping in the file is no difference."""
    found: Fields = {}
    for kind, names in (("user", limit.users), ("group", limit.groups)):
        for name in names:
            field = f"limits.{kind} {name}"
            found |= _amounts(f"{field}.maxresources", limit.max_resources)
            if limit.max_applications:
                found[f"{field}.maxapplications"] = str(limit.max_applications)
    return found


def _rule(rule: PlacementRuleSpec) -> str:
    words = [rule.name, *([rule.value] if rule.value else []), *(["create"] if rule.create else [])]
    if rule.filter is not None and (rule.filter.users or rule.filter.groups):
        words.append("allow" if rule.filter.allow else "deny")
        words += [f"user {name}" for name in rule.filter.users] + [
            f"group {name}" for name in rule.filter.groups
        ]
    return " ".join(words) + (f" below ({_rule(rule.parent)})" if rule.parent is not None else "")


def _amounts(field: str, amounts: Amounts | None) -> Fields:
    return {
        f"{field}.{name}": format_amount(name, amount)
        for name, amount in sorted((amounts or {}).items())
    }


def _word(value: object) -> str:
    return str(value).lower()


def _thousandths(weight: int) -> str:
    whole, rest = divmod(weight, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


# -------------------------------------------------------------------------------------------- Kueue


def _kueue(spec: KueueSpec) -> dict[str, Fields]:
    kept = (
        "fair_sharing",
        "fair_strategies",
        "preempt_within_nominal",
        "recompute_on_overlap",
        "prioritize_non_borrowing",
    )
    found = {f"partition {spec.partition}": {name: _text(getattr(spec, name)) for name in kept}}
    found |= {f"ResourceFlavor {one.name}": _plain(one, ("name",)) for one in spec.flavors}
    found |= {
        f"WorkloadPriorityClass {name}": {"value": str(value)}
        for name, value in sorted(spec.priority_classes.items())
    }
    found |= {
        f"Cohort {one.name}": _plain(one, ("name", "groups")) | _groups(one.groups)
        for one in spec.cohorts
    }
    found |= {
        f"ClusterQueue {one.name}": _plain(one, ("name", "groups")) | _groups(one.groups)
        for one in spec.cluster_queues
    }
    found |= {
        f"LocalQueue {one.namespace}/{one.name}": _plain(one, ("name", "namespace"))
        for one in spec.local_queues
    }
    return found


def _groups(groups: tuple[ResourceGroupSpec, ...]) -> Fields:
    """Return quotas by flavor and resource, and the order of the flavors, which is the order in which they are tried."""
    found: Fields = {}
    for group in groups:
        found[f"flavors of {', '.join(sorted(group.resources))}"] = ", ".join(
            one.flavor for one in group.flavors
        )
        for one in group.flavors:
            for resource, quota in one.quotas.items():
                field = f"quota {one.flavor}/{resource}"
                limits = {
                    "nominalQuota": quota.nominal,
                    "borrowingLimit": quota.borrowing_limit,
                    "lendingLimit": quota.lending_limit,
                }
                for name, amount in limits.items():
                    if amount is not None:
                        found[f"{field}.{name}"] = format_amount(resource, amount)
    return found


def _plain(spec: msgspec.Struct, left_out: tuple[str, ...]) -> Fields:
    """Return the fields of a part as they are called in our model, those of mappings one by one."""
    found: Fields = {}
    for name in spec.__struct_fields__:
        value = getattr(spec, name)
        if name in left_out or value is None:
            continue
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": str(value[key]) for key in sorted(value)}
        elif name == "quota_preemption_delay_ms":
            found["quota.preemption.delay"] = format_duration(value)
        elif name == "weight_nano":
            found["weight"] = (
                _thousandths(value // 10**6) if value % 10**6 == 0 else f"{value}/1000000000"
            )
        else:
            found[name] = _text(value)
    return found


def _text(value: Any) -> str:
    return (
        ", ".join(map(str, value))
        if isinstance(value, tuple)
        else _word(value)
        if isinstance(value, bool)
        else str(value)
    )

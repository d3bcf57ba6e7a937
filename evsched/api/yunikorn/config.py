"""The configuration in force as a queues.yaml: what `evsched.config` reads, it writes here, so that it can be read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from evsched.core.duration import format_duration
from evsched.core.quantity import MILLI_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.configuration import (
        FilterSpec,
        LimitSpec,
        PlacementRuleSpec,
        QueueSpec,
        TemplateSpec,
        YunikornSpec,
    )

DEADLOCKS = {"deadlockdetectionenabled": False, "deadlocktimeoutseconds": 60}
"""What YuniKorn says of itself there; evsched has no locks that could wait for each other."""


def answer(spec: YunikornSpec) -> dict[str, Any]:
    """Return the answer of ``config``, as plain data."""
    return {**document(spec), **DEADLOCKS}


def as_yaml(spec: YunikornSpec) -> str:
    """Return the same as YAML."""
    return yaml.safe_dump(answer(spec), sort_keys=False, allow_unicode=True)


def document(spec: YunikornSpec) -> dict[str, Any]:
    """Return a queues.yaml of one partition; to be read by `evsched.config.loading.load_mapping` as the same configuration."""
    preemption = {
        "enabled": spec.preemption_enabled,
        "quotapreemptionenabled": spec.quota_preemption_enabled,
        "quotapreemptionmiss": spec.quota_miss_percent,
        "pace": _filled(
            interval=format_duration(spec.pace.interval_ms),
            victims=spec.pace.max_victims,
            resources=_amounts(spec.pace.max_resources),
        ),
        "eviction": {
            "grace": format_duration(spec.eviction_grace_ms),
            "attempts": spec.eviction_attempts,
        },
        "cost": spec.cost,
    }
    weights = {
        name: f"{weight // 1000}.{weight % 1000:03}"
        for name, weight in spec.node_sort_weights.items()
    }
    partition = _filled(
        name=spec.partition,
        queues=[_queue(spec.root)],
        placementrules=[_rule(rule) for rule in spec.placement_rules],
        limits=[_limit(limit) for limit in spec.limits],
        preemption=preemption,
        nodesortpolicy=_filled(type=spec.node_sort_policy, resourceweights=weights),
    )
    if spec.user_group_resolver:
        partition["usergroupresolver"] = {"type": spec.user_group_resolver}
    return {"partitions": [partition]}


def _queue(spec: QueueSpec) -> dict[str, Any]:
    return _filled(
        name=spec.name,
        parent=spec.parent or None,
        resources=_resources(spec),
        maxapplications=spec.max_applications or None,
        submitacl=spec.submit_acl,
        adminacl=spec.admin_acl,
        properties=spec.properties,
        childtemplate=None if spec.template is None else _template(spec.template),
        limits=[_limit(limit) for limit in spec.limits],
        queues=[_queue(below) for below in spec.queues],
    )


def _template(spec: TemplateSpec) -> dict[str, Any]:
    return _filled(
        maxapplications=spec.max_applications or None,
        resources=_resources(spec),
        properties=spec.properties,
    )


def _resources(spec: QueueSpec | TemplateSpec) -> dict[str, Any]:
    """Return guarantee and maximum; the delay among them is in seconds there."""
    found = _filled(guaranteed=_amounts(spec.guaranteed), max=_amounts(spec.maximum))
    if spec.quota_preemption_delay_ms is not None:
        found["quota.preemption.delay"] = spec.quota_preemption_delay_ms // 1000
    return found


def _limit(spec: LimitSpec) -> dict[str, Any]:
    return _filled(
        limit=spec.description,
        users=list(spec.users),
        groups=list(spec.groups),
        maxresources=_amounts(spec.max_resources),
        maxapplications=spec.max_applications or None,
    )


def _rule(spec: PlacementRuleSpec) -> dict[str, Any]:
    return _filled(
        name=spec.name,
        create=spec.create,
        value=spec.value,
        filter=None if spec.filter is None else _filter(spec.filter),
        parent=None if spec.parent is None else _rule(spec.parent),
    )


def _filter(spec: FilterSpec) -> dict[str, Any]:
    return _filled(
        type="allow" if spec.allow else "deny", users=list(spec.users), groups=list(spec.groups)
    )


def _amounts(amounts: Mapping[str, int] | None) -> dict[str, str]:
    """Return amounts as YuniKorn writes them: thousandths with an ``m``, everything else bare."""
    return {
        name: f"{amount}m" if name in MILLI_RESOURCES else str(amount)
        for name, amount in (amounts or {}).items()
    }


def _filled(**fields: object) -> dict[str, Any]:
    """Return the fields that say anything."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}

"""The cluster and its partition as YuniKorn shows them: sums, and what placement does."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from evsched.api.yunikorn import answers
from evsched.api.yunikorn.amounts import percent, vector
from evsched.api.yunikorn.answers import NS
from evsched.core.yunikorn.placement_rules import is_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from events.configuration import FilterSpec, PlacementRuleSpec, YunikornSpec
    from evsched.core.state import State

CLUSTER_NAME = "kubernetes"
"""What YuniKorn calls every cluster."""


def clusters(spec: YunikornSpec, log_id: str, began: int) -> list[answers.ClusterInfo]:
    """Return the one partition; ``began`` is when its log did, milliseconds."""
    build = {"buildDate": "", "buildVersion": f"evsched {version('evsched')}", "rmId": log_id}
    return [
        answers.ClusterInfo(
            start_time=began * NS,
            rm_build_information=[build],
            partition=spec.partition,
            cluster_name=CLUSTER_NAME,
        )
    ]


def partitions(
    state: State, spec: YunikornSpec, log_id: str, applications: Mapping[str, int], since: int
) -> list[answers.PartitionInfo]:
    """Return the one partition.

    Args:
        state: At the moment.
        spec: Its configuration.
        log_id: Stands in place of YuniKorn's id of the cluster.
        applications: How many are in which state, those that ended lately included.
        since: When it was first configured, milliseconds.
    """
    total, used = (vector(state.types.names, one) for one in (state.total, state.root.usage))
    return [
        answers.PartitionInfo(
            cluster_id=log_id,
            name=spec.partition,
            capacity=answers.CapacityInfo(
                capacity=total, used_capacity=used, utilization=percent(used, total)
            ),
            node_sorting_policy=answers.NodeSortingInfo(
                type=spec.node_sort_policy,
                resource_weights={
                    name: weight / 1000 for name, weight in sorted(_weights(spec).items())
                },
            ),
            preemption_enabled=spec.preemption_enabled,
            quota_preemption_enabled=spec.quota_preemption_enabled,
            total_nodes=len(state.nodes),
            applications={
                **dict(sorted(applications.items())),
                "total": sum(applications.values()),
            },
            total_containers=len(state.allocations),
            state="Active",
            last_state_transition_time=since * NS,
        )
    ]


def _weights(spec: YunikornSpec) -> dict[str, int]:
    """Return the weights in thousandths; YuniKorn weighs vcore and memory alone where nothing is said."""
    return spec.node_sort_weights or {"memory": 1000, "vcore": 1000}


def placement_rules(spec: YunikornSpec) -> answers.RulesInfo:
    """Return the placement rules of the partition."""
    return answers.RulesInfo(
        partition=spec.partition, rules=[_rule(rule) for rule in spec.placement_rules]
    )


def _rule(rule: PlacementRuleSpec) -> answers.RuleInfo:
    parameters = {"create": "true" if rule.create else "false"}
    if rule.name == "fixed":
        parameters["queue"] = rule.value
    elif rule.name == "tag":
        parameters["tagName"] = rule.value
    return answers.RuleInfo(
        name=rule.name,
        parameters=parameters,
        filter=None if rule.filter is None else _filter(rule.filter),
        parent_rule=None if rule.parent is None else _rule(rule.parent),
    )


def _filter(spec: FilterSpec) -> answers.RuleFilterInfo:
    users, groups = spec.users, spec.groups
    return answers.RuleFilterInfo(
        type="allow" if spec.allow else "deny",
        user_list=[] if is_pattern(users) else sorted(users),
        group_list=[] if is_pattern(groups) else sorted(groups),
        user_exp=users[0] if is_pattern(users) else "",
        group_exp=groups[0] if is_pattern(groups) else "",
    )

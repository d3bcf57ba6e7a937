"""Quotas on the path of a workload in Kueue's manifests, each raised by a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from replays.forecasting.raised import RaisedLimit, Submitter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from events.configuration import (
        ClusterQueueSpec,
        CohortSpec,
        FlavorQuotaSpec,
        KueueSpec,
        QuotaSpec,
        ResourceGroupSpec,
    )

COHORT = "cohort/"
"""Begins the path of a cohort."""

_Groups = tuple["ResourceGroupSpec", ...]


def raised(
    spec: KueueSpec, path: Sequence[str], _who: Submitter, step: dict[str, int]
) -> Iterator[RaisedLimit]:
    """Yield configurations in which one flavor of a ClusterQueue or Cohort on the path has so much more.

    Args:
        spec: The one in force.
        path: Paths of the ClusterQueue and the cohorts above it.
        _who: Whose workload it is; no quota of Kueue asks.
        step: By resource, base units.
    """
    for where in path:
        name = where.removeprefix(COHORT)
        owners: tuple[CohortSpec | ClusterQueueSpec, ...] = (
            spec.cohorts if where.startswith(COHORT) else spec.cluster_queues
        )
        for at, owner in enumerate(owners):
            if owner.name != name:
                continue
            for kind, detail, before, after, groups in _groups(owner.groups, step):
                changed = replace(owner, groups=groups)
                all_of = (*owners[:at], changed, *owners[at + 1 :])
                field = "cohorts" if where.startswith(COHORT) else "cluster_queues"
                yield RaisedLimit(
                    kind, where, detail, before, after, replace(spec, **{field: all_of})
                )


_QuotaKind = Literal["nominal", "borrowing"]
_Found = tuple[_QuotaKind, str, dict[str, int], dict[str, int], _Groups]


def _groups(groups: _Groups, step: dict[str, int]) -> Iterator[_Found]:
    """Yield resource groups in which one flavor has more, with what was raised from where to where."""
    for at, group in enumerate(groups):
        for number, flavor in enumerate(group.flavors):
            for kind in ("nominal", "borrowing"):
                larger = _larger(flavor, kind, step)
                if larger == flavor:
                    continue
                flavors = (*group.flavors[:number], larger, *group.flavors[number + 1 :])
                changed = replace(group, flavors=flavors)
                all_of = (*groups[:at], changed, *groups[at + 1 :])
                amounts = _amounts(flavor, kind, step), _amounts(larger, kind, step)
                yield kind, flavor.flavor, *amounts, all_of


def _larger(flavor: FlavorQuotaSpec, kind: str, step: dict[str, int]) -> FlavorQuotaSpec:
    def quota(name: str, one: QuotaSpec) -> QuotaSpec:
        if kind == "nominal":
            return replace(one, nominal=one.nominal + step.get(name, 0))
        if one.borrowing_limit is None:
            return one
        return replace(one, borrowing_limit=one.borrowing_limit + step.get(name, 0))

    return replace(flavor, quotas={name: quota(name, one) for name, one in flavor.quotas.items()})


def _amounts(flavor: FlavorQuotaSpec, kind: str, step: dict[str, int]) -> dict[str, int]:
    return {
        name: one.nominal if kind == "nominal" else one.borrowing_limit or 0
        for name, one in flavor.quotas.items()
        if step.get(name)
    }

"""The rules of Kueue manifests: quotas and limits, cohorts, preemption, fair sharing.

They are what Kueue's webhooks refuse (reference sections 2 to 6), so that a manifest means here
what it means there. Beyond that there are bounds on numbers, without which a manifest of some
kilobytes could make a state of gigabytes:

=========================  ================================================================
`MAX_GROUPS`               resource groups of one ClusterQueue or Cohort
`MAX_RESOURCES_IN_GROUP`   resources that one group covers
`MAX_FLAVORS_IN_GROUP`     flavors of one group
`MAX_COMBINATIONS`         pairs of flavor and resource in one group
`MAX_RESOURCES`            resources of one ClusterQueue or Cohort, all groups together
`MAX_FLAVORS`              flavors of one ClusterQueue or Cohort, all groups together
`MAX_COHORT_DEPTH`         cohorts above one another
=========================  ================================================================

The first six are Kueue's own; the depth is ours, as every change of usage walks up the tree.

Two things are told apart. A *problem* refuses the manifests, all of them: they come into force as
a whole. A *remark* is about a reference to what does not exist; Kueue takes that and waits, so it
is taken here, and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from events.bounds import MAX_INT64, MAX_NAME, MAX_RESOURCE_TYPES
from events.configuration import ClusterQueueSpec, CohortSpec, KueueSpec, ResourceGroupSpec
from evsched.core.problem import Problem
from evsched.core.quantity import format_amount

MAX_GROUPS = 16
MAX_RESOURCES_IN_GROUP = 64
MAX_FLAVORS_IN_GROUP = 64
MAX_RESOURCES = 256
MAX_FLAVORS = 256
MAX_COMBINATIONS = 512
MAX_COHORT_DEPTH = 64
MAX_SHOWN = 8
"""So many of a long list are named in a message."""

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")
"""The name of an object: at most 253 characters, letters or digits at both ends."""

_RESOURCE = re.compile(
    r"([A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""A resource or flavor: a name of at most 63 characters, perhaps after a domain and a slash."""

_STRATEGIES = (
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
    ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
)
"""What Kueue takes (reference section 5); of two, the second is for what the first one refused."""


def quota_problems(spec: KueueSpec) -> Iterator[Problem]:
    """Yield every rule that Kueue manifests break, in the order of the objects.

    Manifests that are too large to be spoken of are refused with one problem and not looked into.
    Both fair sharing strategies in the wrong order are refused in a file, as Kueue does.
    """
    too_large = _too_large(spec)
    if too_large is not None:
        yield too_large
        return
    yield from _names(spec)
    for queue in spec.cluster_queues:
        subject = f"ClusterQueue {queue.name}"
        yield from _groups(
            subject,
            queue.groups,
            limits_with="cohortName" if queue.cohort is None else "",
            lending_within=True,
        )
        yield from _cluster_queue(subject, queue)
    for cohort in spec.cohorts:
        subject = f"Cohort {cohort.name}"
        yield from _groups(
            subject,
            cohort.groups,
            limits_with="parentName" if cohort.parent is None else "",
            lending_within=False,
        )
        yield from _weight(subject, cohort.weight_nano)
    yield from _loops(spec.cohorts)
    yield from _sums(spec)
    if spec.fair_sharing and spec.fair_strategies not in _STRATEGIES:
        found = ", ".join(spec.fair_strategies[:MAX_SHOWN]) or "none"
        yield Problem(
            "Configuration",
            "fairSharing.preemptionStrategies",
            f"Configuration: preemptionStrategies are {found}, expected"
            " LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order",
            advisory=len(spec.fair_strategies) == len(_STRATEGIES[-1]),
        )


def quota_remarks(spec: KueueSpec) -> list[Problem]:
    """Return references to what does not exist, which Kueue accepts and waits for.

    A flavor without a ResourceFlavor counts as one without node labels. A LocalQueue without its
    ClusterQueue takes nothing in.
    """
    found = []
    flavors = {flavor.name: True for flavor in spec.flavors}
    for kind, holders in (("ClusterQueue", spec.cluster_queues), ("Cohort", spec.cohorts)):
        for holder in holders:
            subject = f"{kind} {holder.name}"
            for g, group in enumerate(holder.groups):
                for f, flavor in enumerate(group.flavors):
                    if flavor.flavor not in flavors:
                        message = f"{subject}: flavor {flavor.flavor} has no ResourceFlavor; it counts as one without node labels"
                        found.append(
                            Problem(subject, f"resourceGroups[{g}].flavors[{f}].name", message)
                        )
    queues = {queue.name: True for queue in spec.cluster_queues}
    for local in spec.local_queues:
        if local.cluster_queue not in queues:
            subject = f"LocalQueue {local.namespace}/{local.name}"
            message = f"{subject}: ClusterQueue {local.cluster_queue} does not exist; nothing can be submitted here"
            found.append(Problem(subject, "clusterQueue", message))
    return found


def resource_types(spec: KueueSpec) -> dict[str, None]:
    """Return the resource types that the quotas make, each once: ``flavor/resource``.

    A pair is a type of its own, since the quota of a resource is that of a flavor. The walk ends
    at one more than there may be, as it is called before anything is known to be of a sensible
    size.
    """
    found: dict[str, None] = {}
    holders = [queue.groups for queue in spec.cluster_queues]
    for groups in (*holders, *(cohort.groups for cohort in spec.cohorts)):
        for group in groups:
            for flavor in group.flavors:
                for resource in (*group.resources, *flavor.quotas):
                    found[f"{flavor.flavor}/{resource}"] = None
                    if len(found) > MAX_RESOURCE_TYPES:
                        return found  # one too many is all that has to be known
    return found


def _too_large(spec: KueueSpec) -> Problem | None:
    """Return why manifests are not even looked into; None where they may be.

    What is said of a name holds the name. So very long names, and very many pairs, would make
    messages longer than the manifests are.
    """
    holders = [(queue.name, queue.groups) for queue in spec.cluster_queues]
    holders += [(cohort.name, cohort.groups) for cohort in spec.cohorts]
    for holder, groups in holders:
        names = [holder]
        for group in groups:
            names += [*group.resources, *(flavor.flavor for flavor in group.flavors)]
        for name in names:
            if len(name) > MAX_NAME:
                return Problem(
                    "partition",
                    "name",
                    f"partition: found a name of {len(name)} characters, expected at most {MAX_NAME}",
                )
    if len(resource_types(spec)) > MAX_RESOURCE_TYPES:
        expected = f"expected at most {MAX_RESOURCE_TYPES} pairs of flavor and resource"
        return Problem("partition", "resourceGroups", f"partition: has more quotas, {expected}")
    return None


def _names(spec: KueueSpec) -> Iterator[Problem]:
    """Check that names are names, and that there is one object of each kind and name.

    References are checked for their form alone: what they name may be missing (`quota_remarks`).
    """
    subjects = [(f"ClusterQueue {queue.name}", queue.name) for queue in spec.cluster_queues]
    subjects += [(f"Cohort {cohort.name}", cohort.name) for cohort in spec.cohorts]
    subjects += [(f"ResourceFlavor {flavor.name}", flavor.name) for flavor in spec.flavors]
    subjects += [
        (f"LocalQueue {queue.namespace}/{queue.name}", queue.name) for queue in spec.local_queues
    ]
    subjects += [(f"WorkloadPriorityClass {name}", name) for name in spec.priority_classes]
    seen: dict[str, bool] = {}
    for subject, name in subjects:
        if not _NAME.fullmatch(name):
            yield Problem(
                subject,
                "",
                f"{_shown(subject)}: found the name {name[:64]!r}, expected letters, digits, - and .",
            )
        if subject in seen:
            yield Problem(subject, "", f"{_shown(subject)}: is there a second time, expected once")
        seen[subject] = True
    references = [
        (f"ClusterQueue {queue.name}", "cohortName", queue.cohort) for queue in spec.cluster_queues
    ]
    references += [
        (f"Cohort {cohort.name}", "parentName", cohort.parent) for cohort in spec.cohorts
    ]
    for subject, field, reference in references:
        if reference is not None and not _NAME.fullmatch(reference):
            yield Problem(
                subject,
                field,
                f"{_shown(subject)}: {field} is {reference[:64]!r}, expected letters, digits, - and .",
            )


def _shown(subject: str) -> str:
    """Return a subject that may hold anything for a message.

    One that is long or does not print is quoted and cut: a message goes to terminals and logs.
    """
    return (
        subject if subject.isprintable() and len(subject) <= MAX_RESOURCES else repr(subject[:64])
    )


def _cluster_queue(subject: str, queue: ClusterQueueSpec) -> Iterator[Problem]:
    """Check what a ClusterQueue says besides its quotas.

    To borrow while one preempts makes sense only where something may be reclaimed at all. A
    preference between borrowing and preempting is read only where both go on to the next flavor.
    """
    if queue.borrow_within_cohort != "Never" and queue.reclaim_within_cohort == "Never":
        yield Problem(
            subject,
            "preemption.borrowWithinCohort",
            f"{subject}: borrowWithinCohort is {queue.borrow_within_cohort} with reclaimWithinCohort Never, expected another",
        )
    if queue.preference is not None and (queue.when_can_borrow, queue.when_can_preempt) != (
        "TryNextFlavor",
        "TryNextFlavor",
    ):
        yield Problem(
            subject,
            "flavorFungibility.preference",
            f"{subject}: preference is set, expected whenCanBorrow and whenCanPreempt both TryNextFlavor with it",
        )
    yield from _weight(subject, queue.weight_nano)


def _weight(subject: str, weight: int) -> Iterator[Problem]:
    """Check a fair sharing weight, in billionths.

    A share is usage divided by weight. With the smallest weight of all, shares of different usage
    round to the same largest number. Kueue refuses it as well; 0 is allowed and means that the
    share is never small.
    """
    if weight == 1:
        yield Problem(
            subject, "fairSharing.weight", f"{subject}: weight is 1n, expected 0 or more than 1n"
        )


def _groups(
    subject: str, groups: tuple[ResourceGroupSpec, ...], *, limits_with: str, lending_within: bool
) -> Iterator[Problem]:
    """Check resource groups of a ClusterQueue or a Cohort: each by itself, then all together.

    Args:
        subject: Whose they are.
        groups: In manifest order.
        limits_with: The field without which there is no cohort to borrow from or lend to; empty
            when it is set.
        lending_within: Whether a lending limit may not exceed the nominal quota.
    """
    resources: dict[str, int] = {}
    flavors: dict[str, int] = {}
    if len(groups) > MAX_GROUPS:
        yield Problem(
            subject,
            "resourceGroups",
            f"{subject}: has {len(groups)} resource groups, expected at most {MAX_GROUPS}",
        )
    for index, group in enumerate(groups):
        field = f"resourceGroups[{index}]"
        yield from _group_size(subject, field, group)
        yield from _once(
            subject, f"{field}.coveredResources", "resource", group.resources, (resources, index)
        )
        yield from _once(
            subject,
            f"{field}.flavors",
            "flavor",
            [flavor.flavor for flavor in group.flavors],
            (flavors, index),
        )
        yield from _group_quotas(subject, field, group)
        yield from _limits(
            subject, field, group, limits_with=limits_with, lending_within=lending_within
        )
    for name, seen, most in (
        ("resources", resources, MAX_RESOURCES),
        ("flavors", flavors, MAX_FLAVORS),
    ):
        if len(seen) > most:
            yield Problem(
                subject,
                "resourceGroups",
                f"{subject}: has {len(seen)} {name} in all, expected at most {most}",
            )


def _group_size(subject: str, field: str, group: ResourceGroupSpec) -> Iterator[Problem]:
    """Check how much one resource group holds: by each side, and by the product of both.

    An empty group is refused too, as it says nothing.
    """
    rows, columns = len(group.flavors), len(group.resources)
    for name, number, most in (
        ("coveredResources", columns, MAX_RESOURCES_IN_GROUP),
        ("flavors", rows, MAX_FLAVORS_IN_GROUP),
    ):
        if not 1 <= number <= most:
            yield Problem(
                subject,
                f"{field}.{name}",
                f"{subject}: {field} has {number} {name}, expected 1 to {most}",
            )
    if rows * columns > MAX_COMBINATIONS:
        message = f"{subject}: {field} has {rows * columns} pairs of flavor and resource, expected at most {MAX_COMBINATIONS}"
        yield Problem(subject, field, message)


def _once(
    subject: str,
    field: str,
    kind: str,
    names: Iterable[str],
    seen_in_group: tuple[dict[str, int], int],
) -> Iterator[Problem]:
    """Check that a resource or flavor is a name and is in one group only, once.

    Were a resource in two groups, nothing would say which of them gives it its flavor.

    Args:
        subject: Whose group it is.
        field: Where the names stand, for the problem.
        kind: ``resource`` or ``flavor``, for the message.
        names: As listed.
        seen_in_group: By name the group it was found in, which is added to; and the number of this
            group.
    """
    seen, index = seen_in_group
    for name in names:
        if not _RESOURCE.fullmatch(name):
            yield Problem(
                subject,
                field,
                f"{_shown(subject)}: found the {kind} name {name[:64]!r}, expected letters, digits, - . and /",
            )
        if name in seen:
            place = (
                "twice in this group"
                if seen[name] == index
                else f"in resourceGroups[{seen[name]}] and here"
            )
            yield Problem(
                subject, field, f"{subject}: {kind} {name} is {place}, expected in one group, once"
            )
        seen[name] = index


def _group_quotas(subject: str, field: str, group: ResourceGroupSpec) -> Iterator[Problem]:
    """Check that each flavor lists the covered resources in their order.

    The order is Kueue's rule. It is what makes one flavor comparable with the next at a glance.
    """
    for index, flavor in enumerate(group.flavors):
        if tuple(flavor.quotas) != group.resources:
            yield Problem(
                subject,
                f"{field}.flavors[{index}].resources",
                f"{subject}: flavor {flavor.flavor} lists {', '.join(flavor.quotas) or 'nothing'},"
                f" expected the covered resources in their order: {', '.join(group.resources)}",
            )


def _limits(
    subject: str, field: str, group: ResourceGroupSpec, *, limits_with: str, lending_within: bool
) -> Iterator[Problem]:
    """Check borrowing and lending limits.

    Both are about a cohort, so without one there is nothing to limit. A ClusterQueue cannot lend
    more than it has; a Cohort can, as what is below it brings quota of its own.

    Args:
        subject: Whose group it is.
        field: Where the group stands, for the problem.
        group: One resource group.
        limits_with: As in `_groups`.
        lending_within: As in `_groups`.
    """
    for index, flavor in enumerate(group.flavors):
        for resource, quota in flavor.quotas.items():
            place = f"{field}.flavors[{index}].resources.{resource}"
            said = f"{subject}: {resource} of flavor {flavor.flavor}"
            for name, limit in (
                ("borrowingLimit", quota.borrowing_limit),
                ("lendingLimit", quota.lending_limit),
            ):
                if limit is not None and limits_with:
                    yield Problem(
                        subject,
                        f"{place}.{name}",
                        f"{said}: found a {name} without {limits_with}, expected none",
                    )
            if (
                lending_within
                and quota.lending_limit is not None
                and quota.lending_limit > quota.nominal
            ):
                lends, nominal = (
                    format_amount(resource, quota.lending_limit),
                    format_amount(resource, quota.nominal),
                )
                message = (
                    f"{said}: lendingLimit is {lends}, expected at most the nominalQuota {nominal}"
                )
                yield Problem(subject, f"{place}.lendingLimit", message)


def _loops(cohorts: tuple[CohortSpec, ...]) -> Iterator[Problem]:
    """Check that every cohort leads up to a root, at most `MAX_COHORT_DEPTH` above one another.

    Each loop is told once, for the first of its cohorts in manifest order. A cohort that is named
    and has no object of its own is a root. Depths that are known are not walked again, so the
    whole costs one pass.
    """
    parents = {cohort.name: cohort.parent for cohort in cohorts}
    depths: dict[str, int] = {}
    for start in parents:
        path: dict[str, bool] = {}
        name: str | None = start
        while name is not None and name not in path and name not in depths:
            path[name] = True
            name = parents.get(name)
        if name is not None and name in path:
            loop = list(path)[list(path).index(name) :]
            message = f"Cohort {name}: is in a loop of parents ({' > '.join([*loop[:8], name])}), expected a tree"
            yield Problem(f"Cohort {name}", "parentName", message)
        depth = depths.get(name, 0) if name is not None else 0
        for below in reversed(path):
            depth += 1
            depths[below] = depth
            if depth == MAX_COHORT_DEPTH + 1:
                message = f"Cohort {below}: has {MAX_COHORT_DEPTH} cohorts above it, expected fewer"
                yield Problem(f"Cohort {below}", "parentName", message)


def _sums(spec: KueueSpec) -> Iterator[Problem]:
    """Check that the quotas of one flavor and resource can be added up.

    Subtree quotas and usage are sums over any part of a tree. If all quotas together fit into
    int64, every such sum does. It is told once, where the sum passes the bound.
    """
    total: dict[tuple[str, str], int] = {}
    holders = [(f"ClusterQueue {queue.name}", queue.groups) for queue in spec.cluster_queues]
    holders += [(f"Cohort {cohort.name}", cohort.groups) for cohort in spec.cohorts]
    for subject, groups in holders:
        for g, group in enumerate(groups):
            for f, flavor in enumerate(group.flavors):
                for resource, quota in flavor.quotas.items():
                    key = (flavor.flavor, resource)
                    before = total.get(key, 0)
                    total[key] = before + quota.nominal
                    if before <= MAX_INT64 < total[key]:
                        message = f"{subject}: the quotas of {resource} in flavor {flavor.flavor} add up to more than {MAX_INT64}"
                        yield Problem(
                            subject,
                            f"resourceGroups[{g}].flavors[{f}].resources.{resource}",
                            message,
                        )

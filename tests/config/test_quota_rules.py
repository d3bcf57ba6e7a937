"""Every rule of Kueue manifests: one set that keeps it and one that breaks it, with the place told."""

from __future__ import annotations

import textwrap

import pytest

from evsched.config import load_mapping
from tests.config.manifest_texts import FINAL, INITIAL, cohort, config, faults, group, load, queue


def quotas(*rows: str) -> str:
    """Return resource groups of one row each; a row is resources, flavors: ``cpu,memory f,g``."""
    found = []
    for row in rows:
        resources, flavors = (part.split(",") for part in row.split(" "))
        listed = ", ".join(f"{{name: {resource}, nominalQuota: 1}}" for resource in resources)
        entries = ", ".join(f"{{name: {flavor}, resources: [{listed}]}}" for flavor in flavors)
        found.append(f"- {{coveredResources: [{', '.join(resources)}], flavors: [{entries}]}}\n")
    return f"resourceGroups:\n{''.join(found)}"


def names(prefix: str, number: int, first: int = 0) -> str:
    """Return so many names, separated by commas."""
    return ",".join(f"{prefix}{index}" for index in range(first, first + number))


@pytest.mark.parametrize(
    "text",
    [
        queue(quotas("cpu,memory f,g", "gpu h")),
        queue(quotas(*(f"r{index} f{index}" for index in range(16)))),
        queue(quotas(f"{names('r', 64)} {names('f', 8)}")),
        queue(quotas(f"{names('r', 8)} {names('f', 64)}")),
        queue(
            quotas(*(f"{names('r', 2, 2 * part)} {names('f', 64, 64 * part)}" for part in range(4)))
        ),
        queue(group("{name: cpu, nominalQuota: 1, borrowingLimit: 0, lendingLimit: 1}")),
        queue(
            "preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"
        ),
        queue("preemption: {borrowWithinCohort: {policy: Never}}"),
        queue(
            "flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: BorrowingOverPreemption}"
        ),
        queue("fairSharing: {weight: 0}"),
        queue("fairSharing: {weight: 2n}"),
        cohort("{parentName: p, " + quotas("cpu f").replace("\n- ", " [").rstrip() + "]}"),
        cohort("{parentName: b}")
        + "---\n"
        + cohort("{parentName: c}", "b")
        + "---\n"
        + cohort("{}", "c"),
        queue(
            quotas("cpu f")
            .replace("nominalQuota: 1", "nominalQuota: 9223372036854775807")
            .replace("cpu", "gpu")
        ),
        config(f"fairSharing: {{enable: true, preemptionStrategies: [{FINAL}, {INITIAL}]}}"),
    ],
)
def test_kept(text):
    """Nothing is wrong with what is allowed, up to the very bound."""
    load(text)


LOOP = "---\n".join(
    cohort(f"{{parentName: c{(index + 1) % 3}}}", f"c{index}") for index in range(3)
)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        (
            queue(quotas("cpu f", "cpu g")),
            "0.yaml:7",
            "ClusterQueue a: resource cpu is in resourceGroups[0] and here, expected in one",
        ),
        (
            queue(quotas("cpu f", "memory f")),
            "0.yaml:7",
            "ClusterQueue a: flavor f is in resourceGroups[0] and here, expected in one",
        ),
        (queue(quotas("cpu f,f")), "0.yaml:6", "ClusterQueue a: flavor f is twice in this group"),
        (
            queue(quotas(*(f"r{index} f{index}" for index in range(17)))),
            "0.yaml:6",
            "has 17 resource groups, expected at most 16",
        ),
        (
            queue(quotas(f"{names('r', 65)} f")),
            "0.yaml:6",
            "resourceGroups[0] has 65 coveredResources, expected 1 to 64",
        ),
        (
            queue(quotas(f"r {names('f', 65)}")),
            "0.yaml:6",
            "resourceGroups[0] has 65 flavors, expected 1 to 64",
        ),
        (
            queue(quotas(f"{names('r', 57)} {names('f', 9)}")),
            "0.yaml:6",
            "has 513 pairs of flavor and resource, expected at most 512",
        ),
        (
            queue(
                quotas(*(f"{names('r', 1, part)} {names('f', 52, 52 * part)}" for part in range(5)))
            ),
            "0.yaml:6",
            "has 260 flavors in all, expected at most 256",
        ),
        (
            queue(
                quotas(*(f"{names('r', 52, 52 * part)} {names('f', 1, part)}" for part in range(5)))
            ),
            "0.yaml:6",
            "has 260 resources in all, expected at most 256",
        ),
        (
            queue(
                "resourceGroups:\n- coveredResources: [cpu, memory]\n  flavors:\n  - name: f\n    resources:\n"
                "    - {name: memory, nominalQuota: 1}\n    - {name: cpu, nominalQuota: 1}"
            ),
            "0.yaml:10",
            "flavor f lists memory, cpu, expected the covered resources in their order: cpu, memory",
        ),
        (queue(quotas("a*b f")), "0.yaml:6", "found the resource name 'a*b', expected letters"),
        (
            queue(group("{name: cpu, nominalQuota: 1, lendingLimit: 2}")),
            "0.yaml:9",
            "ClusterQueue a: cpu of flavor f: lendingLimit is 2, expected at most the nominalQuota 1",
        ),
        (
            queue(
                group("{name: cpu, nominalQuota: 1, borrowingLimit: 2}").replace(
                    "cohortName: c\n", ""
                )
            ),
            "0.yaml:8",
            "ClusterQueue a: cpu of flavor f: found a borrowingLimit without cohortName, expected none",
        ),
        (
            queue(
                group("{name: cpu, nominalQuota: 1, lendingLimit: 1}").replace(
                    "cohortName: c\n", ""
                )
            ),
            "0.yaml:8",
            "found a lendingLimit without cohortName, expected none",
        ),
        (
            cohort(
                "\n"
                + textwrap.indent(
                    quotas("cpu f").replace(
                        "nominalQuota: 1", "nominalQuota: 1, borrowingLimit: 1"
                    ),
                    "  ",
                )
            ),
            "0.yaml:6",
            "Cohort a: cpu of flavor f: found a borrowingLimit without parentName, expected none",
        ),
        (
            queue("preemption:\n  borrowWithinCohort: {policy: LowerPriority}"),
            "0.yaml:6",
            "borrowWithinCohort is LowerPriority with reclaimWithinCohort Never, expected another",
        ),
        (
            queue("flavorFungibility:\n  preference: BorrowingOverPreemption"),
            "0.yaml:6",
            "preference is set, expected whenCanBorrow and whenCanPreempt both TryNextFlavor with it",
        ),
        (
            cohort("{parentName: a}"),
            "0.yaml:4",
            "Cohort a: is in a loop of parents (a > a), expected a tree",
        ),
        (
            LOOP,
            "0.yaml:4",
            "Cohort c0: is in a loop of parents (c0 > c1 > c2 > c0), expected a tree",
        ),
        (
            cohort("{}") + "---\n" + cohort("{}"),
            "0.yaml:8",
            "Cohort a: is there a second time, expected once",
        ),
        (
            queue("") + "---\n" + queue(""),
            "0.yaml:9",
            "ClusterQueue a: is there a second time, expected once",
        ),
        (queue("", metadata="{name: a_}"), "0.yaml:3", "found the name 'a_', expected letters"),
        (
            queue("cohortName: 'a b'"),
            "0.yaml:5",
            "ClusterQueue a: cohortName is 'a b', expected letters",
        ),
        (cohort("{parentName: '-'}"), "0.yaml:4", "Cohort a: parentName is '-', expected letters"),
        (
            queue(quotas("gpu f").replace(": 1}", ": 9223372036854775807}"))
            + "---\n"
            + queue(quotas("gpu f"), metadata="{name: b}"),
            "0.yaml:14",
            "ClusterQueue b: the quotas of gpu in flavor f add up to more than 9223372036854775807",
        ),
        (
            config(f"fairSharing:\n  enable: true\n  preemptionStrategies: [{INITIAL}, {FINAL}]"),
            "0.yaml:5",
            "preemptionStrategies are LessThanInitialShare, LessThanOrEqualToFinalShare, expected",
        ),
        (
            config(f"fairSharing: {{enable: true, preemptionStrategies: [{FINAL}, {FINAL}]}}"),
            "0.yaml:3",
            "preemptionStrategies are",
        ),
    ],
)
def test_broken(text, place, expected):
    """What is not allowed is refused for that and nothing else, at its line."""
    (found,) = faults(text)
    assert found.startswith(f"{place} ")
    assert expected in found


def test_deep_cohorts_are_refused():
    """A chain of parents is bounded, whichever way round it is written."""
    chain = [cohort(f"{{parentName: c{index + 1}}}", f"c{index}") for index in range(100)]
    for order in (chain, chain[::-1]):
        (found,) = faults("---\n".join(order))
        assert "has 64 cohorts above it, expected fewer" in found


def test_reversed_strategies_given_directly():
    """A scenario may have them, with a warning: decisions of the real scheduler were recorded with them."""
    objects = [{"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}]
    objects[0]["fairSharing"] = {"enable": True, "preemptionStrategies": [INITIAL, FINAL]}
    loaded = load_mapping("kueue", objects)
    assert loaded.configurations[0].fair_strategies == (INITIAL, FINAL)
    assert len(loaded.warnings) == 1

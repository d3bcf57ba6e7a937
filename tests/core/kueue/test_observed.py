"""The real scheduler's recorded answers, its order of consideration included."""

import json
from pathlib import Path

import pytest

from replays.scenarios.scenario import read_scenario
from replays.scenarios.simulate import simulate

DEFECT = "cycle-057"
"""An ask that preempts in one resource and borrows in the other under PreemptionOverBorrowing: the real one waits for ever."""


def victims_of(preemption):
    """Return the victims with their reasons, sorted."""
    return sorted((victim["id"], victim["reason"]) for victim in preemption["victims"])


def decided(document):
    """Return preemptions, admissions and order of a simulation in a form that can be compared."""
    decisions = document["decisions"]
    preempted = {
        one["ask"]: victims_of(one) for one in decisions if one["type"] == "PreemptionDecided"
    }
    admitted = {
        one["ask"]: one.get("flavors") for one in decisions if one["type"] == "AllocationBound"
    }
    orders = [sorted(one["order"]) for one in decisions if one["type"] == "CycleStarted"]
    return preempted, admitted, orders[0] if orders else None


@pytest.mark.cases("kueue/random", "kueue/cycles")
def test_decisions_and_order_are_the_observed_ones(shared_case: Path):
    """Victims with reasons, admissions with flavors, and who was considered when."""
    raw = json.loads(shared_case.read_text())
    want = raw.get("observed") or raw["expect"]
    preempted, admitted, order = decided(simulate(read_scenario(shared_case)))
    expected = {one["ask"]: victims_of(one) for one in want["preemptions"] if one["victims"]}
    if shared_case.stem == DEFECT:
        assert expected == {}
        expected = {"ask-c": [("w01", "InClusterQueue"), ("w19", "InClusterQueue")]}
    assert preempted == expected
    assert set(admitted) == {one["ask"] for one in want["bound"]}
    for one in want["bound"]:
        assert one.get("flavors") in (None, admitted[one["ask"]])
    if "order" in want:
        assert order == sorted(want["order"])


FOUND = {"320": "w11", "338": "w08", "509": "w05"}
"""A victim outside of the asker's queue that follows one inside of it, by file."""


@pytest.mark.parametrize(("name", "victim"), FOUND.items())
def test_a_claim_to_nominal_quota_is_judged_before_anything_is_taken(
    shared_folder: Path, name: str, victim: str
):
    """Rules 2 give the real reason; under rules 1 a victim of the asker's own queue makes room for the claim."""
    path = shared_folder / "found" / "kueue" / f"{name}.json"
    want = json.loads(path.read_text())["observed"]["preemptions"]
    expected = {one["ask"]: victims_of(one) for one in want}
    first, second = (decided(simulate(read_scenario(path), rules))[0] for rules in (1, 2))
    assert second == expected
    assert (victim, "InCohortReclamation") in first["ask"]
    assert {one for one, _ in first["ask"]} == {one for one, _ in second["ask"]}

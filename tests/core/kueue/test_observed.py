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

"""The priority files against what the real YuniKorn did with them: who is bound, and why where we bind somebody else.

Each file stands in one group by its name; a group is an explanation, and its test shows it. "The
real one" in the tests below is `peer`: the naive allocator with what only the real one does. Record
9 of the decisions tells the story.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from replays.scenarios.compare import differences
from replays.scenarios.scenario import Scenario, ScenarioStep, read_scenario, seconds_to_ms
from replays.scenarios.simulate import Simulation
from tests.core import peer

AGREE = (
    *("401", "402", "403", "405", "406", "407", "408", "409", "410", "411", "412"),
    *("413", "414", "416", "419", "420", "421", "422", "423", "424", "427"),
)
"""We bind what the real one bound."""

RESERVED = ("400", "404", "415", "417", "418", "425", "426", "428")
"""The real one kept a node for an ask that fitted nowhere; we give it to those that fit."""

MAXIMA_LEFT_BEHIND = ("429",)
"""The real one compared the usage of one queue with the maximum of another."""

ALL = (*AGREE, *RESERVED, *MAXIMA_LEFT_BEHIND)

TOO_LARGE_FOR_THE_CLUSTER = {"402", "405", "406", "407", "409", "412", "419", "423", "424"}
"""Files in which an ask that is larger than all that is free would reserve a node if the headroom of root did not matter."""

RESERVATION_DELAY_MS = 2_000


def read(cases: Path, name: str) -> Scenario:
    """Return the scenario of this name."""
    return read_scenario(cases / "yunikorn" / "random" / f"{name}.json")


def ours(scenario: Scenario) -> set[tuple[str, str]]:
    """Return which asks we bind, each with its node."""
    decisions = Simulation(scenario).run()["decisions"]
    return {(one["ask"], one["node"]) for one in decisions if one["type"] == "AllocationBound"}


def observed(scenario: Scenario) -> set[tuple[str, str]]:
    """Return which asks the real one bound, each with its node."""
    assert scenario.observed is not None
    assert scenario.observed.bound is not None
    return {(one.ask, one.node) for one in scenario.observed.bound}


def disagreements(scenario: Scenario) -> list[str]:
    """Return what the real one did otherwise than we do."""
    assert scenario.observed is not None
    return differences(scenario.observed, Simulation(scenario).run())


def test_every_file_is_in_one_group(shared_cases: Path):
    """A file without an explanation, or with two, is a failure."""
    files = [file.stem for file in (shared_cases / "yunikorn" / "random").glob("4*.json")]
    assert sorted(ALL) == sorted(files)


@pytest.mark.parametrize("name", ALL)
def test_the_files_need_no_more_of_the_rule(shared_cases: Path, name: str):
    """Every ask is old enough to reserve and nothing but time happens, so `peer` may leave out both ends of a reservation."""
    scenario = read(shared_cases, name)
    assert all(seconds_to_ms(item.created) < -RESERVATION_DELAY_MS for item in scenario.pending)
    assert scenario.steps == (ScenarioStep(advance="1s"),)


@pytest.mark.parametrize("name", ALL)
def test_without_its_own_rules_the_real_one_binds_what_we_bind(shared_cases: Path, name: str):
    """The order of queues, applications, asks and nodes is no part of any difference."""
    scenario = read(shared_cases, name)
    assert peer.bindings(scenario, reserves=False) == ours(scenario)


@pytest.mark.parametrize("name", AGREE)
def test_we_agree(shared_cases: Path, name: str):
    """We bind what was observed, and nobody preempts."""
    assert disagreements(read(shared_cases, name)) == []


@pytest.mark.parametrize("name", RESERVED)
def test_a_reservation_makes_the_difference(shared_cases: Path, name: str):
    """With reservations the real one binds exactly what was observed, on the same nodes; without them, and we, something else."""
    scenario = read(shared_cases, name)
    assert disagreements(scenario) != []
    assert peer.bindings(scenario, reserves=True) == observed(scenario)


@pytest.mark.parametrize("name", AGREE)
def test_reservations_leave_the_others_as_they_are(shared_cases: Path, name: str):
    """The rule is no wider than it must be: where we agree it changes nothing."""
    scenario = read(shared_cases, name)
    assert peer.bindings(scenario, reserves=True) == observed(scenario)


def test_the_headroom_of_root_is_part_of_the_rule(
    shared_cases: Path, monkeypatch: pytest.MonkeyPatch
):
    """If asks reserved that are larger than all that is free, nine files in which we agree would come out otherwise."""
    monkeypatch.setattr(peer, "fits_cluster", lambda state, ask: True)
    scenarios = {name: read(shared_cases, name) for name in AGREE}
    wrong = {
        name
        for name, one in scenarios.items()
        if peer.bindings(one, reserves=True) != observed(one)
    }
    assert wrong == TOO_LARGE_FOR_THE_CLUSTER


@pytest.mark.parametrize("name", MAXIMA_LEFT_BEHIND)
def test_reservations_do_not_explain_the_last_one(shared_cases: Path, name: str):
    """There is one node, and whatever fits the cluster fits it."""
    scenario = read(shared_cases, name)
    assert disagreements(scenario) != []
    assert peer.bindings(scenario, reserves=True) == ours(scenario)


@pytest.mark.parametrize("name", MAXIMA_LEFT_BEHIND)
def test_a_maximum_left_behind_makes_the_difference(shared_cases: Path, name: str):
    """With both rules, the children walked as they stand in the file, the real one binds exactly what was observed."""
    scenario = read(shared_cases, name)
    assert peer.bindings(scenario, reserves=True, order=peer.with_maxima_left_behind()) == observed(
        scenario
    )


@pytest.mark.parametrize("name", MAXIMA_LEFT_BEHIND)
@pytest.mark.parametrize("turned", [1, 2])
def test_where_the_walk_begins_is_chance_and_then_it_binds_what_we_bind(
    shared_cases: Path, name: str, turned: int
):
    """From another child of root than the first the maxima do no harm: its outcome is not one but two."""
    scenario = read(shared_cases, name)
    assert peer.bindings(
        scenario, reserves=True, order=peer.with_maxima_left_behind(turned)
    ) == ours(scenario)


@pytest.mark.parametrize("name", [*AGREE, *RESERVED])
@pytest.mark.parametrize("turned", range(4))
def test_maxima_left_behind_leave_the_others_as_they_are(
    shared_cases: Path, name: str, turned: int
):
    """Wherever the walk begins (no queue has more than four children), the other files come out as observed."""
    scenario = read(shared_cases, name)
    assert peer.bindings(
        scenario, reserves=True, order=peer.with_maxima_left_behind(turned)
    ) == observed(scenario)


def arriving(scenario: Scenario, first: set[str]) -> Scenario:
    """Return a scenario in which these asks are decided before the others come in."""
    rest = tuple(item for item in scenario.pending if item.id not in first)
    early = tuple(item for item in scenario.pending if item.id in first)
    return replace(scenario, pending=early, steps=(ScenarioStep(submit=rest), *scenario.steps))


def test_429_comes_out_too_if_p7_was_bound_before_p13_came(shared_cases: Path):
    """Another explanation that would do: p7 alone first, when its queue used nothing, or p13 alone last; no other ask does it."""
    scenario = read(shared_cases, "429")
    everybody = {item.id for item in scenario.pending}
    assert [ask for ask in sorted(everybody) if disagreements(arriving(scenario, {ask})) == []] == [
        "p7"
    ]
    assert [
        ask
        for ask in sorted(everybody)
        if disagreements(arriving(scenario, everybody - {ask})) == []
    ] == ["p13"]


def test_429_does_not_come_out_by_arrival_in_the_order_of_the_file(shared_cases: Path):
    """However many of its asks were decided before the rest came: the reason why arrival is not the explanation we give."""
    scenario = read(shared_cases, "429")
    asks = [item.id for item in scenario.pending]
    assert [
        count
        for count in range(len(asks))
        if disagreements(arriving(scenario, set(asks[:count]))) == []
    ] == []

"""Compares what a simulation decided with what a scenario file says must come out.

Victims are compared as sets, an ask that an expectation does not name may not preempt (or be bound)
where the expectation lists preemptions (or bindings) at all, and only the first preemption of an
ask counts: what it does after its victims left is another decision. Queues whose quota enforcement
is not named are not compared. Orders are compared list by list, without an order between the lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replays.scenarios.scenario import (
    BoundExpected,
    Expectation,
    Observation,
    PreemptionExpected,
    QuotaExpected,
    VictimExpected,
)

ScenarioDocument = Mapping[str, Any]
"""What `replays.scenarios.simulate` returns for a scenario."""


def differences(wanted: Expectation | Observation, document: ScenarioDocument) -> list[str]:
    """Return a sentence for each difference between an expectation and a simulation's document; none: it holds.

    With ``any_of``, the differences from its first alternative are returned when none of them
    holds.
    """
    found: list[str] = []
    if wanted.any_of:
        tries = [differences(alternative, document) for alternative in wanted.any_of]
        if [] not in tries:
            found += tries[0]
    decisions: Sequence[ScenarioDocument] = document["decisions"]
    if wanted.preemptions is not None:
        found += _preemptions(wanted.preemptions, decisions)
    if wanted.quota is not None:
        found += _quota(wanted.quota, decisions)
    if wanted.bound is not None:
        found += _bound(wanted.bound, decisions)
    if wanted.order is not None:
        found += _order(wanted.order, decisions)
    return found


def _preemptions(
    wanted: Iterable[PreemptionExpected], decisions: Iterable[ScenarioDocument]
) -> list[str]:
    first: dict[str, ScenarioDocument] = {}
    for decision in decisions:
        if decision["type"] == "PreemptionDecided" and decision["victims"]:
            first.setdefault(decision["ask"], decision)
    found: list[str] = []
    for one in wanted:
        decision = first.pop(one.ask, {})
        found += _plan(one, decision)
    found += [
        f"ask {ask}: preempts {_ids(decision['victims'])}, expected nobody"
        for ask, decision in first.items()
    ]
    return found


def _plan(wanted: PreemptionExpected, decision: ScenarioDocument) -> list[str]:
    """Compare one ask's victims, its node and their reasons."""
    reasons = {victim["id"]: victim["reason"] for victim in decision.get("victims", ())}
    ids = {_id(victim) for victim in wanted.victims}
    if ids != reasons.keys():
        return [
            f"ask {wanted.ask}: preempts {sorted(reasons) or 'nobody'}, expected {sorted(ids) or 'nobody'}"
        ]
    if ids and wanted.node and decision["node"] != wanted.node:
        return [f"ask {wanted.ask}: preempts on node {decision['node']}, expected {wanted.node}"]
    return [
        f"ask {wanted.ask}: victim {victim.id} has the reason {reasons[victim.id]}, expected {victim.reason}"
        for victim in wanted.victims
        if isinstance(victim, VictimExpected)
        and victim.reason
        and reasons[victim.id] != victim.reason
    ]


def _quota(wanted: Iterable[QuotaExpected], decisions: Iterable[ScenarioDocument]) -> list[str]:
    victims: dict[str, set[str]] = {}
    for decision in decisions:
        if decision["type"] == "QuotaPreemptionDecided":
            victims.setdefault(decision["queue"], set()).update(
                victim["id"] for victim in decision["victims"]
            )
    return [
        f"queue {one.queue}: quota enforcement takes {sorted(got) or 'nobody'}, expected {sorted(ids) or 'nobody'}"
        for one in wanted
        if (got := victims.get(one.queue, set()))
        != (ids := {_id(victim) for victim in one.victims})
    ]


def _bound(wanted: Iterable[BoundExpected], decisions: Iterable[ScenarioDocument]) -> list[str]:
    first: dict[str, ScenarioDocument] = {}
    for decision in decisions:
        if decision["type"] == "AllocationBound":
            first.setdefault(decision["ask"], decision)
    found: list[str] = []
    for one in wanted:
        decision = first.pop(one.ask, {})
        if not decision:
            found.append(f"ask {one.ask}: not bound, expected to be")
            continue
        if one.node and decision["node"] != one.node:
            found.append(f"ask {one.ask}: bound to node {decision['node']}, expected {one.node}")
        if one.flavors and decision.get("flavors") != one.flavors:
            found.append(
                f"ask {one.ask}: got flavors {decision.get('flavors')}, expected {one.flavors}"
            )
        got = {podset["name"]: podset.get("flavors") for podset in decision.get("podsets", ())}
        found += [
            f"ask {one.ask}: podset {podset.name} got flavors {got.get(podset.name)}, expected {podset.flavors}"
            for podset in one.podsets
            if got.get(podset.name) != podset.flavors
        ]
    return found + [f"ask {ask}: bound, expected to wait" for ask in first]


def _order(wanted: Iterable[Sequence[str]], decisions: Sequence[ScenarioDocument]) -> list[str]:
    """Compare orders: those of the scheduling cycles where there are any, else of the first decision about each ask."""
    lists = [
        order
        for decision in decisions
        if decision["type"] == "CycleStarted"
        for order in decision.get("order", ())
    ]
    if not lists:
        named = {ask for order in wanted for ask in order}
        lists = [
            list(
                dict.fromkeys(
                    ask for decision in decisions if (ask := decision.get("ask")) in named
                )
            )
        ]
    got = sorted(list(order) for order in lists if order)
    want = sorted(list(order) for order in wanted if order)
    return [] if got == want else [f"order: asks were considered as {got}, expected {want}"]


def _id(victim: VictimExpected | str) -> str:
    return victim if isinstance(victim, str) else victim.id


def _ids(victims: Iterable[ScenarioDocument]) -> list[str]:
    return sorted(victim["id"] for victim in victims)

"""The free comparison: a recorded cluster, and the same cluster decided by evsched from the first step on."""

from __future__ import annotations

import pytest

from events import vocabulary as v
from replays.checking.free import FreeAnswer, FreeQuestion, shadow_free
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.replays.logs import sealed, written
from tests.replays.test_shadow import (
    FULL,
    OLD,
    PROD,
    Cluster,
    as_observed,
    ask,
    bound,
    evicted,
    live,
)


async def compared(cluster: Cluster, **question: object) -> FreeAnswer:
    """Return the answer about what a cluster's own scheduler did."""
    log = await written(sealed(cluster.steps))
    return await shadow_free(History(log), FreeQuestion(**question))  # type: ignore[arg-type]


def verdicts(answer: FreeAnswer) -> dict[str, str]:
    """Return what is said of each subject."""
    return {row.subject: row.verdict for row in answer.rows}


async def test_what_waited_there_runs_at_once_here() -> None:
    """The cluster binds after ten seconds, one ask elsewhere and one never; evsched binds all of them when they come."""
    cluster = Cluster()
    cluster.take(ask("a"), ask("b"), ask("c", 2), later=1_000)
    cluster.take(bound("a", "n1"), later=10_000)
    cluster.take(bound("c", "n2"), later=1_000)
    answer = await compared(cluster)
    assert verdicts(answer) == {"a": "same", "b": "only-ours", "c": "only-theirs"}
    (theirs,), (ours,) = answer.theirs.values(), answer.ours.values()
    assert (theirs.bound, ours.bound) == (2, 2)
    assert theirs.waited_ms > ours.waited_ms
    assert answer.same == 1
    assert answer.compared == sum(answer.verdicts.values()) == 3


async def test_a_preemption_that_only_evsched_decides_lasts_as_long_as_others_did() -> None:
    """The cluster leaves the queue below its guarantee; here a victim goes for it, and how long that takes is supposed."""
    cluster = Cluster()
    cluster.take(*FULL, OLD, later=1_000)
    cluster.take(later=60_000)
    cluster.take(v.ObservationGap(kind="Pod"), later=60_000)
    answer = await compared(cluster)
    assert verdicts(answer) == {"t1": "only-ours", "a": "only-ours"}
    assert answer.confirmed == 1
    assert answer.theirs[PROD].unmet["vcore"] > answer.ours[PROD].unmet["vcore"]
    assert (answer.theirs[PROD].preemptions, answer.ours[PROD].preemptions) == (0, 1)


async def test_an_eviction_that_only_the_cluster_decides_does_not_happen_here() -> None:
    """The victim goes on, and that its end was left out is counted."""
    cluster = Cluster()
    cluster.take(FULL[0], ask("b", 4), later=1_000)
    cluster.take(bound("b", "n2"), later=1_000)
    cluster.take(evicted("t1", ""), later=1_000)
    cluster.take(v.AllocationReleased(allocation="t1", reason="preempted"), later=2_000)
    answer = await compared(cluster)
    assert verdicts(answer) == {"b": "same", "t1": "only-theirs"}
    assert (answer.left_out, answer.eviction_ms) == (1, 2_000)


@pytest.mark.parametrize("seed", range(3))
async def test_evsched_goes_on_as_it_went_on(seed: int) -> None:
    """Where the real scheduler was evsched, the free course is the recorded one, decision by decision."""
    answer = await compared(as_observed(live(seed).steps))
    assert answer.compared > 10
    assert {row.verdict for row in answer.rows} == {"same"}
    assert answer.refused == 0


async def test_the_question_takes_a_stretch_and_rules() -> None:
    """What lies before the stretch is that of the cluster; nothing behind it is read."""
    cluster = Cluster(rules=1)
    cluster.take(ask("a"), later=1_000)
    cluster.take(bound("a", "n2"), later=1_000)
    between = cluster.engine.state.seq
    cluster.take(ask("b"), later=1_000)
    cluster.take(bound("b", "n1"), later=1_000)
    answer = await compared(cluster, start=Moment(seq=between), rules=2)
    assert verdicts(answer) == {"b": "same"}
    assert verdicts(await compared(cluster, end=Moment(seq=between))) == {"a": "other-node"}

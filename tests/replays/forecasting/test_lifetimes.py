"""Lifetimes: the estimate of Kaplan and Meier in integers, held against fractions, and draws that follow it."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from replays.forecasting.draws import Draws, ranked
from replays.forecasting.lifetimes import ENOUGH, WHOLE, Lifetimes, SeenLife, Survival
from tests.examples import examples

lives = st.lists(
    st.builds(
        lambda entered, more, ended: SeenLife(entered, entered + more, ended),
        st.sampled_from([0, 0, 0, 2, 5]),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=12,
)


def by_run(run):
    """Return the draws of a run about one subject."""
    return lambda bound: Draws(1, run).below(bound, "x")


def by_definition(found, age):
    """Return the share that lives longer than an age, by the textbook: a product over all ages."""
    share = Fraction(1)
    for at in range(age + 1):
        at_risk = sum(one.entered < max(at, 1) and one.left >= at for one in found)
        gone = sum(one.ended and one.left == at and one.entered < max(at, 1) for one in found)
        share *= 1 - Fraction(gone, at_risk) if at_risk else 1
    return share


@given(lives)
@examples(100)
def test_the_estimate_is_that_of_the_textbook(found):
    """Those that still run, or had to go, count as alive until then; late entries from then on."""
    estimate = Survival(found)
    for age, share in zip(estimate.ends, estimate.shares, strict=True):
        assert abs(Fraction(share, WHOLE) - by_definition(found, age)) < Fraction(1, 2**50)


@given(lives, st.integers(-1, 12))
@examples(100)
def test_what_is_drawn_is_later_than_the_age_and_as_likely_as_the_estimate_says(found, age):
    """The least chance gives the latest end or none, the greatest the first; no draw goes back."""
    estimate = Survival(found)
    drawn = [estimate.draw(lambda bound, at=at: bound * at // 16, age) for at in range(16)]
    assert all(one is None or one > age for one in drawn)
    known = [one for one in drawn if one is not None]
    assert known == sorted(known, reverse=True)


def test_the_residual_life_of_what_runs_is_drawn_given_its_age():
    """Half of the allocations end after 10, half after 1,000: what is 20 old will reach 1,000."""
    estimate = Survival([SeenLife(0, 10, True), SeenLife(0, 1000, True)])
    assert {estimate.draw(by_run(run), 20) for run in range(50)} == {1000}
    fresh = [estimate.draw(by_run(run)) for run in range(200)]
    assert 70 <= fresh.count(10) <= 130


def test_what_only_still_runs_is_never_drawn_to_end():
    """No end was seen, so none is foretold."""
    estimate = Survival([SeenLife(0, 50, False)] * 3)
    assert estimate.draw(lambda _: 0) is None


def test_few_ends_of_one_kind_give_way_to_those_of_its_queue():
    """A kind with enough ends speaks for itself; another one hears its queue; an unknown queue hears all."""
    own, other = (("vcore", 1),), (("vcore", 2),)
    found = Lifetimes(
        {
            ("q", own): [SeenLife(0, 5, True)] * ENOUGH,
            ("q", other): [SeenLife(0, 7, True)] * (ENOUGH - 1),
        }
    )
    assert found.draw("q", own, lambda _: 0) == 5
    assert found.draw("q", other, lambda _: 0) == 7
    assert {found.draw("q", other, by_run(run)) for run in range(40)} == {5, 7}
    assert {found.draw("r", own, by_run(run)) for run in range(40)} == {5, 7}


def test_a_percentile_is_an_outcome_and_what_never_starts_is_later_than_all():
    """Of nine outcomes the band holds all; where two of ten did not start, the ninetieth is none."""
    assert [ranked(list(range(9)), 9, percent) for percent in (10, 50, 90)] == [0, 4, 8]
    assert ranked(list(range(8)), 10, 90) is None
    assert ranked([3], 1, 10) == ranked([3], 1, 90) == 3
    assert ranked([], 0, 50) is None


def test_draws_depend_on_seed_run_and_subject_alone():
    """So that the same question has the same answer, and a change is tried on the same future."""
    one = Draws(1, 2).below(10**9, "a")
    assert one == Draws(1, 2).below(10**9, "a")
    others = {Draws(1, 3).below(10**9, "a"), Draws(2, 2).below(10**9, "a")}
    assert one not in others | {Draws(1, 2).below(10**9, "b")}

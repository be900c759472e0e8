"""Survival curves from masses, hazards and quantiles; and masses that are taken for survival."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import survscore as ss

TIMES = np.array([0.5, 1.0, 2.5, 4.0])


@given(arrays(float, (3, 5), elements=st.floats(0.01, 1)))
def test_masses_add_up_to_what_is_lost(raw):
    masses = raw / raw.sum(axis=1, keepdims=True)
    expected = np.array([[masses[i, j + 1 :].sum() for j in range(4)] for i in range(3)])
    curves = ss.SurvivalCurves.from_pmf(masses, TIMES)
    assert curves.probabilities == pytest.approx(expected, abs=1e-12)
    assert (curves.probabilities == ss.SurvivalCurves.from_pmf(masses[:, :4], TIMES).probabilities).all()


@given(arrays(float, (3, 4), elements=st.floats(0, 1)))
def test_survival_is_the_product_of_what_hazards_leave(hazards):
    expected = [[np.prod([1 - h for h in row[: j + 1]]) for j in range(4)] for row in hazards]
    assert ss.SurvivalCurves.from_hazards(hazards, TIMES).probabilities == pytest.approx(np.array(expected), abs=1e-12)


@given(arrays(float, (3, 4), elements=st.floats(0, 3)))
def test_rates_are_integrated(rates):
    curves = ss.SurvivalCurves.from_hazards(rates, TIMES, kind="rate")
    assert (curves.interpolation, curves.default_interpolation) == ("constant-hazard", False)
    steps = [0.5, 0.5, 1.5, 1.5]
    cumulative = [[sum(row[k] * steps[k] for k in range(j + 1)) for j in range(4)] for row in rates]
    assert curves.probabilities == pytest.approx(np.exp(-np.array(cumulative)))
    # half-way through an interval half of its hazard has passed
    halfway = np.exp(-(np.array(cumulative)[:, 1] + rates[:, 2] * 0.75))
    assert curves.at([1.75])[:, 0] == pytest.approx(halfway)
    whole = ss.SurvivalCurves.from_hazards(cumulative, TIMES, kind="cumulative")
    assert whole.probabilities == pytest.approx(curves.probabilities)


@given(arrays(float, (3, 3), elements=st.floats(0.01, 5)), st.lists(st.floats(0, 20), min_size=1, max_size=5))
def test_the_distribution_is_linear_between_quantiles(steps, times):
    quantiles, levels, grid = np.cumsum(steps, axis=1), [0.2, 0.5, 0.9], np.unique(times)
    curves = ss.SurvivalCurves.from_quantiles(quantiles, levels, grid, extrapolation="hold")
    for row, of_row in zip(quantiles, curves.probabilities, strict=True):
        assert of_row == pytest.approx(1 - np.interp(grid, [0, *row], [0, *levels]), abs=1e-9)


def test_quantiles_that_are_never_reached_or_equal():
    curves = ss.SurvivalCurves.from_quantiles([[2, np.inf], [3, 3]], [0.4, 0.8], [1, 2, 3, 9], extrapolation="hold")
    assert curves.probabilities == pytest.approx(np.array([[0.8, 0.6, 0.6, 0.6], [1 - 0.4 / 3, 1 - 0.8 / 3, 0.2, 0.2]]))
    ended = ss.SurvivalCurves.from_quantiles([[2.0, 4.0]], [0.5, 1.0], [1, 4, 6])
    assert ended.probabilities.tolist() == [[0.75, 0, 0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda c: c.from_pmf([[0.9, 0.8, 0.7, 0.6]], TIMES),
            r"sum to at most 1 .* the first is row 0 \(3\); survival",
        ),
        (
            lambda c: c.from_pmf([[0.1, 1.2, 0, 0]], TIMES),
            r"between 0 and 1: 1 value is not, .* row 0, column 1 \(1.2\)",
        ),
        (lambda c: c.from_hazards([[0.1, 2, 0, 0]], TIMES), "hazards per unit of time are kind='rate'"),
        (lambda c: c.from_hazards([[0.1, -2, 0, 0]], TIMES, kind="rate"), "hazards must be at least 0"),
        (lambda c: c.from_hazards([[1, 0.5, 2, 3]], TIMES, kind="cumulative"), "do not fall with time: .* column 1"),
        (
            lambda c: c.from_quantiles([[2, 4], [9, 9]], [0.5, 0.9], [5]),
            r"reach 5, .* for 1 individual of 2, the first at position 0 \(4\)",
        ),
        (lambda c: c.from_quantiles([[4, 2]], [0.5, 0.9], [1]), "do not fall with the level"),
        (lambda c: c.from_quantiles([[2, 4]], [0.9, 0.5], [1]), "levels must increase"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ss.InputError, match=message):
        make(ss.SurvivalCurves)


# Masses in place of survival


def geometric(n=60, m=6):
    """Return masses that fall, as survival does."""
    hazards = np.linspace(0.1, 0.5, n)[:, None]
    return hazards * (1 - hazards) ** np.arange(m)


def test_masses_that_fall_are_noticed():
    with pytest.warns(
        UserWarning, match=r"look like a probability mass function: .* none is above 0.5 at the first .*from_pmf"
    ):
        ss.SurvivalCurves(geometric(), np.arange(1, 7))


def test_masses_that_rise_are_refused_with_the_right_hint():
    masses = np.random.default_rng(0).dirichlet(np.ones(6), 5)
    with pytest.raises(
        ss.InputError, match="each row sums to at most 1, as a probability mass function does: from_pmf"
    ):
        ss.SurvivalCurves(masses, np.arange(1, 7))


def test_survival_is_not_taken_for_masses(recwarn):
    one_lives = np.concatenate([geometric(), np.full((1, 6), 0.9)])
    for survival in (geometric(49), geometric(m=3), one_lives, 1 - np.cumsum(geometric(), axis=1), np.zeros((60, 6))):
        ss.SurvivalCurves(survival, np.arange(1.0, survival.shape[1] + 1))
    assert not recwarn

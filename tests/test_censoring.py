import lifelines
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import survscore as ss
from registry import HALVES, outcomes_of
from survscore._utils import loops as _loops
from survscore.censoring.product_limit import ProductLimit


@settings(max_examples=200)
@given(y=st.integers(1, 20).flatmap(outcomes_of), times=st.sets(HALVES, min_size=1))
def test_kaplan_meier_agrees_with_the_literal_one(y, times):
    G = ss.KaplanMeierCensoring(y)
    at, before = oracle.product_limit(list(y.time), list(~y.event))
    np.testing.assert_allclose(G.at(sorted(times)), [at(t) for t in sorted(times)], rtol=1e-14)
    np.testing.assert_allclose(G.before(y), [before(t) for t in y.time], rtol=1e-14)


@settings(max_examples=100)
@given(
    values=st.lists(st.floats(0, 1e6) | HALVES, min_size=0, max_size=200).map(np.array),
    keys=st.lists(st.floats(0, 1e6) | HALVES, min_size=1, max_size=50).map(np.array),
    others=st.lists(HALVES, max_size=50).map(np.array),
    inclusive=st.booleans(),
    first=st.booleans(),
)
def test_compiled_vectors_give_the_same_bits(values, keys, others, inclusive, first):
    values, others = values.astype(float), others.astype(float)
    grid = np.sort(values)
    time = np.concatenate([values, others])
    leaves = np.arange(time.size) < values.size
    np.testing.assert_array_equal(
        _loops.count_below(grid, keys, inclusive=inclusive, compiled=True),
        np.searchsorted(grid, keys, side="right" if inclusive else "left"),
    )
    if grid.size:
        steps = np.linspace(0.9, 0.1, grid.size)
        np.testing.assert_array_equal(
            _loops.step_values(grid, steps, keys, inclusive=inclusive, compiled=True),
            _loops.step_values(grid, steps, keys, inclusive=inclusive, compiled=False),
        )
    fast, plain = (ProductLimit.of(time, leaves, others_first=first, compiled=way) for way in (True, False))
    for name in ("times", "exits", "at_risk", "survival"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(plain, name))


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).pareto(0.3, 100_000),  # nearly all in the first bucket
        np.random.default_rng(0).integers(0, 5, 100_000).astype(float),
        np.linspace(1, 0, 100_000),
        np.full(100_000, 7.0),
    ],
    ids=["heavy tail", "ties", "reversed", "constant"],
)
def test_counting_of_awkward_values(values):
    expected = np.sort(values)
    np.testing.assert_array_equal(
        _loops.count_below(expected, values, inclusive=False, compiled=True), np.searchsorted(expected, values)
    )


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_kaplan_meier_agrees_with_lifelines_once_ties_are_converted():
    rng = np.random.default_rng(1)
    y = ss.Outcomes(rng.integers(0, 20, 300), rng.random(300) < 0.5)
    # lifelines lets events and censorings at the same time leave together: an event a moment earlier leaves first
    moment = np.where(y.event, -1e-6, 0.0)
    theirs = lifelines.KaplanMeierFitter().fit(y.time + moment, ~y.event)
    times = np.arange(20.0)
    ours = ss.KaplanMeierCensoring(y).at(times)
    np.testing.assert_allclose(ours, theirs.survival_function_at_times(times).to_numpy(), rtol=1e-12)
    unconverted = lifelines.KaplanMeierFitter().fit(y.time, ~y.event).survival_function_at_times(times).to_numpy()
    assert np.abs(ours - unconverted).max() > 0.01


def test_without_censoring_g_is_one():
    y = ss.Outcomes([1, 2], [1, 1])
    G = ss.KaplanMeierCensoring(y)
    assert G.at([0, 5]).tolist() == [1, 1]
    assert G.before(y).tolist() == [1, 1]


def test_left_limits_of_curves():
    y = ss.Outcomes([1, 1, 3], [1, 1, 1])
    steps = ss.SurvivalCurves([[0.5, 0.2]] * 3, [1, 2], "step", extrapolation="hold")
    assert ss.CensoringCurves(steps).before(y).tolist() == [1, 1, 0.2]
    lines = ss.SurvivalCurves([[0.5, 0.2]] * 3, [1, 2], "linear", extrapolation="hold")
    assert ss.CensoringCurves(lines).before(y).tolist() == [0.5, 0.5, 0.2]
    with pytest.raises(ss.InputError, match="censoring curves has length 3, but outcomes has length 2"):
        ss.CensoringCurves(lines).before(y[:2])
    with pytest.raises(TypeError, match="no common G"):
        ss.CensoringCurves(lines).at(np.array([1.0]))


def test_functions_and_their_left_limits():
    def falls_at_two(t):
        return np.where(t < 2, 1.0, 0.5)

    def falls_after_two(t):
        return np.where(t <= 2, 1.0, 0.5)

    y = ss.Outcomes([2, 3], [1, 1])
    assert ss.CensoringFunction(falls_at_two).before(y).tolist() == [0.5, 0.5]
    G = ss.CensoringFunction(falls_at_two, left_limit=falls_after_two)
    assert G.before(y).tolist() == [1, 0.5]
    assert G.at([2]).tolist() == [0.5]
    with pytest.raises(ss.InputError, match="censoring function must be between 0 and 1: 1 of 2"):
        ss.CensoringFunction(lambda t: t / 2).at([1, 3])
    with pytest.raises(ss.InputError, match="rises with time"):
        ss.CensoringFunction(lambda t: t / 10).at([1, 3])
    with pytest.raises(ss.InputError, match=r"returned shape \(\) for times of shape \(1,\)"):
        ss.CensoringFunction(lambda t: 1.0).at([1])


def test_kaplan_meier_wants_outcomes():
    with pytest.raises(ss.InputError, match="outcomes must be Outcomes, not list"):
        ss.KaplanMeierCensoring([1, 2])

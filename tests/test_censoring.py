import lifelines
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import survscore as ss
from combinations import examples
from registry import HALVES, outcomes_of
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit
from survscore.weighting.interval_weights import TimeIndex, _Buckets


@examples(60)
@given(y=st.integers(1, 20).flatmap(outcomes_of), times=st.sets(HALVES, min_size=1))
def test_kaplan_meier_agrees_with_the_literal_one(y, times):
    G = ss.KaplanMeierCensoring(y)
    at, before = oracle.product_limit(list(y.time), list(~y.event))
    np.testing.assert_allclose(G.at(sorted(times)), [at(t) for t in sorted(times)], rtol=1e-14)
    np.testing.assert_allclose(G.before(y), [before(t) for t in y.time], rtol=1e-14)


@examples(40)
@given(data=st.data(), n_strata=st.integers(1, 3), events_first=st.booleans())
def test_product_limits_by_strata_are_those_of_each_stratum(data, n_strata, events_first):
    y = data.draw(st.integers(1, 30).flatmap(outcomes_of))
    codes = np.array(
        data.draw(st.lists(st.integers(0, n_strata - 1), min_size=len(y), max_size=len(y))), dtype=np.int32
    )
    times = np.arange(0, 8, 0.5)
    leaves = y.event if events_first else ~y.event
    curve = ProductLimit.of(y.time, leaves, others_first=not events_first, codes=codes, n_strata=n_strata)
    for k in range(n_strata):
        inside = codes == k
        alone = ProductLimit.of(y.time[inside], leaves[inside], others_first=not events_first)
        np.testing.assert_allclose(curve.table(times)[k], alone.at(times), rtol=1e-14)
        np.testing.assert_allclose(curve.before(y.time, codes)[inside], alone.before(y.time[inside]), rtol=1e-14)
        np.testing.assert_allclose(curve.greenwood[curve.strata()[k]], alone.greenwood, rtol=1e-14)


@examples(40)
@given(
    grid=st.sets(st.floats(0, 1e6) | HALVES, min_size=1, max_size=200).map(sorted).map(np.array),
    keys=st.lists(st.floats(0, 1e6) | HALVES, min_size=1, max_size=50).map(np.array),
    inclusive=st.booleans(),
)
def test_looking_up_by_buckets_is_a_search(grid, keys, inclusive):
    keys = np.concatenate([keys, grid, np.nextafter(grid, 0), np.nextafter(grid, np.inf), [np.inf]])
    table = _Buckets.of(grid)
    assume(table is not None)
    expected = np.searchsorted(grid, keys, side="right" if inclusive else "left")
    np.testing.assert_array_equal(table.count(keys, inclusive=inclusive), expected)


@examples(40)
@given(data=st.data())
def test_order_of_time_has_events_first_then_ends_then_drop_outs(data):
    y = data.draw(st.integers(1, 30).flatmap(outcomes_of))
    y = ss.Outcomes(y.time, y.event, y.time + np.arange(len(y)) % 2)
    order = TimeIndex(y, np.zeros(1)).order
    keys = [(y.time[i], 0 if y.event[i] else 2 if y.dropped_out[i] else 1) for i in order]
    assert keys == sorted(keys)
    assert sorted(order.tolist()) == list(range(len(y)))


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


def test_left_limits_of_curves():
    y = ss.Outcomes([1, 1, 3], [1, 1, 1])
    steps = ss.SurvivalCurves([[0.5, 0.2]] * 3, [1, 2], interpolation="step", extrapolation="hold")
    assert ss.CensoringCurves(steps).before(y).tolist() == [1, 1, 0.2]
    lines = ss.SurvivalCurves([[0.5, 0.2]] * 3, [1, 2], interpolation="linear", extrapolation="hold")
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


@pytest.mark.parametrize("n_strata", [1, 3])
def test_a_product_limit_with_frequencies_is_that_of_the_repeated_rows(n_strata):
    rng = np.random.default_rng(n_strata)
    time, leaves = rng.integers(1, 20, 200) * 1.0, rng.random(200) < 0.5
    codes, often = rng.integers(0, n_strata, 200).astype(np.int32), rng.integers(0, 4, 200)
    settings = {"others_first": True, "n_strata": n_strata}
    curve = ProductLimit.of(time, leaves, codes=codes, weights=often * 1.0, **settings)
    repeated = ProductLimit.of(
        *(np.repeat(one, often) for one in (time, leaves)), codes=np.repeat(codes, often), **settings
    )
    times = np.arange(0, 21, 0.5)
    np.testing.assert_allclose(curve.table(times), repeated.table(times), rtol=1e-14)
    np.testing.assert_allclose(curve.greenwood[curve.exits > 0], repeated.greenwood, rtol=1e-14)


def test_a_weighted_incidence_is_that_of_the_repeated_rows():
    rng = np.random.default_rng(1)
    time, cause, often = rng.integers(1, 20, 200), rng.integers(0, 3, 200), rng.integers(1, 4, 200)
    y = ss.Outcomes(time, cause)
    repeated = y[np.repeat(np.arange(200), often)]
    of = (Incidence.of(one.for_cause(2)).table(np.arange(21.0)) for one in (y.weighted(often, "frequency"), repeated))
    np.testing.assert_allclose(*of, rtol=1e-13)

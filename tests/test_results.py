import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import survscore as ss
from survscore.engine.averaging import trapezoid_weights

Y = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 3, 6])
CURVES = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4])


@pytest.fixture
def curve():
    return ss.brier_score(Y, CURVES, weighting="administrative", times=[0, 1, 2.5, 4])


@settings(max_examples=200)
@given(
    times=st.sets(st.integers(0, 40), min_size=2, max_size=9).map(lambda s: np.array(sorted(s)) / 4),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda s: s[0] < s[1]),
    seed=st.integers(0, 99),
)
def test_trapezoid_is_exact_between_knots_too(times, shares, seed):
    values = np.random.default_rng(seed).random(times.size)
    lower, upper = (times[0] + share * (times[-1] - times[0]) for share in shares)
    upper = min(upper, times[-1])
    got = trapezoid_weights(times, lower, upper) @ values
    np.testing.assert_allclose(got, oracle.integral(times, values, lower, upper), rtol=1e-10, atol=1e-12)


def test_integrated_is_the_mean_over_the_range(curve):
    whole = curve.integrated()
    assert whole.range == (0, 4)
    np.testing.assert_allclose(float(whole), np.trapezoid(curve.scores, curve.times) / 4)
    np.testing.assert_allclose(
        curve.integrated(1, 3).value, oracle.integral(curve.times, curve.scores, 1, 3) / 2, rtol=1e-14
    )
    assert "mean over [1, 3]" in repr(curve.integrated(1, 3))
    assert whole.settings["weighting"] == "administrative"


@pytest.mark.parametrize("limits", [(-1, 2), (3, 1)])
def test_integrated_stays_within_what_was_scored(curve, limits):
    with pytest.raises(ss.InputError, match="0 <= lower < upper <= 4, the range of times scored"):
        curve.integrated(*limits)


def test_integrated_does_not_cross_nan():
    with pytest.warns(ss.UndefinedScoreWarning):
        curve = ss.brier_score(Y, CURVES, weighting="administrative", times=[0, 2, 4, 5, 6])
    with pytest.raises(
        ss.InputError, match=r"NaN at 2 times within \[0, 6\], the first 5 \(the predictions end at 4\)"
    ):
        curve.integrated()
    stopped = curve.integrated(nan="stop")
    assert stopped.range == (0, 4)
    assert stopped.value == curve.integrated(0, 4).value
    with pytest.raises(ss.InputError, match="nothing is left to integrate"):
        curve.integrated(4.5, 6, nan="stop")
    with pytest.raises(ss.InputError, match="one time, 2, spans no range"):
        ss.brier_score(Y, CURVES, weighting="administrative", times=[2]).integrated()


def test_repr_states_the_settings(curve):
    assert repr(curve) == (
        "ScoreCurve(brier, administrative, 4 times from 0 to 4, n=3, effective sample size 3 to 2, "
        "score 0 to 0.25, lower is better)"
    )

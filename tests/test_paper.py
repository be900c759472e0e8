"""What the paper states, computed and simulated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import survscore as ss
from combinations import examples
from survscore.simulate import ConstantHazardStudy

GRID = np.linspace(0.001, 0.999, 999)
probability = st.floats(0.05, 0.95)


def two_point_expectation(pi, weighting, *, S, end, t=5.0, loss="brier"):
    """Exact expectation, over T*, of one individual's contribution to the sum of weighted losses at t.

    T* is at 2 with probability 1 - S and far away otherwise, so S(t) = S at t = 5; C* = end is fixed.
    """
    total = 0.0
    for star, chance in ((2.0, 1 - S), (99.0, S)):
        y = ss.Outcomes([min(star, end)], [star <= end], [end])
        terms = ss.score_terms(y, ss.SurvivalCurves([[pi]], [t]), metric=loss, weighting=weighting, times=[t])
        total += chance * float((terms.weights * terms.losses)[0, 0])
    return total


@pytest.mark.parametrize("loss", ["brier", "log"])
@examples(5)
@given(S=probability)
def test_expected_administrative_score_is_smallest_for_the_true_survival(loss, S):
    values = [two_point_expectation(pi, "administrative", S=S, end=10.0, loss=loss) for pi in GRID[::10]]
    assert abs(GRID[::10][np.argmin(values)] - S) <= 0.006


@pytest.mark.parametrize("loss", ["brier", "log"])
@examples(5)
@given(S=probability)
def test_expected_ipcw_score_with_known_censoring_is_smallest_for_zero_after_censoring(loss, S):
    known = ss.IPCW("known")
    before = [two_point_expectation(pi, known, S=S, end=10.0, loss=loss) for pi in GRID[::10]]
    assert abs(GRID[::10][np.argmin(before)] - S) <= 0.006  # C* > t: the true survival, as it should be
    after = [two_point_expectation(pi, known, S=S, end=3.0, loss=loss) for pi in GRID[::10]]
    assert np.argmin(after) == 0  # C* <= t: zero, whatever the true survival
    ignored = [two_point_expectation(pi, "administrative", S=S, end=3.0, loss=loss) for pi in GRID[::10]]
    assert set(ignored) == {0.0}  # the administrative score asks nothing there


def test_expected_brier_is_mse_plus_a_constant():
    S, pi = 0.3, 0.55
    expected = (S - pi) ** 2 + S * (1 - S)
    np.testing.assert_allclose(two_point_expectation(pi, "administrative", S=S, end=10.0), expected, rtol=1e-12)


@pytest.fixture(scope="module")
def sample():
    return ConstantHazardStudy().sample(40_000, seed=2)


TIMES = np.array([10.0, 30.0, 60.0, 90.0])


@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.0, -0.15])
def test_administrative_and_ipcw_scores_estimate_the_uncensored_one(sample, shift):
    """For predictions that know nothing of C*, all three have the same expectation here (C* independent of T*)."""
    S = np.clip(sample.survival(TIMES).probabilities + shift, 0, 1)
    curves = ss.SurvivalCurves(S, TIMES)
    truth = ss.brier_score(sample.uncensored, curves, weighting="uncensored", times=TIMES).scores
    for weighting in ("administrative", "ipcw", ss.IPCW(lambda t: 1 - t / 100)):
        terms = ss.score_terms(sample.outcomes, curves, weighting=weighting, times=TIMES)
        result = ss.brier_score(sample.outcomes, curves, weighting=weighting, times=TIMES)
        residual = terms.weights * (terms.losses - result.scores)
        error = np.sqrt((residual**2).sum(axis=0)) / result.weight_sums
        # four standard errors of the difference, to which the uncensored score adds at most as much again
        assert (np.abs(result.scores - truth) < 4 * np.sqrt(2) * error + 1e-12).all(), weighting


@pytest.mark.statistical
def test_ipcw_prefers_the_leaking_prediction_and_the_administrative_score_does_not(sample):
    S = sample.survival(TIMES).probabilities
    alive = sample.outcomes.censoring_time[:, None] > TIMES
    # a classifier that encodes C*: the truth before, slightly off; nothing after
    leaking = ss.SurvivalCurves(np.clip(S - 0.02, 0, 1) * alive, TIMES)
    honest = ss.SurvivalCurves(S, TIMES)

    def gap(y, weighting):
        honest_scores, leaking_scores = (
            ss.brier_score(y, curves, weighting=weighting, times=TIMES).scores for curves in (honest, leaking)
        )
        return leaking_scores - honest_scores

    assert (gap(sample.uncensored, "uncensored") > 0).all()
    assert (gap(sample.outcomes, "administrative") > 0).all()
    assert (gap(sample.outcomes, "ipcw") < 0).all()
    assert (gap(sample.outcomes, ss.IPCW("known")) < 0).all()

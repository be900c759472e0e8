import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import survscore as ss
from test_calibration import TIMES, problem


def test_any_metric_becomes_administrative():
    y, curves = problem()
    for j, t in enumerate(TIMES):
        rows, event, _ = ss.at_horizon(y, t)
        risk = 1 - curves.probabilities[rows, j]
        brier = ss.brier_score(y, curves, weighting="administrative", times=[t]).scores[0]
        assert brier_score_loss(event, risk) == pytest.approx(brier, rel=1e-12)
        logarithmic = ss.log_loss(y, curves, weighting="administrative", times=[t]).scores[0]
        assert log_loss(event, risk) == pytest.approx(logarithmic, rel=1e-9)


def test_at_horizon_counts_the_edges():
    # C* = t with and without event at t; an event after t
    y = ss.Outcomes([3, 3, 4, 2], [1, 0, 1, 1], [3, 3, 9, 2.5])
    rows, event, _ = ss.at_horizon(y, 3)
    assert rows.tolist() == [0, 1, 2]
    assert event.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("y", "t", "message"),
    [
        (ss.Outcomes([1], [0]), 1, "at_horizon needs outcomes with censoring_time"),
        (ss.Outcomes([1], [0], [1]), 2, "no individual's status is known at 2: the largest censoring time is 1"),
        (ss.Outcomes([1], [0], [1]), -1, "time must be zero or larger"),
    ],
)
def test_bad_horizons_are_named(y, t, message):
    with pytest.raises(ss.InputError, match=message):
        ss.at_horizon(y, t)


def test_a_weighting_of_another_kind_is_refused():
    y = ss.Outcomes([1, 2], [0, 1], [1, 3])
    with pytest.raises(ss.InputError, match="weighting must be"):
        ss.at_horizon(y, 0.5, weighting="ipcw")
    with pytest.raises(ss.InputError, match="y must be Outcomes"):
        ss.weightings_that_fit(3)


# AUC


def delong_by_pairs(lost, free):
    """Return AUC and standard error from all pairs, as DeLong et al. write it."""
    wins = np.array([[1.0 if a < b else 0.5 if a == b else 0.0 for b in free] for a in lost])
    by_lost, by_free = wins.mean(axis=1), wins.mean(axis=0)
    variance = by_lost.var(ddof=1) / len(lost) + by_free.var(ddof=1) / len(free)
    return wins.mean(), np.sqrt(variance)


@pytest.mark.parametrize("ties", [False, True])
def test_auc_agrees_with_all_pairs_and_with_scikit_learn(ties):
    y, curves = problem(n=120)
    curves = ss.SurvivalCurves(curves.probabilities.round(1), TIMES) if ties else curves
    result = ss.auc(y, curves, weighting="administrative", times=TIMES)
    for j, t in enumerate(TIMES):
        rows, event, _ = ss.at_horizon(y, t)
        survival = curves.probabilities[rows, j]
        assert result.scores[j] == pytest.approx(roc_auc_score(event, 1 - survival), rel=1e-12)
        expected = delong_by_pairs(survival[event], survival[~event])
        np.testing.assert_allclose([result.scores[j], result.se[j]], expected, rtol=1e-10)
        assert (result.n_events[j], result.n_counted[j]) == (event.sum(), event.size)


def test_auc_where_all_have_the_same_status():
    y = ss.Outcomes([3, 4], [1, 1], [9, 9])
    curves = ss.SurvivalCurves([[0.9, 0.5], [0.8, 0.2]], [1, 3.5], extrapolation="hold")
    with pytest.warns(
        ss.UndefinedScoreWarning, match="1 time where all who are counted have the same status"
    ) as caught:
        result = ss.auc(y, curves, weighting="administrative", times=[1, 3.5])
    assert caught[0].filename == __file__
    assert np.isnan(result.scores).tolist() == [True, False]
    assert np.isnan(result.se).all()  # one of each: no variance
    with pytest.warns(ss.UndefinedScoreWarning, match="1 time where no individual has a positive weight"):
        assert np.isnan(ss.auc(y, curves, weighting="administrative", times=[3.5, 10]).scores).tolist() == [False, True]


def test_drop_outs_at_a_horizon_carry_weights():
    y = ss.Outcomes([1, 2, 3, 4, 5], [1, 0, 1, 0, 0], [6, 7, 5, 4, 5])
    rows, event, weight = ss.at_horizon(y, 4)
    assert rows.tolist() == [0, 2, 3, 4]  # the second dropped out
    assert event.tolist() == [True, True, False, False]
    np.testing.assert_allclose(weight, [1, 4 / 3, 4 / 3, 4 / 3])
    assert ss.at_horizon(y, 1.5).rows.tolist() == [0, 1, 2, 3, 4]

import warnings

import numpy as np
import pytest

import survscore as ss
from registry import random_problem
from survscore.losses import Brier, Log, Loss

Y = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 3, 6])
CURVES = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4])


@pytest.mark.parametrize(
    ("y", "curves", "message"),
    [
        ([1, 2], CURVES, "y must be Outcomes, not list"),
        (Y, np.ones((3, 2)), "curves must be SurvivalCurves, not ndarray"),
        (Y, CURVES[:2], "curves has length 2, but y has length 3"),
    ],
)
def test_bad_input_is_named(y, curves, message):
    with pytest.raises(ss.InputError, match=message):
        ss.brier_score(y, curves, weighting="ipcw")


def test_nobody_can_not_be_scored():
    with pytest.raises(ss.InputError, match="y is empty"):
        ss.brier_score(Y[:0], CURVES[:0], weighting="ipcw")


def test_individual_terms_have_no_groups():
    with pytest.raises(ss.InputError, match="groups matter for standard errors"):
        ss.brier_score(Y, CURVES, weighting="ipcw", groups=[1, 2, 3], reduce=False)


@pytest.mark.parametrize("times", [[2, 1], [-1], [np.nan], [], [[1, 2]]])
def test_bad_times_are_refused(times):
    with pytest.raises(ss.InputError, match="times"):
        ss.brier_score(Y, CURVES, weighting="ipcw", times=times)


def test_bad_choices_of_score_all_are_named():
    with pytest.raises(ss.InputError, match="loss must be one of 'brier', 'log', not 'hinge'"):
        ss.score_all(Y, CURVES, losses=["hinge"], weightings=["ipcw"])
    with pytest.raises(ss.InputError, match="put a single one into a list"):
        ss.score_all(Y, CURVES, weightings="ipcw")
    with pytest.raises(ss.InputError, match="must not be empty"):
        ss.score_all(Y, CURVES, weightings=[])


@pytest.mark.parametrize("epsilon", [0, -1, 0.5, np.nan, 1e-20])
def test_epsilon_must_leave_room(epsilon):
    with pytest.raises(ss.InputError, match="epsilon"):
        ss.log_loss(Y, CURVES, weighting="ipcw", epsilon=epsilon)


def test_epsilon_bounds_the_loss_of_impossible_predictions():
    y = ss.Outcomes([1.0], [1])
    sure = ss.SurvivalCurves([[1.0]], [2.0])
    for epsilon in (1e-7, 1e-3, 2.0**-53):
        result = ss.log_loss(y, sure, times=[2], epsilon=epsilon)
        np.testing.assert_allclose(result.scores, -np.log(epsilon), rtol=1e-9)
        assert result.settings["epsilon"] == epsilon


def test_default_times_stay_within_data_and_predictions():
    problem = random_problem(1000, 50)
    result = ss.brier_score(problem.y, problem.curves, weighting="administrative")
    assert result.default_times
    assert result.times.size == 101
    assert result.times[0] == 0
    assert result.times[-1] == np.quantile(problem.y.censoring_time, 0.95, method="lower")
    assert result.n_effective[-1] >= 50
    assert not np.isnan(result.scores).any()
    assert "101 times from 0 to" in repr(result)
    assert "(default)" in repr(result)
    short = ss.SurvivalCurves(problem.curves.at([10.0]), [10.0])
    assert ss.brier_score(problem.y, short, weighting="ipcw").times[-1] == 10


def test_default_times_of_extreme_data():
    curves = ss.SurvivalCurves([[0.9]], [1.0], beyond="hold")
    at_once = ss.brier_score(ss.Outcomes([0.0], [1]), curves)
    assert at_once.times.tolist() == [0]
    never = ss.brier_score(ss.Outcomes([3.0], [1], [np.inf]), curves, weighting="administrative")
    assert never.times[-1] == 3
    many = ss.SurvivalCurves(np.full((100, 1), 0.5), [100.0])
    time, end = np.concatenate(([1, 2], np.linspace(3, 50, 98))), np.concatenate(([1.0, 2.0], np.full(98, np.inf)))
    hardly = ss.brier_score(ss.Outcomes(time, time > 2, end), many, weighting="administrative")
    assert hardly.times[-1] == 50  # the two who can be censored do not set the range


# NaN, and how it is told


def test_beyond_the_data_scores_are_nan_with_one_warning():
    with pytest.warns(ss.UndefinedScoreWarning) as caught:
        results = ss.score_all(Y, CURVES, weightings=["administrative", "ipcw"], times=[1, 4, 5])
    assert len(caught) == 1
    assert "1 time where the predictions end at 4" in str(caught[0].message)
    for result in results:
        assert np.isnan(result.scores).tolist() == [False, False, True]
        assert result.undefined == {"the predictions end at 4": 1}
        assert "NaN at 1 time: the predictions end at 4" in repr(result)
    assert caught[0].filename == __file__


def test_nobody_left():
    held = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4], beyond="hold")
    with pytest.warns(ss.UndefinedScoreWarning, match="2 times where nobody has a weight") as caught:
        result = ss.brier_score(Y, held, weighting="administrative", times=[6, 7, 8])
    assert caught[0].filename == __file__
    assert np.isnan(result.scores).tolist() == [False, True, True]


def test_no_censoring_survival_left():
    y = ss.Outcomes([2, 3, 4], [1, 1, 0])
    with pytest.warns(ss.UndefinedScoreWarning, match="1 time where the censoring survival is zero .a max_weight"):
        result = ss.brier_score(y, CURVES, weighting="ipcw", times=[3, 4])
    assert np.isnan(result.scores).tolist() == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.isnan(ss.brier_score(y, CURVES, weighting=ss.IPCW(max_weight=9), times=[3, 4]).scores).any()


def test_predictions_that_start_too_late():
    with pytest.warns(ss.UndefinedScoreWarning):
        result = ss.brier_score(Y, CURVES, weighting="ipcw", times=[5, 6])
    assert np.isnan(result.scores).all()
    assert "NaN at 2 times" in repr(result)
    with pytest.raises(ss.InputError, match="after the predictions' last time"):
        ss.brier_score(Y, CURVES, weighting="ipcw", times=[5, 6], reduce=False)


# A loss of one's own


class Absolute(Loss):
    name = "absolute"

    def of_event_free(self, survival):
        return 1.0 - np.asarray(survival, dtype=float)

    def of_event(self, survival):
        return np.asarray(survival, dtype=float)


def test_a_new_loss_runs_under_every_weighting_and_at_any_size():
    small = random_problem(200, 10)
    large = random_problem(40_000, 110)
    for problem in (small, large):
        times = problem.times[problem.times < 99]
        absolute, brier = ss.score_all(
            problem.y, problem.curves, losses=[Absolute(), Brier()], weightings=["administrative"], times=times
        )
        assert (absolute.scores > brier.scores).all()
        terms = ss.brier_score(problem.y, problem.curves, weighting="administrative", times=times, reduce=False)
        np.testing.assert_allclose(
            absolute.scores, (terms.weights * np.sqrt(terms.losses)).sum(0) / terms.weights.sum(0), rtol=1e-12
        )


def test_losses_compare_by_value():
    assert Log() == Log(1e-7)
    assert Log() != Log(1e-6)

import warnings
import weakref

import numpy as np
import pytest

import survscore as ss
from registry import random_problem
from survscore.metrics import Brier

Y = ss.Outcomes([2, 3, 4], [1, 0, 1], [5, 3, 6])
CURVES = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 4], interpolation="linear")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ss.brier_score([1, 2], CURVES), "y must be Outcomes, not list"),
        (lambda: ss.brier_score(Y, CURVES[:2]), "curves has length 2, but y has length 3"),
        (lambda: ss.brier_score(Y, CURVES, times=[2, 1]), "times"),
        (lambda: ss.brier_score(Y, CURVES, times=[np.nan]), "times"),
        (lambda: ss.score_terms(Y, CURVES, metric="auc"), "metric must be a loss, .*, not 'auc'"),
        (lambda: ss.score_all(Y, CURVES, metric=["hinge"]), "metric must be one of 'brier', 'log', .*not 'hinge'"),
        (lambda: ss.score_all(Y, CURVES, metric=["log", ss.Log(1e-3)]), "metric must name different metrics"),
        (lambda: ss.log_loss(Y, CURVES, epsilon=0), "epsilon"),
        (lambda: ss.log_loss(Y, CURVES, epsilon=np.nan), "epsilon"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()


def test_epsilon_bounds_the_loss_of_impossible_predictions():
    y = ss.Outcomes([1.0], [1])
    sure = ss.SurvivalCurves([[1.0]], [2.0])
    for epsilon in (1e-7, 1e-3, 2.0**-53):
        result = ss.log_loss(y, sure, times=[2], epsilon=epsilon)
        np.testing.assert_allclose(result.scores, -np.log(epsilon), rtol=1e-9)
        assert result.settings["epsilon"] == epsilon


# NaN, and how it is told


def test_beyond_the_data_scores_are_nan_with_one_warning():
    with pytest.warns(ss.UndefinedScoreWarning) as caught:
        results = ss.score_all(Y, CURVES, weighting=["administrative", "ipcw"], times=[1, 4, 5])
    assert len(caught) == 1
    assert "1 time where the predictions end at 4" in str(caught[0].message)
    for result in results:
        assert np.isnan(result.scores).tolist() == [False, False, True]
        assert result.undefined == {"the predictions end at 4": 1}
        assert "NaN at 1 time: the predictions end at 4" in repr(result)
    assert caught[0].filename == __file__


def test_no_censoring_survival_left():
    y = ss.Outcomes([2, 3, 4], [1, 1, 0])
    # whatever the cap: only events are left, so any number would be invented
    for weighting in ("ipcw", ss.IPCW(max_weight=9), ss.IPCW(lambda t: 1 - t / 20)):
        with pytest.warns(
            ss.UndefinedScoreWarning, match="1 time where only individuals with event are left, since the"
        ):
            result = ss.brier_score(y, CURVES, weighting=weighting, times=[3, 4])
        assert np.isnan(result.scores).tolist() == [False, True]
    training = ss.Outcomes([1, 2.5, 3], [1, 0, 0])
    with pytest.warns(ss.UndefinedScoreWarning, match="1 time where the censoring survival is zero .a `max_weight`"):
        result = ss.brier_score(y, CURVES, weighting=ss.IPCW(training), times=[2, 3.5])
    assert np.isnan(result.scores).tolist() == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capped = ss.brier_score(y, CURVES, weighting=ss.IPCW(training, max_weight=9), times=[2, 3.5])
    assert not np.isnan(capped.scores).any()


# A loss of one's own


class Doubled(Brier):
    """A subclass with a formula of its own."""

    name = "doubled"
    kernel = 1  # no number makes another loss run in its place

    def of_event_free(self, survival):
        return 2.0 * super().of_event_free(survival)

    def of_event(self, survival):
        return 2.0 * super().of_event(survival)


def test_a_subclass_runs_its_own_formula_where_losses_are_compiled():
    problem = random_problem(100_000, 12)
    times = problem.times[:9]
    for weighting in ("administrative", "ipcw"):
        doubled, brier = ss.score_all(
            problem.y, problem.curves, metric=[Doubled(), Brier()], weighting=weighting, times=times
        )
        np.testing.assert_allclose(doubled.scores, 2 * brier.scores, rtol=1e-12)
        np.testing.assert_allclose(doubled.se, 2 * brier.se, rtol=1e-9)
        assert doubled.integrated().se == pytest.approx(2 * brier.integrated().se, rel=1e-9)


# Predictions in batches


def test_batches_need_memory_for_one():
    """A generator that makes each batch when it is asked for: never two at a time, and the same result."""
    problem = random_problem(1_000, 20, lost=True)
    alive, most = [0], [0]

    class Batch(np.ndarray):
        def __array_finalize__(self, other):
            if other is None or type(other) is np.ndarray:
                alive[0] += 1
                most[0] = max(most[0], alive[0])
                weakref.finalize(self, lambda: alive.__setitem__(0, alive[0] - 1))

    def batches():
        for start in range(0, 1_000, 100):
            rows = problem.curves.probabilities[start : start + 100].copy().view(Batch)
            yield ss.SurvivalCurves(rows, problem.curves.times, extrapolation="hold")

    settings = {"weighting": ["administrative", "ipcw"], "times": problem.times[:15], "metric": ["brier", "log"]}
    streamed = ss.score_all(problem.y, ss.CurveBatches(batches, n=1_000), **settings)
    whole = ss.score_all(problem.y, problem.curves, **settings)
    assert most[0] <= 2  # the one at work, and the one that is being made
    for a, b in zip(streamed, whole, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12)
        np.testing.assert_allclose(a.se, b.se, rtol=1e-10)
        assert a.integrated().bounds == pytest.approx(b.integrated().bounds) if b.bounds else a.bounds is None


@pytest.mark.parametrize(
    ("make", "n", "message"),
    [
        (lambda: [CURVES, CURVES], 3, "batches hold more than the 3 individuals"),
        (lambda: [CURVES[:2]], 3, "batches hold fewer than the 3 individuals"),
        (lambda: [CURVES[:1], ss.SurvivalCurves([[0.9]] * 2, [1])], 3, "batches must all be on the same grid"),
        ([CURVES], 3, "batches must be a function"),
    ],
)
def test_bad_batches_are_named(make, n, message):
    with pytest.raises(ss.InputError, match=message):
        ss.brier_score(Y, ss.CurveBatches(make, n=n), weighting="administrative", times=[1])


@pytest.mark.parametrize("curve", [1e-30, 0.0], ids=["huge", "infinite"])
def test_those_who_are_no_longer_counted_leave_nothing_behind(curve):
    """One with an enormous weight is counted at the first time only; at the second it must not matter, in any loop."""
    dropout = ss.SurvivalCurves(
        [[1.0, curve], [1.0, 1.0], [1.0, 1.0]], [0.3, 0.4], interpolation="step", extrapolation="hold"
    )
    lost = ss.Outcomes([0.5, 0.25, 2.0], [True, True, False], [0.5, 1.0, 3.5])  # so that weights are asked for
    curves = ss.SurvivalCurves(np.full((3, 2), 0.7), [0.6, 1.0], interpolation="step", extrapolation="hold")
    found = {}
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weighting = ss.Administrative(dropout=dropout)
            found[backend] = ss.brier_score(lost, curves, weighting=weighting, times=[0.5, 1.0])
    np.testing.assert_allclose(found["compiled"].scores, found["numpy"].scores, rtol=1e-12)
    np.testing.assert_allclose(found["compiled"].n_effective, found["numpy"].n_effective, rtol=1e-12)
    assert np.isfinite(found["compiled"].scores[1])

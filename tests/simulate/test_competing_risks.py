"""Two causes: the truth is that of the draws, and a covariate encodes the censoring time."""

import math

import numpy as np
import pytest

import survscore as ss
from survscore.simulate import (
    CompetingRisksStudy,
    ConstantHazardStudy,
    expected_score,
    irreducible_error,
    mean_squared_error,
)

STUDY = CompetingRisksStudy()
TIMES = np.array([10.0, 50.0, 80.0])


def test_incidences_by_the_formula():
    sample = STUDY.sample(3, seed=1)
    got = sample.incidence(STUDY.grid).probabilities
    for i, (satisfaction, debt, _) in enumerate(sample.covariates.to_numpy()):
        event_free, incidence = 1.0, [0.0, 0.0]
        for j in range(100):
            odds = [
                math.exp(-5.0 - satisfaction - 1.5 * (j + 1) / 100),
                math.exp(-6.5 + debt + 1.5 * (j + 1) / 100),
            ]
            for k in range(2):
                incidence[k] += event_free * odds[k] / (1.0 + sum(odds))
            event_free /= 1.0 + sum(odds)
            assert got[i, :, j] == pytest.approx(incidence, rel=1e-12)
    np.testing.assert_allclose(sample.survival(TIMES).probabilities + sample.incidence(TIMES).probabilities.sum(1), 1.0)


def test_draws_have_the_true_incidences():
    sample = STUDY.sample(40_000, seed=1)
    y, truth = sample.uncensored, sample.incidence(TIMES).probabilities
    assert y.causes == sample.outcomes.causes == ("churn", "non-payment")
    for group in (slice(None), sample.covariates["satisfaction"] > 0, sample.covariates["debt"] > 0):
        rows = np.arange(40_000)[group]
        for k, j in np.ndindex(2, 3):
            happened = (y.cause[rows] == k + 1) & (y.time[rows] <= TIMES[j])
            se = np.sqrt(np.mean(truth[rows, k, j] * (1 - truth[rows, k, j])) / rows.size)
            assert abs(happened.mean() - truth[rows, k, j].mean()) < 4 * se


def test_what_is_observed_and_what_reveals_the_censoring_time():
    sample = STUDY.sample(500, seed=1)
    y, whole = sample.outcomes, sample.uncensored
    np.testing.assert_allclose(y.censoring_time, 100 * (1 - sample.covariates["entry"]))
    seen = whole.event & (whole.time <= y.censoring_time)
    np.testing.assert_array_equal(y.cause, np.where(seen, whole.cause, 0))
    np.testing.assert_array_equal(y.time, np.where(seen, whole.time, y.censoring_time))
    assert y.n_dropped_out == 0
    assert min(y.n_by_cause.values()) > 50
    again = STUDY.sample(500, seed=1)
    np.testing.assert_array_equal(again.outcomes.time, y.time)
    assert not np.array_equal(STUDY.sample(500, seed=2).outcomes.time, y.time)


def test_parameters():
    flat = CompetingRisksStudy(effect=0).sample(4, seed=1).incidence([50]).probabilities
    np.testing.assert_array_equal(flat, flat[[0]].repeat(4, axis=0))
    fine, coarse = (CompetingRisksStudy(n_times=n).sample(100, seed=1).incidence([50, 100]) for n in (400, 100))
    np.testing.assert_allclose(fine.probabilities, coarse.probabilities, atol=0.02)
    assert CompetingRisksStudy(end=10).sample(50, seed=1).outcomes.censoring_time.max() <= 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CompetingRisksStudy(n_times=0), "n_times must be"),
        (lambda: CompetingRisksStudy(effect=np.nan), "effect must be finite, not nan"),
        (lambda: CompetingRisksStudy(end=0), "end must be positive and finite, not 0"),
        (lambda: STUDY.sample(0, seed=1), "n must be"),
        (lambda: STUDY.sample(2, seed=1).incidence([101]), "times must be within the study, which ends at 100"),
        (lambda: ConstantHazardStudy().sample(2, seed=1).incidence([1]), "events of one kind"),
        (
            lambda: mean_squared_error(
                STUDY.sample(2, seed=1).incidence([1]), STUDY.sample(2, seed=1).incidence([1]), [1]
            ),
            r"the curves are of several causes \('churn' and 'non-payment'\): say which one \(cause=\)",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()


def draws(truth, end, n, rng):
    """Yield event times and causes drawn from the truth, without censoring, and what is observed of them."""
    steps = np.diff(truth.probabilities, axis=2, prepend=0.0)
    levels = np.cumsum(steps.transpose(0, 2, 1).reshape(len(truth), -1), axis=1)  # cause within time
    for _ in range(n):
        place = np.count_nonzero(levels <= rng.random((len(truth), 1)), axis=1)
        happened = place < levels.shape[1]
        time = np.where(happened, truth.times[np.minimum(place, levels.shape[1] - 1) // 2], 100.0)
        whole = ss.Outcomes(time, np.where(happened, 1 + place % 2, 0), np.full(len(truth), 100.0), causes=truth.causes)
        yield whole, whole.until(end)


@pytest.mark.statistical
@pytest.mark.parametrize("cause", ["churn", "non-payment"])
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_expected_scores_are_the_mean_over_draws(cause):
    sample = STUDY.sample(200, seed=3)
    truth, end = sample.incidence(STUDY.grid), sample.outcomes.censoring_time
    off = ss.IncidenceCurves(0.7 * truth.probabilities**0.9, STUDY.grid, causes=truth.causes, interpolation="step")
    weightings = [
        ss.Uncensored(),
        ss.Administrative(),
        ss.IPCW("known", normalize="n"),
        ss.IPCW(lambda t: 1 - t / 120, max_weight=1.5, normalize="n"),
    ]
    scores = []
    for whole, observed in draws(truth, end, 300, np.random.default_rng(1)):
        scores.append([
            ss.brier_score(
                whole if isinstance(weighting, ss.Uncensored) else observed, off, weighting=weighting, times=TIMES,
                errors=False, cause=cause,
            ).scores
            for weighting in weightings
        ])  # fmt: skip
    error = np.std(scores, axis=0, ddof=1) / np.sqrt(300)
    for q, weighting in enumerate(weightings):
        expected = expected_score(truth, off, end, weighting=weighting, times=TIMES, cause=cause)
        assert (np.abs(np.mean(scores, axis=0)[q] - expected) < 4 * error[q]).all(), weighting
    np.testing.assert_allclose(
        expected_score(truth, off, end, weighting="uncensored", times=TIMES, cause=cause),
        mean_squared_error(truth, off, TIMES, cause=cause) + irreducible_error(truth, TIMES, cause=cause),
    )

"""Expected scores: equal to the mean of scores over many draws, and smallest where the paper says."""

import numpy as np
import pytest

import survscore as ss
from combinations import nightly_but
from survscore.simulate import (
    CompetingRisksStudy,
    ConstantHazardStudy,
    SineConstantAcceleratingStudy,
    expected_score,
    irreducible_error,
    mean_squared_error,
)

TIMES = np.array([10.0, 40.0, 80.0])
STUDY = SineConstantAcceleratingStudy("simple")
RISKS = CompetingRisksStudy()


def problem(n=300):
    """Individuals with true survival, censoring times, and predictions that are off."""
    sample = STUDY.sample(n, seed=3)
    truth = sample.survival(STUDY.grid)
    off = np.clip(0.05 + 0.9 * truth.probabilities**1.3, 0, 1)
    return truth, ss.SurvivalCurves(off, STUDY.grid, interpolation="step"), sample.outcomes.censoring_time


def draw(truth, end, rng):
    """Draw event times from the truth, and what is observed of them."""
    level = rng.random(len(truth))
    position = np.count_nonzero(truth.probabilities > level[:, None], axis=1)
    happened = position < truth.times.size
    time = truth.times[np.minimum(position, truth.times.size - 1)]
    seen = happened & (time <= end)
    uncensored = ss.Outcomes(np.where(happened, time, 100.0), happened, np.full(len(truth), 100.0))
    return uncensored, ss.Outcomes(np.where(seen, time, end), seen, end)


QUICK = [ss.Administrative(), ss.IPCW("known", normalize="n")]
MORE = [
    ss.Uncensored(),
    ss.IPCW("known"),
    ss.IPCW(lambda t: 1 - t / 120, normalize="n"),
    ss.IPCW(lambda t: 1 - t / 120, max_weight=1.5, normalize="n"),
]


@pytest.mark.statistical
@pytest.mark.parametrize("loss", nightly_but(["brier"], ["brier", "log"]))
@pytest.mark.parametrize("weighting", nightly_but(QUICK, [*QUICK, *MORE]))
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_expectation_is_the_mean_over_draws(weighting, loss):
    truth, curves, end = problem()
    rng = np.random.default_rng(1)
    scores = []
    for _ in range(400):
        uncensored, observed = draw(truth, end, rng)
        y = uncensored if isinstance(weighting, ss.Uncensored) else observed
        scores.append(ss.score_all(y, curves, metric=loss, weighting=weighting, times=TIMES, errors=False)[0].scores)
    expected = expected_score(truth, curves, end, weighting=weighting, metric=loss, times=TIMES)
    error = np.std(scores, axis=0, ddof=1) / 20
    # the mean of a ratio, whose divisor is drawn, is not the ratio of the means
    bias = 2e-3 if isinstance(weighting, ss.IPCW) and weighting.normalize != "n" else 0.0
    assert (np.abs(np.mean(scores, axis=0) - expected) < 4 * error + bias).all()


def test_uncensored_brier_score_is_mse_plus_what_is_irreducible():
    truth, curves, end = problem()
    expected = expected_score(truth, curves, end, weighting="uncensored", times=TIMES)
    np.testing.assert_allclose(expected, mean_squared_error(truth, curves, TIMES) + irreducible_error(truth, TIMES))


def test_known_censoring_agrees_with_the_two_groups_of_the_paper():
    truth, curves, end = problem()
    got = expected_score(truth, curves, end, weighting=ss.IPCW("known", normalize="n"), times=TIMES)
    for j, t in enumerate(TIMES):
        total = 0.0
        for i in range(len(truth)):
            s, pi = truth.at([t])[i, 0], curves.at([t])[i, 0]
            if end[i] > t:
                total += pi**2 * (1 - s) + (1 - pi) ** 2 * s
            else:
                total += pi**2 * (1 - truth.at([end[i]])[i, 0])
        assert got[j] == pytest.approx(total / len(truth))


@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize(
    ("weighting", "best"),
    [
        ("uncensored", "truth"),
        ("administrative", "truth"),
        (ss.IPCW("known", normalize="n"), "falling"),
        (ss.IPCW("known"), "falling"),
        (ss.IPCW(max_weight=1, censoring=lambda t: 1 - t / 101), "falling"),
    ],
    ids=str,
)
def test_minimisers_are_those_of_the_paper(weighting, best, loss):
    """S for the uncensored and the administrative score; S 1{C* > t} for IPCW with known censoring times."""
    truth, _, end = problem()
    s, after = truth.probabilities, end[:, None] <= STUDY.grid
    candidates = {"truth": s, "falling": np.where(after, 0.0, s)}
    rng = np.random.default_rng(2)
    for k in range(6):
        noise = rng.normal(0, 0.1, s.shape)
        candidates[f"truth, moved {k}"] = np.clip(s + np.where(after & (k % 2 == 0), 0.0, noise), 0, 1)
        candidates[f"falling, moved {k}"] = np.clip(
            np.where(after, 0.0, s) + np.abs(noise) * (k % 2) + noise * 0.1, 0, 1
        )
    found = {
        name: expected_score(
            truth, ss.SurvivalCurves(values, STUDY.grid, interpolation="step", monotone="keep"), end,
            weighting=weighting, metric=loss, times=TIMES,
        )
        for name, values in candidates.items()
    }  # fmt: skip
    for name, values in found.items():
        assert (found[best] <= values + 1e-12).all(), name
    other = {"truth": "falling", "falling": "truth"}[best]
    if weighting != "administrative":  # which can't see what is predicted after C*
        assert (found[best] < found[other] - 1e-3).all()


def test_independent_censoring_with_the_right_g_is_unbiased_on_average():
    """Over draws of C* as well, IPCW with the true G expects what the uncensored score does."""
    study = ConstantHazardStudy()
    sample = study.sample(40_000, seed=1)
    truth = ss.SurvivalCurves(
        np.tile(study.survival(study.grid), (40_000, 1)).astype(np.float32), study.grid, interpolation="step"
    )
    weighting = ss.IPCW(lambda t: 1 - t / 100, normalize="n")
    got = expected_score(truth, truth, sample.outcomes.censoring_time, weighting=weighting, times=TIMES[:2])
    expected = expected_score(truth, truth, sample.outcomes.censoring_time, weighting="uncensored", times=TIMES[:2])
    np.testing.assert_allclose(got, expected, rtol=0.02)


def test_bad_input_is_refused():
    truth, curves, end = problem(20)
    good = {"weighting": "administrative", "times": TIMES}
    with pytest.raises(ss.InputError, match="curves has length 5, but truth has length 20"):
        expected_score(truth, curves[:5], end, **good)
    with pytest.raises(ss.InputError, match="censoring_time has length 5"):
        expected_score(truth, curves, end[:5], **good)
    with pytest.raises(ss.InputError, match=r"expectation under ipcw .* is not known"):
        expected_score(truth, curves, end, weighting=ss.IPCW(), times=TIMES)
    with pytest.raises(ss.InputError, match="metric must be a loss, which is known for each individual, not 'auc'"):
        expected_score(truth, curves, end, metric="auc", **good)
    smooth = ss.SurvivalCurves(truth.probabilities, truth.times)
    with pytest.raises(ss.InputError, match="truth must be step curves"):
        expected_score(smooth, curves, end, weighting=ss.IPCW("known"), times=TIMES)
    with pytest.raises(ss.InputError, match="curves has length 5"):
        mean_squared_error(truth, curves[:5], TIMES)


def test_the_error_of_all_causes_is_that_of_the_multiclass_score():
    truth, curves = (
        ss.IncidenceCurves({"a": [[0.1, 0.2], [0.3, 0.4]], "b": [[b, 0.3], [0.0, b]]}, [1, 2]) for b in (0.2, 0.25)
    )
    times = [1, 2]
    p, q = ([given.event_free().at(times), *given.at(times).transpose(1, 0, 2)] for given in (truth, curves))
    expected = sum(np.square(one - other).mean(axis=0) for one, other in zip(p, q, strict=True))
    np.testing.assert_allclose(ss.simulate.mean_squared_error(truth, curves, times, cause="all"), expected, rtol=1e-12)
    variance = sum((one * (1 - one)).mean(axis=0) for one in p)
    np.testing.assert_allclose(ss.simulate.irreducible_error(truth, times, cause="all"), variance, rtol=1e-12)
    for other in (curves.event_free(), ss.IncidenceCurves(curves.probabilities, [1, 2], causes=["a", "c"])):
        with pytest.raises(ss.InputError, match="curves must be"):
            ss.simulate.mean_squared_error(truth, other, times, cause="all")
    with pytest.raises(ss.InputError, match="one cause, not 'all'"):
        ss.simulate.expected_score(truth, curves, [3, 3], weighting="uncensored", times=times, cause="all")


# Competing risks


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


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("cause", ["churn", "non-payment"])
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_expected_scores_are_the_mean_over_draws(cause):
    sample = RISKS.sample(200, seed=3)
    truth, end = sample.incidence(RISKS.grid), sample.outcomes.censoring_time
    off = ss.IncidenceCurves(0.7 * truth.probabilities**0.9, RISKS.grid, causes=truth.causes, interpolation="step")
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

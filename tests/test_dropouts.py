"""Drop-outs beside a known end of the data: what the weighting promises, and what it refuses."""

import numpy as np
import pytest

import survscore as ss
from registry import random_problem

TIMES = np.array([2.0, 4.0, 6.0, 8.0])


# What it equals


def test_without_drop_outs_every_source_is_the_plain_score():
    problem = random_problem(300, 20)
    plain = ss.brier_score(
        problem.y, problem.curves, weighting=ss.Administrative(dropout="refuse"), times=problem.times
    )
    lost = random_problem(100, 20, lost=True).y
    for dropout in ("kaplan-meier", lost, problem.censoring, lambda t: np.exp(-np.asarray(t) / 50)):
        got = ss.brier_score(
            problem.y, problem.curves, weighting=ss.Administrative(dropout=dropout), times=problem.times
        )
        np.testing.assert_array_equal(got.scores, plain.scores)
        np.testing.assert_array_equal(got.se, plain.se)


@pytest.mark.parametrize("settings", [{}, {"normalize": "n"}, {"max_weight": 1.4}, {"variance": "martingale"}])
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_without_an_end_it_is_ipcw(settings):
    y = random_problem(300, 20, lost=True).y
    problem = random_problem(300, 20)
    endless = ss.Outcomes(y.time, y.event, np.full(300, np.inf))
    models = {"a": problem.curves, "b": problem.censoring}
    ours, theirs = (
        ss.compare(outcomes, models, weighting=weighting, times=problem.times, metric=["brier", "log", "auc"])
        for outcomes, weighting in ((endless, ss.Administrative(**settings)), (y, ss.IPCW(**settings)))
    )
    columns = ["score", "se", "n_effective"]
    np.testing.assert_allclose(ours.scores[columns], theirs.scores[columns], rtol=1e-12, atol=1e-15)
    columns = ["difference", "se", "p_value"]
    np.testing.assert_allclose(ours.contrasts[columns], theirs.contrasts[columns], rtol=1e-10, atol=1e-14)
    a, b = (result.integrated(5, 60).contrasts for result in (ours, theirs))
    np.testing.assert_allclose(a[columns], b[columns], rtol=1e-10, atol=1e-14)


def test_a_fixed_population_is_the_score_of_those_alone_where_nobody_is_lost():
    problem = random_problem(500, 20)
    late = problem.y.censoring_time >= problem.times[12]
    fixed = ss.brier_score(
        problem.y, problem.curves, weighting=ss.Administrative(population="fixed"), times=problem.times[:13]
    )
    alone = ss.brier_score(problem.y[late], problem.curves[late], weighting="administrative", times=problem.times[:13])
    np.testing.assert_allclose(fixed.scores, alone.scores, rtol=1e-12)
    np.testing.assert_allclose(fixed.se, alone.se, rtol=1e-10)
    assert (fixed.n_counted == late.sum()).all()


# Bias, coverage, and which model wins: simulated


def draw(rng, n, *, drop_rate=0.05):
    """Draw rates, outcomes with drop-outs, and the same had nobody been lost; C* depends on the rate."""
    rate = rng.gamma(3, 0.05, n)
    star = rng.exponential(1 / rate)
    end = rng.uniform(3, 12, n) * np.where(rate > 0.15, 0.85, 1.0)
    drop = rng.exponential(1 / drop_rate, n)
    full = ss.Outcomes(np.minimum(star, end), star <= end, end)
    y = ss.Outcomes(np.minimum(full.time, drop), full.event & (full.time <= drop), end)
    return rate, y, full


@pytest.mark.statistical
def test_unbiased_and_covering():
    """Without bias and with a coverage of 95 %, within what chance does of 150 replicates."""
    found = []
    for seed in range(150):
        rng = np.random.default_rng([7, seed])
        rate, y, full = draw(rng, 1000)
        training, curves = draw(rng, 1000)[1], ss.SurvivalCurves(np.exp(-1.3 * rate[:, None] * TIMES), TIMES)
        nobody_lost = ss.brier_score(full, curves, weighting="administrative", times=TIMES)
        for weighting in (ss.Administrative(), ss.Administrative(dropout=training)):
            score = ss.brier_score(y, curves, weighting=weighting, times=TIMES)
            found.append([score.scores, score.lower, score.upper, nobody_lost.scores])
    score, lower, upper, full = np.array(found).reshape(150, 2, 4, -1).transpose(2, 0, 1, 3)
    difference = score - full
    assert (np.abs(difference.mean(axis=0)) < 3.5 * difference.std(axis=0) / np.sqrt(150)).all()
    truth = full.mean(axis=(0, 1))
    coverage = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    assert (coverage > 0.89).all(), coverage


def leaking(rng, n=1000):
    """Data with some drop-outs, the truth, and a model that falls to zero after everybody's own C*."""
    rate, y, _ = draw(rng, n, drop_rate=0.01)
    truth = np.exp(-rate[:, None] * TIMES)
    leak = 0.9 * truth * (y.censoring_time[:, None] > TIMES)
    return y, {
        "truth": ss.SurvivalCurves(truth, TIMES),
        "leaking": ss.SurvivalCurves(leak, TIMES, interpolation="step"),
    }


@pytest.mark.statistical
def test_a_leak_that_ipcw_prefers_is_not_preferred():
    preferred = {"administrative": 0, "ipcw": 0}
    for seed in range(100):
        y, models = leaking(np.random.default_rng([8, seed]))
        assert y.dropped_out.any()
        for name in preferred:
            result = ss.compare(y, models, weighting=name, times=TIMES, null=False, ranges=[])
            preferred[name] += int(result.integrated().contrasts["difference"].iloc[0] < 0)
    assert preferred["ipcw"] >= 95
    assert preferred["administrative"] <= 5


# What is told, and what is refused


def small(n_lost=1):
    time, event, end = [2, 3, 4, 5, 1], [1, 0, 1, 0, 0], [5, 9, 6, 5, 1]
    if n_lost == 0:
        end[1] = 3
    return ss.Outcomes(time, event, end), ss.SurvivalCurves([[0.9, 0.5, 0.4]] * 5, [1, 4, 6])


def test_the_result_says_how_many_dropped_out():
    y, curves = small()
    score = ss.brier_score(y, curves, weighting="administrative", times=[1, 4])
    assert score.weighting == "administrative (drop-out by Kaplan-Meier in risk strata)"
    assert score.n_dropped_out == 1
    assert "1 of 5 dropped out" in repr(score)
    assert "1 of 5 dropped out" in repr(ss.compare(y, {"a": curves}, weighting="administrative", times=[1, 4]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dropout": "refuse"}, "1 individual of 5 dropped out before, the first at position 1"),
        ({"dropout": ss.Outcomes([1, 2], [1, 1], [3, 3])}, "dropped out in the given outcomes.* 1 of 5 who did"),
        ({"dropout": ss.Outcomes([1, 2], [1, 0])}, "the given outcomes need censoring_time"),
        ({"dropout": ss.SurvivalCurves([[0.9]] * 4, [1])}, "dropout curves has length 4, but outcomes has length 5"),
        ({"population": ss.SurvivalCurves([[0.9]] * 4, [1])}, "population curves has length 4, but outcomes"),
        ({"dropout": lambda t: 1 - t}, "the censoring function must be between 0 and 1"),
        ({"dropout": lambda t: t / 100}, "the censoring function rises with time"),
        (
            {"dropout": ss.SurvivalCurves([[0.5, 0.9]] * 5, [1, 2], monotone="keep")},
            "dropout: the curves rise with time",
        ),
        ({"dropout": "cox"}, "dropout must be 'kaplan-meier', 'refuse', Outcomes .* not 'cox'"),
        ({"dropout": None}, "dropout must be"),
        ({"population": "all"}, "population must be None, 'fixed', a time, or SurvivalCurves"),
        ({"population": -1}, "population must be a time, zero or later, not -1"),
        ({"population": np.nan}, "population must be a time"),
        ({"population": True}, "population must be None"),
        ({"max_weight": 0.3}, "`max_weight` must be a number, at least 1"),
        ({"normalize": "sum"}, "normalize must be one of 'weights', 'n'"),
        ({"variance": "naive"}, "variance must be one of 'exact', 'martingale'"),
        ({"dropout": "refuse", "variance": "martingale"}, "variance matters only where drop-out is estimated from the"),
        ({"population": ss.SurvivalCurves([[0.9]] * 5, [1]), "normalize": "n"}, "does not fit population curves"),
    ],
)
def test_bad_settings_are_named(settings, message):
    y, curves = small()
    with pytest.raises(ss.InputError, match=message):
        ss.brier_score(y, curves, weighting=ss.Administrative(**settings), times=[1, 4])


@pytest.mark.parametrize(
    ("settings", "reason", "missing"),
    [
        ({"dropout": ss.SurvivalCurves([[0.9]] * 5, [3])}, "the drop-out curves end before", [0, 1]),
        (
            {"dropout": ss.SurvivalCurves([[0.9, 0.0]] * 5, [1, 2], extrapolation="hold")},
            "the drop-out survival is zero",
            [0, 1],
        ),
        ({"population": ss.SurvivalCurves([[0.9]] * 5, [3])}, "the population curves end before", [0, 1]),
        (
            {"population": ss.SurvivalCurves([[0.9, 0.0]] * 5, [1, 4], extrapolation="hold")},
            "the population curves are zero for an individual who is counted",
            [0, 1],
        ),
        ({"population": 100}, "no individual has a positive weight", [1, 1]),
    ],
)
def test_what_can_not_be_had_is_nan_with_its_reason(settings, reason, missing):
    y, curves = small()
    with pytest.warns(ss.UndefinedScoreWarning, match=reason):
        score = ss.brier_score(y, curves, weighting=ss.Administrative(**settings), times=[1, 4])
    assert np.isnan(score.scores).astype(int).tolist() == missing
    assert np.isnan(score.se).astype(int).tolist() == missing
    assert reason in "; ".join(score.undefined)


def test_everybody_lost():
    y = ss.Outcomes([2, 3, 4], [0, 0, 0], [9, 9, 9])
    curves = ss.SurvivalCurves([[0.9, 0.5]] * 3, [1, 5])
    with pytest.warns(
        ss.UndefinedScoreWarning, match="only individuals with event are left, since the last dropped out"
    ):
        score = ss.brier_score(y, curves, weighting="administrative", times=[1, 3.5, 5])
    np.testing.assert_allclose(score.scores, [0.01, (1 - 0.65) ** 2, np.nan], rtol=1e-12)
    assert score.bounds.lower[2] == pytest.approx(0.25)
    assert score.bounds.upper[2] == pytest.approx(0.25)  # 0.5 is as wrong either way


def test_rounding_is_no_dropping_out():
    y = ss.Outcomes([2, 3], [1, 0], [5, 3 + 1e-12])
    curves = ss.SurvivalCurves([[0.9]] * 2, [1])
    for weighting in ("administrative", ss.Administrative(dropout="refuse")):
        with pytest.raises(ss.InputError, match="a gap of at most 1e-12, the first at position 1; that is rounding"):
            ss.brier_score(y, curves, weighting=weighting, times=[1])

"""Standard errors: against numerical derivatives, the jackknife, R, and each other."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import oracle
import survscore as ss
from registry import CASES, Case, random_problem
from survscore import _loops
from survscore.inference import Groups, simultaneous_quantile
from survscore.influence import Influence
from survscore.losses import as_loss
from survscore.scores import sum_up
from survscore.weighting import TimeIndex, as_weighting

DATASETS = json.loads((Path(__file__).parent / "reference" / "r_reference.json").read_text())["datasets"]
every_dataset = pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS.keys())


def small_problem(seed, n=40, *, ties=True):
    rng = np.random.default_rng(seed)
    star, end = rng.exponential(6, n), rng.uniform(1, 10, n)
    if ties:
        star, end = np.ceil(star), np.ceil(end)
    y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    times = np.array([1.0, 2.0, 4.0, 5.5])
    pi = np.exp(-times / rng.uniform(2, 12, (n, 1)))
    return y, ss.SurvivalCurves(pi, times), times, rng


# The derivative itself


def weighted_score(name, y, pi, t_index, t, p, *, kind, cap, by_n):
    """Return the score of a sample in which individual i counts p[i] times, for any real p[i]: literally."""
    total = weights = 0.0

    def G(until, strictly):
        value = 1.0
        for s in sorted(set(y.time)):
            if s < until or (s == until and not strictly):
                censored = sum(w for T, D, w in zip(y.time, y.event, p, strict=True) if T == s and not D)
                at_risk = sum(w for T, D, w in zip(y.time, y.event, p, strict=True) if T > s or (T == s and not D))
                if censored:
                    value *= 1 - censored / at_risk
        return value

    for i, (T, D, C) in enumerate(zip(y.time, y.event, y.censoring_time, strict=True)):
        if kind == "administrative":
            weight, free = float(t <= C), not (D and T <= t)
        elif T <= t and D:
            weight, free = min(1 / G(T, True), cap), False
        elif T > t:
            weight, free = min(1 / G(t, False), cap), True
        else:
            continue
        total += p[i] * weight * oracle.loss(name, free, pi[i, t_index])
        weights += p[i] * weight
    return total / (sum(p) if by_n else weights)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize(
    ("weighting", "settings"),
    [
        (ss.Administrative(), {"kind": "administrative", "cap": math.inf, "by_n": False}),
        (ss.IPCW(), {"kind": "ipcw", "cap": math.inf, "by_n": False}),
        (ss.IPCW(normalize="n"), {"kind": "ipcw", "cap": math.inf, "by_n": True}),
        (ss.IPCW(max_weight=1.3), {"kind": "ipcw", "cap": 1.3, "by_n": False}),
    ],
    ids=["administrative", "ipcw", "ipcw / n", "ipcw capped"],
)
def test_influence_is_the_derivative_of_the_score(seed, loss, weighting, settings):
    y, curves, times, _ = small_problem(seed, n=14)
    n, step = len(y), 1e-5
    curve = ss.score_all(y, curves, losses=[loss], weightings=[weighting], times=times)[0]
    (_, block) = next(iter(curve._influence._blocks(0, times.size)))
    got = block[0] - block[0].mean(axis=0)
    for j, t in enumerate(times):
        if np.isnan(curve.scores[j]):
            continue
        for i in range(n):
            both = []
            for sign in (1, -1):
                p = np.ones(n)
                p[i] += sign * step
                both.append(weighted_score(loss, y, curves.probabilities, j, t, p, **settings))
            expected = (both[0] - both[1]) / (2 * step)
            assert got[i, j] == pytest.approx(expected, abs=3e-8), (i, t)


# The two ways to compute, all weightings


MARTINGALE = Case("ipcw martingale", lambda p: ss.IPCW(variance="martingale", normalize="n"), lambda name, p: None)
ACCEPTING = [case for case in [*CASES, MARTINGALE] if case.data != "uncensored"]


@pytest.mark.parametrize("case", ACCEPTING, ids=lambda case: case.name)
@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize("same_grid", [True, False])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_compiled_influences_agree_with_numpy(case, loss, same_grid, grouped):
    problem = random_problem(700, 40, same_grid=same_grid)
    times = problem.times[problem.times < 95]
    index = TimeIndex(problem.y, times)
    weighting = as_weighting(case.weighting(problem), problem.y)
    models = []
    for curves in (problem.curves, problem.censoring):
        (found,) = sum_up(curves, index, [as_loss(loss)], [weighting])
        models.append(found.scored_model(curves, as_loss(loss), found.sums[:, 0], 700))
    groups = Groups.of(np.arange(700) // 3, 700) if grouped else None
    plain, fast = (Influence(index, found.weights, models, groups, compiled=c) for c in (False, True))
    np.testing.assert_allclose(fast.pointwise(), plain.pointwise(), rtol=1e-9, atol=1e-16)
    averages = np.random.default_rng(0).random((times.size, 2))
    np.testing.assert_allclose(fast.of_averages(averages), plain.of_averages(averages), rtol=1e-9)
    contrast = np.array([1.0, -1.0])
    over_time = plain.over_time(contrast)
    np.testing.assert_allclose(fast.over_time(contrast), over_time, rtol=1e-8, atol=1e-14)
    # everything agrees with everything: diagonals, differences, averages
    pointwise = plain.pointwise()
    difference = pointwise[0, 0] + pointwise[1, 1] - 2 * pointwise[0, 1]
    np.testing.assert_allclose(np.diag(over_time), difference, rtol=1e-8, atol=1e-15)
    quadratic = np.einsum("jr,jk,kr->r", averages, over_time, averages)
    covariance = plain.of_averages(averages)
    np.testing.assert_allclose(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], quadratic, rtol=1e-8)


# R


@every_dataset
def test_standard_errors_and_contrasts_of_riskregression(data):
    y = ss.Outcomes(data["time"], data["event"], data.get("censoring_time"))
    models = {name: ss.SurvivalCurves(data[f"model_{name}"], data["times"]) for name in "ab"}
    as_in_r = ss.IPCW(normalize="n", variance="martingale")
    result = ss.compare(y, models, weighting=as_in_r, times=data["times"], reference="a")
    scores = result.scores.set_index("model")
    for name, theirs in (("a", "brier_a"), ("b", "brier_b"), ("Kaplan-Meier", "brier_null")):
        np.testing.assert_allclose(scores.loc[name, "score"], data["results"][theirs]["estimate"], rtol=1e-10)
        np.testing.assert_allclose(scores.loc[name, "se"], data["results"][theirs]["se"], rtol=1e-9)
    contrasts = result.contrasts.set_index("model")
    theirs = data["results"]["contrasts"]
    for name, sign, key in (("b", 1, "b_minus_a"), ("Kaplan-Meier", -1, "a_minus_null")):
        np.testing.assert_allclose(
            sign * contrasts.loc[name, "difference"], theirs[key]["delta"], rtol=1e-8, atol=1e-12
        )
        np.testing.assert_allclose(contrasts.loc[name, "se"], theirs[key]["se"], rtol=1e-9)
        np.testing.assert_allclose(contrasts.loc[name, "p_value"], theirs[key]["p"], rtol=1e-7)


@every_dataset
def test_with_weights_taken_as_known_the_conservative_errors_of_riskregression(data):
    y = ss.Outcomes(data["time"], data["event"])
    curves = ss.SurvivalCurves(data["model_a"], data["times"])
    known = ss.IPCW(ss.KaplanMeierCensoring(y), normalize="n")
    se = ss.brier_score(y, curves, weighting=known, times=data["times"]).se
    np.testing.assert_allclose(se, data["results"]["brier_a"]["se_conservative"], rtol=1e-9)


def test_exact_and_martingale_errors_differ_only_under_ties():
    for name, data in DATASETS.items():
        y = ss.Outcomes(data["time"], data["event"])
        curves = ss.SurvivalCurves(data["model_a"], data["times"])
        exact, martingale = (
            ss.brier_score(y, curves, weighting=ss.IPCW(variance=v, normalize="n"), times=data["times"]).se
            for v in ("exact", "martingale")
        )
        gap = np.abs(exact / martingale - 1).max()
        assert (gap > 0.03) == (name == "ties"), name


# Jackknife


def jackknife(statistic, n_units):
    """Return the delete-one jackknife standard error of a vector-valued statistic."""
    left_out = np.array([statistic(unit) for unit in range(n_units)])
    return np.sqrt((n_units - 1) / n_units * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))


WEIGHTINGS = {
    "administrative": ss.Administrative(),
    "ipcw": ss.IPCW(),
    "ipcw capped": ss.IPCW(max_weight=1.7),
    "ipcw / n": ss.IPCW(normalize="n"),
    "ipcw function": ss.IPCW(lambda t: 1 - t / 12),
}


@pytest.mark.parametrize("name", WEIGHTINGS)
@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_standard_error_agrees_with_the_jackknife(name, loss, grouped):
    y, curves, times, rng = small_problem(5, n=200, ties=False)
    other = ss.SurvivalCurves(np.clip(curves.probabilities + rng.normal(0, 0.1, (200, 1)), 0.01, 0.99), times)
    groups = np.repeat(np.arange(80), rng.integers(1, 4, 80))[:200] if grouped else np.arange(200)
    groups = np.concatenate([groups, np.arange(1000, 1000 + 200 - groups.size)])
    labels = np.unique(groups)
    models = {"a": curves, "b": other}

    def run(keep):
        kept = {key: value[keep] for key, value in models.items()}
        return ss.compare(
            y[keep], kept, weighting=WEIGHTINGS[name], loss=loss, times=times, reference="a", null=False,
            groups=groups[keep] if grouped else None,
        )  # fmt: skip

    def statistic(unit):
        result = run(groups != labels[unit])
        whole = result.integrated()
        return np.concatenate(
            [
                result.scores["score"],
                result.contrasts["difference"],
                whole.scores["score"],
                whole.contrasts["difference"],
            ]
        )

    result = run(np.ones(200, dtype=bool))
    whole = result.integrated()
    got = np.concatenate([result.scores["se"], result.contrasts["se"], whole.scores["se"], whole.contrasts["se"]])
    np.testing.assert_allclose(got, jackknife(statistic, labels.size), rtol=0.06 if grouped else 0.03)


def test_a_mean_has_the_standard_error_of_a_mean():
    y, curves, times, _ = small_problem(1, n=100)
    curve = ss.brier_score(y, curves, weighting="administrative", times=times)
    for j, t in enumerate(times):
        rows, event = ss.at_horizon(y, t)
        losses = np.where(event, curves.probabilities[rows, j], 1 - curves.probabilities[rows, j]) ** 2
        assert curve.scores[j] == pytest.approx(losses.mean(), rel=1e-12)
        assert curve.se[j] == pytest.approx(losses.std(ddof=1) / np.sqrt(rows.size), rel=1e-10)


# Groups


def test_groups_of_one_change_nothing_and_repeated_rows_count_once():
    y, curves, times, _ = small_problem(2, n=60)
    for weighting in ("administrative", "ipcw"):
        plain = ss.brier_score(y, curves, weighting=weighting, times=times)
        singles = ss.brier_score(y, curves, weighting=weighting, times=times, groups=np.arange(60))
        np.testing.assert_allclose(singles.se, plain.se, rtol=1e-10)
        twice = np.repeat(np.arange(60), 2)
        doubled = ss.brier_score(y[twice], curves[twice], weighting=weighting, times=times, groups=twice)
        np.testing.assert_allclose(doubled.se, plain.se, rtol=1e-10)
        blind = ss.brier_score(y[twice], curves[twice], weighting=weighting, times=times)
        np.testing.assert_allclose(blind.se, plain.se / np.sqrt(2), rtol=0.02)


@pytest.mark.parametrize("labels", [list("abcdefghij"), np.arange(10.0), [f"customer {i}" for i in range(10)]])
def test_groups_take_any_labels(labels):
    y, curves, times, _ = small_problem(3, n=10)
    assert ss.brier_score(y, curves, weighting="administrative", times=times, groups=labels).se.shape == (4,)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "groups has length 2, but y has length 10"),
        ([1] * 9 + [None], "groups must be given for everybody: 1 of 10 are missing, the first at position 9"),
        ([1.0] * 9 + [np.nan], "groups must be given for everybody"),
        (np.ones((10, 1)), "groups must be one-dimensional"),
        ([1] * 9 + ["a"], None),
        (np.array([1] * 9 + ["a"], dtype=object), "labels of one kind"),
    ],
)
def test_bad_groups_are_named(labels, message):
    y, curves, times, _ = small_problem(3, n=10)
    if message is None:  # NumPy makes text of both
        ss.brier_score(y, curves, weighting="ipcw", times=times[:2], groups=labels)
        return
    with pytest.raises(ss.InputError, match=message):
        ss.brier_score(y, curves, weighting="ipcw", times=times[:2], groups=labels)


# Edges


def test_one_individual_has_a_score_but_no_standard_error():
    y = ss.Outcomes([2.0], [1], [3.0])
    curves = ss.SurvivalCurves([[0.5]], [1.0])
    for weighting in ("administrative", "ipcw"):
        curve = ss.brier_score(y, curves, weighting=weighting, times=[1])
        assert curve.scores == [0.25]
        assert np.isnan(curve.se).all()


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_undefined_scores_have_undefined_errors():
    y = ss.Outcomes([2, 3, 4], [1, 1, 0])
    curves = ss.SurvivalCurves([[0.9, 0.5], [0.8, 0.6], [0.7, 0.6]], [1, 5])
    curve = ss.brier_score(y, curves, weighting="ipcw", times=[3, 4, 5, 6])
    assert np.isnan(curve.scores).tolist() == [False, True, True, True]
    assert np.isnan(curve.se).tolist() == [False, True, True, True]


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, np.nan])
def test_impossible_levels_are_refused(level):
    y, curves, times, _ = small_problem(3, n=10)
    with pytest.raises(ss.InputError, match="level must be between 0 and 1"):
        ss.brier_score(y, curves, weighting="administrative", times=times, level=level)


def test_levels():
    y, curves, times, _ = small_problem(3, n=50)
    wide, narrow = (
        ss.brier_score(y, curves, weighting="administrative", times=times, level=level) for level in (0.95, 0.5)
    )
    np.testing.assert_allclose((wide.upper - wide.lower) / wide.se, 2 * 1.959963984540054)
    np.testing.assert_allclose((narrow.upper - narrow.lower) / narrow.se, 2 * 0.6744897501960817)
    assert narrow.integrated().upper < wide.integrated().upper


def test_a_stored_score_keeps_its_errors_but_not_the_data():
    y, curves, times, _ = small_problem(4, n=50)
    curve = ss.brier_score(y, curves, weighting="administrative", times=times)
    copy = pickle.loads(pickle.dumps(curve))
    np.testing.assert_array_equal(copy.se, curve.se)
    assert copy._influence is None
    for limits in ((None, None), (1.5, 4.7)):
        assert copy.integrated(*limits).value == curve.integrated(*limits).value
        assert copy.integrated(*limits).se == pytest.approx(curve.integrated(*limits).se, rel=1e-9)
    again = pickle.loads(pickle.dumps(copy))
    assert again.integrated().se == copy.integrated().se


@pytest.mark.parametrize("which", [slice(None), slice(1, None, 4), slice(2000, None)])
def test_overwritten_inputs_are_noticed(which):
    y, curves, times, rng = small_problem(4, n=4000)
    predictions, censoring = (np.exp(-times / rng.uniform(2, 12, (4000, 1))) for _ in range(2))
    first = ss.brier_score(y, ss.SurvivalCurves(predictions, times), weighting="administrative", times=times)
    individual = ss.IPCW(ss.SurvivalCurves(censoring, times))
    second = ss.brier_score(y, curves, weighting=individual, times=times)
    predictions[which] *= 0.9
    censoring[which] *= 0.9
    with pytest.raises(ss.InputError, match="the predictions were changed"):
        _ = first.se
    with pytest.raises(ss.InputError, match="the censoring curves were changed"):
        second.integrated()


def test_a_time_that_rests_on_one_individual_has_no_error():
    y = ss.Outcomes([1, 9, 9, 20], [1, 1, 0, 1], [9, 9, 9, 20])
    curves = ss.SurvivalCurves([[0.5, 0.4], [0.6, 0.3], [0.7, 0.6], [0.9, 0.2]], [1, 20])
    curve = ss.brier_score(y, curves, weighting="administrative", times=[1, 9, 10, 20])
    assert np.isnan(curve.se).tolist() == [False, False, True, True]
    assert np.isnan(curve.integrated(9, 20).se)
    assert curve.integrated(1, 9).se > 0


def test_large_input_takes_the_compiled_way(monkeypatch):
    problem = random_problem(3_000, 50, dtype=np.float32)
    times = problem.times[:45]
    ses = []
    for threshold in (1, np.inf):
        monkeypatch.setattr(_loops, "LARGE_MATRIX", threshold)
        monkeypatch.setattr(_loops, "SMALL_MATRIX", np.inf)
        curve = ss.brier_score(problem.y, problem.curves, weighting="ipcw", times=times)
        ses.append(np.append(curve.se, curve.integrated().se))
    np.testing.assert_allclose(ses[0], ses[1], rtol=1e-9)


def test_simultaneous_quantile():
    one = simultaneous_quantile(np.eye(1), 0.95, 200_000, 0)
    assert one == pytest.approx(1.96, abs=0.02)
    together = simultaneous_quantile(np.ones((5, 5)), 0.95, 200_000, 0)
    assert together == pytest.approx(1.96, abs=0.02)
    apart = simultaneous_quantile(np.eye(5), 0.95, 200_000, 0)
    assert apart == pytest.approx(2.569, abs=0.02)  # the 0.95 ** (1/5) quantile of |Z|
    assert math.isnan(simultaneous_quantile(np.zeros((2, 2)), 0.95, 10, 0))
    # a time at which nothing varies, but for rounding of either sign, does not count
    for noise in (1e-18, -1e-18):
        padded = np.diag([noise, *np.ones(5)])
        assert simultaneous_quantile(padded, 0.95, 200_000, 0) == pytest.approx(2.569, abs=0.02)

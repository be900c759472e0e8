"""Standard errors: against derivatives by complex steps, the jackknife, R, and each other."""

import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import survscore as ss
from combinations import every_pair, examples, nightly_but
from literal import variances
from registry import ASKED, CASES, UNFITTED, Case, random_problem, strata_of
from survscore.inference.intervals import simultaneous_quantile, student_p

DATASETS = json.loads((Path(__file__).parent / "reference" / "r_reference.json").read_text())["datasets"]
every_dataset = pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS.keys())
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def small_problem(seed, n=40, *, ties=True):
    rng = np.random.default_rng(seed)
    star, end = rng.exponential(6, n), rng.uniform(1, 10, n)
    if ties:
        star, end = np.ceil(star), np.ceil(end)
    y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    times = np.array([1.0, 2.0, 4.0, 5.5])
    pi = np.exp(-times / rng.uniform(2, 12, (n, 1)))
    return y, ss.SurvivalCurves(pi, times), times, rng


# The derivatives themselves


@every_case
@pytest.mark.parametrize("metric", UNFITTED)
@examples(3)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_standard_errors_are_those_of_the_derivative(case: Case, metric, data):
    """Every metric under every weighting, with heavy ties, caps and T = t = C*: to 1e-10."""
    problem = data.draw(case.problems(min_size=3, max_size=6))
    problem = type(problem)(problem.y, problem.curves, problem.censoring, problem.training, problem.times[:2])
    assume(problem.curves.reaches(problem.times).all())
    other = ss.SurvivalCurves(
        problem.curves.probabilities**2,
        problem.curves.times,
        interpolation=problem.curves.interpolation,
        extrapolation=problem.curves.extrapolation,
    )
    models = [problem, type(problem)(problem.y, other, problem.censoring, problem.training, problem.times)]
    expected = variances(case, problem, metric, models)
    asked = {"metric": ASKED.get(metric, metric), "weighting": case.weighting(problem), "times": problem.times}
    result = ss.compare(problem.y, {"a": problem.curves, "b": other}, null=False, **asked)
    scores = result.scores.set_index("model")
    for name, place in (("a", 0), ("b", 1)):
        defined = scores.loc[[name], "score"].notna().to_numpy()
        np.testing.assert_allclose(
            scores.loc[[name], "se"].to_numpy()[defined] ** 2, expected[place, place][defined], rtol=1e-10, atol=1e-15
        )
    np.testing.assert_allclose(
        result.contrasts["se"].to_numpy()[defined] ** 2, expected[0, 1][defined], rtol=1e-10, atol=1e-15
    )


# The ways to compute, all weightings


MARTINGALE = [
    Case("ipcw martingale", lambda p: ss.IPCW(variance="martingale", normalize="n"), None),
    Case("administrative martingale", lambda p: ss.Administrative(variance="martingale"), None, data="drop-outs"),
    Case("ipcw strata martingale", lambda p: ss.IPCW(variance="martingale", strata=strata_of(p)), None),
]


def numbers(result):
    whole = result.integrated(nan="stop")
    tables = [result.scores, result.contrasts, whole.scores, whole.contrasts]
    # of differences that are rounding, p-values may be anything
    kept = [table.select_dtypes("number").drop(columns="p_value", errors="ignore") for table in tables]
    return np.concatenate([table.to_numpy().ravel() for table in kept])


@every_pair(case=[*CASES, *MARTINGALE], same_grid=[True, False], causes=[False, True], grouped=[False, True])
@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_all_ways_to_standard_errors_agree(case, same_grid, causes, grouped):
    """In array code, with and without covariances over time, and compiled: scores, differences, means over time."""
    if case.data == "uncensored":
        pytest.skip("the data are censored")
    if causes and not case.of_causes:
        pytest.skip("is of events of one kind")
    problem = random_problem(700, 20, same_grid=same_grid, lost=case.data in ("drop-outs", "lost"), causes=causes)
    times = problem.times[problem.times < 95]
    models = {"a": problem.curves, "b": problem.censoring}
    groups = np.arange(700) // 3 if grouped else None
    found, asked = [], {"metric": ["brier", "log"], "times": times, "groups": groups}
    for backend, ranges in (("numpy", "any"), ("numpy", None), ("compiled", None)):
        with ss.config.using(backend=backend):
            result = ss.compare(problem.y, models, weighting=case.weighting(problem), ranges=ranges, **asked)
            found.append(numbers(result))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("n", [60, 3000])
def test_ranges_are_asked_for_when_scoring_whatever_the_size(n):
    problem = random_problem(n, 20)
    settings = {"weighting": "administrative", "times": problem.times[:15]}
    plain = ss.brier_score(problem.y, problem.curves, **settings)
    asked = ss.brier_score(problem.y, problem.curves, **settings, ranges=[(10, 50.5)])
    everything = ss.brier_score(problem.y, problem.curves, **settings, ranges="any")
    assert plain.integrated().se == pytest.approx(everything.integrated().se, rel=1e-10)
    assert asked.integrated(10, 50.5).se == pytest.approx(everything.integrated(10, 50.5).se, rel=1e-10)
    assert plain.integrated(10, 50.5).value == asked.integrated(10, 50.5).value
    assert np.isnan(plain.integrated(10, 50.5).se)
    assert "se nan (name ranges= when scoring)" in repr(plain.integrated(10, 50.5))
    assert not plain.integrated().reason
    assert not ss.brier_score(problem.y, problem.curves, **settings, errors=False).integrated(10, 50.5).reason
    compared = ss.compare(problem.y, {"a": problem.curves}, **settings)
    assert "no standard errors: name ranges= when scoring" in str(compared.integrated(10, 50.5))
    assert "no standard errors" not in str(compared.integrated())
    with pytest.raises(ss.InputError, match="ranges='any'"):
        compared.band()
    for wrong in ([(1,)], [("a", "b")], [5]):
        with pytest.raises(ss.InputError, match="ranges must be pairs"):
            ss.brier_score(problem.y, problem.curves, **settings, ranges=wrong)
    with pytest.raises(ss.InputError, match="ranges must be one of 'any', not 'all'"):
        ss.brier_score(problem.y, problem.curves, **settings, ranges="all")


# R


AS_IN_R = {"normalize": "n", "variance": "martingale"}


@every_dataset
@pytest.mark.parametrize("ends", [True, False])
def test_standard_errors_and_contrasts_of_riskregression(data, ends):
    """Without an end of the data everybody censored dropped out, and the administrative score is IPCW."""
    y = ss.Outcomes(data["time"], data["event"], data.get("censoring_time"))
    as_in_r = ss.IPCW(**AS_IN_R)
    if not ends:
        y, as_in_r = (
            ss.Outcomes(y.time, y.event, np.full(len(y), np.inf)),
            ss.Administrative(**AS_IN_R, dropout_strata=None),
        )
    models = {name: ss.SurvivalCurves(data[f"model_{name}"], data["times"]) for name in "ab"}
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
        normal = student_p(contrasts.loc[name, "difference"] / contrasts.loc[name, "se"], np.inf)  # as theirs are
        np.testing.assert_allclose(normal, theirs[key]["p"], rtol=1e-7)


@every_dataset
def test_with_weights_taken_as_known_the_conservative_errors_of_riskregression(data):
    y = ss.Outcomes(data["time"], data["event"])
    curves = ss.SurvivalCurves(data["model_a"], data["times"])
    curve = ss.KaplanMeierCensoring(y).curve
    known = ss.IPCW(ss.CensoringFunction(curve.at, curve.before), normalize="n")
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
    "administrative / n": ss.Administrative(normalize="n"),
    "ipcw": ss.IPCW(),
    "ipcw capped": ss.IPCW(max_weight=1.7),
    "ipcw / n": ss.IPCW(normalize="n"),
    "ipcw function": ss.IPCW(lambda t: 1 - t / 12),
}


JACKKNIFED = [("administrative", "brier", False), ("ipcw capped", "log", True)]


@pytest.mark.parametrize(
    ("name", "loss", "grouped"), nightly_but(JACKKNIFED, product(WEIGHTINGS, ["brier", "log"], [False, True]))
)
def test_every_standard_error_agrees_with_the_jackknife(name, loss, grouped):
    y, curves, times, rng = small_problem(5, n=200, ties=False)
    other = ss.SurvivalCurves(np.clip(curves.probabilities + rng.normal(0, 0.1, (200, 1)), 0.01, 0.99), times)
    groups = np.repeat(np.arange(80), rng.integers(1, 4, 80))[:200] if grouped else np.arange(200)
    groups = np.concatenate([groups, np.arange(1000, 1000 + 200 - groups.size)])
    labels = np.unique(groups)
    models = {"a": curves, "b": other}

    def run(keep):
        kept = {key: value[keep] for key, value in models.items()}
        asked = {"weighting": WEIGHTINGS[name], "metric": loss, "times": times, "reference": "a", "null": False}
        return ss.compare(y[keep], kept, groups=groups[keep] if grouped else None, **asked)

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


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "groups has length 2, but y has length 10"),
        ([1] * 9 + [None], "groups must be given for each individual: 1 of 10 are missing, the first at position 9"),
        ([1.0] * 9 + [np.nan], "groups must be given for each individual"),
        (np.ones((10, 1)), "groups must be one-dimensional"),
        (np.array([1] * 9 + ["a"], dtype=object), "labels of one kind"),
    ],
)
def test_bad_groups_are_named(labels, message):
    y, curves, times, _ = small_problem(3, n=10)
    with pytest.raises(ss.InputError, match=message):
        ss.brier_score(y, curves, weighting="ipcw", times=times[:2], groups=labels)


# Edges


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
    for curve in (wide, narrow):  # symmetric on the logarithmic scale
        half = stats.t.ppf(0.5 + curve.level / 2, curve.n_counted - 1) * curve.se / curve.scores
        np.testing.assert_allclose(np.log(curve.upper / curve.scores), half)
        np.testing.assert_allclose(np.log(curve.scores / curve.lower), half)
    assert narrow.integrated().upper < wide.integrated().upper


def test_a_stored_comparison_is_small_and_whole():
    problem = random_problem(20_000, 150, dtype=np.float32, lost=True)  # 12 MB of predictions each
    models = {"a": problem.curves, "b": problem.censoring}
    times = problem.times[:140]
    result = ss.compare(problem.y, models, weighting="administrative", times=times)
    stored = pickle.dumps(result)
    assert len(stored) < 2_000_000
    copy = pickle.loads(stored)
    for table in ("scores", "contrasts", "skill"):
        assert getattr(copy, table).equals(getattr(result, table))
    assert copy.integrated().contrasts.equals(result.integrated().contrasts)
    assert copy.against("b").contrasts["difference"].iloc[5] == -result.contrasts["difference"].iloc[5]
    copy.plot()


def test_nearly_equal_models_do_not_cancel():
    """The variance of a difference comes from differences of influences, never from three large numbers."""
    problem = random_problem(500, 20)
    shifted = problem.curves.probabilities - 1e-9 * np.random.default_rng(0).random((500, 1))
    models = {"a": problem.curves, "b": ss.SurvivalCurves(np.clip(shifted, 0, 1), problem.curves.times)}
    for weighting in ("administrative", "ipcw"):
        for backend in ("numpy", "compiled"):
            with ss.config.using(backend=backend):
                contrasts = ss.compare(
                    problem.y, models, weighting=weighting, times=problem.times[2:15], null=False
                ).contrasts
            ratio = contrasts["se"] / contrasts["difference"].abs()
            assert ratio.between(0.005, 20).all()


def test_a_time_that_rests_on_one_individual_has_no_error():
    y = ss.Outcomes([1, 9, 9, 20], [1, 1, 0, 1], [9, 9, 9, 20])
    curves = ss.SurvivalCurves([[0.5, 0.4], [0.6, 0.3], [0.7, 0.6], [0.9, 0.2]], [1, 20])
    curve = ss.brier_score(y, curves, weighting="administrative", times=[1, 9, 10, 20], ranges="any")
    assert np.isnan(curve.se).tolist() == [False, False, True, True]
    assert np.isnan(curve.integrated(9, 20).se)
    assert curve.integrated(1, 9).se > 0


def test_simultaneous_quantile():
    one = simultaneous_quantile(np.eye(1), 0.95, 200_000, 0)
    assert one == pytest.approx(1.96, abs=0.02)
    together = simultaneous_quantile(np.ones((5, 5)), 0.95, 200_000, 0)
    assert together == pytest.approx(1.96, abs=0.02)
    apart = simultaneous_quantile(np.eye(5), 0.95, 200_000, 0)
    assert apart == pytest.approx(2.569, abs=0.02)  # the 0.95 ** (1/5) quantile of |Z|
    # where nothing varies, that of one time: both results that have bands take it
    assert simultaneous_quantile(np.zeros((2, 2)), 0.95, 10, 0) == pytest.approx(1.959964, abs=1e-6)
    # a time at which nothing varies, but for rounding of either sign, does not count
    for noise in (1e-18, -1e-18):
        padded = np.diag([noise, *np.ones(5)])
        assert simultaneous_quantile(padded, 0.95, 200_000, 0) == pytest.approx(2.569, abs=0.02)

"""Sample weights: literal oracles under every weighting, repeated rows, scaling, the jackknife, and bad input."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import survscore as ss
from commands import printed, run
from literal import derivatives, variances
from registry import (
    ASKED,
    CASES,
    FITTED,
    HISTORIES,
    LOSSES,
    METRICS,
    SEEN,
    Case,
    assert_same,
    fitted_problem,
    random_problem,
)
from survscore.engine.evaluation import Evaluation
from survscore.inference.intervals import student_quantile

pytestmark = [
    pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning"),
    pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning"),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
brief = settings(max_examples=6, deadline=None)
TRAINED = [case for case in CASES if "training" in case.name]


def weights_of(n, *, whole=False):
    """Return a strategy of sample weights, quarters of whole numbers or whole ones."""
    return st.binary(min_size=n, max_size=n).map(
        lambda drawn: (np.frombuffer(drawn, np.uint8) % 5 + 1.0) / (1 if whole else 4)
    )


@st.composite
def weighted_problems(draw, case, kind="probability", **sizes):
    """Problems with sample weights, of the scored outcomes and of the training outcomes."""
    problem = draw(case.problems(**sizes))
    both = (draw(weights_of(len(y), whole=kind == "frequency")) for y in (problem.y, problem.training))
    y, training = (y.weighted(w, kind) for y, w in zip((problem.y, problem.training), both, strict=True))
    return replace(problem, y=y, training=training)


def repeated(problem):
    """The same with each row as often as its frequency weight says, and how often that is."""
    times, others = (y.weights.astype(int) for y in (problem.y, problem.training))
    rows = np.repeat(np.arange(len(problem.y)), times)
    training = problem.training.weighted(None)[np.repeat(np.arange(len(problem.training)), others)]
    return replace(problem.take(rows), y=problem.y.weighted(None)[rows], training=training), rows


def unweighted(problem):
    return replace(problem, y=problem.y.weighted(None), training=problem.training.weighted(None))


def scored(case, problem, metrics=tuple(LOSSES), **options):
    found = ss.score_all(
        problem.y, problem.curves, metric=metrics, weighting=case.weighting(problem), times=problem.times, **options
    )
    return dict(zip(metrics, found, strict=True))


@every_case
@brief
@given(data=st.data())
def test_scores_agree_with_the_literal_loop(case: Case, data):
    problem = data.draw(weighted_problems(case))
    masses = list(problem.y.weights), list(problem.training.weights)
    for name, got in scored(case, problem).items():
        expected = [
            oracle.metric(name, case.weights(unweighted(problem), t, *masses), problem.pi(t), masses[0], by_n=case.by_n)
            for t in problem.times
        ]
        np.testing.assert_allclose(got.scores, expected, rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("case", [case for case in CASES if case not in TRAINED], ids=lambda case: case.name)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_variances_are_those_of_the_jackknife_of_literal_influences(case: Case, data):
    problem = data.draw(weighted_problems(case, min_size=2, max_size=8))
    # the second model has the predictions of the first in another order; strata by ranks are those of one model alone
    others = [] if case.name == "projected" or "ranks" in case.name else [replace(problem, curves=problem.curves[::-1])]
    models = [problem, *others]
    for metric in LOSSES:
        named = {f"m{k}": one.curves for k, one in enumerate(models)}
        (found,) = Evaluation.of(
            problem.y, named, metric=metric, weighting=case.weighting(problem), times=problem.times
        ).run()
        for (a, b), variance in variances(case, problem, metric, models).items():
            got = found.moments.variance(a, b)
            defined = ~np.isnan(found.scores[0][: got.size])
            np.testing.assert_allclose(
                got[defined], variance[: got.size][defined], rtol=1e-7, atol=1e-13, err_msg=f"{metric} {a} {b}"
            )


def sized_problem(case, n=60, seed=5, kind="probability", *, causes=False):
    """A problem large enough for everything that is estimated, with weights and drop-outs."""
    problem = fitted_problem(case.data, seed, n, causes=causes and case.of_causes)
    rng = np.random.default_rng(seed)
    own, others = (
        rng.integers(1, 4, len(y)).astype(float) if kind == "frequency" else rng.gamma(2, 1.7, len(y))
        for y in (problem.y, problem.training)
    )
    if "strata training" in case.name:  # whose strata go by position
        others = np.ones(len(problem.training))
    return replace(problem, y=problem.y.weighted(own, kind), training=problem.training.weighted(others, kind))


def compared(case, problem, **options):
    curves = {"a": problem.curves, "b": ss.SurvivalCurves(problem.curves.probabilities**1.3, problem.curves.times)}
    return Evaluation.of(
        problem.y, curves, metric=list(LOSSES), weighting=case.weighting(problem), times=problem.times, **options
    ).run()


@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
@every_case
def test_frequency_weights_are_repeated_rows(case: Case, grouped):
    for causes in (False, True):
        problem = sized_problem(case, 260 if "ranks" in case.name or case.name == "projected" else 60, kind="frequency")
        several, rows = repeated(problem)
        labels = np.arange(len(problem.y)) // 4
        options = {"null": not causes, "by_theta": True}
        found = compared(case, problem, groups=labels if grouped else None, **options)
        expected = compared(case, several, groups=labels[rows] if grouped else None, **options)
        assert_same(found, expected)


@pytest.mark.parametrize("kind", ["probability", "importance", "frequency"])
@every_case
def test_weights_of_one_are_none_to_the_last_bit(case: Case, kind):
    problem = unweighted(sized_problem(case))
    ones = replace(problem, y=problem.y.weighted(np.ones(len(problem.y)), kind))
    for one, other in zip(compared(case, ones, null=True), compared(case, problem, null=True), strict=True):
        assert np.array_equal(one.scores, other.scores, equal_nan=True)
        assert np.array_equal(one.moments.pointwise, other.moments.pointwise, equal_nan=True)
        assert np.array_equal(one.moments.of_averages, other.moments.of_averages, equal_nan=True)
        assert np.array_equal(one.support.n_effective, other.support.n_effective, equal_nan=True)


@pytest.mark.parametrize("kind", ["probability", "frequency"])
@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
@every_case
def test_compiled_code_batches_and_covariances_agree_with_array_code(case: Case, grouped, kind):
    problem = sized_problem(case, kind=kind)
    options = {"null": True, "groups": np.arange(len(problem.y)) % 15 if grouped else None}
    expected = compared(case, problem, **options)
    with ss.config.using(backend="compiled"):
        assert_same(compared(case, problem, **options), expected)
    every = compared(case, problem, ranges="any", **options)
    for one, other in zip(every, expected, strict=True):
        np.testing.assert_allclose(one.moments.of_averages, other.moments.of_averages, rtol=1e-9)
        np.testing.assert_allclose(
            np.diagonal(one.moments.over_time, axis1=1, axis2=2), other.moments.pointwise, rtol=1e-9, atol=1e-16
        )


JACKKNIFED = ("uncensored", "administrative", "administrative strata", "ipcw", "ipcw strata", "projected one stratum")


@pytest.mark.parametrize("name", ["ipcw training", "administrative training"])
def test_the_variance_of_a_curve_of_weighted_training_data(name):
    """Close to the sum of squared influences of the training data, whose weights are the same in all of its jumps."""
    (case,) = (case for case in CASES if case.name == name)
    problem = sized_problem(case, 200)
    w, v = list(problem.y.weights), list(problem.training.weights)
    plain = unweighted(problem)

    def scores(training_mass):
        return [
            oracle.metric("brier", case.weights(plain, t, w, training_mass), problem.pi(t), w) for t in problem.times
        ]

    (both,) = compared(case, problem)[:1]
    sure = problem.training.weighted(np.round(1e6 * np.array(v)), "frequency")
    known = compared(case, replace(problem, training=sure))[0]
    added = both.moments.pointwise[0] - known.moments.pointwise[0]  # the second curve is known nearly for sure
    np.testing.assert_allclose(added, np.sum(derivatives(scores, v) ** 2, axis=0), rtol=0.15)


def test_torch_gives_the_numbers_of_numpy():
    pytest.importorskip("torch")
    for case in CASES:
        for kind in ("probability", "frequency"):
            problem = sized_problem(case, kind=kind)
            for labels in (None, np.arange(len(problem.y)) % 15):
                options = {"null": True, "groups": labels}
                with ss.config.using(backend="torch"):
                    found = compared(case, problem, **options)
                assert_same(found, compared(case, problem, **options))


NULLS = [True, "counted", ss.Outcomes([1, 20, 40, 60, 80], [1, 1, 0, 1, 1], weights=[1, 2, 1, 3, 2])]


@pytest.mark.parametrize("null", NULLS, ids=["own", "counted", "of others"])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_null_models_of_repeated_rows(null, backend):
    case = next(case for case in CASES if case.name == "administrative")
    problem = sized_problem(case, kind="frequency")
    several, _ = repeated(problem)
    with ss.config.using(backend=backend):
        assert_same(compared(case, problem, null=null), compared(case, several, null=null))


@pytest.mark.parametrize("weighting", ["administrative", "ipcw", "projected"])
def test_multiclass_scores_of_repeated_rows(weighting):
    rng = np.random.default_rng(3)
    n, times = 300, np.array([2.0, 5.0])
    time, cause = rng.exponential(6, n), rng.integers(1, 3, n)
    end, left = rng.uniform(1, 10, n), rng.exponential(30, n)
    seen = np.minimum(np.minimum(time, end), left)
    y = ss.Outcomes(seen, np.where(seen == time, cause, 0), end, causes=["a", "b"])
    share = rng.uniform(0.05, 0.3, (n, 2, 1)) * [0.4, 1.0]
    curves = ss.IncidenceCurves(share, times, causes=["a", "b"])
    often = rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), often)
    settings = {"weighting": weighting, "times": times, "cause": "all"}
    found = ss.brier_score(y.weighted(often, "frequency"), curves, **settings)
    expected = ss.brier_score(y[rows], curves[rows], **settings)
    for name in ("scores", "se", "lower", "upper", "n_counted"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, err_msg=name)
    unequal = ss.brier_score(y.weighted(often), curves, **settings)
    np.testing.assert_allclose(unequal.scores, found.scores, rtol=2e-2)
    assert (unequal.se > found.se).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_has_no_weight_has_no_part(case: Case):
    problem = sized_problem(case)
    w = np.array(problem.y.weights)
    w[::7] = 0.0
    kept = np.flatnonzero(w)
    without = problem.take(kept)
    labels = np.arange(len(w)) // 4
    with_zeros = replace(problem, y=problem.y.weighted(w))
    assert_same(
        compared(case, with_zeros, null=True, groups=labels), compared(case, without, null=True, groups=labels[kept])
    )


def test_default_times_and_comparisons_of_repeated_rows():
    """What `compare` adds to scores: intervals, p-values, the hazard of late starters, and the test of drop-out."""
    problem = random_problem(400, 40, 2, lost=True)
    often = np.random.default_rng(1).integers(1, 4, 400)
    rows = np.repeat(np.arange(400), often)
    models = {"a": problem.curves, "b": ss.SurvivalCurves(problem.curves.probabilities**1.4, problem.curves.times)}
    found = ss.compare(problem.y.weighted(often, "frequency"), models)
    expected = ss.compare(problem.y[rows], {name: curves[rows] for name, curves in models.items()})
    np.testing.assert_array_equal(found.times, expected.times)
    for one, other in (
        (found.to_frame(), expected.to_frame()),
        (found.integrated(0, 60).contrasts, expected.integrated(0, 60).contrasts),
        (found.dropout_test.to_frame(), expected.dropout_test.to_frame()),
    ):
        # z whatever happened to the lost is not computed with weights, and bounds of means depend on how many are kept
        numbers = [name for name in one.select_dtypes("number") if not name.startswith("bound_")]
        np.testing.assert_allclose(one[numbers], other[numbers], rtol=1e-7)
    for name in ("observed", "expected", "se_log"):
        np.testing.assert_allclose(
            getattr(found.late_starters, name), getattr(expected.late_starters, name), rtol=1e-10, equal_nan=True
        )


def test_what_has_no_form_for_weights_says_so():
    problem = sized_problem(CASES[1], 40)
    with pytest.raises(ss.UnfitError, match="variance='martingale' has no form for sample weights"):
        ss.brier_score(problem.y, problem.curves, weighting=ss.IPCW(variance="martingale"), times=problem.times)


@pytest.mark.parametrize("case", [case for case in CASES if not case.by_n], ids=lambda case: case.name)
def test_the_weighted_mean_of_the_terms_is_the_score(case: Case):
    problem = sized_problem(case)
    asked = {"weighting": case.weighting(problem), "times": problem.times}
    for weights in (problem.y.weights, np.full(len(problem.y), 3.0)):  # equal ones are in the terms, too
        y = problem.y.weighted(weights)
        terms, found = ss.score_terms(y, problem.curves, **asked), ss.brier_score(y, problem.curves, **asked)
        means = (terms.losses * terms.weights).sum(axis=0) / terms.weights.sum(axis=0)
        defined = ~np.isnan(found.scores)
        assert defined.any()
        np.testing.assert_allclose(means[defined], found.scores[defined], rtol=1e-10)
        own = ss.score_terms(y.weighted(None), problem.curves, **asked).weights if weights[0] == 3 else None
        if own is not None:
            np.testing.assert_allclose(terms.weights, 3 * own, rtol=1e-12)


def test_terms_are_of_those_with_weight():
    problem = sized_problem(CASES[1])
    with pytest.raises(ss.InputError, match="weights must be above zero for score_terms"):
        ss.score_terms(
            problem.y.weighted(np.arange(len(problem.y))), problem.curves, weighting="projected", times=problem.times
        )


def lost_problem(n=500, kind="probability"):
    """Return outcomes with drop-outs and weights, some of them zero, and two models."""
    problem = random_problem(n, 40, 2, lost=True)
    rng = np.random.default_rng(4)
    often = rng.integers(0, 4, n) if kind == "frequency" else rng.gamma(2, 1.7, n) * (rng.random(n) > 0.1)
    models = {"a": problem.curves, "b": ss.SurvivalCurves(problem.curves.probabilities**1.4, problem.curves.times)}
    return problem.y.weighted(often, kind), models


def repeated_rows(y, models):
    """Return the same with each row as often as its frequency weight says."""
    rows = np.repeat(np.arange(len(y)), y.weights.astype(int))
    return y.weighted(None)[rows], {name: curves[rows] for name, curves in models.items()}, rows


def test_horizons_and_populations_of_repeated_rows():
    y, models = lost_problem(kind="frequency")
    several, curves, rows = repeated_rows(y, models)
    one, all_rows = ss.at_horizon(y, 30.0), ss.at_horizon(several, 30.0)
    assert not np.intersect1d(one.rows, np.flatnonzero(y.weights == 0)).size
    of_row = np.bincount(rows[all_rows.rows], all_rows.weight, len(y))
    np.testing.assert_allclose(one.weight, of_row[one.rows], rtol=1e-10)
    assert of_row.sum() == pytest.approx(one.weight.sum())
    found = np.average(np.square(one.event - 1 + models["a"].at([30.0])[one.rows, 0]), weights=one.weight)
    asked = {"weighting": ss.Administrative(dropout_strata=None), "times": [30.0]}
    assert found == pytest.approx(ss.brier_score(y, models["a"], **asked).scores[0], rel=1e-10)
    X = {"age": np.arange(len(y)) % 50.0, "sex": np.where(np.arange(len(y)) % 3, "m", "f")}
    populations = (
        ss.counted_population(y, models, X=X, times=[10, 30, 45]),
        ss.counted_population(several, curves, X={name: v[rows] for name, v in X.items()}, times=[10, 30, 45]),
    )
    pd.testing.assert_frame_equal(*populations, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning")
@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
def test_diagnoses_of_repeated_rows(grouped):
    y, models = lost_problem(kind="frequency")
    several, curves, rows = repeated_rows(y, models)
    labels = np.arange(len(y)) // 4
    asked = {"times": np.arange(5.0, 50.0, 5.0), "width": 4.0}
    found = ss.diagnose(y, models, groups=labels if grouped else None, **asked)
    expected = ss.diagnose(several, curves, groups=labels[rows] if grouped else None, **asked)
    pd.testing.assert_frame_equal(found.pairs, expected.pairs, rtol=1e-7)
    pd.testing.assert_frame_equal(found.weights, expected.weights, rtol=1e-9)
    pd.testing.assert_frame_equal(found.caps, expected.caps, rtol=1e-9)
    # falls are those of the individuals as they are
    plain = ss.diagnose(y.weighted(None), models, **asked)
    assert found.n == plain.n
    for name in ("fall_after", "fall_elsewhere"):
        np.testing.assert_array_equal(found.models[name], plain.models[name])


@pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning")
def test_diagnoses_with_unequal_weights():
    y, models = lost_problem()
    asked = {"times": np.arange(5.0, 50.0, 5.0), "width": 4.0}
    found = ss.diagnose(y, models, **asked)
    compared = ss.compare(y, models, weighting="ipcw", times=asked["times"], null=False, reference="a")
    one = compared.integrated(*found.time_range).contrasts.iloc[0]
    pair = found.pairs.iloc[-1]
    assert (pair["model"], pair["reference"]) == ("a", "b")
    assert -pair["ipcw"] == pytest.approx(one["difference"], rel=1e-9)
    width = (one["upper"] - one["lower"], pair["ipcw_upper"] - pair["ipcw_lower"])
    assert width[1] == pytest.approx(width[0], rel=0.01)
    score = ss.brier_score(y, models["a"], weighting="ipcw", times=found.weights["time"])
    np.testing.assert_allclose(found.weights["n_effective"], score.n_effective)


POOLED = {name: ASKED.get(name, name) for name in METRICS if name not in LOSSES}


def pooled(case, problem, metrics=POOLED, **options):
    curves = {"a": problem.curves, "b": ss.SurvivalCurves(problem.curves.probabilities**1.3, problem.curves.times)}
    asked = {"metric": [*metrics.values()], "weighting": case.weighting(problem), "times": problem.times}
    found = Evaluation.of(problem.y, curves, **asked, **options).run()
    return dict(zip(metrics, found, strict=True))


@every_case
def test_pooled_metrics_agree_with_the_literal_loop(case: Case):
    problem = sized_problem(case, 120, causes=False)
    masses = list(problem.y.weights), list(problem.training.weights)
    found = pooled(case, problem, errors=False)
    for name in ("auc", "oe", "net_benefit", "slope", "in_the_large", "ici"):
        expected = [
            oracle.metric(name, case.weights(unweighted(problem), t, *masses), problem.pi(t), masses[0])
            for t in problem.times
        ]
        np.testing.assert_allclose(found[name].scores[0], expected, rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
@every_case
def test_pooled_metrics_of_repeated_rows(case: Case, grouped):
    for causes in (False, True):
        problem = sized_problem(case, 260 if case.name == "projected" else 120, kind="frequency", causes=causes)
        several, rows = repeated(problem)
        labels = np.arange(len(problem.y)) // 4
        found = pooled(case, problem, groups=labels if grouped else None)
        expected = pooled(case, several, groups=labels[rows] if grouped else None)
        for name in POOLED:
            rtol = 1e-6 if name in FITTED else 1e-10
            np.testing.assert_allclose(found[name].scores, expected[name].scores, rtol=rtol, atol=1e-9, err_msg=name)
            for field in ("pointwise", "of_averages"):
                both = (getattr(one.moments, field) for one in (found[name], expected[name]))
                np.testing.assert_allclose(*both, rtol=1e2 * rtol, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ["auc", "oe", "net_benefit", "slope"])
@pytest.mark.parametrize("case", [case for case in CASES if case.name in JACKKNIFED], ids=lambda case: case.name)
def test_standard_errors_of_pooled_metrics_are_those_of_the_jackknife(case: Case, name):
    n = 300
    problem = sized_problem(case, n)

    def scores(rows):
        return pooled(case, problem.take(rows), {name: POOLED[name]}, errors=False)[name].scores

    without = np.array([scores(np.delete(np.arange(n), i)) for i in range(n)])
    expected = (n - 1) / n * np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    found = pooled(case, problem, {name: POOLED[name]})[name]
    variances = np.array([found.moments.variance(a, a) for a in (0, 1)])
    # cases alone are few: their influences are corrected by their shares of all weights
    tolerance = {"slope": 0.05, "auc": 0.03}.get(name, 0.02)
    np.testing.assert_allclose(np.sqrt(variances), np.sqrt(expected[:2]), rtol=tolerance)


def followed_up(case, problem, **options):
    """Score everything of the whole follow-up, of two models and the null model; see `registry.SEEN`."""
    c = problem.curves
    curves = {"a": c, "b": ss.SurvivalCurves(c.probabilities**1.3, c.times, extrapolation="hold")}
    metrics = [make(problem) for make, _ in HISTORIES.values()]
    settings = {"weighting": case.weighting(problem), "times": problem.times, "null": True, **options}
    return Evaluation.of(problem.y, curves, metric=metrics, **settings).run()


def assert_same_follow_up(found, expected, rtol=1e-10):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, rtol=rtol, err_msg=one.metric)
        for field in ("pointwise", "of_averages"):
            pair = (getattr(result.moments, field) for result in (one, other))
            np.testing.assert_allclose(*pair, rtol=1e2 * rtol, atol=1e-15, err_msg=one.metric)
        for field in ("n_counted", "n_events", "n_event_free", "n_effective"):
            np.testing.assert_allclose(getattr(one.support, field), getattr(other.support, field), err_msg=field)
        np.testing.assert_allclose(one.support.units.degrees, other.support.units.degrees)


@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
@pytest.mark.parametrize("case", SEEN, ids=lambda case: case.name)
def test_metrics_of_the_follow_up(case, grouped):
    """Frequencies are repeated rows, scaled weights change nothing, and those of one nothing to the last bit."""
    for causes in (False, True):
        if causes and case.data == "any":
            continue  # CRPS of a cause needs statuses known without weights
        problem = fitted_problem(case.data, 3, 60, causes=causes and case.data in ("uncensored", "administrative"))
        labels, rng = np.arange(60) // 4, np.random.default_rng(6)
        options = {"groups": labels if grouped else None, "null": not causes}
        training = problem.training.weighted(rng.integers(1, 4, len(problem.training)), "frequency")
        often = replace(problem, y=problem.y.weighted(rng.integers(1, 4, 60), "frequency"), training=training)
        several, rows = repeated(often)
        assert_same_follow_up(
            followed_up(case, often, **options),
            followed_up(case, several, **options | {"groups": labels[rows] if grouped else None}),
        )
        own = rng.gamma(2, 1.7, 60)
        one, scaled = (replace(problem, y=problem.y.weighted(w)) for w in (own, 7 * own))
        assert_same_follow_up(followed_up(case, scaled, **options), followed_up(case, one, **options))
        nearly = replace(problem, y=nearly_equal(problem.y))
        plain = followed_up(case, problem, **options)
        assert_same_follow_up(followed_up(case, nearly, **options), plain, 1e-7)
        ones = replace(problem, y=problem.y.weighted(np.ones(60), "frequency"))
        for found, expected in zip(followed_up(case, ones, **options), plain, strict=True):
            assert np.array_equal(found.scores, expected.scores, equal_nan=True)
            assert np.array_equal(found.moments.pointwise, expected.moments.pointwise, equal_nan=True)


@pytest.mark.parametrize("place", [0, 1, 6])
def test_standard_errors_of_the_follow_up_are_those_of_the_jackknife(place):
    case, n = SEEN[place], 150
    problem = fitted_problem(case.data, 5, n)
    problem = replace(problem, y=problem.y.weighted(np.random.default_rng(5).gamma(2, 1.7, n)), times=problem.times[:1])

    def scores(rows):
        return np.array([one.scores[0, 0] for one in followed_up(case, problem.take(rows), errors=False, null=False)])

    without = np.array([scores(np.delete(np.arange(n), i)) for i in range(n)])
    expected = (n - 1) / n * np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    found = [one.moments.variance(0, 0)[0] for one in followed_up(case, problem, null=False)]
    np.testing.assert_allclose(np.sqrt(found), np.sqrt(expected), rtol=0.04)


@pytest.mark.parametrize("order", [1, -1])
def test_perfect_order_keeps_its_interval_with_weights(order):
    rng = np.random.default_rng(2)
    time = rng.permutation(200) + 1.0
    y = ss.Outcomes(time, np.ones(200), weights=rng.gamma(2, 1, 200))
    curves = ss.SurvivalCurves(np.clip(0.5 + order * (time - 100) / 300, 0, 1)[:, None], [50.0])
    for metric in ("concordance", "auc"):
        (found,) = ss.score_all(y, curves, metric=metric, times=[50])
        assert found.scores[0] == (order > 0)
        assert found.lower[0] < found.upper[0]


@pytest.mark.filterwarnings("ignore")
def test_tables_of_repeated_rows():
    case = next(case for case in CASES if case.name == "administrative")
    problem = sized_problem(case, 200, kind="frequency")
    several, _ = repeated(problem)
    asked = {"horizons": [15, 30], "weighting": ["administrative", "projected"]}
    found, expected = (ss.score_table(one.y, {"a": one.curves}, **asked) for one in (problem, several))
    assert f"{len(several.y)} individuals in {len(problem.y)} rows" in str(found)
    assert "frequency weights" in str(found)
    assert found.n == expected.n
    names = ["estimate", "se", "lower", "upper", "n_counted", "n_events"]
    found, expected = (table.to_frame() for table in (found, expected))
    rows = ~found.metric.isin(["ici", "e50", "e90"])  # whose limits are drawn
    np.testing.assert_allclose(found[rows][names], expected[rows][names], rtol=1e-5, atol=1e-9)


def test_unequal_weights_are_named():
    problem = random_problem(400, 20)
    weights, asked = np.ones(400), {"weighting": "administrative", "times": [20, 40]}
    weights[:3] = 30.0
    with pytest.warns(
        ss.UnequalWeightsWarning, match=r"worth \d+ of equal weight.*largest sample weight is up to \d+%"
    ):
        compared = ss.compare(problem.y.weighted(weights), {"a": problem.curves}, **asked)
    assert "; probability weights; " in " ".join(str(compared).split())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ss.UnequalWeightsWarning)
        many = np.random.default_rng(2).uniform(1, 3, 400)
        assert "effective n" in str(ss.brier_score(problem.y.weighted(many), problem.curves, **asked))


def nearly_equal(y, seed=1):
    return y.weighted(3.0 + 1e-9 * np.random.default_rng(seed).random(len(y)))


@pytest.mark.filterwarnings("ignore")
def test_calibration_and_decision_curves():
    """Unequal weights give what the metrics give."""
    case = next(case for case in CASES if case.name == "administrative")
    problem = sized_problem(case, 300)
    y, curves = problem.y, problem.curves
    metrics = ["oe", "slope", ss.NetBenefit(0.2)]
    scores = ss.score_all(y, curves, metric=metrics, weighting="administrative", times=[30.0])
    summary = ss.calibration(y, curves, 30).summary().set_index("measure")
    table = ss.decision_curve(y, {"a": curves}, 30, thresholds=[0.2]).to_frame()
    of_calibration = [summary.loc[name, ["estimate", "se"]] for name in ("observed/expected", "slope")]
    of_decisions = table.loc[table.strategy == "a", ["net_benefit", "se"]].iloc[0]
    for score, (value, se) in zip(scores, [*of_calibration, of_decisions], strict=True):
        np.testing.assert_allclose([score.scores[0], score.se[0]], [value, se], rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["administrative own ranks", "ipcw strata", "projected"])
@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
def test_calibration_of_repeated_rows(name, grouped):
    """Everything, to the last bit: also groups of risk, bins, and statuses that are drawn."""
    case = next(case for case in CASES if case.name == name)
    problem = sized_problem(case, 260, kind="frequency")
    several, rows = repeated(problem)
    labels = np.arange(len(problem.y)) // 4
    found, expected = (
        ss.calibration(one.y, one.curves, 30, weighting=case.weighting(one), groups=codes if grouped else None)
        for one, codes in ((problem, labels), (several, labels[rows]))
    )
    assert str(found) == str(expected)
    for table in ("summary", "to_frame", "groups_frame"):
        pd.testing.assert_frame_equal(getattr(found, table)(), getattr(expected, table)())


@pytest.mark.parametrize("form", ["intervals", "continuous"])
@pytest.mark.parametrize("test", ["auto", "martingale", "bins"])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("grouped", [False, True], ids=["individuals", "groups"])
def test_tests_of_distributions(form, test, lost, grouped):
    """Frequencies are repeated rows, and weights have the scores and covariances that the definition gives."""
    problem = random_problem(400, 25, 3, lost=lost)
    rng, labels = np.random.default_rng(3), np.arange(400) // 8
    own, often = rng.gamma(2, 1, 400), rng.integers(0, 4, 400)
    c = ss.SurvivalCurves(problem.curves.probabilities, problem.curves.times, interpolation="linear")
    settings = {"test": test, "form": form, "n_bins": 5}

    def tested(y, curves, codes=labels):
        return ss.distribution_calibration(y, curves, groups=codes if grouped else None, **settings)

    def assert_same_test(found, expected, rtol=1e-9):
        for name in ("statistic", "df", "p_value", "observed", "expected", "n", "n_events", "n_dropped_out"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rtol), name
        pd.testing.assert_frame_equal(found.components_frame(), expected.components_frame(), rtol=rtol)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame(), rtol=rtol)
        assert found.reliable == expected.reliable

    y, rows = problem.y, np.repeat(np.arange(400), often)
    assert_same_test(tested(y.weighted(often, "frequency"), c), tested(y[rows], c[rows], labels[rows]))
    found = tested(y.weighted(own), c)
    assert_same_test(tested(y.weighted(7 * own), c), found)
    assert_same_test(tested(nearly_equal(y), c), tested(y, c), 1e-6)
    assert_same_test(tested(y.weighted(np.ones(400), "frequency"), c), tested(y, c), 0)
    # the total of weighted deviations of single individuals
    settings["test"] = "martingale" if lost or test == "martingale" else "auto"
    one_by_one = [ss.distribution_calibration(y[[i]], c[[i]], **settings) for i in range(400)]
    for name in ("observed", "expected"):
        total = np.average([getattr(one, name) for one in one_by_one], weights=own) * 400
        assert getattr(found, name) == pytest.approx(total, rel=1e-9)


@pytest.mark.filterwarnings("ignore::survscore.UnequalWeightsWarning")
def test_sample_weights_of_scorers():
    """As an argument, by scikit-learn's routing, and as part of the outcomes."""
    sklearn = pytest.importorskip("sklearn")
    from sklearn.model_selection import cross_validate

    problem = random_problem(200, 10)
    w = np.random.default_rng(1).gamma(2, 1, 200)
    X = np.arange(200.0)[:, None]
    scorer = ss.make_scorer("brier", weighting="administrative", times=[20.0, 40.0])
    model = ss.models.KaplanMeier().fit(X, problem.y)
    asked = {"weighting": "administrative", "times": [20.0, 40.0]}
    value = -ss.brier_score(problem.y.weighted(w), model.predict_curves(X), **asked).integrated().value
    assert scorer(model, X, problem.y, sample_weight=w) == pytest.approx(value, rel=1e-12)
    assert scorer(model, X, problem.y.weighted(w)) == pytest.approx(value, rel=1e-12)
    assert scorer(model, X, problem.y) != pytest.approx(value, rel=1e-6)
    with pytest.raises(ss.InputError, match="sample_weight: y has sample weights already"):
        scorer(model, X, problem.y.weighted(w), sample_weight=w)
    asked = {"X": X, "y": problem.y, "scoring": scorer, "cv": 3}
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(ss.models.KaplanMeier(), **asked, params={"sample_weight": w})
    assert not np.allclose(routed["test_score"], cross_validate(ss.models.KaplanMeier(), **asked)["test_score"])


def test_weights_on_the_command_line(capsys, tmp_path):
    problem = random_problem(300, 20)
    often = np.random.default_rng(1).integers(1, 4, 300)
    ids = np.arange(300)
    columns = {"time": problem.y.time, "event": problem.y.event.astype(int), "censoring_time": problem.y.censoring_time}
    observed = pd.DataFrame({"id": ids, **columns, "often": often, "bad": -1.0 * often})
    observed.to_csv(tmp_path / "observed.csv", index=False)
    times = [20.0, 40.0]
    curves = pd.DataFrame(problem.curves.at(np.array(times)), columns=times)
    curves.insert(0, "id", ids)
    curves.to_csv(tmp_path / "curves.csv", index=False)
    options = ["score", tmp_path / "observed.csv", tmp_path / "curves.csv", "--weighting", "administrative"]
    code, out, _ = run(capsys, *options, "--weights", "often", "--weight-kind", "frequency")
    assert code == 0
    y, curves = problem.y.weighted(often, "frequency"), problem.curves.only_at(np.array(times))
    expected = ss.brier_score(y, curves, weighting="administrative", times=times)
    assert printed(out, expected.scores[1], expected.lower[1], expected.upper[1])
    code, _, message = run(capsys, *options, "--weights", "bad")
    assert (code, len(message.strip().splitlines())) == (2, 1)
    assert "weights" in message
    code, _, message = run(capsys, *options, "--weights", "nowhere")
    assert code == 2
    assert "there is no column 'nowhere'" in message


def test_scores_of_batches_that_are_pushed():
    problem = sized_problem(next(case for case in CASES if case.name == "ipcw"), 90)
    asked = {"weighting": "ipcw", "times": problem.times}
    stream = ss.StreamingScore(problem.y, **asked)
    for start in range(0, 90, 30):
        stream.update(problem.curves[start : start + 30])
    expected = ss.brier_score(problem.y, problem.curves, **asked)
    np.testing.assert_allclose(stream.result().scores, expected.scores, rtol=1e-12)


@pytest.mark.parametrize("causes", [False, True], ids=["one kind", "causes"])
def test_sample_weights_of_networks(causes):
    """The loss is that of repeated rows, and nets learn from those who have weight."""
    torch = pytest.importorskip("torch")
    from survscore.models.losses import log_likelihood_loss

    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(6, 8 if causes else 4, generator=generator)
    labels = torch.randint(-1, 3 if causes else 2, (6, 4), generator=generator).to(torch.int8)
    often = torch.tensor([1, 2, 1, 3, 1, 1])
    found = log_likelihood_loss(logits, labels, often / often.float().mean())
    expected = log_likelihood_loss(*(part.repeat_interleave(often, 0) for part in (logits, labels)))
    torch.testing.assert_close(found, expected)

    rng = np.random.default_rng(1)
    # the covariate says nothing: predictions are those of a mixture, by weights
    X, slow, time = rng.normal(size=(400, 1)), rng.random(400) < 0.5, rng.exponential(1.0, 400)
    time, w = np.where(slow, 10 * time, time), np.where(slow, 9.0, 1.0)
    event = np.where(time < 8, rng.integers(1, 3, 400) if causes else 1, 0)
    y = ss.Outcomes(np.minimum(time, 8.0), event, np.full(400, 8.0), **({"causes": ["a", "b"]} if causes else {}))
    settings = {"n_times": 6, "n_layers": 1, "width": 8, "epochs": 15, "random_state": 0, "device": "cpu"}

    def event_free(model):
        curves = model.predict_curves(X)
        return float((curves.event_free() if causes else curves).at([2.0]).mean())

    plain = event_free(ss.models.LogisticHazard(**settings).fit(X, y))
    weighted = event_free(ss.models.LogisticHazard(**settings).fit(X, y, sample_weight=w))
    assert weighted == event_free(ss.models.LogisticHazard(**settings).fit(X, y.weighted(w)))
    assert weighted > plain + 0.1
    with pytest.raises(ss.InputError, match="sample_weight: y has sample weights already"):
        ss.models.LogisticHazard(**settings).fit(X, y.weighted(w), sample_weight=w)
    with pytest.raises(ss.InputError, match="weights"):
        ss.models.LogisticHazard(**settings).fit(X, y, sample_weight=-w)


@pytest.mark.filterwarnings("ignore")
def test_cross_validation_with_weights_of_the_outcomes():
    """Scores of folds are those of their own weighted outcomes, and the models learn from weighted ones."""
    problem = random_problem(300, 10)
    y = problem.y.weighted(np.random.default_rng(1).integers(1, 4, 300), "frequency")
    X = np.arange(300.0)[:, None]
    folds = ss.EventKFold(3)
    asked = {"weighting": "administrative", "times": [20, 40]}
    found = ss.cross_validate({"km": ss.models.KaplanMeier()}, X, y, cv=folds, **asked)
    train, test = next(folds.split(X, y))
    model = ss.models.KaplanMeier().fit(X[train], y[train])
    expected = ss.brier_score(y[test], model.predict_curves(X[test]), **asked)
    first = found.folds[(found.folds.fold == found.folds.fold.min()) & (found.folds.estimator == "km")]
    np.testing.assert_allclose(first[first.weighting == "administrative"].score, expected.scores, rtol=1e-9)
    assert found.y.weights is not None


def test_tensors_with_weights_of_zero():
    torch = pytest.importorskip("torch")
    problem = random_problem(120, 10)
    w = np.random.default_rng(1).gamma(2, 1, 120)
    w[::5] = 0
    asked = {"weighting": "projected", "times": [20.0, 40.0]}
    curves = ss.SurvivalCurves(torch.from_numpy(problem.curves.probabilities.copy()), problem.curves.times)
    found = ss.brier_score(problem.y.weighted(w), curves, **asked)
    expected = ss.brier_score(problem.y.weighted(w), problem.curves, **asked)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
    np.testing.assert_allclose(found.se, expected.se, rtol=1e-9)


def drawn_sample(rng, n):
    """A sample in which those at high risk are more likely to be, in whole units of time."""
    x = rng.integers(-2, 3, n) / 2
    star, end = np.ceil(rng.exponential(10 * np.exp(-x))), np.ceil(rng.uniform(2, 10, n))
    left = np.ceil(rng.exponential(40, n))
    time = np.minimum(np.minimum(star, end), left)
    y = ss.Outcomes(time, star == time, end)
    # a prediction that errs, and another one
    risks = {"a": 0.12 * np.exp(0.7 * x), "b": np.full(n, 0.15)}
    models = {name: ss.SurvivalCurves(np.exp(-rate[:, None] * 5.0), [5]) for name, rate in risks.items()}
    return x, y, models


def coverage(kind, replicates, n=900):
    """How often intervals of a score and of a difference contain the population's, under three weightings."""
    rng = np.random.default_rng(11)
    weightings = ["administrative", "ipcw", "projected"]
    asked = {"weighting": weightings, "times": [5], "null": False}
    _, y, models = drawn_sample(rng, 300_000)
    truth = [one.scores[:, 0] for one in Evaluation.of(y, models, errors=False, **asked).run()]
    hits = np.zeros((replicates, 3, 2))
    for r in range(replicates):
        x, y, models = drawn_sample(rng, n)
        if kind == "frequency":  # rows that are alike are one
            table = np.column_stack([x, y.time, y.event, y.censoring_time])
            _, rows, often = np.unique(table, axis=0, return_index=True, return_counts=True)
            y = y[rows].weighted(often, kind)
        else:
            chance = np.where(x > 0, 0.6, 0.2)
            rows = np.flatnonzero(rng.random(n) < chance)
            y = y[rows].weighted(1 / chance[rows], kind)
        found = ss.compare(y, {name: curves[rows] for name, curves in models.items()}, **asked)
        for q, one in enumerate(found.scored):
            support, scores = one.support, one.scores[:, 0]
            critical = student_quantile(0.95, support.score_degrees)[0]
            for k, (value, true, pair) in enumerate(
                [(scores[0], truth[q][0], (0, 0)), (scores[1] - scores[0], truth[q][1] - truth[q][0], (0, 1))]
            ):
                hits[r, q, k] = abs(value - true) <= critical * np.sqrt(one.moments.variance(*pair)[0])
    return hits.mean(axis=0)


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["probability", "frequency"])
def test_intervals_cover_the_scores_of_the_population(kind):
    """95 percent: within what chance does of 2 000 data sets, and a percent and a half of bias and of approximation."""
    tolerance = 0.015 + 3.3 * np.sqrt(0.95 * 0.05 / 2000)
    assert (np.abs(coverage(kind, 2000) - 0.95) <= tolerance).all()


def test_individuals_with_weight_zero_are_in_no_segment():
    problem = random_problem(200, 20)
    rows, some = np.arange(200), np.arange(200) >= 50
    labels, groups = np.where(some, np.where(rows % 2, "x", "y"), "z"), rows // 3
    models = {"a": problem.curves, "b": problem.curves[rows[::-1]]}
    asked = {"weighting": "administrative", "times": [20, 40], "null": False}
    y = problem.y.weighted(some * 1.0)
    found = ss.compare(y, models, by={"label": labels}, groups=groups, **asked)
    kept = {name: curves[some] for name, curves in models.items()}
    expected = ss.compare(y[some], kept, by={"label": labels[some]}, groups=groups[some], **asked)
    assert list(found.parts) == list(expected.parts) == [("x",), ("y",)]
    assert found.n_spanning == expected.n_spanning
    np.testing.assert_allclose(found.scores["score"], expected.scores["score"], rtol=1e-12)

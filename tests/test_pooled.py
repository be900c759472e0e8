"""Metrics of all who are counted at one time: calibration in numbers, and net benefit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import literal
import oracle
import survscore as ss
from combinations import examples, nightly_but
from registry import ASKED, CASES, CURVED, FITTED, METRICS, Case, fitted_problem
from survscore.metrics import NetBenefit

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
quiet = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
NEW = ("oe", "net_benefit")
EVERY_NEW = (*NEW, *FITTED)
PLAIN = next(case for case in CASES if case.name == "administrative, nobody lost")


def compared(problem, case, metrics, **settings):
    """The problem's model beside one that predicts the squares of its survival."""
    curves = problem.curves
    other = ss.SurvivalCurves(
        curves.probabilities**2, curves.times, interpolation=curves.interpolation, extrapolation=curves.extrapolation
    )
    result = ss.compare(
        problem.y, {"a": curves, "b": other}, metric=[ASKED.get(name, name) for name in metrics], null=False,
        weighting=case.weighting(problem), times=problem.times, **settings,
    )  # fmt: skip
    return result, [problem, replace(problem, curves=other)]


# Against the literal version


@every_case
@pytest.mark.parametrize("metric", NEW)
@quiet
@examples(4)
@given(data=st.data())
def test_agrees_with_the_literal_loop(case: Case, metric, data):
    """With one individual, one status, predictions of 0 and 1, and ties of all kinds."""
    problem = data.draw(case.problems())
    got = METRICS[metric](problem.y, problem.curves, weighting=case.weighting(problem), times=problem.times)
    expected = [literal.value(metric, case, problem, t) for t in problem.times]
    np.testing.assert_allclose(got.scores, expected, rtol=1e-12, atol=1e-12)


#: Of one cause for every second weighting in the quick suite.
REGRESSED = [(case, bool(q % 2) and case.of_causes) for q, case in enumerate(CASES)]
EVERY_REGRESSION = [(case, causes) for case in CASES for causes in (False, True) if case.of_causes or not causes]


@pytest.mark.parametrize(("case", "causes"), nightly_but(REGRESSED, EVERY_REGRESSION))
@quiet
def test_regressions_agree_with_scipy_and_their_errors_with_derivatives(case: Case, causes):
    """Values, standard errors and those of differences: to 1e-8, with ties, drop-outs, caps and training data."""
    defined = 0
    problem = replace(fitted_problem(case.data, 3, causes=causes), times=np.array([30.0]))
    result, models = compared(problem, case, FITTED)
    for metric, scored in zip(FITTED, result.scored, strict=True):
        expected = [literal.value(metric, case, model, 30.0) for model in models]
        np.testing.assert_allclose(scored.scores[:, 0], expected, rtol=1e-8, atol=1e-12, err_msg=metric)
        for pair, variance in literal.variances(case, problem, metric, models).items():
            if np.isfinite(expected).all():
                np.testing.assert_allclose(
                    scored.moments.variance(*pair), variance, rtol=1e-7, atol=1e-15, err_msg=f"{metric} {pair}"
                )
                defined += 1
    assert defined == 3 * len(FITTED)


def test_a_spline_of_five_knots_agrees_with_scipy():
    problem = replace(fitted_problem(PLAIN.data, 0, n=500), times=np.array([30.0]))
    result, _ = compared(problem, PLAIN, CURVED[1:])
    _, event, _ = oracle.counted(PLAIN.weights(problem, 30.0), problem.pi(30.0))
    assert min(sum(event), len(event) - sum(event)) >= 100
    expected = [literal.value(metric, PLAIN, problem, 30.0) for metric in CURVED[1:]]
    np.testing.assert_allclose([scored.scores[0, 0] for scored in result.scored], expected, rtol=1e-7)


# With calibration, which has intervals of its own


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighting", ["administrative", "ipcw", ss.Administrative(max_weight=1.2)])
def test_metrics_are_the_numbers_of_calibration(weighting, grouped):
    problem = fitted_problem("drop-outs", 5, n=300)
    groups = np.arange(300) // 3 if grouped else None
    names = ["oe", "slope", "in_the_large", "miscalibration", "ici", "e50", "e90"]
    scores = ss.score_all(
        problem.y, problem.curves, metric=names, weighting=weighting, times=[30], groups=groups
    )  # fmt: skip
    whole = ss.calibration(problem.y, problem.curves, 30, weighting=weighting, groups=groups)
    same = [
        whole.observed_expected, whole.slope, whole.in_the_large, whole.miscalibration, whole.ici, whole.e50, whole.e90
    ]  # fmt: skip
    for name, score, estimate in zip(names, scores, same, strict=True):
        assert score.scores[0] == pytest.approx(estimate.value, rel=1e-11), name
    for score, estimate in zip(scores[:3], same[:3], strict=True):  # of distances, calibration draws coefficients
        assert score.se[0] == pytest.approx(estimate.se, rel=1e-11)


# Where there is nothing to say


def score_of(metric, y, survival, **settings):
    """One metric at time 5, without NumPy's warnings, and what is warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        curves = ss.SurvivalCurves(np.array(survival, dtype=float)[:, None], [5])
        asked = {"weighting": "administrative", "times": [5], **settings}
        (score,) = ss.score_all(y, curves, metric=ASKED.get(metric, metric), **asked)
    assert all(issubclass(one.category, (ss.UndefinedScoreWarning, ss.FewGroupsWarning)) for one in told)
    return score


def outcomes(statuses):
    """Event at 1 or event-free at 9, all seen until then."""
    statuses = np.array(statuses, dtype=bool)
    return ss.Outcomes(np.where(statuses, 1.0, 9.0), statuses, np.full(statuses.size, 9.0))


@pytest.mark.parametrize(
    ("metric", "statuses", "survival", "reason"),
    [
        ("oe", [1, 0, 1], [1, 1, 1], "all predicted risks are 0"),
        ("slope", [1, 0, 1, 0], [0.5] * 4, "all predictions are the same"),
        ("slope", [1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9], "the predictions separate those with event from those without"),
        ("in_the_large", [1, 1, 1], [0.2, 0.3, 0.4], "all who are counted have the same status"),
    ],
)  # fmt: skip
def test_reasons_reach_the_user(metric, statuses, survival, reason):
    score = score_of(metric, outcomes(statuses), survival)
    assert np.isnan(score.scores).all()
    assert np.isnan(score.se).all()
    assert not score.reliable.any()
    ((told, times),) = score.undefined.items()
    assert told.startswith(reason)
    assert times == 1
    assert reason in repr(score)


def test_a_reason_names_the_models_it_is_about():
    rng = np.random.default_rng(0)
    y = outcomes(rng.random(50) < 0.5)
    times = [2, 5]
    curves = {
        "good": ss.SurvivalCurves(np.sort(rng.uniform(0.2, 0.8, (50, 2)))[:, ::-1], times),
        "late": ss.SurvivalCurves(np.column_stack((np.full(50, 0.9), rng.uniform(0.2, 0.8, 50))), times),
        "flat": ss.SurvivalCurves(np.full((50, 2), 0.5), times),
    }
    with pytest.warns(ss.UndefinedScoreWarning, match=r"1 time where all predictions are the same \(late, flat\)"):
        result = ss.compare(y, curves, metric="slope", weighting="administrative", times=times)
    (scored,) = result.scored
    assert scored.undefined == {
        "all predictions are the same (late, flat)": 1, "all predictions are the same (flat)": 1
    }  # fmt: skip
    assert np.isnan(scored.scores).tolist() == [[False] * 2, [True, False], [True] * 2, [True] * 2]
    # a model that has no slope anywhere does not keep the others from having a mean, but one that has some does
    with pytest.raises(ss.InputError, match="NaN at 1 time"):
        result.integrated()


@pytest.mark.parametrize("metric", EVERY_NEW)
def test_the_smallest_of_data(metric):
    """One individual, two, one group, and nothing but NaN or a number: never an error, nor a warning of NumPy's."""
    rng = np.random.default_rng(4)
    for statuses in ([1], [0], [1, 0], [0, 1, 1], [1, 0, 1, 0, 0]):
        n = len(statuses)
        for survival in (np.full(n, 0.5), np.zeros(n), np.ones(n), rng.random(n)):
            for groups in (None, np.zeros(n)):
                for weighting in ("administrative", "ipcw"):
                    y = outcomes(statuses)
                    score = score_of(metric, y, survival, groups=groups, weighting=weighting)
                    assert np.isnan(score.scores[0]) == bool(score.undefined), (statuses, survival, groups)
                    if n == 1 or groups is not None:
                        assert np.isnan(score.se[0])


def test_the_bias_of_one_group_can_not_be_taken_off():
    rng = np.random.default_rng(4)
    y, survival = outcomes(rng.random(60) < 0.5), rng.random(60)
    score = score_of("miscalibration", y, survival, groups=np.zeros(60))
    assert score.undefined == {"only one group is counted, so that the part of chance cannot be estimated": 1}


# Directions


def test_what_should_be_close_to_a_target_is_neither_better_nor_worse():
    problem = fitted_problem("administrative", 1, n=400)
    result, _ = compared(problem, PLAIN, ["oe", "slope", "in_the_large", "miscalibration"])
    verdicts = result.contrasts.groupby("metric")["verdict"].agg(set)
    for metric in ("oe", "slope", "in_the_large"):
        assert verdicts[metric] <= {"lower", "higher", "undecided"}
    assert "lower" in verdicts["oe"]  # risks are higher
    assert verdicts["miscalibration"] <= {"better", "worse", "undecided"}
    with pytest.raises(ss.InputError, match="lower or higher values are better, to choose models by, not 'slope'"):
        ss.make_scorer("slope", weighting="administrative", times=[5])


def test_distances_that_chance_makes_larger_have_no_interval():
    """Coverage of one around them is .56 to .83 where predictions are right, and of their differences .58 to .88."""
    problem = fitted_problem("administrative", 1, n=400)
    result, _ = compared(problem, PLAIN, ["ici", "e50", "e90"], ranges="any")
    assert (result.scores["se"] > 0).all()
    assert result.scores[["lower", "upper"]].isna().all(axis=None)
    assert (result.contrasts["se"] > 0).all()
    assert result.contrasts[["lower", "upper", "p_value"]].isna().all(axis=None)
    assert set(result.contrasts["verdict"]) == {"unknown"}


@quiet
def test_the_null_model_has_none_of_these_and_no_skill():
    problem = fitted_problem("administrative", 1, n=200)
    asked = [*(ASKED.get(name, name) for name in EVERY_NEW), "brier", "auc"]
    result = ss.compare(
        problem.y, {"a": problem.curves}, metric=asked, weighting="administrative", times=[15, 30], ranges="any"
    )
    of_null = result.scores.query("model == 'Kaplan-Meier'").groupby("metric")["score"].agg(lambda x: x.notna().all())
    assert sorted(of_null[of_null].index) == ["auc", "brier"]
    assert set(result.skill["metric"]) == {"brier"}
    assert result.band().query("metric == 'slope'")["lower"].isna().all()  # to the null model


# Net benefit


def test_several_thresholds_are_several_metrics():
    problem = fitted_problem("administrative", 1, n=100)
    asked = ["net_benefit@0.1", NetBenefit(0.25), "net_benefit@1e-3"]
    scores = ss.score_all(problem.y, problem.curves, metric=asked, weighting="administrative", times=[30])
    assert [score.metric for score in scores] == ["net_benefit@0.1", "net_benefit@0.25", "net_benefit@0.001"]
    assert [score.settings["threshold"] for score in scores] == [0.1, 0.25, 0.001]
    with pytest.raises(ss.InputError, match="metric must name different metrics"):
        ss.score_all(problem.y, problem.curves, metric=["net_benefit@0.1", "net_benefit@0.10"], weighting="ipcw")


@pytest.mark.parametrize("threshold", [0, 1, np.nan])
def test_impossible_thresholds_are_refused(threshold):
    with pytest.raises(ss.InputError, match="threshold must be between 0 and 1, a threshold probability, not"):
        NetBenefit(threshold)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_risk_of_just_the_threshold_is_acted_upon(dtype):
    """Also where it is less by rounding: 1 - 0.9 < 0.1, and 1 - 0.8 < 0.2 in single precision."""
    for threshold in np.arange(1, 100) / 100:
        survival = np.array([1 - threshold, 0.999, 0.999]).round(3).astype(dtype)
        assert NetBenefit(threshold).acts(survival).tolist() == [True, False, False]
    survival = np.array([0.7, 0.7, 0.71, 0.2], dtype=dtype)
    score = score_of("net_benefit", outcomes([1, 0, 1, 0]), survival)
    assert score.scores[0] == pytest.approx((1 - 3 / 7 - 3 / 7) / 4)
    assert NetBenefit(0.3).discordant(survival, survival[::-1], np.array([1.0, 1.0, 0.0, 1.0])) == 1
    assert NetBenefit(0.3).discordant(survival, survival[::-1], np.ones(4)) == 2


def test_models_that_decide_alike_are_not_known_to_be_the_same():
    """Without anybody on whom two models differ, influences are the same, and their difference would be sure."""
    y = outcomes(np.arange(100) % 3 == 0)
    models = {"a": np.full((100, 1), 0.5), "b": np.full((100, 1), 0.6)}
    result = ss.compare(
        y, {name: ss.SurvivalCurves(pi, [5]) for name, pi in models.items()}, metric=NetBenefit(0.3),
        weighting="administrative", times=[2, 5], null=False,
    )  # fmt: skip
    np.testing.assert_allclose(result.contrasts["se"], np.sqrt(1 + (3 / 7) ** 2) / 100)
    assert set(result.contrasts["verdict"]) == {"undecided"}
    # as one individual would, who is the same at all times
    assert result.integrated().contrasts["se"][0] == pytest.approx(np.sqrt(1 + (3 / 7) ** 2) / 100)


# Where much of a variance was added


@pytest.mark.parametrize(("discordant", "reliable"), [(2, False), (16, False), (24, True), (100, True)])
def test_differences_of_net_benefit_that_rest_on_few_are_not_reliable(discordant, reliable):
    """Of 400, one in two has the event; models differ on some of both statuses, and two are added to these."""
    y = ss.Outcomes(np.tile([1.0, 4.0], 200), np.tile([1, 0], 200), np.full(400, 4.0))
    times, survival = [2.0, 3.0], np.full((400, 2), 0.2)
    other = np.where(np.arange(400)[:, None] < discordant, 0.9, survival)
    models = {"a": ss.SurvivalCurves(survival, times), "b": ss.SurvivalCurves(other, times)}
    asked = {"weighting": "administrative", "times": times, "null": False, "ranges": "any"}
    result = ss.compare(y, models, metric=["net_benefit@0.5", "brier"], **asked)
    assert result.contrasts["reliable"].tolist() == [reliable] * 2 + [True] * 2
    assert result.integrated().contrasts["reliable"].tolist() == [reliable, True]
    assert result.band()["reliable"].tolist() == [reliable] * 2 + [True] * 2
    assert result.scores["reliable"].all()
    # half of them are worth 1, half of them -1
    share = 2 / (discordant * 400 / 399 + 2)
    np.testing.assert_allclose(result.scored[0].moments.added_share(0, 1), share)


def test_small_miscalibration_has_an_interval_and_no_reliable_difference():
    """Squares of errors are most of what right predictions have: the scale of the root allows for that."""
    rng = np.random.default_rng(3)
    rate = rng.gamma(2, 0.05, 2000)
    y = ss.Outcomes(rng.exponential(1 / rate), np.ones(2000))
    times = np.array([4.0, 5.0])
    right = np.exp(-rate[:, None] * times)
    other = np.exp(-(rate * rng.gamma(50, 1 / 50, 2000))[:, None] * times)  # nearly right, with other errors
    models = {
        name: ss.SurvivalCurves(survival, times)
        for name, survival in (("right", right), ("nearly", other), ("wrong", right**2))
    }
    result = ss.compare(y, models, metric="miscalibration", times=times, null=False)
    assert result.scores["reliable"].all()
    assert result.contrasts["reliable"].tolist() == [False, False, True, True]
    assert result.integrated().contrasts["reliable"].tolist() == [False, True]
    (score,) = ss.score_all(y, models["wrong"], metric="miscalibration", times=times)
    root, half = np.sqrt(score.scores), 1.96 * score.se / (2 * np.sqrt(score.scores))
    np.testing.assert_allclose([score.lower, score.upper], [(root - half) ** 2, (root + half) ** 2], rtol=1e-3)
    (score,) = ss.score_all(y, models["right"], metric="miscalibration", times=times)
    assert score.lower.max() <= 0 < score.upper.min()
    assert score.reliable.all()
    assert score.integrated().reliable

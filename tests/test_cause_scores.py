"""Scores of one of several causes: what they equal, both kinds of controls, bounds, sensitivity, null model, errors.

That scores, metrics and standard errors are the literal ones under every weighting is tested where events are of one
kind, too: the problems of registry.py are of one cause in half of all cases.
"""

from dataclasses import replace
from inspect import signature
from types import FunctionType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import survscore as ss
from combinations import examples
from literal import derivatives
from registry import ASKED, CASES, METRICS, Case, projected_strata, random_problem, with_causes
from survscore.engine.sensitivity import THETAS
from survscore.inference.late_starters import LateStarters

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
of_causes = [case for case in CASES if case.of_causes]
every_case = pytest.mark.parametrize("case", of_causes, ids=lambda case: case.name)
TIMES = np.array([1.0, 3.0, 4.5, 7.0])


def draw(n, seed, *, ties=False, lost=True):
    """Two causes whose hazards differ between strata, staggered ends, drop-outs, and two models of the first cause."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    a, b = (0.06 + 0.1 * label) * rng.uniform(0.5, 1.5, n), 0.09 * rng.uniform(0.5, 1.5, n)
    star, end = rng.exponential(1 / (a + b)), rng.uniform(2, 12, n)
    dropping = rng.exponential(30, n) if lost else np.full(n, np.inf)
    if ties:
        star, end, dropping = (np.ceil(one) for one in (star, end, dropping))
    time = np.minimum(np.minimum(star, end), dropping)
    kind = 1 + (rng.random(n) > a / (a + b))
    y = with_causes(ss.Outcomes(time, (star <= end) & (star <= dropping), end), kind, "a")
    share, noise = (a / (a + b))[:, None], rng.uniform(0.7, 1.6, (n, 1))
    free = {
        name: 1 - share * (1 - np.exp(-scale * (a + b)[:, None] * TIMES))
        for name, scale in (("one", 1), ("two", noise))
    }
    return y, {name: ss.SurvivalCurves(values.round(3), TIMES) for name, values in free.items()}, label


def table_of(result):
    return result.select_dtypes("number").to_numpy()


# What they equal


def every_number(y, curves, other, case_weighting, times, metrics):
    result = ss.compare(y, {"a": curves, "b": other}, metric=metrics, weighting=case_weighting, times=times)
    return [
        table_of(table)
        for table in (result.scores, result.contrasts, *([] if result.skill is None else [result.skill]))
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_single_cause_is_an_event_of_one_kind_to_the_last_bit(case):
    lost = case.data in ("any", "drop-outs", "lost")
    problem = random_problem(120, 6, lost=lost)
    y, curves, times = problem.y, problem.curves, problem.times[1:4]
    if case.data == "uncensored":
        y = ss.Outcomes(y.time, np.ones(120), y.censoring_time)
    named = ss.Outcomes(y.time, y.event * 7, y.censoring_time, causes={"x": 7}).for_cause("x")
    other = ss.SurvivalCurves(curves.probabilities**1.2, curves.times, extrapolation="hold")
    metrics = [ASKED.get(name, name) for name in METRICS]
    weighting = case.weighting(problem)
    for one, same in zip(
        every_number(y, curves, other, weighting, times, metrics),
        every_number(named, curves, other, weighting, times, metrics),
        strict=True,
    ):
        np.testing.assert_array_equal(one, same)


# Both kinds of controls


def parts(case, problem, t, mass=None, training_mass=None):
    """The weight of each individual as a case, and as a control without any event."""
    y, n = problem.y, len(problem.y)
    weighted = case.definition(problem, t, mass, training_mass)
    if weighted is None:
        return None
    own, mass = y.event_of_interest, [1.0] * n if mass is None else mass
    found = []
    strata = {"projected": "ranks", "projected mean ranks": "ranks", "projected strata": "given"}.get(case.name)
    theta = {"projected mean ranks": 0.7, "projected strata": 1.5}.get(case.name, 1.0)
    for i, (weight, free) in enumerate(weighted[0]):
        event_free = free
        if free is None or free is False:
            case_part, event_free = (1.0 if free is False and own[i] else 0.0), 0.0
        elif free is True:
            case_part, event_free = 0.0, 1.0
        else:
            stays = oracle.stays_without(y.time, own, y.event & ~own, projected_strata(problem, strata), mass, theta)
            without, event_free = stays(i, y.time[i], t)
            case_part = 1 - without
        found.append((mass[i] * weight * case_part, mass[i] * weight * event_free))
    return [list(part) for part in zip(*found, strict=True)]


@every_case
@examples(4)
@given(data=st.data())
def test_auc_against_the_event_free_is_that_of_all_pairs(case: Case, data):
    """Values, and standard errors by the derivative in how often each individual counts."""
    problem = data.draw(case.problems(min_size=3, max_size=7))
    assume(problem.y.competing and problem.curves.reaches(problem.times[:1])[0])
    t, n, n_training = float(problem.times[0]), len(problem.y), len(problem.training)
    c = problem.curves
    asked = {"weighting": case.weighting(problem), "times": [t], "null": False, "groups": np.arange(n)}
    one = ss.compare(problem.y, {"one": c}, metric="auc@event-free", **asked).scored[0]
    problem = replace(problem, times=problem.times[:1])

    def value(mass, training_mass):
        found = parts(case, problem, t, mass, training_mass)
        return np.nan if found is None else oracle.auc_of_parts(*found, problem.pi(t))

    expected = value(None, None)
    np.testing.assert_allclose(one.scores[0, 0], expected, rtol=1e-11, atol=1e-12)
    assume(not np.isnan(expected))
    counted = one.support.units.counted[0]
    assume(counted > 1)
    here = derivatives(lambda mass: value(mass, None), [1.0] * n)
    there = derivatives(lambda mass: value(None, mass), [1.0] * n_training)
    variance = counted / (counted - 1) * np.sum(here**2) + np.sum(there**2)
    np.testing.assert_allclose(one.moments.variance(0, 0)[0], variance, rtol=1e-9, atol=1e-14)


def test_controls_are_named_and_both_stand_in_one_table():
    y, models, _ = draw(200, 5)
    table = ss.compare(y, models, metric=["auc", "auc@event-free"], weighting="administrative", times=[4.5]).scores
    assert list(dict.fromkeys(table["metric"])) == ["auc", "auc@event-free"]
    asked = ss.score_all(y, models["one"], metric=ss.metrics.AUC("event-free"), weighting="administrative", times=[4.5])
    assert asked[0].scores[0] == table.loc[(table["metric"] != "auc") & (table["model"] == "one"), "score"].item()
    assert asked[0].settings["controls"] == "event-free"
    assert "AUC against the event-free of cause a" in str(asked[0])
    with pytest.raises(ss.InputError, match="controls must be one of 'not-case', 'event-free', not 'all'"):
        ss.score_all(y, models["one"], metric="auc@all", weighting="administrative", times=[4.5])


# Sensitivity, by the hazard of the cause of interest


def literal_at(y, curves, label, t, theta, mass=None, metric="brier"):
    own = y.event_of_interest
    stays = oracle.stays_without(y.time, own, y.event & ~own, label, mass, theta)
    weights = oracle.weights_projected(y.time, y.event, t, None, stays=lambda *at: stays(*at)[0])
    return oracle.metric(metric, oracle.of_cause(weights, own), curves.at([t])[:, 0], mass)


@pytest.mark.parametrize("metric", ["brier", "log"])
def test_differences_by_theta_are_the_literal_ones(metric):
    y, models, label = draw(50, 2, ties=True)
    weighting = ss.Projected(strata=label, min_followed=1)
    result = ss.compare(y, models, metric=metric, weighting=weighting, times=TIMES, null=False, reference="one")
    nodes = result.scored[0].by_theta.scores
    for k in (0, 10, 16, 22, 32):
        for a, curves in enumerate(models.values()):
            expected = [literal_at(y, curves, label, t, THETAS[k], metric=metric) for t in TIMES]
            np.testing.assert_allclose(nodes[a, :, k], expected, rtol=1e-10)
    sensitivity = result.sensitivity()
    for theta in (0.3, 1.7, 6.0):
        scores = [[literal_at(y, one, label, t, theta, metric=metric) for t in TIMES] for one in models.values()]
        for t, first, second in zip(TIMES, *scores, strict=True):
            curve = sensitivity.curve("two", time=t)
            found = np.interp(np.log(theta), np.log(curve["theta"]), curve["difference"])
            assert found == pytest.approx(second - first, abs=1e-5)


@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
def test_statuses_keep_their_digits_whatever_theta_is():
    """With fifty times the hazard S(c) is below 1e-20, and differences of F would have no digits."""
    y, models, label = draw(90, 4)
    late = np.array([9.0])
    curves = ss.SurvivalCurves(models["one"].at([7.0]), late)
    for theta in (0.0, 20.0, 50.0):
        found = ss.brier_score(y, curves, weighting=ss.Projected(strata=label, theta=theta, min_followed=1), times=late)
        expected = literal_at(y, curves, label, 9.0, theta)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
        se = derivative_se(y, lambda mass, theta=theta: literal_at(y, curves, label, 9.0, theta, mass))
        np.testing.assert_allclose(found.se, se, rtol=1e-9 if theta < 50 else 1e-4)  # of running sums up to 1 / S(c)


def derivative_se(y, value):
    return np.sqrt(len(y) / (len(y) - 1) * np.sum(derivatives(value, [1.0] * len(y)) ** 2))


@pytest.mark.parametrize("ties", [False, True])
def test_the_hazard_ratio_of_late_starters_is_that_of_the_cause(ties):
    y, _, _ = draw(200, 8, ties=ties)
    found = LateStarters.of(y, TIMES)
    own = y.event_of_interest
    for j, t in enumerate(TIMES):
        early, late = (np.flatnonzero(flags) for flags in (y.censoring_time >= t, y.censoring_time < t))
        expected = 0.0
        for s in sorted({y.time[i] for i in early if own[i]}):
            d = sum(1 for i in early if own[i] and y.time[i] == s)
            expected += np.sum(y.time[late] >= s) * d / np.sum(y.time[early] >= s)
        assert found.observed[j] == own[late].sum()
        assert found.expected[j] == pytest.approx(expected)


def test_the_recommendation_and_tipping_points_are_of_the_cause():
    y, models, _ = draw(600, 6)
    result = ss.compare(y, models, cause="a", times=TIMES)
    whole = result.sensitivity()
    assert "cause a" in str(whole)
    assert whole.to_frame()["theta"].eq(1).all()
    assert "hazard of cause a of those with hidden status" in str(whole)
    assert "Brier score of cause a" in str(result.recommendation())


# Bounds, groups, segments, means over time, null model, skill


def test_bounds_are_those_of_all_that_can_have_happened_to_the_lost():
    """One who is lost may have had the event of the cause or not, whatever else happened."""
    y, models, _ = draw(14, 11)
    lost = np.flatnonzero(y.dropped_out)
    assert 2 <= lost.size <= 8
    found = ss.compare(y, models, weighting=ss.Administrative(dropout_strata=None), times=TIMES, null=False).contrasts
    own, end = y.event_of_interest, y.censoring_time
    time = np.where(y.event & ~own, end, y.time)  # event-free for the cause until the end
    pis = [curves.at(TIMES) for curves in models.values()]
    checked = 0
    for j, t in enumerate(TIMES):
        low, high = oracle.bounds("brier", time, own, end, t, [pi[:, j] for pi in pis], (-1.0, 1.0))
        row = found[found["time"] == t]
        np.testing.assert_allclose(
            row[["bound_lower", "bound_upper"]].to_numpy()[0], [low, high], rtol=1e-9, atol=1e-12
        )
        checked += low < high
    assert checked


def literal_table(y, curves, t, mass=None):
    """Brier score of those with C* >= t, without drop-outs, and that of the Aalen-Johansen estimate."""
    mass = [1.0] * len(y) if mass is None else mass
    own = y.event_of_interest
    weights = oracle.weights_administrative(y.time, y.event, y.censoring_time, t)
    weights = oracle.of_cause(weights, own)
    null = 1 - incidence(y, t, mass)
    pi = curves.at([t])[:, 0]
    return (oracle.mean_loss("brier", weights, pi, mass), null_loss(weights, null, mass), null)


def incidence(y, t, mass):
    """The Aalen-Johansen estimate, step by step."""
    own, free, found = y.event_of_interest, 1.0, 0.0
    for s in sorted({T for T, D in zip(y.time, y.event, strict=True) if D and t >= T}):
        at_risk = sum(m for m, T in zip(mass, y.time, strict=True) if s <= T)
        gone = sum(m for m, T, D in zip(mass, y.time, y.event, strict=True) if D and s == T)
        of_cause = sum(m for m, T, D in zip(mass, y.time, own, strict=True) if D and s == T)
        found, free = found + free * of_cause / at_risk, free * (at_risk - gone) / at_risk
    return found


def null_loss(weights, null, mass):
    total = n = 0.0
    for m, (weight, free) in zip(mass, weights[0], strict=True):
        if free is not None:
            total, n = total + m * weight * ((1 - null) if free else null) ** 2, n + m * weight
    return total / n


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_null_model_skill_and_means_over_time_have_the_errors_of_the_derivative(grouped, backend):
    n = 60
    y, models, _ = draw(n, 9, ties=True, lost=False)
    groups = np.arange(n) // 2 if grouped else np.arange(n)
    with ss.config.using(backend=backend):
        result = ss.compare(y, {"one": models["one"]}, weighting="administrative", times=TIMES, groups=groups)
        whole = result.integrated()
    assert "Aalen-Johansen" in set(result.scores["model"])

    def literal(mass=None):
        values = np.array([literal_table(y, models["one"], t, mass) for t in TIMES])
        model, null = values[:, 0], values[:, 1]
        means = [oracle.integral(TIMES, one, TIMES[0], TIMES[-1]) / (TIMES[-1] - TIMES[0]) for one in (model, null)]
        return np.concatenate([model, null, null - model, [means[0], means[1], means[1] - means[0]]])

    scores = result.scores.set_index("model")
    means = whole.scores.set_index("model")

    def of_all(column, of_differences):
        of_models = [table.loc[[name], column] for table in (scores, means) for name in ("one", "Aalen-Johansen")]
        differences = result.contrasts[of_differences], whole.contrasts[of_differences]
        return np.concatenate([*of_models[:2], differences[0], *of_models[2:], differences[1]])

    np.testing.assert_allclose(of_all("score", "difference"), literal(), rtol=1e-10)
    at_times = literal()[: TIMES.size * 2].reshape(2, -1)
    np.testing.assert_allclose(result.skill["skill"], 1 - at_times[0] / at_times[1], rtol=1e-10)
    phi = derivatives(literal, [1.0] * n)
    by_group = np.array([phi[groups == g].sum(axis=0) for g in np.unique(groups)])
    se = of_all("se", "se")
    counted = [np.unique(groups[y.censoring_time >= t]).size for t in TIMES]
    factor = np.tile(np.array(counted) / (np.array(counted) - 1), 3)
    at_times = 3 * TIMES.size
    np.testing.assert_allclose(se[:at_times], np.sqrt(factor * (by_group**2).sum(axis=0)[:at_times]), rtol=1e-8)
    np.testing.assert_allclose(se[at_times:], np.sqrt((by_group**2).sum(axis=0)[at_times:]), rtol=0.05)


# The leak detector


def telling(n, seed):
    """The true incidences of two causes, and those of a model that knows C* and minimises the IPCW score after it.

    Of those who are seen after their C* all have had an event: each cause has its share of these.
    """
    rng = np.random.default_rng(seed)
    a, b = 0.02 * rng.gamma(4, 0.25, n), 0.03 * rng.gamma(4, 0.25, n)
    star, end = rng.exponential(1 / (a + b)), rng.uniform(5, 60, n)
    kind = 1 + (rng.random(n) > a / (a + b))
    y = ss.Outcomes(np.minimum(star, end), kind * (star <= end), end, causes=["a", "b"])
    times = np.arange(1.0, 61.0)
    shares = np.stack([a, b], axis=1)[:, :, None] / (a + b)[:, None, None]
    truth = shares * (1 - np.exp(-(a + b)[:, None] * times))[:, None]
    after = times > end[:, None]
    return y, times, truth, np.where(after[:, None], shares, truth), after


def test_the_leak_detector_looks_at_the_cause():
    """A fall after C* to the share of a cause is found, and what a model says about another cause changes nothing."""
    y, times, truth, both, after = telling(3000, 2)
    falls = np.where(after, 1 - truth[:, 0, -1:], truth[:, 1])
    models = {"truth": truth, "leaking": both, "of b alone": np.stack((truth[:, 0], falls), axis=1)}
    found = {}
    for k, cause in enumerate(y.causes):
        curves = {name: ss.SurvivalCurves(1 - one[:, k], times, interpolation="step") for name, one in models.items()}
        diagnosis = ss.diagnose(y, curves, cause=cause)
        assert diagnosis.ipcw == "misleading"
        found[cause] = dict(zip(diagnosis.models["model"], diagnosis.models["verdict"], strict=True))
    for verdicts in found.values():
        assert verdicts["truth"] == "no sign"
        assert verdicts["leaking"] == "encodes C*"
    assert found["a"]["of b alone"] == "no sign"
    assert found["b"]["of b alone"] != "no sign"


@pytest.mark.parametrize("caller", ["score_terms", "StreamingScore", "calibration", "decision_curve", "diagnose"])
def test_what_has_no_multiclass_form_names_itself(caller):
    y, models, _ = draw(60, 1)
    given = {
        "score_terms": (models["one"],),
        "StreamingScore": (),
        "calibration": (models["one"], 3.0),
        "decision_curve": (models, 3.0),
        "diagnose": (models,),
    }[caller]
    with pytest.raises(
        ss.UnfitError, match=rf"^{caller} has no multi-class form \(cause='all'\): it is of one cause .*compare"
    ):
        getattr(ss, caller)(y, *given, cause="all")


OF_CAUSES = [name for name in ss.__all__ if isinstance(getattr(ss, name), FunctionType)]
OF_CAUSES = [name for name in OF_CAUSES if "cause" in signature(getattr(ss, name)).parameters]


@pytest.mark.parametrize("name", OF_CAUSES)
def test_every_function_of_a_cause_takes_the_other_spelling(name):
    assert {"report", "evaluate", "backtest", "score_terms"} <= set(OF_CAUSES)
    with pytest.raises(ss.InputError, match="cause and event_of_interest are two spellings of one argument"):
        getattr(ss, name)(None, cause=1, event_of_interest=1)


def test_auc_takes_its_controls():
    y, models, _ = draw(200, 2)
    asked = {"weighting": "administrative", "times": TIMES}
    for controls in ("not-case", "event-free"):
        found = ss.auc(y, models["one"], controls=controls, event_of_interest="a", **asked)
        (wanted,) = ss.score_all(y, models["one"], metric=ss.AUC(controls), **asked)
        np.testing.assert_array_equal(found.scores, wanted.scores)
    with pytest.raises(ss.InputError, match="controls must be one of"):
        ss.auc(y, models["one"], controls="all", **asked)


def test_terms_are_of_the_cause():
    y, models, _ = draw(50, 3)
    asked = {"weighting": "administrative", "times": TIMES}
    wanted = ss.score_terms(y.for_cause("b"), models["one"], **asked)
    for how in ({"cause": "b"}, {"event_of_interest": 2}):
        found = ss.score_terms(y, models["one"], **asked, **how)
        np.testing.assert_array_equal(found.losses, wanted.losses)


def test_a_backtest_is_of_the_cause():
    rng = np.random.default_rng(4)
    n = 400
    start = np.datetime64("2015-01-01") + rng.integers(0, 700, n)
    kind = rng.choice(["a", "b"], n)
    y = ss.Outcomes.from_dates(start, start + rng.integers(1, 1200, n), "2018-01-01", cause=kind)
    models = {name: ss.SurvivalCurves(np.full((n, 1), p), [300]) for name, p in (("one", 0.9), ("two", 0.8))}
    asked = {"as_of": "2017-01-01", "horizons": [300], "weighting": "administrative", "n_draws": 0}
    wanted = ss.backtest(y.for_cause("b"), models, **asked).table
    for how in ({"cause": "b"}, {"event_of_interest": "b"}):
        np.testing.assert_array_equal(table_of(ss.backtest(y, models, **asked, **how).table), table_of(wanted))
    with pytest.raises(ss.UnfitError, match=r"^backtest has no multi-class form \(cause='all'\)"):
        ss.backtest(y, models, **asked, cause="all")

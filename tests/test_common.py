"""Every metric under every weighting, through one registry: the oracle first, then what must never matter."""

import os
import warnings
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import survscore as ss
from combinations import every_pair, examples
from registry import (
    ASKED,
    CASES,
    FITTED,
    HISTORIES,
    LOSSES,
    METRICS,
    SEEN,
    UNFITTED,
    Case,
    fitted_problem,
    problems,
    random_problem,
)
from survscore.metrics import as_metric

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_loss = pytest.mark.parametrize("loss", LOSSES)
SCORED = (*LOSSES, "auc")  # of the other metrics, fewer: test_pooled.py
thorough = examples(12)
brief = examples(5)  # what must not matter, where the numbers themselves have been looked at


def score(case, problem, metrics=SCORED, times=None, *, errors=True):
    """Return what each metric gives: to draw a problem takes longer than to score it by all of them."""
    times = problem.times if times is None else times
    found = ss.score_all(
        problem.y, problem.curves, metric=metrics, weighting=case.weighting(problem), times=times, errors=errors
    )
    return dict(zip(metrics, found, strict=True))


@every_case
@thorough
@given(data=st.data())
def test_agrees_with_the_literal_loop(case: Case, data):
    problem = data.draw(case.problems())
    for name, got in score(case, problem).items():
        at = case.expected(name, problem)
        expected = np.array([at(t) for t in problem.times])
        np.testing.assert_allclose(got.scores, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@every_case
@thorough
@given(data=st.data())
def test_compiled_loops_agree_with_array_code(case: Case, data):
    problem, found = data.draw(case.problems()), []
    for backend in ("compiled", "numpy"):
        with ss.config.using(backend=backend):
            found.append(score(case, problem, tuple(LOSSES)))
    for name, fast in found[0].items():
        # NumPy and numba may differ in the last digit of a power, and so in many of the log loss of one close to 1
        for quantity in ("scores", "se", "n_effective", "weight_sums", "n_events"):
            plain = getattr(found[1][name], quantity)
            np.testing.assert_allclose(getattr(fast, quantity), plain, rtol=1e-10, atol=1e-12, err_msg=quantity)


@every_case
@brief
@given(data=st.data())
def test_results_do_not_depend_on_batches(case: Case, data):
    """Scores, standard errors, differences, means over time and bounds, from any batches in which predictions come."""
    problem = data.draw(case.problems(min_size=2))
    assume(problem.curves.reaches(problem.times[:1])[0])
    n, c = len(problem.y), problem.curves
    edges = [0, *sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4))), n]
    models = {"a": c, "b": ss.SurvivalCurves(c.probabilities**2, c.times, extrapolation=c.extrapolation)}
    batches = {
        name: ss.CurveBatches(lambda curves=curves: (curves[a:b] for a, b in pairwise(edges)), n=n)
        for name, curves in models.items()
    }
    asked = {"weighting": case.weighting(problem), "metric": list(LOSSES), "times": problem.times}
    asked["groups"] = np.arange(n) // 2 if data.draw(st.booleans()) else None
    tables = []
    for some in (models, batches):
        result = ss.compare(problem.y, some, **asked)
        tables.append([result.scores, result.contrasts])
        if problem.times.size > 1 and result.scores["score"].notna().all():
            tables[-1].append(result.integrated().contrasts)
    for whole, parts in zip(*tables, strict=True):
        # p-values of differences that are rounding are not compared
        columns = whole.select_dtypes("number").columns.difference(["p_value", "bound_p_value"])
        np.testing.assert_allclose(parts[columns], whole[columns], rtol=1e-12, atol=1e-12)


@every_case
@brief
@given(data=st.data())
def test_individual_terms_add_up_to_the_score(case: Case, data):
    problem = data.draw(case.problems())
    assume(problem.curves.reaches(problem.times[:1])[0])
    times = problem.times[problem.curves.reaches(problem.times)]
    weighting, wholes = case.weighting(problem), score(case, problem, tuple(LOSSES), times)
    for loss, whole in wholes.items():
        terms = ss.score_terms(problem.y, problem.curves, metric=loss, weighting=weighting, times=problem.times)
        by = whole.n_counted if case.by_n else terms.weights.sum(axis=0)
        defined = np.isfinite(whole.scores)
        np.testing.assert_array_equal(terms.times, times)
        assert terms.losses.shape == terms.weights.shape == (len(problem.y), times.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = ((terms.weights * terms.losses).sum(axis=0) / by)[defined]
        np.testing.assert_allclose(found, whole.scores[defined], rtol=1e-12, atol=1e-15, err_msg=loss)
        # the effective sample size is Kish's, of those with a weight, and never larger than their number
        weights = terms.weights[:, defined]
        scaled = weights / weights.max(axis=0, initial=0.0)
        kish, n_weighted = scaled.sum(axis=0) ** 2 / np.square(scaled).sum(axis=0), np.count_nonzero(weights, axis=0)
        np.testing.assert_allclose(whole.n_effective[defined], kish, rtol=1e-9)
        known = (whole.n_events + whole.n_event_free)[defined]
        if "projected" in case.name:  # the hidden have a weight, and no status
            assert (known <= n_weighted).all()
        else:
            np.testing.assert_array_equal(known, n_weighted)


@every_case
@thorough
@given(data=st.data())
def test_a_brier_score_lies_between_0_and_1(case: Case, data):
    problem = data.draw(case.problems())
    result = score(case, problem, ("brier",))["brier"]
    defined = ~np.isnan(result.scores)
    if not case.by_n:
        assert ((result.scores[defined] >= 0) & (result.scores[defined] <= 1 + 1e-12)).all()
    assert sum(result.undefined.values()) == (~defined).sum()


def assert_intervals_hold(table, estimate, lowest=-np.inf, highest=np.inf):
    """Every interval has its own estimate within, and no value that is impossible."""
    known = table[["lower", "upper", estimate]].notna().all(axis=1)
    lower, value, upper = (table.loc[known, name].to_numpy() for name in ("lower", estimate, "upper"))
    assert (lower <= value).all()
    assert (value <= upper).all()
    # divided by n(t), an estimate itself may be impossible
    assert (lower >= np.minimum(lowest, value)).all()
    assert (upper <= np.maximum(highest, value)).all()


def assert_all_intervals_hold(problem, metrics, weighting, groups=None):
    """Look at scores, differences and skill, at each time and as means over time."""
    worse = ss.SurvivalCurves(
        problem.curves.probabilities**2, problem.curves.times, extrapolation=problem.curves.extrapolation
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.FewGroupsWarning)
        result = ss.compare(
            problem.y, {"a": problem.curves, "b": worse}, weighting=weighting, metric=metrics, times=problem.times,
            groups=groups,
        )  # fmt: skip
    found = [result]
    with suppress(ss.InputError):  # where some time within the range has no score
        found.append(result.integrated(nan="stop"))
    for table in found:
        for metric in metrics:
            lowest, highest = metric.possible
            scores, contrasts = (one[one["metric"] == metric.name] for one in (table.scores, table.contrasts))
            assert_intervals_hold(scores, "score", lowest, highest)
            assert_intervals_hold(contrasts, "difference", lowest - highest, highest - lowest)
        if table.skill is not None:
            assert_intervals_hold(table.skill, "skill", highest=1.0)
    return result


@every_case
@examples(3)
@given(data=st.data())
def test_intervals_hold_their_estimate_and_nothing_impossible(case: Case, data):
    problem = data.draw(case.problems(min_size=2))
    assume(problem.curves.reaches(problem.times[:1])[0])
    groups = np.arange(len(problem.y)) // 2 if data.draw(st.booleans()) else None
    metrics = [as_metric(ASKED.get(name, name)) for name in UNFITTED]
    assert_all_intervals_hold(problem, metrics, case.weighting(problem), groups)


@every_case
def test_intervals_of_regressions_hold_their_estimate(case: Case):
    problem = fitted_problem(case.data, 3)
    found = assert_all_intervals_hold(problem, [as_metric(name) for name in FITTED], case.weighting(problem))
    assert found.scores.groupby("metric")["lower"].count()[["slope", "in_the_large", "miscalibration"]].all()


@pytest.mark.parametrize("case", SEEN, ids=lambda case: case.name)
@examples(2)
@given(data=st.data())
def test_intervals_of_follow_up_hold_their_estimate(case, data):
    problem = data.draw(case.problems(min_size=2))
    assume(problem.curves.interpolation != "constant-hazard")  # which CRPS refuses
    assume(problem.curves.reaches(problem.times[:1])[0])
    metrics = [made(problem) for made, _ in HISTORIES.values()]
    assert_all_intervals_hold(problem, metrics, case.weighting(problem))


@every_loss
@thorough
@given(data=st.data())
def test_cap_1_is_the_score_without_the_censored(loss, data):
    problem = data.draw(problems("administrative"))
    results = [
        LOSSES[loss](problem.y, problem.curves, weighting=w, times=problem.times).scores
        for w in (ss.IPCW("known"), ss.IPCW(max_weight=1), ss.IPCW(problem.censoring, max_weight=1))
    ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12, atol=1e-15)
    if problem.censoring.extrapolation == "hold":
        np.testing.assert_allclose(results[2], results[0], rtol=1e-12, atol=1e-15)


@thorough
@given(problem=problems())
def test_kaplan_meier_weights_sum_to_n(problem):
    result = ss.brier_score(problem.y, problem.curves, weighting="ipcw", times=problem.times)
    defined = ~np.isnan(result.scores)
    np.testing.assert_allclose(result.weight_sums[defined], len(problem.y), rtol=1e-12)


@every_pair(dtype=["float32", "float64"], same_grid=[True, False], lost=[True, False], causes=[False, True])
def test_large_input_takes_the_compiled_way_and_agrees(dtype, same_grid, lost, causes):
    # two blocks of rows
    problem = random_problem(10_000, 20, dtype=dtype, same_grid=same_grid, lost=lost, causes=causes)
    accepted = ("any", "drop-outs", "lost") if lost else ("any", "drop-outs", "administrative")
    weightings = [case.weighting(problem) for case in CASES if case.data in accepted and (case.of_causes or not causes)]
    results = []
    for backend in ("compiled", "numpy"):
        with ss.config.using(backend=backend):
            results.append(
                ss.score_all(problem.y, problem.curves, weighting=weightings, times=problem.times, errors=False)
            )
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12, err_msg=a.weighting)
        np.testing.assert_allclose(a.n_effective, b.n_effective, rtol=1e-9, err_msg=a.weighting)
        np.testing.assert_array_equal(a.n_events, b.n_events)


@pytest.mark.parametrize("types", [(np.float32, np.float64), (np.float64, np.float32)], ids=["float32", "float64"])
def test_predictions_and_curves_of_censoring_may_have_different_types(types):
    of_predictions, of_censoring = types
    problem = random_problem(300, 20, dtype=of_predictions)
    values = problem.censoring.probabilities.astype(np.float32)  # the same numbers in either type
    censoring = ss.SurvivalCurves(
        values.astype(of_censoring), problem.censoring.times, interpolation="step", extrapolation="hold"
    )
    found = {}
    for backend in ("compiled", "numpy"):
        with ss.config.using(backend=backend):
            found[backend] = ss.brier_score(
                problem.y, problem.curves, weighting=ss.IPCW(censoring), times=problem.times
            )
    np.testing.assert_allclose(found["compiled"].scores, found["numpy"].scores, rtol=1e-12)
    np.testing.assert_allclose(found["compiled"].se, found["numpy"].se, rtol=1e-9)


def test_the_compiled_logarithm_is_accurate_to_the_last_digits():
    from survscore._utils.kernels import compiled
    from survscore.engine import kernels

    losses = kernels._losses

    @compiled
    def losses_of(values):
        losses(kernels.LOG, 2.0**-53, values, True)

    values = np.concatenate([np.logspace(-16, 0, 20_001)[:-1], 1 - np.logspace(-15, -1, 5_001), [0.5, np.sqrt(0.5)]])
    expected = -np.log(np.clip(values, 2.0**-53, 1 - 2.0**-53))
    losses_of(values)
    np.testing.assert_allclose(values, expected, rtol=1e-15)


def test_one_pass_gives_the_same_as_many():
    problem = random_problem(500, 6)
    weightings = [case.weighting(problem) for case in CASES if case.data not in ("uncensored", "lost")]
    asked = [ASKED.get(name, name) for name in METRICS]
    together = ss.score_all(problem.y, problem.curves, metric=asked, weighting=weightings, times=problem.times[1:])
    # every metric and every weighting, but not every pair of them
    assert len(weightings) > len(METRICS)
    names = list(METRICS)
    for q, weighting in enumerate(weightings):
        place = q % len(names)
        a = together[place * len(weightings) + q]
        b = METRICS[names[place]](problem.y, problem.curves, weighting=weighting, times=problem.times[1:])
        assert a.metric == b.metric
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-13)
        np.testing.assert_allclose(a.se, b.se, rtol=1e-12)


def test_the_number_of_cores_does_not_matter(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    problem = random_problem(20_000, 40, dtype=np.float32, lost=True)  # four blocks of rows
    weightings = ["administrative", "ipcw", ss.IPCW(strata=np.arange(20_000) % 3)]
    results = []
    for cores in (1, 2, 7):
        with warnings.catch_warnings(), ss.config.using(threads=cores, backend="compiled"):
            warnings.simplefilter("ignore")
            scores = ss.score_all(problem.y, problem.curves, weighting=weightings, times=problem.times)
        results.append(np.array([[score.scores, score.se] for score in scores]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10)
    np.testing.assert_allclose(results[0], results[2], rtol=1e-10)


def test_the_number_of_threads_can_be_limited(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    assert ss.config.n_cores() == 8
    for limit, expected in (("3", 3), ("12", 8), ("0", 8), ("many", 8)):
        monkeypatch.setenv("NUMBA_NUM_THREADS", limit)
        assert ss.config.n_cores() == expected
        with ss.config.using(threads=2):
            assert ss.config.n_cores() == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "cuda"}, "config.backend must be one of 'auto', 'numpy', 'compiled', 'torch', not 'cuda'"),
        ({"threads": 0}, "config.threads must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_settings_are_named_and_change_nothing(settings, message):
    with pytest.raises(ss.InputError, match=message), ss.config.using(**settings):
        pass
    assert (ss.config.backend, ss.config.threads) == ("auto", None)
    with pytest.raises(AttributeError, match="no setting 'speed'"):
        ss.config.speed = 11


@every_loss
@thorough
@given(data=st.data())
def test_without_censoring_all_weightings_agree(loss, data):
    problem = data.draw(problems("uncensored"))
    everybody = ss.Outcomes(problem.y.time, np.ones(len(problem.y)), np.full(len(problem.y), 7.0))
    expected = LOSSES[loss](everybody, problem.curves, times=problem.times).scores  # no weighting needed
    for weighting in ("uncensored", "administrative", "projected", "ipcw", ss.IPCW("known"), ss.IPCW(max_weight=1)):
        got = LOSSES[loss](everybody, problem.curves, weighting=weighting, times=problem.times).scores
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)

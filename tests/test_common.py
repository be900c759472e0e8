"""Every loss under every weighting, through one registry: the oracle first, then what must never matter."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import survscore as ss
from registry import CASES, LOSSES, Case, problems, random_problem
from survscore import _loops
from survscore.losses import as_loss
from survscore.weighting import TimeIndex, as_weighting

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_loss = pytest.mark.parametrize("loss", LOSSES)
thorough = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def score(loss, case, problem, **changes):
    curves, times = changes.get("curves", problem.curves), changes.get("times", problem.times)
    return LOSSES[loss](problem.y, curves, weighting=case.weighting(problem), times=times)


@every_case
@every_loss
@thorough
@given(data=st.data())
def test_agrees_with_the_literal_loop(case: Case, loss, data):
    problem = data.draw(problems(case.data))
    got = score(loss, case, problem).scores
    at = case.expected(loss, problem)
    expected = np.array([at(t) for t in problem.times])
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@every_case
@thorough
@given(data=st.data())
def test_compiled_loops_agree_with_numpy(case: Case, data):
    problem = data.draw(problems(case.data))
    times = problem.times[problem.curves.reaches(problem.times)]
    assume(times.size > 0)
    weights = [as_weighting(case.weighting(problem), problem.y).prepare(TimeIndex(problem.y, times))]
    losses = [as_loss(name) for name in LOSSES]
    plain = _loops.weighted_sums(problem.curves, times, losses, weights, compiled=False)
    fast = _loops.weighted_sums(problem.curves, times, losses, weights, compiled=True)
    for a, b in zip(plain, fast, strict=True):
        finite = np.isfinite(a) & np.isfinite(b)
        np.testing.assert_allclose(b[finite], a[finite], rtol=1e-12, atol=1e-12)
    # where one has no finite sum, the other has none or its score is undefined for another reason
    undefined = ~np.isfinite(plain[1]) | ~np.isfinite(fast[1])
    if weights[0].free_weight is not None:
        undefined &= np.isfinite(weights[0].free_weight)
    assert not (np.isfinite(plain[1]) & undefined).any() or not np.isfinite(fast[1][undefined]).any()


@every_case
@every_loss
@thorough
@given(data=st.data())
def test_order_of_individuals_does_not_matter(case: Case, loss, data):
    problem = data.draw(problems(case.data, min_size=2))
    order = np.array(data.draw(st.permutations(range(len(problem.y)))))
    a, b = score(loss, case, problem), score(loss, case, problem.take(order))
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(a.n_effective, b.n_effective, rtol=1e-9)


@every_case
@every_loss
@thorough
@given(data=st.data())
def test_everybody_twice_gives_the_same_score(case: Case, loss, data):
    problem = data.draw(problems(case.data))
    twice = problem.take(np.repeat(np.arange(len(problem.y)), 2))
    a, b = score(loss, case, problem), score(loss, case, twice)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12, atol=1e-15)


@every_case
@every_loss
@thorough
@given(data=st.data())
def test_each_time_is_scored_for_itself(case: Case, loss, data):
    problem = data.draw(problems(case.data))
    whole = score(loss, case, problem).scores
    single = [score(loss, case, problem, times=[t]).scores[0] for t in problem.times]
    np.testing.assert_allclose(whole, single, rtol=1e-12, atol=1e-15)


@every_case
@every_loss
@thorough
@given(data=st.data())
def test_individual_terms_add_up_to_the_score(case: Case, loss, data):
    problem = data.draw(problems(case.data))
    assume(problem.curves.reaches(problem.times[:1])[0])
    weighting = case.weighting(problem)
    terms = LOSSES[loss](problem.y, problem.curves, weighting=weighting, times=problem.times, reduce=False)
    whole = score(loss, case, problem, times=terms.times)
    by = len(problem.y) if getattr(weighting, "normalize", "") == "n" else terms.weights.sum(axis=0)
    defined = np.isfinite(whole.scores)
    assert terms.losses.shape == terms.weights.shape == (len(problem.y), terms.times.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.testing.assert_allclose(
            ((terms.weights * terms.losses).sum(axis=0) / by)[defined], whole.scores[defined], rtol=1e-12, atol=1e-15
        )


@every_case
@thorough
@given(data=st.data())
def test_a_brier_score_lies_between_0_and_1(case: Case, data):
    problem = data.draw(problems(case.data))
    result = score("brier", case, problem)
    defined = ~np.isnan(result.scores)
    if getattr(case.weighting(problem), "normalize", "weights") == "weights":
        assert ((result.scores[defined] >= 0) & (result.scores[defined] <= 1 + 1e-12)).all()
    assert (result.n_effective[defined] <= len(problem.y) + 1e-9).all()
    assert sum(result.undefined.values()) == (~defined).sum()


@every_loss
@thorough
@given(data=st.data())
def test_without_censoring_all_weightings_agree(loss, data):
    problem = data.draw(problems("uncensored"))
    everybody = ss.Outcomes(problem.y.time, np.ones(len(problem.y)), np.full(len(problem.y), 7.0))
    expected = LOSSES[loss](everybody, problem.curves, times=problem.times).scores  # no weighting needed
    for weighting in ("uncensored", "administrative", "ipcw", ss.IPCW("known"), ss.IPCW(max_weight=1)):
        got = LOSSES[loss](everybody, problem.curves, weighting=weighting, times=problem.times).scores
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)


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
    if problem.censoring.beyond == "hold":
        np.testing.assert_allclose(results[2], results[0], rtol=1e-12, atol=1e-15)


@thorough
@given(problem=problems())
def test_kaplan_meier_weights_sum_to_n(problem):
    result = ss.brier_score(problem.y, problem.curves, weighting="ipcw", times=problem.times)
    defined = ~np.isnan(result.scores)
    np.testing.assert_allclose(result.weight_sums[defined], len(problem.y), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("same_grid", [True, False])
def test_large_input_takes_the_compiled_way_and_agrees(dtype, same_grid, monkeypatch):
    problem = random_problem(30_000, 150, dtype=dtype, same_grid=same_grid)
    weightings = [case.weighting(problem) for case in CASES if case.data != "uncensored"]
    monkeypatch.setattr(_loops, "LARGE_MATRIX", 1)
    monkeypatch.setattr(_loops, "LARGE_VECTOR", 1)
    fast = ss.score_all(problem.y, problem.curves, weightings=weightings, times=problem.times)
    for name in ("LARGE_MATRIX", "LARGE_VECTOR", "SMALL_MATRIX", "SMALL_VECTOR"):
        monkeypatch.setattr(_loops, name, np.inf)
    plain = ss.score_all(problem.y, problem.curves, weightings=weightings, times=problem.times)
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-12, err_msg=a.weighting)
        np.testing.assert_allclose(a.n_effective, b.n_effective, rtol=1e-9, err_msg=a.weighting)


def test_the_compiled_logarithm_is_accurate_to_the_last_digits():
    from survscore import _kernels

    values = np.concatenate([np.logspace(-16, 0, 20_001)[:-1], 1 - np.logspace(-15, -1, 5_001), [0.5, np.sqrt(0.5)]])
    out = np.empty(values.size)
    _kernels.row_losses(_kernels.LOG, 2.0**-53, values, 0, values.size, values.size, out)
    np.testing.assert_allclose(out, -np.log(np.clip(values, 2.0**-53, 1 - 2.0**-53)), rtol=1e-15)


def test_one_pass_gives_the_same_as_many():
    problem = random_problem(500, 20)
    weightings = [case.weighting(problem) for case in CASES if case.data != "uncensored"]
    together = ss.score_all(problem.y, problem.curves, weightings=weightings, times=problem.times)
    apart = [
        LOSSES[loss](problem.y, problem.curves, weighting=w, times=problem.times) for loss in LOSSES for w in weightings
    ]
    for a, b in zip(together, apart, strict=True):
        assert (a.loss, a.weighting) == (b.loss, b.weighting)
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-13)


def test_the_number_of_cores_does_not_change_a_bit(monkeypatch):
    problem = random_problem(50_000, 150, dtype=np.float32)
    results = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(_loops, "n_cores", lambda cores=cores: cores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = ss.score_all(problem.y, problem.curves, weightings=["administrative", "ipcw"], times=problem.times)
        results.append(np.array([[score.scores, score.se] for score in scores]))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_the_number_of_threads_can_be_limited(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    assert _loops.n_cores() == 8
    for limit, expected in (("3", 3), ("12", 8), ("0", 8), ("many", 8)):
        monkeypatch.setenv("NUMBA_NUM_THREADS", limit)
        assert _loops.n_cores() == expected

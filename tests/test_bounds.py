"""Bounds that assume nothing about the lost: against every outcome they could have had."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import survscore as ss
from combinations import examples, nightly_but
from registry import problems, random_problem
from survscore.engine import bounds
from survscore.engine.bounds import smallest_ratio, z_of_ratio
from survscore.inference.intervals import student_p

pytestmark = pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")


def compared(problem, metric="brier", **settings):
    other = ss.SurvivalCurves(
        problem.curves.probabilities**2,
        problem.curves.times,
        interpolation=problem.curves.interpolation,
        extrapolation=problem.curves.extrapolation,
    )
    models = {"a": problem.curves, "b": other}
    result = ss.compare(
        problem.y, models, weighting="administrative", metric=metric, times=problem.times, null=False, **settings
    )
    return result, [
        type(problem)(problem.y, one, one, problem.training, problem.times) for one in (problem.curves, other)
    ]


@pytest.mark.parametrize("metric", ["brier", "log"])
@examples(20)
@given(data=st.data())
def test_at_each_time_they_are_those_of_all_that_can_have_happened(metric, data):
    problem = data.draw(problems("lost", min_size=2, max_size=10))
    assume(problem.curves.reaches(problem.times).all())
    result, models = compared(problem, metric)
    y = problem.y
    for name, weigh in (("a", [1.0, 0.0]), ("b", [0.0, 1.0]), ("difference", [-1.0, 1.0])):
        table = result.contrasts if name == "difference" else result.scores.query("model == @name")
        for row, t in zip(table.to_dict("records"), problem.times, strict=True):
            if np.isnan(row["bound_lower"]):
                continue
            expected = oracle.bounds(
                metric, y.time, y.event, y.censoring_time, t, [model.pi(t) for model in models], weigh
            )
            np.testing.assert_allclose([row["bound_lower"], row["bound_upper"]], expected, rtol=1e-11, atol=1e-12)


def all_histories(y, times):
    """Yield outcomes in which the lost have had their event at one of the times, or none: all that scores can see."""
    lost = np.flatnonzero(y.dropped_out)
    choices = [[*(t for t in times if y.time[i] < t <= y.censoring_time[i]), None] for i in lost]
    for history in product(*choices):
        time, event = y.time.copy(), y.event.copy()
        for i, star in zip(lost, history, strict=True):
            time[i], event[i] = (y.censoring_time[i], False) if star is None else (star, True)
        yield ss.Outcomes(time, event, y.censoring_time)


@pytest.mark.parametrize("seed", nightly_but([0], range(3)))
def test_over_a_range_they_are_those_of_all_histories(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, grid = 40, np.arange(1.0, 9.0)
    star, end = rng.exponential(8, n).round(1), rng.uniform(2, 9, n).round(1)
    time, event = np.minimum(star, end), star <= end
    gone = rng.choice(n, 4, replace=False)
    time[gone], event[gone] = (time[gone] * 0.4).round(1), False
    y = ss.Outcomes(time, event, end)
    pi = np.exp(-grid / rng.uniform(2, 15, (n, 1)))
    models = {"a": ss.SurvivalCurves(pi, grid), "b": ss.SurvivalCurves(pi**1.7, grid)}
    settings = {"weighting": "administrative", "times": grid, "null": False}
    histories = [ss.compare(full, models, **settings) for full in all_histories(y, grid)]
    for limits in ((None, None), (1.5, 6.2)):
        integrated = [one.integrated(*limits) for one in histories]
        # whether the few losses of the lost are kept for later, or the range was asked for when scoring
        for most_kept in (bounds.KEPT, 0):
            monkeypatch.setattr(bounds, "KEPT", most_kept)
            got = ss.compare(y, models, **settings, ranges=[limits]).integrated(*limits)
            monkeypatch.undo()
            for table, column in (("scores", "score"), ("contrasts", "difference")):
                values = np.array([getattr(one, table)[column] for one in integrated])
                rows = getattr(got, table)
                np.testing.assert_allclose(rows["bound_lower"], values.min(axis=0), rtol=1e-10)
                np.testing.assert_allclose(rows["bound_upper"], values.max(axis=0), rtol=1e-10)


def test_a_range_that_was_not_asked_for_has_wider_bounds(monkeypatch):
    problem = random_problem(300, 20, lost=True)
    settings = {"weighting": "administrative", "times": problem.times[:15]}
    sharp = ss.brier_score(problem.y, problem.curves, **settings).integrated(5, 40).bounds
    monkeypatch.setattr(bounds, "KEPT", 0)
    wide = ss.brier_score(problem.y, problem.curves, **settings).integrated(5, 40).bounds
    assert wide[0] <= sharp[0] < sharp[1] <= wide[1]


@pytest.mark.parametrize("seed", range(20))
def test_they_hold_the_truth(seed):
    """Whoever is lost, and however it depends on the event: the score without the loss lies within, always."""
    rng = np.random.default_rng(seed)
    n, grid = 200, np.arange(1.0, 11.0)
    rate = rng.gamma(2, 0.06, n)
    star, end = rng.exponential(1 / rate), rng.uniform(2, 11, n)
    full = ss.Outcomes(np.minimum(star, end), star <= end, end)
    informative = np.where(rng.random(n) < 0.3, star * rng.uniform(0.2, 1.2, n), np.inf)
    y = ss.Outcomes(np.minimum(full.time, informative), full.event & (full.time <= informative), end)
    models = {"a": ss.SurvivalCurves(np.exp(-rate[:, None] * grid), grid)}
    models["b"] = ss.SurvivalCurves(models["a"].probabilities ** 1.5, grid)
    for weighting in (ss.Administrative(), ss.Administrative(population="fixed"), ss.Administrative(max_weight=1.5)):
        for metric in ("brier", "log"):
            truth, got = (
                ss.compare(outcomes, models, weighting=weighting, metric=metric, times=grid[:8], null=False)
                for outcomes in (full, y)
            )
            for a, b in ((truth, got), (truth.integrated(1, 7.5), got.integrated(1, 7.5))):
                for table, column in (("scores", "score"), ("contrasts", "difference")):
                    true, rows = getattr(a, table)[column], getattr(b, table)
                    assert (rows["bound_lower"] <= true + 1e-12).all()
                    assert (rows["bound_upper"] >= true - 1e-12).all()
                    assert rows["bound_lower"].lt(rows["bound_upper"]).any()


def test_without_anybody_lost_there_are_none():
    problem = random_problem(50, 10)
    score = ss.brier_score(problem.y, problem.curves, weighting="administrative", times=problem.times)
    assert score.bounds is None
    assert score.integrated(1, 50).bounds is None
    assert "bound_lower" not in score.to_frame()


# Whether a difference stays significant


def z_of(v):
    """Of each row, had nobody been lost."""
    return v.mean(axis=1) / (v.std(ddof=1, axis=1) / np.sqrt(v.shape[1]))


def completions(known, low, high, chosen):
    """Rows of v, with `high` where it is chosen."""
    lost = np.where(chosen, high, low)
    return np.concatenate([np.broadcast_to(known, (len(lost), known.size)), lost], axis=1)


def three_z(known, low, high):
    """The one found, the smallest of all completions, and the smallest at a corner."""
    bound, squares = np.array([known.sum() + low.sum()]), np.array([np.sum(known**2)])
    ratio = smallest_ratio(bound, squares, low[:, None], high[:, None])
    (found,) = z_of_ratio(ratio, np.array([known.size + low.size]), centred=True)
    every = np.array(list(product([False, True], repeat=low.size)))
    corners = np.argsort(np.argsort(-(low + high))) < np.arange(low.size + 1)[:, None]
    return found, *(z_of(completions(known, low, high, chosen)).min() for chosen in (every, corners))


def test_the_smallest_z_is_that_of_all_completions():
    """At a corner it is exactly theirs; elsewhere it lies inside an edge, and below all of them."""
    rng = np.random.default_rng(2)
    exact = inside = 0
    while exact + inside < 300:
        n_lost = rng.integers(1, 12)
        known = rng.normal(rng.uniform(0.3, 3), rng.uniform(0.1, 1), rng.integers(3, 40))
        low = rng.uniform(-1, 1, n_lost) * rng.choice([0.1, 1, 3])
        high = low + rng.exponential(rng.choice([0.5, 2, 5]), n_lost)
        if known.sum() + low.sum() <= 0:
            continue
        found, worst, corner = three_z(known, low, high)
        if found == pytest.approx(corner, rel=1e-9):
            exact += 1
            assert found == pytest.approx(worst, rel=1e-9)
        else:
            inside += 1
            assert found < worst
    assert min(exact, inside) > 20


def two_models(seed, n=80, n_lost=6, n_times=3):
    rng = np.random.default_rng(seed)
    grid = np.arange(1.0, n_times + 1)
    rate = rng.gamma(2, 0.12, n)
    star, end = rng.exponential(1 / rate), rng.uniform(1.5, n_times + 2, n)
    time, event = np.minimum(star, end), star <= end
    gone = rng.choice(np.flatnonzero(time > 0.4), n_lost, replace=False)
    time[gone], event[gone] = 0.6 * time[gone], False
    y = ss.Outcomes(time, event, end)
    survival = np.exp(-rate[:, None] * grid)
    return y, {"a": ss.SurvivalCurves(survival, grid), "b": ss.SurvivalCurves(survival**3, grid)}, grid


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_p_values_are_those_of_data_in_which_nobody_was_lost(backend, grouped):
    """The largest p of all completions: at each time exactly, of groups and means a little larger."""
    y, models, grid = two_models(4, n_lost=4, n_times=2)
    groups = np.arange(len(y)) // 2 if grouped else None
    settings = {"weighting": "administrative", "times": grid, "null": False, "groups": groups}
    with ss.config.using(backend=backend):
        result = ss.compare(y, models, **settings)
    full = [ss.compare(one, models, **settings) for one in all_histories(y, grid)]
    for of_whole, tables in ((False, (result, *full)), (True, (one.integrated() for one in (result, *full)))):
        found, *completed = [one.contrasts for one in tables]
        z = np.min([np.abs(one["difference"] / one["se"]) for one in completed], axis=0)
        support = result.scored[0].support.mean(np.ones(2) / 2) if of_whole else result.scored[0].support
        expected = student_p(z, support.difference_degrees)
        if not grouped and not of_whole:
            np.testing.assert_allclose(found["bound_p_value"], expected, rtol=1e-9)
        ratio = found["bound_p_value"] / expected
        assert ((ratio > 1 - 1e-9) & (ratio < 1.6)).all(), ratio


def test_where_the_sign_may_change_p_is_one_and_beside_it_what_was_computed():
    y, models, grid = two_models(5, n_lost=40)
    contrasts = ss.compare(y, models, weighting="administrative", times=grid, null=False).contrasts
    open_sign = contrasts["bound_lower"] * contrasts["bound_upper"] <= 0
    assert open_sign.any()
    assert (contrasts.loc[open_sign, "bound_p_value"] == 1).all()
    assert "bound_p_value" not in ss.compare(y, models, weighting="administrative", times=grid).scores
    assert "bound_p_value" not in ss.compare(y, models, weighting="ipcw", times=grid, null=False).contrasts

"""Intervals and verdicts where there is little: few groups, few events, nearly equal models, degenerate data."""

import warnings

import numpy as np
import pytest
from scipy import stats

import survscore as ss
from survscore.inference.intervals import fisher_quantile, student_p, student_quantile
from survscore.inference.support import FEW_FOR_DIFFERENCE, FEW_FOR_SCORE
from survscore.inference.units import Groups, Units

TIMES = np.array([1.0, 2.0, 4.0])


def draw(seed, n=400, rate=0.2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    own = rate * np.exp(0.7 * x)
    event_time, end = rng.exponential(1 / own), rng.uniform(2, 8, n)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    truth = np.exp(-own[:, None] * TIMES)
    return y, truth, np.exp(-rate * TIMES) * np.ones_like(truth), rng


def two(truth, other):
    return {"first": ss.SurvivalCurves(truth, TIMES), "second": ss.SurvivalCurves(other, TIMES)}


# Groups


@pytest.mark.parametrize("sizes", [[5, 5, 5, 5], [1, 2, 30], [100, 1, 1, 1, 1], [7, 3]])
def test_degrees_of_freedom_are_those_of_the_quadratic_form(sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    y = ss.Outcomes(np.ones(codes.size), np.ones(codes.size))
    units = Units.of(np.broadcast_to(np.int32(1), len(y)), Groups.of(codes, codes.size), 1)
    share = np.array(sizes) / codes.size
    centred = np.eye(len(sizes)) - share
    form = centred.T @ np.diag(share**2) @ centred
    assert units.degrees[0] == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))
    assert units.counted[0] == len(sizes)
    assert units.largest_share[0] == max(share)


def test_few_groups_are_told_and_allowed_for():
    y, truth, other, rng = draw(1)
    groups = rng.integers(0, 8, len(y))
    with pytest.warns(ss.FewGroupsWarning, match=r"come from 8 groups at some times, the largest with \d+% of"):
        result = ss.compare(y, two(truth, other), weighting="administrative", times=TIMES, groups=groups)
    scores, row = result.scores, result.contrasts.iloc[0]
    assert (scores["n_groups"] == 8).all()
    assert scores["largest_share"].between(1 / 8, 0.3).all()
    degrees = result.scored[0].support.units.degrees[0]
    assert degrees < 7
    assert row["upper"] - row["difference"] == pytest.approx(stats.t.ppf(0.975, degrees) * row["se"])
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["difference"] / row["se"]), degrees))


def test_uneven_groups_are_told():
    y, truth, _, rng = draw(1)
    groups = np.where(rng.random(len(y)) < 0.6, -1, np.arange(len(y)))
    with pytest.warns(ss.FewGroupsWarning, match="few of the .* groups hold most of the individuals"):
        score = ss.brier_score(
            y, ss.SurvivalCurves(truth, TIMES), weighting="administrative", times=TIMES, groups=groups
        )
    assert not score.reliable.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.brier_score(
            y, ss.SurvivalCurves(truth, TIMES), weighting="administrative", times=TIMES, groups=np.arange(len(y)) // 2
        )


def test_one_group_has_no_interval():
    y, truth, other, _ = draw(1)
    result = ss.compare(y, two(truth, other), weighting="administrative", times=TIMES, groups=np.zeros(len(y)))
    assert np.isnan(result.contrasts[["lower", "upper", "p_value"]]).all(axis=None)
    assert (result.contrasts["verdict"] == "unknown").all()
    assert not result.scores["reliable"].any()


# Nearly equal models


@pytest.mark.parametrize("metric", ["brier", "log", "auc"])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_is_no_difference(metric, seed):
    y, truth, _, _ = draw(seed, n=2000)
    models, weighting = two(truth, truth.astype(np.float32)), ["administrative", "ipcw"]
    result = ss.compare(y, models, metric=metric, weighting=weighting, times=TIMES, null=False)
    for table in (result.contrasts, result.integrated().contrasts):
        assert (table["p_value"] >= 0.5).all()
        assert (table["verdict"] == "undecided").all()


def test_a_systematic_rounding_error_is_no_difference():
    """Without the least standard error, its interval would be far from zero."""
    y, truth, _, _ = draw(0, n=2000)
    models = two(0.5 * truth, 0.5 * truth * (1 - 2e-8))
    result = ss.compare(y, models, weighting="administrative", times=TIMES, null=False)
    row = result.contrasts.iloc[-1]
    assert abs(row["difference"]) > 1.96 * row["se"]
    assert row["p_value"] >= 0.5
    assert row["verdict"] == "undecided"


# Few events


def test_results_say_on_how_many_they_rest():
    y, truth, other, _ = draw(3, n=60)
    curve = ss.brier_score(y, ss.SurvivalCurves(truth, TIMES), weighting="administrative", times=TIMES)
    end = y.censoring_time
    for j, t in enumerate(TIMES):
        assert curve.n_counted[j] == (end >= t).sum()
        assert curve.n_events[j] == ((end >= t) & y.event & (y.time <= t)).sum()
        assert curve.n_event_free[j] == curve.n_counted[j] - curve.n_events[j]
    rarer = np.minimum(curve.n_events, curve.n_event_free)
    np.testing.assert_array_equal(curve.reliable, rarer >= FEW_FOR_SCORE)
    contrasts = ss.compare(y, two(truth, other), weighting="administrative", times=TIMES, null=False).contrasts
    np.testing.assert_array_equal(contrasts["reliable"], rarer >= FEW_FOR_DIFFERENCE)
    degrees = np.minimum(curve.n_counted - 1, np.maximum(rarer - 1, 1))
    half = stats.t.ppf(0.975, degrees) * contrasts["se"]
    np.testing.assert_allclose(contrasts["upper"] - contrasts["difference"], half)


# Degenerate data


@pytest.mark.parametrize("metric", ["brier", "log"])
def test_no_events_give_no_interval_of_width_zero(metric):
    n = 50
    y = ss.Outcomes(np.full(n, 5.0), np.zeros(n), np.full(n, 5.0))
    models = two(np.full((n, 3), 1.0), np.full((n, 3), 0.9))
    result = ss.compare(y, models, metric=metric, weighting="administrative", times=TIMES, null=False)
    for table in (result.scores, result.contrasts):
        assert not (table["lower"] == table["upper"]).any()
        assert not table["reliable"].any()
    assert (result.contrasts["verdict"] == "unknown").all()


def test_perfect_separation():
    y, _, _, _ = draw(5)
    t = TIMES[1]
    had_event = y.event & (y.time <= t)
    perfect = ss.SurvivalCurves(np.where(had_event, 0.1, 0.9)[:, None], [t])
    auc = ss.auc(y, perfect, weighting="administrative", times=[t])
    assert auc.scores[0] == 1
    k = min(auc.n_events[0], auc.n_event_free[0])
    assert (auc.lower[0], auc.upper[0]) == (pytest.approx(0.025 ** (1 / k)), 1)
    wrong = ss.SurvivalCurves(np.where(had_event, 0.9, 0.1)[:, None], [t])
    auc = ss.auc(y, wrong, weighting="administrative", times=[t])
    assert (auc.lower[0], auc.upper[0]) == (0, pytest.approx(1 - 0.025 ** (1 / k)))


def test_limits_of_an_auc_stay_within_zero_and_one():
    y, truth, _, _ = draw(6, n=80, rate=0.05)
    auc = ss.auc(y, ss.SurvivalCurves(truth, TIMES), weighting="administrative", times=TIMES)
    assert (auc.lower > 0).all()
    assert (auc.upper < 1).all()
    logit = [np.log(values / (1 - values)) for values in (auc.lower, auc.scores, auc.upper)]
    np.testing.assert_allclose(logit[2] - logit[1], logit[1] - logit[0], rtol=1e-9)


def test_huge_weights_raise_no_warning():
    y, truth, other, _ = draw(7)
    tiny = ss.IPCW(lambda t: np.where(np.asarray(t) < 3, 1.0, 1e-160))
    result = ss.compare(y, two(truth, other), weighting=tiny, times=TIMES, null=False)
    assert np.isfinite(result.scores["score"]).all()


# The null model


@pytest.mark.parametrize("weighting", ["administrative", "ipcw", ss.Administrative(population="fixed")], ids=str)
def test_the_share_of_those_counted_is_the_best_constant(weighting):
    y, truth, other, _ = draw(8)
    result = ss.compare(y, two(truth, other), weighting=weighting, times=TIMES, null="counted")
    assert result.models[-1] == result.null == "share of those counted"
    null = result.scores[result.scores["model"] == result.null]["score"].to_numpy()
    terms = ss.score_terms(y, ss.SurvivalCurves(truth, TIMES), weighting=weighting, times=TIMES)
    event_free = ~(y.event[:, None] & (y.time[:, None] <= TIMES))
    share = (terms.weights * event_free).sum(axis=0) / terms.weights.sum(axis=0)
    np.testing.assert_allclose(null, share * (1 - share), rtol=1e-10)
    for around in (0.99, 1.01):
        constant = ss.SurvivalCurves(np.tile(share * around, (len(y), 1)), TIMES, monotone="keep")
        assert (ss.brier_score(y, constant, weighting=weighting, times=TIMES).scores > null).all()
    skill = result.skill[result.skill["model"] == "first"]["skill"]
    scores = result.scores[result.scores["model"] == "first"]["score"].to_numpy()
    np.testing.assert_allclose(skill, 1 - scores / null)


def test_null_models_are_named_and_refused():
    y, truth, other, _ = draw(8)
    with pytest.raises(ss.InputError, match="null must be one of 'counted', not 'everybody'"):
        ss.compare(y, two(truth, other), weighting="administrative", null="everybody")
    models = {"share of those counted": ss.SurvivalCurves(truth, TIMES)}
    with pytest.raises(ss.InputError, match="must not be called 'share of those counted'"):
        ss.compare(y, models, weighting="administrative", null="counted")


# The size of tests


def test_nothing_is_known_without_degrees_of_freedom():
    assert np.isnan(student_quantile(0.95, [0, -1, np.nan])).all()
    assert np.isnan(student_p([1, 1, np.nan], [0, np.nan, 5])).all()
    assert student_p(np.inf, 3) == 0
    assert np.isnan(fisher_quantile(0.95, 3, 0))
    with pytest.raises(ss.InputError, match="level"):
        student_quantile(1.5, 3)

"""Calibration at one horizon: against literal versions, complex derivatives, scikit-learn, and simulation."""

import math
import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import survscore as ss
from registry import CASES, Problem, with_causes
from survscore.inference.logistic import expit, logistic_fit, restricted_cubic_spline

TIMES = np.array([2.0, 5.0, 8.0])
STEP = 1e-30
T = 5.0


def problem(seed=0, n=300, *, lost=False):
    """Individuals with right predictions at `TIMES`; C* does not tell the risk."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2, 0.06, n)
    star, end = rng.exponential(1 / rate), rng.uniform(1, 12, n)
    dropping = rng.exponential(15, n) if lost else np.full(n, np.inf)
    survival = np.exp(-rate[:, None] * TIMES)
    y = ss.Outcomes(np.minimum(np.minimum(star, end), dropping), (star <= end) & (star <= dropping), end)
    return y, ss.SurvivalCurves(survival, TIMES)


def logit(p):
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return np.log(p / (1 - p))


# The numbers themselves


def by_optimizer(design, event, weight, offset=0.0):
    """The coefficients of a weighted logistic regression, by a general optimizer."""

    def cost(beta):
        eta = offset + design @ beta
        return weight @ (np.logaddexp(0, eta) - event * eta)

    def slope(beta):
        return design.T @ (weight * (expit(offset + design @ beta) - event))

    found = optimize.minimize(cost, np.zeros(design.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9})
    return found.x


@pytest.mark.parametrize("weighting", ["administrative", "ipcw"])
def test_numbers_are_the_literal_ones(weighting):
    y, curves = problem(1, lost=True)
    found = ss.calibration(y, curves, T, weighting=weighting)
    terms = ss.score_terms(y, curves, weighting=weighting, times=[T])
    weight = terms.weights[:, 0]
    event = (y.event & (y.time <= T)).astype(float)
    risk = 1 - curves.at([T])[:, 0]
    assert found.observed_expected.value == pytest.approx((weight @ event) / (weight @ risk), rel=1e-12)
    keep = weight > 0
    x, event, weight, risk = logit(risk)[keep], event[keep], weight[keep], risk[keep]
    np.testing.assert_allclose(
        [found.intercept.value, found.slope.value],
        by_optimizer(np.column_stack((np.ones_like(x), x)), event, weight), atol=1e-6,
    )  # fmt: skip
    assert found.in_the_large.value == pytest.approx(by_optimizer(np.ones((x.size, 1)), event, weight, x)[0], abs=1e-6)
    sklearn = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], event, sample_weight=weight)
    assert found.slope.value == pytest.approx(sklearn.coef_[0, 0], rel=1e-4)
    # the curve, and its distances to the diagonal
    shares = (0.05, 0.275, 0.5, 0.725, 0.95) if found.curve.n_knots == 5 else (0.1, 0.5, 0.9)
    knots = np.quantile(x, shares)
    beta = by_optimizer(harrell(x, knots), event, weight)
    np.testing.assert_allclose(
        found.curve.observed, expit(harrell(logit(found.curve.predicted), knots) @ beta), atol=1e-5
    )
    distance = np.abs(expit(harrell(x, knots) @ beta) - risk)
    assert found.ici.value == pytest.approx(np.average(distance, weights=weight), abs=1e-6)
    order = np.argsort(distance)
    reached = np.cumsum(weight[order]) / weight.sum()
    for share, distances in ((0.5, found.e50), (0.9, found.e90)):
        assert distances.value == pytest.approx(distance[order][np.argmax(reached >= share)], abs=1e-6)
    # groups
    label = np.searchsorted(np.quantile(risk, np.arange(1, 10) / 10, method="inverted_cdf"), risk, side="left")
    for g in range(10):
        rows = label == g
        assert found.groups.predicted[g] == pytest.approx(np.average(risk[rows], weights=weight[rows]), rel=1e-12)
        assert found.groups.observed[g] == pytest.approx(np.average(event[rows], weights=weight[rows]), abs=1e-12)
        assert (found.groups.counts[g], found.groups.events[g]) == (rows.sum(), event[rows].sum())
    # parts
    isotonic = IsotonicRegression().fit_transform(risk, event, sample_weight=weight)
    brier = {
        name: np.average((event - p) ** 2, weights=weight)
        for name, p in (("given", risk), ("best", isotonic), ("same", np.average(event, weights=weight)))
    }
    assert found.brier == pytest.approx(brier["given"], rel=1e-12)
    assert found.brier == pytest.approx(terms.losses[keep, 0] @ weight / weight.sum(), rel=1e-12)
    assert found.isotonic_miscalibration == pytest.approx(brier["given"] - brier["best"], rel=1e-9)
    assert found.discrimination == pytest.approx(brier["same"] - brier["best"], rel=1e-9)
    assert found.uncertainty == pytest.approx(brier["same"], rel=1e-12)
    parts = found.isotonic_miscalibration - found.discrimination + found.uncertainty
    assert parts == pytest.approx(found.brier, rel=1e-12)
    score = ss.brier_score(y, curves, weighting=weighting, times=[T])
    assert found.n_effective == pytest.approx(score.n_effective[0], rel=1e-12)
    assert found.weighting == score.weighting


def harrell(x, knots):
    """Restricted cubic splines, as Harrell writes them."""
    columns = [np.ones_like(x), x]
    k, cube = len(knots), lambda v: np.where(v > 0, v, 0.0) ** 3
    for j in range(k - 2):
        top, under = knots[-1], knots[-2]
        term = cube(x - knots[j])
        term = term - cube(x - under) * (top - knots[j]) / (top - under)
        term = term + cube(x - top) * (under - knots[j]) / (top - under)
        columns.append(term / (top - knots[0]) ** 2)
    return np.column_stack(columns)


def test_where_nobody_is_lost_the_formulas_are_the_plain_ones():
    y, curves = problem(2, n=1000)
    for t in TIMES:
        found = ss.calibration(y, curves, t)
        rows, event, _ = ss.at_horizon(y, t)
        risk = 1 - curves.at([t])[rows, 0]
        n = rows.size
        assert (found.n_counted, found.n_units, found.n_events) == (n, n, event.sum())
        ratio = event.mean() / risk.mean()
        se = np.std(event / event.mean() - risk / risk.mean(), ddof=1) / math.sqrt(n)
        half = stats.t.ppf(0.975, n - 1) * se
        got = found.observed_expected
        np.testing.assert_allclose(
            [got.value, got.se, got.lower, got.upper],
            [ratio, ratio * se, ratio * math.exp(-half), ratio * math.exp(half)], rtol=1e-9,
        )  # fmt: skip
        # Wilson's interval, with a normal quantile, for as many as are in the group, less one as in a sample variance
        counts, share = found.groups.counts, found.groups.observed
        z = stats.norm.ppf(0.975) ** 2 / (counts - 1)
        np.testing.assert_allclose(
            found.groups.upper,
            (share + z / 2 + np.sqrt(z * share * (1 - share) + z**2 / 4)) / (1 + z), rtol=1e-9,
        )  # fmt: skip


# Standard errors


def complex_problem(seed, n=70, data="any", *, causes=False):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(3, 0.05, n)
    star, end = np.ceil(rng.exponential(1 / rate)), np.ceil(rng.uniform(2, 12, n))
    if data == "uncensored":
        end = np.full(n, 99.0)
    dropping = np.full(n, np.inf) if data in ("administrative", "uncensored") else np.ceil(rng.exponential(14, n))
    time = np.minimum(np.minimum(star, end), dropping)
    y = whole = ss.Outcomes(time, (star <= end) & (star <= dropping), end)
    if causes:
        y = with_causes(y, 1 + (np.arange(n) % 5 > 2), "a")
    times = np.array([1.0, T, 12.0])
    curves = ss.SurvivalCurves(np.exp(-rate[:, None] * times), times)
    censoring = ss.SurvivalCurves(np.exp(-rng.uniform(0.02, 0.08, (n, 1)) * times), times)
    dropping, k = np.ceil(rng.exponential(14, 40)), slice(0, 40)
    training = ss.Outcomes(np.minimum(y.time[k], dropping), whole.event[k] & (y.time[k] <= dropping), end[k])
    return Problem(y, curves, censoring, training, np.array([T]))


def literal_numbers(weighted, risk, knots, edges, start, mass):
    """Log O/E, intercept, slope, intercept at slope one, log odds of the curve at three risks, shares of the groups.

    In complex numbers: Newton's steps from the real solution carry the derivative along.
    """
    pairs, _ = weighted
    w = np.array([m * weight if free is not None else 0.0 for (weight, free), m in zip(pairs, mass, strict=True)])
    y = np.array([0.0 if free is None else 1.0 - free for _, free in pairs])
    x = logit(risk)
    found = [np.log(np.sum(w * y) / np.sum(w * risk))]
    designs = [(np.ones((x.size, 1)), x), (harrell(x, knots[:0]), 0.0), (harrell(x, knots), 0.0)]
    for k, (design, offset) in enumerate(designs):
        beta = np.array(start[k], dtype=complex)
        for _ in range(4):
            mu = 1 / (1 + np.exp(-(offset + design @ beta)))
            hessian = (design * (w * mu * (1 - mu))[:, None]).T @ design
            beta = beta + np.linalg.solve(hessian, design.T @ (w * (y - mu)))
        found += list(beta) if k < 2 else list(harrell(logit(np.array([0.2, 0.3, 0.5])), knots) @ beta)
    label = np.searchsorted(edges, risk, side="left")
    found += [np.sum((w * y)[label == g]) / np.sum(w[label == g]) for g in range(edges.size + 1)]
    return np.array(found)


FITTING = [case for case in CASES if case.name != "ipcw known"]


@pytest.mark.parametrize("case", FITTING, ids=lambda case: case.name)
@pytest.mark.parametrize("grouped", [False, True])
def test_standard_errors_are_those_of_the_derivative(case, grouped):
    """Under every weighting, with heavy ties and T = t = C*: to 1e-8."""
    p = complex_problem(3, data=case.data, causes=grouped and case.of_causes)
    n, n_training = len(p.y), len(p.training)
    groups = np.arange(n) // 4 if grouped else None
    weighting = case.weighting(p)
    found = ss.calibration(p.y, p.curves, T, weighting=weighting, groups=groups, n_bins=3, n_draws=1)
    assert found.curve.n_knots == 3
    risk = 1 - p.curves.at([T])[:, 0]
    weighted = case.weights(p, T)
    counted = np.array([free is not None for _, free in weighted[0]])
    knots = np.quantile(logit(risk[counted]), (0.1, 0.5, 0.9))
    edges = np.quantile(risk[counted], [1 / 3, 2 / 3], method="inverted_cdf")
    w = np.array([weight for weight, _ in weighted[0]])[counted]
    event = np.array([1.0 - (free or 0.0) for _, free in weighted[0]])[counted]
    x, one = logit(risk[counted]), np.ones(counted.sum())
    start = [
        by_optimizer(one[:, None], event, w, x), by_optimizer(np.column_stack((one, x)), event, w),
        by_optimizer(harrell(x, knots), event, w),
    ]  # fmt: skip

    def numbers(mass, training_mass):
        return literal_numbers(case.weights(p, T, mass, training_mass), risk, knots, edges, start, mass)

    def derivatives(size, place):
        result = []
        for i in range(size):
            masses = [[1.0] * n, [1.0] * n_training]
            masses[place][i] += STEP * 1j
            result.append(numbers(*masses).imag / STEP)
        return np.array(result)

    phi = derivatives(n, 0)
    belongs = np.array(weighted[1])
    if grouped:
        phi = np.array([phi[groups == g].sum(axis=0) for g in np.unique(groups)])
        n_units = np.unique(groups[belongs]).size
    else:
        n_units = belongs.sum()
    label = np.searchsorted(edges, risk, side="left")
    of_groups = [
        np.unique(groups[counted & (label == g)]).size if grouped else (counted & (label == g)).sum() for g in range(3)
    ]
    units = np.array([n_units] * 7 + of_groups)
    variance = np.sum(phi**2, axis=0) * units / (units - 1)
    variance += np.sum(derivatives(n_training, 1) ** 2, axis=0)  # zero where G does not come from them
    value = numbers([1.0] * n, [1.0] * n_training).real
    assert math.log(found.observed_expected.value) == pytest.approx(value[0], abs=1e-10)
    estimates = [found.in_the_large, found.intercept, found.slope]
    np.testing.assert_allclose([one.value for one in estimates], value[1:4], atol=1e-8)
    got = [found.observed_expected.se / found.observed_expected.value, *(one.se for one in estimates)]
    np.testing.assert_allclose(np.square(got), variance[:4], rtol=1e-8)
    assert found.n_units == n_units
    # the curve's limits, read back at three risks
    q = stats.t.ppf(0.975, n_units - 1)
    near = np.array([0.2, 0.3, 0.5])
    halves = (logit(found.curve.upper) - logit(found.curve.lower)) / 2
    np.testing.assert_allclose(np.interp(near, found.curve.predicted, halves), q * np.sqrt(variance[4:7]), rtol=0.03)
    np.testing.assert_allclose(found.groups.se**2, variance[7:], rtol=1e-8)


# Data with little in them


def small(survival, event, *, groups=None, **options):
    """Everybody is followed to the horizon, 1."""
    event = np.asarray(event, dtype=bool)
    y = ss.Outcomes(np.where(event, 0.5, 2.0), event, np.full(event.size, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ss.calibration(y, ss.SurvivalCurves(np.asarray(survival)[:, None], [1.0]), 1, groups=groups, **options)


def test_separated_predictions_have_no_slope():
    found = small([0.9, 0.8, 0.7, 0.3, 0.2, 0.1], [0, 0, 0, 1, 1, 1])
    assert math.isnan(found.slope.value)
    assert "separate those with event from those without" in found.reasons["slope"]
    assert "curve" in found.reasons
    assert np.isnan(found.curve.observed).all()
    assert math.isnan(found.ici.value)
    assert "slope undefined" in repr(found)
    assert found.observed_expected.lower < 1 < found.observed_expected.upper
    assert math.isfinite(found.in_the_large.value)
    # the same where one prediction is shared by both statuses
    assert math.isnan(small([0.9, 0.8, 0.5, 0.5, 0.2, 0.1], [0, 0, 0, 1, 1, 1]).slope.value)
    # two who overlap, and all is there, with a straight line
    assert math.isfinite(small([0.9, 0.2, 0.8, 0.3, 0.7, 0.1], [0, 0, 0, 1, 1, 1]).slope.upper)


@pytest.mark.parametrize("status", [0, 1])
def test_one_status_only(status):
    n = 30
    survival = np.linspace(0.2, 0.9, n)
    found = small(survival, np.full(n, status))
    assert found.reasons["slope"] == f"{'every' if status else 'no'} individual who is counted had the event"
    assert set(found.reasons) == {"slope", "intercept", "in_the_large", "curve", "ici"}
    ratio = found.observed_expected
    expected = np.mean(1 - survival)
    assert ratio.value == pytest.approx(status / expected)
    bound = 0.025 ** (1 / n)  # exact, by Clopper and Pearson
    assert (ratio.lower, ratio.upper) == pytest.approx(
        (bound / expected, 1 / expected) if status else (0, (1 - bound) / expected)
    )
    assert (found.groups.lower < found.groups.upper).all()
    # five groups of six tell less than thirty
    grouped = small(survival, np.full(n, status), groups=np.arange(n) % 5).observed_expected
    assert grouped.upper - grouped.lower > 2 * (ratio.upper - ratio.lower)


def test_one_prediction_for_all():
    event = np.arange(40) % 4 == 0
    found = small(np.full(40, 0.7), event)
    assert found.reasons["slope"] == "all predictions are the same"
    assert found.curve.predicted.size == found.groups.counts.size == found.isotonic.counts.size == 1
    assert found.curve.observed == pytest.approx([0.25])
    assert 0 < found.curve.lower[0] < 0.25 < found.curve.upper[0] < 1
    assert (found.ici.value, found.ici.lower) == (pytest.approx(0.05), 0)
    assert found.in_the_large.value == pytest.approx(logit(0.25) - logit(0.3))
    assert found.isotonic_miscalibration == pytest.approx(0.0025)
    two = small(np.tile([0.7, 0.5], 20), event)
    assert two.curve.n_knots == 0
    assert two.groups.counts.tolist() == [20, 20]


def test_certain_predictions():
    for survival in (0.0, 1.0):
        found = small(np.full(20, survival), np.arange(20) % 2)
        assert math.isfinite(found.ici.upper)
    assert found.reasons["observed_expected"] == "all predicted risks are 0"
    perfect = small(np.tile([0.0, 1.0], 10), np.tile([1, 0], 10))
    assert perfect.observed_expected.value == 1
    assert math.isnan(perfect.observed_expected.lower)  # no width would claim certainty
    assert perfect.reasons["observed_expected"] == "the predictions are the statuses themselves"
    assert perfect.isotonic_miscalibration == perfect.brier == 0


def test_one_individual_and_one_group():
    alone = small([0.4], [1])
    assert alone.observed_expected.value == pytest.approx(1 / 0.6)
    survival, event = np.linspace(0.1, 0.9, 40), np.random.default_rng(0).random(40) < 0.5
    found = small(survival, event, groups=np.zeros(40))
    assert math.isfinite(found.slope.value)
    for estimate in (found.observed_expected, found.slope, found.in_the_large, found.ici):
        assert math.isnan(estimate.lower)
    assert set(found.reasons.values()) == {"only one group is counted, which has no variance"}
    assert np.isnan(found.groups.lower).all()
    assert np.isnan(found.curve.lower).all()
    three = small(survival, event, groups=np.arange(40) % 3)  # as many as coefficients of the curve
    assert three.reasons["ici"] == "only 3 groups for 3 coefficients"


@pytest.mark.parametrize("n", [700, 40_000])
@pytest.mark.parametrize("knots", [(), (0, 0), (-1.0, 0.2, 1.0), (-1.5, -0.6, 0.0, 0.6, 1.5)])
def test_the_gradient_vanishes_and_equal_values_have_equal_probabilities(knots, n):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n).round(2)  # with ties
    event, weight = (rng.random(n) < expit(x - 0.3 * x**2)).astype(float), rng.gamma(5, size=n)
    weight /= weight.mean()
    fit = logistic_fit(x, np.array(knots), event, weight, shifted=not knots)
    assert np.unique(fit.probability).size <= np.unique(x).size  # to the last bit
    design = restricted_cubic_spline(x, np.array(knots))
    np.testing.assert_allclose(design @ (weight * (event - fit.probability)) / n, 0.0, atol=1e-12)
    np.testing.assert_allclose(fit.influences.sum(axis=1), 0.0, atol=1e-9)


# Isotonic regression


@pytest.mark.parametrize("lost", [False, True])
def test_band_holds_right_predictions_and_not_wrong_ones(lost):
    y, curves = problem(3, n=3000, lost=lost)
    wrong = ss.SurvivalCurves(curves.probabilities**2, TIMES)
    found, other = (ss.calibration(y, given, T, level=0.9) for given in (curves, wrong))
    inside = [
        np.average((band.observed >= band.lower - 1e-12) & (band.observed <= band.upper + 1e-12), weights=band.counts)
        for band in (found.isotonic, other.isotonic)
    ]
    assert inside[0] > 0.8
    assert inside[1] < 0.3
    assert other.isotonic_miscalibration_corrected > 10 * abs(found.isotonic_miscalibration_corrected)
    assert other.ici.lower > other.ici.if_right
    assert found.ici.lower == 0
    # both ways to measure squared miscalibration agree
    assert other.isotonic_miscalibration_corrected == pytest.approx(other.miscalibration.value, rel=0.25)


# What people see


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": 9}, "there is no calibration at 9: the predictions end at 8"),
        ({"time": -1}, "time must be zero or larger"),
        ({"n_draws": 10**9}, "n_draws must be at most 100000, not 1000000000"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1"),
        ({"weighting": ["ipcw", "administrative"]}, "weighting must be one, not several"),
        ({"curves": [[0.5]]}, "curves must be SurvivalCurves"),
        ({"y": ss.Outcomes([1] * 300, [0] * 300)}, "needs outcomes with censoring_time"),
        ({"y": ss.Outcomes([1] * 300, [0] * 300, [1] * 300)}, "at 5: no individual has a positive weight"),
    ],
)
def test_bad_input_is_named(change, message):
    y, curves = problem()
    with pytest.raises(ss.InputError, match=message):
        ss.calibration(**({"y": y, "curves": curves, "time": 5} | change))


def test_distances_expected_if_right_are_those_of_right_predictions():
    """Also of strong predictions, whose log odds far out vary by several units while shares hardly can."""
    rng = np.random.default_rng(1)
    risk = 1 / (1 + np.exp(-3.5 * rng.standard_normal(400)))
    curves = ss.SurvivalCurves(1 - risk[:, None], [1])
    found = []
    for _ in range(60):
        event = rng.random(400) < risk
        y = ss.Outcomes(np.where(event, 1.0, 2.0), event, np.full(400, 2.0))
        made = ss.calibration(y, curves, 1, n_draws=1)
        found.append([(one.value, one.if_right) for one in (made.ici, made.e50, made.e90)])
    value, if_right = np.mean(found, axis=0).T
    np.testing.assert_allclose(if_right, value, rtol=0.25)

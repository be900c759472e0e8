"""The test of whether drop-out depends on predicted risk or on C*."""

import numpy as np
import pytest
from scipy import stats

import survscore as ss
from survscore.analysis.assumptions import dropout_test, log_rank

TIMES = np.array([2.0, 4.0, 6.0])


def study(rng, n, hazard):
    """Draw outcomes with C* ~ U(2, 10) and event hazard .1 exp(.8 x); `hazard` is that of drop-out given x."""
    x, end = rng.normal(size=n), rng.uniform(2, 10, n)
    star = rng.exponential(10 * np.exp(-0.8 * x))
    left = rng.exponential(1 / hazard(x))
    time = np.minimum(star, np.minimum(end, left))
    y = ss.Outcomes(time, star <= np.minimum(end, left), end)
    survival = np.exp(-0.1 * np.exp(0.8 * x)[:, None] * TIMES)
    return y, {"truth": ss.SurvivalCurves(survival, TIMES), "sharp": ss.SurvivalCurves(survival**1.5, TIMES)}


def literal_log_rank(time, leaves, codes):
    """The statistic jump by jump, and individual by individual."""
    groups = np.unique(codes)
    surplus, variance = np.zeros(groups.size), np.zeros((groups.size, groups.size))
    for s in np.unique(time[leaves]):
        at_risk = (time > s) | ((time == s) & leaves)
        r, q = at_risk.sum(), ((time == s) & leaves).sum()
        shares = np.array([(at_risk & (codes == k)).sum() / r for k in groups])
        surplus += [((time == s) & leaves & (codes == k)).sum() - q * shares[place] for place, k in enumerate(groups)]
        if r > 1:
            variance += q * (r - q) / (r - 1) * (np.diag(shares) - np.outer(shares, shares))
    return surplus[1:] @ np.linalg.solve(variance[1:, 1:], surplus[1:])


@pytest.mark.parametrize("grid", [None, 0.5])
def test_the_statistic_is_the_literal_one(grid):
    rng = np.random.default_rng(0)
    time, leaves, codes = rng.exponential(3, 200), rng.random(200) < 0.4, rng.integers(0, 3, 200)
    time = time if grid is None else np.ceil(time / grid) * grid
    found = log_rank(time, leaves, codes, "x")
    expected = literal_log_rank(time, leaves, codes)
    assert found.statistic == pytest.approx(expected, rel=1e-10)
    assert (found.df, found.p_value) == (2, pytest.approx(stats.chi2.sf(expected, 2)))
    assert found.dropped_out.sum() == leaves.sum() == pytest.approx(found.expected.sum())
    np.testing.assert_allclose(found.rate, found.dropped_out / np.bincount(codes, weights=time))


@pytest.mark.statistical
def test_size():
    """5 % nominal, of 1 000 replicates: 3 to 7 % is three standard errors to either side."""
    rng = np.random.default_rng(10)
    found = [dropout_test(*study(rng, 300, lambda x: 0.035 + 0 * x), TIMES).tests for _ in range(1000)]
    rejected = np.mean([[one.p_value < 0.05 for one in tests] for tests in found], axis=0)
    assert ((rejected > 0.03) & (rejected < 0.07)).all(), rejected


def test_it_is_told_in_comparisons_and_diagnoses_with_drop_outs():
    y, models = study(np.random.default_rng(3), 1500, lambda x: 0.03 * np.exp(0.8 * x))
    result = ss.compare(y, models, weighting="administrative", times=TIMES)
    found = result.dropout_test
    assert (found.n, found.n_dropped_out) == (1500, y.n_dropped_out)
    table = found.to_frame()
    assert table.groupby("by")["dropped_out"].sum().to_dict() == dict.fromkeys(
        ("predicted risk", "C*"), y.n_dropped_out
    )
    assert table.query("by == 'predicted risk'")["rate"].is_monotonic_increasing
    told = " ".join(str(result).split())
    assert "drop-out depends on predicted risk (log-rank p < 0.001): in thirds from low to high, 0." in told
    assert "no sign that drop-out depends on C* (log-rank p = 0." in told
    diagnosis = ss.diagnose(y, models, times=TIMES, width=1.0)
    assert diagnosis.dropout.tests[0].statistic == pytest.approx(found.tests[0].statistic)
    by = ss.compare(y, models, weighting="administrative", times=TIMES, by={"half": np.arange(1500) % 2})
    assert by.total.dropout_test.tests[0].statistic == pytest.approx(found.tests[0].statistic)


def test_without_drop_outs_nothing_is_told_and_of_few_that_they_are_few():
    y, models = study(np.random.default_rng(4), 200, lambda x: 1e-9 + 0 * x)
    assert ss.compare(y, models, weighting="administrative", times=TIMES).dropout_test is None
    y, models = study(np.random.default_rng(4), 200, lambda x: 0.008 + 0 * x)
    told = f"{y.n_dropped_out} drop-outs: too few to test"
    assert told in str(ss.compare(y, models, weighting="administrative", times=TIMES))


def test_predictions_in_batches_leave_the_test_by_end():
    y, models = study(np.random.default_rng(5), 300, lambda x: 0.05 + 0 * x)
    batches = ss.CurveBatches(lambda: iter([models["truth"][:100], models["truth"][100:]]), 300)
    found = ss.compare(y, {"truth": batches}, weighting="administrative", times=TIMES).dropout_test
    assert [one.by for one in found.tests] == ["C*"]

"""The main simulation against its description: laws of all pieces, the truth, the censoring."""

import numpy as np
import pytest
from scipy import stats

import survscore as ss
from survscore.simulate import SineConstantAcceleratingStudy
from survscore.simulate.studies import (
    Carrier,
    Constant,
    SineConstantAccelerating,
    ThresholdCensoring,
)

STUDIES = {
    censoring: SineConstantAcceleratingStudy(censoring) for censoring in ("simple", "complicated", "independent")
}
N = 20_000


@pytest.fixture(scope="module", params=STUDIES)
def drawn(request):
    study = STUDIES[request.param]
    return study, study.sample(N, seed=5)


def drivers_of(carrier, covariates):
    """Return the drivers that covariates carry."""
    coefficients = carrier.coefficients
    return (covariates.reshape(-1, *coefficients.shape) * coefficients).sum(axis=2)


def uniform(values, low, high):
    return stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue


# Pieces


def test_gammas_have_their_ranges_and_laws():
    u = np.random.default_rng(0).uniform(-1, 1, (N, 9))
    g = SineConstantAccelerating().gammas(u).T
    assert uniform(g[0], -5, 5) > 1e-3
    frequencies, counts = np.unique(g[1] / (2 * np.pi / 100), return_counts=True)
    np.testing.assert_allclose(frequencies, [0.5, 1, 2, 4, 8])
    assert stats.chisquare(counts).pvalue > 1e-3
    assert uniform(g[2], -15, 15) > 1e-3
    np.testing.assert_allclose(g[3], 2 * u[:, 3] - 6 - np.abs(g[0] / 2))
    assert uniform(g[4], -8, -3) > 1e-3
    assert uniform(np.log(g[5] / (1 - g[5])), -5, 1) > 1e-3
    assert uniform(g[6], -2, 8) > 1e-3
    assert uniform(g[7], -5, 5) > 1e-3
    assert uniform(g[8], -5, 5) > 1e-3


def test_the_ends_of_the_range_have_a_frequency():
    g = SineConstantAccelerating().gammas(np.array([[0, -1.0] + [0] * 7, [0, 1.0] + [0] * 7]))
    np.testing.assert_allclose(g[:, 1], 2 * np.pi / 100 * np.array([0.5, 8]))


def test_logit_hazard_is_the_mixture_written_down():
    u = np.random.default_rng(1).uniform(-1, 1, (5, 9))
    times = np.array([0.1, 3.0, 100.0])
    for row, got in zip(SineConstantAccelerating().gammas(u), SineConstantAccelerating()(u, times), strict=True):
        alphas = np.exp(row[6:]) / np.exp(row[6:]).sum()
        for t, value in zip(times, got, strict=True):
            sine = row[0] * np.sin(row[1] * (t + row[2])) + row[3]
            assert value == pytest.approx(alphas @ [sine, row[4], row[5] * t - 10])


@pytest.mark.parametrize("p", [1, 2, 5])
def test_covariates_carry_their_drivers_exactly(p):
    rng = np.random.default_rng(2)
    carrier = Carrier(rng.standard_normal((3, p)))
    u = rng.uniform(-1, 1, (100, 3))
    X = carrier.covariates(u, rng)
    assert X.shape == (100, 3 * p)
    for k in range(3):
        np.testing.assert_allclose(X[:, k * p : (k + 1) * p] @ carrier.coefficients[k], u[:, k], atol=1e-12)


# Studies


@pytest.mark.parametrize(("censoring", "n_covariates"), [("simple", 23), ("complicated", 36), ("independent", 18)])
def test_covariates_say_what_they_drive(censoring, n_covariates):
    columns = STUDIES[censoring].sample(10, seed=0).covariates.columns
    assert len(columns) == n_covariates
    assert sum(name.startswith("event_") for name in columns) == 18
    assert all(name.startswith(("event_", "censoring_")) for name in columns)


def test_true_survival_is_the_product_of_the_hazards(drawn):
    study, sample = drawn
    event, _ = study.carriers
    u = drivers_of(event, sample.covariates.to_numpy()[:3, :18])
    hazards = 1 / (1 + np.exp(-study.hazard(u, study.grid)))
    times = np.array([0.05, 0.1, 0.25, 50.0, 100.0])
    got = sample.survival(times).probabilities[:3]
    for row, values in zip(hazards, got, strict=True):
        expected = [np.prod(1 - row[study.grid <= t + 1e-12]) for t in times]
        np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_event_times_follow_the_true_survival(drawn):
    _, sample = drawn
    times = np.array([1.0, 5.0, 20.0, 50.0, 80.0, 99.9])
    truth = sample.survival(times).probabilities
    free = sample.uncensored.time[:, None] > times
    z = (free - truth).sum(axis=0) / np.sqrt((truth * (1 - truth)).sum(axis=0))
    assert np.abs(z).max() < 4
    # and within groups that the truth tells apart
    for j in (2, 3):
        for part in np.array_split(np.argsort(truth[:, j]), 5):
            spread = np.sqrt((truth[part, j] * (1 - truth[part, j])).sum())
            assert abs((free[part, j] - truth[part, j]).sum()) < 4 * spread
    never = sample.survival([100.0]).probabilities[:, 0]
    assert abs((~sample.uncensored.event).sum() - never.sum()) < 4 * np.sqrt((never * (1 - never)).sum())


def test_what_is_observed_comes_from_event_and_censoring(drawn):
    _, sample = drawn
    y, full = sample.outcomes, sample.uncensored
    happened = full.event & (full.time <= y.censoring_time)
    np.testing.assert_array_equal(y.event, happened)
    np.testing.assert_array_equal(y.time, np.where(happened, full.time, y.censoring_time))
    assert (full.time[~full.event] == 100).all()
    assert (full.censoring_time == 100).all()
    grid = np.round(y.time * 10)
    np.testing.assert_allclose(y.time * 10, grid, atol=1e-9)


@pytest.mark.parametrize("censoring", ["simple", "complicated"])
def test_censoring_comes_where_q_crosses_the_threshold(censoring):
    study = STUDIES[censoring]
    sample = study.sample(300, seed=3)
    _, carrier = study.carriers
    u = drivers_of(carrier, sample.covariates.to_numpy()[:, 18:])
    hazards = 1 / (1 + np.exp(-study._censoring.hazard(u, study.grid)))
    q = np.cumprod(1 - hazards, axis=1)
    for row, end in zip(q, sample.outcomes.censoring_time, strict=True):
        below = np.flatnonzero(row <= 0.2)
        assert end == pytest.approx(study.grid[below[0]] if below.size else 100.0)
    known = sample.censoring([10.0, 50.0]).probabilities
    np.testing.assert_array_equal(known, sample.outcomes.censoring_time[:, None] > [10.0, 50.0])


def test_independent_censoring_is_uniform_over_the_grid():
    sample = STUDIES["independent"].sample(N, seed=4)
    counts = np.histogram(sample.outcomes.censoring_time, bins=np.linspace(0.05, 100.05, 11))[0]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_event_and_censoring_are_independent(drawn):
    _, sample = drawn
    X = sample.covariates.to_numpy()
    correlations = np.corrcoef(X, rowvar=False)[:18, 18:]
    assert np.abs(correlations).max(initial=0) < 5 / np.sqrt(N)
    ranks = stats.spearmanr(sample.uncensored.time, sample.outcomes.censoring_time).statistic
    assert abs(ranks) < 4 / np.sqrt(N)


def test_seeds():
    study = STUDIES["simple"]
    one, same, other = study.sample(50, seed=1), study.sample(50, seed=1), study.sample(50, seed=2)
    assert one.covariates.equals(same.covariates)
    np.testing.assert_array_equal(one.outcomes.time, same.outcomes.time)
    assert not one.covariates.equals(other.covariates)
    # beta belongs to the study, not to the sample
    np.testing.assert_array_equal(
        SineConstantAcceleratingStudy("simple").carriers[0].coefficients, study.carriers[0].coefficients
    )
    assert not np.array_equal(
        SineConstantAcceleratingStudy(seed=1).carriers[0].coefficients, study.carriers[0].coefficients
    )


def test_samples_can_be_pickled():
    import pickle

    sample = STUDIES["simple"].sample(5, seed=1)
    again = pickle.loads(pickle.dumps(sample))
    np.testing.assert_array_equal(again.survival([50.0]).probabilities, sample.survival([50.0]).probabilities)


def test_other_pieces_can_be_put_in():
    study = SineConstantAcceleratingStudy(ThresholdCensoring(Constant(), 3, threshold=0.5), hazard=Constant())
    sample = study.sample(2000, seed=1)
    assert sample.covariates.shape == (2000, 2 + 3)
    u = drivers_of(study.carriers[0], sample.covariates.to_numpy()[:, :2])[:, 0]
    hazard = 1 / (1 + np.exp(-(5 * (u + 1) / 2 - 8)))
    np.testing.assert_allclose(sample.survival([10.0]).probabilities[:, 0], (1 - hazard) ** 100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SineConstantAcceleratingStudy("none"), "censoring must be one of"),
        (lambda: SineConstantAcceleratingStudy(n_per_driver=0), "n_per_driver"),
        (lambda: STUDIES["simple"].sample(0, seed=1), "n must be a whole number of at least 1"),
        (lambda: SineConstantAcceleratingStudy(None), "censoring must be one of"),
        (lambda: STUDIES["simple"].sample(2, seed=1).survival([100, 101]), "within the study, which ends at 100"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ss.InputError, match=message):
        make()

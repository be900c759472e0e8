"""The simulations against their descriptions: laws of all pieces, the truth, the censoring."""

import math

import numpy as np
import pytest
from scipy import stats

import survscore as ss
from survscore.simulate import CompetingRisksStudy, ConstantHazardStudy, SineConstantAcceleratingStudy
from survscore.simulate.studies import Carrier, Constant, SineConstantAccelerating, ThresholdCensoring

STUDIES = {
    "constant": ConstantHazardStudy(),
    **{name: SineConstantAcceleratingStudy(name) for name in ("simple", "complicated", "independent")},
    "competing": CompetingRisksStudy(),
}
COMPETING = STUDIES["competing"]
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


# All studies


def test_event_times_follow_the_true_survival(drawn):
    _, sample = drawn
    times = np.array([1.0, 5.0, 20.0, 50.0, 80.0, 99.9])
    truth = sample.survival(times).probabilities
    free = sample.uncensored.time[:, None] > times
    z = (free - truth).sum(axis=0) / np.sqrt((truth * (1 - truth)).sum(axis=0).clip(1e-9))
    assert np.abs(z).max() < 4
    # and within groups that the truth tells apart
    for j in (2, 3):
        for part in np.array_split(np.argsort(truth[:, j]), 5):
            spread = np.sqrt((truth[part, j] * (1 - truth[part, j])).sum())
            assert abs((free[part, j] - truth[part, j]).sum()) < 4 * spread
    never = sample.survival([100.0]).probabilities[:, 0]
    assert abs((~sample.uncensored.event).sum() - never.sum()) < 4 * np.sqrt((never * (1 - never)).sum())


def test_outcomes_are_the_uncensored_ones_cut_at_the_censoring_time(drawn):
    _, sample = drawn
    y, whole = sample.outcomes, sample.uncensored
    seen = whole.event & (whole.time <= y.censoring_time)
    np.testing.assert_array_equal(y.event, seen)
    np.testing.assert_array_equal(y.time, np.where(seen, whole.time, y.censoring_time))
    assert (whole.time[~whole.event] == 100).all()
    assert (whole.censoring_time == 100).all()
    assert (y.n_dropped_out, y.causes) == (0, whole.causes)
    if y.causes:
        np.testing.assert_array_equal(y.cause, np.where(seen, whole.cause, 0))
    known = sample.censoring([10.0, 50.0]).probabilities
    np.testing.assert_array_equal(known, y.censoring_time[:, None] > [10.0, 50.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ConstantHazardStudy(hazard=1.5), "hazard must be between 0 and 1"),
        (lambda: ConstantHazardStudy(n_times=0), "n_times must be at least 1"),
        (lambda: ConstantHazardStudy(end=-1.0), "end positive"),
        (lambda: ConstantHazardStudy().sample(2, seed=1).incidence([1]), "events of one kind"),
        (lambda: ConstantHazardStudy().sample(0, seed=1), "n must be a whole number of at least 1"),
        (lambda: SineConstantAcceleratingStudy("none"), "censoring must be one of"),
        (lambda: SineConstantAcceleratingStudy(n_per_driver=0), "n_per_driver"),
        (lambda: CompetingRisksStudy(effect=np.nan), "effect must be finite, not nan"),
        (lambda: COMPETING.sample(2, seed=1).incidence([101]), "times must be within the study, which ends at 100"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ss.InputError, match=message):
        call()


# One hazard for all


def test_survival_is_the_product_of_the_hazards():
    S = ConstantHazardStudy().survival(np.array([0.0, 0.05, 0.1, 50.0, 100.0]))
    np.testing.assert_allclose(S, (1 - 0.00084) ** np.array([0, 0, 1, 500, 1000]), rtol=1e-13)


# Mixtures of hazards


def test_gammas_have_their_ranges_and_laws():
    u = np.random.default_rng(0).uniform(-1, 1, (N, 9))
    g = SineConstantAccelerating().gammas(u).T
    frequencies, counts = np.unique(g[1] / (2 * np.pi / 100), return_counts=True)
    np.testing.assert_allclose(frequencies, [0.5, 1, 2, 4, 8])
    assert stats.chisquare(counts).pvalue > 1e-3
    np.testing.assert_allclose(g[3], 2 * u[:, 3] - 6 - np.abs(g[0] / 2))
    assert uniform(np.log(g[5] / (1 - g[5])), -5, 1) > 1e-3
    for k, low, high in ((0, -5, 5), (2, -15, 15), (4, -8, -3), (6, -2, 8), (7, -5, 5), (8, -5, 5)):
        assert uniform(g[k], low, high) > 1e-3


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


@pytest.mark.parametrize(("name", "n_covariates"), [("simple", 23), ("complicated", 36), ("independent", 18)])
def test_true_survival_is_the_product_of_the_hazards(name, n_covariates):
    study = STUDIES[name]
    sample = study.sample(3, seed=5)
    columns = sample.covariates.columns
    assert (len(columns), sum(column.startswith("event_") for column in columns)) == (n_covariates, 18)
    u = drivers_of(study.carriers[0], sample.covariates.to_numpy()[:, :18])
    hazards = 1 / (1 + np.exp(-study.hazard(u, study.grid)))
    times = np.array([0.05, 0.1, 0.25, 50.0, 100.0])
    for row, values in zip(hazards, sample.survival(times).probabilities, strict=True):
        expected = [np.prod(1 - row[study.grid <= t + 1e-12]) for t in times]
        np.testing.assert_allclose(values, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["simple", "complicated"])
def test_censoring_comes_where_q_crosses_the_threshold(name):
    study = STUDIES[name]
    sample = study.sample(300, seed=3)
    u = drivers_of(study.carriers[1], sample.covariates.to_numpy()[:, 18:])
    hazards = 1 / (1 + np.exp(-study._censoring.hazard(u, study.grid)))
    for row, end in zip(np.cumprod(1 - hazards, axis=1), sample.outcomes.censoring_time, strict=True):
        below = np.flatnonzero(row <= 0.2)
        assert end == pytest.approx(study.grid[below[0]] if below.size else 100.0)


def test_coefficients_belong_to_the_study_and_not_to_the_sample():
    coefficients = [SineConstantAcceleratingStudy(seed=seed).carriers[0].coefficients for seed in (0, 0, 1)]
    np.testing.assert_array_equal(coefficients[0], coefficients[1])
    assert not np.array_equal(coefficients[0], coefficients[2])
    one, same, other = (STUDIES["simple"].sample(50, seed=seed) for seed in (1, 1, 2))
    assert one.covariates.equals(same.covariates)
    assert not np.array_equal(one.outcomes.time, other.outcomes.time)


def test_other_pieces_can_be_put_in():
    study = SineConstantAcceleratingStudy(ThresholdCensoring(Constant(), 3, threshold=0.5), hazard=Constant())
    sample = study.sample(2000, seed=1)
    assert sample.covariates.shape == (2000, 2 + 3)
    u = drivers_of(study.carriers[0], sample.covariates.to_numpy()[:, :2])[:, 0]
    hazard = 1 / (1 + np.exp(-(5 * (u + 1) / 2 - 8)))
    np.testing.assert_allclose(sample.survival([10.0]).probabilities[:, 0], (1 - hazard) ** 100)


# Competing risks


def test_incidences_by_the_formula():
    sample = COMPETING.sample(3, seed=1)
    got = sample.incidence(COMPETING.grid).probabilities
    for i, (satisfaction, debt, _) in enumerate(sample.covariates.to_numpy()):
        event_free, incidence = 1.0, [0.0, 0.0]
        for j in range(100):
            odds = [
                math.exp(-5.0 - satisfaction - 1.5 * (j + 1) / 100),
                math.exp(-6.5 + debt + 1.5 * (j + 1) / 100),
            ]
            for k in range(2):
                incidence[k] += event_free * odds[k] / (1.0 + sum(odds))
            event_free /= 1.0 + sum(odds)
            assert got[i, :, j] == pytest.approx(incidence, rel=1e-12)
    total = sample.survival([10, 80]).probabilities + sample.incidence([10, 80]).probabilities.sum(axis=1)
    np.testing.assert_allclose(total, 1.0)


def test_draws_have_the_true_incidences():
    sample, times = COMPETING.sample(40_000, seed=1), np.array([10.0, 50.0, 80.0])
    y, truth = sample.uncensored, sample.incidence(times).probabilities
    for group in (slice(None), sample.covariates["satisfaction"] > 0, sample.covariates["debt"] > 0):
        rows = np.arange(40_000)[group]
        for k, j in np.ndindex(2, 3):
            happened = (y.cause[rows] == k + 1) & (y.time[rows] <= times[j])
            se = np.sqrt(np.mean(truth[rows, k, j] * (1 - truth[rows, k, j])) / rows.size)
            assert abs(happened.mean() - truth[rows, k, j].mean()) < 4 * se


def test_parameters():
    flat = CompetingRisksStudy(effect=0).sample(4, seed=1).incidence([50]).probabilities
    np.testing.assert_array_equal(flat, flat[[0]].repeat(4, axis=0))
    fine, coarse = (CompetingRisksStudy(n_times=n).sample(100, seed=1).incidence([50, 100]) for n in (400, 100))
    np.testing.assert_allclose(fine.probabilities, coarse.probabilities, atol=0.02)
    assert CompetingRisksStudy(end=10).sample(50, seed=1).outcomes.censoring_time.max() <= 10

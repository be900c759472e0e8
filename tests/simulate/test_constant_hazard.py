import numpy as np
import pytest

import survscore as ss
from survscore.simulate import ConstantHazardStudy


@pytest.fixture(scope="module")
def sample():
    return ConstantHazardStudy().sample(50_000, seed=3)


def test_the_same_seed_gives_the_same_individuals():
    a, b, c = (ConstantHazardStudy().sample(50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.outcomes.time, b.outcomes.time)
    assert not np.array_equal(a.outcomes.time, c.outcomes.time)


def test_survival_is_the_product_of_the_hazards():
    S = ConstantHazardStudy().survival(np.array([0.0, 0.05, 0.1, 50.0, 100.0]))
    np.testing.assert_allclose(S, (1 - 0.00084) ** np.array([0, 0, 1, 500, 1000]), rtol=1e-13)


@pytest.mark.statistical
def test_event_frequencies_follow_the_survival(sample):
    times = np.array([10.0, 50.0, 99.9])
    S = sample.survival(times).probabilities[0]
    share = (sample.uncensored.time[:, None] > times).mean(axis=0)
    assert (np.abs(share - S) < 4 * np.sqrt(S * (1 - S) / 50_000)).all()


@pytest.mark.statistical
def test_censoring_times_are_uniform(sample):
    end = sample.outcomes.censoring_time
    share = (end[:, None] > np.array([10.0, 50.0, 90.0])).mean(axis=0)
    np.testing.assert_allclose(share, [0.9, 0.5, 0.1], atol=4 * 0.5 / np.sqrt(50_000))
    assert end.min() > 0
    assert end.max() <= 100


def test_outcomes_are_the_uncensored_ones_cut_at_the_censoring_time(sample):
    y, full = sample.outcomes, sample.uncensored
    np.testing.assert_array_equal(y.time, np.minimum(full.time, y.censoring_time))
    np.testing.assert_array_equal(y.event, full.event & (full.time <= y.censoring_time))
    assert not y.dropped_out.any()


def test_the_covariate_orders_the_censoring_times(sample):
    covariate = sample.covariates["tells_censoring_time"].to_numpy()
    assert (np.argsort(covariate) == np.argsort(sample.outcomes.censoring_time)).all()
    np.testing.assert_allclose([covariate.mean(), covariate.std()], [0, 1], atol=0.02)


def test_true_censoring_curves(sample):
    G = sample.censoring([20.0, 60.0])
    np.testing.assert_array_equal(G.probabilities[:, 0] == 1, sample.outcomes.censoring_time > 20)


@pytest.mark.parametrize("settings", [{"hazard": 0}, {"hazard": 1.5}, {"n_times": 0}, {"end": -1.0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ss.InputError):
        ConstantHazardStudy(**settings)


def test_nobody_can_not_be_sampled():
    with pytest.raises(ss.InputError, match="n must be a whole number of at least 1"):
        ConstantHazardStudy().sample(0, seed=1)

"""Predictions that know C* are told from those that do not."""

import re

import numpy as np
import pytest

import survscore as ss
from survscore.simulate import ConstantHazardStudy

GRID = np.arange(1.0, 101.0)


@pytest.fixture(scope="module")
def sample():
    return ConstantHazardStudy(hazard=0.002).sample(3000, seed=3)


def literal(y, curves, width, offsets):
    """Return the mean left limit at C* plus each offset, one individual and one offset at a time."""
    last = curves.times[-1]
    chosen = [i for i in range(len(y)) if width <= y.censoring_time[i] <= last - width]
    means = []
    for offset in offsets:
        values = []
        for i in chosen:
            t = max(y.censoring_time[i] + offset, 0.0)
            before = [k for k in range(curves.times.size) if curves.times[k] < t]
            values.append(curves.probabilities[i, before[-1]] if before else 1.0)
        means.append(np.mean(values))
    return np.array(means), len(chosen)


def test_means_are_those_of_a_literal_loop(sample):
    y = sample.outcomes[:60]
    curves = ss.SurvivalCurves(np.linspace(0.95, 0.1, 100) ** np.linspace(0.5, 2, 60)[:, None], GRID, "step")
    found = ss.diagnose(y, {"a": curves}, width=8)
    wanted, n = literal(y, curves, 8, found.offsets)
    assert found.n == n
    assert np.allclose(found.survival["a"], wanted, rtol=0, atol=1e-14)


def test_a_leak_shows_as_a_cliff_and_the_truth_does_not(sample):
    y, truth = sample.outcomes, sample.survival(GRID)
    leaking = ss.SurvivalCurves(truth.probabilities * (y.censoring_time[:, None] > GRID), GRID, "step")
    found = ss.diagnose(y, {"truth": truth, "leaking": leaking}).to_frame().set_index("model")
    lost = 1 - 0.998**100  # over a tenth of the grid
    assert found.lost_before["truth"] == pytest.approx(lost, abs=0.01)
    assert found.lost_after["truth"] == pytest.approx(lost, abs=0.01)
    assert found.lost_after["Kaplan-Meier"] == pytest.approx(lost, abs=0.03)
    assert found.lost_before["leaking"] == pytest.approx(lost, abs=0.01)
    assert found.lost_after["leaking"] == pytest.approx(1)


def test_covariates_that_tell_the_censoring_time_are_found(sample):
    y, models = sample.outcomes, {"truth": sample.survival(GRID)}
    assert ss.diagnose(y, models, X=sample.covariates).censoring_r2 > 0.99
    noise = np.random.default_rng(1).normal(size=(len(y), 3))
    assert ss.diagnose(y, models, X=noise).censoring_r2 < 0.05
    assert re.search(r"covariates tell C\* with R2 (0\.99|1\.00)", repr(ss.diagnose(y, models, X=sample.covariates)))
    assert ss.diagnose(y, models).censoring_r2 is None


def test_it_draws_itself(sample):
    shown = ss.diagnose(sample.outcomes, {"truth": sample.survival(GRID)}).plot()
    assert [line.get_label() for line in shown.ax_.lines][:2] == ["truth", "Kaplan-Meier"]
    from matplotlib import pyplot as plt

    plt.close(shown.figure_)


def test_bad_requests_are_refused(sample):
    y, truth = sample.outcomes, sample.survival(GRID)
    with pytest.raises(ss.InputError, match="needs outcomes with censoring_time"):
        ss.diagnose(ss.Outcomes(y.time, y.event), {"truth": truth})
    for width in (0, 50, "wide", float("nan")):
        with pytest.raises(ss.InputError, match="width must be positive, and less than half of 100"):
            ss.diagnose(y, {"truth": truth}, width=width)
    with pytest.raises(ss.InputError, match="X has length 5"):
        ss.diagnose(y, {"truth": truth}, X=np.zeros((5, 1)))
    for bad, message in (
        (np.zeros(len(y)), "X must have shape"),
        (np.full((len(y), 1), "a"), "X must hold numbers only"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.diagnose(y, {"truth": truth}, X=bad)
    with pytest.raises(ss.InputError, match="are too few to learn from"):
        ss.diagnose(y[:9], {"truth": truth[:9]}, X=np.zeros((9, 1)), width=2)
    late = ss.Outcomes([1.0, 2], [1, 0], [99.5, 2])
    with pytest.raises(ss.InputError, match="nobody has a censoring_time from 10 to 90"):
        ss.diagnose(late, {"truth": truth[:2]})

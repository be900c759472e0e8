"""Weights by stratum: what they equal, how labels are given, and what is refused; the oracle is in test_common.py."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from registry import random_problem

TIMES = np.array([10.0, 25.0, 40.0, 60.0])
N = 300


def problem_and_models(n=N, seed=0):
    """Drop-outs and censoring that differ between three strata, and two models."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    star, end = rng.exponential(60 * (1 + label), n), rng.uniform(30, 100, n)
    dropping = rng.exponential(300 / (1 + label) ** 2, n)
    time = np.minimum(np.minimum(star, end), dropping)
    y = ss.Outcomes(time, star <= time, end)
    rate = rng.gamma(3, 1 / 300, (n, 1))
    models = {name: ss.SurvivalCurves(np.exp(-rate * scale * TIMES), TIMES) for name, scale in (("a", 1), ("b", 1.6))}
    return y, models, label


def weightings(strata, training=None, training_strata=None, **settings):
    """Both weightings that take strata."""
    if training is None:
        return [ss.IPCW(strata=strata, **settings), ss.Administrative(dropout_strata=strata, **settings)]
    return [
        ss.IPCW(training, strata=strata, training_strata=training_strata, **settings),
        ss.Administrative(training, dropout_strata=strata, training_strata=training_strata, **settings),
    ]


def numbers(y, models, weighting, **settings):
    """Scores, differences and means over time, with their standard errors."""
    settings = {"null": False, "metric": ["brier", "log"], "times": TIMES, **settings}
    result = ss.compare(y, models, weighting=weighting, **settings)
    tables = [*(getattr(one, name) for one in (result, result.integrated()) for name in ("scores", "contrasts"))]
    return np.concatenate([table.select_dtypes("number").to_numpy().ravel() for table in tables])


# Training data


@pytest.mark.parametrize("place", [0, 1])
def test_a_stratum_of_which_nobody_is_scored_changes_nothing(place):
    """Also one whose curve falls to zero, in front of the others, between them or behind."""
    y, models, label = problem_and_models()
    training, _, of_training = problem_and_models(seed=1)
    expected = numbers(y, models, weightings(label, training, of_training)[place])
    lost = ss.Outcomes([1.0, 2.0], [0, 0], [50, 50])
    together = ss.Outcomes(
        *(np.concatenate([getattr(part, name) for part in (training, lost)]) for name in ("time", "event", "censoring_time"))
    )  # fmt: skip
    for other in (-1, 0.5, 7):
        weighting = weightings(label, together, np.concatenate([of_training, [other, other]]))[place]
        np.testing.assert_allclose(numbers(y, models, weighting), expected, rtol=1e-12, atol=1e-15)

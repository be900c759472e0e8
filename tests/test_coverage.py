"""Do intervals cover, and are p-values uniform? Simulated with fixed seeds; more of it in benchmarks/coverage.py."""

import numpy as np
import pytest

import survscore as ss
from combinations import nightly_but

pytestmark = [
    pytest.mark.statistical,
    pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning"),
    pytest.mark.filterwarnings("ignore::survscore.DelayedEntryWarning"),  # by chance, in a few of many data sets
]

REPLICATES = 1000
N = 500
TIMES = np.array([1.0, 3.0, 5.0, 7.0])
WEIGHTINGS = ["administrative", ss.IPCW()]


def draw(seed, *, per_group=1):
    """Draw the survival and outcomes of individuals; members of a group share their rate and C*."""
    rng, groups = np.random.default_rng(seed), np.arange(N) // per_group
    rate, end = rng.gamma(3, 0.05, N)[groups], rng.uniform(2, 10, N)[groups]
    star = rng.exponential(1 / rate)
    return np.exp(-rate[:, None] * TIMES), ss.Outcomes(np.minimum(star, end), star <= end, end), groups, rng


def predict(S):
    """Return two wrong models: one that is too pessimistic, one that knows little more than the average."""
    return {"pessimistic": S**1.3, "average": np.exp(-0.15 * TIMES) * 0.97 + 0.02 * S}


@pytest.mark.nightly
@pytest.mark.parametrize("per_group", [1, 2])
def test_intervals_cover(per_group):
    """1 000 replicates tell 95 % to within 0.7 percentage points: 93 to 97 % are three standard errors away."""
    S = np.exp(-np.random.default_rng(0).gamma(3, 0.05, 1_000_000)[:, None] * TIMES)
    brier = [((S - pi) ** 2 + S * (1 - S)).mean(axis=0) for pi in predict(S).values()]
    difference = brier[1] - brier[0]
    means = [np.trapezoid(scores, TIMES) / (TIMES[-1] - TIMES[0]) for scores in (*brier, difference)]
    truth = np.concatenate((*brier * 2, means[:2] * 2, difference, difference, means[2:] * 2))
    covered, whole = [], []
    for seed in range(REPLICATES):
        S, y, groups, _ = draw([1, seed], per_group=per_group)
        models = {name: ss.SurvivalCurves(pi, TIMES) for name, pi in predict(S).items()}
        result = ss.compare(
            y, models, weighting=WEIGHTINGS, times=TIMES, null=False, groups=groups, ranges="any",
            reference="pessimistic",
        )  # fmt: skip
        mean = result.integrated()
        tables = [result.scores, mean.scores, result.contrasts, mean.contrasts]
        lower, upper = np.concatenate([table[["lower", "upper"]].to_numpy() for table in tables]).T
        covered.append((lower <= truth) & (truth <= upper))
        band = result.band(n_draws=1000, seed=seed)[["lower", "upper"]].to_numpy().reshape(2, TIMES.size, 2)
        whole.append(((band[..., 0] <= difference) & (difference <= band[..., 1])).all(axis=1))
    for shares in (np.mean(covered, axis=0), np.mean(whole, axis=0)):
        assert ((shares > 0.93) & (shares < 0.97)).all(), shares


@pytest.mark.parametrize("replicates", nightly_but([150], [150, REPLICATES]))
def test_p_values_are_uniform_when_both_models_are_equally_good(replicates):
    """Two models equally far from the truth, on either side of it, have the same expected Brier score."""
    p_values = []
    for seed in range(replicates):
        S, y, _, rng = draw([2, seed])
        off = 0.05 * rng.choice([-1, 1], (N, 1))
        models = {name: ss.SurvivalCurves(np.clip(S + sign * off, 0, 1), TIMES) for name, sign in (("a", 1), ("b", -1))}
        result = ss.compare(y, models, weighting=WEIGHTINGS, times=TIMES[:3], null=False)
        p_values.append(result.integrated().contrasts["p_value"])
    p = np.sort(np.array(p_values), axis=0)
    # Kolmogorov-Smirnov at the 1 % level
    distance = np.abs(p - (np.arange(replicates) + 0.5)[:, None] / replicates).max(axis=0)
    assert (distance < 1.63 / np.sqrt(replicates)).all(), distance
    rejected = (p < 0.05).mean(axis=0)
    assert (np.abs(rejected - 0.05) < 3 * np.sqrt(0.05 * 0.95 / replicates)).all(), rejected

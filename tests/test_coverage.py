"""Do intervals cover, and are p-values uniform? Simulated, with fixed seeds and the tolerances of the simulation.

With 1 000 replicates a coverage of 95 % is known to within 0.7 percentage points (one standard error), so the demanded
93 to 97 % are three standard errors away. Every interval, with more replicates, is the work of benchmarks/coverage.py.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

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
HORIZON = 5.0
Z = 1.959963984540054


def draw(rng, n, *, per_group=1):
    """Draw covariates, true survival and outcomes; members of a group share their rate and most of their luck."""
    groups = np.arange(n) // per_group
    rate = rng.gamma(3, 0.05, n)[groups]
    luck = rng.random(n) if per_group == 1 else np.where(rng.random(n) < 0.7, rng.random(n)[groups], rng.random(n))
    star = -np.log(luck) / rate
    end = rng.uniform(2, 10, n)[groups]
    return rate, ss.Outcomes(np.minimum(star, end), star <= end, end), groups


def survival(rate):
    return np.exp(-rate[:, None] * TIMES)


def predict(rate):
    """Return two wrong models: one too gloomy, one that knows only the average."""
    S = survival(rate)
    return {"gloomy": S**1.3, "average": np.broadcast_to(np.exp(-0.15 * TIMES), S.shape) * 0.97 + 0.02 * S}


def expected_brier(rate, pi):
    S = survival(rate)
    return ((S - pi) ** 2 + S * (1 - S)).mean(axis=0)


def average(scores):
    return np.trapezoid(scores, TIMES) / (TIMES[-1] - TIMES[0])


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    rate = rng.gamma(3, 0.05, 1_000_000)
    brier = {name: expected_brier(rate, pi) for name, pi in predict(rate).items()}
    happened = rng.random(rate.size) < 1 - np.exp(-rate * HORIZON)
    lost, free = -rate[happened], -rate[~happened]
    order = np.searchsorted(np.sort(free), lost)
    return {"brier": brier, "auc": 1 - order.mean() / free.size}


def one_replicate(seed, *, per_group=1):
    """Return the intervals of everything, for one simulated data set."""
    rng = np.random.default_rng([1, seed])
    rate, y, groups = draw(rng, N, per_group=per_group)
    labels = None if per_group == 1 else groups
    models = {name: ss.SurvivalCurves(pi, TIMES) for name, pi in predict(rate).items()}
    result = ss.compare(
        y, models, weighting=WEIGHTINGS, times=TIMES, reference="gloomy", groups=labels, null=False, ranges="any"
    )
    whole = result.integrated()
    one = models["gloomy"]
    auc = ss.auc(y, one, weighting="administrative", times=[HORIZON], groups=labels)
    table = [
        result.scores[["lower", "upper"]],
        whole.scores[["lower", "upper"]],
        result.contrasts[["lower", "upper"]],
        whole.contrasts[["lower", "upper"]],
    ]
    band = result.band(n_draws=1000, seed=seed) if per_group == 1 else None
    return (
        np.concatenate([part.to_numpy() for part in table]),
        (auc.lower[0], auc.upper[0]),
        None if band is None else band[["lower", "upper"]].to_numpy().reshape(2, TIMES.size, 2),
    )


def replicate(**settings):
    # a fresh interpreter per worker: no inherited threads
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(one_replicate, **settings), range(REPLICATES), chunksize=50))


def targets(truth):
    scores, contrasts = [], []
    brier = truth["brier"]
    for _ in WEIGHTINGS:
        scores += [brier["gloomy"], brier["average"]]
        contrasts += [brier["average"] - brier["gloomy"]]
    values = [np.concatenate(scores), [average(s) for s in scores]]
    values += [np.concatenate(contrasts), [average(c) for c in contrasts]]
    return np.concatenate(values)


@pytest.mark.nightly
@pytest.mark.parametrize("per_group", [1, 2])
def test_intervals_cover(truth, per_group):
    results = replicate(per_group=per_group)
    numbers = np.array([tables for tables, _, _ in results])
    covered = ((numbers[:, :, 0] <= targets(truth)) & (targets(truth) <= numbers[:, :, 1])).mean(axis=0)
    assert ((covered > 0.93) & (covered < 0.97)).all(), covered.round(3)
    aucs = np.array([auc for _, auc, _ in results])
    covered = ((aucs[:, 0] <= truth["auc"]) & (truth["auc"] <= aucs[:, 1])).mean()
    assert 0.93 < covered < 0.97
    if per_group == 1:
        difference = truth["brier"]["average"] - truth["brier"]["gloomy"]
        bands = np.array([band for _, _, band in results])
        whole = ((bands[..., 0] <= difference) & (difference <= bands[..., 1])).all(axis=2).mean(axis=0)
        assert ((whole > 0.93) & (whole < 0.97)).all(), whole


def test_ignoring_groups_covers_too_little(truth):
    """The test above could fail: without `groups` the same intervals are too short."""
    covered = []
    for seed in range(100):
        rate, y, _ = draw(np.random.default_rng([1, seed]), N, per_group=5)
        curves = ss.SurvivalCurves(predict(rate)["gloomy"], TIMES)
        curve = ss.brier_score(y, curves, weighting="administrative", times=TIMES)
        covered.append(np.abs(curve.scores - truth["brier"]["gloomy"]) <= Z * curve.se)
    assert np.mean(covered) < 0.85


@pytest.mark.parametrize("replicates", nightly_but([150], [150, REPLICATES]))
def test_p_values_are_uniform_when_both_models_are_equally_good(replicates):
    """Two models equally far from the truth, on either side of it, have the same expected Brier score."""
    p_values = []
    for seed in range(replicates):
        rng = np.random.default_rng([2, seed])
        rate, y, _ = draw(rng, N)
        S, off = survival(rate), 0.05 * rng.choice([-1, 1], (N, 1))
        models = {
            "above": ss.SurvivalCurves(np.clip(S + off, 0, 1), TIMES),
            "below": ss.SurvivalCurves(np.clip(S - off, 0, 1), TIMES),
        }
        result = ss.compare(y, models, weighting=WEIGHTINGS, times=TIMES[:3], null=False)
        p_values.append(result.integrated().contrasts["p_value"])
    p = np.sort(np.array(p_values), axis=0)
    # Kolmogorov-Smirnov at the 1 % level
    distance = np.abs(p - (np.arange(replicates) + 0.5)[:, None] / replicates).max(axis=0)
    assert (distance < 1.63 / np.sqrt(replicates)).all(), distance
    rejected = (p < 0.05).mean(axis=0)
    three_errors = 3 * np.sqrt(0.05 * 0.95 / replicates)
    assert (np.abs(rejected - 0.05) < three_errors).all(), rejected

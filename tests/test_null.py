"""The estimation of the null model's curve is part of its score's standard error, of differences to it and of skill."""

import numpy as np
import pytest

import survscore as ss
from combinations import nightly_but

N = 240
TIMES = np.arange(1.0, 8.0)
WEIGHTINGS = {
    "administrative": ss.Administrative(),
    "administrative / n": ss.Administrative(normalize="n"),
    "ipcw": ss.IPCW(),
    "ipcw capped": ss.IPCW(max_weight=1.5),
    "ipcw / n": ss.IPCW(normalize="n"),
    "uncensored in part": ss.IPCW(lambda t: 1 - t / 20),
}


def drifting(seed, *, n=N, drop_outs=False, ties=False):
    """Later starters fare worse, so that the curve of everybody is not the best constant for those counted."""
    rng = np.random.default_rng(seed)
    end = rng.uniform(2, 11, n)
    event_time = rng.exponential(1.5 + end)
    leaves = rng.exponential(25, n) if drop_outs else np.full(n, np.inf)
    if ties:
        end, event_time, leaves = (np.ceil(2 * values) / 2 for values in (end, event_time, leaves))
    time = np.minimum(np.minimum(event_time, end), leaves)
    y = ss.Outcomes(time, event_time <= np.minimum(end, leaves), end)
    survival = np.exp(-TIMES / (1.5 + end[:, None]))
    other = np.clip(survival + rng.normal(0, 0.15, (n, 1)), 0.01, 0.99)
    return y, {"a": ss.SurvivalCurves(survival, TIMES), "b": ss.SurvivalCurves(other, TIMES)}


def numbers(result):
    whole = result.integrated()
    parts = [(of.scores["score"], of.contrasts["difference"], of.skill["skill"]) for of in (result, whole)]
    return np.concatenate([values for part in parts for values in part])


def errors(result):
    whole = result.integrated()
    tables = (result.scores, result.contrasts, result.skill, whole.scores, whole.contrasts, whole.skill)
    return np.concatenate([table["se"] for table in tables])


@pytest.mark.parametrize(
    ("name", "loss"),
    nightly_but(
        [("administrative with drop-outs", "brier"), ("ipcw capped", "log")],
        [
            *((name, "brier") for name in [*WEIGHTINGS, "administrative with drop-outs"]),
            ("administrative", "log"),
            ("ipcw capped", "log"),
        ],
    ),
)
def test_standard_errors_agree_with_the_jackknife(name, loss):
    y, models = drifting(3, drop_outs=name == "administrative with drop-outs")

    def run(keep, times=TIMES):
        kept = {key: curves[keep] for key, curves in models.items()}
        weighting = WEIGHTINGS.get(name, ss.Administrative(dropout_strata=None))  # strata would be made anew
        return ss.compare(y[keep], kept, weighting=weighting, metric=loss, times=times, ranges=[(1.0, 7.0)])

    everybody = np.arange(N)
    left_out = np.array([numbers(run(np.delete(everybody, i))) for i in everybody])
    expected = np.sqrt((N - 1) / N * np.square(left_out - left_out.mean(axis=0)).sum(axis=0))
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend):
            got = errors(run(everybody))
        np.testing.assert_allclose(got, expected, rtol=0.04)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", [*WEIGHTINGS, "drop-outs"])
def test_both_ways_to_second_moments_agree(name, ties):
    y, models = drifting(4, n=400, drop_outs=name == "drop-outs", ties=ties)
    found = []
    for backend, ranges in (("numpy", "any"), ("numpy", None), ("compiled", "any"), ("compiled", None)):
        with ss.config.using(backend=backend):
            weighting = WEIGHTINGS.get(name, "administrative")
            result = ss.compare(y, models, weighting=weighting, times=TIMES, ranges=ranges, metric=["brier", "log"])
        found.append(errors(result))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_curve_of_training_data_adds_greenwoods_variance(backend):
    y, models = drifting(6)
    training, _ = drifting(7, n=60)
    with ss.config.using(backend=backend):
        result = ss.compare(y, models, weighting="administrative", times=TIMES, null=training)
        curve = ss.models.KaplanMeier().fit(None, training).predict_curves(np.zeros((N, 0))).at(TIMES)
        fixed = {**models, "known": ss.SurvivalCurves(curve, TIMES)}
        known = ss.compare(y, fixed, weighting="administrative", times=TIMES, null=False)
    survival = curve[0]
    jumps = np.unique(training.time[training.event])
    d = np.array([np.sum(training.event & (training.time == s)) for s in jumps])
    r = np.array([np.sum(training.time >= s) for s in jumps])
    greenwood = np.array([(d / (r * (r - d)))[jumps <= t].sum() for t in TIMES])
    counted = (y.censoring_time[:, None] >= TIMES).sum(axis=0)
    event_free = ((y.time[:, None] > TIMES) | ((y.time[:, None] == TIMES) & ~y.event[:, None])).sum(axis=0)
    slope = 2 * (survival - event_free / counted) * survival
    one, other = (r.scores[r.scores["model"] == m]["se"] for r, m in ((result, "Kaplan-Meier"), (known, "known")))
    np.testing.assert_allclose(one.to_numpy() ** 2 - other.to_numpy() ** 2, slope**2 * greenwood, rtol=1e-6)
    one, other = (r.contrasts[r.contrasts["model"] == m]["se"] for r, m in ((result, "Kaplan-Meier"), (known, "known")))
    np.testing.assert_allclose(one.to_numpy() ** 2 - other.to_numpy() ** 2, slope**2 * greenwood, rtol=1e-6)


@pytest.mark.parametrize("loss", [ss.Brier(), ss.Log()], ids=str)
def test_exact_slopes_are_the_limits_of_differences(loss):
    survival = np.array([0.02, 0.3, 0.5, 0.9])
    for exact, numerical in zip(loss.slopes(survival), ss.Loss.slopes(loss, survival), strict=True):
        np.testing.assert_allclose(exact, numerical, rtol=1e-6)


def test_a_clipped_probability_has_no_slope():
    assert [slope.tolist() for slope in ss.Log(0.1).slopes(np.array([0.05, 0.99]))] == [[0.0, 0.0], [0.0, 0.0]]

"""Multi-class scores under competing risks: a sum over statuses, event-free and each cause."""

import itertools
import math

import numpy as np
import pytest

import oracle
import survscore as ss
from combinations import every_pair
from survscore.engine.sensitivity import THETAS

TIMES = np.array([1.0, 2.0, 4.0, 6.0])
CAUSES = ("default", "repayment")
WEIGHTINGS = {
    "administrative": "administrative",
    "ipcw": "ipcw",
    "projected": ss.Projected(strata=None, min_followed=1),
}


def study(n=60, seed=0, *, dropouts=False, K=2):
    """Return outcomes on whole days, with ties, and incidences of two models."""
    rng = np.random.default_rng(seed)
    event_time = np.ceil(rng.exponential(5.0, n))
    end = np.ceil(rng.uniform(3.0, 10.0, n))
    left = np.where(rng.random(n) < 0.25, np.ceil(rng.exponential(4.0, n)), np.inf) if dropouts else np.inf
    time = np.minimum(np.minimum(event_time, end), left)
    cause = np.where(event_time <= time, rng.integers(1, K + 1, n), 0)
    y = ss.Outcomes(time, cause, end, causes=CAUSES[:K])
    models = {name: incidences(rng, n, K) for name in ("a", "b")}
    return y, models


def incidences(rng, n, K=2):
    rate = rng.gamma(3.0, 0.03, (n, K, 1))
    total = rate.sum(axis=1, keepdims=True)
    return ss.IncidenceCurves(rate / total * (1 - np.exp(-total * TIMES)), TIMES, causes=CAUSES[:K])


def statuses(y, t):
    """Return each individual's status at t, as the codes of causes: literally, without drop-outs."""
    return [
        [float(k == (cause if T <= t else 0)) for k in range(len(y.causes) + 1)]
        for T, cause in zip(y.time, y.cause, strict=True)
    ]


def aalen_johansen(y, theta=1.0):
    """Return S and the incidences as functions of time, with all hazards theta times as high."""
    jumps, S, F = [], 1.0, [0.0] * len(y.causes)
    for s in sorted(set(y.time[y.event])):
        at_risk = sum(T >= s for T in y.time)
        codes = range(1, len(y.causes) + 1)
        d = [sum(T == s and cause == k for T, cause in zip(y.time, y.cause, strict=True)) for k in codes]
        stays = (1 - sum(d) / at_risk) ** theta
        F = [f + S * (1 - stays) * dk / sum(d) for f, dk in zip(F, d, strict=True)]
        S *= stays
        jumps.append((s, S, F))

    def at(t):
        return next(((S, F) for s, S, F in reversed(jumps) if s <= t), (1.0, [0.0] * len(y.causes)))

    return at


def literal(metric, weighting, y, curves, t, theta=1.0):
    """Return a multi-class score, one individual and one status at a time."""
    p = np.concatenate((curves.event_free().at([t])[:, None], curves.at([t])), axis=1)[:, :, 0]
    known, at = statuses(y, t), aalen_johansen(y, theta)
    G, G_before = oracle.product_limit(list(y.time), list(~y.event))
    Gd, Gd_before = oracle.product_limit(list(y.time), list(y.dropped_out))
    total = weights = 0.0
    for i in range(len(y)):
        T, D, C = y.time[i], y.event[i], y.censoring_time[i]
        status, w = known[i], 1.0
        if weighting == "ipcw":
            w = 1 / G_before(T) if D and T <= t else 1 / G(t) if T > t else 0.0
        elif weighting == "administrative":
            if D and T <= t:
                w = 1 / Gd_before(T)
            elif T > t:
                w = 1 / Gd(t)
            else:
                w = 1 / Gd_before(t) if T == t == C else 0.0
            w *= C >= t
        elif not D and T < t:
            (S, F), (Sc, Fc) = at(t), at(T)
            status = [S / Sc, *((f - fc) / Sc for f, fc in zip(F, Fc, strict=True))]
        if metric == "brier":
            binary = [q * (1 - p_k) ** 2 + (1 - q) * p_k**2 for q, p_k in zip(status, p[i], strict=True)]
            total += w * sum(binary)
        else:
            total -= w * sum(q * math.log(p_k) for q, p_k in zip(status, p[i], strict=True))
        weights += w
    return total / weights


@every_pair(dropouts=[False, True], weighting=WEIGHTINGS, metric=["brier", "log"])
def test_scores_are_sums_over_statuses(metric, weighting, dropouts):
    y, models = study(dropouts=dropouts)
    given = ss.Administrative(dropout_strata=None) if weighting == "administrative" else WEIGHTINGS[weighting]
    score = ss.score_all(y, models["a"], metric=metric, weighting=given, times=TIMES, cause="all")[0]
    expected = [literal(metric, weighting, y, models["a"], t) for t in TIMES]
    np.testing.assert_allclose(score.scores, expected, rtol=1e-12)
    assert score.settings["cause"] == "all"


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("metric", ["brier", "log"])
def test_standard_errors_agree_with_the_jackknife(metric, weighting):
    n = 240
    y, models = study(n, seed=3, dropouts=True)
    labels = np.arange(n) % 2

    def scored(rows):
        # strata stay as they are when an individual is left out
        given = {
            "administrative": ss.Administrative(dropout_strata=labels[rows]),
            "ipcw": "ipcw",
            "projected": ss.Projected(strata=labels[rows]),
        }[weighting]
        some = {name: curves[rows] for name, curves in models.items()}
        return ss.compare(y[rows], some, weighting=given, metric=metric, times=TIMES[1:3], cause="all").scored[0]

    whole = scored(np.arange(n))
    replicates = np.array([scored(np.delete(np.arange(n), i)).scores for i in range(n)])  # (n, models, times)
    for a, b in [(0, 0), (1, 1), (0, 1), (2, 2), (0, 2)]:
        values = replicates[:, a] - (0 if a == b else replicates[:, b])
        jackknife = np.sqrt((n - 1) / n * np.square(values - values.mean(axis=0)).sum(axis=0))
        np.testing.assert_allclose(np.sqrt(whole.moments.variance(a, b)), jackknife, rtol=0.03)


def test_comparisons_groups_segments_and_means_over_time():
    y, models = study(200, seed=5)
    given = {"times": TIMES[:3], "groups": np.arange(200) // 2}
    result = ss.compare(y, models, cause="all", ranges=[(1, 4)], **given)
    assert result.models == ("a", "b", "Aalen-Johansen")
    any_event = ss.compare(
        y.any_event(), {name: c.event_free() for name, c in models.items()}, times=TIMES[:3], null=False
    )
    terms = [any_event, *(ss.compare(y, models, cause=k, null=False, **given) for k in (1, 2))]
    np.testing.assert_allclose(result.scored[0].scores[:2], sum(one.scored[0].scores for one in terms), rtol=1e-12)
    assert np.isfinite(result.integrated(1, 4).to_frame()["se"]).all()
    given = {"times": TIMES[:2], "cause": "all", "weighting": "ipcw"}
    segments = ss.compare(y, models, by={"half": np.arange(200) % 2}, **given)
    part = ss.compare(y[::2], {name: c[np.arange(0, 200, 2)] for name, c in models.items()}, **given)
    np.testing.assert_allclose(segments.parts["0",].scored[0].scores, part.scored[0].scores, rtol=1e-12)


def test_parts_of_projected_scores_add_up():
    y, models = study(200, seed=6)
    (brier, _) = ss.score_all(y, models["a"], weighting="projected", times=TIMES[:3], cause="all")
    parts = brier.parts
    projected = parts.projected.fillna(0.0)  # of nobody
    together = parts.share_observed * parts.observed + (1 - parts.share_observed) * projected
    np.testing.assert_allclose(together, brier.scores, rtol=1e-12)
    (observed, _) = ss.score_all(y, models["a"], weighting="administrative", times=TIMES[:3], cause="all")
    np.testing.assert_allclose(parts.observed, observed.scores, rtol=1e-12)


@pytest.mark.parametrize("metric", ["brier", "log"])
def test_sensitivity_is_to_the_hazards_of_all_causes(metric):
    y, models = study(60, seed=5, dropouts=True)
    given = {"metric": metric, "weighting": ["administrative", WEIGHTINGS["projected"]], "times": [2, 4]}
    result = ss.compare(y, models, cause="all", **given)
    by_theta = result.scored[1].by_theta
    for k in (0, 10, 16, 25):  # further out, differences of the literal incidences have lost their digits
        theta = float(THETAS[k])
        for a, curves in enumerate(models.values()):
            expected = [literal(metric, "projected", y, curves, t, theta) for t in (2, 4)]
            np.testing.assert_allclose(by_theta.scores[a, :, k], expected, rtol=1e-10)
    assert "hazard of each cause" in str(result.sensitivity())
    assert "multi-class" in str(result.recommendation())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, m: ss.auc(y, m["a"], weighting="ipcw", cause="all"), "'auc' has no multi-class form"),
        (lambda y, m: ss.diagnose(y, m, cause="all"), "one cause at a time"),
        (
            lambda y, m: ss.brier_score(y, m["a"].for_cause(1), weighting="ipcw", cause="all"),
            "must be IncidenceCurves, of all causes, for cause='all', not SurvivalCurves",
        ),
        (
            lambda y, m: ss.brier_score(y, m["a"], weighting=ss.Projected(theta=2), cause="all"),
            "theta is not available for cause='all'",
        ),
    ],
)
def test_what_has_no_multiclass_form_says_so(call, message):
    y, models = study()
    with pytest.raises(ss.InputError, match=message):
        call(y, models)


@pytest.mark.parametrize("metric", ["brier", "log"])
def test_backends_agree(metric):
    y, models = study(3000, seed=8, dropouts=True)
    given = {"metric": metric, "times": TIMES, "cause": "all", "weighting": ["administrative", "ipcw", "projected"]}
    found = {}
    for backend in ("numpy", "compiled"):
        with ss.config.using(backend=backend):
            found[backend] = ss.compare(y, models, **given)
    for one, other in zip(found["numpy"].scored, found["compiled"].scored, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-11)
        np.testing.assert_allclose(one.moments.pointwise, other.moments.pointwise, rtol=1e-9)


@pytest.mark.parametrize("metric", ["brier", "log"])
def test_bounds_hold_over_everything_that_can_have_happened_to_the_lost(metric):
    y, models = study(14, seed=14, dropouts=True)
    lost = np.flatnonzero(y.dropped_out)
    assert 2 <= lost.size <= 5
    (score,) = ss.score_all(y, models["a"], metric=metric, weighting="administrative", times=[2, 4], cause="all")
    found = []
    for causes in itertools.product([0, 1, 2], repeat=lost.size):
        time, cause = y.time.copy(), y.cause.copy()
        # an event right after leaving, or none until C*
        time[lost] = np.where(np.array(causes) > 0, y.time[lost] + 1e-9, y.censoring_time[lost])
        cause[lost] = causes
        known = ss.Outcomes(time, cause, y.censoring_time, causes=CAUSES)
        (full,) = ss.score_all(known, models["a"], metric=metric, weighting="administrative", times=[2, 4], cause="all")
        found.append(full.scores)
    np.testing.assert_allclose(score.bounds.lower, np.min(found, axis=0), rtol=1e-10)
    np.testing.assert_allclose(score.bounds.upper, np.max(found, axis=0), rtol=1e-10)
    # each has one event time for all times: the mean's bounds are no wider than the mean of the bounds
    low, high = score.integrated().bounds
    assert score.bounds.lower.mean() - 1e-12 <= low <= high <= score.bounds.upper.mean() + 1e-12

"""Coverage of scores of one of two causes: their data, what intervals should hold, and what is counted."""

from __future__ import annotations

from functools import cache

import numpy as np

import survscore as ss
from coverage_designs import DROP_OUT, HORIZONS, LONG, SHORT, Array, Setting, mixture
from coverage_kinds import LEVEL, Found, _of_table
from coverage_truths import Truth, _auc, _brier, _log, _mean, covariates
from survscore.results.estimates import Estimates

#: Hazards of the two causes, which the covariate moves in opposite directions.
RATES, SLOPES = np.array([0.09, 0.07]), np.array([0.8, -0.4])
METRICS = ("brier", "log", "auc", "auc@event-free", "oe")


def incidences(x: Array, times: Array) -> Array:
    """Return the true cumulative incidences of both causes, (individuals, causes, times)."""
    hazards = RATES * np.exp(SLOPES * x[:, None])
    total = hazards.sum(axis=1)
    return np.asarray((hazards / total[:, None])[:, :, None] * (1 - np.exp(-total[:, None] * times))[:, None])


def draw(setting: Setting, rng: np.random.Generator) -> tuple[Array, Array, ss.Outcomes]:
    """Return the covariate, noise, and outcomes; C* says nothing about the risk."""
    n = setting.n
    x, noise = rng.standard_normal((2, n))
    hazards = RATES * np.exp(SLOPES * x[:, None])
    total = hazards.sum(axis=1)
    event_time, cause = rng.exponential(1 / total), 1 + (rng.random(n) > hazards[:, 0] / total)
    end = rng.uniform(SHORT, LONG, n)
    left = rng.exponential(1 / DROP_OUT, n) if setting.drop_outs else np.full(n, np.inf)
    observed = event_time <= np.minimum(end, left)
    time = np.minimum(np.minimum(event_time, end), left)
    return x, noise, ss.Outcomes(time, cause * observed, end, causes=["first", "second"])


def models(x: Array, noise: Array) -> dict[str, Array]:
    """Return the probabilities of no event of the first cause by a right model, a pessimistic and a noisy one."""
    right = 1 - incidences(x, HORIZONS)[:, 0]
    return {"right": right, "gloomy": right**1.3, "noisy": 1 - incidences(mixture(x, noise), HORIZONS)[:, 0]}


@cache
def truth() -> Truth:
    """Return what the metrics of the first cause come to at the horizons."""
    x, noise = covariates()
    both = incidences(x, HORIZONS)
    free, every = 1 - both[:, 0], np.ones((x.size, HORIZONS.size))
    found: Truth = {name: {} for name in METRICS}
    for model, p in models(x, noise).items():
        found["brier"][model], found["log"][model] = _brier(free, p, every), _log(free, p, every)
        found["auc"][model] = _auc(free, p, every)
        found["auc@event-free"][model] = _against_event_free(both, p)
        found["oe"][model] = _mean(1 - free, every) / _mean(1 - p, every)
    return found


def _against_event_free(both: Array, p: Array) -> Array:
    found = []
    for j in range(p.shape[1]):
        order = np.argsort(p[:, j])
        case, control = both[order, 0, j], (1 - both.sum(axis=1))[order, j]
        found.append((np.cumsum(case) - case / 2) @ control / (case.sum() * control.sum()))
    return np.array(found)


@cache
def truth_of_all_causes() -> Truth:
    """Return the multi-class scores at the horizons."""
    x, noise = covariates()
    every = np.ones((x.size, HORIZONS.size))
    status = _with_event_free(incidences(x, HORIZONS))
    found: Truth = {"brier": {}, "log": {}}
    for model, covariate in (("right", x), ("noisy", mixture(x, noise))):
        p = _with_event_free(incidences(covariate, HORIZONS))
        found["brier"][model] = _mean((status * (1 - p) ** 2 + (1 - status) * p**2).sum(axis=1), every)
        # clipped as the library does
        found["log"][model] = _mean(-(status * np.log(p.clip(1e-7, 1 - 1e-7))).sum(axis=1), every)
    return found


def _with_event_free(causes: Array) -> Array:
    return np.concatenate((1 - causes.sum(axis=1, keepdims=True), causes), axis=1)


def of_all_causes(seed: int, setting: Setting) -> Found:
    """Count the intervals of multi-class scores, of one model, and of the difference of two."""
    x, noise, y = draw(setting, np.random.default_rng([seed, setting.n, 37]))
    curves = {
        name: ss.IncidenceCurves(incidences(covariate, HORIZONS), HORIZONS, causes=y.causes)
        for name, covariate in (("right", x), ("noisy", mixture(x, noise)))
    }
    result = ss.compare(
        y, curves, metric=["brier", "log"], weighting=_weighting(setting), times=HORIZONS, null=False, cause="all"
    )
    found, halves = Found(), np.full(HORIZONS.size, 1 / HORIZONS.size)
    for one in result.scored:
        noisy, right = (truth_of_all_causes()[one.metric][model] for model in ("noisy", "right"))
        for place, weights in (("at a time", None), ("mean over time", halves)):
            estimates = Estimates(one, LEVEL, weights)
            targets = [target if weights is None else np.atleast_1d(target.mean()) for target in (noisy, noisy - right)]
            found[f"{one.metric}: one model, {place}"] = _of_table(estimates.score(1), targets[0])
            found[f"{one.metric}: difference, {place}"] = _of_table(estimates.difference(1, 0), targets[1])
    return found


def _weighting(setting: Setting) -> str:
    if setting.weighting == "ipcw":
        return "ipcw"
    return "projected" if "projected" in setting.weighting else "administrative"


def of_a_cause(seed: int, setting: Setting) -> Found:
    """Count the intervals of scores of the first cause, of one model, and of differences of two."""
    rng = np.random.default_rng([seed, setting.n, 31])
    x, noise, y = draw(setting, rng)
    curves = {name: ss.SurvivalCurves(p, HORIZONS) for name, p in models(x, noise).items()}
    result = ss.compare(
        y, curves, metric=list(METRICS), weighting=_weighting(setting), times=HORIZONS, null=False, cause="first"
    )
    expected, found = truth(), Found()
    halves = np.full(HORIZONS.size, 1 / HORIZONS.size)
    for one in result.scored:
        values = expected[one.metric]
        of = Estimates(one, LEVEL), Estimates(one, LEVEL, halves)
        for place, estimates, average in (("at a time", of[0], False), ("mean over time", of[1], True)):
            targets = [values["noisy"], values["noisy"] - values["right"], values["gloomy"] - values["right"]]
            targets = [np.atleast_1d(target.mean()) if average else target for target in targets]
            found[f"{one.metric}: one model, {place}"] = _of_table(estimates.score(2), targets[0])
            found[f"{one.metric}: difference, {place}"] = _of_table(estimates.difference(2, 0), targets[1])
            if one.metric in ("brier", "log", "oe"):  # the others order individuals alike
                of_alike = _of_table(estimates.difference(1, 0), targets[2])
                found[f"{one.metric}: difference, same order, {place}"] = of_alike
    return found

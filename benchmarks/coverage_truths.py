"""What intervals should hold: by formula, on points of a lattice that stand for all covariates.

Given covariates, every probability is known, so nothing is simulated. A lattice of 32 768 points is even: means over it
are good to 1e-4, where standard errors of the data sets are a hundred times as large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from coverage_designs import (
    DROP_OUT,
    GRID,
    HORIZONS,
    RATES,
    SPREAD,
    TIMES,
    Array,
    Setting,
    followed,
    mixture,
    ordered_alike,
    ordered_otherwise,
    survival,
)

POINTS = 1 << 15
FINER = 8  # steps of integrals over time within an interval of the grid
CONCORDANCES = ("concordance", "concordance (pooled)", "concordance (weighted)", "concordance (harrell)")
THRESHOLDS = (0.1, 0.3, 0.6)
DECISION_THRESHOLDS = np.arange(1, 15) * 0.05

Truth = dict[str, dict[str, Array]]


@cache
def covariates() -> tuple[Array, Array]:
    """Return pairs of independent standard normal numbers, evenly spread."""
    generalised_golden_ratio = 1.32471795724474602596
    k = np.arange(1, POINTS + 1)
    even = [(0.5 + k / generalised_golden_ratio**power) % 1.0 for power in (1, 2)]
    normal = NormalDist().inv_cdf
    first, second = (np.array([normal(float(u)) for u in some]) for some in even)
    return first, second


def mean_over(times: Array, values: Array) -> Array:
    """Return the mean over time, as `integrated` takes it."""
    return np.atleast_1d(np.trapezoid(values, times) / (times[-1] - times[0]))


@cache
def of_losses(events: str) -> Truth:
    """Return the expected scores of both models that order alike, the best constant's, and the AUC."""
    x = covariates()[0]
    S, found = survival(x, events, TIMES), ordered_alike(x, events)
    found["constant"] = np.broadcast_to(S.mean(axis=0), S.shape)
    every = np.ones_like(S)
    truth: Truth = {name: {model: of(S, p, every) for model, p in found.items()} for name, of in LOSSES.items()}
    truth["auc"] = dict.fromkeys(found, _auc(S, found["gloomy"], every))
    return truth


def _mean(values: Array, weight: Array) -> Array:
    return np.asarray((weight * values).sum(axis=0) / weight.sum(axis=0))


def _brier(S: Array, p: Array, weight: Array) -> Array:
    return _mean(S * (1 - p) ** 2 + (1 - S) * p**2, weight)


def _log(S: Array, p: Array, weight: Array) -> Array:
    return _mean(-(S * np.log(p) + (1 - S) * np.log1p(-p)), weight)


def _auc(S: Array, p: Array, weight: Array) -> Array:
    found = []
    for j in range(S.shape[1]):
        order = np.argsort(p[:, j])  # from high risk to low: cases before controls are ordered right
        case, control = (weight * (1 - S))[order, j], (weight * S)[order, j]
        found.append((np.cumsum(case) - case / 2) @ control / (case.sum() * control.sum()))
    return np.array(found)


LOSSES: dict[str, Callable[[Array, Array, Array], Array]] = {"brier": _brier, "log": _log}


def of_metrics(setting: Setting) -> Truth:
    """Return what metrics of the three models that order otherwise come to at the horizons."""
    return _of_metrics(_design(setting))


def _design(setting: Setting) -> Setting:
    """Return what the truth depends on: how many there are, and who belongs together, is no part of it."""
    return replace(setting, n=0, n_groups=0, sizes="equal")


@cache
def _of_metrics(setting: Setting) -> Truth:
    x, noise = covariates()
    events, telling = setting.events, setting.telling
    S = survival(x, events, HORIZONS)
    weight = np.ones_like(S) if setting.weighting == "ipcw" else followed(x, HORIZONS, telling=telling)
    models = ordered_otherwise(x, noise, events, HORIZONS)
    whole = ordered_otherwise(x, noise, events, GRID)
    truth: Truth = {name: {} for name in ("auc", "oe", "slope", "in_the_large", "miscalibration", "ici", "e50", "e90")}
    for name, of in LOSSES.items():
        truth[name] = {model: of(S, p, weight) for model, p in models.items()}
    for model, p in models.items():
        truth["auc"][model] = _auc(S, p, weight)
        truth["oe"][model] = _mean(1 - S, weight) / _mean(1 - p, weight)
        lines = [_line(1 - S[:, j], 1 - p[:, j], weight[:, j]) for j in range(HORIZONS.size)]
        truth["in_the_large"][model], truth["slope"][model] = np.array(lines).T
        distance = np.abs(observed_risk(model, setting) - (1 - p))
        truth["miscalibration"][model] = _mean(distance**2, weight)
        truth["ici"][model] = _mean(distance, weight)
        for name, share in (("e50", 0.5), ("e90", 0.9)):
            truth[name][model] = _quantile(distance, weight, share)
    for z in THRESHOLDS:
        truth[f"net_benefit@{z:g}"] = {model: _net_benefit(S, p, weight, z) for model, p in models.items()}
    for kind in CONCORDANCES:
        truth[kind] = {model: _concordance(kind, models[model][:, 0], setting) for model in ("gloomy", "noisy")}
        truth[kind]["right"] = truth[kind]["gloomy"]
    truth["concordance (antolini)"] = truth["concordance"]  # the curves of none of the models cross
    with_null = {**whole, "Kaplan-Meier": np.broadcast_to(_kaplan_meier(setting), whole["right"].shape)}
    truth["crps"] = {model: _crps(values, setting) for model, values in with_null.items()}
    truth["log_score"] = {model: _log_score(values, setting) for model, values in whole.items()}
    return truth


def of_decisions(setting: Setting) -> dict[str, Array]:
    """Return the net benefit of the three models and of acting on everybody, over thresholds, at the first horizon."""
    return _of_decisions(_design(setting))


@cache
def _of_decisions(setting: Setting) -> dict[str, Array]:
    x, noise = covariates()
    times = HORIZONS[:1]
    S = survival(x, setting.events, times)
    weight = np.ones_like(S) if setting.weighting == "ipcw" else followed(x, times, telling=setting.telling)
    models = {**ordered_otherwise(x, noise, setting.events, times), "treat all": np.zeros_like(S)}
    return {
        model: np.array([_net_benefit(S, p, weight, z)[0] for z in DECISION_THRESHOLDS]) for model, p in models.items()
    }


def observed_risk(model: str, setting: Setting) -> Array:
    """Return the true share with event among those who are given the same risk as each."""
    x, noise = covariates()
    if model != "noisy":
        return 1 - survival(x, setting.events, HORIZONS)
    # the covariate given its mixture with noise is normal
    mixed = mixture(x, noise)
    slope, spread = 0.7 / (0.7**2 + 0.5**2), 0.5 / np.sqrt(0.7**2 + 0.5**2)
    seen = np.linspace(mixed.min(), mixed.max(), 400)
    steps = np.linspace(-8, 8, 1601)
    given = (slope * seen[:, None] + spread * steps).ravel()
    S = survival(given, setting.events, HORIZONS)
    counted = np.ones_like(S) if setting.weighting == "ipcw" else followed(given, HORIZONS, telling=setting.telling)
    density = (np.exp(-0.5 * np.tile(steps, seen.size) ** 2)[:, None] * counted).reshape(seen.size, steps.size, -1)
    share = ((1 - S).reshape(density.shape) * density).sum(axis=1) / density.sum(axis=1)
    return np.column_stack([np.interp(mixed, seen, share[:, j]) for j in range(HORIZONS.size)])


def _line(risk: Array, predicted: Array, weight: Array) -> tuple[float, float]:
    """Return calibration in the large, and the calibration slope: the limits of logistic regressions."""
    clipped = np.clip(predicted, 1e-7, 1 - 1e-7)
    z = np.log(clipped / (1 - clipped))

    def newton(design: Array, offset: Array) -> Array:
        beta = np.zeros(design.shape[1])
        for _ in range(50):
            mu = 1 / (1 + np.exp(-(design @ beta + offset)))
            hessian = (design * (weight * mu * (1 - mu))[:, None]).T @ design
            beta = beta + np.linalg.solve(hessian, design.T @ (weight * (risk - mu)))
        return beta

    ones = np.ones((z.size, 1))
    return float(newton(ones, z)[0]), float(newton(np.column_stack((ones, z)), np.zeros(z.size))[1])


def _quantile(values: Array, weight: Array, share: float) -> Array:
    found = []
    for j in range(values.shape[1]):
        order = np.argsort(values[:, j])
        passed = np.cumsum(weight[order, j]) / weight[:, j].sum()
        found.append(values[order[np.searchsorted(passed, share)], j])
    return np.array(found)


def _net_benefit(S: Array, p: Array, weight: Array, z: float) -> Array:
    return _mean(np.where(1 - p >= z, (1 - S) - S * z / (1 - z), 0.0), weight)


def _concordance(kind: str, p: Array, setting: Setting) -> Array:
    """Return P(ordered right | one event by tau comes first), for the pairs that each kind speaks of."""
    x, _ = covariates()
    order = np.argsort(p)  # from high risk to low
    x = x[order]
    hazard = RATES[setting.events] * np.exp(SPREAD * x)
    steps = np.linspace(0, HORIZONS[-1], 49)
    middles = (steps[:-1] + steps[1:]) / 2
    S = survival(x, setting.events, middles)
    found = []
    for tau in HORIZONS:
        right, every = 0.0, 0.0
        for k in np.flatnonzero(middles < tau):
            member, pair = np.ones(x.size), 1.0
            until = tau if kind == "concordance" else middles[k]
            if kind == "concordance (harrell)" or (setting.weighting != "ipcw" and kind != "concordance (weighted)"):
                member = followed(x, np.array([until]), telling=setting.telling)[:, 0]
            if kind == "concordance (pooled)":
                pair = member.mean() ** -2
            elif kind == "concordance (harrell)" and setting.drop_outs:
                pair = np.exp(-2 * DROP_OUT * middles[k])
            case, control = member * hazard * S[:, k], member * S[:, k]
            right += pair * ((np.cumsum(case) - case / 2) @ control)
            every += pair * case.sum() * control.sum()
        found.append(right / every)
    return np.array(found)


@cache
def _fine() -> tuple[Array, Array, Array]:
    """Return steps within the intervals of the grid, their middles, and the interval of each."""
    knots = np.concatenate(([0.0], GRID))
    steps = np.concatenate([np.linspace(a, b, FINER + 1)[:-1] for a, b in pairwise(knots)])
    steps = np.append(steps, knots[-1])
    return steps, (steps[:-1] + steps[1:]) / 2, np.repeat(np.arange(GRID.size), FINER)


def _linear(values: Array, times: Array) -> Array:
    """Read curves on the grid at other times."""
    knots, values = np.concatenate(([0.0], GRID)), np.column_stack((np.ones(len(values)), values))
    upper = np.clip(np.searchsorted(knots, times), 1, GRID.size)
    share = (times - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    return np.asarray((1 - share) * values[:, upper - 1] + share * values[:, upper])


def _kaplan_meier(setting: Setting) -> Array:
    """Return the limit of the Kaplan-Meier curve at the grid: by the hazard of those who are still followed."""
    steps, middles, _ = _fine()
    x, _ = covariates()
    there = survival(x, setting.events, middles) * followed(x, middles, telling=setting.telling)
    hazard = _mean((RATES[setting.events] * np.exp(SPREAD * x))[:, None] * np.ones_like(there), there)
    return np.exp(-np.cumsum(hazard * np.diff(steps)))[FINER - 1 :: FINER]


def _crps(values: Array, setting: Setting) -> Array:
    steps, middles, _ = _fine()
    x, _ = covariates()
    S, p = survival(x, setting.events, middles), _linear(values, middles)
    weight = np.ones_like(S) if setting.weighting == "ipcw" else followed(x, middles, telling=setting.telling)
    loss = (weight * (S * (1 - p) ** 2 + (1 - S) * p**2)).mean(axis=0) * np.diff(steps)
    length = weight.mean(axis=0) * np.diff(steps)
    return np.array([loss[middles < tau].sum() / length[middles < tau].sum() for tau in HORIZONS])


def _log_score(values: Array, setting: Setting) -> Array:
    steps, middles, interval = _fine()
    x, _ = covariates()
    S = survival(x, setting.events, middles)
    stays = followed(x, steps, telling=setting.telling)
    if setting.drop_outs:
        stays = stays * np.exp(-DROP_OUT * steps)
    hazard = RATES[setting.events] * np.exp(SPREAD * x)[:, None]
    knots = np.concatenate(([0.0], GRID))
    density = -np.diff(np.column_stack((np.ones(len(values)), values)), axis=1) / np.diff(knots)
    with_event = hazard * S * (stays[:, :-1] + stays[:, 1:]) / 2 * np.diff(steps) * -np.log(density[:, interval])
    without = S * (stays[:, :-1] - stays[:, 1:]) * -np.log(_linear(values, middles))
    found = []
    for tau in HORIZONS:
        at = np.array([tau])
        last = survival(x, setting.events, at) * stays[:, np.searchsorted(steps, at)] * -np.log(_linear(values, at))
        found.append(float((with_event + without)[:, middles < tau].sum(axis=1).mean() + last.mean()))
    return np.array(found)

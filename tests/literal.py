"""Variances as the oracle has them: sums of squares of derivatives by how often each individual counts."""

from dataclasses import replace

import numpy as np

import oracle
from registry import ASKED

STEP = 1e-30  # of complex derivatives, which lose no digits


def masses(y):
    """How often each individual counts."""
    return [1.0] * len(y) if y.weights is None else list(y.weights)


def derivatives(function, mass):
    """Return by how much functions of how often each individual counts move with each of these numbers, times it."""
    found = []
    for i, own in enumerate(mass):
        moved = list(mass)
        moved[i] = own + own * STEP * 1j
        found.append(np.asarray(function(moved)).imag / STEP)
    return np.array(found)


def curve_errors(case, problem, pi, t):
    """Everybody's influence on the calibration curve at each risk, times the root of that one's share of the weights.

    For the individuals that are scored times the root of n/(n - 1), and below them for those of the training data:
    so the sum of all squares is the mean variance of the curve. Zero without a curve.
    """
    weighted = case.weights(problem, t)
    weight, event, risk = oracle.counted(weighted, pi)
    if oracle.smooth_curve(weight, event, risk) is None:
        return np.zeros((len(problem.y) + len(problem.training), 1))
    share = np.sqrt(np.array(weight) / sum(weight))

    def curve(mass, training_mass):
        return share * oracle.smooth_curve(*oracle.counted(case.weights(problem, t, mass, training_mass), pi, mass))

    n, whole, of_training = sum(weighted[1]), masses(problem.y), masses(problem.training)
    here = derivatives(lambda mass: curve(mass, of_training), whole) * np.sqrt(n / (n - 1))
    return np.concatenate((here, derivatives(lambda mass: curve(whole, mass), of_training)))


def value(metric, case, problem, t):
    """The metric; of miscalibration, with the mean variance of the curve taken off."""
    weighted = case.weights(problem, t)
    found = oracle.metric(metric, weighted, problem.pi(t), by_n=case.by_n)
    if metric == "miscalibration" and weighted is not None:
        found = found - np.sum(np.square(curve_errors(case, problem, problem.pi(t), t)))
    return found.real


def variances(case, problem, metric, models):
    """Return the variances of all models' scores and of all differences, literally: sums of squared derivatives.

    For the individuals that are scored with the correction n/(n - 1), or for AUC of whole statuses with DeLong's, and
    with the jackknife's for each one's share of sample weights; for those of the training data, where G comes from
    them, without. What comes on top is in `added`.
    """
    whole, of_training = masses(problem.y), masses(problem.training)
    problem = replace(problem, y=problem.y.weighted(None), training=problem.training.weighted(None))

    def scores(mass, training_mass, weights_of=None):
        found = []
        for t in problem.times:
            weighted = case.weights(problem, t, *(weights_of or (mass, training_mass)))
            found.append([oracle.metric(metric, weighted, model.pi(t), mass, by_n=case.by_n) for model in models])
        return found

    here = derivatives(lambda mass: scores(mass, of_training), whole)
    there = derivatives(lambda mass: scores(whole, mass), of_training)
    held = derivatives(lambda mass: scores(mass, None, (whole, of_training)), whole) if metric == "auc" else here
    n_models, result = len(models), {}
    for a in range(n_models):
        for b in range(a, n_models):
            contrasts = [d[..., a] - (d[..., b] if a != b else 0.0) for d in (here, there, held)]
            variance = []
            for j, t in enumerate(problem.times):
                weighted = case.weights(problem, t, whole, of_training)
                if weighted is None:
                    variance.append(np.nan)
                    continue
                phi, other, e = (d[:, j] for d in contrasts)
                if metric == "auc" and not case.projects:
                    total = np.sum(phi**2)
                    for status in (False, True):
                        rows = [i for i, (_, free) in enumerate(weighted[0]) if free is status]
                        total += np.sum(e[rows] ** 2) / (len(rows) - 1) if len(rows) > 1 else np.nan
                else:
                    total = jackknife(phi, whole, weighted[1])
                variance.append(
                    total + np.sum(other**2) + added(metric, case, problem, t, models[a], models[b], a == b)
                )
            result[a, b] = np.array(variance)
    return result


def jackknife(phi, mass, inside):
    """The variance that the jackknife makes of derivatives; `inside`: who belongs to the population."""
    n, total = sum(inside), sum(m for m, belongs in zip(mass, inside, strict=True) if belongs)
    if n < 2:
        return np.nan
    factor = [(1 - 1 / n) / (1 - m / total) if belongs else 1.0 for m, belongs in zip(mass, inside, strict=True)]
    return n / (n - 1) * np.sum((factor * phi) ** 2)


def added(metric, case, problem, t, model, other, same):
    """What variances have beside squared derivatives."""
    if metric == "net_benefit" and not same:
        threshold = ASKED[metric].threshold
        weights = sum(weight for weight, free in case.weights(problem, t)[0] if free is not None)
        return (1 + (threshold / (1 - threshold)) ** 2) / weights**2 if weights else np.nan
    if metric == "miscalibration":
        x, y = (curve_errors(case, problem, one.pi(t), t) for one in (model, other))
        own, others, common = (np.sum(np.square(p.T @ q)) for p, q in ((x, x), (y, y), (x, y)))
        return 2 * own if same else 2 * own + 2 * others - 4 * common
    return 0.0

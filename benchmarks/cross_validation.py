"""What the intervals of `cross_validate` cover: the models that were fitted, or the mean of the procedure.

Two logistic models of the status at one horizon, with one covariate that matters, and with seven more that do not, are
compared by cross-validation of 200 individuals. The true difference is computed on 40 000 others: of the five fits of
each replicate (conditional), and its mean over replicates (procedure). As a control, one fit to 160 individuals is
scored on 200 fresh ones.

    python benchmarks/cross_validation.py --replicates 300
"""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import survscore as ss

HORIZON = 3.0
SETTINGS = {"weighting": "administrative", "times": [HORIZON], "reference": "one", "null": False}


def draw(rng, n):
    X = rng.normal(size=(n, 8))
    event_time, end = rng.exponential(8 * np.exp(-X[:, 0])), rng.uniform(2, 8, n)
    return X, event_time, ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)


def first_column(X):
    return X[:, :1]


def classifiers(estimator):
    return ss.models.HorizonClassifiers(estimator, [HORIZON], keep="administrative")


MODELS = {
    "all": classifiers(LogisticRegression(C=100.0)),
    "one": classifiers(make_pipeline(FunctionTransformer(first_column), LogisticRegression(C=100.0))),
}


def true_difference(X, y, population):
    """Return the difference of the true Brier scores of both models, fitted to these data."""
    others, event_time, _ = population
    survival = {
        name: clone(model).fit(X, y).predict_curves(others).probabilities[:, 0] for name, model in MODELS.items()
    }
    scores = {name: np.mean(((event_time > HORIZON) - values) ** 2) for name, values in survival.items()}
    return scores["all"] - scores["one"]


def cross_validated(rng, population):
    X, _, y = draw(rng, 200)
    found = ss.cross_validate(MODELS, X, y, progress=False, **SETTINGS)
    counted = [int(((found.fold == k) & (y.censoring_time >= HORIZON)).sum()) for k in range(5)]
    fits = [true_difference(X[found.fold != k], y[found.fold != k], population) for k in range(5)]
    return found.comparison.contrasts.iloc[0][["lower", "upper"]], np.average(fits, weights=counted)


def held_out(rng, population):
    X, _, y = draw(rng, 160)
    others, _, scored = draw(rng, 200)
    curves = {name: clone(model).fit(X, y).predict_curves(others) for name, model in MODELS.items()}
    interval = ss.compare(scored, curves, **SETTINGS).contrasts.iloc[0][["lower", "upper"]]
    return interval, true_difference(X, y, population)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=300)
    n = parser.parse_args().replicates
    population = draw(np.random.default_rng(99), 40_000)
    for name, run in (("cross-validated", cross_validated), ("held out", held_out)):
        found = [run(np.random.default_rng(seed), population) for seed in range(n)]
        lower, upper = np.array([interval for interval, _ in found], dtype=float).T
        truth = np.array([value for _, value in found])
        for target, value in (("of these fits", truth), ("of the procedure", truth.mean())):
            covered = np.mean((lower <= value) & (value <= upper))
            print(f"{name:16} {target:17} {covered:.3f} (+- {np.sqrt(covered * (1 - covered) / n):.3f})")


if __name__ == "__main__":
    main()

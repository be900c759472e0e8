"""A churn study whose truth is known: who signed up late could not be followed for a year."""

import numpy as np

import survscore as ss

MONTHS = np.array([3.0, 6.0, 9.0, 12.0])
SIGN_UP = 24.0  # months before the cut-off in which customers signed up


def customers(n, rng):
    """Return covariates with the month of the sign-up last, outcomes, and true survival."""
    x, end = rng.normal(size=(n, 2)), rng.uniform(0.5, SIGN_UP, n)
    rate = 0.06 * np.exp(0.7 * x[:, 0] - 0.5 * x[:, 1])
    event_time = rng.exponential(1 / rate)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    return np.c_[x, SIGN_UP - end], y, np.exp(-rate[:, None] * MONTHS)


def classifiers(y, X, new):
    """Fit one classifier per month to those whose status is known then, dropping the censored; predict survival."""
    from sklearn.tree import DecisionTreeClassifier

    found = []
    for month in MONTHS:
        kept = y.event & (y.time <= month) | (y.time >= month)
        model = DecisionTreeClassifier(min_samples_leaf=60, random_state=0)
        found.append(model.fit(X[kept], y.time[kept] >= month).predict_proba(new)[:, 1])
    return ss.SurvivalCurves(np.minimum.accumulate(np.array(found).T, axis=1), MONTHS)


def study(seed, n=2000):
    """Return outcomes, and predictions by classifiers with the sign-up month and without, and by a parametric model."""
    rng = np.random.default_rng(seed)
    (train_x, train_y, _), (x, y, truth) = customers(n, rng), customers(n, rng)
    noise = rng.normal(scale=0.1, size=(n, 1))
    models = {
        "dated": classifiers(train_y, train_x, x),
        "dateless": classifiers(train_y, train_x[:, :2], x[:, :2]),
        "parametric": ss.SurvivalCurves(truth ** np.exp(noise), MONTHS),
    }
    return y, models, truth


def study_without_fits(seed, n=1500):
    """Return outcomes, two models that do not know the sign-up month, one of them without the second covariate."""
    rng = np.random.default_rng(seed)
    x, y, truth = customers(n, rng)
    coarse = np.exp(-0.07 * np.exp(0.7 * x[:, :1]) * MONTHS)
    models = {"fine": ss.SurvivalCurves(truth, MONTHS), "coarse": ss.SurvivalCurves(coarse, MONTHS)}
    return y, models, truth

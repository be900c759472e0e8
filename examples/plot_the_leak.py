"""
Detecting a leak
================

A classifier per horizon looks like an easy way to survival curves: for each horizon, drop
those whose status is unknown, and learn the rest. If a covariate encodes when an individual was
enrolled, it encodes the censoring time C*, and this goes wrong: the classifiers learn where
follow-up ends. IPCW scores reward that. Here is how to detect it.
"""

# %%
# Machines with serial numbers
# ----------------------------
#
# Machines are delivered over 100 weeks, and then follow-up ends. The load decides how fast a
# machine fails. The serial number has nothing to do with failures, but later machines have
# higher ones, so it gives the delivery date to within a month or two, and with it C*. It
# is no sensible covariate. But it is in the table, or something else that
# encodes the date is: a software version, a price, a supplier.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import survscore as ss


def deliver(n, seed):
    """Return covariates, what was observed, what would be without a cut-off, and rates."""
    rng = np.random.default_rng(seed)
    load, end = rng.random(n), rng.uniform(0.0, 100.0, n)
    X = pd.DataFrame(
        {
            "load": load,
            "serial_number": 10_000 + np.round(100 * (100 - end) + rng.normal(0, 400, n)),
        }
    )
    rate = 0.004 * np.exp(2.0 * load)
    fails = rng.exponential(1 / rate)
    observed = ss.Outcomes(np.minimum(fails, end), fails <= end, end)
    in_full = ss.Outcomes(np.minimum(fails, 100.0), fails <= 100.0, np.full(n, 100.0))
    return X, observed, in_full, rate


X_train, y_train, _, _ = deliver(5000, seed=1)
X, y, in_full, rate = deliver(5000, seed=2)
y

# %%
# Three models
# ------------
#
# Gradient boosting per horizon, on all whose status there is known; the same on those with C*
# at or after the horizon; and a Logistic-Hazard net, which uses each machine for as long as
# it was observed.

times = np.arange(5.0, 96.0, 5.0)
boosting = HistGradientBoostingClassifier(
    max_iter=40, max_leaf_nodes=8, min_samples_leaf=50, random_state=0
)
dropping = ss.models.HorizonClassifiers(boosting, times).fit(X_train, y_train)
keeping = ss.models.HorizonClassifiers(boosting, times, keep="administrative").fit(
    X_train, y_train
)
hazard = ss.models.LogisticHazard(times=times, n_layers=1, epochs=31, random_state=0).fit(
    X_train, y_train
)
models = {
    "hazard net": hazard.predict_curves(X),
    "classifiers": dropping.predict_curves(X),
    "classifiers, C* late enough": keeping.predict_curves(X),
}

# %%
# Look at individuals
# -------------------
#
# Four machines, with the true survival in grey and C* as a dotted line. The classifiers'
# curves fall steeply just there. No machine fails because follow-up ends.

true_survival = np.exp(-rate[:, None] * times)
chosen = [
    int(np.argmin(np.abs(y.censoring_time - c) + 20 * np.abs(X["load"] - 0.4)))
    for c in (20, 40, 60, 80)
]
figure, axes = plt.subplots(1, 4, sharey=True, figsize=(9, 3.2), layout="constrained")
for ax, i in zip(axes, chosen, strict=True):
    ax.plot(times, true_survival[i], color="0.6", lw=4, label="truth")
    for name, curves in models.items():
        ax.plot(times, curves.probabilities[i], label=name)
    ax.axvline(y.censoring_time[i], color="k", lw=1, ls=":")
    ax.set(xlabel="weeks", title=f"C* = {y.censoring_time[i]:.0f}", ylim=(0, 1))
axes[0].set_ylabel("predicted survival")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

# %%
# Line up the cut-offs
# --------------------
#
# Single curves are noisy. The same picture for all machines: shift each curve so that its C*
# is at zero, and average. Time since C* has nothing to do with failures, so without a leak
# the mean curve passes zero smoothly. A steep fall at zero means that the model encodes
# the cut-off. This needs neither the truth nor the outcomes, only predictions and C*.

# sphinx_gallery_thumbnail_number = 2
shift = np.arange(-30.0, 31.0, 1.0)
# so that all curves span the whole range
inside = (y.censoring_time > 35) & (y.censoring_time < 65)


def aligned(curves):
    """Return the mean predicted survival by time since C*."""
    ends = y.censoring_time[inside]
    rows = zip(curves[inside].probabilities, ends, strict=True)
    return np.mean([np.interp(end + shift, times, row) for row, end in rows], axis=0)


figure, ax = plt.subplots(layout="constrained")
ax.plot(
    shift, aligned(ss.SurvivalCurves(true_survival, times)), color="0.6", lw=4, label="truth"
)
for name, curves in models.items():
    ax.plot(shift, aligned(curves), label=name)
ax.axvline(0, color="k", lw=1, ls=":")
ax.set(xlabel="weeks since C*", ylabel="mean predicted survival", ylim=(0, 1))
ax.legend()

# %%
# What the scores say
# -------------------
#
# As these data are simulated, the uncensored score is known: it shows which predictions are
# close to the truth. The administrative score agrees with it about the net and the
# classifiers, the IPCW scores do not.

weightings = {
    "uncensored (the truth)": (in_full, "uncensored"),
    "administrative": (y, "administrative"),
    "IPCW, Kaplan-Meier": (y, "ipcw"),
    "IPCW, known C*": (y, ss.IPCW("known")),
    "projected": (y, "projected"),
}
rows = {}
for label, (outcomes, weighting) in weightings.items():
    comparison = ss.compare(
        outcomes, models, weighting=weighting, times=times, null=False, ranges=[(10, 90)]
    )
    whole = comparison.integrated(10, 90)
    difference = whole.contrasts.set_index("model").loc["classifiers"]
    interval = f"{difference.lower:+.4f} to {difference.upper:+.4f}"
    scores = whole.scores.set_index("model")["score"].map("{:.4f}".format)
    rows[label] = {**scores, "classifiers - hazard net": interval}
pd.DataFrame(rows).T

# %%

figure, axes = plt.subplots(1, 3, sharey=True, figsize=(9, 3.8), layout="constrained")
for ax, label in zip(axes, list(weightings)[:3], strict=True):
    outcomes, weighting = weightings[label]
    lines = [
        ss.brier_score(outcomes, curves, weighting=weighting, times=times).plot(ax=ax).line_
        for curves in models.values()
    ]
    ax.set(title=label, xlabel="weeks")
    ax.label_outer()
figure.legend(lines, list(models), loc="outside lower center", ncols=3)

# %%
# The classifiers that drop the censored are the worst by far, and both IPCW scores call them
# the best. The administrative score does not: it prefers the net, and the interval of the
# difference does not hold zero. But the difference is smaller than in truth, because it counts
# no machine after C*, where the classifiers are at their worst. The projected score
# counts these machines, by the outcomes of others with similar predictions, and is close to
# the truth.
#
# The administrative score prefers the net because the classifiers are worse before C*, too. A
# model that drops the censored and is good up to C* may win by it. So look at the projected
# score, which counts all machines, and at the aligned curves. And if you want classifiers,
# train them as the administrative score counts: ``keep="administrative"``.

"""
What the score preferred then, and what happened
================================================

A score that was computed years ago can be judged today. These are the customers of an online
shop who bought for the first time in the first twelve weeks of 1997, and all that they bought
until mid-1998. We pretend that follow-up had ended on 15 and on 30 April 1997, choose a model
by what was known then, and compare with what the customers did.

The data come with Lifetimes (``pip install Lifetimes``), from where
:func:`survscore.datasets.load` reads them.
"""

# %%
# Customers
# ---------
#
# The event is the second purchase, and covariates are what was bought on the first day.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import survscore as ss

data = ss.datasets.load("cdnow")
data

# %%

data.y

# %%
# Seen from mid-1998, all were followed for more than a year, and their status after 90
# days is known. In April 1997 it was not known for most:

cutoffs, horizons = ["1997-04-15", "1997-04-30"], np.array([30.0, 60.0, 90.0])
for cutoff in cutoffs:
    shares = [np.mean(data.y.as_of(cutoff).censoring_time >= horizon) for horizon in horizons]
    print(cutoff, [f"{share:.0%}" for share in shares])

# %%
# Four models
# -----------
#
# One curve for all; a logistic regression for each horizon, fitted to those who had come early
# enough for it; and gradient boosting that also uses the day of the first purchase: once
# fitted to the same customers, and once as is often done, to all whose status is known, which
# drops the censored and keeps those who bought again.

bought = list(data.X)
X = data.X.assign(day=(data.dates.start - data.dates.start.min()) / np.timedelta64(1, "D"))
logs = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
logistic = make_pipeline(
    make_column_transformer((logs, bought)), StandardScaler(), LogisticRegression()
)
boosting = HistGradientBoostingClassifier(
    max_iter=30, max_leaf_nodes=8, min_samples_leaf=100, random_state=0
)
models = {
    "Kaplan-Meier": ss.models.KaplanMeier(times=horizons),
    "logistic": ss.models.HorizonClassifiers(logistic, horizons, keep="administrative"),
    "boosting, day": ss.models.HorizonClassifiers(boosting, horizons, keep="administrative"),
    "boosting, day, drops": ss.models.HorizonClassifiers(boosting, horizons, keep="known"),
}

# %%
# Then, and now
# -------------
#
# :func:`survscore.backtest` fits the models to what was known on each of the two days, in
# folds, scores them as of then, and again by what is known now.

found = ss.backtest(data.y, models, X=X, as_of=cutoffs, horizons=horizons, cv=3, n_draws=50)
scores = found.scores.query("horizon == 90")
table = scores.pivot_table(
    index=["cutoff", "model"], columns="weighting", values="score", sort=False
)
table["truth"] = scores.groupby(["cutoff", "model"])["truth"].first()
table.columns = ["administrative", "projected", "IPCW", "truth"]
table.round(3)

# %%
# By IPCW, the last model was the best by far. In truth it was the worst by far: for nearly all
# who had come too late to be followed for 90 days, it predicted a second purchase. The
# administrative and the projected score chose the logistic regression, which was the best.
#
# The administrative score of the last model is a little worse than the others: it counts only
# those who could be followed for 90 days, and that model fails for the others. The projected
# score counts all customers, and shows how bad that model is. Points on the diagonal mean that
# a score agrees with the truth.

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.7), sharey=True, layout="constrained")
for ax, (weighting, rows) in zip(
    axes, found.scores.groupby("weighting", sort=False), strict=True
):
    for model, points in rows.groupby("model", sort=False):
        ax.plot(points["truth"], points["score"], "o", label=model)
    ax.plot([0, 0.65], [0, 0.65], color="0.7", zorder=0)
    ax.set(title=weighting.split(" (")[0], xlabel="Brier score, in truth")
axes[0].set_ylabel("Brier score, as of then")
axes[0].legend()

# %%
# What that costs
# ---------------
#
# How much worse than the best model was the one that each score would have chosen?

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
found.plot(ax=ax)
print(found.sentence)

# %%
# The same on other real data: :func:`survscore.datasets.names` has heads of government,
# senators and registers of patients.

"""
A register, and what a score does not show
==========================================

The Danish diabetes register, as it ended in 2009. We go back to the end of 2004, when
recent patients could not have been followed for long. A Cox regression and two methods that
use the date of inclusion are scored as of then, examined, and judged by the five years that
followed.

The data are in the R package Epi. R itself is not needed: where the package is installed, or
lies in a folder, :func:`survscore.datasets.load` reads its file. This example also uses
scikit-survival: ``pip install scikit-survival``.
"""

# %%
# The register
# ------------
#
# Time runs from inclusion, and the event is death. What is said of the data comes with them:

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

import survscore as ss

data = ss.datasets.load("dmlate")
print(data)
print(f"closing: {data.closing}\nlost: {data.lost}")

# %%
# As of the end of 2004
# ---------------------

cutoff = "2004-12-31"
there = data.dates.start <= np.datetime64(cutoff)
now = data.y[there]
then = now.as_of(cutoff)
then

# %%
# Of those, less than half could have been followed for five years. Today all can be:

horizon = 5.0
print(f"{np.mean(then.censoring_time >= horizon):.0%} then", end=", ")
print(f"{np.mean(now.censoring_time >= horizon):.0%} now")

# %%
# Three methods
# -------------
#
# A Cox regression on age, sex and treatment. Gradient boosting for every half-year, which also
# uses the date: fitted to those who entered early enough, or to all whose status is known,
# which drops the censored. Each patient's curve comes from a fit to other patients.

year = (data.dates.start - np.datetime64("1995-01-01")) / np.timedelta64(1, "D") / 365.25
X = data.X.assign(sex=(data.X["sex"] == "male").astype(int), year=year)[there]
times = np.arange(0.5, 7.1, 0.5)
cox = make_pipeline(
    make_column_transformer((StandardScaler(), ["sex", "age", "tablets", "insulin"])),
    ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis(ties="efron")),
)
boosting = HistGradientBoostingClassifier(
    max_iter=20, max_leaf_nodes=8, min_samples_leaf=50, random_state=0
)
validated = ss.cross_validate(
    {
        "Cox": cox,
        "boosting, date": ss.models.HorizonClassifiers(boosting, times, keep="administrative"),
        "boosting, date, drops": ss.models.HorizonClassifiers(boosting, times),
    },
    X,
    then,
    cv=3,
    weighting=["administrative", "ipcw"],
    times=times,
)
curves = validated.curves

# %%
# Scores as of then, and what happened
# ------------------------------------


def brier(y, weighting):
    """Return the scores at five years."""
    return {
        name: ss.brier_score(y, one, weighting=weighting, times=[horizon]).scores[0]
        for name, one in curves.items()
    }


table = pd.DataFrame(
    {
        "IPCW, then": brier(then, "ipcw"),
        "administrative, then": brier(then, "administrative"),
        "in truth": brier(now, "administrative"),
    }
)
table.round(3)

# %%
# IPCW preferred the method that drops the censored, which in truth is several times worse than
# the others. The administrative score did not prefer it, but it found it hardly worse: at five
# years it counts those who entered before 2000, and for them that method is fine.
#
# Predictions after C*
# --------------------
#
# Predictions for times after each patient's C* cannot be compared with observations.
# :func:`survscore.diagnose` tests whether they fall there: no patient dies because
# follow-up ends.

diagnosis = ss.diagnose(then, curves, times=times)
diagnosis.plot(unit="year")
diagnosis.models[["model", "verdict", "fall_after", "fall_elsewhere"]].round(2)

# %%
# So do both: choose by the administrative score, and examine what it has chosen.
#
# What happened
# -------------
#
# The curves of those who entered in 2004, and what happened to them.

late = X["year"].to_numpy() >= 9
observed = ss.models.KaplanMeier().fit(X[late], now[late])
shown = np.arange(0.0, 5.1, 0.1)
alive = observed.predict_curves(X[:1], shown).at(shown)[0]
# sphinx_gallery_thumbnail_number = 2
figure, ax = plt.subplots(layout="constrained")
ax.plot(shown, alive, color="0.6", lw=4, label="observed")
for name, one in curves.items():
    ax.plot(times[times <= 5], one[late].at(times[times <= 5]).mean(axis=0), label=name)
ax.axvspan(0, 1, color="0.95", zorder=0)
ax.set(xlabel="years since inclusion", ylabel="alive", ylim=(0, 1))
ax.legend()

# %%
# Shaded is their follow-up at the end of 2004. They lived longer than the two methods that do
# not drop the censored predicted: mortality of new patients has fallen over the years, and
# those followed for five years had entered before 2000. No score as of 2004 could show that.

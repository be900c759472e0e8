"""
Landmarks: predictions that are updated
=======================================

Patients wait for a heart, and some get one. What is predicted for them changes on that day:
a covariate varies with time. Predictions that are made anew at some ages, for those still
alive, are scored at each of these *landmarks*, and over all of them.

The data are those of the Stanford heart transplant program, as lifelines ships them:
``pip install lifelines``.
"""

# %%
# Intervals (start, stop]
# -----------------------
#
# One row for each interval in which nothing changes. Patient 3 waited for a day, got a heart,
# and died on day 16:

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines.datasets import load_stanford_heart_transplants

import survscore as ss

intervals = load_stanford_heart_transplants()
intervals[intervals["id"] == 3]

# %%
# Outcomes are of patients, not of intervals: when the last one stopped, and how. The study
# closed on 1 April 1974. Together with the date of acceptance, which is known as years since
# October 1967, that is each patient's censoring time, also of those who died:

patients = intervals.groupby("id").last()
to_closing = np.floor((6.5 - patients["year"]) * 365.25 + 1.5)
end = np.maximum(to_closing, patients["stop"])
y = ss.Outcomes(patients["stop"], patients["event"], end)
y

# %%
# Two methods
# -----------
#
# At each landmark, a Cox regression on those of the other patients who were at risk then, with
# what was known of them: whether they had a new heart. That is the row whose interval goes on
# beyond the landmark. The other method makes its predictions at acceptance, from age and
# earlier surgery, and leaves it at that. Both are fitted to four fifths of the patients, and
# predict for the others.

landmarks, horizons = [0.0, 30.0, 60.0, 120.0], [90.0, 180.0, 365.0]
times = np.arange(15.0, 541.0, 15.0)
fold = np.random.default_rng(1).permutation(len(patients)) % 5


def known_at(s):
    """Return the covariates of those at risk at a landmark, by their position."""
    rows = intervals[(intervals["start"] <= s) & (intervals["stop"] > s)]
    return rows.drop_duplicates("id", keep="last").set_index("id")


def predicted(s, covariates):
    """Return out-of-fold predictions of those at risk at a landmark, and who they are."""
    at_risk, later = y.at_landmark(s)
    X = known_at(s).loc[patients.index[at_risk], covariates]
    survival = np.empty((at_risk.size, times.size))
    for k in range(5):
        train, test = fold[at_risk] != k, fold[at_risk] == k
        data = X[train].assign(time=later.time[train], event=later.event[train])
        model = CoxPHFitter(penalizer=0.1).fit(data, "time", "event")
        survival[test] = model.predict_survival_function(X[test], times=times).to_numpy().T
    return ss.SurvivalCurves(survival, times, interpolation="step"), at_risk


at_start = ["age", "surgery"]
made = {s: predicted(s, [*at_start, "transplant"] if s else at_start) for s in landmarks}
updated = ss.LandmarkCurves(
    {s: curves for s, (curves, _) in made.items()},
    rows={s: rows for s, (_, rows) in made.items()},
)
at_acceptance, _ = predicted(0.0, at_start)
updated

# %%
# Scores by landmark
# ------------------
#
# Curves from acceptance are read as what they say of those who are alive at the landmark. At
# the first landmark both methods are the same.

table = ss.landmark_table(
    y,
    {"at acceptance": at_acceptance, "updated": updated},
    landmarks=landmarks,
    horizons=horizons,
    metric="brier",
    weighting="administrative",
    unit="day",
)
print(table)

# %%
# The rows of the mean are over all landmarks. A patient who lives long counts at each of them,
# so errors are added up by patient. Taken as independent, they would be too small:

rows = table.to_frame().query("model == 'updated' and metric == 'brier' and time == 90")
each, mean = rows[~rows["summary"]], rows[rows["summary"]].iloc[0]
share = each["n_counted"] / each["n_counted"].sum()
naive = np.sqrt(np.sum((share * each["se"]) ** 2))
print(f"se of the mean: {mean['se']:.4f}, of independent rows: {naive:.4f}")

# %%
# All landmarks and horizons in one picture:

table.plot("brier")
plt.show()

# %%
# Knowing who has a new heart makes the predictions no better here, as far as 103 patients can
# show: the means over landmarks are undecided at each horizon. Who was at risk:

pd.DataFrame([vars(one) for one in table.landmarks]).drop(columns="label")

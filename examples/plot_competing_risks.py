"""
Competing risks: how senators leave
===================================

Senators of Canada die in office, resign, or retire. A senator who has retired can no longer die
in office. We predict the probability of each cause from Cox models, once correctly and once
with a common mistake, and compare the two by the scores of each cause.

The data come with lifelines: ``pip install lifelines``. What the terms mean is on the page
:doc:`/causes`.
"""

# %%
# Outcomes with causes
# --------------------
#
# ``causes=True`` distinguishes the events. The cut-off date is known, so :math:`C^*` is known
# for each senator, and so is how each one left before it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lifelines import CoxPHFitter

import survscore as ss

data = ss.datasets.load("senators", causes=True)
y = data.y
print(y)

# %%
# What is known at the appointment: party, region, and whether it was made after May 1965. Since
# then senators have to retire at 75; before they sat for life.

X = pd.get_dummies(data.X, drop_first=True, dtype=float)
X["until_75"] = (data.dates.start >= np.datetime64("1965-06-01")).astype(float)

# %%
# Hazards of each cause, and two ways to go on
# --------------------------------------------
#
# A Cox model of one cause treats events of other causes as censored, which is right for the
# *hazard* of this cause. Each senator's hazards come from models fitted to other senators.

grid = np.arange(0.5, 20.1, 0.5)
hazards = np.zeros((len(y.causes), len(y), grid.size))
for train, test in ss.EventKFold(5, shuffle=True, random_state=0).split(X, y, data.groups):
    for k, cause in enumerate(y.causes):
        frame = X.assign(time=y.time, event=y.for_cause(cause).event_of_interest)
        model = CoxPHFitter(penalizer=0.1).fit(frame.iloc[train], "time", "event")
        predicted = model.predict_cumulative_hazard(X.iloc[test], times=grid)
        hazards[k, test] = predicted.to_numpy().T

# %%
# The probability of a cause needs the hazards of all: to die in office in a year, one must not
# have left before.

steps = np.diff(hazards, axis=2, prepend=0.0)
leaving = steps.sum(axis=0)
still_there = np.exp(leaving - np.cumsum(leaving, axis=1))
share = steps / np.where(leaving > 0, leaving, 1.0)
jumps = still_there * (1 - np.exp(-leaving)) * share
# individuals come first, then causes
incidences = ss.IncidenceCurves(np.cumsum(jumps, axis=2).swapaxes(0, 1), grid, causes=y.causes)
print(incidences)

# %%
# The mistake is to take one minus the survival curve of each model. Those are probabilities in
# a world without the other causes, and together they can exceed one:

alone = 1 - np.exp(-hazards)
try:
    ss.IncidenceCurves(alone.swapaxes(0, 1), grid, causes=y.causes)
except ss.InputError as error:
    print(error)

# %%
# Scores of each cause
# --------------------
#
# A single cause does not show that. Its score does, if it knows the causes. At 20 years, for
# each cause:

separate = {
    cause: ss.SurvivalCurves(1 - risk, grid)
    for cause, risk in zip(y.causes, alone, strict=True)
}
rows = []
for cause in y.causes:
    models = {"incidences": incidences, "others as censored": separate[cause]}
    result = ss.compare(
        y, models, cause=cause, weighting="administrative", times=[20], groups=data.groups
    )
    contrast = result.contrasts.set_index("model").loc["others as censored"]
    interval = contrast[["difference", "lower", "upper", "p_value"]]
    rows.append({"cause": cause, **result.scores.set_index("model")["score"], **interval})
by_cause = pd.DataFrame(rows).set_index("cause")
by_cause.round(4)

# %%
# For each cause the incidences are better. If the other causes are recoded as drop-outs, scores
# make the same mistake as the model, and prefer it each time:

rows = []
for cause in y.causes:
    recoded = ss.Outcomes(y.time, y.for_cause(cause).event_of_interest, y.censoring_time)
    pair = {"incidences": incidences.for_cause(cause), "others as censored": separate[cause]}
    result = ss.compare(recoded, pair, weighting="administrative", times=[20], null=False)
    rows.append({"cause": cause, **result.scores.set_index("model")["score"]})
by_drop_out = pd.DataFrame(rows).set_index("cause")
by_drop_out.round(4)

# %%
# Who is a control?
# -----------------
#
# AUC of a cause pairs those who left by it with all others, or only with those who still sat
# after 20 years.

rows = []
for cause in y.causes:
    for controls in ("not-case", "event-free"):
        (found,) = ss.score_all(
            y, incidences, cause=cause, metric=ss.AUC(controls=controls),
            weighting="administrative", times=[20],
        )  # fmt: skip
        rows.append({"cause": cause, "controls": controls, "AUC": found.scores[0]})
aucs = pd.DataFrame(rows).pivot(index="cause", columns="controls", values="AUC")
aucs.round(3)

# %%
# All statuses at once
# --------------------
#
# ``cause="all"`` scores the whole distribution: still there, or gone by which cause. The null
# model is Aalen-Johansen, the same incidences for all.

result = ss.compare(
    y, {"incidences": incidences}, cause="all", weighting="administrative", times=[10, 20],
    groups=data.groups,
)  # fmt: skip
print(result)

# %%
# What is predicted for a senator
# -------------------------------
#
# The incidences of all causes, stacked: the rest is the probability of still sitting. One of
# these senators retired. For the other :math:`C^*`, the day on which the list was taken, came
# before anything happened.

names = ["Cook, Joan", "Mercer, Terry M."]
rows = [int(np.flatnonzero(data.groups == name)[0]) for name in names]
times = incidences.times
figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), sharey=True, layout="constrained")
for ax, name, row in zip(axes, names, rows, strict=True):
    ax.stackplot(times, *incidences[row].at(times)[0], labels=incidences.causes, alpha=0.6)
    ax.axvline(y.censoring_time[row], color="black", linestyle=":")
    ax.set(title=name, xlabel="time (years)", ylim=(0, 1))
axes[0].set_ylabel("predicted probability of an event")
axes[1].legend()

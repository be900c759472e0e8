"""
A trial with drop-outs
======================

Patients enter a trial over three years, and it closes on a known date. Were all followed
up to that date, the administrative score would be right as it is. But some are lost before. The
score then weights for them, and bounds say how much they could matter at most.

This example uses lifelines: ``pip install lifelines``.
"""

# %%
# The data
# --------
#
# A frailty score between 0 and 1 drives both the risk of death and the risk of being lost: the
# frail move to a nursing home and no longer come to the visits. Since we simulate, we also
# know what became of those who were lost.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lifelines import CoxPHFitter

import survscore as ss

rng = np.random.default_rng(4)
n = 5000
frailty, treated = rng.random(n), rng.random(n) < 0.5
# both in days after entry
dies = np.ceil(rng.exponential(1 / np.exp(-8.0 + 2.5 * frailty - 0.6 * treated)))
is_lost = np.ceil(rng.exponential(1 / np.exp(-8.2 + 2.5 * frailty)))

closes = pd.Timestamp("2023-06-30")
entry = closes - pd.to_timedelta(rng.integers(200, 1296, n), unit="D")
death = pd.Series(entry + pd.to_timedelta(dies, unit="D"))
lost = pd.Series(entry + pd.to_timedelta(is_lost, unit="D"))
patients = pd.DataFrame({"frailty": frailty, "treated": treated.astype(float)})
in_trial = (death <= closes) & (death <= lost)  # the deaths that the trial saw

# %%
# What the trial knows is given as ``last_seen``. A registry that records every death would have
# these data instead:

y = ss.Outcomes.from_dates(
    entry, death.where(in_trial), closes, last_seen=lost.where(lost <= closes)
)
registry = ss.Outcomes.from_dates(entry, death, closes)
print(y)
print(registry)

# %%
# Two models
# ----------
#
# Both are Cox regressions on the first half of the patients. One takes drop-outs as censored
# when they were last seen. The other leaves them out, since their outcome is unknown; this
# sounds careful and is a mistake.

train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2
times = np.arange(30.0, 1081.0, 30.0)


def cox(rows):
    """Return predictions for the test patients by a Cox regression on some of the others."""
    data = patients[rows].assign(time=y.time[rows], event=y.event[rows])
    model = CoxPHFitter().fit(data, "time", "event")
    curves = model.predict_survival_function(patients[test])  # steps at the event times
    return ss.SurvivalCurves.from_frame(curves, interpolation="step", extrapolation="hold")


models = {"all patients": cox(train), "complete cases": cox(train & ~y.dropped_out)}

figure, ax = plt.subplots(layout="constrained")
for name, curves in models.items():
    ax.plot(times, curves.at(times).mean(axis=0), label=name)
followed = (
    ss.models.KaplanMeier()
    .fit(patients[test], registry[test])
    .predict_curves(patients[test][:1], times)
)
ax.plot(times, followed.probabilities[0], "--", color="0.5", label="registry")
ax.set(xlabel="days since entry", ylabel="survival, mean over test patients", ylim=(0, 1))
ax.legend()

# %%
# Those who die early have no time to be lost, so leaving out the lost leaves out survivors:
# the second model is far too pessimistic.

# %%
# Weights for the drop-outs
# -------------------------
#
# The closing date is left to C*: at each day t, those with C* at or after t count. Among them,
# those who remain stand for those who were lost, by the inverse of the probability of not
# having been lost. By default that probability is the Kaplan-Meier estimate of the trial's own
# data, in which deaths and the closing date end the risk of being lost:

score = ss.brier_score(y[test], models["all patients"], weighting="administrative", times=times)
score

# %%
# That is right if being lost has nothing to do with the prognosis. Here it has. A Cox
# regression predicts from the frailty how likely it is, again with deaths and the closing
# date as its censoring, fitted on the patients that are not scored:

lost_in_training = patients[train].assign(time=y.time[train], event=y.dropped_out[train])
lost_model = CoxPHFitter().fit(lost_in_training, "time", "event")
# every day, since events are weighted at their own times, which are whole days
grid = np.arange(0.0, 1081.0)
not_lost = ss.SurvivalCurves(
    lost_model.predict_survival_function(patients[test], times=grid).to_numpy().T,
    grid,
    interpolation="step",
)
by_frailty = ss.Administrative(dropout=not_lost)

# %%
# Two things not to do. **Pretend** that C* is the day they were last seen: at each time the
# score then counts the dead up to the closing date, the lost only until they were lost.
# Survivors are missing from it just as they are from the data of the second model. And **IPCW**
# weights for the closing date too, by one curve for all patients; that goes wrong as soon as
# predictions encode the date (see :ref:`sphx_glr_gallery_plot_the_leak.py`), and does not
# use the frailty either.

pretended = ss.Outcomes(y.time, y.event, np.where(y.dropped_out, y.time, y.censoring_time))

# %%
# The answers
# -----------

questions = {
    "registry, administrative": (registry, "administrative"),
    "administrative, drop-out by frailty": (y, by_frailty),
    "administrative, drop-out by Kaplan-Meier": (y, ss.Administrative(dropout_strata=None)),
    "IPCW, Kaplan-Meier": (y, "ipcw"),
    "pretended C*, administrative": (pretended, "administrative"),
}
answers = {
    name: ss.compare(
        outcomes[test], models, weighting=weighting, times=times, null=False
    ).integrated(30, 1080)
    for name, (outcomes, weighting) in questions.items()
}
rows = []
for name, answer in answers.items():
    mean = answer.scores.set_index("model")["score"]
    difference = answer.contrasts.iloc[0]
    rows.append(
        {"answer": name, **mean, "difference": difference.difference, "se": difference.se}
    )
table = pd.DataFrame(rows).set_index("answer").rename_axis(None)
table.round(4)

# %%

# sphinx_gallery_thumbnail_number = 2
figure, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
position = np.arange(len(table))
ax.errorbar(table["difference"], position, xerr=1.96 * table["se"], fmt="o", capsize=3)
ax.axvline(0, color="0.5", lw=1, ls="--")
ax.axvline(table["difference"].iloc[0], color="0.8", zorder=0)
ax.set(
    yticks=position,
    yticklabels=table.index,
    xlabel="Brier score of complete cases minus that of all patients",
)
ax.locator_params(axis="x", nbins=6)
ax.invert_yaxis()

# %%
# Pretending reverses the verdict here; with other draws it may only hide the
# difference. Kaplan-Meier weights repair a part of that, a model of the drop-out more, and the
# registry shows that its answer is the right one. It is right only as far as that model is:
# drop-out for reasons that no covariate captures cannot be corrected by weights.
#
# How much they could matter
# --------------------------
#
# Beside every result with drop-outs stand bounds that assume nothing: whatever happened to the
# lost, the score of all with C* at or after t lies within, and so does the difference of two
# models. A third of the trial was lost, so the bounds are wide:

figure, ax = plt.subplots(layout="constrained")
score = ss.brier_score(y[test], models["all patients"], weighting=by_frailty, times=times)
(line,) = ax.plot(times, score.scores, label="drop-out by frailty")
ax.fill_between(
    times, score.bounds.lower, score.bounds.upper, color=line.get_color(), alpha=0.15,
    label="bounds that assume nothing",
)  # fmt: skip
in_full = ss.brier_score(
    registry[test], models["all patients"], weighting="administrative", times=times
)
ax.plot(times, in_full.scores, "--", color="0.5", label="registry")
ax.set(xlabel="days since entry", ylabel="Brier score, all patients")
ax.legend()

# %%

bounds = answers["administrative, drop-out by frailty"].contrasts.iloc[0]
print(
    f"complete cases minus all patients: {bounds.difference:.4f}. Whatever happened to those "
    f"who were lost, it lies between {bounds.bound_lower:.4f} and {bounds.bound_upper:.4f}"
)

# %%
# The verdict depends on the weights, then: it holds if the lost were like others as frail as
# they. Had only a few been lost, the bounds would be narrow, and could settle it without any
# assumption.

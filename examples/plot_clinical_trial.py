"""
A trial with drop-outs
======================

Patients enter a trial over three years, and it closes on a known date. Were everybody followed
up to that date, the administrative score would be right. But some are lost before, and it
refuses. What to do then, and what not to do.

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
# What the trial knows goes in with ``last_seen``. A registry that finds every death would have
# seen this instead:

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
    return ss.SurvivalCurves.from_frame(curves, "step", beyond="hold")


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
# Without drop-outs
# -----------------
#
# With the registry's data the administrative score fits, and prefers the model of all
# patients:

truth = ss.compare(
    registry[test], models, weighting="administrative", times=times, null=False
).integrated(30, 1080)
truth.contrasts.drop(columns="weighting").round(4)

# %%
# With drop-outs
# --------------
#
# With the trial's own data it refuses. The status of a drop-out is unknown from the day they
# were last seen, though the closing date is later:

try:
    ss.brier_score(y[test], models["all patients"], weighting="administrative", times=times)
except ss.InputError as error:
    print(error)

# %%
# Three ways to go on.
#
# **Pretend** that C* is the day they were last seen. The score no longer refuses, and is
# wrong: at each time it counts the dead up to the closing date, the lost only until they were
# lost. Survivors are missing from it just as they are from the data of the second model.

pretended = ss.Outcomes(y.time, y.event, np.where(y.dropped_out, y.time, y.censoring_time))

# %%
# **IPCW with Kaplan-Meier weights.** Those who remain stand for those who were lost. It is
# right if being lost has nothing to do with the prognosis. Here it has.
#
# **IPCW with a model of G.** There are two reasons to be censored. The closing date comes
# first for some: how C* is distributed we can just count, since it is known for everybody. The
# others are lost: a Cox regression tells from the frailty how likely that is, with deaths and
# the closing date as its censoring. The patients enter independently of their frailty, so G is
# the product of the two.

lost_in_training = patients[train].assign(time=y.time[train], event=y.dropped_out[train])
lost_model = CoxPHFitter().fit(lost_in_training, "time", "event")
# every day, since events are weighted at their own times, which are whole days
grid = np.arange(0.0, 1081.0)
not_lost = lost_model.predict_survival_function(patients[test], times=grid).to_numpy().T
not_closed = (y.censoring_time[:, None] > grid).mean(axis=0)
G = ss.SurvivalCurves(not_lost * not_closed, grid, "step")

# %%
# The answers
# -----------

answers = {
    "registry, administrative": truth,
    "pretended C*, administrative": ss.compare(
        pretended[test], models, weighting="administrative", times=times, null=False
    ).integrated(30, 1080),
    "IPCW, Kaplan-Meier": ss.compare(
        y[test], models, weighting="ipcw", times=times, null=False
    ).integrated(30, 1080),
    "IPCW, model of G": ss.compare(
        y[test], models, weighting=ss.IPCW(G), times=times, null=False
    ).integrated(30, 1080),
}
rows = []
for name, answer in answers.items():
    score = answer.scores.set_index("model")["score"]
    difference = answer.contrasts.iloc[0]
    rows.append(
        {"answer": name, **score, "difference": difference.difference, "se": difference.se}
    )
table = pd.DataFrame(rows).set_index("answer").rename_axis(None)
table.round(4)

# %%

figure, ax = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
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
# Pretending turns the verdict round here; with other draws it may only wipe the difference
# out. Kaplan-Meier weights repair a part of that, a model of G more, and the registry shows
# that its answer is the right one. It is right only as far as
# that model is: whoever was lost for reasons that no covariate tells can't be weighted back.
#
# If covariates told the closing date, weights for it would go wrong in their own way (see
# :ref:`sphx_glr_gallery_plot_the_leak.py`). Then count only those with C* late enough, as the
# administrative score does, and weight for the drop-outs alone. That is a weighting of your
# own, in a few lines: :ref:`sphx_glr_gallery_plot_add_a_weighting.py`.

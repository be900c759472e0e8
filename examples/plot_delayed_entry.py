"""
Delayed entry: age as the clock
===============================

Where the clock is age, people come under observation at some age, and those who died younger
are not in the data: their entry is delayed (left truncation). Scores count time from entry,
and ask models what they predict for people who are alive then.

The data are those of a study of free light chains in the blood of people over 50 in Olmsted
County, as scikit-survival ships them: ``pip install scikit-survival lifelines``.
"""

# %%
# Outcomes with entry
# -------------------
#
# Age at death, or at the end of follow-up, and the age at which blood was taken:

import warnings

import matplotlib.pyplot as plt
import numpy as np
from lifelines import CoxPHFitter
from sksurv.datasets import load_flchain

import survscore as ss

people, followed = load_flchain()
complete = (followed["futime"] > 0) & people["creatinine"].notna().to_numpy()
people, followed = people[complete], followed[complete]
entry = people["age"].astype(float).to_numpy()
y = ss.Outcomes(entry + followed["futime"] / 365.25, followed["death"], entry=entry)
y

# %%
# A model, with two baseline hazards
# ----------------------------------
#
# A Cox regression with age as the clock, fitted to half of the people. Its coefficients allow
# for entry (``entry_col``). The cumulative baseline hazard is a sum over ages: the deaths,
# divided by the hazard ratios of all who are at risk.

covariates = np.log(people[["creatinine", "kappa", "lambda"]].astype(float))
covariates["male"] = (people["sex"] == "M").astype(float)
train = np.arange(len(y)) % 2 == 0
data = covariates[train].assign(age=y.time[train], died=y.event[train], entry=entry[train])
cox = CoxPHFitter(penalizer=0.01).fit(data, "age", "died", entry_col="entry")

ages = np.arange(50.0, 112.0, 0.25)
ratio = cox.predict_partial_hazard(covariates).to_numpy()


def predicted(entered):
    """Return curves by age for the other half; `entered` says when people count as at risk."""
    deaths = np.unique(y.time[train & y.event])
    at_risk = [ratio[train & (entered < s) & (s <= y.time)].sum() for s in deaths]
    died = [np.count_nonzero(train & y.event & (y.time == s)) for s in deaths]
    hazard = np.concatenate([[0.0], np.cumsum(np.divide(died, at_risk))])
    hazard = hazard[np.searchsorted(deaths, ages, side="right")]
    return ss.SurvivalCurves(
        np.exp(-ratio[~train, None] * hazard), ages, interpolation="step", extrapolation="hold"
    )


# %%
# Who entered at 80 was not at risk of being seen to die at 60. Not all packages allow for that:
# the baseline hazard of ``CoxPHFitter`` (lifelines 0.30) counts all people from the start, as
# the second model does here, whatever ``entry_col`` says.

models = {"from entry on": predicted(entry), "from the start": predicted(np.zeros(len(y)))}
figure, axes = plt.subplots(layout="constrained")
for name, curves in models.items():
    axes.plot(ages, curves.probabilities.mean(axis=0), label=f"at risk {name}")
axes.set(xlabel="age", ylabel="mean predicted survival", xlim=(50, 105))
axes.legend()
plt.show()

# %%
# Scores
# ------
#
# Horizons are years since entry, and the table says so. Predictions are
# :math:`\pi(a + h) / \pi(a)`, those for people who are alive at entry. When follow-up would
# have ended is not known of those who died, so weights are IPCW.

asked = {"weighting": "ipcw", "metric": ["brier", "auc", "oe"], "unit": "year"}
table = ss.score_table(y[~train], models, horizons=[5, 10], **asked)
print(table)

# %%
# With all people at risk from the start, hazards are too small: over ten years, 1.5 times as
# many people die as are expected. The order of the predictions is nearly the same, so AUC does
# not show it.
#
# Without entry
# -------------
#
# Had we not said when people came, the better model would seem to predict far too many deaths
# before 80, since those who died early are missing. A warning says so:

without = ss.Outcomes(y.time, y.event)[~train]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    naive = ss.score_table(
        without, {"cox": models["from entry on"]}, horizons=[80], null=False, **asked
    )
print(naive)
print(caught[0].message)

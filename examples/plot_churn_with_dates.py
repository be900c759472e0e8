"""
Churn, from dates to a verdict
==============================

A subscription service has a table of customers: when they joined, when they left, what they
pay. The table was extracted on a known date. Two models predict how long customers stay.
Which is better, by how much, and where?

This example uses lifelines for the first model: ``pip install lifelines``.
"""

# %%
# The table
# ---------
#
# A customer on the monthly plan can leave on any day. One on the annual plan has paid for a
# year, and leaves at a renewal or not at all. Customers who used the service little in the
# first week are more likely to leave.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lifelines import CoxPHFitter

import survscore as ss

rng = np.random.default_rng(7)
n = 6000
plan = rng.choice(["monthly", "annual"], n, p=[0.65, 0.35])
first_week = rng.poisson(3.0, n)
discount = rng.random(n) < 0.3

rate = np.exp(-6.3 - 0.25 * (first_week - 3) + 0.4 * discount)  # per day, on the monthly plan
leaves_monthly = rng.exponential(1 / rate)
leaves_annual = 365.0 * rng.geometric(1 - np.exp(-250 * rate))
days = np.ceil(np.where(plan == "annual", leaves_annual, leaves_monthly))

cutoff = pd.Timestamp("2024-12-31")
joined = cutoff - pd.to_timedelta(rng.integers(1, 1000, n), unit="D")
left = joined + pd.to_timedelta(days, unit="D")

customers = pd.DataFrame(
    {
        "plan": plan,
        "first_week": first_week,
        "discount": discount,
        "joined": joined,
        "left": left.where(left <= cutoff),  # what happens later is not in the table
    }
)
customers.sample(5, random_state=1)

# %%
# Outcomes
# --------
#
# Three dates make an outcome: the start, the event if there was one, and the cut-off. The time
# at which an individual is or would be censored, C*, follows for each customer, also those who
# left. That is what the administrative score needs.

y = ss.Outcomes.from_dates(
    start=customers["joined"], event_date=customers["left"], cutoff=cutoff
)
y

# %%
# Two models
# ----------
#
# Half of the customers train the models, the other half judge them. The dates themselves are
# no covariates.
#
# The first model is Cox regression. It assumes that the hazards of two customers are
# proportional, so that annual customers leave at a lower rate all along.

covariates = customers[["plan", "first_week", "discount"]]
train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2

numbers = pd.get_dummies(covariates, columns=["plan"], drop_first=True).astype(float)
cox = CoxPHFitter().fit(
    numbers[train].assign(time=y.time[train], event=y.event[train]), "time", "event"
)

times = np.arange(10.0, 721.0, 10.0)
cox_curves = ss.SurvivalCurves.from_frame(
    cox.predict_survival_function(numbers[test]), interpolation="step", extrapolation="hold"
)

# %%
# The second is a small Logistic-Hazard net, which has a hazard for every interval of the grid
# and no such assumption. Text columns such as the plan need no preparation.

net = ss.models.LogisticHazard(times=times, n_layers=2, epochs=63, random_state=0)
net_curves = net.fit(covariates[train], y[train]).predict_curves(covariates[test])

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 3.6), layout="constrained")
for ax, name in zip(axes, ("monthly", "annual"), strict=True):
    rows = (covariates["plan"] == name).to_numpy()
    ax.plot(times, cox_curves[rows[test]].at(times).mean(axis=0), label="Cox")
    ax.plot(times, net_curves[rows[test]].probabilities.mean(axis=0), label="net")
    observed = ss.models.KaplanMeier().fit(covariates[test & rows], y[test & rows])
    ax.plot(
        times,
        observed.predict_curves(covariates[:1], times).at(times)[0],
        "--",
        color="0.5",
        label="Kaplan-Meier",
    )
    ax.set(title=f"{name} plan", xlabel="days since joining", ylim=(0, 1))
axes[0].set_ylabel("share still subscribed")
axes[0].legend()

# %%
# The scores
# ----------
#
# At each time the administrative score counts the customers who joined long enough ago, so
# that their status then is known. Its effective number is how many they are: it falls as the
# horizon grows, and the intervals widen.

scores = {
    "Cox": ss.brier_score(y[test], cox_curves, weighting="administrative", times=times),
    "net": ss.brier_score(y[test], net_curves, weighting="administrative", times=times),
}
figure, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(6.4, 5.6), height_ratios=[3, 1], layout="constrained"
)
for name, score in scores.items():
    score.plot(ax=above, label=name)
above.set_xlabel("")
below.plot(times, scores["net"].n_effective, color="0.4")
below.set(xlabel="days since joining", ylabel="counted", ylim=(0, None))

# %%
# Is the difference real?
# -----------------------
#
# Overlapping bands do not answer that: both models are judged on the same customers, and a
# customer who is hard to predict for one is hard for the other. :func:`survscore.compare`
# tests the difference itself. (The vertical line is at the first renewal.)

comparison = ss.compare(
    y[test],
    {"Cox": cox_curves, "net": net_curves},
    weighting="administrative",
    times=times,
    reference="Cox",
)
# sphinx_gallery_thumbnail_number = 3
display = comparison.plot()
display.ax_.axvline(365, color="0.8", zorder=0)

# %%
# Averaged over two years:

whole = comparison.integrated(10, 720)
whole.contrasts.round(4)

# %%
# The net is better than Cox, and the interval of the difference does not hold zero; the null
# model, one Kaplan-Meier curve for all customers, is worse than both. The curve shows more than
# the average: the net owes its lead to the first year. There, Cox predicts that annual
# customers trickle away during the time that they have paid for, which costs it most shortly
# before the renewal. After the renewal nothing is left of that lead.

# %%
# One horizon
# -----------
#
# If a decision is made at one horizon, check the probabilities there. At 350 days the band of
# a well calibrated model holds the diagonal.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, curves) in zip(
    axes, {"Cox": cox_curves, "net": net_curves}.items(), strict=True
):
    found = ss.calibration(y[test], curves, 350)
    found.plot(ax=ax, color=ss.plots.colours(["Cox", "net"])[name])
    ax.set_title(name)

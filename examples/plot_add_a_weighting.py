"""
A metric and a weighting of your own
====================================

A score is a metric under a weighting, and both can be yours: each is one class. Standard
errors, comparisons, tables and the report then work with them as with the built-in ones.
"""

# %%
# A loss
# ------
#
# The simplest metric is the mean of a loss. A loss says what a prediction costs an individual
# who is event-free, and one who is not: a name and two methods. The spherical loss is proper,
# like the Brier score: its expectation is smallest for the true probability.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import survscore as ss
from survscore.metrics import MetricValue
from survscore.weighting.base import curve_weights, fit_on_sample, support_end
from survscore.weighting.interval_weights import inverse
from survscore.weighting.strata import Strata


class Spherical(ss.Loss):
    """1 - the probability of what happened / the length of the vector of both probabilities."""

    name = "spherical"

    def of_event_free(self, survival):
        """Return the loss of those who are event-free."""
        return 1.0 - survival / np.hypot(survival, 1.0 - survival)

    def of_event(self, survival):
        """Return the loss of those who have had the event."""
        return 1.0 - (1.0 - survival) / np.hypot(survival, 1.0 - survival)


# %%
# A metric that is not a mean
# ---------------------------
#
# The discrimination slope is the mean predicted risk of those with the event minus that of
# those without. The difference between two models is known as the integrated discrimination
# improvement (IDI). Such a metric is computed from all who are counted at a time: it gets their
# predictions, statuses and weights, and returns its value and each individual's influence on
# it. The influence on a weighted mean is the weight times the distance to the mean.


class DiscriminationSlope(ss.SampleMetric):
    """The mean predicted risk of those with event minus that of those without."""

    name = "discrimination_slope"
    label = "discrimination slope"
    direction = "higher"

    def evaluate(self, sample):
        """Return the value, and the individuals' influences with the weights held fixed."""
        value, influence = 0.0, np.zeros(len(sample))
        for status, sign in ((sample.event, 1.0), (1.0 - sample.event, -1.0)):
            share = sample.share * status / (sample.share @ status)
            mean = float(share @ sample.risk)
            value += sign * mean
            influence += sign * share * (sample.risk - mean)
        return MetricValue(value, influence)


# %%
# Data to try them on: customers, one in ten of them a company. Companies leave more slowly, and
# move abroad more often, after which their status is unknown. One model is right about private
# customers and too pessimistic about companies; the other is right about companies only.

rng = np.random.default_rng(5)
n = 40_000
company = rng.random(n) < 0.1
rate = rng.gamma(4.0, 0.005, n) * np.where(company, 0.3, 1.0)
leaves = rng.exponential(1 / rate)
end = rng.uniform(0.0, 120.0, n)  # C*, from the start to the cut-off
moves = rng.exponential(np.where(company, 60.0, 400.0))
time = np.minimum(np.minimum(leaves, moves), end)
complete = ss.Outcomes(time, leaves <= time, end)

times = np.arange(2.0, 61.0, 2.0)


def curves_at(predicted_rate):
    """Return survival curves with a constant rate each."""
    return ss.SurvivalCurves(np.exp(-predicted_rate[:, None] * times), times)


of_all = {
    "for all": curves_at(rate * np.where(company, 2.5, 1.0)),
    "for companies": curves_at(rate * np.where(company, 1.0, 0.6)),
}
comparison = ss.compare(
    complete,
    of_all,
    metric=[Spherical(), DiscriminationSlope()],
    weighting=ss.Administrative(dropout_strata=company),
    times=times,
)
comparison.integrated(2, 60).contrasts.drop(columns="weighting").round(4)

# %%
# On all customers, the model for all has the better spherical score. The discrimination slope
# answers another question, whether risks differ between those with and without the event. It is
# not proper: predictions that are too extreme may have a larger one.
#
# A weighting
# -----------
#
# Predictions cost money, so they are made for a sample only: all companies, and one in twenty
# of the others. With :math:`p_i` the known probability of being drawn and :math:`G_k` the
# probability of not having moved abroad in stratum k, those who are drawn and still observed
# stand for all others:
#
# .. math::
#
#    w_i(t) = \frac{1\{C^*_i \ge t\}}{p_i} \left[\frac{1\{T_i > t\}}{G_k(t)}
#        + \frac{1\{T_i \le t, D_i = 1\}}{G_k(T_i-)}\right]
#
# A weighting returns its weights as index ranges of the evaluation times (:doc:`/engine`). Who
# is counted when is the same as for the administrative score, so the ranges are taken from
# there. The strata are those who were drawn with the same probability. ``fit_on_sample``
# estimates :math:`G_k` in each of them, and ``curve_weights`` evaluates it. Returned as
# ``censoring_model``, the estimate becomes part of all standard errors.


class Sampled(ss.Weighting):
    """Those with C* >= t, by the inverse probability of being drawn and of being observed."""

    name = "administrative, sampled"

    def __init__(self, probability):
        self.probability = np.asarray(probability, dtype=float)

    def prepare(self, index):
        """Return the weights at the times of the index."""
        outcomes = index.outcomes
        model = fit_on_sample(
            index, outcomes.dropped_out, Strata.of(self.probability, "probability"), "exact"
        )
        at, before = curve_weights(
            model, index
        )  # G_k(t), (strata, times), and each individual's G_k(T-)
        drawn = np.unique(self.probability)  # by stratum, in the order of model.codes
        return replace(
            ss.Administrative().unweighted(index),
            weight_at_risk=inverse(drawn[:, None] * at, np.inf),
            weight_at_event=inverse(self.probability * before, np.inf),
            codes=model.codes,
            censoring_model=model,
            support_end=support_end(outcomes, outcomes.dropped_out, index.times, model.codes),
            dropout_index=None,  # no bounds: these would count each individual once
        )

    def of_rows(self, rows):
        """Return the same for some of the individuals, for scores by segment."""
        return Sampled(self.probability[rows])


# %%
# Tested where the answer is known
# --------------------------------
#
# A new weighting should be tried on data in which the answer is known. If all have the same
# probability, it must be the administrative score, and so must its standard errors:

same_for_all, administrative = (
    ss.brier_score(complete, of_all["for all"], weighting=weighting, times=times)
    for weighting in (Sampled(np.full(n, 0.05)), ss.Administrative(dropout_strata=None))
)
print(np.abs(same_for_all.scores - administrative.scores).max() < 1e-12)
print(np.abs(same_for_all.se - administrative.se).max() < 1e-12)

# %%
# And with the sample it must come close to what the score would be without sampling:

probability = np.where(company, 1.0, 0.05)
drawn = rng.random(n) < probability
y, models = complete[drawn], {name: curves[drawn] for name, curves in of_all.items()}
sampled = Sampled(probability[drawn])
shown = {
    "all individuals": (complete, of_all, ss.Administrative(dropout_strata=company)),
    "sample, weighted": (y, models, sampled),
    "sample, not weighted": (y, models, "administrative"),
}
results = {
    name: ss.compare(*given[:2], weighting=given[2], times=times, null=False)
    for name, given in shown.items()
}
figure, ax = plt.subplots(layout="constrained")
for name, result in results.items():
    table = result.contrasts
    (line,) = ax.plot(table.time, table.difference, label=name)
    ax.fill_between(table.time, table.lower, table.upper, color=line.get_color(), alpha=0.15)
ax.axhline(0, color="0.5", lw=1, ls="--")
ax.set(xlabel="time", ylabel="Brier score, for companies minus for all")
ax.legend()

# %%

table = pd.DataFrame(
    {name: result.integrated(2, 60).contrasts.iloc[0] for name, result in results.items()}
).T[["difference", "se", "p_value", "verdict"]]
table

# %%
# It does, with a larger standard error: the sample has a seventh of the customers. Without
# weights, seven in ten of the sample are companies, and the verdict is reversed.
#
# Everything else
# ---------------
#
# Whatever takes a metric or a weighting takes these, by segment as well:

plan = np.where(company[drawn], "company", "private")
own = {"metric": [Spherical(), DiscriminationSlope()], "weighting": sampled, "times": times}
by_plan = ss.compare(y, models, by=plan, **own)
page = ss.report(y, models, **own)
by_plan.integrated(2, 60).contrasts[
    ["segment", "metric", "model", "difference", "se", "verdict"]
]

# %%
# A loss without a compiled form runs in NumPy, slower on large data and with the same result.
# If others could use your metric or weighting, make it part of this library: its class in one
# module, and a line in ``METRICS`` or ``WEIGHTINGS``, by which it is known by name
# (``CONTRIBUTING.md``).

"""
A loss and a weighting of your own
==================================

A score is a loss under a weighting, and both can be yours. Everything else then works with
them as with the built-in ones: standard errors, comparisons, scorers for scikit-learn.
"""

# %%
# A loss
# ------
#
# A loss says what a prediction costs an individual who is event-free, and one who is not: a
# name and two methods. The spherical loss is proper, like the Brier score: its expectation is
# smallest for the true probability.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import survscore as ss
from survscore.metrics import Loss
from survscore.weighting.interval_weights import Stretches
from survscore.weighting import Weighting


class Spherical(Loss):
    """1 - the probability of what happened / the length of the vector of both probabilities."""

    name = "spherical"

    def of_event_free(self, survival):
        """Return the loss of those who are event-free."""
        return 1.0 - survival / np.hypot(survival, 1.0 - survival)

    def of_event(self, survival):
        """Return the loss of those who have had the event."""
        return 1.0 - (1.0 - survival) / np.hypot(survival, 1.0 - survival)


# %%
# Data to try it on: customers of whom one in ten is a company. Companies leave more slowly. One
# model is right about the others and gloomy about companies; the other knows only companies.

rng = np.random.default_rng(5)
n = 40_000
company = rng.random(n) < 0.1
rate = rng.gamma(4.0, 0.005, n) * np.where(company, 0.3, 1.0)
leaves = rng.exponential(1 / rate)
end = rng.uniform(0.0, 120.0, n)  # C*, from the start to the cut-off
everybody = ss.Outcomes(np.minimum(leaves, end), leaves <= end, end)

times = np.arange(2.0, 61.0, 2.0)


def curves_at(predicted_rate):
    """Return survival curves with a constant rate each."""
    return ss.SurvivalCurves(np.exp(-predicted_rate[:, None] * times), times)


of_everybody = {
    "for all": curves_at(rate * np.where(company, 2.5, 1.0)),
    "for companies": curves_at(rate * np.where(company, 1.0, 0.7)),
}
comparison = ss.compare(
    everybody, of_everybody, metric=Spherical(), weighting="administrative", times=times
)
comparison.integrated(2, 60).contrasts.drop(columns=["metric", "weighting"]).round(4)

# %%
# Judged on all customers, the first model is better.
#
# A weighting
# -----------
#
# Predictions are dear, so they are made for a sample only: all companies, and one in twenty of
# the others. Every one in the sample had a known chance of being drawn, and stands for the
# inverse of that many customers:
#
# .. math::
#
#    w_i(t) = \frac{1\{C^*_i \ge t\}}{p_i}
#
# Such a weight depends on covariates alone, so the score remains proper. A weighting returns
# its weights as two stretches of the evaluation times. Up to ``first_stop``, an individual is
# event-free and has ``first_weight`` at each time, or the inverse of a curve of its own. From
# there to ``last_stop`` it has its final status (``label``), and one weight.
# ``population_stop`` says up to when it belongs to those for whom the score speaks.


class Sampled(Weighting):
    """Those with C* at or after t count, by the inverse of their chance of being drawn."""

    name = "administrative, sampled"

    def __init__(self, chance):
        self.chance = np.asarray(chance, dtype=float)

    def prepare(self, index):
        """Return the weights at the times of the index."""
        if index.outcomes.n_dropped_out:
            raise ss.InputError("this weighting knows no drop-outs")
        counted = index.until_censoring_time  # how many evaluation times are at or before C*
        return Stretches(
            first_stop=np.minimum(index.before_time, counted),
            last_stop=counted,
            label=index.label,
            first_weight=None,  # not the same for all, but one over these curves
            survival=ss.SurvivalCurves(
                self.chance[:, None], [0.0], "step", extrapolation="hold"
            ),
            last_weight=1.0 / self.chance,
            population_stop=counted,
        )


# %%
# Tested where the answer is known
# --------------------------------
#
# A new weighting should be tried on data in which the answer is known. With the same chance for
# all it must be the administrative score, up to rounding:

same_for_all, administrative = (
    ss.brier_score(everybody, of_everybody["for all"], weighting=weighting, times=times)
    for weighting in (Sampled(np.full(n, 0.05)), "administrative")
)
print(np.abs(same_for_all.scores - administrative.scores).max() < 1e-12)

# %%
# And with the sample it must come close to what the score would be with everybody:

chance = np.where(company, 1.0, 0.05)
drawn = rng.random(n) < chance
y, models = everybody[drawn], {name: curves[drawn] for name, curves in of_everybody.items()}
shown = {
    "everybody": (everybody, of_everybody, "administrative"),
    "sample, weighted": (y, models, Sampled(chance[drawn])),
    "sample as it is": (y, models, "administrative"),
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
# It does, with a standard error to match: the sample has a seventh of the customers. Without
# weights, seven in ten of the sample are companies, and the verdict turns round.
#
# Two things to know. Standard errors take these weights as given. A weighting that estimates
# something from the scored outcomes says so by ``nuisance=`` (see :doc:`/engine`). And a loss
# without a compiled form runs in NumPy, slower on large data and with the same result. If
# others could use your loss or weighting, ``CONTRIBUTING.md`` says which lines make it a part
# of this library.

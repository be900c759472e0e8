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
from survscore.losses import Loss
from survscore.weighting import RowWeights, Weighting


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
# Data to try it on: rates that differ between individuals, and administrative censoring, which
# comes sooner for those with a high rate. Besides, about a quarter drop out before C*. What
# became of them is known, as the data are simulated.

rng = np.random.default_rng(5)
n = 4000
rate = rng.gamma(4.0, 0.005, n)
event_time = rng.exponential(1 / rate)
end = rng.uniform(0.0, 120.0, n) * np.where(rate > 0.02, 0.7, 1.0)
drop_out = rng.exponential(100.0, n)

full = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
seen = np.minimum(full.time, drop_out)
y = ss.Outcomes(seen, full.event & (full.time <= drop_out), end)
y

# %%

times = np.arange(2.0, 61.0, 2.0)
models = {
    "true survival": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    "gloomy": ss.SurvivalCurves(np.exp(-1.5 * rate[:, None] * times), times),
}
comparison = ss.compare(full, models, loss=Spherical(), weighting="administrative", times=times)
comparison.integrated(2, 60).contrasts.round(4)

# %%
# With the data in which nobody was lost, the truth is better than the gloomy model, as it must
# be under a proper loss.
#
# A weighting
# -----------
#
# With drop-outs the administrative weighting refuses, and rightly. IPCW weights for all
# censoring at once, here by one Kaplan-Meier curve, though C* depends on the rate. Neither
# fits. What does: count those with C* at or after t, as the administrative score does, and
# among these weight for the drop-outs alone:
#
# .. math::
#
#    w_i(t) = 1\{C^*_i \ge t\} \left(
#        \frac{1\{T_i \le t, D_i = 1\}}{G(T_i-)} + \frac{1\{T_i > t\}}{G(t)}\right)
#
# where G is the distribution of the time of dropping out. A weighting returns its weights as
# ranges of the evaluation times: before ``free_stop`` an individual counts as event-free, from
# there to ``event_stop`` as one with event.


class AdministrativeDropOut(Weighting):
    """Those with C* at or after t count, weighted for having dropped out by then."""

    name = "administrative, drop-outs weighted"

    def prepare(self, index):
        """Return the weights at the times of the index."""
        y = index.outcomes
        G = ss.KaplanMeierCensoring(
            ss.Outcomes(y.time, ~y.dropped_out)
        )  # here all but the drop-outs leave otherwise
        until_end = index.until_censoring_time  # how many evaluation times are at or before C*
        followed = ~y.event & ~y.dropped_out  # at t = C* these are known to be event-free
        return RowWeights(
            free_stop=np.where(followed, until_end, np.minimum(index.before_time, until_end)),
            event_stop=np.where(y.event, until_end, 0),
            event_weight=1.0 / G.before(y),
            free_weight=1.0 / G.at(index.times),
        )


# %%
# Tested where the answer is known
# --------------------------------
#
# A new weighting should be tried on data in which the answer is known. Without drop-outs it
# must be the administrative score, up to rounding:

ours, administrative = (
    ss.brier_score(full, models["gloomy"], weighting=weighting, times=times)
    for weighting in (AdministrativeDropOut(), "administrative")
)
print(np.abs(ours.scores - administrative.scores).max() < 1e-12)

# %%
# With drop-outs it must come close to what the administrative score would be, had nobody been
# lost.

kept = ~y.dropped_out
figure, ax = plt.subplots(layout="constrained")
shown = {
    "nobody lost, administrative": (full, models["gloomy"], "administrative"),
    "drop-outs weighted": (y, models["gloomy"], AdministrativeDropOut()),
    "IPCW, Kaplan-Meier": (y, models["gloomy"], "ipcw"),
    "drop-outs left out, administrative": (y[kept], models["gloomy"][kept], "administrative"),
}
scores = {
    name: ss.brier_score(*given[:2], weighting=given[2], times=times)
    for name, given in shown.items()
}
for name, score in scores.items():
    score.plot(ax=ax, band=name == "nobody lost, administrative", label=name)
ax.set_title("Brier score of the gloomy model")

# %%

pd.Series({name: score.integrated(2, 60).value for name, score in scores.items()}).round(
    4
).to_frame("mean Brier score")

# %%
# It does. IPCW with one curve for everybody does not, and leaving the drop-outs out is worse.
#
# Two things to know. The standard errors of a weighting of your own take its weights as given;
# that G was estimated is not counted. And a loss without a compiled twin runs in NumPy, slower
# on large data and with the same result. If others could use your loss or weighting,
# ``CONTRIBUTING.md`` says which lines make it a part of this library.

"""
What a cap on the weights does
==============================

IPCW weights are inverse probabilities, and a few of them can get large. A common remedy is a
cap: ``max_weight``. It reduces the variance of the score, and biases it: the smaller the cap,
the more the score becomes that of the individuals who happened not to be censored. With a cap
of 1 it is just that. Here the order of two models depends on the cap.
"""

# %%
# Two data sets
# -------------
#
# The same hazards with two kinds of censoring: C* uniform and independent of the covariates,
# or C* determined by them. In both, the individuals are those of the paper's simulation, with
# the truth attached.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import survscore as ss

titles = {"independent": "C* independent of covariates", "simple": "covariates encode C*"}
studies = {kind: ss.simulate.SineConstantAcceleratingStudy(kind) for kind in titles}
train = {kind: study.sample(5000, seed=1) for kind, study in studies.items()}
test = {kind: study.sample(5000, seed=2) for kind, study in studies.items()}

# %%
# Two models
# ----------
#
# Logistic regressions, one per horizon. The first learns from those with C* at or after the
# horizon, which is right. The second drops those censored before the horizon and keeps all
# others, among whom events are too frequent.

times = np.arange(5.0, 86.0, 5.0)
regression = make_pipeline(StandardScaler(), LogisticRegression())
models = {}
for kind, sample in train.items():
    models[kind] = {
        name: ss.models.HorizonClassifiers(regression, times, keep=keep)
        .fit(sample.covariates, sample.outcomes)
        .predict_curves(test[kind].covariates)
        for name, keep in (("right", "administrative"), ("dropping", "known"))
    }

# %%
# The weights
# -----------
#
# With Kaplan-Meier weights each individual event-free at t has the weight 1/G(t). From where
# it passes a cap (dashed), survivors count for less than they should.

figure, ax = plt.subplots(layout="constrained")
for kind, sample in test.items():
    ax.plot(times, 1 / ss.KaplanMeierCensoring(sample.outcomes).at(times), label=titles[kind])
for cap in (1, 2, 5):
    ax.axhline(cap, color="0.7", lw=1, ls="--")
ax.set(
    xlabel="time",
    ylabel="weight of the event-free",
    yscale="log",
    yticks=[1, 2, 5, 10],
    yticklabels=[1, 2, 5, 10],
)
ax.legend()

# %%
# The preference as the cap moves
# -------------------------------
#
# The mean Brier score of the model that drops, minus that of the right one, for each cap.
# Above zero the right model is preferred. The horizontal lines are the administrative
# difference and, since these data are simulated, the true one.

# sphinx_gallery_thumbnail_number = 2
caps = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, None]


def difference(kind, outcomes, weighting):
    """Return how much worse the dropping model is, and the standard error of that."""
    comparison = ss.compare(
        outcomes, models[kind], weighting=weighting, times=times, null=False
    )
    return comparison.integrated(5, 85).contrasts.iloc[0][["difference", "se"]].astype(float)


figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 4), layout="constrained")
found = {}
for ax, (kind, sample) in zip(axes, test.items(), strict=True):
    by_cap = [difference(kind, sample.outcomes, ss.IPCW(max_weight=cap)) for cap in caps]
    by_cap = pd.DataFrame(by_cap, index=["none" if cap is None else f"{cap:g}" for cap in caps])
    ax.errorbar(
        range(len(caps)),
        by_cap["difference"],
        yerr=1.96 * by_cap["se"],
        fmt="o-",
        capsize=3,
        label="IPCW",
    )
    administrative = difference(kind, sample.outcomes, "administrative")["difference"]
    true = difference(kind, sample.uncensored, "uncensored")["difference"]
    ax.axhline(administrative, color="C1", label="administrative")
    ax.axhline(true, color="C2", label="uncensored (the truth)")
    ax.axhline(0, color="0.5", lw=1, ls="--")
    ax.set(
        xticks=range(len(caps)),
        xticklabels=by_cap.index,
        xlabel="max_weight",
        title=titles[kind],
    )
    found[titles[kind]] = {
        **by_cap["difference"],
        "administrative": administrative,
        "uncensored": true,
    }
axes[0].set_ylabel("dropping minus right, mean Brier score")
axes[0].legend()

# %%

pd.DataFrame(found).round(4)

# %%
# Where covariates do not encode C*, IPCW without a cap is right, and so is the administrative
# score. Caps that few weights reach do no harm. Small ones reverse the preference: a cap of 1
# leaves the censored out, which is how the second model was trained, so of course it prefers
# that one. It is the score with known censoring times:

outcomes, curves = test["independent"].outcomes, models["independent"]["right"]
capped = ss.brier_score(outcomes, curves, weighting=ss.IPCW(max_weight=1), times=times)
known = ss.brier_score(outcomes, curves, weighting=ss.IPCW("known"), times=times)
print(np.allclose(capped.scores, known.scores))

# %%
# Where covariates encode C*, the wrong model is preferred with any cap, and without one. A
# cap trades variance for bias; it cannot remove a bias that comes from the weights being wrong
# for every individual. The administrative score has no weights to cap.

"""
Scoring pycox models
====================

pycox trains survival networks and returns a data frame of survival curves.
:meth:`survscore.SurvivalCurves.from_frame` takes it as it is. The rest is like for any other
model.

This example uses pycox 0.3.0: ``pip install pycox torchtuples``.
"""

# %%
# Data
# ----
#
# Two kinds of parts. The refurbished ones fail early or run for long; the new ones wear out.
# Both fail the faster the higher the load. Parts were installed over 100 weeks, then
# follow-up ends.

import matplotlib.pyplot as plt
import numpy as np
import torch
import torchtuples as tt
from pycox.models import CoxPH, LogisticHazard

import survscore as ss


def parts(n, seed):
    """Return covariates, outcomes and the true survival as a function of time."""
    rng = np.random.default_rng(seed)
    new, load = rng.random(n) < 0.5, rng.normal(size=n)
    shape, scale = np.where(new, 4.0, 0.6), 50.0 * np.exp(-0.4 * load)
    fails, end = scale * rng.weibull(shape), rng.uniform(0.0, 100.0, n)
    X = np.column_stack([new - 0.5, load]).astype(
        np.float32
    )  # pycox wants float32, about standardised
    y = ss.Outcomes(np.minimum(fails, end), fails <= end, end)
    return X, y, lambda times: np.exp(-((times / scale[:, None]) ** shape[:, None]))


X_train, y_train, _ = parts(4000, seed=1)
X, y, true_survival = parts(4000, seed=2)
y

# %%
# Two networks
# ------------
#
# ``LogisticHazard`` has an output for each interval of a grid, ``CoxPH`` (DeepSurv) a single
# one: it takes the hazards of any two individuals as proportional. Both get the same layers,
# and learn for as long.

torch.manual_seed(0)
np.random.seed(0)  # noqa: NPY002 (pycox shuffles with it)


def layers(n_outputs, **options):
    """Return a net."""
    return tt.practical.MLPVanilla(
        2, [32, 32], n_outputs, batch_norm=True, dropout=0.1, **options
    )


target = (y_train.time.astype(np.float32), y_train.event.astype(np.float32))
grid = LogisticHazard.label_transform(np.arange(0.0, 101.0, 5.0))
hazard = LogisticHazard(
    layers(grid.out_features), tt.optim.Adam(0.01), duration_index=grid.cuts
)
training = hazard.fit(
    X_train, grid.transform(*target), batch_size=256, epochs=25, verbose=False
)

cox = CoxPH(layers(1, output_bias=False), tt.optim.Adam(0.01))
training = cox.fit(X_train, target, batch_size=256, epochs=25, verbose=False)
baseline = cox.compute_baseline_hazards()

# %%
# Their curves
# ------------
#
# pycox's frame has a row per time and a column per individual. LogisticHazard's holds survival
# on its grid, and we read it as linear in between, as pycox's own ``interpolate`` does. Cox's
# falls in steps, at the event times of the training data.

frame = hazard.predict_surv_df(X)
print(f"{frame.shape[0]} times, {frame.shape[1]} individuals")
models = {
    "LogisticHazard": ss.SurvivalCurves.from_frame(frame),
    "CoxPH": ss.SurvivalCurves.from_frame(cox.predict_surv_df(X), interpolation="step"),
}
for name, curves in models.items():
    print(f"{name}: {curves}")

# %%
# The mean curves of both kinds of parts, with the truth in grey:

times = np.arange(1.0, 91.0)
figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 3.6), layout="constrained")
for ax, rows, title in zip(
    axes, (X[:, 0] < 0, X[:, 0] > 0), ("refurbished", "new"), strict=True
):
    ax.plot(times, true_survival(times)[rows].mean(axis=0), color="0.6", lw=4, label="truth")
    for name, curves in models.items():
        ax.plot(times, curves[rows].at(times).mean(axis=0), label=name)
    ax.set(xlabel="weeks", title=title, ylim=(0, 1))
axes[0].set_ylabel("mean survival")
axes[1].legend()

# %%
# Scores
# ------
#
# C* is known for each individual, so the administrative score fits. The null model is one
# Kaplan-Meier curve for all individuals.

comparison = ss.compare(y, models, weighting="administrative", times=times, reference="CoxPH")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, curves in models.items():
    ss.brier_score(y, curves, weighting="administrative", times=times).plot(
        ax=axes[0], label=name
    )
comparison.plot(ax=axes[1])

# %%

comparison.integrated(1, 90).contrasts.round(4)

# %%
# The hazards of the two kinds cross, which a Cox net cannot follow, however many layers it has:
# LogisticHazard is better, and the interval of the difference does not hold zero.
#
# pycox computes administrative Brier scores too (``EvalSurv.brier_score_admin``), without
# standard errors. Its integrated scores call ``scipy.integrate.simps``, which current SciPy no
# longer has; nothing of that is needed here.

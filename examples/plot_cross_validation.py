"""
Cross-validation and searches with scikit-learn
===============================================

:class:`survscore.Outcomes` can be the ``y`` of scikit-learn's tools, and
:func:`survscore.make_scorer` makes scorers for them. A search then finds the model that is
best under the score you chose. Choose the wrong one, and it finds the wrong model.
"""

# %%
# Data
# ----
#
# Simulated individuals whose covariates encode the censoring time. Nothing about ``y``
# needs to be prepared: the splitters slice it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import survscore as ss

sample = ss.simulate.SineConstantAcceleratingStudy("simple").sample(6000, seed=1)
rows = np.arange(6000)
X, X_test, y, y_test, _, test_rows = train_test_split(
    sample.covariates, sample.outcomes, rows, test_size=0.5, random_state=0
)
y

# %%
# Scorers
# -------
#
# A scorer has a loss, a weighting and times. Over several times it is their mean; scikit-learn
# maximises, so it returns minus the score.

times = np.arange(10.0, 81.0, 10.0)
scoring = {
    "brier": ss.make_scorer("brier", weighting="administrative", times=times),
    "log": ss.make_scorer("log", weighting="administrative", times=times),
    "brier at 50": ss.make_scorer("brier", weighting="administrative", times=[50]),
}

# %%
# Cross-validation
# ----------------
#
# Any estimator will do that has ``predict_curves``, as those of ``survscore.models`` have, or
# scikit-survival's ``predict_survival_function``.

logistic = make_pipeline(StandardScaler(), LogisticRegression())
estimators = {
    "Kaplan-Meier": ss.models.KaplanMeier(),
    "classifiers": ss.models.HorizonClassifiers(logistic, times, keep="administrative"),
}
folds = KFold(5, shuffle=True, random_state=0)
results = {
    name: cross_validate(model, X, y, cv=folds, scoring=scoring)
    for name, model in estimators.items()
}
pd.DataFrame(
    {
        name: {score: -found[f"test_{score}"].mean() for score in scoring}
        for name, found in results.items()
    }
).round(4)

# %%
# The folds are the same for both, so they can be compared fold by fold.

better = (
    results["classifiers"]["test_brier"] > results["Kaplan-Meier"]["test_brier"]
)  # these are minus the scores
print(f"the classifiers are better in {better.sum()} of {better.size} folds")

# %%
# A search
# --------
#
# The classifiers have two settings: how strongly to regularise, and which individuals to keep
# at each horizon. Those whose status is known there (``"known"``) are more; those with C* at or
# after it (``"administrative"``) are an unbiased sample. Let the search decide, once with the
# administrative score and once with IPCW.

grid = {
    "keep": ["administrative", "known"],
    "estimator__logisticregression__C": [0.001, 0.01, 0.1, 1.0],
}
searches = {}
for name, weighting in {"administrative": "administrative", "IPCW": "ipcw"}.items():
    scorer = ss.make_scorer("brier", weighting=weighting, times=times)
    searches[name] = GridSearchCV(
        estimators["classifiers"], grid, scoring=scorer, cv=folds
    ).fit(X, y)
    print(f"{name}: {searches[name].best_params_}")

# %%
# The whole grid, by the score of each search:

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, (name, search) in zip(axes, searches.items(), strict=True):
    found = pd.DataFrame(search.cv_results_)
    for keep, part in found.groupby("param_keep"):
        C = part["param_estimator__logisticregression__C"].astype(float)
        ax.semilogx(C, -part["mean_test_score"], "o-", label=f'keep="{keep}"')
    ax.set(xlabel="C (weaker regularisation to the right)", title=f"searched with {name}")
axes[0].set_ylabel("mean Brier score over the folds (lower is better)")
axes[0].legend()

# %%
# Which search was right?
# -----------------------
#
# The data are simulated, so the events after the cut-off are known.

final = {
    f"found with {name}": search.best_estimator_.predict_curves(X_test)
    for name, search in searches.items()
}
truth = ss.compare(
    sample.uncensored[test_rows],
    final,
    weighting="uncensored",
    times=times,
    reference="found with administrative",
)
# sphinx_gallery_thumbnail_number = 2
truth.plot()
truth.integrated(10, 80).contrasts.round(4)

# %%
# The search with the administrative score chose to keep those with C* at or after the horizon,
# the search with IPCW to drop the censored. In truth the model of the latter is far worse:
# hardly better than one Kaplan-Meier curve for all individuals.
#
# A note on weights: a scorer is used on every fold, which has other individuals each time. So
# ``IPCW()``, which fits Kaplan-Meier on the fold that is scored, and ``IPCW(y_train)`` can be
# a scorer's weighting; individual censoring curves cannot.

"""
A classifier that encodes the sign-up month
===========================================

A common recipe for churn: one classifier per horizon, fitted to the customers whose status is
known then, with the sign-up month among its features. Those who left early are known at once,
those who stayed only if they signed up long enough ago. So the classifier learns that recent
customers leave. The **administrative** score at twelve months counts customers observed for
twelve months, for whom this does no harm, and does not show the error. The **projected** score
counts all customers. Here the truth is known, since the data are simulated.
"""

# %%
# Customers
# ---------
#
# Half of the customers are for training. All signed up in the two years before the cut-off.

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import survscore as ss

rng, n, months = np.random.default_rng(1), 8000, np.array([3.0, 6.0, 9.0, 12.0])
x, observed = rng.normal(size=(n, 2)), rng.uniform(0.5, 24, n)
rate = 0.06 * np.exp(0.7 * x[:, 0] - 0.5 * x[:, 1])
leaves_after = rng.exponential(1 / rate)
y = ss.Outcomes(np.minimum(leaves_after, observed), leaves_after <= observed, observed)
features = {"dated": np.c_[x, observed], "dateless": x}
train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2

# %%
# Two classifiers
# ---------------
#
# Both leave out customers who were not observed long enough.


def predicted(covariates):
    """Return survival at each month by a classifier of its own."""
    survival = []
    for month in months:
        known = train & ((y.time >= month) | y.event)
        tree = DecisionTreeClassifier(min_samples_leaf=100, random_state=0)
        tree.fit(covariates[known], y.time[known] >= month)
        survival.append(tree.predict_proba(covariates[test])[:, 1])
    return ss.SurvivalCurves(np.minimum.accumulate(np.array(survival).T, axis=1), months)


models = {name: predicted(covariates) for name, covariates in features.items()}
comparison = ss.compare(y[test], models, reference="dateless", times=[12], null=False)
print(comparison)

# %%
# The truth
# ---------
#
# For simulated customers the expected Brier score over all of them is known:

still_there = np.exp(-12 * rate[test])
truth = {}
for name, curves in models.items():
    survival = curves.at([12.0])[:, 0]
    truth[name] = float(
        np.mean(still_there * (1 - survival) ** 2 + (1 - still_there) * survival**2)
    )
print({name: round(score, 3) for name, score in truth.items()})
print(comparison.parts.drop(columns=["metric", "weighting"]).round(3))

# %%
# How certain is that?
# --------------------
#
# The projected score assumes that recent customers will leave as earlier ones of similar
# predicted risk did. The figure shows the difference of the two classifiers for other hazards
# of recent customers, as multiples of the assumed one, and what can be estimated of them: how
# often they left so far, against earlier customers of the same age.

print(comparison.sensitivity())
display = comparison.sensitivity().plot()

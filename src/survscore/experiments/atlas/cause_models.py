"""The models of the atlas for sets whose events have causes: what people fit, without and with the date of entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from survscore.censoring.aalen_johansen import Incidence
from survscore.experiments.atlas.models import LEARNING_RATE, Censored, Effort, Entry, Recipe, features
from survscore.outcomes import Outcomes

NULL = "Aalen-Johansen"
Values = NDArray[np.float64]


class PredictsIncidence(Protocol):
    """What becomes of each individual at some horizons: (individuals, causes, horizons), not falling in the last."""

    def fit(self, X: Values, y: Outcomes) -> Self:
        """Learn from numbers, and outcomes with causes."""

    def incidence(self, X: Values) -> Values:
        """Return the probability of an event of each cause up to each horizon."""


class AalenJohansen:
    """The same incidences for all: the Aalen-Johansen estimate of the training data."""

    incidence_: Values

    def __init__(self, horizons: Values) -> None:
        self.horizons = horizons

    def fit(self, X: Values, y: Outcomes) -> Self:
        """Estimate the incidence of each cause."""
        several = [Incidence.of(y.for_cause(cause)) for cause in y.causes]
        self.incidence_ = np.array([one.table(self.horizons)[0] for one in several])
        return self

    def incidence(self, X: Values) -> Values:
        """Return the estimate for each individual."""
        return np.tile(self.incidence_, (len(X), 1, 1))


class StatusClassifiers:
    """A classifier of several classes for each horizon: event-free, or which cause.

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba``. It is cloned.
    horizons : ndarray
    censored : str
        What becomes of those censored before the horizon: see `Recipe`.
    """

    n_causes_: int
    estimators_: list[Any]

    def __init__(self, classifier: Any, horizons: Values, censored: Censored) -> None:
        self.classifier, self.horizons, self.censored = classifier, horizons, censored

    def fit(self, X: Values, y: Outcomes) -> Self:
        """Fit one classifier for each horizon."""
        self.n_causes_, self.estimators_ = len(y.causes), []
        for horizon in self.horizons:
            rows, status = self.known(y, float(horizon))
            one_class = np.unique(status).size == 1  # of which most classifiers learn nothing
            self.estimators_.append(int(status[0]) if one_class else clone(self.classifier).fit(X[rows], status))
        return self

    def known(self, y: Outcomes, horizon: float) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return whom the classifier of a horizon learns from, and their status: 0 event-free, or the cause."""
        happened = y.event & (y.time <= horizon)
        status = np.where(happened, np.asarray(y.cause), 0).astype(np.int64)
        known = happened | (y.time > horizon)
        if self.censored == "event-free":
            known[:] = True
        elif self.censored == "outside":
            known &= np.asarray(y.censoring_time) >= horizon
        rows = np.flatnonzero(known)
        return rows, status[rows]

    def incidence(self, X: Values) -> Values:
        """Return the predicted probabilities of causes; a running maximum over horizons, so that none falls."""
        found = np.zeros((len(X), 1 + self.n_causes_, self.horizons.size))
        for j, fitted in enumerate(self.estimators_):
            if isinstance(fitted, int):
                found[:, fitted, j] = 1.0
            else:
                found[:, fitted.classes_, j] = fitted.predict_proba(X)
        return np.maximum.accumulate(found[:, 1:], axis=2)


class CauseSpecificCox:
    r"""A Cox model of each cause, in which events of others are censored, combined into incidences.

    With the cumulative hazards :math:`\Lambda_k` and :math:`\Lambda = \sum_k \Lambda_k`,

    .. math:: F_k(t) = \sum_{s \le t} e^{-\Lambda(s-)} (1 - e^{-\Delta \Lambda(s)})
        \frac{\Delta \Lambda_k(s)}{\Delta \Lambda(s)} ,

    so that all :math:`F_k` add up to :math:`1 - e^{-\Lambda}`.
    """

    models_: list[Any]

    def __init__(self, horizons: Values) -> None:
        self.horizons = horizons

    def fit(self, X: Values, y: Outcomes) -> Self:
        """Fit a model for each cause; a weak ridge, since a fold may have a category with no events."""
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        self.models_ = []
        for cause in y.causes:
            target = Outcomes(y.time, y.for_cause(cause).event_of_interest).to_structured()
            self.models_.append(CoxPHSurvivalAnalysis(alpha=1.0).fit(X, target))
        return self

    def incidence(self, X: Values) -> Values:
        """Return the incidence of each cause at the horizons."""
        times = self.models_[0].unique_times_  # all times of the training data, whatever happened
        last = int(np.searchsorted(times, self.horizons[-1], side="right"))
        hazards = [model.predict_cumulative_hazard_function(X, return_array=True)[:, :last] for model in self.models_]
        return combined(np.array(hazards), times[:last], self.horizons)


def combined(hazards: Values, times: Values, horizons: Values) -> Values:
    """Return incidences, (n, causes, horizons), of cumulative hazards, (causes, n, times)."""
    steps = np.diff(hazards, axis=2, prepend=0.0)
    total = steps.sum(axis=0)
    before = np.exp(total - np.cumsum(total, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        jumps = np.where(total > 0, before * -np.expm1(-total) * steps / total, 0.0)
    incidence = np.concatenate([np.zeros_like(jumps[..., :1]), np.cumsum(jumps, axis=2)], axis=2)
    return np.moveaxis(incidence[..., np.searchsorted(times, horizons, side="right")], 0, 1)


def _classifiers(name: str, classifier: Callable[[Effort], Any]) -> list[Recipe]:
    def of(censored: Censored) -> Callable[[Values, Effort], Any]:
        return lambda horizons, effort: StatusClassifiers(classifier(effort), horizons, censored)

    return [
        Recipe(f"{name}, censored dropped", "dropped", of("dropped")),
        Recipe(f"{name}, censored as event-free", "event-free", of("event-free")),
        Recipe(f"{name}, C* after horizon", "outside", of("outside")),
    ]


RECIPES: tuple[Recipe, ...] = (
    Recipe(NULL, "modelled", lambda horizons, effort: AalenJohansen(horizons)),
    Recipe("Cox by cause", "modelled", lambda horizons, effort: CauseSpecificCox(horizons), "sksurv"),
    *_classifiers("logistic regression", lambda effort: LogisticRegression(max_iter=200)),
    *_classifiers(
        "boosted classifiers",
        lambda effort: HistGradientBoostingClassifier(
            max_iter=effort.rounds, learning_rate=LEARNING_RATE, max_leaf_nodes=8, early_stopping=False
        ),
    ),
)


def listed() -> tuple[Entry, ...]:
    """Return the models of the list, all but the null model without and with the date of entry."""
    return tuple(Entry(one, entry) for one in RECIPES for entry in (False, True) if not (entry and one.name == NULL))


def out_of_fold(
    entries: list[Entry], X: Any, y: Outcomes, horizons: Values, effort: Effort, folds: Any
) -> dict[str, Values]:
    """Return what each model predicts for the individuals of each fold, fitted to those of the others."""
    found = {one.name: np.zeros((len(y), len(y.causes), horizons.size)) for one in entries}
    for train, test in folds:
        for entry in (False, True):
            covariates = features(entry=entry)
            seen = np.asarray(covariates.fit_transform(X.iloc[train]))
            unseen = np.asarray(covariates.transform(X.iloc[test]))
            for one in (one for one in entries if one.entry == entry):
                model: PredictsIncidence = one.recipe.make(horizons, effort)
                found[one.name][test] = model.fit(seen, y[train]).incidence(unseen)
    return found

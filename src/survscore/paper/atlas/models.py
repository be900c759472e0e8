"""The same models for every data set: what people fit, without and with the date of entry among the covariates.

They are examples, neither tuned nor the best there are. Some leak the censoring times on purpose: what a score says of
those is the question.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from survscore._validation import as_times
from survscore.adapters import ScikitSurvival
from survscore.adapters.survival_model import Curves, SurvivalModel
from survscore.incidence import IncidenceCurves
from survscore.models import AalenJohansen, BCESurvival, HorizonClassifiers, KaplanMeier, LogisticHazard
from survscore.models.grid import Keep
from survscore.outcomes import Outcomes, as_outcomes

#: The column with the date of entry, in days since the first; data sets come without it.
ENTRY = "date of entry"
WITH_ENTRY = " + entry"
NULL = "Kaplan-Meier"
NULL_BY_CAUSE = "Aalen-Johansen"
NULLS = (NULL, NULL_BY_CAUSE)
#: Rarer categories are put together, so that folds know most of them.
RAREST_CATEGORY = 0.01
MOST_CATEGORIES = 12
LEARNING_RATE = 0.2
#: Forests take long where all times differ: they are given times on a grid, of so many quantiles and the horizons.
GRID_OF_FOREST = 50

Values = NDArray[np.float64]
#: What becomes of those censored before a horizon, for whom its classifier has no label.
Censored = Literal["dropped", "event-free", "outside", "modelled"]


@dataclass(frozen=True)
class Effort:
    """How much work goes into fits: trees, rounds of boosting, grid times of nets up to each horizon, and epochs."""

    trees: int
    rounds: int
    steps: int
    epochs: int


@dataclass(frozen=True)
class AtlasSize:
    """How much is computed: individuals at most, folds, draws for intervals, splits into halves, effort of fits."""

    name: str
    most: int
    folds: int
    n_draws: int
    n_splits: int
    effort: Effort


SIZES = {
    "full": AtlasSize("full", 4000, 5, 200, 10, Effort(trees=50, rounds=30, steps=6, epochs=40)),
    "quick": AtlasSize("quick", 400, 3, 20, 2, Effort(trees=5, rounds=5, steps=2, epochs=3)),
}


@dataclass(frozen=True)
class ModelRecipe:
    """One kind of model."""

    name: str
    #: What becomes of those censored before a horizon. They are "dropped", though those with event before their
    #: censoring stay, which leaks; treated as "event-free"; or "outside", as all with C* before the horizon are. Of
    #: survival models, "modelled".
    censored: Censored
    #: From horizons and effort, an estimator of numbers only.
    make: Callable[[Values, Effort], Any]
    #: The package it comes from, if that is optional.
    needs: str = ""


def _classifiers(name: str, classifier: Callable[[Effort], Any]) -> list[ModelRecipe]:
    """Return the three ways in which people train a classifier per horizon."""

    def of(keep: Keep) -> Callable[[Values, Effort], Any]:
        return lambda horizons, effort: HorizonClassifiers(classifier(effort), horizons, keep=keep)

    return [
        ModelRecipe(f"{name}, censored dropped", "dropped", of("known")),
        ModelRecipe(
            f"{name}, censored as event-free",
            "event-free",
            lambda horizons, effort: CensoredAsEventFree(of("known")(horizons, effort)),
        ),
        ModelRecipe(f"{name}, C* after horizon", "outside", of("administrative")),
    ]


@dataclass(eq=False, repr=False)
class _OfChangedOutcomes(SurvivalModel):
    """A model, with ``fit`` and ``predict_curves`` for `Outcomes`, whose outcomes are changed before it is fitted."""

    estimator: Any

    estimator_: Any = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to changed outcomes."""
        self.estimator_ = clone(self.estimator).fit(X, self._changed(as_outcomes(y)))
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> Curves:
        """Return what it predicts."""
        check_is_fitted(self)
        curves: Curves = self.estimator_.predict_curves(X, times)
        return curves

    @abstractmethod
    def _changed(self, y: Outcomes) -> Outcomes:
        """Return other outcomes."""


class CensoredAsEventFree(_OfChangedOutcomes):
    """A model of data in which the censored never had the event, as data bases have them that only know events."""

    def _changed(self, y: Outcomes) -> Outcomes:
        late = 2.0 * float(y.time.max()) + 1.0
        event = y.event if y.cause is None else y.cause
        return Outcomes(np.where(y.event, y.time, late), event, causes=y.causes or None)


@dataclass(eq=False, repr=False)
class OnGrid(_OfChangedOutcomes):
    """A model that is given times on a grid: events at its next time, censorings at its last one before.

    So nobody's status at a time of the grid changes. Its times are the horizons, and quantiles of the training times.
    """

    horizons: ArrayLike
    n_times: int

    def _changed(self, y: Outcomes) -> Outcomes:
        quantiles = np.quantile(y.time, np.arange(1, self.n_times + 1) / self.n_times, method="higher")
        grid = np.union1d(quantiles, np.asarray(self.horizons, dtype=np.float64))
        following = grid[np.minimum(np.searchsorted(grid, y.time), grid.size - 1)]
        place = np.searchsorted(grid, y.time, side="right")
        before = np.where(place > 0, grid[np.maximum(place, 1) - 1], y.time)
        return Outcomes(np.where(y.event, following, before), y.event)


@dataclass(eq=False, repr=False)
class CauseSpecificCox(SurvivalModel):
    r"""A Cox model of each cause, in which events of others are censored, combined into incidences.

    With the cumulative hazards :math:`\Lambda_k` and :math:`\Lambda = \sum_k \Lambda_k`,

    .. math:: F_k(t) = \sum_{s \le t} e^{-\Lambda(s-)} (1 - e^{-\Delta \Lambda(s)})
        \frac{\Delta \Lambda_k(s)}{\Delta \Lambda(s)} ,

    so that all :math:`F_k` add up to :math:`1 - e^{-\Lambda}`.
    """

    #: Of its predictions.
    times: ArrayLike

    #: The fitted Cox model of each cause.
    models_: list[Any] = field(init=False)
    causes_: tuple[str, ...] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a model for each cause; a weak ridge, since a fold may have a category with no events."""
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        outcomes = as_outcomes(y)
        self.causes_, self.models_ = outcomes.causes, []
        for cause in outcomes.causes:
            target = Outcomes(outcomes.time, outcomes.for_cause(cause).event_of_interest).to_structured()
            self.models_.append(CoxPHSurvivalAnalysis(alpha=1.0).fit(X, target))
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> IncidenceCurves:
        """Return the incidence of each cause."""
        check_is_fitted(self)
        grid = as_times(self.times if times is None else times)
        jumps = self.models_[0].unique_times_  # all times of the training data, whatever happened
        last = int(np.searchsorted(jumps, grid[-1], side="right"))
        hazards = [model.predict_cumulative_hazard_function(X, return_array=True)[:, :last] for model in self.models_]
        return IncidenceCurves(combined(np.array(hazards), jumps[:last], grid), grid, causes=self.causes_)


def combined(hazards: Values, jumps: Values, times: Values) -> Values:
    """Return incidences, (n, causes, times), of cumulative hazards, (causes, n, jumps)."""
    steps = np.diff(hazards, axis=2, prepend=0.0)
    total = steps.sum(axis=0)
    before = np.exp(total - np.cumsum(total, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        rises = np.where(total > 0, before * -np.expm1(-total) * steps / total, 0.0)
    incidence = np.concatenate([np.zeros_like(rises[..., :1]), np.cumsum(rises, axis=2)], axis=2)
    return np.moveaxis(incidence[..., np.searchsorted(jumps, times, side="right")], 0, 1)


def _cox(horizons: Values, effort: Effort) -> Any:
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    # a weak ridge, since a fold may have a category with no events
    return ScikitSurvival(CoxPHSurvivalAnalysis(alpha=1.0), times=horizons)


def _forest(horizons: Values, effort: Effort) -> Any:
    from sksurv.ensemble import RandomSurvivalForest

    forest = RandomSurvivalForest(n_estimators=effort.trees, min_samples_leaf=15, max_samples=0.5)
    return OnGrid(ScikitSurvival(forest, times=horizons), horizons, GRID_OF_FOREST)


def _boosting(horizons: Values, effort: Effort) -> Any:
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    boosting = GradientBoostingSurvivalAnalysis(
        n_estimators=effort.rounds, learning_rate=LEARNING_RATE, max_depth=2, subsample=0.5
    )
    return ScikitSurvival(boosting, times=horizons)


def _net(kind: Any) -> Callable[[Values, Effort], Any]:
    def make(horizons: Values, effort: Effort) -> Any:
        # the same number of steps up to each horizon from the one before
        ends = np.concatenate([[0.0], horizons])
        steps = np.arange(1, effort.steps + 1) / effort.steps
        grid = (ends[:-1, None] + np.diff(ends)[:, None] * steps).ravel()
        return kind(times=grid, n_layers=2, epochs=effort.epochs, patience=5, device="cpu", progress=False)

    return make


#: Of events of one kind, and of several causes.
CLASSIFIERS: tuple[ModelRecipe, ...] = (
    *_classifiers("logistic regression", lambda effort: LogisticRegression(max_iter=200)),
    *_classifiers(
        "boosted classifiers",
        lambda effort: HistGradientBoostingClassifier(
            max_iter=effort.rounds, learning_rate=LEARNING_RATE, max_leaf_nodes=8, early_stopping=False
        ),
    ),
)

RECIPES: tuple[ModelRecipe, ...] = (
    ModelRecipe(NULL, "modelled", lambda horizons, effort: KaplanMeier(times=horizons)),
    ModelRecipe("Cox", "modelled", _cox, "sksurv"),
    ModelRecipe("random survival forest", "modelled", _forest, "sksurv"),
    ModelRecipe("gradient boosting", "modelled", _boosting, "sksurv"),
    ModelRecipe("Logistic-Hazard", "modelled", _net(LogisticHazard)),
    ModelRecipe("BCE", "dropped", _net(BCESurvival)),
    *CLASSIFIERS,
)
#: Of competing causes.
CAUSE_RECIPES: tuple[ModelRecipe, ...] = (
    ModelRecipe(NULL_BY_CAUSE, "modelled", lambda horizons, effort: AalenJohansen(times=horizons)),
    ModelRecipe("Cox by cause", "modelled", lambda horizons, effort: CauseSpecificCox(horizons), "sksurv"),
    *CLASSIFIERS,
)


@dataclass(frozen=True)
class ListedModel:
    """A model of the list: a recipe, without or with the date of entry as covariate."""

    recipe: ModelRecipe
    entry: bool

    @property
    def name(self) -> str:
        """What it is called in all tables."""
        return self.recipe.name + WITH_ENTRY * self.entry


def listed(*, by_cause: bool = False) -> tuple[ListedModel, ...]:
    """Return the models of the list, all that there are."""
    recipes = CAUSE_RECIPES if by_cause else RECIPES
    both = [ListedModel(recipe, entry) for recipe in recipes for entry in (False, True)]
    return tuple(model for model in both if not (model.entry and model.recipe.name in NULLS))


def installed(entries: Iterable[ListedModel]) -> tuple[list[ListedModel], list[str]]:
    """Return the models that can be fitted here, and the packages that others need."""
    models = list(entries)
    needed = {model.recipe.needs for model in models} - {""}
    missing = sorted(package for package in needed if find_spec(package) is None)
    return [model for model in models if model.recipe.needs not in missing], missing


def estimators(entries: Iterable[ListedModel], horizons: Values, effort: Effort) -> dict[str, Any]:
    """Return the models by name, as estimators of data frames that hold `ENTRY`."""
    made = {}
    for model in entries:
        made[model.name] = model.recipe.make(horizons, effort)
        if model.recipe.name not in NULLS:
            made[model.name] = Pipeline([("features", features(entry=model.entry)), ("model", made[model.name])])
    return made


def features(*, entry: bool) -> ColumnTransformer:
    """Return how covariates become numbers; learnt anew from each fold's training data.

    Missing numbers become the median, with a column that says so; missing categories are a category.
    """
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = OneHotEncoder(
        min_frequency=RAREST_CATEGORY,
        max_categories=MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        drop="if_binary",
        sparse_output=False,
    )
    pattern = None if entry else f"^(?!{ENTRY}$)"
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(pattern, dtype_include="number")),
            ("categories", categories, make_column_selector(pattern, dtype_exclude="number")),
        ]
    )


#: Which models are compared with each other: all, or without those that know too much.
FAMILIES: Mapping[str, Callable[[ListedModel], bool]] = {
    "all": lambda model: True,
    "none drops the censored": lambda model: model.recipe.censored != "dropped",
    "without date of entry": lambda model: not model.entry,
    "neither": lambda model: model.recipe.censored != "dropped" and not model.entry,
}


def family(name: str, entries: Iterable[ListedModel]) -> list[str]:
    """Return the names of a family's models."""
    return [model.name for model in entries if FAMILIES[name](model)]

"""What all models and adapters share: the target they take, how they are scored, and where curves are read and end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from survscore._utils.frames import as_frame, collected, n_rows_of, take_rows
from survscore._validation import FloatArray, InputError, UnfitError, as_times, check_length, several
from survscore.causes import Cause
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes, as_outcomes
from survscore.scores import brier_score
from survscore.weighting import Weighting, weightings_that_fit

N_TIMES = 200  # of the default grid of a formula, which has none of its own
CELLS_AT_ONCE = 1 << 22
#: What models predict: survival, or under competing risks the cumulative incidence of each cause.
Curves = SurvivalCurves | IncidenceCurves


def as_training_data(
    y: Any, n_rows: int, name: str = "y", of: str = "X", *, causes: bool = False, entry: bool = False
) -> Outcomes:
    """Return the target, checked to have as many individuals as the covariates have rows.

    Competing causes are refused unless the model learns `causes`: with events of all causes alike it would predict the
    time to any of them, and scores of one cause would take that for the time to this one. Delayed entry is refused
    unless the model has risk sets with `entry`: otherwise it would learn too small risks.
    """
    outcomes = as_outcomes(y)
    check_length(name, len(outcomes), of, n_rows)
    if not causes and len(outcomes.causes) > 1:
        raise UnfitError(
            f"{name} has competing causes ({several([repr(one) for one in outcomes.causes])}), and this model learns "
            "events of one kind: fit it to y.any_event() for events of any cause, or take LogisticHazard, "
            "HorizonClassifiers or AalenJohansen, which learn causes"
        )
    if not entry and outcomes.entry is not None:
        raise UnfitError(
            f"{name} has delayed entry, which this model can't use: fit it to y.since_entry(), with the age at entry "
            "among the covariates, or take KaplanMeier or AalenJohansen, whose risk sets allow for it"
        )
    return outcomes


def weighting_for(y: Outcomes, weighting: str | Weighting | None) -> str | Weighting | None:
    """Return the weighting asked for, or the one that can't mislead for these data; None where there is none."""
    choices = weightings_that_fit(y)
    return choices.names[0] if weighting is None and not choices.misleading else weighting


class SurvivalModel(BaseEstimator):  # type: ignore[misc]
    """Base of all models: scikit-learn's conventions, with `Outcomes` as target."""

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Fit to covariates and outcomes."""

    @abstractmethod
    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> Curves:
        """Return predicted survival, or under competing risks predicted incidences."""

    def predict_survival_function(self, X: Any, times: ArrayLike) -> FloatArray:
        """Return predicted survival at `times` as an array; under competing risks that of any event.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        times : array_like
            Strictly increasing.

        Returns
        -------
        ndarray of shape (n, len(times))
        """
        curves = self.predict_curves(X, as_times(times))
        return curves.event_free().probabilities if isinstance(curves, IncidenceCurves) else curves.probabilities

    def predict_cumulative_incidence(self, X: Any, times: ArrayLike) -> FloatArray:
        """Return the predicted cumulative incidence of each cause at `times` as an array.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        times : array_like
            Strictly increasing.

        Returns
        -------
        ndarray of shape (n, causes, len(times))
            With one cause where the model was not fitted to competing risks.
        """
        curves = self.predict_curves(X, as_times(times))
        return curves.probabilities if isinstance(curves, IncidenceCurves) else 1.0 - curves.probabilities[:, None]

    @available_if(lambda model: getattr(model, "times", None) is not None)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> FloatArray:
        """Return predictions at the times that the model was made with, as scikit-learn's wrappers ask for them.

        Only models with fixed times have it: ``cross_val_predict`` puts the predictions of all folds into one array,
        and grids that each model learnt from its own fold are not the same.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.

        Returns
        -------
        ndarray of shape (n, len(times)), or (n, causes, len(times))
            Survival, or the cumulative incidence of each cause where there are several.
        """
        curves = self.predict_curves(X, as_times(cast("Any", self).times))
        one_kind = isinstance(curves, IncidenceCurves) and len(curves.causes) == 1
        return curves.event_free().probabilities if one_kind else curves.probabilities  # type: ignore[union-attr]

    def score(self, X: Any, y: Any, *, weighting: str | Weighting | None = None, cause: Cause | None = None) -> float:
        """Return minus the integrated Brier score, so that higher is better.

        The range is that of the model's own grid, so that models with other grids can't be compared by it. For that,
        and in searches over grids, use `make_scorer`, which fixes the times.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        y : Outcomes
            What was observed.
        weighting : str or Weighting, optional
            As for `brier_score`. Without it the score is administrative if all censoring times are known,
            uncensored if all individuals had the event, and rejected otherwise.
        cause : str or int, optional
            As for `brier_score`; required under competing risks, unless `y` says it (`Outcomes.for_cause`).

        Returns
        -------
        float
        """
        outcomes = as_outcomes(y)
        weighting = weighting_for(outcomes, weighting)
        score = brier_score(outcomes, self.predict_curves(X), weighting=weighting, errors=False, cause=cause)
        return -score.integrated(nan="stop").value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def check_within(times: NDArray[np.float64], grid: NDArray[np.float64]) -> None:
    """Raise unless a model's grid reaches all the times asked for."""
    if times[-1] > grid[-1]:
        raise InputError(
            f"times must lie within what the model learnt: they end at {times[-1]:g}, its grid at {grid[-1]:g}"
        )


@dataclass(eq=False, repr=False)
class Adapter(MetaEstimatorMixin, SurvivalModel):  # type: ignore[misc]
    """An estimator of another package, fitted to `Outcomes`."""

    estimator: Any
    _: KW_ONLY
    times: ArrayLike | None = None

    estimator_: Any = field(init=False)
    end_: float = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the estimator.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        y : Outcomes or structured array
            What was observed. Censoring times are not for the estimator; they are there for scores.

        Returns
        -------
        The adapter.
        """
        X = collected(X)
        outcomes = as_training_data(y, n_rows_of(X)).numpy()
        if self.times is not None:
            as_times(self.times)  # refused now, not after a long fit
        self.estimator_ = self._fitted(X, outcomes)
        self.end_ = float(outcomes.time.max())
        #: Where curves of a formula, which have a value at any time, are computed by default.
        self._observed = np.unique(np.quantile(outcomes.time, np.linspace(0, 1, N_TIMES + 1), method="lower"))
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> SurvivalCurves:
        """Return predicted survival.

        Parameters
        ----------
        X : array_like or data frame
            Covariates.
        times : array_like, optional
            The grid; by default that of the parameter `times`, or the estimator's own.

        Returns
        -------
        SurvivalCurves
        """
        check_is_fitted(self)
        times = self.times if times is None else times
        return self._curves(collected(X), None if times is None else as_times(times))

    @abstractmethod
    def _fitted(self, X: Any, y: Outcomes) -> Any:
        """Return a fitted estimator, and leave the one that was given as it is."""

    @abstractmethod
    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        """Return the curves, at `times` if they are given."""

    def _read_steps(self, X: Any, steps: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        """Return step functions, which ``steps(X)`` gives as (survival, times), as they are or read at `times`.

        After its last jump a step function stays what it is for as long as training was followed up, and says nothing
        after that. Read at `times` it is linear between them: it falls somewhere there, and not at the next of them.
        """
        if times is None:
            survival, grid = steps(X)
            if grid[-1] < self.end_:
                survival = np.column_stack((survival, survival[:, -1]))
                grid = np.append(grid, self.end_)
            return SurvivalCurves(survival, grid, interpolation="step")
        check_within(times, np.array([self.end_]))
        n = n_rows_of(X)
        matrix = np.empty((n, times.size))
        size, start = 256, 0  # a first block, which tells how wide the others are
        while start < n:
            rows = np.arange(start, min(start + size, n))
            survival, grid = steps(take_rows(X, rows))
            places = np.searchsorted(grid, times, side="right")
            matrix[rows] = np.where(places > 0, survival[:, np.maximum(places, 1) - 1], 1.0)
            start, size = start + size, max(1, CELLS_AT_ONCE // grid.size)
        return SurvivalCurves(matrix, times)


def as_pandas(X: Any) -> Any:
    """Return a pandas frame with names of text, for packages that identify covariates by name."""
    import pandas as pd

    frame = as_frame(X)
    table = pd.DataFrame(np.asarray(X)) if frame is None else frame.to_pandas().reset_index(drop=True)
    return table.set_axis([str(name) if frame is not None else f"x{name}" for name in table.columns], axis=1)

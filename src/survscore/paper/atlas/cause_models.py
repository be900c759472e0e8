"""The models of the atlas for sets whose events have causes: what people fit, without and with the date of entry."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from survscore._validation import as_times
from survscore.adapters.survival_model import SurvivalModel
from survscore.incidence import IncidenceCurves
from survscore.models import AalenJohansen
from survscore.outcomes import Outcomes, as_outcomes
from survscore.paper.atlas.models import CLASSIFIERS, NULL_BY_CAUSE, ModelRecipe

Values = NDArray[np.float64]


class CauseSpecificCox(SurvivalModel):
    r"""A Cox model of each cause, in which events of others are censored, combined into incidences.

    With the cumulative hazards :math:`\Lambda_k` and :math:`\Lambda = \sum_k \Lambda_k`,

    .. math:: F_k(t) = \sum_{s \le t} e^{-\Lambda(s-)} (1 - e^{-\Delta \Lambda(s)})
        \frac{\Delta \Lambda_k(s)}{\Delta \Lambda(s)} ,

    so that all :math:`F_k` add up to :math:`1 - e^{-\Lambda}`.

    Parameters
    ----------
    times : array_like
        Of its predictions.

    Attributes
    ----------
    models_ : list
        The fitted Cox model of each cause.
    causes_ : tuple of str
        The causes.
    """

    models_: list[Any]
    causes_: tuple[str, ...]

    def __init__(self, times: ArrayLike) -> None:
        self.times = times

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


RECIPES: tuple[ModelRecipe, ...] = (
    ModelRecipe(NULL_BY_CAUSE, "modelled", lambda horizons, effort: AalenJohansen(times=horizons)),
    ModelRecipe("Cox by cause", "modelled", lambda horizons, effort: CauseSpecificCox(horizons), "sksurv"),
    *CLASSIFIERS,
)

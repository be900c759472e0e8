"""scikit-survival's estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from survscore._validation import FloatArray, InputError
from survscore.adapters.survival_model import Adapter
from survscore.analysis.selection import curves_of
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes


class ScikitSurvival(Adapter):
    """A scikit-survival estimator that takes `Outcomes`, and so carries censoring times to whatever scores it.

    Parameters
    ----------
    estimator : scikit-survival estimator
        With ``predict_survival_function``; also a ``Pipeline`` or a search that ends in one. It is cloned.
    times : array_like, optional
        The grid of predicted curves. By default they are the estimator's own step functions, with all the times in its
        training data; some times take less memory.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    end_ : float
        The last time in the training data, after which nothing is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from sksurv.linear_model import CoxPHSurvivalAnalysis
    >>> rng = np.random.default_rng(1)
    >>> X, end = rng.normal(size=(300, 1)), rng.uniform(1, 3, 300)
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, end), time <= end, end)
    >>> model = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis(), times=[0.5, 1, 2]).fit(X, y)
    >>> model.predict([[-1.0], [1.0]]).round(1)
    array([[0.3, 0.1, 0. ],
           [0.8, 0.7, 0.4]])
    """

    def _fitted(self, X: Any, y: Outcomes) -> Any:
        return clone(self.estimator).fit(X, y.to_structured())

    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        return self._read_steps(X, self._steps, times)

    def _steps(self, X: Any) -> tuple[FloatArray, NDArray[np.float64]]:
        curves = curves_of(self.estimator_, X)
        if curves.interpolation != "step":
            raise InputError(f"estimator must predict step functions; {type(self.estimator).__name__} needs no adapter")
        return curves.probabilities, curves.times

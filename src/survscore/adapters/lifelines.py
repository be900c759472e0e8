"""lifelines' regression models."""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError
from survscore.adapters.survival_model import Adapter, as_pandas
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes

TIME, EVENT = "survscore_time", "survscore_event"


@dataclass(eq=False, repr=False)
class Lifelines(Adapter):
    """A lifelines regression model (``CoxPHFitter``, ``WeibullAFTFitter`` and others) as a scikit-learn estimator.

    lifelines' models know nothing of scikit-learn. What they are made with can be searched over all the same:
    ``estimator__penalizer``.

    Parameters
    ----------
    estimator : lifelines regression model
        Not fitted. It is copied.
    times : array_like, optional
        The grid of predicted curves. By default Cox's are step functions with all the times in training;
        some times take less memory. Parametric models are computed at `times`, also after the training data, where
        they extrapolate; by default at up to 200 quantiles of the times in training, linear between.
    fit_options : dict, optional
        Further arguments of lifelines' ``fit``, such as ``formula``, ``strata``, ``robust``.

    Attributes
    ----------
    estimator_ : lifelines regression model
        The fitted copy.
    end_ : float
        The last time in the training data, after which step functions say nothing.

    Notes
    -----
    Columns of an array are called ``x0``, ``x1``, and so on. Curves that are none, since they rise or exceed one, as
    ``AalenAdditiveFitter``'s may, are refused.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from lifelines import WeibullAFTFitter
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 1))
    >>> time = rng.exponential(np.exp(X[:, 0]))
    >>> y = ss.Outcomes(np.minimum(time, 2), time <= 2, np.full(300, 2))
    >>> model = ss.adapters.Lifelines(WeibullAFTFitter(), times=[0.5, 1, 1.5]).fit(X, y)
    >>> model.predict([[-1.0], [1.0]]).round(1)
    array([[0.3, 0.1, 0. ],
           [0.8, 0.7, 0.6]])
    """

    fit_options: dict[str, Any] | None = field(default=None, kw_only=True)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and with `deep` those of the lifelines model as ``estimator__...``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            params |= {f"estimator__{name}": value for name, value in _made_with(self.estimator).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; for those of the lifelines model, ``estimator__...``, it is made anew."""
        inner = {name.removeprefix("estimator__"): params.pop(name) for name in list(params) if "__" in name}
        super().set_params(**params)
        if inner:
            known = _made_with(self.estimator)
            unknown = [name for name in inner if name not in known]
            if unknown:
                name = type(self.estimator).__name__
                raise ValueError(f"Invalid parameter {unknown[0]!r} for {name}; valid ones are {list(known)}")
            self.estimator = type(self.estimator)(**known | inner)
        return self

    def _fitted(self, X: Any, y: Outcomes) -> Any:
        if not hasattr(self.estimator, "fit_right_censoring") and not hasattr(self.estimator, "fit"):
            raise InputError(f"estimator must be a lifelines regression model, not {type(self.estimator).__name__}")
        table = as_pandas(X).assign(**{TIME: y.time, EVENT: y.event})
        fitted = deepcopy(self.estimator)
        fitted.fit(table, duration_col=TIME, event_col=EVENT, **(self.fit_options or {}))
        return fitted

    def _curves(self, X: Any, times: NDArray[np.float64] | None) -> SurvivalCurves:
        from lifelines.fitters import ParametricRegressionFitter

        if isinstance(getattr(self.estimator_, "_model", self.estimator_), ParametricRegressionFitter):
            grid = self._observed if times is None else times
            frame = self.estimator_.predict_survival_function(as_pandas(X), times=grid)
            return SurvivalCurves(frame.to_numpy().T, grid)
        return self._read_steps(X, self._steps, times)

    def _steps(self, X: Any) -> tuple[FloatArray, NDArray[np.float64]]:
        frame = self.estimator_.predict_survival_function(as_pandas(X))
        return frame.to_numpy().T, frame.index.to_numpy(dtype=np.float64)


def _made_with(fitter: Any) -> dict[str, Any]:
    """Return the arguments that a lifelines model was made with, which it keeps under their names."""
    arguments = inspect.signature(type(fitter).__init__).parameters.values()
    named = [one.name for one in arguments if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {name: getattr(fitter, name) for name in named if name != "self" and hasattr(fitter, name)}

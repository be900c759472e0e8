"""The baseline: the same curve for all individuals."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from survscore._utils.frames import n_rows_of
from survscore._validation import InputError, as_times, check_whole
from survscore.adapters.survival_model import SurvivalModel, as_training_data, of_one_kind
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.models import saving
from survscore.models.grid import jumps_or_times
from survscore.outcomes import as_outcomes


class KaplanMeier(SurvivalModel):
    r"""The Kaplan-Meier curve of the training data, the same for all individuals: what a model must beat.

    .. math:: \hat S(t) = \prod_{s \le t} \left(1 - \frac{d_s}{Y_s}\right)

    with :math:`d_s` events at s among :math:`Y_s` at risk just before.

    Parameters
    ----------
    n_times : int, default 200
        Predicted curves without `times` have at most this many grid points, at about equal steps of the curve; the
        exact one stays in `times_` and `survival_`.
    times : array_like, optional
        The grid of predicted curves, in place of that.

    Attributes
    ----------
    times_, survival_ : ndarray
        The jumps, and the curve from each on. It stays after the last.

    See Also
    --------
    AalenJohansen : Under competing risks.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4], event=[1, 0, 1, 0])
    >>> model = ss.models.KaplanMeier().fit(None, y)
    >>> model.predict_survival_function(range(2), times=[1, 3])
    array([[0.75 , 0.375],
           [0.75 , 0.375]])
    """

    times_: NDArray[np.float64]
    survival_: NDArray[np.float64]

    def __init__(self, n_times: int = 200, times: ArrayLike | None = None) -> None:
        self.n_times = n_times
        self.times = times

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to outcomes; `X` is not looked at, and may be None."""
        check_whole("n_times", self.n_times, 1)
        outcomes = as_outcomes(y) if X is None else as_training_data(y, n_rows_of(X))
        of_one_kind(outcomes, self)
        if not outcomes.event.any():
            raise InputError("y has no events: there is nothing to learn")
        curve = ProductLimit.of_events(outcomes)
        self.times_, self.survival_ = curve.times, curve.survival
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> SurvivalCurves:
        """Return the curve once for every row of `X`, which is only counted.

        Parameters
        ----------
        X : sized
            Covariates, or anything with as many rows.
        times : array_like, optional
            The grid; by default that of the parameter `times`, or at most `n_times` of the jumps.

        Returns
        -------
        SurvivalCurves
            Read as step functions.
        """
        check_is_fitted(self)
        times = self.times if times is None else times
        grid = jumps_or_times(times, self.times_, self.survival_, self.n_times)
        values = np.concatenate(([1.0], self.survival_))[np.searchsorted(self.times_, grid, side="right")]
        return SurvivalCurves(np.tile(values, (n_rows_of(X), 1)), grid, "step", extrapolation="hold")

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""
        check_is_fitted(self)
        params = self.get_params() | {"times": None if self.times is None else as_times(self.times)}
        saving.write(path, type(self).__name__, params, {}, {"times": self.times_, "survival": self.survival_})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model from a file made by `save`; nothing in it is run."""
        stored = saving.read(path, expected=cls.__name__)
        with stored.refusing_damage():
            model = cls(**stored.params)
            check_whole("n_times", model.n_times, 1)
            if model.times is not None:
                as_times(model.times)
            times, survival = as_times(stored.arrays["times"]), stored.arrays["survival"]
            if survival.dtype != np.float64:
                raise ValueError(f"survival is {survival.dtype}")
            SurvivalCurves(survival[None], times)
            model.times_, model.survival_ = times, survival
        return model

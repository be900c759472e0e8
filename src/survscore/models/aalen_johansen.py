"""The baseline under competing risks: the same incidences for all individuals."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from survscore._utils import arrays
from survscore._utils.frames import n_rows_of
from survscore._validation import FloatArray, InputError, as_times, check_whole
from survscore.adapters.survival_model import SurvivalModel, as_training_data
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit
from survscore.incidence import IncidenceCurves
from survscore.models import saving
from survscore.models.grid import jumps_or_times
from survscore.outcomes import as_outcomes


class AalenJohansen(SurvivalModel):
    r"""The Aalen-Johansen estimate of the training data, the same for all individuals: what a model must beat.

    .. math:: \hat F_k(t) = \sum_{s \le t} \hat S(s-) \frac{d_{ks}}{Y_s}

    with :math:`d_{ks}` events of cause k at s among :math:`Y_s` at risk just before, and :math:`\hat S` the
    Kaplan-Meier curve of events of any cause.

    Parameters
    ----------
    n_times : int, default 200
        Predicted curves without `times` have at most this many grid points, at about equal steps of
        :math:`\hat S`; the exact ones stay in `times_` and `incidences_`.
    times : array_like, optional
        The grid of predicted curves, in place of that.

    Attributes
    ----------
    times_ : ndarray of shape (d,)
        The times of events.
    incidences_ : ndarray of shape (K, d)
        The incidence of each cause from each of these times on. It stays after the last.
    causes_ : tuple of str
        The names of the causes; ``"1"`` where the training data have events of one kind.

    See Also
    --------
    KaplanMeier : For events of one kind.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4], event=[1, 2, 0, 1], causes=["default", "repayment"])
    >>> model = ss.models.AalenJohansen().fit(None, y)
    >>> model.predict_cumulative_incidence(range(1), times=[1, 2, 4])
    array([[[0.25, 0.25, 0.75],
            [0.  , 0.25, 0.25]]])
    """

    times_: NDArray[np.float64]
    incidences_: NDArray[np.float64]
    causes_: tuple[str, ...]

    def __init__(self, n_times: int = 200, times: ArrayLike | None = None) -> None:
        self.n_times = n_times
        self.times = times

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to outcomes; `X` is not looked at, and may be None."""
        check_whole("n_times", self.n_times, 1)
        outcomes = as_outcomes(y) if X is None else as_training_data(y, n_rows_of(X))
        outcomes = outcomes.numpy()
        if not outcomes.event.any():
            raise InputError("y has no events: there is nothing to learn")
        order = arrays.in_order(outcomes.time, ~outcomes.event)  # events first at ties, those of all causes together
        curve, passed = ProductLimit.in_order(outcomes.time[order], outcomes.event[order])
        cause = (outcomes.event if outcomes.cause is None else outcomes.cause)[order]
        self.causes_ = outcomes.causes or ("1",)
        numbers = range(1, len(self.causes_) + 1)
        values = [Incidence.in_order(curve, passed, cause == number).table(curve.times)[0] for number in numbers]
        self.times_, self.incidences_ = curve.times, np.minimum(values, 1.0)  # a sum may be above by rounding
        return self

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> IncidenceCurves:
        """Return the incidences once for every row of `X`, which is only counted.

        Parameters
        ----------
        X : sized
            Covariates, or anything with as many rows.
        times : array_like, optional
            The grid; by default that of the parameter `times`, or at most `n_times` of the times of events.

        Returns
        -------
        IncidenceCurves
            Read as step functions.
        """
        check_is_fitted(self)
        times = self.times if times is None else times
        grid = jumps_or_times(times, self.times_, 1.0 - self.incidences_.sum(axis=0), self.n_times)
        values = np.pad(self.incidences_, ((0, 0), (1, 0)))[:, np.searchsorted(self.times_, grid, side="right")]
        every = np.tile(values, (n_rows_of(X), 1, 1))
        return IncidenceCurves(every, grid, causes=self.causes_, interpolation="step", extrapolation="hold")

    def predict_cumulative_incidence(self, X: Any, times: ArrayLike) -> FloatArray:
        """Return the incidences at `times` as an array of shape (n, K, len(times)).

        Parameters
        ----------
        X : sized
            Covariates, or anything with as many rows.
        times : array_like
            Strictly increasing.

        Returns
        -------
        ndarray
        """
        return self.predict_curves(X, as_times(times)).probabilities

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""
        check_is_fitted(self)
        params = self.get_params() | {"times": None if self.times is None else as_times(self.times)}
        learnt = {"causes": self.causes_}
        saving.write(path, type(self).__name__, params, learnt, {"times": self.times_, "incidences": self.incidences_})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model from a file made by `save`; nothing in it is run."""
        stored = saving.read(path, expected=cls.__name__)
        with stored.refusing_damage():
            model = cls(**stored.params)
            check_whole("n_times", model.n_times, 1)
            if model.times is not None:
                as_times(model.times)
            times, incidences = as_times(stored.arrays["times"]), stored.arrays["incidences"]
            if incidences.dtype != np.float64:
                raise ValueError(f"incidences are {incidences.dtype}")
            model.causes_ = IncidenceCurves(incidences[None], times, causes=stored.learnt["causes"]).causes
            model.times_, model.incidences_ = times, incidences
        return model

"""The baselines: the same curves for all individuals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from survscore._utils.frames import n_rows_of
from survscore._validation import InputError, as_times, check_whole, plural, warn
from survscore.adapters.survival_model import Curves, SurvivalModel, as_training_data
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.models.grid import equal_steps
from survscore.outcomes import Outcomes, as_outcomes


@dataclass(eq=False, repr=False, kw_only=True)
class _Baseline(SurvivalModel):
    """A product limit of the training data, as a step function that stays after its last jump."""

    n_times: int = 200
    times: ArrayLike | None = None

    times_: NDArray[np.float64] = field(init=False)
    survival_: NDArray[np.float64] = field(init=False)
    _learns_causes: ClassVar[bool] = False

    def _training_data(self, X: Any, y: Any) -> Outcomes:
        check_whole("n_times", self.n_times, 1)
        n = len(as_outcomes(y)) if X is None else n_rows_of(X)
        outcomes = as_training_data(y, n, causes=self._learns_causes, entry=True).numpy()
        if not outcomes.event.any():
            raise InputError("y has no events: there is nothing to learn")
        return outcomes

    def _keep(self, curve: ProductLimit) -> None:
        """Keep the curve, and warn where it ends since nobody else had entered."""
        self.times_, self.survival_ = curve.times, curve.survival
        ended = int(np.argmax(self.survival_ <= 0)) + 1 if (self.survival_ <= 0).any() else self.times_.size
        if ended < self.times_.size:
            warn(
                f"survival falls to 0 at {self.times_[ended - 1]:g}, where all at risk had the event before others "
                f"entered, and stays there: {plural(self.times_.size - ended, 'later event time')} can't change it. "
                "Few are at risk early with delayed entry: y.at_landmark(s) takes those at risk at a later start"
            )

    def predict_curves(self, X: Any, times: ArrayLike | None = None) -> Curves:
        """Return what was learnt once for every row of `X`, which is only counted.

        Parameters
        ----------
        X : sized
            Covariates, or anything with as many rows.
        times : array_like, optional
            The grid; by default that of the parameter `times`, or at most `n_times` of the jumps.

        Returns
        -------
        SurvivalCurves or IncidenceCurves
            Read as step functions.
        """
        check_is_fitted(self)
        times = self.times if times is None else times
        if times is not None:
            grid = as_times(times)
        elif self.times_.size <= self.n_times:
            grid = self.times_
        else:
            grid = self.times_[equal_steps(self.survival_, self.n_times)]
        return self._tiled(n_rows_of(X), grid, np.searchsorted(self.times_, grid, side="right"))

    @abstractmethod
    def _tiled(self, n: int, grid: NDArray[np.float64], passed: NDArray[np.intp]) -> Curves:
        """Return n times the curves at `grid`, where so many jumps have passed."""


class KaplanMeier(_Baseline):
    r"""The Kaplan-Meier curve of the training data, the same for all individuals: what a model must beat.

    .. math:: \hat S(t) = \prod_{s \le t} \left(1 - \frac{d_s}{Y_s}\right)

    with :math:`d_s` events at s among :math:`Y_s` at risk just before: with delayed entry (`Outcomes`), those who
    entered before s.

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
    AalenJohansen : The same under competing risks.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4], event=[1, 0, 1, 0])
    >>> model = ss.models.KaplanMeier().fit(None, y)
    >>> model.predict_survival_function(range(2), times=[1, 3])
    array([[0.75 , 0.375],
           [0.75 , 0.375]])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to outcomes; `X` is not looked at, and may be None."""
        self._keep(ProductLimit.of_events(self._training_data(X, y)))
        return self

    def _tiled(self, n: int, grid: NDArray[np.float64], passed: NDArray[np.intp]) -> SurvivalCurves:
        values = np.concatenate(([1.0], self.survival_))[passed]
        return SurvivalCurves(np.tile(values, (n, 1)), grid, interpolation="step", extrapolation="hold")


class AalenJohansen(_Baseline):
    r"""The cumulative incidence of each cause in the training data, the same for all individuals.

    .. math:: \hat F_k(t) = \sum_{s \le t} \hat S(s-) \frac{d_{ks}}{Y_s}

    with :math:`d_{ks}` events of cause k at s among :math:`Y_s` at risk just before (with delayed entry, of those who
    entered before s), and :math:`\hat S` the Kaplan-Meier curve of events of any cause.

    Parameters
    ----------
    n_times : int, default 200
        Predicted curves without `times` have at most this many grid points, at about equal steps of :math:`\hat S`;
        the exact ones stay in `times_` and `incidence_`.
    times : array_like, optional
        The grid of predicted curves, in place of that.

    Attributes
    ----------
    times_, survival_, incidence_ : ndarray
        The jumps, :math:`\hat S` from each on, and the incidences, (causes, jumps). They stay after the last.
    causes_ : tuple of str
        The causes.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4], event=[1, 2, 1, 0], causes=["default", "repayment"])
    >>> model = ss.models.AalenJohansen().fit(None, y)
    >>> model.predict_cumulative_incidence(range(1), times=[1, 3])
    array([[[0.25, 0.5 ],
            [0.  , 0.25]]])
    """

    incidence_: NDArray[np.float64]
    causes_: tuple[str, ...]
    _learns_causes = True

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to outcomes; `X` is not looked at, and may be None."""
        outcomes = self._training_data(X, y)
        causes = outcomes.causes or ("1",)
        several = [Incidence.of(outcomes.for_cause(cause)) for cause in causes]
        self._keep(several[0].curve)
        self.causes_ = causes
        self.incidence_ = np.array([incidence.table(self.times_)[0] for incidence in several])
        return self

    def _tiled(self, n: int, grid: NDArray[np.float64], passed: NDArray[np.intp]) -> IncidenceCurves:
        tiled = np.tile(np.pad(self.incidence_, ((0, 0), (1, 0)))[:, passed], (n, 1, 1))
        return IncidenceCurves(tiled, grid, causes=self.causes_, interpolation="step", extrapolation="hold")

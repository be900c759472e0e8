"""Losses: what each individual's prediction costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import FloatArray, InputError
from survscore.inference.intervals import PossibleRange, Scale
from survscore.metrics.base import Loss, StatusLosses

#: Probabilities closer than this to 0 or 1 count as this far away under the logarithmic loss.
DEFAULT_EPSILON = 1e-7


@dataclass(frozen=True)
class Brier(Loss):
    r"""The squared distance of the predicted survival to what happened, :math:`(1\{T^* > t\} - \pi(t))^2`.

    .. math:: \mathrm{BS}(t) = \frac{\sum_i w_i [1\{T^*_i > t\} - \pi_i(t)]^2}{\sum_i w_i}

    Zero is perfect foresight, and predicting one half for all gives 0.25. It is proper: on average the truth has the
    lowest. Most of the value is q (1 - q) with q the proportion with event, so that it can only be compared with others
    of the same individuals at the same time; where events are rare, all models have low values.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> curves = ss.SurvivalCurves([[0.5], [0.9], [0.8]], times=[2])
    >>> (score,) = ss.score_all(y, curves, metric=ss.Brier(), weighting="administrative", times=[2])
    >>> score.scores  # (0.5**2 + 0.1**2 + 0.2**2) / 3
    array([0.1])
    """

    name: ClassVar[str] = "brier"
    takes_tensors: ClassVar[bool] = True
    label: ClassVar[str] = "Brier score"
    scale: ClassVar[Scale] = "log"
    possible: ClassVar[PossibleRange] = (0.0, 1.0)

    def of_statuses(self) -> StatusLosses:  # noqa: D102
        return StatusLosses(self, self, (0.0, 2.0))

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        distance: NDArray[np.float64] = 1.0 - arrays.as_float64(survival)
        return distance * distance

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        distance: NDArray[np.float64] = arrays.as_float64(survival)
        return distance * distance

    def slopes(self, survival: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: D102
        return (-2.0 * (1.0 - survival), 2.0 * survival) if type(self) is Brier else super().slopes(survival)

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss, as a new array."""
        if type(self) is not Brier:  # a subclass may have changed the formula
            return super().__call__(survival, event_free)
        values: Any = arrays.as_float64(survival)
        # torch does not subtract booleans
        distance: Any = values.add(event_free, alpha=-1) if arrays.is_tensor(values) else values - event_free
        distance *= distance
        squares: NDArray[np.float64] = distance
        return squares


@dataclass(frozen=True)
class Log(Loss):
    r"""Minus the binomial log-likelihood, :math:`-\log \pi(t)` or :math:`-\log(1 - \pi(t))`.

    .. math:: \mathrm{LL}(t) = -\frac{\sum_i w_i \left(1\{T^*_i > t\} \log \pi_i(t) + 1\{T^*_i \le t\}
        \log[1 - \pi_i(t)]\right)}{\sum_i w_i}

    A difference of 0.1 says that what happened by t was, in the geometric mean, 10.5 % more likely under the one model
    than under the other. It is proper, and penalises confident wrong predictions heavily: few of them can outweigh all
    others, and where a model predicts zeros the value is made by `epsilon`.

    Parameters
    ----------
    epsilon : float, default 1e-7
        Probabilities are first clipped to [`epsilon`, 1 - `epsilon`], since one impossible prediction would otherwise
        make the whole score infinite.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[4, 3])
    >>> curves = ss.SurvivalCurves([[0.0], [0.0]], times=[2])  # the second is event-free at 2
    >>> for epsilon in (1e-7, 1e-3):
    ...     score = ss.score_all(y, curves, metric=ss.Log(epsilon), weighting="administrative", times=[2])[0]
    ...     print(score.scores.round(2))
    [8.06]
    [3.45]
    """

    epsilon: float = DEFAULT_EPSILON

    name: ClassVar[str] = "log"
    takes_tensors: ClassVar[bool] = True
    label: ClassVar[str] = "logarithmic loss"
    scale: ClassVar[Scale] = "log"
    possible: ClassVar[PossibleRange] = (0.0, np.inf)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def of_statuses(self) -> StatusLosses:  # noqa: D102
        return StatusLosses(_LogOfEventFree(self.epsilon), _LogOfCause(self.epsilon), self.possible)

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -self._log(self._clipped(survival))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -self._log(1.0 - self._clipped(survival))

    def slopes(self, survival: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: D102
        if type(self) not in (Log, _LogOfEventFree, _LogOfCause):
            return super().slopes(survival)
        clipped = self._clipped(survival)
        inside = np.where(clipped == survival, 1.0, 0.0)  # a clipped probability does not move with the prediction
        return -inside / clipped, inside / (1.0 - clipped)

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss, as a new array: one logarithm, of what was predicted for what happened."""
        if type(self) is not Log:
            return super().__call__(survival, event_free)
        clipped = self._clipped(survival)
        return -self._log(arrays.where(event_free, clipped, 1.0 - clipped))

    def _clipped(self, survival: FloatArray) -> NDArray[np.float64]:
        clipped: NDArray[np.float64] = arrays.as_float64(survival).clip(self.epsilon, 1.0 - self.epsilon)
        return clipped

    @staticmethod
    def _log(probability: NDArray[np.float64]) -> NDArray[np.float64]:
        logarithm: NDArray[np.float64] = arrays.namespace(probability).log(probability)
        return logarithm


@dataclass(frozen=True)
class _LogOfEventFree(Log):
    """Minus the logarithm of the probability of no event, of those who are event-free; nothing of the others."""

    takes_tensors: ClassVar[bool] = True

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:
        nothing: NDArray[np.float64] = 0.0 * arrays.as_float64(survival)
        return nothing

    def slopes(self, survival: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        event_free, with_event = super().slopes(survival)
        return event_free, 0.0 * with_event


@dataclass(frozen=True)
class _LogOfCause(Log):
    """Minus the logarithm of the probability of a cause, of those who had its event; nothing of the others."""

    takes_tensors: ClassVar[bool] = True

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:
        nothing: NDArray[np.float64] = 0.0 * arrays.as_float64(survival)
        return nothing

    def slopes(self, survival: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        event_free, with_event = super().slopes(survival)
        return 0.0 * event_free, with_event


def check_epsilon(epsilon: float) -> None:
    """Raise unless probabilities can be clipped there."""
    if not 2.0**-53 <= epsilon < 0.5:  # below, 1 - epsilon would be 1 and its loss infinite
        raise InputError(f"epsilon must be at least 2**-53 and below 0.5, not {epsilon}")

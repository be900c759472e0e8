"""Metrics: what is computed of predictions and statuses at one time, and whether low or high values are good.

A metric is either the weighted mean of what each individual's prediction costs (`Loss`: Brier, log), or a number of all
who are counted taken together (`PooledMetric`: AUC). Both know their per-individual influence, so that standard errors,
comparisons, tables and reports take any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError, check_choice

#: Probabilities closer than this to 0 or 1 count as this far away under the logarithmic loss.
DEFAULT_EPSILON = 1e-7

Direction = Literal["lower", "higher"]
Scale = Literal["plain", "log", "logit"]


class Metric(ABC):
    """Something that can be computed of predictions and statuses at one time."""

    name: ClassVar[str]
    #: What it is called in a sentence; by default its name.
    label: ClassVar[str] = ""
    #: Which values are better.
    direction: ClassVar[Direction] = "lower"
    #: Where its distribution is closest to symmetric, so that confidence intervals are made there.
    scale: ClassVar[Scale] = "plain"


class Loss(Metric):
    r"""The cost of predicting survival :math:`\pi`, for one who is event-free and one who is not; lower is better.

    To add a loss, subclass, give `name` and the two methods, and put the class into `METRICS`. It then runs in NumPy
    for input of any size; a compiled form is bound to its exact class (see `engine.compiled.KERNELS`), so that a
    subclass that changes the formula never runs as its parent.
    """

    #: Where probabilities are clipped, for losses that need it.
    epsilon: float = 0.0

    @abstractmethod
    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who are event-free."""

    @abstractmethod
    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who have had the event."""

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss."""
        return np.where(event_free, self.of_event_free(survival), self.of_event(survival))


@dataclass(frozen=True)
class Brier(Loss):
    r""":math:`(1\{T^* > t\} - \pi(t))^2`."""

    name: ClassVar[str] = "brier"
    label: ClassVar[str] = "Brier score"
    scale: ClassVar[Scale] = "log"

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return np.square(1.0 - np.asarray(survival, dtype=np.float64))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return np.square(np.asarray(survival, dtype=np.float64))


@dataclass(frozen=True)
class Log(Loss):
    r"""Minus the binomial log-likelihood, :math:`-\log \pi(t)` or :math:`-\log(1 - \pi(t))`.

    Probabilities are first clipped to [`epsilon`, 1 - `epsilon`], since one impossible prediction
    would otherwise make the whole score infinite.
    """

    epsilon: float = DEFAULT_EPSILON

    name: ClassVar[str] = "log"
    label: ClassVar[str] = "logarithmic loss"
    scale: ClassVar[Scale] = "log"

    def __post_init__(self) -> None:
        if not 2.0**-53 <= self.epsilon < 0.5:  # below, 1 - epsilon would be 1 and its loss infinite
            raise InputError(f"epsilon must be at least 2**-53 and below 0.5, not {self.epsilon}")

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(self._clipped(survival))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(1.0 - self._clipped(survival))

    def _clipped(self, survival: FloatArray) -> NDArray[np.float64]:
        return np.clip(np.asarray(survival, dtype=np.float64), self.epsilon, 1.0 - self.epsilon)


class PooledMetric(Metric):
    """A metric of all who are counted, taken together.

    To add one, subclass, give `name`, `direction` and the two methods, and put the class into `METRICS`.
    """

    @abstractmethod
    def evaluate(
        self, survival: FloatArray, event: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the value, and each individual's influence on it while the weights' estimates are held fixed.

        Parameters
        ----------
        survival, event, weight : ndarray of shape (n,)
            Of everybody at one time; those who are not counted have weight 0.

        Returns
        -------
        value : float
            NaN where it is not defined.
        influence : ndarray of shape (n,)
            Weight times the derivative by that individual's mass.
        """

    @abstractmethod
    def small_sample(
        self, influence: NDArray[np.float64], event: NDArray[np.bool_], counted: NDArray[np.bool_]
    ) -> float:
        """Return what to add to the sum of squared influences, so that few individuals are not taken for many."""


@dataclass(frozen=True)
class AUC(PooledMetric):
    r"""How often one with event had the lower predicted survival than one without; ties count half.

    .. math:: \mathrm{AUC}(t) = \frac{\sum_{i, k} w_i w_k 1\{T_i \le t\} 1\{T_k > t\}
        [1\{\pi_i < \pi_k\} + \tfrac12 1\{\pi_i = \pi_k\}]}{W_1 W_0}

    with :math:`W_1` and :math:`W_0` the weights of those with and without event by t. Where nobody has a weight of its
    own, standard errors are DeLong's [1]_.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
       characteristic curves. Biometrics 44, 837-845.
    """

    name: ClassVar[str] = "auc"
    label: ClassVar[str] = "AUC"
    direction: ClassVar[Direction] = "higher"
    scale: ClassVar[Scale] = "logit"

    def evaluate(  # noqa: D102
        self, survival: FloatArray, event: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        _, rank = np.unique(survival, return_inverse=True)
        influence = np.zeros(survival.size)
        case, control = np.where(event, weight, 0.0), np.where(event, 0.0, weight)
        by_case, by_control = np.bincount(rank, case), np.bincount(rank, control)
        cases, controls = by_case.sum(), by_control.sum()
        if not (cases > 0 and controls > 0):
            return np.nan, influence
        # for each distinct prediction, the share of controls above it, and of cases below it
        above = (controls - np.cumsum(by_control) + 0.5 * by_control) / controls
        below = (np.cumsum(by_case) - 0.5 * by_case) / cases
        value = float(by_case @ above / cases)
        influence += case * (above[rank] - value) / cases
        influence += control * (below[rank] - value) / controls
        return value, influence

    def small_sample(  # noqa: D102
        self, influence: NDArray[np.float64], event: NDArray[np.bool_], counted: NDArray[np.bool_]
    ) -> float:
        total = 0.0
        for group in (event & counted, ~event & counted):
            number = np.count_nonzero(group)
            total += np.square(influence[group]).sum() / (number - 1) if number > 1 else np.nan
        return float(total)


METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in (Brier, Log, AUC)}
LOSSES = tuple(name for name, metric in METRICS.items() if issubclass(metric, Loss))


def metric_label(name: str) -> str:
    """Return what the metric of this name is called in a sentence."""
    return (METRICS[name].label if name in METRICS else "") or name


def as_metric(metric: str | Metric) -> Metric:
    """Return a metric by its name, or as it is."""
    if isinstance(metric, Metric):
        return metric
    check_choice("metric", metric, tuple(METRICS))
    return METRICS[metric]()

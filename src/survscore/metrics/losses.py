"""What each individual's prediction costs: losses, and the net benefit of decisions by a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import dot
from survscore._validation import FloatArray, check_number
from survscore.inference.intervals import Direction, PossibleRange, Scale
from survscore.metrics.base import Loss, MetricValue, SampleMetric, StatusLosses

if TYPE_CHECKING:
    from survscore.metrics.sample import MetricSample

#: Probabilities closer than this to 0 or 1 count as this far away under the logarithmic loss.
DEFAULT_EPSILON = 1e-7
#: A risk that is closer than this to a threshold is at it, so that rounding does not decide on whom to act.
AT_THRESHOLD = 1e-7


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
    # below, 1 - epsilon would be 1 and its loss infinite
    check_number("epsilon", epsilon, "at least 2**-53 and below 0.5", lambda value: 2.0**-53 <= value < 0.5)


@dataclass(frozen=True)
class NetBenefit(SampleMetric):
    r"""Net benefit of treating individuals whose predicted risk is at least a threshold z [1]_.

    .. math:: \mathrm{NB}_z(t) = \frac{\sum_i w_i 1\{p_i \ge z\}\,[y_i - (1 - y_i)\, z / (1 - z)]}{\sum_i w_i}, \qquad
        e_i = \frac{w_i (b_i - \mathrm{NB}_z)}{\sum_k w_k}

    with :math:`p = 1 - \pi(t)`, :math:`y = 1\{T^* \le t\}` and :math:`b_i` what i adds: the proportion of true
    positives, less that of false positives at the odds of the threshold. Who acts at a risk of 10 % takes nine false
    positives to be as bad as one missed event. Treating none has zero: compare models at one threshold, which follows
    from costs, and is not to be chosen for its net benefit. A risk within 1e-7 of it counts as reaching it.

    Models differ at a threshold by the individuals on whom they decide differently (`discordant`). Where these are few
    their influences underestimate the variance, so variances of differences have :math:`(1 + (z/(1 - z))^2)/(\sum w)^2`
    more: as much as one with and one without event on whom they would have differed. If that is more than a tenth of
    the variance, intervals of the difference are conservative, and not `reliable`.

    Parameters
    ----------
    threshold : float
        The threshold probability: the predicted risk at which one would act.

    References
    ----------
    .. [1] Vickers and Elkin (2006). Decision curve analysis: a novel method for evaluating prediction models. Medical
       Decision Making 26, 565-574.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.9], [0.95]], times=[2])
    >>> (score,) = ss.score_all(y, curves, metric=ss.NetBenefit(0.2), weighting="administrative", times=[2])
    >>> score.metric, score.scores
    ('net_benefit@0.2', array([0.1875]))
    """

    threshold: float

    name: ClassVar[str] = "net_benefit"
    label: ClassVar[str] = "net benefit"
    direction: ClassVar[Direction] = "higher"
    has_ratios: ClassVar[bool] = False
    needs_both: ClassVar[bool] = False
    scores_null: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, "between 0 and 1, a threshold probability", lambda risk: 0 < risk < 1)
        # several thresholds are several metrics, distinguished by their names
        object.__setattr__(self, "name", f"{type(self).name}@{self.threshold:.12g}")
        object.__setattr__(self, "label", f"{type(self).label} at {self.threshold:.12g}")

    @property
    def odds(self) -> float:
        """The cost of a false positive, in true positives."""
        return self.threshold / (1.0 - self.threshold)

    def acts(self, survival: FloatArray) -> NDArray[np.bool_]:
        """Return whom to act upon: a predicted risk of just the threshold is enough, to within 1e-7."""
        return 1.0 - np.asarray(survival, dtype=np.float64) >= self.threshold - AT_THRESHOLD

    def discordant(self, survival: FloatArray, other: FloatArray, weight: NDArray[np.float64]) -> int:
        """Return on how many of those who are counted two predictions decide differently."""
        return int(np.count_nonzero((self.acts(survival) != self.acts(other)) & (weight > 0)))

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        benefit = np.where(self.acts(sample.survival), np.where(sample.label > 0, 1.0, -self.odds), 0.0)
        value = dot(sample.share, benefit)
        return MetricValue(value, sample.share * (benefit - value))

    def unseen_variance(self, weight: NDArray[np.float64]) -> float:  # noqa: D102
        return (1.0 + self.odds**2) * (1.0 / float(weight.sum())) ** 2

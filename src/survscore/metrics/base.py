"""What a metric is: a number made of predictions and statuses by a time, with each individual's influence on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import FloatArray, InputError, UnfitError
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.inference.intervals import ANY_VALUE, Direction, PossibleRange, Scale

if TYPE_CHECKING:
    from survscore.metrics.sample import MetricSample


class Metric(ABC):
    """Base class of metrics, which are computed from predictions and statuses at one time."""

    name: ClassVar[str]
    #: What it is called in a sentence; by default its name.
    label: ClassVar[str] = ""
    #: Which values are better.
    direction: ClassVar[Direction] = "lower"
    #: On which confidence intervals are made; "none" if it is so biased that none would have its nominal coverage.
    scale: ClassVar[Scale] = "plain"
    #: The smallest and the largest possible value, which no confidence interval leaves.
    possible: ClassVar[PossibleRange] = ANY_VALUE
    #: Whether ratios of values mean something, and with them skill and differences in percent: where zero is no error.
    has_ratios: ClassVar[bool] = True

    def of_rows(self, rows: NDArray[np.intp]) -> Self:
        """Return the same for some of the individuals: what it holds for each of them is picked."""
        return self


STEP = 1e-5  # of numerical derivatives


class Loss(Metric):
    r"""The loss of predicting survival :math:`\pi` for an individual with or without the event; lower is better.

    To add a loss, subclass, give `name` and the two methods, and put the class into `METRICS`. It then runs in NumPy
    for input of any size; a compiled form is bound to its exact class (see `engine.compiled.KERNELS`), so that a
    subclass that changes the formula never runs as its parent.
    """

    #: Where probabilities are clipped, for losses that need it.
    epsilon: float = 0.0

    def of_statuses(self) -> StatusLosses:
        """Return the losses of single statuses whose sum is the multi-class form; most have none."""
        raise UnfitError(
            f"metric {self.name!r} has no multi-class form, which cause='all' asks for: it is of one cause at a time"
        )

    @abstractmethod
    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who are event-free."""

    @abstractmethod
    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who have had the event."""

    #: Whether its formulas, written with operators alone, take torch tensors as they take NumPy arrays.
    takes_tensors: ClassVar[bool] = False

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss, as a new array."""
        values: NDArray[np.float64] = arrays.where(event_free, self.of_event_free(survival), self.of_event(survival))
        return values

    def of_fraction(self, survival: FloatArray, event_free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected loss of those who are event-free with some probability."""
        with_event = self.of_event(survival)
        return with_event + event_free * (self.of_event_free(survival) - with_event)

    def slopes(self, survival: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the derivatives of both losses, event-free and with event; a loss may know them exactly."""
        low, high = np.maximum(survival - STEP, 0.0), np.minimum(survival + STEP, 1.0)
        width = high - low
        return (
            (self.of_event_free(high) - self.of_event_free(low)) / width,
            (self.of_event(high) - self.of_event(low)) / width,
        )


@dataclass(frozen=True)
class StatusLosses:
    """The multi-class form of a loss, over event-free and all causes: a sum over statuses.

    Each summand depends on what was predicted for its status alone, so that the status may be projected among
    individuals for whom that is similar.
    """

    #: Of the status event-free, for predictions of the probability of no event.
    event_free: Loss
    #: Of each cause, for predictions of the probability of no event of this cause.
    cause: Loss
    #: The smallest and the largest possible sum.
    possible: PossibleRange


@dataclass(frozen=True, eq=False)
class MetricValue:
    r"""The value of a metric of several individuals taken together."""

    #: NaN where it is not defined.
    value: float
    #: Each individual's influence on it while weights are held fixed: weight times the derivative by that individual's
    #: mass. Of a `SampleMetric`, those of the individuals in the sample. Shape (n,).
    influence: NDArray[np.float64]
    #: Why it is not defined.
    reason: str = ""
    #: Of a `FollowUpMetric`, :math:`M(s)` for each exit s of the curve that its weights contain: minus the derivative
    #: by the logarithm of the curve's factor at s. Shape (exits,).
    moved: NDArray[np.float64] | None = None
    #: Of a sum of squares of estimates, the influences on each of these. Chance adds the sum of their variances to the
    #: value, which is taken off; where the squares are small, the variance of squared errors is added to its variance.
    #: Shape (rows, n).
    squared: NDArray[np.float64] | None = None


class JointMetric(Metric):
    """A metric of several individuals taken together: what `SampleMetric` and `FollowUpMetric` share."""

    #: Whether there is a value only where some are counted with event, and some without.
    needs_both: ClassVar[bool] = True
    #: Whether a null model, which predicts the same for all, has a value.
    scores_null: ClassVar[bool] = True

    def small_sample(
        self,
        influence: NDArray[np.float64],
        label: NDArray[np.int8],
        counted: NDArray[np.bool_],
        counts: NDArray[np.float64] | None = None,
    ) -> float | None:
        """Return what to add to the sum of squared influences, so that few individuals are not taken for many.

        None for the factor n/(n - 1) of a mean of n individuals. With frequency weights, `counts` say how many each one
        stands for, and the square of `influence` is of all of these together. With other sample weights it is not
        asked.
        """
        return None

    def unseen_variance(self, weight: NDArray[np.float64]) -> float:
        """Return what to add to the variance of the difference of two models, which may be due to few individuals.

        Of weights that are sample weights, too, an individual of the mean one has as much as without.
        """
        return 0.0


class SampleMetric(JointMetric):
    """A metric of all individuals counted at a time together, such as AUC.

    To add one, subclass, give `name`, `direction` and `evaluate`, and put the class into `METRICS`.

    Examples
    --------
    The mean predicted risk, whose influence is that of any weighted mean:

    >>> import survscore as ss
    >>> from survscore.metrics import MetricValue, MetricSample
    >>> class MeanRisk(ss.SampleMetric):
    ...     name = "mean_risk"
    ...     needs_both = False
    ...
    ...     def evaluate(self, sample: MetricSample) -> MetricValue:
    ...         value = float(sample.share @ sample.risk)
    ...         return MetricValue(value, sample.share * (sample.risk - value))
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.9], [1.0]], times=[2])
    >>> (score,) = ss.score_all(y, curves, metric=MeanRisk(), weighting="administrative", times=[2])
    >>> score.scores.round(3), score.se.round(3)
    (array([0.25]), array([0.119]))
    """

    #: Whether, under competing risks, those with an event of another cause have no place in it.
    leaves_out_other_events: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, sample: MetricSample) -> MetricValue:
        """Return the value, and the influence on it of each individual in the sample, which holds at least one.

        All metrics of an evaluation get the same sample, and may share what they make of it (`MetricSample.once`).
        """


@dataclass(frozen=True, eq=False)
class History:
    r"""The follow-up of all individuals up to a time."""

    #: The time, here called tau.
    horizon: float
    #: When each individual left, and with which status: 0 for those who are event-free, else the cause. Shape (n,).
    time: NDArray[np.float64]
    label: NDArray[np.int8]
    #: :math:`C^*`, the end of potential follow-up; infinite where it is unknown, and minus infinity for those who are
    #: not counted. Shape (n,).
    until: NDArray[np.float64]
    #: The individuals' positions by time, for all who need them in that order. Shape (n,).
    order: NDArray[np.intp]
    #: The curve of being still under observation, by which weights make up for those who were lost before `until`; None
    #: where none were.
    lost: ProductLimit | None = None
    #: Under competing risks when those with an event of another cause had it, infinity for all others. In `time` they
    #: stay to the end of their potential follow-up, without the event of interest. Shape (n,).
    other_event_time: NDArray[np.float64] | None = None
    #: The sample weights, by which each individual's part in sums is multiplied; None where all count alike. Shape
    #: (n,).
    weights: NDArray[np.float64] | None = None

    @cached_property
    def mass(self) -> NDArray[np.float64]:
        """How much each individual counts."""
        return np.ones(self.time.size) if self.weights is None else self.weights

    @cached_property
    def event(self) -> NDArray[np.bool_]:
        """Who had the event by the horizon."""
        return np.asarray((self.label != 0) & (self.time <= self.horizon))


class FollowUpMetric(JointMetric):
    """A metric of the whole follow-up up to a time, and of whole curves.

    To add one, subclass, give `name`, `direction` and `evaluate`, and put the class into `METRICS`.
    """

    #: Whether only the order of predictions counts, so that one for all is as good as any other.
    of_order: ClassVar[bool] = False
    #: Whether, under competing risks, its weights know when events of other causes happened.
    weighs_other_events: ClassVar[bool] = False

    def slope(self, curves: SurvivalCurves, history: History) -> NDArray[np.float64]:
        """Return the derivatives of the value by what is predicted for all individuals at the times of the grid.

        `curves` has one row; what estimating it adds to standard errors of the null model comes from these.
        """
        if not self.of_order:
            raise InputError(f"metric {self.name!r} has no slope, which the null model needs: say null=False")
        return np.zeros(curves.times.size)

    def eligible(self, history: History) -> NDArray[np.bool_]:
        """Return whether each individual is counted; the same, or fewer, for later horizons."""
        return history.until >= 0.0

    @abstractmethod
    def evaluate(self, curves: SurvivalCurves, history: History) -> MetricValue:
        """Return the value, each individual's influence on it, and how it moves with the curve of being lost."""

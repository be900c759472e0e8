"""Net benefit of decisions by a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import dot
from survscore._validation import FloatArray, check_number
from survscore.inference.intervals import Direction
from survscore.metrics.base import MetricValue, SampleMetric
from survscore.metrics.sample import MetricSample

#: A risk that is closer than this to a threshold is at it, so that rounding does not decide on whom to act.
AT_THRESHOLD = 1e-7


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

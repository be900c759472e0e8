r"""The null model, a prediction that is the same for all individuals, and what its estimation adds to standard errors.

The Kaplan-Meier curve S of the events moves with each individual's data: its logarithm has the influences

.. math::

    \psi_i(t) = \sum_{s \le t,\, i \text{ survives } s} \frac{d_s}{Y_s (Y_s - d_s)}
        - \frac{1\{i \text{ has the event at } T_i \le t\}}{Y(T_i)},

so the null model's score has :math:`\delta(t) \psi_i(t)` more, with :math:`\delta(t)` the derivative of the score by
:math:`\log S(t)`. Where event times do not depend on :math:`C^*` this vanishes: S is then the best constant for those
who are counted. Three things make it cheap. Before T the sum is the same for all, and afterwards it stays. The squares
sum to Greenwood's, :math:`\sum_{s \le t} d_s / (Y_s (Y_s - d_s))`. And what estimating G adds to other influences is
orthogonal to it: for each jump of G those at risk share what :math:`\psi` was until then, and what comes later sums to
zero over them. So of other influences only their deviations (see `moments`) matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.metrics import Loss
from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class KaplanMeierNull:
    """The Kaplan-Meier curve of the events."""

    #: The estimate.
    curve: ProductLimit
    #: Of whom, if these are the individuals that are scored; None for others, who are an independent source of
    #: variance.
    outcomes: Outcomes | None

    @classmethod
    def of(cls, outcomes: Outcomes, *, scored: bool) -> KaplanMeierNull:
        """Take outcomes, of the individuals that are scored or of others."""
        return cls(ProductLimit.of_events(outcomes), outcomes if scored else None)

    def prediction(self, times: NDArray[np.float64]) -> SurvivalCurves:
        """Return the curve at some times as a prediction: one row, which stands for all individuals."""
        return SurvivalCurves(self.curve.table(times), times, "step", extrapolation="hold")

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        """Greenwood's sum, by how many times of the curve have passed."""
        sums: NDArray[np.float64] = arrays.running_sum(self.curve.greenwood)
        return sums

    def greenwood(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Greenwood's sum at each time: what all who are still event-free have in common."""
        passed = arrays.count_below(self.curve.times, times, inclusive=True)
        return arrays.to_host(self._sums[arrays.beside(passed, self._sums)])

    @cached_property
    def at_own_time(self) -> NDArray[np.float64]:
        """Each individual's influence on the curve's logarithm from T on."""
        if self.outcomes is None:
            raise TypeError("others' curve does not move with those who are scored")
        time, event = self.outcomes.time, self.outcomes.event
        before = self.curve.jumps_before(time)
        through = self.curve.jumps_before(time, inclusive=True)
        values: NDArray[np.float64] = self._sums[arrays.where(event, before, through)]
        values[event] -= 1.0 / arrays.as_float64(self.curve.at_risk[before[event]])
        return values


@dataclass(frozen=True, eq=False)
class NullInfluence:
    """What estimating the null model's curve adds to its score."""

    #: The estimate.
    null: KaplanMeierNull
    #: The derivative of the null model's score by the logarithm of the curve; 0 where there is no score. Shape
    #: (times,).
    slope: NDArray[np.float64]
    #: The influence on the logarithm of all who are still event-free. Shape (times,).
    common: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        null: KaplanMeierNull,
        times: NDArray[np.float64],
        loss: Loss,
        weight_sums: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> NullInfluence:
        """Take the sums of weights by range and status, (3, times), and what their mean loss is divided by."""
        survival = null.curve.table(times)[0]
        event_free, with_event = loss.slopes(survival)
        with np.errstate(invalid="ignore"):
            change = weight_sums[:2].sum(axis=0) * event_free + weight_sums[2] * with_event
            slope = np.where(scale > 0, scale * change * survival, 0.0)
        return cls(null, slope, null.greenwood(times))

    @property
    def of_scored(self) -> bool:
        """Whether the curve is of the individuals that are scored: then each of them moves it."""
        return self.null.outcomes is not None

    def influence(self, rows: Any, before_time: NDArray[np.int32], columns: slice) -> NDArray[np.float64]:
        """Return what the null model's score has more of each of some individuals, (rows, times)."""
        own = self.null.at_own_time[rows][:, None]
        event_free = arrays.columns(columns.stop, own)[columns.start :] < before_time[rows][:, None]
        common, slope = (arrays.beside(values[columns], own) for values in (self.common, self.slope))
        influence: NDArray[np.float64] = slope * arrays.where(event_free, common, own)
        return influence

    def mean(self, weights: NDArray[np.float64], before_time: NDArray[np.int32], rows: slice) -> NDArray[np.float64]:
        """Return some individuals' parts in a mean over time."""
        weighted = weights * self.slope
        while_event_free = np.concatenate(([0.0], np.cumsum(weighted * self.common)))
        rest = np.concatenate((np.cumsum(weighted[::-1])[::-1], [0.0]))
        before = before_time[rows]
        return np.asarray(while_event_free[before] + rest[before] * self.null.at_own_time[rows])

    def covariance(self) -> NDArray[np.float64]:
        """Return the sums of products over time, (times, times)."""
        return np.outer(self.slope, self.slope) * np.minimum.outer(self.common, self.common)

    def variance(self) -> NDArray[np.float64]:
        """Return the sums of squares at each time."""
        return self.slope**2 * self.common

    def of_mean(self, weights: NDArray[np.float64]) -> float:
        """Return the sum of squares of a mean over time."""
        rest = np.cumsum((weights * self.slope)[::-1])[::-1]  # of all times from each on
        return float(np.sum(rest**2 * np.diff(self.common, prepend=0.0)))

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

Under competing risks the null model is the Aalen-Johansen estimate F of the cause of interest. Its influences are
:math:`a_i(t) - U(t) \psi_i(t)`, with a that is a sum over jumps as :math:`\psi` is (see `censoring.aalen_johansen`).

With sample weights, d and Y are sums of these, and :math:`\psi_i` is multiplied by the individual's own where it is
added to other influences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._validation import UnfitError
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.metrics import Loss
from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class KaplanMeierNull:
    """The Kaplan-Meier curve of the events, or the Aalen-Johansen estimate of one cause of them."""

    curve: ProductLimit  # The estimate.
    #: Of whom, if these are the individuals that are scored; None for others, who are an independent source of
    #: variance.
    outcomes: Outcomes | None
    incidence: Incidence | None = None  # That of the cause of interest, under competing risks.
    #: How many jumps each individual has stayed through, which is also the own jump of those with event; None of
    #: others' curve. Shape (n,).
    passed: Any = None

    @classmethod
    def of(cls, outcomes: Outcomes, *, scored: bool) -> KaplanMeierNull:
        """Take outcomes, of the individuals that are scored or of others."""
        if not scored:
            if outcomes.competing:
                raise UnfitError(
                    "null: the Aalen-Johansen estimate of other outcomes has no standard errors yet; say null=True for "
                    "that of the scored outcomes, or null='counted'"
                )
            return cls(ProductLimit.of_others(outcomes), None)
        curve, order, passed = ProductLimit.of_events_in_order(outcomes)
        incidence = Incidence.of_curve(outcomes, curve, order, passed) if outcomes.competing else None
        return cls(curve, outcomes, incidence, arrays.put(passed, order))

    def table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of being without the event of interest at some times, (1, times)."""
        return self.curve.table(times) if self.incidence is None else 1.0 - self.incidence.table(times)

    def before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the left limits of that probability at some times."""
        if self.incidence is None:
            return self.curve.before(times)
        first, before = (
            self.incidence.later(jumps)
            for jumps in (arrays.zeros((1,), times).astype(int), self.curve.jumps_before(times))
        )
        return np.asarray(1.0 - first + before)

    def prediction(self, times: NDArray[np.float64]) -> SurvivalCurves:
        """Return the curve at some times as a prediction: one row, which stands for all individuals."""
        return SurvivalCurves(self.table(times), times, interpolation="step", extrapolation="hold")

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        """Greenwood's sum, by how many times of the curve have passed."""
        steps = self.curve.greenwood if self.outcomes is not None else self.curve.variance_steps
        sums: NDArray[np.float64] = arrays.running_sum(steps)
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
        values: NDArray[np.float64] = self._sums[self.passed]
        event = self.outcomes.event
        values[event] -= 1.0 / arrays.as_float64(self.curve.at_risk[self.passed[event]])
        return values

    def incidence_sums(self, incidence: Incidence, passed: Any) -> Any:
        """Return the part of the influence on an incidence that does not depend on t, after so many jumps."""
        sums = -arrays.running_sum(incidence.steps)
        return sums[arrays.beside(passed, sums)]

    def incidence_at_own_time(self, incidence: Incidence) -> Any:
        """Return that part of each individual's influence from T on."""
        if self.outcomes is None:
            raise TypeError("others' curve does not move with those who are scored")
        event, passed = self.outcomes.event, self.passed
        values = self.incidence_sums(incidence, passed)
        own = incidence.own(passed[event], self.outcomes.event_of_interest[event])
        values[event] += own / arrays.as_float64(self.curve.at_risk[passed[event]])
        return values


@dataclass(frozen=True, eq=False)
class NullInfluence:
    """What estimating the null model's curve adds to its score."""

    null: KaplanMeierNull  # The estimate.
    #: The derivative of the null model's score by the logarithm of the curve; 0 where there is no score. Under
    #: competing risks, by the incidence, times -U, and as a second part by the incidence. Shape (parts,
    #: times).
    slopes: NDArray[np.float64]
    #: What these multiply for all who are still event-free: the influence on the logarithm, and what else that on the
    #: incidence has. Shape (parts, times).
    common: NDArray[np.float64]
    #: The same of each individual from T on; nothing, if the curve is of others. Shape (n,), for each part.
    own: Sequence[Any]

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
        survival = null.table(times)[0]
        event_free, with_event = loss.slopes(survival)
        with np.errstate(invalid="ignore"):
            change = weight_sums[:2].sum(axis=0) * event_free + weight_sums[2] * with_event
            slope = np.where(scale > 0, scale * change, 0.0)
        return cls.by_slope(null, times, survival, slope)

    @classmethod
    def by_slope(
        cls,
        null: KaplanMeierNull,
        times: NDArray[np.float64],
        survival: NDArray[np.float64],
        slope: NDArray[np.float64],
    ) -> NullInfluence:
        """Take the derivative of a metric by what the null model predicts at some times."""
        incidence, greenwood = null.incidence, null.greenwood(times)
        own = [] if null.outcomes is None else [null.at_own_time]
        if incidence is None:
            return cls(null, (slope * survival)[None], greenwood[None], own)
        passed = arrays.count_below(null.curve.times, arrays.beside(times, null.curve.times), inclusive=True)
        common = arrays.to_host(null.incidence_sums(incidence, passed))
        own.append(null.incidence_at_own_time(incidence))
        # survival is one minus the incidence
        return cls(
            null, np.array([slope * incidence.later_table(times)[0], -slope]), np.array([greenwood, common]), own
        )

    @property
    def of_scored(self) -> bool:
        """Whether the curve is of the individuals that are scored: then each of them moves it."""
        return self.null.outcomes is not None

    @property
    def of_event_free(self) -> NDArray[np.float64]:
        """What the null model's score has more of each individual who is still event-free, (times,)."""
        return np.asarray((self.slopes * self.common).sum(axis=0))

    def influence(self, rows: Any, before_time: NDArray[np.int32], columns: slice) -> NDArray[np.float64]:
        """Return what the null model's score has more of each of some individuals, (rows, times)."""
        before = before_time[rows][:, None]
        event_free = arrays.columns(columns.stop, before)[columns.start :] < before
        slopes, common = (
            arrays.beside(values[:, columns], self.own[0]) for values in (self.slopes, self.of_event_free[None])
        )
        total: Any = sum(slope * own[rows][:, None] for slope, own in zip(slopes, self.own, strict=True))
        influence: NDArray[np.float64] = arrays.where(event_free, common, total)
        return influence

    def mean(self, weights: NDArray[np.float64], before_time: NDArray[np.int32], rows: slice) -> NDArray[np.float64]:
        """Return some individuals' parts in a mean over time."""
        before = before_time[rows]
        total = np.concatenate(([0.0], np.cumsum(weights * self.of_event_free)))[before]
        for slope, own in zip(self.slopes, self.own, strict=True):
            rest = np.concatenate((np.cumsum((weights * slope)[::-1])[::-1], [0.0]))
            total = total + rest[before] * own[rows]
        return np.asarray(total)

    # of the Kaplan-Meier curve of others: an independent source of variance

    def covariance(self) -> NDArray[np.float64]:
        """Return the sums of products over time, (times, times)."""
        (slope,), (common,) = self.slopes, self.common
        return np.asarray(np.outer(slope, slope) * np.minimum.outer(common, common))

    def variance(self) -> NDArray[np.float64]:
        """Return the sums of squares at each time."""
        (slope,), (common,) = self.slopes, self.common
        return np.asarray(slope**2 * common)

    def of_mean(self, weights: NDArray[np.float64]) -> float:
        """Return the sum of squares of a mean over time."""
        (slope,), (common,) = self.slopes, self.common
        rest = np.cumsum((weights * slope)[::-1])[::-1]  # of all times from each on
        return float(np.sum(rest**2 * np.diff(common, prepend=0.0)))

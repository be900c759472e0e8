"""Individuals whose time and status are alike as one: what the engine needs to know of them to weight for leaving.

A product limit, the weights that come from it, and what its estimation adds to influences depend on an individual's
stratum, on the bin of its time, and on whether it leaves then. So sums over the individuals of each such cell are all
that there has to be of them: cells stand for individuals, with the number of these, or the sum of their weights, as
sample weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property
from survscore.censoring.fitted import FittedOnSample
from survscore.censoring.product_limit import ProductLimit
from survscore.engine.influence import CurveInfluence, OrderedExits
from survscore.outcomes import Outcomes
from survscore.scale.specification import Specification
from survscore.weighting.base import curve_weights
from survscore.weighting.interval_weights import TimeIndex

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of some strata, in which a product limit is estimated; (strata, bins, 2), who leave last.

    Attributes
    ----------
    counts : ndarray of shape (strata, bins, 2)
        How many individuals there are, or the sum of their weights.
    index : TimeIndex
        Where the times of the cells fall among the evaluation times.
    model : FittedOnSample
        The product limit.
    """

    counts: Values
    index: TimeIndex
    model: FittedOnSample

    @classmethod
    def of(cls, what: Specification, counts: NDArray[np.float64], *, leave_first: bool) -> Self:
        """Estimate the curves; at ties those who leave come first (events), or last (the censored)."""
        strata, bins, _ = counts.shape
        ends = ends_of_bins(what, bins)
        # beyond the last bin in which somebody can leave, one time is as good as another
        ends[-1] = ends[-1] if np.isfinite(ends[-1]) else max([*ends[:-1], *what.times]) + 1.0
        time = np.broadcast_to(ends[:, None], counts.shape).ravel()
        leaves = np.broadcast_to([False, True], counts.shape).ravel()
        codes = np.repeat(np.arange(strata, dtype=np.int32), 2 * bins) if strata > 1 else None
        index = TimeIndex(Outcomes(time, leaves == leave_first), what.at)
        order = index.order
        curve, passed = ProductLimit.in_order(
            time[order], leaves[order], None if codes is None else codes[order], strata,
            np.asarray(counts, dtype=np.float64).ravel()[order],
        )  # fmt: skip
        return cls(counts, index, FittedOnSample(curve, codes, leaves, passed))

    @cached_property
    def curves(self) -> tuple[Values, Values]:
        """The curves at the evaluation times, (strata, times), and before each cell leaves, (strata, bins, 2)."""
        at, before = curve_weights(self.model, self.index)
        return at, before.reshape(self.counts.shape)

    @property
    def last_left(self) -> float | None:
        """The last time of all, if somebody left then; of one stratum."""
        by_bin = self.counts.sum(axis=0)
        last = int(np.flatnonzero(by_bin.sum(axis=1))[-1])
        own = self.index.outcomes.time.reshape(self.counts.shape)
        return float(own[0, last, 0]) if by_bin[last, 1] else None

    def estimation(self, gradients: Values, *, of_weights: bool) -> Values:
        """Return what estimating the curves adds to an individual's influence, (..., times, strata, bins, 2).

        From the sums of gradients (`engine.influence`) over the individuals of each cell, in the same shape; of
        weights, of those of all who have not yet left, or of statuses projected from cells that did.
        """
        *several, m, strata, bins, two = gradients.shape
        exits = OrderedExits.of(self.index, self.model)
        everybody, order = exits.in_block(slice(0, len(exits.order))), exits.order
        found = np.empty((*several, m, strata * bins * two))
        for place in np.ndindex(*several):
            x = gradients[place].reshape(m, -1).T
            total = x.reshape(strata, -1, m).sum(axis=1) if of_weights else np.zeros((strata, m))
            added = np.zeros(x.shape)
            CurveInfluence(exits, slice(0, m), -total).add(added, x[order], everybody, 0)
            found[place][:, order] = added.T
        return found.reshape(gradients.shape)


def ends_of_bins(what: Specification, n: int) -> Values:
    """Return the time of each bin: of all who leave in it; infinite where nobody does."""
    return np.arange(n, dtype=np.float64) if what.bins == "units" else np.array([*(what.bins or ()), np.inf])

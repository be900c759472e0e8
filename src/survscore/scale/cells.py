"""Individuals whose time and status are alike as one: what the engine needs to know of them to weight for leaving.

A product limit, the weights or statuses that come from it, and what its estimation adds to influences depend on an
individual's stratum, on the bin of its time, and on how its follow-up ended then. So sums over the individuals of each
such cell are all that is needed: cells stand for individuals, with the number of these, or the sum of their weights, as
sample weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore.censoring.aalen_johansen import Incidence
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
    """The cells of some strata, (strata, bins, kinds), in which a product limit or an incidence is estimated."""

    counts: Values  # how many individuals there are, or the sum of their weights
    index: TimeIndex  # where the times of the cells fall among the evaluation times
    model: FittedOnSample

    @classmethod
    def of_exits(cls, what: Specification, counts: Values) -> Self:
        """Estimate the curve of those who leave, the second kind; at ties the others come first."""
        return cls._of(what, counts, lambda time, kind: Outcomes(time, kind == 0), np.array([False, True]))

    @classmethod
    def of_events(cls, what: Specification, counts: Values) -> Self:
        """Estimate the incidence of the event of interest; kinds are without event, with it, and with another one."""

        def outcomes(time: Values, kind: NDArray[np.intp]) -> Outcomes:
            if counts.shape[2] == 2:
                return Outcomes(time, kind == 1)
            return Outcomes(time, kind.astype(np.int8), causes=("of interest", "other")).for_cause("of interest")

        cells = cls._of(what, counts, outcomes, np.array([False, True, True])[: counts.shape[2]])
        index, model = cells.index, cells.model
        of_interest, weights = ((index.label > 0) & model.exits)[index.order], counts.ravel()[index.order]
        incidence = Incidence.in_order(model.curve, model.passed, of_interest, weights=weights)
        return replace(cells, model=replace(model, incidence=incidence))

    @classmethod
    def _of(cls, what: Specification, counts: Values, outcomes: Any, leaves: NDArray[np.bool_]) -> Self:
        strata, bins, kinds = counts.shape
        ends = ends_of_bins(what, bins)
        # beyond the last bin in which individuals can leave, one time is as good as another
        ends[-1] = ends[-1] if np.isfinite(ends[-1]) else max([*ends[:-1], *what.times]) + 1.0
        time, kind = (np.broadcast_to(of, counts.shape).ravel() for of in (ends[:, None], np.arange(kinds)))
        exits = leaves[kind] & (counts.ravel() > 0)  # a jump that is none has no cause
        codes = np.repeat(np.arange(strata, dtype=np.int32), kinds * bins) if strata > 1 else None
        index = TimeIndex(outcomes(time, kind), what.at)
        order = index.order
        curve, passed = ProductLimit.in_order(
            time[order], exits[order], None if codes is None else codes[order], strata, counts.ravel()[order]
        )
        return cls(counts, index, FittedOnSample(curve, codes, exits, passed))

    @cached_property
    def curves(self) -> tuple[Values, Values]:
        """The curves at the evaluation times, (strata, times), and before each cell leaves, (strata, bins, kinds)."""
        at, before = curve_weights(self.model, self.index)
        return at, before.reshape(self.counts.shape)

    def statuses(self, theta: Any = 1.0) -> tuple[Values, Values, Values]:
        """Return what makes base + share x later the probability of no event of interest, for cells without event.

        (strata, bins), (strata, bins) and (strata, times); of several `theta`, which multiply its hazard, with a last
        axis more.
        """
        if self.model.incidence is None:
            raise TypeError("no incidence was estimated")
        incidence = replace(self.model.incidence, theta=theta)
        strata, bins, kinds = self.counts.shape
        cells = np.arange(strata * bins) * kinds
        passed = arrays.put(self.model.passed, self.index.order)[cells]
        codes = None if self.model.codes is None else self.model.codes[cells]
        base, share = incidence.statuses(incidence.position(passed, codes))
        shape = (strata, bins, *np.shape(theta))
        return base.reshape(shape), share.reshape(shape), incidence.later_table(self.index.times)

    @property
    def last_left(self) -> float | None:
        """The last time of all, if any individual left then; of one stratum."""
        by_bin = self.counts.sum(axis=0)
        last = int(np.flatnonzero(by_bin.sum(axis=1))[-1])
        own = self.index.outcomes.time.reshape(self.counts.shape)
        return float(own[0, last, 0]) if by_bin[last, 1] else None

    def estimation(self, gradients: Values, *, of_weights: bool) -> Values:
        """Return what estimating the curves adds to an individual's influence, (..., times, strata, bins, kinds).

        From the sums of gradients (`engine.influence`) over the individuals of each cell, in the same shape; of
        weights, of those of all who have not yet left, or of statuses projected from cells that did.
        """
        *several, m, strata, bins, kinds = gradients.shape
        exits = OrderedExits.of(self.index, self.model)
        every_exit, order = exits.in_block(slice(0, len(exits.order))), exits.order
        found = np.empty((*several, m, strata * bins * kinds))
        for place in np.ndindex(*several):
            x = gradients[place].reshape(m, -1).T
            total = x.reshape(strata, -1, m).sum(axis=1) if of_weights else np.zeros((strata, m))
            added = np.zeros(x.shape)
            CurveInfluence(exits, slice(0, m), -total).add(added, x[order], every_exit, 0)
            found[place][:, order] = added.T
        return found.reshape(gradients.shape)


def ends_of_bins(what: Specification, n: int) -> Values:
    """Return the time of each bin: of all who leave in it; infinite where nobody does."""
    return np.arange(n, dtype=np.float64) if what.bins == "units" else np.array([*(what.bins or ()), np.inf])

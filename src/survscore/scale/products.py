"""Sums of products of losses at different times, for the errors of means over time; exact, though made by BLAS.

Losses are rounded to multiples of :math:`2^{-20}`. Products of such numbers, and sums of 4 096 of them, are whole
numbers below :math:`2^{53}`, which floating-point arithmetic adds without error in any order. Rounding moves a variance
by about :math:`10^{-12}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore.engine.moments import contrast, pairs
from survscore.scale.exact import Exact

PRODUCT_BITS = 20
PRODUCT_ROWS = 1 << 12
ROWS_OVER_TIME = 1 << 15  # at once, so that losses at all times stay in a cache


@dataclass(frozen=True, eq=False)
class Products:
    """Products of all losses at all times, and of who is counted.

    Attributes
    ----------
    sums : Exact of shape (metrics, segments, columns, columns)
        Columns are the times of the first model, then of the second and so on, then the times at which one is counted.
    """

    sums: Exact

    scale: ClassVar[float] = 2.0**PRODUCT_BITS

    @classmethod
    def zeros(cls, metrics: int, segments: int, models: int, times: int) -> Products:
        """Return the sums over nobody."""
        columns = (models + 1) * times
        return cls(Exact.zeros(metrics, segments, columns, columns))

    @staticmethod
    def bytes_of(metrics: int, segments: int, models: int, times: int) -> int:
        """Return how much memory sums of a size take; see `zeros`."""
        return 16 * metrics * segments * ((models + 1) * times) ** 2

    def add(self, metric: int, losses: NDArray[np.float64], segment: NDArray[np.int32]) -> None:
        """Add some individuals, (columns, individuals); they come segment by segment."""
        present, starts = np.unique(segment, return_index=True)
        for which, start, stop in zip(present.tolist(), starts, [*starts[1:], segment.size], strict=True):
            total = Exact(self.sums.high[metric, which], self.sums.low[metric, which])
            for first in range(start, stop, PRODUCT_ROWS):
                some = losses[:, first : min(first + PRODUCT_ROWS, stop)]
                total.add((some @ some.T).astype(np.int64))

    def placed(self, segments: NDArray[np.intp], n_segments: int) -> Products:
        """Return the same sums in a table of more segments."""
        metrics, _, columns, _ = self.sums.high.shape
        if np.array_equal(segments, np.arange(n_segments)):
            return self
        larger = Exact.zeros(metrics, n_segments, columns, columns)
        larger.high[:, segments], larger.low[:, segments] = self.sums.high, self.sums.low
        return Products(larger)

    def __add__(self, other: Products) -> Products:
        return Products(self.sums + other.sums)

    def segment(self, which: int | None) -> Products:
        """Return the sums over one segment, or over all."""
        if which is None:
            total = self.sums.summed(1)
            return Products(Exact(total.high[:, None], total.low[:, None]))
        chosen = slice(which, which + 1)
        return Products(Exact(self.sums.high[:, chosen].copy(), self.sums.low[:, chosen].copy()))

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return all numbers by name."""
        self.sums.carry()
        return {"products.high": self.sums.high, "products.low": self.sums.low}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[np.int64]]) -> Products:
        """Take what `arrays` returned."""
        return cls(Exact(arrays["products.high"], arrays["products.low"]))

    def covariances(self, metric: int, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sums of products of deviations from `centre`, (models, times), of all pairs: (pairs, times, times)."""
        k, m = centre.shape
        whole = Exact(self.sums.high[metric, 0], self.sums.low[metric, 0]).whole().reshape(k + 1, m, k + 1, m)
        losses = np.ldexp(whole[:k, :, :k], -2 * PRODUCT_BITS)
        counted = np.ldexp(whole[:k, :, k], -PRODUCT_BITS)  # the loss at the first time, if counted at the second
        found = []
        for a, b in pairs(k):
            both = losses[a, :, a] if a == b else losses[a, :, a] + losses[b, :, b] - losses[a, :, b] - losses[b, :, a]
            mean, once = contrast(centre, a, b), contrast(counted, a, b)
            found.append(both - once * mean - (once * mean).T + np.outer(mean, mean) * whole[k, :, k])
        return np.array(found)

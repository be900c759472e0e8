r"""Sums that do not depend on the order of their terms: integers.

Every term is rounded to a multiple of :math:`2^{-44}` and added as an integer, so that sums are the same to the bit
however the rows are cut, ordered and merged. Terms are at most one (losses are scaled to be so), so a score is off by
less than :math:`2^{-45}`; the errors of single terms, of either sign, mostly cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.metrics import Log, Loss

BITS = 44
UNIT = 2.0**-BITS
ROWS = 1 << 18  # so many terms of at most one can be added before 64 bits overflow
#: Added to a number below one, it leaves the number's multiple of the unit in the last bits of the sum.
MAGIC = 1.5 * 2.0 ** (52 - BITS)
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))
#: Logarithmic losses are multiplied by this: clipped at 2**-53 they are at most 37, and then hardly more than one.
LOG_SCALE = 2.0**-5
LOW = 32
MASK = (1 << LOW) - 1


def rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return numbers as multiples of the unit, rounded as `MAGIC` does it."""
    return np.asarray(np.rint(np.ldexp(values, BITS)), dtype=np.int64)


def loss_scale(loss: Loss) -> float:
    """Return by what losses were multiplied, so that they are about one at most."""
    return LOG_SCALE if isinstance(loss, Log) else 1.0


@dataclass(frozen=True, eq=False)
class Exact:
    """Integers of up to 95 bits, as two: ``high * 2**32 + low``."""

    high: NDArray[np.int64]
    low: NDArray[np.int64]

    @classmethod
    def zeros(cls, *shape: int) -> Exact:
        """Return zeros."""
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))

    def add(self, values: NDArray[np.int64]) -> None:
        """Add integers, in place."""
        self.high[...] += values >> LOW
        self.low[...] += values & MASK
        if self.low.size and int(self.low.max()) > 1 << 61:
            self.carry()

    def carry(self) -> None:
        """Bring the lower part back between 0 and 2**32, so that equal sums have equal bits."""
        self.high[...] += self.low >> LOW
        self.low[...] &= MASK

    def __add__(self, other: Exact) -> Exact:
        total = Exact(self.high + other.high, self.low + other.low)
        total.carry()
        return total

    def whole(self) -> NDArray[np.float64]:
        """Return the whole numbers themselves."""
        self.carry()
        return np.asarray(np.ldexp(self.high.astype(np.float64), LOW) + self.low)

    def value(self, scale: float = 1.0) -> NDArray[np.float64]:
        """Return the sums as numbers, `scale` times as large."""
        return self.whole() * (UNIT * scale)

    def summed(self, axis: int) -> Exact:
        """Return the sums over an axis; lower parts first brought into range, so that nothing overflows."""
        self.carry()
        total = Exact(self.high.sum(axis=axis), self.low.sum(axis=axis))
        total.carry()
        return total

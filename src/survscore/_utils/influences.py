"""Every individual's influences on several numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROWS = 1 << 13  # at a time


@dataclass(frozen=True, eq=False)
class Influences:
    """Influences on several numbers, (numbers, rows)."""

    values: NDArray[np.float64]

    @classmethod
    def of(cls, given: NDArray[np.float64] | Influences) -> Influences:
        """Take them as they are, or as a matrix."""
        return given if isinstance(given, Influences) else cls(given)

    @classmethod
    def stacked(cls, several: Sequence[NDArray[np.float64] | Influences]) -> Influences:
        """Put the numbers of several after each other."""
        return cls(np.concatenate([cls.of(one).values for one in several]))

    def __len__(self) -> int:
        return len(self.values)

    def whole(self) -> NDArray[np.float64]:
        """Return all of them."""
        return self.values

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield those of some rows after the other."""
        for start in range(0, self.values.shape[1], ROWS):
            yield self.values[:, start : start + ROWS]

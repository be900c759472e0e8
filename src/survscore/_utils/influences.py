"""Everybody's influences on several numbers, which of many individuals are never all in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROWS = 1 << 13  # at a time


@dataclass(frozen=True, eq=False)
class Influences:
    """Influences on several numbers, made for some rows at a time.

    Attributes
    ----------
    n_numbers, n_rows : int
        How many there are.
    of_rows : callable
        Returns those of some rows, (numbers, rows).
    """

    n_numbers: int
    n_rows: int
    of_rows: Callable[[slice], NDArray[np.float64]]

    @classmethod
    def of(cls, given: NDArray[np.float64] | Influences) -> Influences:
        """Take them as they are, or as a matrix, (numbers, rows)."""
        return given if isinstance(given, Influences) else cls(len(given), given.shape[1], lambda rows: given[:, rows])

    @classmethod
    def stacked(cls, several: Sequence[NDArray[np.float64] | Influences]) -> Influences:
        """Put the numbers of several after each other."""
        parts = [cls.of(one) for one in several]
        return cls(
            sum(len(one) for one in parts),
            parts[0].n_rows,
            lambda rows: np.concatenate([one.of_rows(rows) for one in parts]),
        )

    def __len__(self) -> int:
        return self.n_numbers

    def whole(self) -> NDArray[np.float64]:
        """Return all of them, (numbers, rows)."""
        return self.of_rows(slice(0, self.n_rows))

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield those of some rows after the other."""
        for start in range(0, self.n_rows, ROWS):
            yield self.of_rows(slice(start, min(start + ROWS, self.n_rows)))

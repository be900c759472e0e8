"""How a grid of predictions is read at other times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import FloatArray


@dataclass(frozen=True, eq=False)
class Interpolation:
    """How the columns of a grid give the values at other times, the same way for every row.

    The value at time j lies between column ``lower[j]`` and the next one, with `weight` on the latter;
    ``lower[j] == -1`` stands for S(0) = 1, left of the first column. Times ascend, and `lower` with them.
    """

    lower: NDArray[np.intp]
    weight: NDArray[np.float64]
    geometric: bool

    @cached_property
    def direct(self) -> bool:
        """Whether the values are a contiguous range of columns, so that nothing needs to be gathered."""
        first = self.lower[0]
        return bool(
            first >= 0
            and not self.weight.any()
            and np.array_equal(self.lower, np.arange(first, first + self.lower.size))
        )

    @property
    def plain(self) -> tuple[bool, bool, NDArray[np.intp], NDArray[np.float64]]:
        """The same as the kernels take it: direct, geometric, lower, weight."""
        return (self.direct, self.geometric, self.lower, self.weight)

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Read whole rows: (individuals, grid) to (individuals, times)."""
        if self.direct:
            return probabilities[:, self.lower[0] : self.lower[0] + self.lower.size]
        last = probabilities.shape[1] - 1
        if arrays.is_tensor(probabilities):
            return self._of_tensor(probabilities, last)
        left = probabilities[:, np.maximum(self.lower, 0)].astype(np.float64)
        left[:, self.lower < 0] = 1.0
        right = probabilities[:, np.minimum(self.lower + 1, last)]
        return blend(left, right, self.weight, self.geometric)

    def _of_tensor(self, probabilities: Any, last: int) -> FloatArray:
        lower = arrays.beside(self.lower, probabilities)
        left = probabilities[:, lower.clip(min=0)].double()
        left[:, lower < 0] = 1.0
        right = probabilities[:, (lower + 1).clip(max=last)].double()
        return blend(left, right, arrays.beside(self.weight, probabilities), self.geometric)


def blend(left: FloatArray, right: FloatArray, weight: FloatArray, geometric: bool) -> NDArray[np.float64]:
    """Mix neighbours: arithmetically (survival linear) or geometrically (log-survival linear).

    The powers, unlike logarithms, are right where survival is zero: 0 ** 0 is 1.
    """
    if not geometric:
        return (1.0 - weight) * left + weight * right
    left, right = arrays.as_float64(left), arrays.as_float64(right)
    mixed: NDArray[np.float64] = arrays.power(left, 1.0 - weight) * arrays.power(right, weight)
    return mixed

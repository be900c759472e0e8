"""Independent units: individuals, or groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import as_labels, check_length

NUMBERS_PER_LABEL = 4  # from the lowest to the highest, up to which a table is the fastest way to number them
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Clusters: individuals of a group may depend on each other, groups are independent."""

    codes: NDArray[np.int32]
    n_groups: int

    @classmethod
    def of(cls, labels: Any, n: int) -> Groups:
        """Take one label per individual."""
        codes, n_groups = coded(labels, "groups")
        check_length("groups", codes.size, "y", n)
        return cls(codes, n_groups)

    def beside(self, like: Any) -> Groups:
        """Return the same where others live."""
        return Groups(arrays.beside(self.codes, like), self.n_groups)


def coded(labels: Any, name: str) -> tuple[NDArray[np.int32], int]:
    """Return labels, one for each individual, as numbers from 0 on, and how many different ones there are."""
    array = as_labels(labels, name)
    if array.dtype.kind in "biu" and array.size:
        low, high = int(array.min()), int(array.max())
        if high - low < NUMBERS_PER_LABEL * array.size and high <= np.iinfo(np.int64).max:
            # a table of all numbers between: no sorting, no hashing
            shifted = array.astype(np.int64) - low
            present = np.zeros(high - low + 1, dtype=np.bool_)
            present[shifted] = True
            return (np.cumsum(present, dtype=np.int32) - np.int32(1))[shifted], int(np.count_nonzero(present))
    if array.dtype.kind != "O":
        distinct, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int32), distinct.size
    import pandas as pd  # sorting objects is slow

    numbers, distinct_labels = pd.factorize(array)
    return numbers.astype(np.int32), len(distinct_labels)


@dataclass(frozen=True, eq=False)
class Units:
    """The numbers of independent units, individuals or groups, behind a score at each time."""

    counted: Vector
    largest_share: Vector  # of the individuals counted, which the largest unit holds
    #: Degrees of freedom of a variance made of as many squares: `counted` - 1 for units of equal size, fewer where some
    #: hold most of the individuals.
    degrees: Vector

    @classmethod
    def of(
        cls, stop: NDArray[np.int32], groups: Groups | None, n_times: int, individuals: Vector | None = None
    ) -> Units:
        """Count the individuals that the score refers to, or their groups; the number of the former may be known."""
        if groups is None:
            counted = n_eligible(stop, n_times) if individuals is None else individuals
            with np.errstate(divide="ignore"):
                return cls(counted, np.where(counted > 0, 1.0 / counted, np.nan), counted - 1.0)
        if stop.strides == (0,):  # all individuals, always
            sizes = PowerSums.of(np.bincount(groups.codes, minlength=groups.n_groups)[:, None])
            return cls(*(np.repeat(values, n_times) for values in sizes.units()))
        return cls(*PowerSums.of_groups(stop, groups, n_times).units())

    @property
    def inflation(self) -> Vector:
        """The factor of a sample variance."""
        return small_sample(self.counted)


def small_sample(n_units: Vector) -> Vector:
    """Return n/(n - 1), as in any sample variance; NaN where one unit, or none, is left."""
    return np.where(n_units > 1, n_units / np.where(n_units > 1, n_units - 1, 1), np.nan)


def n_eligible(stop: Any, n_times: int) -> Vector:
    """Return how many individuals have a `stop` after each time."""
    if arrays.is_repeated(stop):
        return np.full(n_times, float(len(stop)))
    ends = arrays.to_host(arrays.sums_by(stop, None, n_times + 1))
    return np.asarray(len(stop) - np.cumsum(ends)[:n_times], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PowerSums:
    r"""Sums over groups of powers of their sizes, :math:`\sum_g n_g^k` (k up to 5), and the largest size, by time."""

    powers: Vector
    largest: Vector

    @classmethod
    def of(cls, sizes: NDArray[Any]) -> PowerSums:
        """Take the sizes of groups, (groups, times)."""
        size = np.asarray(sizes, dtype=np.float64)
        powers = [np.count_nonzero(size, axis=0).astype(np.float64), *(np.sum(size**k, axis=0) for k in range(1, 6))]
        return cls(np.array(powers), size.max(axis=0, initial=0.0))

    @classmethod
    def of_groups(cls, stop: NDArray[np.int32], groups: Groups, n_times: int) -> PowerSums:
        r"""Count the members of every group at every time, without a table of groups by times.

        With the members of a group ranked from the last to leave, r = 1, to the first, :math:`n^k` is the sum of
        :math:`r^k - (r - 1)^k` over those who are still there: a sum over individuals.
        """
        order = np.lexsort((-stop, groups.codes))
        codes, stops = groups.codes[order], stop[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        rank = np.arange(1.0, stop.size + 1) - np.repeat(starts, np.diff(starts, append=stop.size))
        added = [(rank == 1.0) * 1.0, *(rank**k - (rank - 1.0) ** k for k in range(1, 6))]
        powers = [np.cumsum(np.bincount(stops, power, n_times + 1)[::-1])[::-1][1:] for power in added]
        largest = np.zeros(n_times + 1)
        np.maximum.at(largest, stops, rank)
        return cls(np.array(powers), np.maximum.accumulate(largest[::-1])[::-1][1:])

    def units(self) -> tuple[Vector, Vector, Vector]:
        r"""Return how many groups are counted, the largest share, and the degrees of freedom.

        If the means of groups vary alike whatever their size, the sum of squares
        :math:`\sum_g p_g^2 (\bar y_g - \bar y)^2`, with shares p, is a quadratic form of independent numbers with
        matrix A; Satterthwaite's approximation gives it :math:`(\mathrm{tr} A)^2 / \mathrm{tr} A^2` degrees of freedom,
        and both traces are sums of powers of p. Groups of equal size give their number - 1.
        """
        counted, n = self.powers[0], self.powers[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            _, _, c, cubes, fourths, fifths = (self.powers[k] / n**k for k in range(6))
            trace = c - 2 * cubes + c**2
            of_square = c**4 + 2 * fourths * c - 4 * c**2 * cubes + 2 * cubes**2 + fourths * (1 + 2 * c) - 4 * fifths
            degrees = np.where(counted > 1, trace**2 / of_square, 0.0)
            return counted, np.where(n > 0, self.largest / n, np.nan), np.minimum(degrees, np.maximum(counted - 1, 0))

"""Independent units: individuals, or groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import as_labels, check_length

if TYPE_CHECKING:
    from survscore.outcomes import Outcomes

NUMBERS_PER_LABEL = 4  # from the lowest to the highest, up to which a table is the fastest way to number them
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampleWeights:
    """The sample weights of individuals, all above zero, and of which kind they are."""

    values: Any  #: Shape (n,).
    #: Whether an individual of weight f stands for f individuals who are alike; else it is one, who counts so much.
    frequency: bool

    @classmethod
    def of(cls, outcomes: Outcomes) -> Self | None:
        """Take those of outcomes; None where all count alike."""
        return None if outcomes.weights is None else cls(outcomes.weights, outcomes.weight_kind == "frequency")

    def __getitem__(self, rows: Any) -> SampleWeights:
        return SampleWeights(self.values[rows], self.frequency)

    @property
    def squares(self) -> Any:
        """What each adds to a sum of squared weights: of f individuals who are alike, f."""
        return self.values if self.frequency else self.values**2

    @property
    def counts(self) -> Any:
        """How many individuals each stands for; None where that is one."""
        return self.values if self.frequency else None


@dataclass(frozen=True, eq=False)
class InfluenceFactors:
    r"""What influences are multiplied by before they are squared, where individuals have sample weights.

    The influence of f individuals who are alike is f times that of one, and the sum of their squares
    :math:`\phi^2 / f`.
    Other weights: without individual i, a weighted mean moves by :math:`\phi_i / (1 - h_i)`, with its share
    :math:`h_i = w_i / \sum_k w_k` of the weights of the population at t. The jackknife's variance,
    :math:`\tfrac{n-1}{n} \sum_i [\phi_i / (1 - h_i)]^2`, is :math:`\tfrac{n}{n-1} \sum_i (c_i \phi_i)^2` with
    :math:`c_i = (1 - 1/n) / (1 - h_i)`, which is 1 for equal weights.
    """

    sample: SampleWeights
    stop: Any  #: Individual i is in the population at the times before it. Shape (n,).
    #: 1/n, and one divided by the sum of the weights, of the population at each time; 0 where none is left, or one.
    #: Shape (times,).
    inverse_n: Vector
    inverse_mass: Vector

    @classmethod
    def of(cls, sample: SampleWeights, stop: Any, counted: Vector, mass: Vector) -> Self:
        """Take how many are counted, and the sums of their weights, at each time."""
        several = counted > 1
        inverse_n, inverse_mass = (
            np.where(several, 1.0 / np.where(several, values, 1.0), 0.0) for values in (counted, mass)
        )
        return cls(sample, stop, inverse_n, inverse_mass)

    def of_rows(self, rows: Any, columns: slice) -> Any:
        """Return the factors of some individuals at some times, (rows, times), or (rows, 1) where they are constant."""
        own = self.sample.values[rows][:, None]
        if self.sample.frequency:
            return own**-0.5
        n, mass = (arrays.beside(values[columns], own) for values in (self.inverse_n, self.inverse_mass))
        inside = arrays.columns(columns.stop, own)[columns.start :] < self.stop[rows][:, None]
        return (1.0 - n) / (1.0 - arrays.where(inside, own * mass, n))


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
    #: What sample weights of individuals do to squared influences; None without, and of groups.
    factors: InfluenceFactors | None = None

    @classmethod
    def of(
        cls,
        stop: Any,
        groups: Groups | None,
        n_times: int,
        individuals: Vector | None = None,
        sample: SampleWeights | None = None,
    ) -> Units:
        """Count the individuals that the score refers to, or their groups; the number of the former may be known."""
        if groups is None:
            counts = None if sample is None else sample.counts
            counted = n_eligible(stop, n_times, counts) if individuals is None else individuals
            with np.errstate(divide="ignore"):
                share = np.where(counted > 0, 1.0 / counted, np.nan)
            if sample is None:
                return cls(counted, share, counted - 1.0)
            mass = n_eligible(stop, n_times, sample.values)
            if not sample.frequency:
                largest = largest_until(arrays.to_host(stop), arrays.to_host(sample.values), n_times)
                share = np.where(counted > 0, largest / np.where(counted > 0, mass, 1.0), np.nan)
            return cls(counted, share, counted - 1.0, InfluenceFactors.of(sample, stop, counted, mass))
        stop, weights = arrays.to_host(stop), None if sample is None else arrays.to_host(sample.values)
        if stop.strides == (0,):  # all individuals, always
            sizes = PowerSums.of(np.bincount(groups.codes, weights, groups.n_groups)[:, None])
            counted, share, degrees = (np.repeat(values, n_times) for values in sizes.units())
            return cls(counted, share, degrees)
        return cls(*PowerSums.of_groups(stop, groups, n_times, weights).units())

    @property
    def inflation(self) -> Vector:
        """The factor of a sample variance."""
        return small_sample(self.counted)


def small_sample(n_units: Vector) -> Vector:
    """Return n/(n - 1), as in any sample variance; NaN where one unit, or none, is left."""
    return np.where(n_units > 1, n_units / np.where(n_units > 1, n_units - 1, 1), np.nan)


def n_eligible(stop: Any, n_times: int, weights: Any = None) -> Vector:
    """Return how many individuals have a `stop` after each time, or the sum of their weights."""
    if weights is not None:
        ends = arrays.to_host(arrays.sums_by(stop, weights, n_times + 1))
        return np.asarray(np.cumsum(ends[::-1])[::-1][1:], dtype=np.float64)
    if arrays.is_repeated(stop):
        return np.full(n_times, float(len(stop)))
    ends = arrays.to_host(arrays.sums_by(stop, None, n_times + 1))
    return np.asarray(len(stop) - np.cumsum(ends)[:n_times], dtype=np.float64)


def largest_until(stop: NDArray[np.int32], values: Vector, n_times: int) -> Vector:
    """Return the largest value of those who have a `stop` after each time, 0 where there is none."""
    largest = np.zeros(n_times + 1)
    np.maximum.at(largest, stop, values)
    return np.asarray(np.maximum.accumulate(largest[::-1])[::-1][1:])


@dataclass(frozen=True, eq=False)
class PowerSums:
    r"""Sums over groups of powers of their sizes, :math:`\sum_g n_g^k` (k up to 5), and the largest size, by time."""

    powers: Vector
    largest: Vector

    @classmethod
    def of(cls, sizes: NDArray[Any], counts: Vector | None = None) -> PowerSums:
        """Take the sizes of groups, (groups, times); with `counts`, each stands for so many of that size."""
        size = np.asarray(sizes, dtype=np.float64)
        if counts is not None:
            powers = [counts @ (size > 0), *(counts @ size**k for k in range(1, 6))]
            return cls(np.array(powers), size.max(axis=0, initial=0.0))
        powers = [np.count_nonzero(size, axis=0).astype(np.float64), *(np.sum(size**k, axis=0) for k in range(1, 6))]
        return cls(np.array(powers), size.max(axis=0, initial=0.0))

    @classmethod
    def of_groups(
        cls, stop: NDArray[np.int32], groups: Groups, n_times: int, weights: Vector | None = None
    ) -> PowerSums:
        r"""Count the members of every group at every time, without a table of groups by times.

        With the members of a group ranked from the last to leave, r = 1, to the first, :math:`n^k` is the sum of
        :math:`r^k - (r - 1)^k` over those who are still there: a sum over individuals. With `weights`, r is the sum of
        those up to and with the own one, and r - 1 that of those before.
        """
        order = np.lexsort((-stop, groups.codes))
        codes, stops = groups.codes[order], stop[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        own = np.ones(stop.size) if weights is None else weights[order]
        until = np.cumsum(own)
        first = np.zeros(stop.size, dtype=np.bool_)
        first[starts] = True
        rank = until - np.repeat(until[starts] - own[starts], np.diff(starts, append=stop.size))
        added = [first * 1.0, *(rank**k - np.where(first, 0.0, rank - own) ** k for k in range(1, 6))]
        powers = [np.cumsum(np.bincount(stops, power, n_times + 1)[::-1])[::-1][1:] for power in added]
        return cls(np.array(powers), largest_until(stops, rank, n_times))

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

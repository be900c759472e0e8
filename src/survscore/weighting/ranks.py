"""Strata of like predictions, by ranks among all individuals, or among those with neighbouring censoring times.

Ranked within C*, predictions that encode the entry date cannot choose whom their statuses are projected from.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import argsort, each, row_blocks
from survscore.curves import SurvivalCurves
from survscore.interpolation import Interpolation

Array = Any  # a NumPy array, or a torch tensor
Codes = tuple[Any, int]  # the stratum of each, None for one, and how many there are

GROUP_SIZE, MOST_GROUPS = 100, 40  # of neighbours in C*
RANKED_CELLS = 1 << 18  # predictions that are ranked at once: more leave the cache
PER_STRATUM, MOST_STRATA = 5, 10  # individuals of the rarer kind
MIN_FOLLOWED = 20  # event-free: intervals of projected scores cover 92 % at 49, 84 to 88 % at 21, 20 % at 8
MOST_TIMES = 5  # at which predictions are ranked: ranks of neighbouring times hardly differ, and ranking takes long


class Neighbours:
    """Individuals in order of C*, cut into groups of neighbours; equal C* are in one group.

    Without censoring times all are one group. `counts` say how many individuals each one stands for, if not one.
    """

    def __init__(self, censoring_time: Array | None, like: Array, counts: Array | None = None) -> None:
        n = len(like)
        self.counts = None if counts is None else arrays.as_int64(counts)
        self.order: Array = arrays.positions(like >= 0)  # all of them: times are not negative
        edges = [0, n]
        if censoring_time is not None:
            self.order = censoring_time.argsort() if arrays.is_tensor(like) else argsort(censoring_time)
            ordered = arrays.take(censoring_time, self.order)
            # how many individuals come before each row
            before = np.arange(n + 1) if self.counts is None else _sums_before(arrays.to_host(self.counts[self.order]))
            total = int(before[-1])
            n_groups = min(max(total // GROUP_SIZE, 1), MOST_GROUPS)
            cuts = -(-np.arange(1, n_groups) * total // n_groups)
            rows = ordered[np.searchsorted(before, cuts, side="right") - 1]
            # a cut between equal ones moves to the end of these
            first, last = (
                arrays.to_host(arrays.count_below(ordered, rows, inclusive=inclusive)) for inclusive in (False, True)
            )
            ends = np.where(before[first] < cuts, last, first)
            edges = np.unique([0, *ends, n]).tolist()
        self.groups = [slice(*ends) for ends in pairwise(edges)]

    def ranks(self, curves: SurvivalCurves, times: NDArray[np.float64]) -> Array:
        """Return the sums over times of each prediction's rank in its group (see `doubled_ranks`), in order of C*."""
        values, total = _at(curves, times), self.order * 0

        def rank(group: slice) -> None:
            rows = self.order[group]
            own = values[rows].T.contiguous() if arrays.is_tensor(values) else values.take(rows, 0).T.copy()
            at_once = max(1, RANKED_CELLS // own.shape[1])
            for first in range(0, times.size, at_once):
                total[group] += doubled_ranks(own[first : first + at_once], self._counts_of(rows)).sum(0)

        each(rank, self.groups, threads=not arrays.is_tensor(self.order))
        return total

    def strata(self, ranks: Array, n_strata: int) -> Codes:
        """Rank once more within groups, and cut at quantiles: return strata from 0 on, and how many are used."""
        codes = arrays.as_int32(ranks)

        def cut(group: slice) -> None:
            rows = self.order[group]
            codes[rows] = _parts(ranks[group], n_strata, self._counts_of(rows))

        each(cut, self.groups, threads=not arrays.is_tensor(self.order))
        used = arrays.to_host(arrays.sums_by(codes, None, n_strata)) > 0
        if used.all():
            return (codes, n_strata) if n_strata > 1 else (None, 1)
        number = arrays.beside((np.cumsum(used) - 1).astype(np.int32), codes)
        return (number[codes], int(used.sum())) if used.sum() > 1 else (None, 1)

    def _counts_of(self, rows: Array) -> Array | None:
        return None if self.counts is None else self.counts[rows]


def _sums_before(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts)))


def _parts(values: Array, k: int, weights: Array | None = None) -> Array:
    """Return which of k parts whole numbers are in, from 0 on, by twice their mid-ranks: equal ones are in one part.

    Part j begins where `doubled_ranks` reaches 2nj/k: with the number that would be at that place in order, or after
    those equal to it. Sums of ranks are not much larger than they are many: counting them needs no order. With
    `weights`, which are counts, they may be.
    """
    if weights is not None:
        xp = arrays.namespace(values)
        _, inverse = xp.unique(values, return_inverse=True)
        counts = arrays.as_int64(arrays.sums_by(inverse, arrays.as_float64(weights), int(inverse.max()) + 1))
        until = counts.cumsum(0)
        return arrays.as_int32((2 * until - counts) * k // (2 * until[-1]))[inverse]
    n, parts, xp, values = len(values), np.arange(1, k), arrays.namespace(values), values - values.min()
    size = int(values.max()) + 2
    counts = xp.bincount(values, minlength=size)
    until = counts.cumsum(0)  # how many are at or below each number
    place = arrays.beside(-((k - 2 * n * parts) // (2 * k)), values)
    found = arrays.count_below(until, place, inclusive=True).clip(max=size - 1)
    reached = (2 * until[found] - counts[found]) * k >= arrays.beside(2 * n * parts, values)
    limits = arrays.where(reached, found, found + 1)
    return arrays.as_int32(arrays.as_int8(values >= limits[:, None]).sum(0, dtype=xp.int8))


def doubled_ranks(values: Array, counts: Array | None = None) -> Array:
    """Return of each value how many of its row are below, and how many at or below it, added up: a whole number.

    Twice the mid-rank, as from 1/2 to the length of the row less 1/2; ties share theirs. `counts` say how many
    individuals each column stands for, if not one.
    """
    if arrays.is_tensor(values):  # all rows at once
        order = values.argsort(1)
        ordered = values.gather(1, order)
        first, last = (arrays.count_below(ordered, ordered, inclusive=inclusive).long() for inclusive in (False, True))
        if counts is not None:
            passed = counts[order].cumsum(1)
            before = arrays.namespace(values).cat([passed[:, :1] * 0, passed], 1)
            first, last = before.gather(1, first), before.gather(1, last)
        return (order * 0).scatter_(1, order, first + last)
    ranks = np.empty(values.shape, dtype=np.intp)
    for row, own in zip(values, ranks, strict=True):
        order = argsort(row)
        ordered = row.take(order)
        edges = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [row.size]))
        # of those that are equal, from one edge to the next
        passed = edges if counts is None else _sums_before(counts[order])[edges]
        own[order] = np.repeat(passed[1:] + passed[:-1], np.diff(edges))
    return ranks


def _at(curves: SurvivalCurves, times: NDArray[np.float64]) -> Array:
    """Return predictions at a few times, (individuals, times): of a wide matrix, only these columns are fetched."""
    how, last = curves.interpolate(times), curves.times.size - 1
    used = np.unique(np.concatenate((how.lower.clip(0), np.minimum(how.lower[how.weight > 0] + 1, last))))
    narrow = Interpolation(np.where(how.lower < 0, -1, np.searchsorted(used, how.lower)), how.weight, how.geometric)
    matrix = curves.probabilities
    if arrays.is_tensor(matrix):
        return narrow(matrix[:, arrays.beside(used, matrix)])
    found = np.empty((len(matrix), times.size), dtype=matrix.dtype if narrow.direct else np.float64)

    def read(rows: slice) -> None:
        found[rows] = narrow(matrix[rows].take(used, 1))

    each(read, row_blocks(len(matrix), times.size), threads=True)
    return found


def number_of_strata(rarer: float) -> int:
    """Return into how many strata to cut, where so many are of the rarer kind: those who leave, or who stay."""
    return int(np.clip(rarer // PER_STRATUM, 1, MOST_STRATA))


def mid_ranks(values: Array) -> Array:
    """Return the ranks of numbers divided by their count, between 0 and 1; equal ones share the mean of theirs."""
    return arrays.as_float64(doubled_ranks(values[None])[0]) / (2.0 * len(values))


def mean_ranks(curves: SurvivalCurves, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each individual's rank by predicted survival, the mean over at most five of the times; the riskiest first.

    A rank needs no scale: a model whose predictions are all too low ranks individuals as well as one that is right.
    """
    some = some_times(times)
    total = Neighbours(None, curves.probabilities[:, 0]).ranks(curves, some)
    return arrays.to_host(total) / (2.0 * len(curves) * some.size)


def some_times(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most five of the times, from the first to the last."""
    return times[np.linspace(0, times.size - 1, min(times.size, MOST_TIMES)).round().astype(np.intp)]


def quantile_codes(ranks: NDArray[np.float64], k: int) -> NDArray[np.int32]:
    """Return which of k parts of about equal size each individual is in, from 0 on; equal ranks stay together."""
    cuts = np.unique(np.quantile(ranks, np.arange(1, k) / k))
    return np.unique(np.searchsorted(cuts, ranks, side="left"), return_inverse=True)[1].astype(np.int32)

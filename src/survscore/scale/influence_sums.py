"""What is added up of influences: products over time, and sums by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore.scale.exact import Exact
from survscore.scale.products import PRODUCT_ROWS, Products


@dataclass(eq=False)
class InfluenceSums:
    """Of one level, weighting and metric.

    Attributes
    ----------
    products : Exact of shape (segments, columns, columns)
        Of influences over time, or of groups' sums; columns are the times of the first model, of the second and so on.
    buckets : ndarray of shape (segments * buckets, times, models)
        Sums by bucket.
    squares : Exact of shape (pairs, times, segments)
        Of groups' sums, where these are whole.
    """

    products: Exact
    buckets: NDArray[np.int64]
    squares: Exact

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return all numbers by name; equal sums have equal numbers."""
        self.products.carry()
        self.squares.carry()
        return {
            "products.high": self.products.high, "products.low": self.products.low, "buckets": self.buckets,
            "squares.high": self.squares.high, "squares.low": self.squares.low,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, found: dict[str, NDArray[np.int64]]) -> InfluenceSums:
        """Take what `arrays` returned."""
        return cls(
            Exact(found["products.high"], found["products.low"]),
            found["buckets"],
            Exact(found["squares.high"], found["squares.low"]),
        )

    def __add__(self, other: InfluenceSums) -> InfluenceSums:
        return InfluenceSums(self.products + other.products, self.buckets + other.buckets, self.squares + other.squares)


@dataclass(eq=False)
class GroupSizes:
    """Of one level and weighting: how many of each group are counted.

    Attributes
    ----------
    buckets : ndarray of shape (segments * buckets, times)
        By bucket.
    powers : Exact of shape (6, segments, times)
        Sums of powers of the sizes, of whole groups; see `PowerSums`.
    largest : ndarray of shape (segments, times)
        The largest size.
    """

    buckets: NDArray[np.int64]
    powers: Exact
    largest: NDArray[np.int64]

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return all numbers by name; equal sums have equal numbers."""
        self.powers.carry()
        return {
            "buckets": self.buckets, "powers.high": self.powers.high, "powers.low": self.powers.low,
            "largest": self.largest,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, found: dict[str, NDArray[np.int64]]) -> GroupSizes:
        """Take what `arrays` returned."""
        return cls(found["buckets"], Exact(found["powers.high"], found["powers.low"]), found["largest"])

    def __add__(self, other: GroupSizes) -> GroupSizes:
        return GroupSizes(
            self.buckets + other.buckets, self.powers + other.powers, np.maximum(self.largest, other.largest)
        )


class WholeGroups:
    """Sums by group, of the file that is being read: (groups, times, quantities).

    A group is told by its hash, and in another segment counts for itself.
    """

    def __init__(self, times: int, quantities: int) -> None:
        self.sums = np.zeros((0, times, quantities), dtype=np.int64)
        self.segment = np.zeros(0, dtype=np.int64)
        #: Keys in their order, and the place of each in the sums.
        self._keys = np.zeros(0, dtype=np.uint64)
        self._places = np.zeros(0, dtype=np.int64)

    def places(self, groups: NDArray[np.uint64], segment: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return each individual's place, with room for groups that are new."""
        with np.errstate(over="ignore"):
            keys = groups + segment.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        distinct, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        new = ~np.isin(distinct, self._keys, assume_unique=True)
        if new.any():
            start, count = len(self.sums), int(new.sum())
            self.sums = np.concatenate((self.sums, np.zeros((count, *self.sums.shape[1:]), dtype=np.int64)))
            self.segment = np.concatenate((self.segment, segment[first[new]].astype(np.int64)))
            all_keys = np.concatenate((self._keys, distinct[new]))
            order = np.argsort(all_keys)
            self._keys = all_keys[order]
            self._places = np.concatenate((self._places, np.arange(start, start + count)))[order]
        return np.asarray(self._places[np.searchsorted(self._keys, distinct)][codes])


def add_products(products: Exact, columns: NDArray[np.float64], segment: NDArray[Any]) -> None:
    """Add products of columns, (columns, rows), by segment."""
    order = np.argsort(segment, kind="stable")
    present, starts = np.unique(segment[order], return_index=True)
    for s, start, stop in zip(present.tolist(), starts, [*starts[1:], segment.size], strict=True):
        total = Exact(products.high[s], products.low[s])
        for first in range(start, stop, PRODUCT_ROWS):
            some = np.rint(columns[:, order[first : min(first + PRODUCT_ROWS, stop)]] * Products.scale)
            total.add((some @ some.T).astype(np.int64))


def add_by_segment(total: Exact, place: tuple[int, int], values: NDArray[np.int64], segment: NDArray[np.int64]) -> None:
    """Add whole numbers by segment."""
    np.add.at(total.high[place], segment, values >> 32)
    np.add.at(total.low[place], segment, values & ((1 << 32) - 1))

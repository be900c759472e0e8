"""First looks at a data set: when somebody leaves, and who belongs together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore.scale.batches import Batch
from survscore.scale.specification import Specification
from survscore.weighting import Projected

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 4096  # of all individuals together
SEGMENT_BUCKETS = 256  # of each segment
MOST_EXITS = 1 << 14  # distinct times; more are rounded up to so many quantiles
MOST_KEPT = 1 << 20  # of which quantiles are taken


@dataclass(frozen=True, eq=False)
class Exits:
    """The times at which somebody leaves in a way that some weighting estimates, where they are no whole numbers.

    Of more than a million, so many are kept that have the smallest hashes, and the last of all: a sample that does not
    depend on how rows are cut, since the smallest of all are among the smallest of every part.
    """

    times: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.times.size > MOST_KEPT + 1:
            kept = np.argpartition(mixed(self.times.view(np.uint64)), MOST_KEPT)[:MOST_KEPT]
            object.__setattr__(self, "times", np.unique(np.append(self.times[kept], self.times[-1])))

    @classmethod
    def of(cls, specification: Specification, batches: Iterable[pa.RecordBatch]) -> Exits:
        """Collect them from rows."""
        found = [np.zeros(0)]
        for rows in batches:
            outcomes = Batch(specification, rows).outcomes
            for weighting in specification.weightings:
                if isinstance(weighting, Projected):  # all who leave, leave one of its risk sets
                    found.append(np.unique(outcomes.time))
                elif weighting.estimated:
                    found.append(np.unique(outcomes.time[weighting.leaves(outcomes)]))
        return cls(np.unique(np.concatenate(found)))

    def __add__(self, other: Exits) -> Exits:
        return Exits(np.union1d(self.times, other.times))

    @property
    def rounded(self) -> bool:
        """Whether there are too many, so that bins hold several."""
        return self.times.size > MOST_EXITS

    def bins(self) -> tuple[float, ...]:
        """Return where bins end: at every exit, or at as many of them as can be held."""
        if not self.rounded:
            return tuple(self.times.tolist())
        places = np.linspace(0, self.times.size - 1, MOST_EXITS).round().astype(np.intp)
        return tuple(self.times[places].tolist())


def hashed(labels: pa.DictionaryArray) -> NDArray[np.uint64]:
    """Return a number for each label, the same in all files and on all machines."""
    values = labels.dictionary.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "iub":
        numbers = mixed(values.astype(np.int64).view(np.uint64))
    else:
        from pandas.util import hash_array

        numbers = hash_array(np.array([str(value) for value in values], dtype=object), categorize=False)
    return np.asarray(numbers[labels.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers (splitmix64), so that neighbours are far apart, and different ones stay so."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class GroupLook:
    """A first look at groups: whether each is whole within one file.

    Attributes
    ----------
    hashes : ndarray
        Of all groups so far; none once some were seen in two files.
    most : int
        How many groups a file has.
    spread : bool
        Whether some group has rows in two files.
    """

    hashes: NDArray[np.uint64]
    most: int = 0
    spread: bool = False

    def with_rows(self, specification: Specification, rows: pa.RecordBatch) -> GroupLook:
        """Return the same with more rows of the same file."""
        hashes = np.union1d(self.hashes, hashed(Batch(specification, rows).groups()))
        return GroupLook(hashes, hashes.size)

    def __add__(self, other: GroupLook) -> GroupLook:
        spread = self.spread or other.spread
        hashes = np.zeros(0, dtype=np.uint64)
        if not spread:
            hashes = np.union1d(self.hashes, other.hashes)
            spread = hashes.size < self.hashes.size + other.hashes.size
        return GroupLook(hashes[:0] if spread else hashes, max(self.most, other.most), spread)

    def is_whole(self, what: Specification, limit: int) -> bool:
        """Whether groups can be taken as they are: each in one file, and the sums of a file's groups fit in memory."""
        levels = 2 if what.by else 1
        tables = levels * len(what.weightings) * (1 + len(what.metrics) * len(what.models))
        return not self.spread and 8 * self.most * len(what.times) * tables <= limit

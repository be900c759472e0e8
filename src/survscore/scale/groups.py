"""Who belongs together, when rows are spread over files: labels as numbers that are the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore.scale.batches import Batch
from survscore.scale.packing import pack, unpack
from survscore.scale.specification import Specification

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 4096  # of all individuals together
SEGMENT_BUCKETS = 256  # of each segment


def hashed(labels: pa.DictionaryArray) -> NDArray[np.uint64]:
    """Return a number for each label, the same in all files and on all machines."""
    values = labels.dictionary.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "iub":
        numbers = _mixed(values.astype(np.int64).view(np.uint64))
    else:
        from pandas.util import hash_array

        numbers = hash_array(np.array([str(value) for value in values], dtype=object), categorize=False)
    return np.asarray(numbers[labels.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers (splitmix64), so that neighbours are in different buckets."""
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
    largest : int
        How many rows the largest group has, within a file.
    most : int
        How many groups a file has.
    spread : bool
        Whether some group has rows in two files.
    counts : ndarray, optional
        How many rows each has, of the file that is being read.
    """

    hashes: NDArray[np.uint64]
    largest: int
    most: int
    spread: bool = False
    counts: NDArray[np.int64] | None = None

    def with_rows(self, specification: Specification, rows: pa.RecordBatch) -> GroupLook:
        """Return the same with more rows of the same file."""
        found = hashed(Batch(specification, rows).groups())
        hashes, places = np.unique(np.concatenate((self.hashes, found)), return_inverse=True)
        before = np.zeros(0, dtype=np.int64) if self.counts is None else self.counts
        counts = np.bincount(places[: self.hashes.size], before, minlength=hashes.size).astype(np.int64)
        counts += np.bincount(places[self.hashes.size :], minlength=hashes.size)
        return GroupLook(hashes, int(counts.max(initial=0)), hashes.size, False, counts)

    def __add__(self, other: GroupLook) -> GroupLook:
        spread = self.spread or other.spread
        hashes = np.zeros(0, dtype=np.uint64)
        if not spread:
            hashes = np.union1d(self.hashes, other.hashes)
            spread = hashes.size < self.hashes.size + other.hashes.size
        return GroupLook(
            hashes[:0] if spread else hashes, max(self.largest, other.largest), max(self.most, other.most), spread
        )

    def is_whole(self, what: Specification, limit: int) -> bool:
        """Whether groups can be taken as they are: each in one file, and the sums of a file's groups fit in memory."""
        levels = 2 if what.by else 1
        tables = levels * len(what.weightings) * (1 + len(what.metrics) * len(what.models))
        return not self.spread and 8 * self.most * len(what.times) * tables <= limit

    def to_bytes(self) -> bytes:
        """Return it as plain numbers."""
        header = {"largest": self.largest, "most": self.most, "spread": self.spread}
        return pack("look", header, {"hashes": self.hashes.view(np.int64)})

    @classmethod
    def from_bytes(cls, stored: bytes) -> GroupLook:
        """Take what `to_bytes` returned."""
        header, arrays = unpack("look", stored)
        return cls(arrays["hashes"].view(np.uint64), header["largest"], header["most"], header["spread"])

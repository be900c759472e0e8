"""A first look at outcomes whose times are no whole numbers: when somebody leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore.scale.batches import Batch
from survscore.scale.specification import Specification

if TYPE_CHECKING:
    import pyarrow as pa

MOST_EXITS = 1 << 14  # distinct times; more are rounded up to so many quantiles
MOST_KEPT = 1 << 20  # of which quantiles are taken


@dataclass(frozen=True, eq=False)
class Exits:
    """The times at which somebody leaves in a way that some weighting estimates.

    Of more than a million, so many are kept that have the smallest hashes, and the last of all: a sample that does not
    depend on how rows are cut, since the smallest of all are among the smallest of every part.
    """

    times: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.times.size > MOST_KEPT + 1:
            kept = np.argpartition(_hashes(self.times), MOST_KEPT)[:MOST_KEPT]
            object.__setattr__(self, "times", np.unique(np.append(self.times[kept], self.times[-1])))

    @classmethod
    def of(cls, specification: Specification, batches: Iterable[pa.RecordBatch]) -> Exits:
        """Collect them from rows."""
        found = [np.zeros(0)]
        for rows in batches:
            outcomes = Batch(specification, rows).outcomes
            for weighting in specification.weightings:
                if weighting.estimated:
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

    def to_bytes(self) -> bytes:
        """Return them as plain numbers."""
        return self.times.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes) -> Exits:
        """Take what `to_bytes` returned."""
        return cls(np.frombuffer(stored, dtype="<f8").astype(np.float64))


def _hashes(times: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return numbers that look random, different ones for different times: splitmix64 of their bits."""
    mixed = times.astype(np.float64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))

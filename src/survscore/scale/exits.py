"""A first look at outcomes whose times are no whole numbers: when somebody leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survscore.scale.batches import Batch
from survscore.scale.specification import Specification, estimated, leaves

if TYPE_CHECKING:
    import pyarrow as pa

MOST_EXITS = 1 << 14  # distinct times; more are rounded up to so many quantiles


@dataclass(frozen=True, eq=False)
class Exits:
    """All times at which somebody leaves in a way that some weighting estimates."""

    times: NDArray[np.float64]

    @classmethod
    def of(cls, specification: Specification, batches: Iterable[pa.RecordBatch]) -> Exits:
        """Collect them from rows."""
        found = [np.zeros(0)]
        for rows in batches:
            outcomes = Batch(specification, rows).outcomes
            for weighting in specification.weightings:
                if estimated(weighting):
                    found.append(np.unique(outcomes.time[leaves(weighting, outcomes)]))
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

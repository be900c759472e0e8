"""Sums of all individuals' losses under one weighting: what merges, and what scores and errors are made of.

Nothing here is weighted: individuals with event are grouped by how many could have left before them (their bin), and
the weights, which depend on that alone, come in when the sums are finished. So sums of different days add up, though
weights are estimated from all days together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore.scale.exact import Exact


@dataclass(frozen=True, eq=False)
class Tables:
    """Sums over the individuals of some segments; times are evaluation times, quantities losses and their squares.

    Attributes
    ----------
    first, late : Exact of shape (metrics, times, segments, quantities)
        Over those in their first stretch, and over those in their second who are event-free.
    event : Exact of shape (metrics, times, segments, bins, quantities)
        Over those in their second stretch with event.
    known : Exact of shape (metrics, times, segments, models)
        Losses of the lost, at the very time at which they were lost: their status is still known.
    lowest, highest : Exact of shape (metrics, times, segments, pairs)
        The smaller and the larger loss, or difference, of those who are lost, of the two statuses that they may have.
    first_stops : ndarray of shape (segments, times + 1)
        How many leave their first stretch at each time.
    late_counts, known_counts, lost_counts : ndarray of shape (segments, times)
        How many are event-free in their second stretch; were lost at that very time; are lost.
    event_changes : ndarray of shape (segments, bins, times + 1)
        How many with event begin to be counted at each time, less those who stop.
    population_stops : ndarray of shape (segments, times + 1)
        How many cease to be among those to whom the score refers.
    other_changes : ndarray of shape (segments, times + 1)
        Of these, how many had an event of another cause than the one of interest.
    everybody, left : ndarray of shape (segments, bins)
        How many have their time in each bin, and how many of them leave then, at the bin's end.
    """

    first: Exact
    late: Exact
    event: Exact
    known: Exact
    lowest: Exact
    highest: Exact
    first_stops: NDArray[np.int64]
    late_counts: NDArray[np.int64]
    known_counts: NDArray[np.int64]
    lost_counts: NDArray[np.int64]
    event_changes: NDArray[np.int64]
    population_stops: NDArray[np.int64]
    everybody: NDArray[np.int64]
    left: NDArray[np.int64]
    other_changes: NDArray[np.int64]

    @classmethod
    def zeros(cls, metrics: int, times: int, segments: int, bins: int, models: int) -> Self:
        """Return the sums over nobody."""
        pairs = models * (models + 1) // 2

        def counts(*shape: int) -> NDArray[np.int64]:
            return np.zeros(shape, dtype=np.int64)

        return cls(
            Exact.zeros(metrics, times, segments, models + pairs),
            Exact.zeros(metrics, times, segments, models + pairs),
            Exact.zeros(metrics, times, segments, bins, models + pairs),
            Exact.zeros(metrics, times, segments, models),
            Exact.zeros(metrics, times, segments, pairs),
            Exact.zeros(metrics, times, segments, pairs),
            counts(segments, times + 1),
            counts(segments, times),
            counts(segments, times),
            counts(segments, times),
            counts(segments, bins, times + 1),
            counts(segments, times + 1),
            counts(segments, bins),
            counts(segments, bins),
            counts(segments, times + 1),
        )

    @staticmethod
    def bytes_of(metrics: int, times: int, segments: int, bins: int, models: int) -> int:
        """Return how much memory tables of a size take; see `zeros`."""
        pairs = models * (models + 1) // 2
        exact = metrics * times * ((2 + bins) * (models + pairs) + models + 2 * pairs)
        return 8 * segments * (2 * exact + 6 * times + 3 + bins * (times + 3))

    @property
    def n_segments(self) -> int:
        """How many segments there are."""
        return len(self.first_stops)

    @property
    def n_bins(self) -> int:
        """How many bins of time there are."""
        return int(self.everybody.shape[1])

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return all numbers, by name; equal sums have equal numbers."""
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Exact):
                value.carry()
                found[f"{field.name}.high"], found[f"{field.name}.low"] = value.high, value.low
            else:
                found[field.name] = value
        return found

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[np.int64]]) -> Self:
        """Take what `arrays` returned."""
        values: list[Any] = []
        for field in fields(cls):
            if field.name in arrays:
                values.append(arrays[field.name])
            else:
                values.append(Exact(arrays[f"{field.name}.high"], arrays[f"{field.name}.low"]))
        return cls(*values)

    def placed(self, segments: NDArray[np.intp], n_segments: int, n_bins: int) -> Self:
        """Return the same sums in a larger table: where each segment goes, and how many there are then.

        If they are where they should be, it is the same table, not a copy.
        """
        as_it_is = (n_segments, n_bins) == (self.n_segments, self.n_bins)
        if as_it_is and np.array_equal(segments, np.arange(n_segments)):
            return self
        placed = {}
        for name, values in self.arrays().items():
            axis = SEGMENT_AXIS.get(name.split(".")[0], 0)
            shape = list(values.shape)
            shape[axis] = n_segments
            if name.split(".")[0] in BINNED:
                shape[axis + 1] = n_bins
            larger = np.zeros(shape, dtype=np.int64)
            target = [slice(None)] * len(shape)
            target[axis] = segments  # type: ignore[call-overload]
            if name.split(".")[0] in BINNED:
                target[axis + 1] = slice(0, self.n_bins)
            larger[tuple(target)] = values
            placed[name] = larger
        return self.of_arrays(placed)

    def __add__(self, other: Tables) -> Tables:
        """Add sums over the same segments and bins."""
        return Tables(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def segment(self, which: int | None) -> Tables:
        """Return the sums over one segment, or over all of them, as a table with one."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            axis = SEGMENT_AXIS.get(field.name, 0)
            if isinstance(value, Exact):
                if which is None:
                    total = value.summed(axis)
                    chosen[field.name] = Exact(np.expand_dims(total.high, axis), np.expand_dims(total.low, axis))
                else:
                    at = (slice(None),) * axis + (slice(which, which + 1),)
                    chosen[field.name] = Exact(value.high[at].copy(), value.low[at].copy())
            else:
                chosen[field.name] = value.sum(axis=0, keepdims=True) if which is None else value[which : which + 1]
        return Tables(**chosen)


SEGMENT_AXIS = dict.fromkeys(("first", "late", "event", "known", "lowest", "highest"), 2)
BINNED = ("event", "event_changes", "everybody", "left")

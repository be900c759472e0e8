"""Sums over the individuals of a data set under one weighting: arrays by name, whose axes say how they merge.

Nothing here is weighted: individuals with event are grouped by how many could have left before them (their bin), and
the weights, which depend on that alone, come in when the sums are finished. So sums of different days add up, though
weights are estimated from all days together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from survscore.scale.specification import Specification

Sizes = Mapping[str, int]

#: What is added up of losses: those of the models, then squares of these and of their differences ("quantity").
LOSSES = {
    # over those in their first stretch, over those in their second who are event-free, and over those with event
    "first": ("metric", "time", "segment", "quantity"),
    "late": ("metric", "time", "segment", "quantity"),
    "event": ("metric", "time", "segment", "bin", "quantity"),
    # losses of the lost, at the very time at which they were lost: their status is still known
    "known": ("metric", "time", "segment", "model"),
    # the smaller and the larger loss, or difference, of the lost, of the two statuses that they may have
    "lowest": ("metric", "time", "segment", "pair"),
    "highest": ("metric", "time", "segment", "pair"),
    # products of losses at all times; columns are the times of each model, then whether one is counted
    "products": ("metric", "segment", "column", "column"),
}
#: What is counted. With sample weights, there are three of each ("power"): sums of these, numbers of
#: individuals, and sums of squared weights.
COUNTS = {
    # how many leave their first stretch at each time
    "first_stops": ("power", "segment", "stop"),
    # how many are event-free in their second stretch; were lost at that very time; are lost
    "late_counts": ("power", "segment", "time"),
    "known_counts": ("power", "segment", "time"),
    "lost_counts": ("power", "segment", "time"),
    # how many with event begin to be counted at each time, less those who stop; of these, with another cause
    "event_changes": ("power", "segment", "bin", "stop"),
    "other_changes": ("power", "segment", "stop"),
    # how many cease to be among those to whom the score refers
    "population_stops": ("power", "segment", "stop"),
    # how many have their time in each bin, and how many of them leave then, at the bin's end
    "everybody": ("power", "segment", "bin"),
    "left": ("power", "segment", "bin"),
}
AXES = {**LOSSES, **COUNTS}
#: What may be below zero: differences, and changes of counts.
SIGNED = ("lowest", "highest", "event_changes", "other_changes")


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over some individuals."""

    sizes: Sizes  # how long every axis is
    #: Arrays as `AXES` says: float64, and of counts int64, if there are no sample weights.
    values: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]

    @classmethod
    def zeros(cls, sizes: Sizes) -> Sums:
        """Return the sums over nobody."""
        return cls(sizes, {name: np.zeros(shape, kind_of(name, sizes)) for name, shape in shapes(sizes).items()})

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.values[name]  # type: ignore[return-value]

    def mass(self, name: str) -> NDArray[np.float64]:
        """Return counts as sums of sample weights."""
        return np.asarray(self[name][0])

    def number(self, name: str) -> NDArray[np.float64]:
        """Return counts of individuals."""
        return np.asarray(self[name][min(1, self.sizes["power"] - 1)])

    def squares(self, name: str) -> NDArray[np.float64]:
        """Return counts as sums of squared sample weights."""
        return np.asarray(self[name][-1])

    def placed(self, segments: NDArray[np.intp], n_segments: int, n_bins: int) -> Sums:
        """Return the same sums in larger arrays: where each segment goes, and how many there are then.

        If they are where they should be, they are the same, not a copy.
        """
        as_it_is = (n_segments, n_bins) == (self.sizes["segment"], self.sizes["bin"])
        if as_it_is and np.array_equal(segments, np.arange(n_segments)):
            return self
        larger = Sums.zeros({**self.sizes, "segment": n_segments, "bin": n_bins})
        for name, values in self.values.items():
            places: dict[str, Any] = {"segment": segments, "bin": slice(self.sizes["bin"])}
            larger[name][tuple(places.get(axis, slice(None)) for axis in AXES[name])] = values
        return larger

    def __add__(self, other: Sums) -> Sums:
        """Add sums over the same segments and bins."""
        return Sums(self.sizes, {name: values + other[name] for name, values in self.values.items()})

    def segment(self, which: int | None) -> Sums:
        """Return the sums over one segment, or over all of them, without that axis."""

        def chosen(name: str) -> NDArray[np.float64]:
            axis = AXES[name].index("segment")
            return np.asarray(self[name].sum(axis=axis) if which is None else self[name].take(which, axis=axis))

        return Sums({**self.sizes, "segment": 1}, {name: chosen(name) for name in self.values})


def sizes_of(what: Specification, *, segments: int = 0, bins: int | None = None) -> Sizes:
    """Return how long the axes of sums are."""
    metrics, times, models = len(what.metrics), len(what.times), len(what.models)
    if bins is None:
        bins = len(what.bins) + 1 if isinstance(what.bins, tuple) else 1
    over_time = what.over_time and not what.two_passes
    pairs = models * (models + 1) // 2
    return {
        "metric": metrics, "time": times, "stop": times + 1, "model": models, "pair": pairs, "quantity": models + pairs,
        "column": (models + 1) * times if over_time else 0, "segment": segments, "bin": bins,
        "power": 1 if what.outcomes.weights is None else 3,
    }  # fmt: skip


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array; those that are not asked for are left out."""
    asked = {name: axes for name, axes in AXES.items() if sizes["column"] or "column" not in axes}
    return {name: tuple(sizes[axis] for axis in axes) for name, axes in asked.items()}


def kind_of(name: str, sizes: Sizes) -> type:
    """Return the type of an array."""
    return np.int64 if name in COUNTS and sizes["power"] == 1 else np.float64


def bytes_of(sizes: Sizes) -> int:
    """Return how much memory sums take."""
    return 8 * sum(map(prod, shapes(sizes).values()))

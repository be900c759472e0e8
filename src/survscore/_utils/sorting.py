"""Orders and counts that several modules need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def order(values: NDArray[Any]) -> NDArray[np.int32]:
    """Return the positions of values in ascending order; equal ones as they come."""
    return np.argsort(values, kind="stable").astype(np.int32)


def exit_table(
    time: NDArray[np.float64], leaves: NDArray[np.bool_], *, others_first: bool, compiled: bool | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct times of those who leave, how many leave at each, and how many are at risk.

    At risk are all who leave from then on, and all others from then on, or only after it if others leave first.
    """
    exits, others = np.sort(time[leaves]), np.sort(time[~leaves])
    times, counts = np.unique(exits, return_counts=True)
    at_risk = exits.size - np.searchsorted(exits, times, side="left")
    at_risk += others.size - np.searchsorted(others, times, side="right" if others_first else "left")
    return times, counts.astype(np.int32), at_risk.astype(np.int32)


def rows_by_bin(bins: NDArray[np.int32], chosen: NDArray[np.bool_], last_bin: int) -> NDArray[np.int32]:
    """Return the positions of the chosen, from the last bin to the first, in their order within a bin."""
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(-bins[rows], kind="stable")].astype(np.int32)


def rows_by_group(codes: NDArray[np.int32], n_groups: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the positions group by group, and where each group starts, and at last where the last one ends."""
    return order(codes), np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n_groups))))


def count_values(values: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return how often each of the whole numbers below n occurs."""
    return np.bincount(values, minlength=n)

"""Who is independent of whom: individuals, or groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_array, check_length
from survscore.stretches import Stretches


@dataclass(frozen=True, eq=False)
class Groups:
    """Who belongs together: individuals of a group may depend on each other, groups may not."""

    codes: NDArray[np.intp]
    n_groups: int

    @classmethod
    def of(cls, labels: Any, n: int) -> Groups:
        """Take one label per individual."""
        array = as_array(labels, "groups")
        if array.ndim != 1:
            raise InputError(f"groups must be one-dimensional, not of shape {array.shape}")
        check_length("groups", array.size, "y", n)
        if array.dtype.kind == "f":
            missing = np.isnan(array)
        elif array.dtype.kind in "biuSU":
            missing = np.zeros(n, dtype=np.bool_)
        else:
            missing = np.array([label is None or label != label for label in array.tolist()])  # noqa: PLR0124
        if missing.any():
            raise InputError(
                f"groups must be given for everybody: {missing.sum()} of {n} are missing, "
                f"the first at position {int(np.argmax(missing))}"
            )
        try:
            found, codes = np.unique(array, return_inverse=True)
        except TypeError:
            raise InputError("groups must be labels of one kind, such as numbers or text") from None
        return cls(codes, found.size)


def units_counted(stretches: Stretches, groups: Groups | None, n_times: int) -> NDArray[np.float64]:
    """Return how many individuals, or groups, belong to those for whom the score speaks at each time."""
    stop = stretches.population_stop
    n = stop.size
    if stop.strides == (0,):  # everybody, always
        return np.full(n_times, float(n if groups is None else groups.n_groups))
    if groups is not None:
        latest = np.zeros(groups.n_groups, dtype=np.int32)
        np.maximum.at(latest, groups.codes, stop)
        stop, n = latest, groups.n_groups
    ends = np.bincount(stop, minlength=n_times + 1)[: n_times + 1]
    return np.asarray(n - np.cumsum(ends)[:n_times], dtype=np.float64)


def small_sample(n_units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return n/(n - 1), as in any sample variance; NaN where one unit, or none, is left."""
    return np.where(n_units > 1, n_units / np.where(n_units > 1, n_units - 1, 1), np.nan)

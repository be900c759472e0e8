"""Splitting a data frame without dividing a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_whole

DEFAULT_SHARES = {"train": 0.6, "validation": 0.1, "test": 0.3}


def split(frame: Any, *, by: str, sizes: Mapping[str, float] | None = None, seed: int = 0) -> dict[str, Any]:
    """Split the rows of a frame at random into parts, all rows with the same `by` in the same part.

    Groups are taken in random order, and each part is filled up to its size before the next begins. A part can exceed
    its size by the rest of its last group, at the expense of the last part; rows that are left over are in none.

    Parameters
    ----------
    frame : pandas.DataFrame
        With a column `by`.
    by : str
        What must not be divided, such as the customer.
    sizes : mapping of str to number, optional
        For each part the number of its rows, or its share of all, below 1; by default 0.6 to train, 0.1 for validation
        and 0.3 to test.
    seed : int
        Of the order.

    Returns
    -------
    dict of str to pandas.DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from survscore.datasets.splitting import split
    >>> frame = pd.DataFrame({"customer": [1, 1, 2, 3, 3, 3], "x": range(6)})
    >>> parts = split(frame, by="customer", sizes={"train": 0.5, "test": 0.5})
    >>> set(parts["train"]["customer"]) & set(parts["test"]["customer"])
    set()
    """
    if by not in frame.columns:
        raise InputError(f"by: there is no column {by!r}; the columns are {list(frame.columns)}")
    check_whole("seed", seed, 0)
    wanted = _numbers(DEFAULT_SHARES if sizes is None else sizes, len(frame))
    codes = frame[by].factorize()[0]
    if (codes < 0).any():
        raise InputError(f"by: column {by!r} has {int((codes < 0).sum())} missing values")
    counts = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(counts.size)
    filled = np.cumsum(counts[order])
    part_of_group: NDArray[np.intp] = np.full(counts.size, -1)
    begun, first = 0, 0
    for number, (name, size) in enumerate(wanted.items()):
        last = int(np.searchsorted(filled, begun + size))
        if last >= counts.size:  # what other parts have taken too much of is missing in the last
            if number + 1 < len(wanted) or first >= counts.size:
                raise InputError(f"there are not enough rows for part {name!r}, since no {by!r} may be divided")
            last = counts.size - 1
        part_of_group[order[first : last + 1]] = number
        begun, first = int(filled[last]), last + 1
    rows = part_of_group[codes]
    return {name: frame[rows == number].reset_index(drop=True) for number, name in enumerate(wanted)}


def _numbers(sizes: Mapping[str, float], n: int) -> dict[str, int]:
    """Return sizes as numbers of rows."""
    if not sizes:
        raise InputError("sizes must name at least one part")
    shares = all(isinstance(size, float) and 0 < size < 1 for size in sizes.values())
    if not shares:
        for name, size in sizes.items():
            check_whole(f"the size of {name!r}", size, 1)
    total = sum(sizes.values()) * (n if shares else 1)
    if total > n * (1 + 1e-9):
        raise InputError(f"sizes add up to {total:.0f} rows, but there are {n}")
    return {name: max(1, round(size * n)) if shares else int(size) for name, size in sizes.items()}

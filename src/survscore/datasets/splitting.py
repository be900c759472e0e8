"""Splitting a data frame without dividing a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError


def split(frame: Any, *, by: str, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Split the rows of a frame at random into parts, all rows with the same `by` in the same part.

    Groups are taken in random order, and each part is filled up to its size before the next begins; rows that are left
    over are in none. A part can exceed its size by the rest of its last group.

    Parameters
    ----------
    frame : pandas.DataFrame
        With a column `by`.
    by : str
        What must not be divided, such as the customer.
    sizes : mapping of str to int
        For each part the number of its rows.
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
    >>> parts = split(frame, by="customer", sizes={"train": 2, "test": 3}, seed=0)
    >>> set(parts["train"]["customer"]) & set(parts["test"]["customer"])
    set()
    """
    if by not in frame.columns:
        raise InputError(f"by: there is no column {by!r}; the columns are {list(frame.columns)}")
    wrong = {name: size for name, size in sizes.items() if size < 1}
    if wrong or not sizes:
        raise InputError(f"sizes must be at least 1, not {dict(sizes)}")
    wanted = sum(sizes.values())
    if wanted > len(frame):
        raise InputError(f"sizes add up to {wanted} rows, but there are {len(frame)}")
    codes = frame[by].factorize()[0]
    if (codes < 0).any():
        raise InputError(f"by: column {by!r} has {int((codes < 0).sum())} missing values")
    counts = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(counts.size)
    filled = np.cumsum(counts[order])
    part_of_group: NDArray[np.intp] = np.full(counts.size, -1)
    begun, first = 0, 0
    for number, (name, size) in enumerate(sizes.items()):
        last = int(np.searchsorted(filled, begun + size))
        if last >= counts.size:
            raise InputError(f"there are not enough rows for part {name!r}, since no {by!r} may be divided")
        part_of_group[order[first : last + 1]] = number
        begun, first = int(filled[last]), last + 1
    rows = part_of_group[codes]
    return {name: frame[rows == number].reset_index(drop=True) for number, name in enumerate(sizes)}

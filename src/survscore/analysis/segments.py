"""Which individuals make a segment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import as_frame
from survscore._validation import InputError, as_array, check_length, plural, shown
from survscore.inference.units import Groups
from survscore.results.long_tables import ALL, Key
from survscore.results.segments import check_names

MOST_SEGMENTS = 1000


@dataclass(frozen=True, eq=False)
class Segments:
    """Who belongs to which segment."""

    by: tuple[str, ...]  # names of the segmenting columns
    rows: dict[Key, NDArray[np.intp]]  # by their labels, the positions of the individuals of every segment

    @classmethod
    def of(cls, given: Any, n: int) -> Segments:
        """Take a mapping of names to labels, a data frame, or labels."""
        import pandas as pd

        columns = _columns(given)
        by = tuple(columns)
        check_names(by)
        texts, codes = zip(*(_coded(name, values, n) for name, values in columns.items()), strict=True)
        # by the codes of all columns together, as far as they occur
        grouped = pd.DataFrame(dict(enumerate(codes))).groupby(list(range(len(by))), sort=True)
        if grouped.ngroups > MOST_SEGMENTS:
            labels = [len(some) for some in texts]
            finest = int(np.argmax(labels))
            raise InputError(
                f"by makes {grouped.ngroups} segments of {plural(n, 'individual')}, and at most {MOST_SEGMENTS} are "
                f"scored; take a coarser column, or fewer: {by[finest]!r} has {plural(labels[finest], 'label')}"
            )
        rows = {tuple(some[k] for some, k in zip(texts, key, strict=True)): m.index.to_numpy() for key, m in grouped}
        return cls(by, rows)

    def n_spanning(self, groups: Groups) -> int:
        """Return how many groups have individuals in several segments."""
        seen = np.zeros(groups.n_groups, dtype=np.intp)
        for rows in self.rows.values():
            seen[np.unique(groups.codes[rows])] += 1
        return int(np.count_nonzero(seen > 1))


def _columns(given: Any) -> dict[str, Any]:
    """Return the segmenting columns by name, whichever way they were given."""
    if isinstance(given, str):
        raise InputError(f"by must hold a label for each individual, not the name {shown(given)!r} of a column")
    if isinstance(given, Mapping):
        return {str(name): values for name, values in given.items()}
    try:
        frame = as_frame(given)
    except InputError as error:
        raise InputError(f"by: {str(error).removeprefix('X ')}") from None
    if frame is not None:
        return {str(series.name): series.to_list() for series in frame.iter_columns()}
    name = getattr(given, "name", None)
    return {"segment" if name is None or callable(name) else str(name): given}


def _coded(name: str, values: Any, n: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the labels of a column as text, and each individual's place among them."""
    import pandas as pd

    what = f"by: {name!r}"
    if isinstance(values, list):  # NumPy would make one type of mixed labels
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = as_array(values, what)
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {array.shape}")
    check_length(what, array.size, "y", n)
    try:
        codes, labels = pd.factorize(array)
    except TypeError:
        raise InputError(f"{what} must hold labels, such as numbers or text") from None
    missing = codes < 0
    if missing.any():
        raise InputError(
            f"{what} must be given for each individual: {missing.sum()} of {n} are missing, the first at position "
            f"{int(np.argmax(missing))}; give them a label of their own, such as 'unknown'"
        )
    texts = [_as_text(label) for label in labels]
    if ALL in texts:
        raise InputError(f"{what} has the label {ALL!r}, which stands for all individuals in the results: rename it")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"{what} has labels of several kinds that read the same, such as {shown(twice)!r}")
    return texts, codes.astype(np.intp)


def _as_text(label: Any) -> str:
    if isinstance(label, (float, np.floating)):
        return repr(float(label)).removesuffix(".0")
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)


def segment_name(by: tuple[str, ...], key: Key) -> str:
    """Return what a segment is called in a message."""
    return ", ".join(f"{name} {shown(label)!r}" for name, label in zip(by, key, strict=True))

"""Long tables of results: parts, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


def stacked(parts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one table of parts, each of which gives its columns: vectors of one length, or one value for all rows.

    What some parts lack is missing there. Columns are joined before a table is made of them: with a table for each
    part, a third of the time of a small comparison went into these.

    Examples
    --------
    >>> from survscore.results.long_tables import stacked
    >>> stacked([{"model": "net", "score": [0.1, 0.2]}, {"model": "old", "score": [0.3], "note": ["few"]}])
      model  score note
    0   net    0.1  NaN
    1   net    0.2  NaN
    2   old    0.3  few
    """
    import pandas as pd

    sizes = [max(np.size(values) for values in part.values()) for part in parts]
    names = dict.fromkeys(name for part in parts for name in part)
    return pd.DataFrame({
        name: np.concatenate([_column(part.get(name, np.nan), size) for part, size in zip(parts, sizes, strict=True)])
        for name in names
    })  # fmt: skip


def _column(values: Any, size: int) -> NDArray[Any]:
    """Return a column of a part; texts as objects, so that joining them with others keeps both."""
    array = np.asarray(values)
    return np.broadcast_to(array.astype(object) if array.dtype.kind == "U" else array, size)

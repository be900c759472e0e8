"""Tables of covariates as people have them: data frames of any library, dictionaries of columns, arrays, tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_array

if TYPE_CHECKING:
    import narwhals as nw


def collected(X: Any) -> Any:
    """Return a lazy frame's contents, and anything else as it is."""
    return X.collect() if hasattr(X, "collect") and hasattr(X, "collect_schema") else X


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library as narwhals sees it, or None if it is none."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    X = collected(X)
    names = [str(name) for name in getattr(X, "columns", ())]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"X has several columns of the same name: {repeated}")
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):  # of a library whose own frames are lazy, such as DuckDB
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def n_rows_of(X: Any) -> int:
    """Return the number of rows of an array, a data frame, or anything with a length."""
    frame = as_frame(X)
    if frame is not None:
        return frame.shape[0]
    if hasattr(X, "shape"):
        return int(X.shape[0])
    try:
        return len(X)
    except TypeError:
        raise InputError(f"X must be an array or a data frame, not {type(X).__name__}") from None


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array or a data frame."""
    frame = as_frame(X)
    if frame is not None:
        return frame[rows].to_native()
    if hasattr(X, "tocsr"):  # a sparse matrix, of which not every kind can be indexed
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def columns_of(X: Any) -> dict[str, NDArray[Any]]:
    """Return the columns by name, or by number: numbers with NaN where missing, dates, or objects with None there."""
    if isinstance(X, Mapping):
        return {str(name): as_array(values, f"X: column {str(name)!r}") for name, values in X.items()}
    frame = as_frame(X)
    if frame is not None:
        return {str(series.name): _values_of(series) for series in frame.iter_columns()}
    matrix = as_array(X, "X")
    if matrix.ndim != 2:
        raise InputError(f"X must have shape (individuals, covariates), not {matrix.shape}")
    return {str(j): matrix[:, j] for j in range(matrix.shape[1])}


def numbers_of(series: nw.Series[Any]) -> NDArray[np.float64] | None:
    """Return a column of numbers or booleans, NaN where missing; None of anything else."""
    import narwhals as nw

    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        return None
    numbers = series.cast(nw.Float64)
    missing = bool(series.is_null().any())
    return np.asarray((numbers.fill_null(np.nan) if missing else numbers).to_numpy(), dtype=np.float64)


def _values_of(series: nw.Series[Any]) -> NDArray[Any]:
    numbers = numbers_of(series)
    if numbers is not None:
        return numbers
    values = np.empty(len(series), dtype=object)
    absent = series.is_null().to_numpy()
    values[:] = [None if gone else value for value, gone in zip(series.to_list(), absent, strict=True)]
    return values

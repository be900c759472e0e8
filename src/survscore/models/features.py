"""From arrays and data frames to what a net takes: standardised numbers, and codes of categories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError, check_choice

if TYPE_CHECKING:
    import narwhals as nw

MISSING = ("error", "indicator")


@dataclass(frozen=True)
class Numbers:
    """A numeric column, and what standardises it; `indicator` says that a column of its own tells what is missing."""

    mean: float
    scale: float
    indicator: bool = False


@dataclass(frozen=True)
class Categories:
    """A column of categories, by the text that stands for each."""

    levels: list[str]


Column = Numbers | Categories


@dataclass(frozen=True)
class Features:
    """The columns a model was fitted on.

    Attributes
    ----------
    names : list of str or None
        Those of a data frame's columns; None for an array.
    columns : list of Numbers or Categories
        How each is encoded.
    """

    names: list[str] | None
    columns: list[Column]

    @classmethod
    def learn(cls, X: Any, *, missing: str) -> Self:
        """Find out what the columns are, with their means, scales and categories."""
        check_choice("missing", missing, MISSING)
        names, values = _columns_of(X)
        columns: list[Column] = []
        for label, read in values.items():
            column = read()
            if column.dtype == object:
                columns.append(Categories(sorted({value for value in column.tolist() if value is not None})))
            else:
                columns.append(_learn_numbers(column, label, indicator=missing == "indicator"))
        return cls(names, columns)

    @property
    def n_numbers(self) -> int:
        """How many numbers an individual has, indicators included."""
        return sum(1 + column.indicator for column in self.columns if isinstance(column, Numbers))

    @property
    def n_categories(self) -> list[int]:
        """How many categories each categorical column has."""
        return [len(column.levels) for column in self.columns if isinstance(column, Categories)]

    def encode(self, X: Any, *, model: str = "training") -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return numbers (n, n_numbers) and codes (n, categorical columns), 0 for categories not seen in training."""
        names, values = _columns_of(X, self.names)
        if self.names is not None and names is None:
            raise InputError(f"X must be a data frame with the columns {self.names}, as in training")
        if len(values) != len(self.columns):  # in scikit-learn's words
            raise InputError(
                f"X has {len(values)} features, but {model} is expecting {len(self.columns)} features as input"
            )
        numbers: list[NDArray[np.float32]] = []
        codes: list[NDArray[np.int64]] = []
        n_rows = 0
        for (label, read), known in zip(values.items(), self.columns, strict=True):
            column = read()
            n_rows = column.size
            if isinstance(known, Numbers):
                if column.dtype == object:
                    raise InputError(f"X: {label} held numbers in training, and now text or categories")
                numbers += _encode_numbers(column, label, known)
            else:
                if column.dtype != object:
                    raise InputError(f"X: {label} held text or categories in training, and now numbers")
                codes.append(_encode_categories(column, known))
        return (
            np.stack(numbers, axis=1) if numbers else np.zeros((n_rows, 0), dtype=np.float32),
            np.stack(codes, axis=1) if codes else np.zeros((n_rows, 0), dtype=np.int64),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Take what `to_dict` gave."""
        columns = [Categories(**c) if "levels" in c else Numbers(**c) for c in data["columns"]]
        if not columns:
            raise ValueError("no columns")
        return cls(data["names"], columns)


def n_rows_of(X: Any) -> int:
    """Return the number of rows of an array or a data frame."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array or a data frame."""
    frame = _as_frame(X)
    if frame is not None:
        return frame[rows].to_native()
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library as narwhals sees it, or None if it is none."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _columns_of(
    X: Any, expected: list[str] | None = None
) -> tuple[list[str] | None, dict[str, Callable[[], NDArray[Any]]]]:
    """Return the names, if any, and for every column what to call it and a function that reads its values.

    Values are float64, NaN where missing; or, of text and categories, objects: text, None where missing.
    """
    frame = _as_frame(X)
    if frame is None:
        matrix = _as_matrix(X)
        return None, {f"column {j}": partial(matrix.__getitem__, (slice(None), j)) for j in range(matrix.shape[1])}
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InputError(f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each")
    names = [str(name) for name in frame.columns]
    if expected is not None and names != expected:
        absent, new = [n for n in expected if n not in names], [n for n in names if n not in expected]
        if absent or new:
            lacks = f"lacks the columns {absent}" if absent else ""
            has = f"has the columns {new}, which were not there in training" if new else ""
            raise InputError("X " + " and ".join(part for part in (lacks, has) if part))
        names = expected
    return names, {f"column {name!r}": partial(_values_of, frame[name], name) for name in names}


def _as_matrix(X: Any) -> FloatArray:
    from sklearn.utils import check_array

    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu().numpy()
    # refuses what is sparse, complex, empty or not two-dimensional, in scikit-learn's words
    matrix: FloatArray = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="X")
    return matrix


def _values_of(series: nw.Series[Any], name: str) -> NDArray[Any]:
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        absent = series.is_null().to_numpy()
        numbers = series.cast(nw.Float64) if not absent.any() else series.cast(nw.Float64).fill_null(np.nan)
        return np.asarray(numbers.to_numpy(), dtype=np.float64)
    if isinstance(series.dtype, (nw.String, nw.Categorical, nw.Enum)):
        absent = series.is_null().to_numpy()
        values = np.array([str(value) for value in series.to_list()], dtype=object)
        values[absent] = None
        return values
    raise InputError(
        f"X: column {name!r} must hold numbers, booleans, text or categories, not {series.dtype}; "
        "turn dates into numbers first"
    )


def _learn_numbers(column: FloatArray, label: str, *, indicator: bool) -> Numbers:
    seen = _finite(column, label, missing_allowed=indicator)
    if seen.size == 0:
        raise InputError(f"X: {label} holds no number at all")
    mean, scale = float(seen.mean(dtype=np.float64)), float(seen.std(dtype=np.float64))
    if scale <= 1e-12 * abs(mean):  # constant, up to rounding
        scale = 1.0
    if not np.isfinite(mean) or not np.isfinite(scale):
        raise InputError(f"X: {label} holds numbers too large to be standardised")
    return Numbers(mean, scale, indicator=seen.size < column.size)


def _encode_numbers(column: FloatArray, label: str, known: Numbers) -> list[NDArray[np.float32]]:
    _finite(column, label, missing_allowed=known.indicator)
    standardised = ((column - known.mean) / known.scale).astype(np.float32)
    if not known.indicator:
        return [standardised]
    missing = np.isnan(standardised)
    return [np.where(missing, np.float32(0), standardised), missing.astype(np.float32)]


def _encode_categories(column: NDArray[Any], known: Categories) -> NDArray[np.int64]:
    import pandas as pd

    return np.asarray(pd.Categorical(column, categories=known.levels).codes, dtype=np.int64) + 1


def _finite(column: FloatArray, label: str, *, missing_allowed: bool) -> FloatArray:
    """Return the numbers that are there; refuse infinity, and NaN unless it is allowed."""
    missing, infinite = np.isnan(column), np.isinf(column)
    for wrong, what in ((infinite, "infinity (inf)"), (missing, "missing values (NaN)")):
        if wrong.any() and not (missing_allowed and wrong is missing):
            hint = "; missing='indicator' takes those in training" if wrong is missing else ""
            raise InputError(
                f"X: {label} holds {what}: {np.count_nonzero(wrong)} of {column.size}, "
                f"the first at row {int(np.argmax(wrong))}{hint}"
            )
    return column[~missing] if missing_allowed else column

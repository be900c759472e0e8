"""From arrays and data frames to what a net takes: standardised numbers, and codes of categories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.frames import as_frame, collected, numbers_of
from survscore._validation import FloatArray, InputError, check_choice, check_flag, check_number

if TYPE_CHECKING:
    import narwhals as nw

MISSING = ("error", "indicator")


@dataclass(frozen=True)
class Numbers:
    """A numeric column: its mean and scale in training, and what becomes of missing values."""

    mean: float
    #: At 0 it was constant in training: a net has learnt nothing about it, so it is constant ever after.
    scale: float
    #: Whether missing values are allowed, and put at the mean.
    missing: bool = False
    #: Whether a column of its own marks which were missing: where training had any.
    indicator: bool = False

    def __post_init__(self) -> None:
        check_number("mean", self.mean, "finite", lambda mean: True)
        check_number("scale", self.scale, "zero or larger", lambda scale: scale >= 0)
        check_flag("missing", self.missing)
        check_flag("indicator", self.indicator)

    @classmethod
    def learn(cls, column: FloatArray, label: str, *, missing: bool, rows: Any) -> Self:
        """Learn mean and scale from some rows; what is wrong is refused in any."""
        _finite(column, label, missing_allowed=missing)
        some = column[rows]
        known = some[~np.isnan(some)]
        if known.size == 0:
            raise InputError(f"X: {label} holds no number in the rows to train on")
        with np.errstate(over="ignore"):
            mean, scale = float(known.mean(dtype=np.float64)), float(known.std(dtype=np.float64))
        if not np.isfinite([mean, scale]).all():
            raise InputError(f"X: {label} holds numbers too large to be standardised")
        if scale <= 1e-12 * abs(mean):  # constant, up to rounding
            scale = 0.0
        return cls(mean, scale, missing, indicator=known.size < some.size)

    def encode(self, column: NDArray[Any], label: str) -> list[NDArray[np.float32]]:
        """Return standardised numbers, and which are missing if there is a column for that."""
        if column.dtype == object:
            if any(value is not None for value in column):
                raise InputError(f"X: {label} held numbers in training, and now text or categories")
            column = np.full(column.size, np.nan)  # where all is missing, any kind will do
        _finite(column, label, missing_allowed=self.missing)
        missing = np.isnan(column)
        if self.scale == 0.0:
            standardised = np.zeros(column.size, dtype=np.float32)
        else:
            with np.errstate(over="ignore"):
                standardised = np.where(missing, 0.0, (column - self.mean) / self.scale).astype(np.float32)
            beyond = ~np.isfinite(standardised)
            if beyond.any():
                first = int(np.argmax(beyond))
                raise InputError(
                    f"X: {label} holds {np.count_nonzero(beyond)} of {column.size} numbers far beyond those in "
                    f"training, the first at row {first} ({column[first]})"
                )
        return [standardised, missing.astype(np.float32)] if self.indicator else [standardised]


@dataclass(frozen=True)
class Categories:
    """A column of categories, by the text that stands for each."""

    levels: list[str]

    def __post_init__(self) -> None:
        _check_texts("levels", self.levels)

    @classmethod
    def learn(cls, column: NDArray[Any], label: str, *, rows: Any) -> Self:
        """Learn which categories some rows have."""
        if all(value is None for value in column):
            raise InputError(f"X: {label} holds nothing but missing values")
        return cls(sorted({value for value in column[rows].tolist() if value is not None}))

    def encode(self, column: NDArray[Any], label: str) -> NDArray[np.int64]:
        """Return the numbers of categories, 0 for others and where they are missing."""
        import pandas as pd

        if column.dtype != object:
            raise InputError(f"X: {label} held text or categories in training, and now numbers")
        places = pd.Index(self.levels, dtype=object).get_indexer(pd.Index(column, dtype=object))
        return np.asarray(places + 1, np.int64)


Column = Numbers | Categories


@dataclass(frozen=True)
class Features:
    """The columns a model was fitted on, and how each is encoded."""

    #: Those of a data frame's columns; None for an array.
    names: list[str] | None
    columns: list[Column]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError("there are no columns")
        if self.names is None:
            if not all(isinstance(column, Numbers) for column in self.columns):
                raise InputError("an array has no categories")
            return
        _check_texts("names", self.names)
        if len(self.names) != len(self.columns):
            raise InputError(f"there are {len(self.names)} names, but {len(self.columns)} columns")

    @classmethod
    def learn(cls, X: Any, *, missing: str, rows: NDArray[np.intp] | None = None) -> Self:
        """Learn the columns, with their means, scales and categories, from some rows or all; errors are of any row."""
        check_choice("missing", missing, MISSING)
        names, values = _columns_of(X)
        some = slice(None) if rows is None else rows
        columns: list[Column] = []
        for label, read in values.items():
            column = read()
            if column.dtype == object:
                columns.append(Categories.learn(column, label, rows=some))
            else:
                columns.append(Numbers.learn(column, label, missing=missing == "indicator", rows=some))
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
                numbers += known.encode(column, label)
            else:
                codes.append(known.encode(column, label))
        return (
            np.stack(numbers, axis=1) if numbers else np.zeros((n_rows, 0), dtype=np.float32),
            np.stack(codes, axis=1) if codes else np.zeros((n_rows, 0), dtype=np.int64),
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Take what `dataclasses.asdict` gave."""
        return cls(data["names"], [Categories(**c) if "levels" in c else Numbers(**c) for c in data["columns"]])


def as_table(X: Any) -> Any:
    """Return an array, checked as far as its form goes, or a data frame, collected if it is a lazy one."""
    X = collected(X)
    return _as_matrix(X) if as_frame(X) is None else X


def _columns_of(
    X: Any, expected: list[str] | None = None
) -> tuple[list[str] | None, dict[str, Callable[[], NDArray[Any]]]]:
    """Return the names, if any, and for every column what to call it and a function that reads its values.

    Values are float64, NaN where missing; or, of text and categories, objects: text, None where missing.
    """
    frame = as_frame(X)
    if frame is None:
        matrix = _as_matrix(X)
        return None, {f"column {j}": partial(matrix.__getitem__, (slice(None), j)) for j in range(matrix.shape[1])}
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise InputError(f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each")
    series = {str(name): column for name, column in zip(frame.columns, frame.iter_columns(), strict=True)}
    names = list(series)
    if expected is not None:
        absent, new = [n for n in expected if n not in series], [n for n in names if n not in expected]
        if absent or new:
            lacks = f"lacks the columns {absent}" if absent else ""
            has = f"has the columns {new}, which were not there in training" if new else ""
            raise InputError("X " + " and ".join(part for part in (lacks, has) if part))
        names = expected
    return names, {f"column {name!r}": partial(_values_of, series[name], name) for name in names}


def _as_matrix(X: Any) -> FloatArray:
    from sklearn.utils import check_array

    if hasattr(X, "detach"):  # a torch tensor
        X = X.detach().cpu().numpy()
    # refuses what is sparse, complex, empty or not two-dimensional, in scikit-learn's words
    matrix: FloatArray = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="X")
    return matrix


def _values_of(series: nw.Series[Any], name: str) -> NDArray[Any]:
    import narwhals as nw

    absent = series.is_null().to_numpy()
    kind = series.dtype
    if absent.all():  # whatever its type, nothing is there
        return np.full(len(series), None, dtype=object)
    numbers = numbers_of(series)
    if numbers is not None:
        return numbers
    values = series.to_list()
    if isinstance(kind, nw.Object):  # of pandas, where anything may be inside
        there = [value for value, gone in zip(values, absent, strict=True) if not gone]
        if all(isinstance(value, (bool, int, float)) for value in there):
            return np.array([np.nan if gone else float(v) for v, gone in zip(values, absent, strict=True)])
    if isinstance(kind, (nw.String, nw.Categorical, nw.Enum)) or (
        isinstance(kind, nw.Object) and all(isinstance(value, str) for value in there)
    ):
        return np.array([None if gone else _text(v) for v, gone in zip(values, absent, strict=True)], dtype=object)
    hint = "; turn dates into numbers first" if kind.is_temporal() else ""
    raise InputError(f"X: column {name!r} must hold numbers, booleans, text or categories, not {kind}{hint}")


def _text(value: Any) -> str:
    """Return the name of a category; a whole number has one name, also where missing values made it a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _finite(column: FloatArray, label: str, *, missing_allowed: bool) -> None:
    """Refuse infinity, and NaN unless it is allowed."""
    missing, infinite = np.isnan(column), np.isinf(column)
    hint = "; missing='indicator' takes them"
    for wrong, what, more in ((infinite, "infinity (inf)", ""), (missing, "missing values (NaN)", hint)):
        if wrong.any() and not (missing_allowed and wrong is missing):
            raise InputError(
                f"X: {label} holds {what}: {np.count_nonzero(wrong)} of {column.size}, "
                f"the first at row {int(np.argmax(wrong))}{more}"
            )


def _check_texts(name: str, values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name} must be a list of text")
    if len(set(values)) != len(values):
        raise InputError(f"{name} must not repeat")

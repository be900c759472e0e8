"""Which columns of a table are outcomes, and which are predictions of which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_times, check_choice
from survscore.curves import BETWEEN, BEYOND, MONOTONE
from survscore.io.layouts import columns_by_time
from survscore.io.tables import listed

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class OutcomeColumns:
    """Where outcomes are: columns of times, or of dates with a cut-off.

    Attributes
    ----------
    time, event, censoring_time : str
        Names of columns; without a cut-off.
    cutoff : str, optional
        The date on which the data end, or the name of a column of such dates.
    start, event_date, last_seen : str
        Names of columns; with a cut-off. By default ``last_seen`` is one if there is such a column, and so is
        ``censoring_time``.
    unit : str
        The unit of times derived from dates.
    """

    time: str = "time"
    event: str = "event"
    censoring_time: str | None = "censoring_time"
    cutoff: str | None = None
    start: str = "start"
    event_date: str = "event_date"
    last_seen: str | None = None
    unit: str = "D"

    @property
    def dated(self) -> bool:
        """Whether times come from dates."""
        return self.cutoff is not None

    def names(self, available: Sequence[str]) -> list[str]:
        """Return the columns that are needed."""
        if not self.dated:
            return [name for name in (self.time, self.event, self.censoring_time) if name is not None]
        dates = [self.start, self.event_date, *([] if self.last_seen is None else [self.last_seen])]
        return [*dates, *(name for name in available if name == self.cutoff)]

    def nullable(self) -> list[str]:
        """Return the columns in which a value may be missing: there was no event."""
        return [self.event_date, *([] if self.last_seen is None else [self.last_seen])] if self.dated else []


@dataclass(frozen=True)
class ModelColumns:
    """Where a model's predictions are: one column per time, or one column of lists.

    Attributes
    ----------
    name : str
        Of the model.
    columns : tuple of str
        In the order of the grid; one, if its values are lists.
    grid : tuple of float
        The times.
    between, beyond, monotone
        As for `SurvivalCurves`.
    """

    name: str
    columns: tuple[str, ...]
    grid: tuple[float, ...]
    between: str = "linear"
    beyond: str = "nan"
    monotone: str = "check"

    def __post_init__(self) -> None:
        check_choice("between", self.between, BETWEEN)
        check_choice("beyond", self.beyond, BEYOND)
        check_choice("monotone", self.monotone, MONOTONE)
        as_times(self.grid, f"the grid of {self.name!r}")
        if len(self.columns) not in (1, len(self.grid)):
            raise InputError(
                f"model {self.name!r} has {len(self.columns)} columns, but its grid has {len(self.grid)} times"
            )

    @property
    def of_lists(self) -> bool:
        """Whether predictions are lists in one column."""
        return len(self.columns) == 1 and len(self.grid) > 1

    def only(self, times: Sequence[float]) -> ModelColumns:
        """Return the columns that are needed at some times: these alone, where each has one."""
        columns = dict(zip(self.grid, self.columns, strict=False))
        if self.of_lists or self.monotone == "enforce" or not all(time in columns for time in times):
            return self
        return replace(self, columns=tuple(columns[time] for time in times), grid=tuple(times))

    def reaches(self, times: NDArray[np.float64]) -> bool:
        """Whether the model says anything at all of these times."""
        return self.beyond == "hold" or bool(times[-1] <= self.grid[-1])


def model_columns(schema: pa.Schema, models: Any) -> tuple[ModelColumns, ...]:
    """Return where predictions are; see `specify`."""
    names = [field.name for field in schema]
    if isinstance(models, Mapping):
        found = []
        for name, given in models.items():
            if isinstance(given, ModelColumns):
                found.append(replace(given, name=str(name)))
                continue
            by_time = {model: columns for model, columns in columns_by_time(names, str(given)).items() if columns}
            if len(by_time) != 1:
                raise InputError(
                    f"model {name!r}: {len(by_time)} models have columns like {given!r}; the columns are "
                    f"{listed(names)}"
                )
            (columns,) = by_time.values()
            found.append(_of_times(str(name), columns))
        if not found:
            raise InputError("models is empty")
        return tuple(found)
    pattern = models if isinstance(models, str) else None
    several = {name or "predictions": columns for name, columns in columns_by_time(names, pattern).items()}
    if not several:
        wanted = f"named like {pattern!r}" if pattern else "named by time (30, 60 or net:30, net:60)"
        raise InputError(f"no column is {wanted}; the columns are {listed(names)}")
    if models is not None and pattern is None:
        for name in models:
            if name not in several:
                raise InputError(f"there is no model {name!r}; the models are {listed(list(several))}")
        several = {name: several[name] for name in models}
    return tuple(_of_times(name, columns) for name, columns in several.items())


def _of_times(name: str, columns: Mapping[float, str]) -> ModelColumns:
    times = sorted(columns)
    return ModelColumns(name, tuple(columns[time] for time in times), tuple(times))

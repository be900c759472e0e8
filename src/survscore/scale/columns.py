"""Which columns of a table are outcomes, and which are predictions of which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import as_unit, converted
from survscore._validation import InputError, as_times, check_choice, several
from survscore.causes import ALL_CAUSES, MOST_CAUSES, check_named_alike
from survscore.curves import EXTRAPOLATIONS, INTERPOLATIONS, MONOTONE, PREDICTS
from survscore.io.forms import ByCause, Form, NamedColumns
from survscore.io.layouts import list_columns, metadata_of
from survscore.io.tables import listed
from survscore.outcomes import WEIGHT_KINDS

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
        The data cut-off, or the name of a column of such dates.
    start, event_date, last_seen : str
        Names of columns; with a cut-off. By default ``last_seen`` is one if there is such a column, and so is
        ``censoring_time``.
    unit : str
        The unit of times: those derived from dates, and those to which times of predictions are converted.
    end : str, optional
        With a cut-off, the column of dates of the event or of another end, instead of ``event_date``; ``event`` tells.
    date_format, origin : str, optional
        How dates are written, as for `read_outcomes`.
    causes : tuple of str
        Under competing risks the names of the causes 1, 2, ... in ``event``, which may hold the names instead.
    cause : str, optional
        The cause that scores are of, by its name or its number; `evaluate` sets it.
    entry, entry_date : str, optional
        With delayed entry, the column of when each individual came under observation; with a cut-off, of these dates.
    weights : str, optional
        The column of sample weights.
    weight_kind : {"probability", "importance", "frequency"}, default "probability"
        What weights are; see `Outcomes.weighted`.
    """

    time: str = "time"
    event: str = "event"
    censoring_time: str | None = "censoring_time"
    cutoff: str | None = None
    start: str = "start"
    event_date: str = "event_date"
    last_seen: str | None = None
    unit: str = "D"
    end: str | None = None
    date_format: str | None = None
    origin: str | None = None
    causes: tuple[str, ...] = ()
    cause: str | None = None
    entry: str | None = None
    entry_date: str | None = None
    weights: str | None = None
    weight_kind: str = "probability"

    def __post_init__(self) -> None:
        check_choice("weight_kind", self.weight_kind, WEIGHT_KINDS)
        given: Any = self.causes
        if isinstance(given, str):
            raise InputError(f"causes must be a sequence of names, not {given!r}")
        object.__setattr__(self, "causes", tuple(map(str, self.causes)))
        if self.cause is not None and self.entry_column is not None:
            raise InputError(
                "evaluate has no scores of a cause with delayed entry: predictions of one cause do not tell what is "
                "predicted for individuals who are event-free at entry; use compare, with IncidenceCurves of all causes"
            )

    def of_cause(self, cause: str | int) -> OutcomeColumns:
        """Return the same with one cause as the event of interest."""
        if cause == ALL_CAUSES:
            raise InputError(
                "evaluate has no multi-class form (cause='all'): name one cause, or use compare, or survscore score "
                "--cause all, on data that fit in memory"
            )
        if self.dated and self.end is None:
            raise InputError("cause is for dates of which event says what happened then: name their column as `end`")
        numbered = str(cause).isdigit() and int(cause) >= 1
        if str(cause) not in self.causes and not (numbered and int(cause) <= (len(self.causes) or MOST_CAUSES)):
            told = f"one of {several([repr(one) for one in self.causes])}, or its number" if self.causes else (
                "the number of a cause, from 1 on; `causes` gives them names")  # fmt: skip
            raise InputError(f"cause must be {told}, not {cause!r}")
        return replace(self, cause=str(cause))

    @property
    def cause_number(self) -> int:
        """The number of the cause of interest."""
        cause = self.cause or "1"
        return self.causes.index(cause) + 1 if cause in self.causes else int(cause)

    @property
    def kinds(self) -> int:
        """How follow-up can end: without event, with that of interest, or with another one."""
        return 2 if self.cause is None else 3

    @property
    def cause_name(self) -> str:
        """The name of the cause of interest, which is its number if it has none."""
        return self.causes[self.cause_number - 1] if self.causes else str(self.cause_number)

    @property
    def entry_column(self) -> str | None:
        """The column of delayed entry."""
        return self.entry_date if self.dated else self.entry

    @property
    def weighted(self) -> bool:
        """Whether there are sample weights other than counts."""
        return self.weights is not None and self.weight_kind != "frequency"

    @property
    def dated(self) -> bool:
        """Whether times come from dates."""
        return self.cutoff is not None

    def names(self, available: Sequence[str]) -> list[str]:
        """Return the columns that are needed."""
        more = [name for name in (self.entry_column, self.weights) if name is not None]
        if not self.dated:
            return [name for name in (self.time, self.event, self.censoring_time, *more) if name is not None]
        ends = [self.event_date, self.last_seen] if self.end is None else [self.end, self.event]
        dates = [self.start, *(name for name in ends if name is not None)]
        return [*dates, *more, *(name for name in available if name == self.cutoff)]

    def nullable(self) -> list[str]:
        """Return the columns in which a value may be missing: there was no event."""
        labels = [self.event] if self.causes else []  # missing without event
        if self.dated and self.end is not None:
            return [self.end, *labels]
        return labels if not self.dated else [self.event_date, *([] if self.last_seen is None else [self.last_seen])]


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
    interpolation, extrapolation, monotone
        As for `SurvivalCurves`.
    predicts : {"survival", "event"}
        What values are probabilities of.
    percent : bool
        Whether they are percentages.
    """

    name: str
    columns: tuple[str, ...]
    grid: tuple[float, ...]
    interpolation: str | None = None
    extrapolation: str = "nan"
    monotone: str = "check"
    predicts: str = "survival"
    percent: bool = False

    def __post_init__(self) -> None:
        if self.interpolation is not None:
            check_choice("interpolation", self.interpolation, INTERPOLATIONS)
        check_choice("extrapolation", self.extrapolation, EXTRAPOLATIONS)
        check_choice("monotone", self.monotone, MONOTONE)
        check_choice("predicts", self.predicts, PREDICTS)
        as_times(self.grid, f"the grid of {self.name!r}")
        if len(self.columns) not in (1, len(self.grid)):
            raise InputError(
                f"model {self.name!r} has {len(self.columns)} columns, but its grid has {len(self.grid)} times"
            )

    def survival(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities of being event-free that values stand for, right or wrong."""
        if self.percent:
            values = values.astype(np.float64) / 100
        return values if self.predicts == "survival" else 1.0 - values.astype(np.float64)

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
        return self.extrapolation == "hold" or bool(times[-1] <= self.grid[-1])


def model_columns(
    schema: pa.Schema, models: Any, form: Form | None, outcomes: OutcomeColumns
) -> tuple[ModelColumns, ...]:
    """Return where predictions are, of one cause if that of the outcomes is named, and what they look like."""
    if form is None:
        return _named_columns(schema, models, outcomes)
    if form.transposed:
        raise InputError(
            "transposed form, a row for each time, can't be read piece by piece; survscore score --transposed reads it"
        )
    if form.grid is not None:
        raise InputError("a grid of list columns must be in the metadata of files that are read piece by piece")
    if form.columns is not None and models is not None:
        raise InputError("columns and models both say where predictions are; give one")
    said = {
        name: getattr(form, name)
        for name in ("interpolation", "extrapolation", "monotone", "predicts", "percent")
        if getattr(form, name) is not None
    }
    named = _named_columns(schema, models if form.columns is None else form.columns, outcomes)
    # those of a cause are always of its events
    found = [replace(one, **said | ({"predicts": "event"} if one.predicts == "event" else {})) for one in named]
    if form.unit is None:
        return tuple(found)
    of, to = as_unit("unit", form.unit), as_unit("unit", outcomes.unit)
    return tuple(replace(one, grid=tuple(converted(np.array(one.grid), of, to).tolist())) for one in found)


def _named_columns(schema: pa.Schema, models: Any, outcomes: OutcomeColumns) -> tuple[ModelColumns, ...]:
    """Return where predictions are, by patterns for names of columns, or by their usual names."""
    names, lists, by_pattern = schema.names, list_columns(schema), isinstance(models, Mapping)
    found: dict[str, Any] = {}
    for name, given in (models if by_pattern else {"": models if isinstance(models, str) else None}).items():
        if isinstance(given, ModelColumns):
            found[str(name)] = replace(given, name=str(name))
            continue
        pattern = None if given is None else str(given)
        named = NamedColumns.of(names, [] if pattern is None or "{time}" in pattern else lists, pattern)
        if not named and pattern is None:
            named = NamedColumns.of([], lists, None)
        several = {**named.by_time, **named.by_cause, **named.lists}
        if by_pattern and len(several) != 1:
            raise InputError(
                f"model {name!r}: {len(several)} models have columns like {pattern!r}; the columns are {listed(names)}"
            )
        found |= {str(name) or model or "predictions": columns for model, columns in several.items()}
    if not found:
        if by_pattern:
            raise InputError("models is empty")
        if {"time", "survival"} <= set(names):
            raise InputError(
                "these are predictions in long form, a row for each individual and time: say so (form=Form(long=True), "
                "--long), and where outcomes are (outcomes_from=, --outcomes)"
            )
        wanted = f"named like {models!r}" if isinstance(models, str) else "named by time (30, 60 or net:30, net:60)"
        raise InputError(f"no column is {wanted}; the columns are {listed(names)}")
    if models is not None and not by_pattern and not isinstance(models, str):
        for name in models:
            if name not in found:
                raise InputError(f"there is no model {name!r}; the models are {listed(list(found))}")
        found = {name: found[name] for name in models}
    return tuple(_model(schema, name, columns, outcomes) for name, columns in found.items())


def _model(schema: pa.Schema, name: str, columns: Any, outcomes: OutcomeColumns) -> ModelColumns:
    """Return a model whose columns are of times, or one of lists; or of these by cause, of which one is chosen."""
    if isinstance(columns, ModelColumns):
        return columns
    if isinstance(columns, dict) and isinstance(next(iter(columns)), str):
        columns = _of_cause(name, columns, outcomes)
        return replace(_model(schema, name, columns, outcomes), predicts="event")
    says = metadata_of(schema, columns if isinstance(columns, str) else None)
    how: dict[str, Any] = {one: str(says[one]) for one in ("interpolation", "extrapolation") if one in says}
    if isinstance(columns, dict):
        times = sorted(columns)
        return ModelColumns(name, tuple(columns[time] for time in times), tuple(times), **how)
    if "grid" not in says:
        raise InputError(f"column {columns!r} needs a grid in the file's metadata, or ModelColumns")
    return ModelColumns(name, (columns,), tuple(as_times(says["grid"], "grid").tolist()), **how)


def _of_cause(name: str, columns: ByCause, outcomes: OutcomeColumns) -> dict[float, str] | str:
    """Return the columns of the cause of interest."""
    causes = several([repr(one) for one in columns])
    if outcomes.cause is None:
        raise InputError(f"columns of predictions have causes, {causes}: `cause` says which one scores are of")
    if outcomes.causes and not all(map(str.isdigit, columns)):
        check_named_alike(list(columns), outcomes.causes, f"the predictions of {name!r}")
    for one in (outcomes.cause_name, str(outcomes.cause_number)):
        if one in columns:
            return columns[one]
    raise InputError(f"model {name!r} has no predictions of cause {outcomes.cause_name!r}, only of {causes}")

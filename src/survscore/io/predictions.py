"""Predictions from a file, in whatever form they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import Unit, as_unit, converted
from survscore._validation import InputError, plural
from survscore.curves import ExtrapolationKind, InterpolationKind, Monotone, Predicts, SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.io.forms import Form
from survscore.io.layouts import LISTS, SURVIVAL, TRANSPOSED, layout_of, looks_transposed
from survscore.io.outcomes import labels_in, n_ids_in_words
from survscore.io.tables import ENDINGS, TableFile, about, listed, open_table

if TYPE_CHECKING:
    import pyarrow as pa

NAMELESS = ("", SURVIVAL)  # what a file calls a model that has the name of the file


@dataclass(frozen=True, eq=False)
class PredictedFile:
    """What a file predicts.

    Attributes
    ----------
    path : Path
        The file.
    models : dict of str to SurvivalCurves, or IncidenceCurves for predictions by cause
        In the order of the file.
    ids : pyarrow.Array or None
        Whom the rows are about, where the file says so.
    ignored : list of str
        Columns that are neither predictions nor ids.
    took_grid : bool
        Whether a grid that was given was needed.
    form : Form
        What the file was said to look like.
    names_are_ids : bool
        Whether ids are names of columns, so that they count only if outcomes have ids.
    """

    path: Path
    models: dict[str, SurvivalCurves | IncidenceCurves]
    ids: pa.Array | None
    ignored: list[str]
    took_grid: bool
    form: Form = field(default_factory=Form)
    names_are_ids: bool = False

    @property
    def summary(self) -> list[str]:
        """What it predicts, a line for each model."""
        return [
            f"predictions of {name!r}: {curves!r}, {n_ids_in_words(self.ids)}" for name, curves in self.models.items()
        ]


def read_predictions(
    path: Path | str | TableFile,
    *,
    name: str | None = None,
    grid: ArrayLike | None = None,
    columns: str | None = None,
    interpolation: InterpolationKind | None = None,
    extrapolation: ExtrapolationKind | None = None,
    monotone: Monotone = "check",
    predicts: Predicts = "survival",
    percent: bool = False,
    transposed: bool = False,
    long: bool = False,
    unit: Unit | str | None = None,
    time_column: str | None = None,
    outcomes_unit: Unit | str | None = None,
    id: str | Literal[False] | None = None,
) -> PredictedFile:
    r"""Read the predictions of one or several models from a file.

    A prediction is the probability of being event-free after a time. Either there is a column for every time, named by
    it (``30``, ``60``, ``90.5``), with the model before a colon where there are several (``net:30``, ``cox:30``). Or
    each model has a column of lists of equal length, whose grid is in the file's metadata or given. Or there is a row
    for every individual and time, with columns ``id``, ``time`` and ``survival``, or one for each model. Or, said to be
    transposed, a row for every time and a column for every individual.

    Under competing risks there is a column for every cause and time, the probability of an event of this cause by
    then: ``default@12``, ``net:default@12``, or by a pattern with ``{cause}``. Or a column of lists for every cause,
    ``columns="{cause}"``; or in long form a column ``cause``.

    Parameters
    ----------
    path : path
        Of a file that ends in .csv or .tsv (also .gz, .zst), .parquet, .pq, .arrow or .feather.
    name : str, optional
        What to call the file's only model, by default like the file; or which of several to take.
    grid : array_like, optional
        The times of list columns, where the file does not say them.
    columns : str, optional
        How wide columns are named, if not as above: a pattern with ``{time}`` and perhaps ``{model}`` and ``{cause}``,
        such as ``"surv_{time}"`` or ``"{cause}_{time}"``.
    interpolation : {"linear", "step", "constant-hazard"}, optional
        As for `SurvivalCurves`; by default what the file says, or ``"linear"``.
    extrapolation : {"nan", "hold"}, optional
        As for `SurvivalCurves`; by default what the file says, or ``"nan"``.
    monotone : {"check", "keep", "enforce"}
        As for `SurvivalCurves`.
    predicts : {"survival", "event"}
        Whether values are probabilities of being event-free, or of having had the event. Those of a cause are always
        probabilities of its events.
    percent : bool
        Whether values are percentages, 0 to 100.
    transposed : bool
        Whether rows are times, which the first column holds, and each other column is an individual, named by its id:
        as lifelines' and pycox' frames are written.
    long : bool
        Whether each row is about one individual at one time. Such files are recognised if ids are repeated.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        The unit of the predictions' times, if it is another than `outcomes_unit`, into which they are converted: a year
        is 365.25 days, and a month a twelfth of it.
    time_column : str, optional
        The column of times of a long file, by default ``time``, ``times``, ``t`` or ``horizon``.
    outcomes_unit : as `unit`, optional
        The unit of the outcomes' times.
    id : str or False, optional
        The column of ids; by default ``id``, if there is one. False reads none.

    Returns
    -------
    PredictedFile

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.io import read_predictions
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cox.csv"
    >>> _ = path.write_text("id,30,60\na,0.9,0.8\nb,0.7,0.5\n")
    >>> read_predictions(path).models
    {'cox': SurvivalCurves(2 individuals, 2 times from 30 to 60, interpolation='linear', extrapolation='nan', float64)}
    >>> _ = path.write_text("id,month_1,month_2\na,25,50\nb,0,50\n")
    >>> months = {"columns": "month_{time}", "unit": "month", "outcomes_unit": "D"}
    >>> curves = read_predictions(path, predicts="event", percent=True, **months).models["cox"]
    >>> curves.times, curves.probabilities.tolist()
    (array([30.4375, 60.875 ]), [[0.75, 0.5], [1.0, 0.5]])
    """
    form = Form(
        grid, columns, interpolation, extrapolation, monotone, predicts, percent, transposed, long, unit, time_column
    )
    if (unit is None) != (outcomes_unit is None):
        raise InputError("unit and outcomes_unit go together: times are converted from one to the other")
    to = None if outcomes_unit is None else as_unit("outcomes_unit", outcomes_unit)
    predicted = predictions_in(path, name, form, to, id)
    if grid is not None and not predicted.took_grid:
        raise InputError(f"{predicted.path}: a grid is for list columns; here the columns' names are the times")
    return predicted


def predictions_in(
    path: Path | str | TableFile, name: str | None, form: Form, to: Unit | None, id: str | Literal[False] | None
) -> PredictedFile:
    """Do what `read_predictions` does, but leave it to the caller whether a grid was given in vain."""
    file = open_table(path, text=labels_in(id))
    layout = layout_of(file, form, id)
    as_usual = not (form.transposed or form.long or form.columns or form.time_column)
    if as_usual and looks_transposed(file, layout):
        raise InputError(
            f"{file.path}: rows look like times and columns like individuals, since all columns go one way with the "
            "times in the first; `transposed=True` takes such files"
        )
    if layout is None:
        wanted = (
            f"named like {form.columns!r}"
            if form.columns
            else "named by time (30, 60 or net:30, net:60), nor a list column"
        )
        raise InputError(f"{file.path}: no column is {wanted}; the columns are {listed(file.names)}")
    models: dict[str, SurvivalCurves | IncidenceCurves] = {}
    for model, key in _chosen(file.path, layout.models, name).items():
        times, matrix, metadata = layout.read(key)
        if form.unit is not None and to is not None:
            times = converted(times, as_unit("unit", form.unit), to)
        causes = layout.causes.get(key)
        reading: dict[str, Any] = {
            "interpolation": form.interpolation or metadata.get("interpolation"),
            "extrapolation": form.extrapolation or metadata.get("extrapolation", "nan"),
            "monotone": form.monotone,
        }
        with about(file.path):
            if form.percent:
                matrix = from_percentages(matrix, times, form.predicts if causes is None else "event")
            if causes is not None:
                models[model] = IncidenceCurves(matrix, times, causes=causes, **reading)
            elif form.predicts == "survival":
                models[model] = SurvivalCurves(matrix, times, **reading)
            else:
                models[model] = SurvivalCurves.from_event_probabilities(matrix, times, **reading)
    return PredictedFile(
        file.path,
        models,
        layout.ids,
        [column for column in file.names if column not in layout.used],
        layout.kind == LISTS and form.grid is not None,
        form,
        layout.kind == TRANSPOSED,
    )


def from_percentages(
    matrix: NDArray[Any], times: NDArray[np.float64], predicts: Predicts, *, all_of_them: bool = True
) -> NDArray[np.float64]:
    """Return probabilities; raise unless all are percentages, or, of all that there are, none looks like one."""
    broken = ~((matrix >= 0) & (matrix <= 100))
    if broken.any():
        row, *_, column = first = np.unravel_index(int(np.argmax(broken)), broken.shape)
        count = int(np.count_nonzero(broken))
        raise InputError(
            f"percentages must be between 0 and 100: {plural(count, 'value')} {'is' if count == 1 else 'are'} not, "
            f"the first in row {row} at time {times[column]:g} ({matrix[first]})"
        )
    if all_of_them and predicts == "survival" and matrix.max() <= 1:  # of events, all may be rare
        raise InputError("percentages must be between 0 and 100, but none is above 1: these look like probabilities")
    return matrix.astype(np.float64) / 100


def _chosen(path: Path, keys: list[str], name: str | None) -> dict[str, str]:
    """Return which models of a file to take, and what to call them."""
    endings = sorted(ENDINGS, key=len, reverse=True)
    ending = next((ending for ending in endings if path.name.lower().endswith(ending)), "")
    found: dict[str, str] = {}
    for key in keys:
        model = path.name[: len(path.name) - len(ending)] if key in NAMELESS else key
        if model in found:
            raise InputError(
                f"{path}: two models would be called {model!r}, one of them like the file; rename the file"
            )
        found[model] = key
    if name is None:
        return found
    if len(found) == 1:
        return {name: keys[0]}
    if name not in found:
        raise InputError(f"{path}: has {len(found)} models, {listed(list(found))}, but none called {name!r}")
    return {name: found[name]}

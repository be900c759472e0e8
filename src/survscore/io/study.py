"""Outcomes and the predictions of several files, brought together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import WORDS, Unit, as_unit, named_in, plural_word, word
from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, plural, warn
from survscore.curves import ExtrapolationKind, InterpolationKind, Monotone, Predicts, SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.io.forms import Form
from survscore.io.outcomes import ObservedFile, labels_in, read_outcomes
from survscore.io.predictions import PredictedFile, predictions_in
from survscore.io.tables import open_table
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pyarrow as pa

FAR = 10.0  # predictions that end so many times before, or after, all follow-up does are of another unit, or odd
Source = Path | str | tuple[str | None, Path | str] | tuple[str | None, Path | str, Form]


@dataclass(frozen=True, eq=False)
class Study:
    """What `score`, `compare` and `report` need.

    Attributes
    ----------
    outcomes : Outcomes
        In the order of their file.
    models : dict of str to SurvivalCurves, or IncidenceCurves for predictions by cause
        For the same individuals in the same order.
    ids : pyarrow.Array or None
        Who they are.
    groups : ndarray or None
        Who belongs together.
    censoring : SurvivalCurves or None
        Curves of a censoring model, where they were given.
    files : dict
        What came from where, and what files of predictions were said to look like.
    by : dict of str to ndarray, or None
        The segmenting columns, where some were named.
    unit : str or None
        The unit of all times, where it is known.
    reference : SurvivalCurves or None
        Curves that statuses are projected by, where they were given.
    """

    outcomes: Outcomes
    models: dict[str, SurvivalCurves | IncidenceCurves]
    ids: pa.Array | None
    groups: NDArray[Any] | None
    censoring: SurvivalCurves | None
    files: dict[str, Any]
    by: dict[str, NDArray[Any]] | None = None
    unit: Unit | None = None
    reference: SurvivalCurves | None = None

    @property
    def time_unit(self) -> str | None:
        """What times are counted in, in words: ``"days"``."""
        return plural_word(self.unit)


def read_study(
    outcomes: Path | str,
    predictions: Path | str | Sequence[Source] = (),
    *,
    censoring: Path | str | tuple[Path | str, Form] | None = None,
    censoring_interpolation: InterpolationKind | None = None,
    reference: Path | str | tuple[Path | str, Form] | None = None,
    id: str | None = None,
    by_order: bool = False,
    allow_extra: bool = False,
    grid: ArrayLike | None = None,
    columns: str | None = None,
    interpolation: InterpolationKind | None = None,
    extrapolation: ExtrapolationKind | None = None,
    monotone: Monotone = "check",
    predicts: Predicts = "survival",
    percent: bool = False,
    transposed: bool = False,
    long: bool = False,
    predictions_unit: Unit | str | None = None,
    progress: Progress | None = None,
    **outcome_columns: Any,
) -> Study:
    r"""Read outcomes and predictions, and match their rows: by id where files have one, by order where none has.

    Parameters
    ----------
    outcomes : path
        See `read_outcomes`.
    predictions : path, or sequence of paths, of pairs (name, path), or of triples (name, path, form)
        See `read_predictions`; none, if the outcomes' file holds the predictions too. A `Form` is for a file that
        looks otherwise than the arguments below say.
    censoring : path, or pair (path, form), optional
        Predictions of a censoring model, P(C* > t); of the arguments below, `grid`, `columns`, `monotone` and
        `predictions_unit` are about it, too.
    censoring_interpolation : {"linear", "step", "constant-hazard"}, optional
        How to read these between grid points; by default what the file says, or ``"linear"``.
    reference : path, or pair (path, form), optional
        Predictions that statuses are projected by (`Projected`), one model; the arguments below are about it, too.
    id : str, optional
        The column of ids in all files; by default ``id``.
    by_order : bool
        Match rows by order, whatever ids there are.
    allow_extra : bool
        Whether predictions for individuals of whom there is no outcome are left out, instead of refused.
    grid, columns, interpolation, extrapolation, monotone, predicts, percent, transposed, long
        See `read_predictions`.
    predictions_unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        The unit of the predictions' times, which are converted to that of the outcomes: `unit`, which is ``"D"`` for
        those from dates.
    progress : callable, optional
        Called with (done, total, what is being done).
    **outcome_columns
        The other arguments of `read_outcomes`.

    Returns
    -------
    Study

    Warns
    -----
    UserWarning
        If the times of predictions and of outcomes look as if they had different units.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from survscore.io import read_study
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "outcomes.csv").write_text("id,time,event,censoring_time\na,1,1,4\nb,3,0,3\n")
    >>> _ = (folder / "cox.csv").write_text("id,2,3\nb,0.9,0.8\na,0.5,0.2\n")
    >>> read_study(folder / "outcomes.csv", [folder / "cox.csv"]).models["cox"].probabilities
    array([[0.5, 0.2],
           [0.9, 0.8]])
    """
    form = Form(
        grid, columns, interpolation, extrapolation, monotone, predicts, percent, transposed, long, predictions_unit
    )
    paths = [predictions] if isinstance(predictions, (str, Path)) else predictions
    sources = [_as_source(path, form) for path in paths] or [(None, outcomes, form)]
    total = 1 + len(sources) + (censoring is not None) + (reference is not None)
    identified: str | Literal[False] | None = False if by_order else id
    progress = progress or silent
    progress(0, total, f"reading {Path(outcomes).name}")
    file = open_table(outcomes, text=labels_in(identified, outcome_columns.get("groups"), outcome_columns.get("by")))
    observed = read_outcomes(file, id=identified, **outcome_columns)
    unit = outcome_columns.get("unit") or (None if outcome_columns.get("cutoff") is None else "D")
    to = None if unit is None else as_unit("unit", unit)

    def read(done: int, name: str | None, path: Path | str, its_form: Form) -> PredictedFile:
        """Read predictions, in the order of the outcomes."""
        progress(done, total, f"reading {Path(path).name}")
        if its_form.unit is not None and to is None:
            raise InputError("`predictions_unit` needs `unit`, that of the outcomes' times, to convert predictions to")
        source = file if path == outcomes else path  # one file for all is read once
        predicted = predictions_in(source, name, its_form, to, identified)
        rows = _matching_rows(observed, predicted, allow_extra=allow_extra)
        models = {model: curves if rows is None else curves[rows] for model, curves in predicted.models.items()}
        return replace(predicted, models=models)

    models: dict[str, SurvivalCurves | IncidenceCurves] = {}
    read_from: dict[str, str] = {}
    forms: dict[str, dict[str, Any]] = {}
    took_grid = grid is None
    for done, (name, path, its_form) in enumerate(sources, start=1):
        predicted = read(done, name, path, its_form)
        if its_form.grid is grid:
            took_grid |= predicted.took_grid
        elif its_form.grid is not None and not predicted.took_grid:
            raise InputError(f"{path}: a grid is for list columns, and there is none")
        for model, curves in predicted.models.items():
            if model in models:
                raise InputError(
                    f"two models are called {model!r}, in {read_from[model]} and {path}; name one: NAME={path}"
                )
            models[model], read_from[model] = curves, str(path)
            if its_form.settings:
                forms[model] = its_form.settings
        _warn_if_times_do_not_fit(observed.outcomes, to, predicted)
    files: dict[str, Any] = {"outcomes": str(outcomes), "predictions": read_from, **({"forms": forms} if forms else {})}
    others: dict[str, SurvivalCurves] = {}
    shared = Form(grid, columns, None, None, monotone, unit=predictions_unit)
    for what, given, usual_form in (("censoring", censoring, shared), ("reference", reference, form)):
        if given is None:
            continue
        path, its_form = given if isinstance(given, tuple) else (given, usual_form)
        if what == "censoring":
            its_form = replace(its_form, interpolation=censoring_interpolation or its_form.interpolation)
        predicted = read(1 + len(sources) + len(others), None, path, its_form)
        took_grid |= predicted.took_grid
        others[what], files[what] = _only_model(predicted, what), str(path)
    if not took_grid:
        raise InputError("a grid is for list columns, and no file has one")
    progress(total, total, "read")
    return Study(
        observed.outcomes,
        models,
        observed.ids,
        observed.groups,
        others.get("censoring"),
        files,
        observed.by,
        to,
        others.get("reference"),
    )


def _only_model(predicted: PredictedFile, what: str) -> SurvivalCurves:
    """Return the one model of a file, which is what it was named for."""
    curves = next(iter(predicted.models.values()))
    if len(predicted.models) != 1:
        raise InputError(f"{predicted.path}: must hold one {what} model, not {len(predicted.models)}")
    if isinstance(curves, IncidenceCurves):
        raise InputError(f"{predicted.path}: must hold one {what} model, not predictions by cause")
    return curves


def _as_source(given: Source, form: Form) -> tuple[str | None, Path | str, Form]:
    if isinstance(given, (str, Path)):
        return None, given, form
    return (*given, form) if len(given) == 2 else given


def _matching_rows(
    observed: ObservedFile, predicted: PredictedFile, *, allow_extra: bool = False
) -> NDArray[np.intp] | None:
    """Return the row of the predictions that belongs to each outcome; None, where they are in the same order."""
    ids, theirs = observed.ids, predicted.ids
    if ids is None and predicted.names_are_ids:
        theirs = None
    if ids is None and theirs is None:
        rows_there = len(next(iter(predicted.models.values())))
        n = len(observed.outcomes) if observed.left_out is None else observed.left_out.size
        if rows_there != n:
            raise InputError(f"{predicted.path} has {plural(rows_there, 'row')}, but {observed.path} has {n}")
        return None if observed.left_out is None else np.flatnonzero(~observed.left_out)
    if ids is None or theirs is None:
        without, other = (observed, predicted) if ids is None else (predicted, observed)
        raise InputError(
            f"{other.path} has ids, {without.path} has none: `id` names the column, `by_order=True` matches "
            "rows by their order"
        )

    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.type != theirs.type:  # whole numbers in one file, text in the other
        ids, theirs = ids.cast(pa.string()), theirs.cast(pa.string())
    if ids.equals(theirs):
        return None
    positions = pc.index_in(ids, value_set=theirs)
    if positions.null_count:
        first = ids.filter(positions.is_null())[0].as_py()
        raise InputError(
            f"{predicted.path}: {positions.null_count} of the {len(ids)} ids in {observed.path} are missing, "
            f"the first {first!r}"
        )
    if len(theirs) > len(ids) and not allow_extra:
        known = ids if observed.left_out_ids is None else pa.concat_arrays([ids, observed.left_out_ids.cast(ids.type)])
        extra = theirs.filter(pc.invert(pc.is_in(theirs, value_set=known)))
        if len(extra):
            raise InputError(
                f"{predicted.path}: {len(extra)} of {len(theirs)} ids are not in {observed.path}, "
                f"the first {extra[0].as_py()!r}; `allow_extra=True` leaves them out"
            )
    rows = positions.to_numpy().astype(np.intp)
    return None if len(theirs) == len(ids) and np.array_equal(rows, np.arange(len(rows))) else rows


def _warn_if_times_do_not_fit(y: Outcomes, unit: Unit | None, predicted: PredictedFile) -> None:
    """Warn if the unit of the predictions' times seems to be another than that of the outcomes.

    That is so if the columns are named by another unit, or if predictions end long before or long after follow-up
    does; unless the user said what the unit is.
    """
    form = predicted.form
    if form.unit is not None:
        return
    named = named_in(form.columns) if form.columns else None
    advice = f"`predictions_unit={word(named)!r}`" if named else f"`predictions_unit` ({', '.join(WORDS)})"
    if named and unit and named != unit:
        warn(
            f"{predicted.path}: columns are named like {form.columns!r}, but outcomes are in {word(unit)}s, and so are "
            f"the predictions taken to be; {advice} converts them",
        )
        return
    longest = longest_follow_up(y)
    for model, curves in predicted.models.items():
        last = float(curves.times[-1])
        if longest > 0 and last > 0 and not 1 / FAR <= last / longest <= FAR:
            warn(
                f"{predicted.path}: predictions of {model!r} end at {last:g}, but the longest follow-up is "
                f"{longest:g}: are both in the same unit of time? If not, {advice} converts them",
            )
            return


def longest_follow_up(y: Outcomes) -> float:
    """Return the largest censoring time, or the largest time where these are not known."""
    ends = y.time if y.censoring_time is None else y.censoring_time
    finite = ends[np.isfinite(ends)]
    return float(finite.max() if finite.size else y.time.max())

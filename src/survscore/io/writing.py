"""Outcomes, predictions and tables to files, each whole or not at all; files of simulated individuals.

Tables may be opened by spreadsheets: names that others have chosen must not be formulas there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, check_length, shown, without_controls
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.io.files import written_whole
from survscore.io.layouts import METADATA
from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS, arrow
from survscore.outcomes import Outcomes
from survscore.simulate import CompetingRisksStudy, ConstantHazardStudy, Sample, SineConstantAcceleratingStudy

if TYPE_CHECKING:
    import pandas as pd

#: A sign that begins a formula, also a full-width one, and also after blanks, marks and what can't be seen. The
#: report's script goes by the same rule.
FORMULA = re.compile(r"[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
N_TIMES = 50  # of simulated predictions

SimulatedStudy = Literal["simple", "complicated", "independent", "constant", "competing"]
Ending = Literal["csv", "parquet"]


def write_outcomes(path: Path | str, y: Outcomes, *, ids: ArrayLike | None = None) -> None:
    """Write outcomes with columns id, time, event and censoring_time, as `read_outcomes` takes them.

    Under competing risks event is the number of the cause; ``read_outcomes(causes=y.causes)`` gives them their names.

    Parameters
    ----------
    path : path
        Ending in .csv or .parquet.
    y : Outcomes
        What was observed.
    ids : array_like, optional
        Who they are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import survscore as ss
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "outcomes.csv"
    >>> ss.io.write_outcomes(path, ss.Outcomes([1, 3], [1, 0], [4, 3]))
    >>> print(path.read_text(), end="")
    time,event,censoring_time
    1.0,1,4.0
    3.0,0,3.0
    """
    import pandas as pd

    frame = pd.DataFrame({"time": y.time, "event": y.event.astype(np.int8) if y.cause is None else y.cause})
    if y.censoring_time is not None:
        frame["censoring_time"] = y.censoring_time
    write_frame(path, _with_ids(frame, ids))


def write_predictions(
    path: Path | str, models: Mapping[str, SurvivalCurves | IncidenceCurves], *, ids: ArrayLike | None = None
) -> None:
    """Write predictions as `read_predictions` takes them.

    A CSV file gets a column for every model and time; a Parquet file a list column for every model, with its grid and
    how it is read between grid points in the column's metadata. Incidences of causes get a column for every model,
    cause and time in both.

    Parameters
    ----------
    path : path
        Ending in .csv or .parquet.
    models : mapping of str to SurvivalCurves, or to IncidenceCurves
        Of the same individuals. A CSV file says nothing of `interpolation` and `extrapolation`.
    ids : array_like, optional
        Who they are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import survscore as ss
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "models.csv"
    >>> curves = ss.SurvivalCurves([[0.9, 0.8]], [30, 60])
    >>> ss.io.write_predictions(path, {"net": curves, "cox": curves})
    >>> print(path.read_text(), end="")
    net:30,net:60,cox:30,cox:60
    0.9,0.8,0.9,0.8
    >>> ss.io.write_predictions(path, {"net": ss.IncidenceCurves({"churn": [[0.1]], "fraud": [[0.2]]}, [30])})
    >>> print(path.read_text(), end="")
    churn@30,fraud@30
    0.1,0.2
    """
    import pandas as pd

    if not models:
        raise InputError("models is empty")
    if "id" in models:
        raise InputError("models must not be called 'id', the name of the column of ids")
    sizes = {name: len(curves) for name, curves in models.items()}
    first = next(iter(sizes))
    for name, size in sizes.items():
        check_length(f"the curves of {name!r}", size, f"that of {first!r}", sizes[first])
    of_causes = {name: curves for name, curves in models.items() if isinstance(curves, IncidenceCurves)}
    event_free = {name: curves for name, curves in models.items() if isinstance(curves, SurvivalCurves)}
    if of_causes and event_free:
        raise InputError("models must all be SurvivalCurves, or all IncidenceCurves, in one file")
    if _is_parquet(path) and not of_causes:
        _write_lists(Path(path), event_free, ids)
        return
    parts = []
    for name, curves in models.items():
        before = f"{name}:" if len(models) > 1 else ""
        # float32 in the digits of float64, so that a reader, who knows no float32, finds the same values
        values = curves.probabilities.astype(np.float64).reshape(len(curves), -1)
        causes = [f"{cause}@" for cause in curves.causes] if isinstance(curves, IncidenceCurves) else [""]
        times = [repr(float(time)).removesuffix(".0") for time in curves.times]
        parts.append(pd.DataFrame(values, columns=[before + cause + time for cause in causes for time in times]))
    settings = [_settings(curves) for curves in of_causes.values()] or [{}]
    if any(one != settings[0] for one in settings):  # which a file can say once
        raise InputError("models that are read otherwise between or beyond their times need files of their own")
    write_frame(path, _with_ids(pd.concat(parts, axis=1), ids), settings=settings[0])


def _settings(curves: SurvivalCurves | IncidenceCurves) -> dict[str, str]:
    """Return how predictions are read between and beyond their times."""
    between = {} if curves.default_interpolation else {"interpolation": curves.interpolation}
    return {**between, "extrapolation": curves.extrapolation}


def write_frame(path: Path | str, frame: pd.DataFrame, *, settings: Mapping[str, Any] | None = None) -> None:
    """Write a table as CSV or Parquet; a Parquet file carries the settings in its metadata.

    Parameters
    ----------
    path : path
        Ending in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .pq.
    frame : pandas.DataFrame
        What to write.
    settings : mapping, optional
        How it was made.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> import survscore as ss
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> ss.io.write_frame(path, pd.DataFrame({"time": [1.5], "score": [0.25]}))
    >>> print(path.read_text(), end="")
    time,score
    1.5,0.25
    """
    if not _is_parquet(path):
        with written_whole(Path(path)) as temporary:
            tabs = Path(path).name.lower().endswith((".tsv", ".tsv.gz"))
            frame.to_csv(temporary, index=False, sep="\t" if tabs else ",", quoting=_quoting(frame))
        return
    table = arrow().Table.from_pandas(frame, preserve_index=False)
    _write_parquet(Path(path), table.replace_schema_metadata({METADATA: json.dumps(dict(settings or {}))}))


def _write_lists(path: Path, models: Mapping[str, SurvivalCurves], ids: ArrayLike | None) -> None:
    pa = arrow()
    arrays, fields = [], []
    if ids is not None:
        labels = np.asarray(ids)
        check_length("ids", labels.size, "the data", len(next(iter(models.values()))))
        arrays.append(pa.array(labels))
        fields.append(pa.field("id", arrays[0].type))
    for name, curves in models.items():
        flat = pa.array(curves.probabilities.reshape(-1))
        arrays.append(pa.FixedSizeListArray.from_arrays(flat, curves.times.size))
        settings = {"grid": curves.times.tolist(), **_settings(curves)}
        fields.append(pa.field(name, arrays[-1].type, metadata={METADATA: json.dumps(settings)}))
    schema = pa.schema(fields, metadata={METADATA: json.dumps({"survscore": __version__})})
    _write_parquet(path, pa.Table.from_arrays(arrays, schema=schema))


def _write_parquet(path: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    with written_whole(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True)


def _is_parquet(path: Path | str) -> bool:
    name = Path(path).name.lower()
    if not name.endswith(CSV_ENDINGS + PARQUET_ENDINGS):
        raise InputError(f"{path}: the ending must say what to write: .csv or .parquet")
    return name.endswith(PARQUET_ENDINGS)


def _with_ids(frame: pd.DataFrame, ids: ArrayLike | None) -> pd.DataFrame:
    if ids is not None:
        labels = np.asarray(ids)
        check_length("ids", labels.size, "the data", len(frame))
        frame.insert(0, "id", labels)
    return frame


def as_text(text: str) -> str:
    """Return text that a spreadsheet shows as it is: a quotation mark in front of what it would take for a formula.

    Examples
    --------
    >>> [as_text(text) for text in ("net", "=1+1", " @SUM(A1)", "-2.5", "-2+3")]
    ['net', "'=1+1", "' @SUM(A1)", '-2.5', "'-2+3"]
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def _quoting(table: pd.DataFrame) -> Literal[0, 2]:
    """Return how the cells of a CSV file are quoted: all text, if some holds a carriage return.

    Python's writer leaves that as it is; a spreadsheet begins a new row there, whose first cell may be a formula.
    """
    texts = [*table.columns, *(value for name in _of_objects(table) for value in table.iloc[:, name].unique())]
    return csv.QUOTE_NONNUMERIC if any("\r" in text for text in map(str, texts)) else csv.QUOTE_MINIMAL


def _of_objects(table: pd.DataFrame) -> list[int]:
    """Return the positions of columns that may hold text, categories too."""
    return [position for position, kind in enumerate(table.dtypes) if kind.kind not in "biufcmM"]


def without_formulas(table: pd.DataFrame, *, printable: bool = False) -> pd.DataFrame:
    """Return a table for a CSV file, its text and the names of its columns by `as_text`; numbers stay numbers.

    With `printable` also control characters are spelt out, which would do something to a terminal.
    """

    def safe(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return as_text(without_controls(value) if printable else value)

    changed = table.copy(deep=False)
    for position in _of_objects(table):
        changed.isetitem(position, [safe(value) for value in table.iloc[:, position]])
    return changed.set_axis([safe(name) for name in table.columns], axis=1)


def write_study(
    folder: Path | str, study: SimulatedStudy, n: int, seed: int, ending: Ending, cutoff: str | None = None
) -> list[Path]:
    """Write outcomes, two predictions and covariates of simulated individuals.

    Parameters
    ----------
    folder : path
        Is made if it is not there.
    study : {"simple", "complicated", "independent", "constant", "competing"}
        `SineConstantAcceleratingStudy` with that censoring, `ConstantHazardStudy`, or `CompetingRisksStudy`.
    n, seed : int
        How many individuals, and which.
    ending : {"csv", "parquet"}
        Of the files.
    cutoff : str, optional
        A date: outcomes are then dates up to it, in seconds, in place of times in days. Of competing causes these are
        dates of the end, beside the cause.

    Returns
    -------
    list of Path
        Of outcomes, truth, leaking and covariates.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import survscore as ss
    >>> paths = ss.io.write_study(pathlib.Path(tempfile.mkdtemp()), "simple", n=50, seed=1, ending="csv")
    >>> [path.name for path in paths]
    ['outcomes.csv', 'truth.csv', 'leaking.csv', 'covariates.csv']
    """
    end = None if cutoff is None else _as_date(cutoff)
    if study == "constant":
        sample = ConstantHazardStudy().sample(n, seed)
    elif study == "competing":
        sample = CompetingRisksStudy().sample(n, seed)
    else:
        sample = SineConstantAcceleratingStudy(censoring=study).sample(n, seed)
    ids = np.arange(1, n + 1)
    grid = np.linspace(100.0 / N_TIMES, 100.0, N_TIMES)
    paths = study_files(folder, ending)
    if end is None:
        write_outcomes(paths[0], sample.outcomes, ids=ids)
    else:
        _write_dates(paths[0], sample, ids, end)
    truth, leaking = _incidences(sample, grid) if sample.outcomes.causes else _survival(sample, grid)
    write_predictions(paths[1], {"truth": truth}, ids=ids)
    write_predictions(paths[2], {"leaking": leaking}, ids=ids)
    covariates = sample.covariates.copy()
    covariates.insert(0, "id", ids)
    write_frame(paths[3], covariates)
    return paths


def _survival(sample: Sample, grid: NDArray[np.float64]) -> tuple[SurvivalCurves, SurvivalCurves]:
    """Return the true survival, and the same with zero from each individual's C* on."""
    truth = SurvivalCurves(sample.survival(grid).probabilities.astype(np.float64), grid)
    return truth, SurvivalCurves(truth.probabilities * sample.censoring(grid).probabilities, grid)


def _incidences(sample: Sample, grid: NDArray[np.float64]) -> tuple[IncidenceCurves, IncidenceCurves]:
    """Return the true incidences, and the same with a certain event from each individual's C* on.

    Its causes have the shares that they have at C*, which is what IPCW scores prefer.
    """
    truth = sample.incidence(grid)
    # what is read by straight lines falls after C*, not before: from the first grid time on that is not earlier
    known = sample.censoring(np.concatenate(([0.0], grid[:-1]))).probabilities > 0
    at_end = np.minimum(known.sum(axis=1), grid.size - 1)
    there = np.take_along_axis(truth.probabilities, at_end[:, None, None], axis=2)
    certain = np.where(known[:, None], truth.probabilities, there / there.sum(axis=1, keepdims=True))
    return truth, IncidenceCurves(certain, grid, causes=truth.causes)


def study_files(folder: Path | str, ending: Ending) -> list[Path]:
    """Return which files `write_study` writes."""
    return [Path(folder) / f"{name}.{ending}" for name in ("outcomes", "truth", "leaking", "covariates")]


def _as_date(cutoff: str) -> pd.Timestamp:
    import pandas as pd

    try:
        if not re.match(r"\d{4}-\d\d-\d\d", cutoff):
            raise ValueError
        end = pd.Timestamp(cutoff).as_unit("ns")  # as durations are, which pandas 3 no longer does by itself
        end - pd.Timedelta(days=101)  # the earliest start must be a date, too
    except (ValueError, OverflowError):
        raise InputError(f"cutoff must be a date like 2017-01-29, not {shown(cutoff)!r}") from None
    return end


def _write_dates(path: Path, sample: Sample, ids: NDArray[np.int64], end: pd.Timestamp) -> None:
    import pandas as pd

    y = sample.outcomes
    if y.censoring_time is None:
        raise TypeError("a sample's outcomes carry censoring times")
    start = end - pd.to_timedelta(y.censoring_time, unit="D").round("s")
    event = (start + pd.to_timedelta(y.time, unit="D").round("s")).where(y.event)
    # rounding must not put an event after the cut-off, where it would count as not seen
    event = event.where(~y.event | (event <= end), end)
    dated = {"id": ids, "start": start}
    if y.cause is None:
        write_frame(path, pd.DataFrame({**dated, "event_date": event}))
    else:
        write_frame(path, pd.DataFrame({**dated, "end": event, "event": y.cause}))

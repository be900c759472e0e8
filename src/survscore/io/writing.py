"""Outcomes, predictions and tables to files, each whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._validation import InputError, check_length
from survscore._version import __version__
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.io.files import written_whole
from survscore.io.layouts import METADATA
from survscore.io.spreadsheets import quoting
from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS, arrow
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd


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
        parts.append(pd.DataFrame(values, columns=[before + c + _as_text(t) for c in causes for t in curves.times]))
    write_frame(path, _with_ids(pd.concat(parts, axis=1), ids), settings=_read_alike(of_causes))


def _read_alike(models: Mapping[str, IncidenceCurves]) -> dict[str, str] | None:
    """Return how all models are read between and beyond their times, which a file can say once."""
    if not models:
        return None
    said: list[dict[str, str]] = [
        {
            **({} if one.default_interpolation else {"interpolation": one.interpolation}),
            "extrapolation": one.extrapolation,
        }
        for one in models.values()
    ]
    if any(one != said[0] for one in said):
        raise InputError("models that are read otherwise between or beyond their times need files of their own")
    return said[0]


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
            frame.to_csv(temporary, index=False, sep="\t" if tabs else ",", quoting=quoting(frame))
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
        says = {
            "grid": curves.times.tolist(),
            **({} if curves.default_interpolation else {"interpolation": curves.interpolation}),
            "extrapolation": curves.extrapolation,
        }
        fields.append(pa.field(name, arrays[-1].type, metadata={METADATA: json.dumps(says)}))
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


def _as_text(time: float) -> str:
    return repr(float(time)).removesuffix(".0")

"""Files of simulated individuals, to try things out with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, shown
from survscore.curves import SurvivalCurves
from survscore.io.writing import write_frame, write_outcomes, write_predictions
from survscore.simulate import ConstantHazardStudy, Sample, SineConstantAcceleratingStudy

if TYPE_CHECKING:
    import pandas as pd

N_TIMES = 50

SimulatedStudy = Literal["simple", "complicated", "independent", "constant"]
Ending = Literal["csv", "parquet"]


def write_study(
    folder: Path | str, study: SimulatedStudy, n: int, seed: int, ending: Ending, cutoff: str | None = None
) -> list[Path]:
    """Write outcomes, two predictions and covariates of simulated individuals.

    Parameters
    ----------
    folder : path
        Is made if it is not there.
    study : {"simple", "complicated", "independent", "constant"}
        `SineConstantAcceleratingStudy` with that censoring, or `ConstantHazardStudy`.
    n, seed : int
        How many individuals, and which.
    ending : {"csv", "parquet"}
        Of the files.
    cutoff : str, optional
        A date: outcomes are then dates up to it, in seconds, in place of times in days.

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
    drawn = ConstantHazardStudy() if study == "constant" else SineConstantAcceleratingStudy(censoring=study)
    sample = drawn.sample(n, seed)
    ids = np.arange(1, n + 1)
    grid = np.linspace(100.0 / N_TIMES, 100.0, N_TIMES)
    truth = SurvivalCurves(sample.survival(grid).probabilities.astype(np.float64), grid)
    known = sample.censoring(grid).probabilities
    paths = study_files(folder, ending)
    if end is None:
        write_outcomes(paths[0], sample.outcomes, ids=ids)
    else:
        _write_dates(paths[0], sample, ids, end)
    write_predictions(paths[1], {"truth": truth}, ids=ids)
    write_predictions(paths[2], {"leaking": SurvivalCurves(truth.probabilities * known, grid)}, ids=ids)
    covariates = sample.covariates.copy()
    covariates.insert(0, "id", ids)
    write_frame(paths[3], covariates)
    return paths


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
    write_frame(path, pd.DataFrame({"id": ids, "start": start, "event_date": event}))

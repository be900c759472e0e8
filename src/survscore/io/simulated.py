"""Files of simulated individuals, to try things out with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, shown
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.io.writing import write_frame, write_outcomes, write_predictions
from survscore.simulate import CompetingRisksStudy, ConstantHazardStudy, Sample, SineConstantAcceleratingStudy

if TYPE_CHECKING:
    import pandas as pd

N_TIMES = 50

SimulatedStudy = Literal["simple", "complicated", "independent", "constant", "competing"]
Ending = Literal["csv", "parquet"]


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
    sample = _drawn(study).sample(n, seed)
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


def _drawn(study: SimulatedStudy) -> ConstantHazardStudy | CompetingRisksStudy | SineConstantAcceleratingStudy:
    if study == "constant":
        return ConstantHazardStudy()
    return CompetingRisksStudy() if study == "competing" else SineConstantAcceleratingStudy(censoring=study)


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

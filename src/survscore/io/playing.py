"""Simulated files to play with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from survscore._validation import InputError
from survscore.curves import SurvivalCurves
from survscore.io.writing import write_frame, write_outcomes, write_predictions
from survscore.simulate import ConstantHazardStudy, Sample, SineConstantAcceleratingStudy

N_TIMES = 50


def write_study(folder: Path, study: str, n: int, seed: int, ending: str, cutoff: str | None = None) -> list[Path]:
    """Write outcomes, two predictions and covariates of simulated individuals.

    Parameters
    ----------
    folder : Path
        Which exists.
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
    drawn = ConstantHazardStudy() if study == "constant" else SineConstantAcceleratingStudy(censoring=study)
    sample = drawn.sample(n, seed)
    ids = np.arange(1, n + 1)
    grid = np.linspace(100.0 / N_TIMES, 100.0, N_TIMES)
    truth = SurvivalCurves(sample.survival(grid).probabilities.astype(np.float64), grid)
    known = sample.censoring(grid).probabilities
    paths = [folder / f"{name}.{ending}" for name in ("outcomes", "truth", "leaking", "covariates")]
    if cutoff is None:
        write_outcomes(paths[0], sample.outcomes, ids=ids)
    else:
        _write_dates(paths[0], sample, ids, cutoff)
    write_predictions(paths[1], {"truth": truth}, ids=ids)
    write_predictions(paths[2], {"leaking": SurvivalCurves(truth.probabilities * known, grid)}, ids=ids)
    covariates = sample.covariates.copy()
    covariates.insert(0, "id", ids)
    write_frame(paths[3], covariates)
    return paths


def _write_dates(path: Path, sample: Sample, ids: np.ndarray, cutoff: str) -> None:
    import pandas as pd

    try:
        end = pd.Timestamp(cutoff)
    except ValueError:
        raise InputError(f"cutoff must be a date like 2017-01-29, not {cutoff!r}") from None
    y = sample.outcomes
    if y.censoring_time is None:
        raise TypeError("a sample's outcomes carry censoring times")
    start = end - pd.to_timedelta(y.censoring_time, unit="D").round("s")
    event = (start + pd.to_timedelta(y.time, unit="D").round("s")).where(y.event)
    # rounding must not put an event after the cut-off, where it would count as not seen
    event = event.where(~y.event | (event <= end), end)
    write_frame(path, pd.DataFrame({"id": ids, "start": start, "event_date": event}))

"""The paper's real study: churn of KKBox's customers, on prepared data or on synthetic ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore.datasets import kkbox
from survscore.datasets.kkbox.prepared import split
from survscore.io.files import temporary_folder
from survscore.paper import studies as s
from survscore.simulate import mean_squared_error
from survscore.weighting import IPCW, Administrative, Weighting

if TYPE_CHECKING:
    import pandas as pd

STUDY = "kkbox"
CAPS = (1.0, 10.0, 100.0, 1000.0)
UNCAPPED = "IPCW, Logistic-Hazard, any weight"
#: Kinds of rows besides those of the simulations: mean squared error against the truth, where that is known, and
#: differences integrated over the last third of the times only.
ERROR, LATE = "error", "late"
N_EVALUATIONS = 100
#: Synthetic customers per spell wanted, to have enough of them after some are dropped.
CUSTOMERS_PER_SPELL = 1.1

SIZES = {
    size.name: size
    for size in (
        s.Size("paper", 100_000, 20_000, 100_000, n_times=150, epochs=63),
        s.Size("quick", 2_000, 600, 2_000, n_times=30, epochs=3),
    )
}


def capped(cap: float) -> str:
    """Return the name of the score with a Logistic-Hazard censoring model and this cap."""
    return f"IPCW, Logistic-Hazard, weights up to {cap:g}"


def run(size: s.Size, seeds: s.Seeds, report: s.Report, data: Path | None = None) -> pd.DataFrame:
    """Fit both methods and a censoring model to churn data, and score them under every weighting.

    Parameters
    ----------
    size : Size
        Rows of each part, and of the nets.
    seeds : Seeds
        Of the split, the nets, and synthetic data.
    report : callable
        Called with what is being done.
    data : Path, optional
        Prepared data; without it synthetic ones are made, whose truth is known.
    """
    import pandas as pd

    report("reading data" if data else "synthesizing data")
    frame, truth = (kkbox.read(data), None) if data else _synthetic(size, seeds)
    sizes = {"training": size.training, "validation": size.validation, "test": size.test}
    parts = split(frame, by="msno", sizes=sizes, seed=seeds.study)
    if sum(part["msno"].nunique() for part in parts.values()) != pd.concat(parts.values())["msno"].nunique():
        raise RuntimeError("a customer is in two parts")
    outcomes = {name: kkbox.outcomes_of(part) for name, part in parts.items()}
    covariates = {name: part[[*kkbox.NUMERIC, *kkbox.CATEGORICAL]] for name, part in parts.items()}
    end = float(outcomes["training"].time.max())
    times = np.linspace(0.0, 0.97 * end, N_EVALUATIONS + 1)[1:]
    fitted_to = [(covariates[name], outcomes[name]) for name in ("training", "validation")]
    settings: dict[str, Any] = {
        "preset": "paper", "times": np.linspace(0.0, end, size.n_times + 1)[1:], "n_layers": 6, "width": 128,
        "epochs": size.epochs, "random_state": seeds.nets, "device": "auto", "progress": False,
    }  # fmt: skip
    curves: dict[str, Any] = dict(s.both_methods(settings, fitted_to, covariates["test"], times, report))
    estimated = s.censoring_model(settings, fitted_to, report).predict_curves(covariates["test"])
    report("scoring")
    tables = []
    if truth is not None:
        true = kkbox.true_survival(parts["test"], truth, times)
        curves[s.TRUTH] = true
        for name in (s.HAZARD, s.BCE):
            errors = mean_squared_error(true, curves[name], times)
            tables.append(s.rows(ERROR, model=name, time=times, value=errors))
    weightings: dict[str, Weighting] = {s.IPCW_KM: IPCW(), s.ADMINISTRATIVE: Administrative()}
    weightings |= {capped(cap): IPCW(estimated, max_weight=cap) for cap in CAPS}
    groups = parts["test"]["msno"].factorize()[0]
    late = float(times[-1]) * 2 / 3
    for loss in s.LOSSES:
        tables += s.compared(
            outcomes["test"], curves, weightings, loss, (s.HAZARD,), times=times, groups=groups,
            ranges={s.INTEGRATED: (None, None), LATE: (late, None)},
        )  # fmt: skip
        # alone, since means end for all where one score does, and weights without a cap may soon be infinite
        tables += s.compared(
            outcomes["test"], curves, {UNCAPPED: IPCW(estimated)}, loss, (s.HAZARD,), times=times, groups=groups
        )
        tables += s.projected(outcomes["test"], curves, loss, times, groups)
    return pd.concat(tables, ignore_index=True)[s.COLUMNS]


def _synthetic(size: s.Size, seeds: s.Seeds) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make raw files, prepare them as real ones are, and return the data with their truth."""
    import pandas as pd

    customers = int(CUSTOMERS_PER_SPELL * (size.training + size.validation + size.test)) + 1000
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        kkbox.synthesize(folder, customers=customers, seed=seeds.test)
        kkbox.prepare(folder, folder / "prepared.parquet")
        return kkbox.read(folder / "prepared.parquet"), pd.read_parquet(folder / "truth.parquet", partitioning=None)

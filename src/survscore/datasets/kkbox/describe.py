"""What prepared data are like: follow-up, churn, censoring, and how well covariates predict the censoring time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from survscore.censoring.distributions import KaplanMeierCensoring
from survscore.censoring.product_limit import ProductLimit
from survscore.datasets.kkbox.prepared import CATEGORICAL, NUMERIC, outcomes_of
from survscore.datasets.splitting import split

if TYPE_CHECKING:
    import pandas as pd

HORIZONS = (30.0, 90.0, 180.0, 365.0, 550.0, 730.0)
MOST_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Description:
    """Tables about prepared data.

    Attributes
    ----------
    counts : dict
        Spells, customers, share of events, share of first spells.
    quantiles : pandas.DataFrame
        Of `time` and `censoring_time`.
    horizons : pandas.DataFrame
        At some days: Kaplan-Meier survival, Kaplan-Meier of the censoring, and how many are still under observation or
        have a censoring time that late.
    censoring_r2, censoring_error : float
        How well gradient boosting predicts C* from covariates, out of sample: share of its variance, and mean
        error in days.
    """

    counts: dict[str, float]
    quantiles: pd.DataFrame
    horizons: pd.DataFrame
    censoring_r2: float
    censoring_error: float


def describe(frame: pd.DataFrame, *, seed: int = 0) -> Description:
    """Describe prepared data.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `prepare`.
    seed : int
        Of the customers on whom C* is learnt and checked.

    Returns
    -------
    Description
    """
    import pandas as pd

    y = outcomes_of(frame)
    if y.censoring_time is None:
        raise TypeError("prepared data carry censoring times")
    horizons = np.array([h for h in HORIZONS if h <= y.time.max()] or [float(y.time.max())])
    table = pd.DataFrame(
        {
            "day": horizons,
            "survival": ProductLimit.of_events(y).at(horizons),
            "not censored": KaplanMeierCensoring(y).at(horizons),
            "under observation": [int((y.time >= h).sum()) for h in horizons],
            "C* >= t": [int((y.censoring_time >= h).sum()) for h in horizons],
        }
    )
    r2, error = _told(frame, seed)
    counts = {
        "spells": len(frame),
        "customers": int(frame["msno"].nunique()),
        "share of churn": float(y.event.mean()),
        "share of first spells": float((frame["n_prev_churns"] == 0).mean()),
    }
    return Description(
        counts, frame[["time", "censoring_time"]].quantile([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]), table, r2, error
    )


def _told(frame: pd.DataFrame, seed: int) -> tuple[float, float]:
    """Return R^2 and mean absolute error of predicting C*, on customers not learnt from."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    half = min(len(frame) * 2 // 5, MOST_ROWS)
    if half < 50:
        return float("nan"), float("nan")
    parts = split(frame, by="msno", sizes={"train": half, "test": half}, seed=seed)
    encoded = {
        name: part[[*NUMERIC, *CATEGORICAL]].assign(**{c: part[c].astype("category") for c in CATEGORICAL})
        for name, part in parts.items()
    }
    for column in CATEGORICAL:  # the same codes in both
        encoded["test"][column] = encoded["test"][column].cat.set_categories(encoded["train"][column].cat.categories)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed)
    model.fit(encoded["train"], parts["train"]["censoring_time"])
    truth, found = parts["test"]["censoring_time"].to_numpy(), model.predict(encoded["test"])
    return float(1.0 - np.mean((truth - found) ** 2) / np.var(truth)), float(np.mean(np.abs(truth - found)))

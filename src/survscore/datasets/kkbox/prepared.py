"""Files that `prepare` made: what they hold, what identifies them, how to split them, and what they are like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from survscore._validation import InputError, check_whole
from survscore.censoring.distributions import KaplanMeierCensoring
from survscore.censoring.product_limit import ProductLimit
from survscore.io.files import check_regular
from survscore.outcomes import Outcomes

OUTCOMES = ("time", "event", "censoring_time")
NUMERIC = (
    "n_prev_churns",
    "log_days_between_subs",
    "log_days_since_reg_init",
    "log_payment_plan_days",
    "log_plan_list_price",
    "log_actual_amount_paid",
    "is_auto_renew",
    "is_cancel",
    "age_at_start",
    "strange_age",
    "nan_days_since_reg_init",
    "no_prev_churns",
)
CATEGORICAL = ("city", "gender", "registered_via", "payment_method_id")
DEFAULT_SHARES = {"train": 0.6, "validation": 0.1, "test": 0.3}
HORIZONS = (30.0, 90.0, 180.0, 365.0, 550.0, 730.0)
MOST_ROWS = 50_000


def check(path: Path) -> None:
    """Raise unless a file is one of prepared data."""
    check_regular(path)
    try:
        columns = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} can't be read as Parquet: {str(error).splitlines()[0]}") from None
    absent = [column for column in ("msno", *OUTCOMES, *NUMERIC, *CATEGORICAL) if column not in columns]
    if absent:
        raise InputError(f"{path} was not made by 'survscore kkbox prepare': it lacks the columns {absent}")


def read(path: Path) -> pd.DataFrame:
    """Read a file of prepared data."""
    check(path)
    return pd.read_parquet(path, partitioning=None)  # city=5 in the path is no column


def outcomes_of(frame: pd.DataFrame) -> Outcomes:
    """Return what was observed of the spells."""
    time, event, censoring_time = OUTCOMES
    return Outcomes.from_frame(frame, time=time, event=event, censoring_time=censoring_time)


def digest(path: Path) -> str:
    """Return what identifies the contents of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def split(
    frame: pd.DataFrame, *, by: str, sizes: Mapping[str, float] | None = None, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Split the rows of a frame at random into parts, all rows with the same `by` in the same part.

    Groups are taken in random order, and each part is filled up to its size before the next begins. A part can exceed
    its size by the rest of its last group, at the expense of the last part; rows that are left over are in none.

    Parameters
    ----------
    frame : pandas.DataFrame
        With a column `by`.
    by : str
        What must not be divided, such as the customer.
    sizes : mapping of str to number, optional
        For each part the number of its rows, or its share of all, below 1; by default 0.6 to train, 0.1 for validation
        and 0.3 to test.
    seed : int
        Of the order.

    Returns
    -------
    dict of str to pandas.DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from survscore.datasets.kkbox.prepared import split
    >>> frame = pd.DataFrame({"customer": [1, 1, 2, 3, 3, 3], "x": range(6)})
    >>> parts = split(frame, by="customer", sizes={"train": 0.5, "test": 0.5})
    >>> set(parts["train"]["customer"]) & set(parts["test"]["customer"])
    set()
    """
    if by not in frame.columns:
        raise InputError(f"by: there is no column {by!r}; the columns are {list(frame.columns)}")
    check_whole("seed", seed, 0)
    sizes, n = DEFAULT_SHARES if sizes is None else sizes, len(frame)
    if not sizes:
        raise InputError("sizes must name at least one part")
    shares = all(isinstance(size, float) and 0 < size < 1 for size in sizes.values())
    for name, size in sizes.items():
        if not shares:
            check_whole(f"the size of {name!r}", size, 1)
    total = sum(sizes.values()) * (n if shares else 1)
    if total > n * (1 + 1e-9):
        raise InputError(f"sizes add up to {total:.0f} rows, but there are {n}")
    wanted = {name: max(1, round(size * n)) if shares else int(size) for name, size in sizes.items()}
    codes = frame[by].factorize()[0]
    if (codes < 0).any():
        raise InputError(f"by: column {by!r} has {int((codes < 0).sum())} missing values")
    counts = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(counts.size)
    filled = np.cumsum(counts[order])
    part_of_group: NDArray[np.intp] = np.full(counts.size, -1)
    begun, first = 0, 0
    for number, (name, size) in enumerate(wanted.items()):
        last = int(np.searchsorted(filled, begun + size))
        if last >= counts.size:  # what other parts have taken too much of is missing in the last
            if number + 1 < len(wanted) or first >= counts.size:
                raise InputError(f"there are not enough rows for part {name!r}, since no {by!r} may be divided")
            last = counts.size - 1
        part_of_group[order[first : last + 1]] = number
        begun, first = int(filled[last]), last + 1
    rows = part_of_group[codes]
    return {name: frame[rows == number].reset_index(drop=True) for number, name in enumerate(wanted)}


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
    r2, error = _predicted_end(frame, seed)
    counts = {
        "spells": len(frame),
        "customers": int(frame["msno"].nunique()),
        "share of churn": float(y.event.mean()),
        "share of first spells": float((frame["n_prev_churns"] == 0).mean()),
    }
    return Description(
        counts, frame[["time", "censoring_time"]].quantile([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]), table, r2, error
    )


def _predicted_end(frame: pd.DataFrame, seed: int) -> tuple[float, float]:
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

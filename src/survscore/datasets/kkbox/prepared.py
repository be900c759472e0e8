"""Files that `prepare` made: what they hold, and what identifies them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from survscore._validation import InputError
from survscore.io.files import check_regular
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

OUTCOMES = ("time", "event", "censoring_time")
NUMERIC = (
    "n_prev_churns", "log_days_between_subs", "log_days_since_reg_init", "log_payment_plan_days", "log_plan_list_price",
    "log_actual_amount_paid", "is_auto_renew", "is_cancel", "age_at_start", "strange_age", "nan_days_since_reg_init",
    "no_prev_churns",
)  # fmt: skip
CATEGORICAL = ("city", "gender", "registered_via", "payment_method_id")


def check(path: Path) -> None:
    """Raise unless a file is one of prepared data."""
    import pyarrow as pa
    import pyarrow.parquet as pq

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
    import pandas as pd

    check(path)
    return pd.read_parquet(path, partitioning=None)  # city=5 in the path is no column


def outcomes_of(frame: pd.DataFrame) -> Outcomes:
    """Return what was observed of the spells."""
    time, event, censoring_time = OUTCOMES
    return Outcomes.from_frame(frame, time=time, event=event, censoring_time=censoring_time)


def digest(path: Path) -> str:
    """Return what identifies the contents of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()

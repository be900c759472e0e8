"""KKBox: synthesizing and preparing raw files of the real size, and the same rules in pandas at a tenth of it.

``python benchmarks/kkbox.py [FOLDER]`` needs 8 GB of disk in FOLDER, by default a temporary one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import results
from measure import memory, printed_by
from report import spaced
from results import Row, Run

REAL = 2_400_000
BESIDE_PANDAS = {
    "": "{name}", "times as long": "{seconds:.1f}", "times the memory": "{bytes:.1f}",
    "largest difference": "{difference:.0e}",
}  # fmt: skip
COLUMNS = {"step": "{name}", "seconds": "{seconds}", "peak memory, GB": "{bytes:GB}"}
LAST, AGES = pd.Timestamp("2017-01-29"), pd.Timestamp("2017-03-01")


def main() -> None:
    """Measure each step in a process of its own, and print a table."""
    parser = results.parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where files are made for the while")
    parser.add_argument("--customers", type=int, default=REAL, help="so many in place of the real number")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, folder, *rest = options.step
        print(json.dumps(step(name, Path(folder), *rest)))
        return
    run = Run(parser, options, packages=("numpy", "pandas", "duckdb", "pyarrow"))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        rows, pandas = step_rows(Path(name), options.customers)
    run.add("steps", COLUMNS, rows, "KKBox")
    run.add("pandas", BESIDE_PANDAS, [pandas], "Beside pandas")
    run.write()


def step_rows(folder: Path, customers: int) -> tuple[list[Row], Row]:
    """Return every step at full size and at a tenth, and what pandas takes beside it there."""
    rows: list[Row] = []
    for label, n in (("full size", customers), ("a tenth", customers // 10)):
        raw = folder / str(n)
        rows.append({"name": f"synthesize, {label}", **measured("synthesize", raw, n)})
        found = measured("prepare", raw)
        rows.append({"name": f"prepare, {label} ({spaced(found['rows'])} transactions)", **found})
    slow = measured("pandas", raw)
    rows.append({"name": f"the same rules in pandas, {label}", **slow})
    ratios = {key: slow[key] / found[key] for key in ("seconds", "bytes")}
    return rows, {"name": "pandas", **ratios, "difference": slow["difference"]}


def measured(step: str, *arguments: Any) -> dict[str, Any]:
    """Run one step in a fresh process."""
    return printed_by(__file__, "--step", step, *arguments)  # type: ignore[no-any-return]


def step(name: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """Do one step, and return its time and memory."""
    from survscore.datasets.kkbox import prepare, synthesize

    begun = time.perf_counter()
    found: dict[str, Any] = {}
    if name == "synthesize":
        synthesize(folder, customers=int(arguments[0]), seed=1)
    elif name == "prepare":
        found["rows"] = prepare(folder, folder / "out.parquet").read["transactions"]
    else:
        frame = in_pandas(folder)
    found["seconds"] = time.perf_counter() - begun
    found["bytes"] = memory("VmHWM")
    if name == "pandas":
        found["difference"] = compare(frame, pd.read_parquet(folder / "out.parquet"))
    return found


def in_pandas(folder: Path) -> pd.DataFrame:
    """Return what `prepare` writes, by data frames in memory."""

    def dates(column: pd.Series) -> pd.Series:
        return pd.to_datetime(column.astype("Int64").astype("string"), format="%Y%m%d")

    t = pd.read_csv(folder / "transactions.csv")
    t["made"], t["expires"] = dates(t.transaction_date), dates(t.membership_expire_date)
    t = t.sort_values(["msno", "made"], kind="stable").reset_index(drop=True)
    t["gap"] = (t.groupby("msno").made.shift(-1) - t.expires).dt.days > 30
    t = t[t.expires >= t.made].reset_index(drop=True)
    t["is_last"] = ~t.msno.duplicated(keep="last")
    t["spell"] = t.groupby("msno").gap.cumsum() - t.gap
    key = ["msno", "spell"]
    last = t.groupby(key, sort=False).tail(1).set_index(key)
    t["start"] = t.groupby(key).made.transform("first")
    first = t[t.made == t.start].groupby(key, sort=False).tail(1).set_index(key)
    s = last[["expires", "made", "gap", "is_last"]].join(first.drop(columns=["expires", "made", "gap", "is_last"]))
    s = s.reset_index().merge(pd.read_csv(folder / "train.csv"), on="msno", how="left")
    s["final"] = s.is_last & (s.made <= LAST) & (s.expires <= LAST)
    s["label"] = s.is_last & (s.is_churn == 1)
    s["interpolation"] = (s.start - s.groupby("msno").expires.shift(1)).dt.days.fillna(0)
    length, s["censoring_time"] = (s.expires - s.start).dt.days, (LAST - s.start).dt.days.astype(float)
    s["event"] = (s.gap | s.final | s.label) & (length <= s.censoring_time)
    s["time"] = np.where(s.event, length, s.censoring_time)
    s = s[~(s.label & ~s.gap & ~s.final & (length > s.censoring_time))]
    s = s[~(s.gap & s.final & s.label) & (s.censoring_time > 0) & (s.time > 0)]
    s = s.merge(
        pd.read_csv(folder / "members_v3.csv", keep_default_na=False, na_values={"bd": ""}), on="msno", how="left"
    )
    since = (s.start - dates(s.registration_init_time)).dt.days
    s, since = s[~(since < 0)], since[~(since < 0)]
    age = (s.bd - (AGES - s.start).dt.days / 365.25).pipe(lambda a: np.sign(a) * np.floor(a.abs() + 0.5))
    return pd.DataFrame(
        {
            "msno": s.msno, "time": s.time, "event": s.event, "censoring_time": s.censoring_time,
            "n_prev_churns": s.spell.astype(int),
            "log_days_between_subs": np.log1p(s.interpolation),
            "log_days_since_reg_init": np.log(since.fillna(-1) + 2.0),
            "log_payment_plan_days": np.log1p(s.payment_plan_days),
            "log_plan_list_price": np.log1p(s.plan_list_price),
            "log_actual_amount_paid": np.log1p(s.actual_amount_paid),
            "age_at_start": age.clip(0, 100).fillna(-1),
            "payment_method_id": s.payment_method_id.astype(str),
        }
    )  # fmt: skip


def compare(ours: pd.DataFrame, theirs: pd.DataFrame) -> float:
    """Return the largest difference of any number, once rows are in the same order; infinity if they don't match."""
    key = ["msno", "n_prev_churns"]
    ours, theirs = (frame.sort_values(key).reset_index(drop=True) for frame in (ours, theirs[list(ours.columns)]))
    if len(ours) != len(theirs) or not ours[["msno", "payment_method_id"]].equals(
        theirs[["msno", "payment_method_id"]]
    ):
        return float("inf")
    numbers = ours.columns.difference(["msno", "payment_method_id"])
    return float(np.abs(ours[numbers].astype(float).to_numpy() - theirs[numbers].astype(float).to_numpy()).max())


if __name__ == "__main__":
    main()

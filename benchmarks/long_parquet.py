"""How long predictions in long form take to read and score, beside reading the same Parquet file with pyarrow alone.

    python benchmarks/long_parquet.py [--rows 1000000] [--times 24] [--repetitions 5] [--json FILE]

A row for each individual and time (id, time, survival: 24 million), sorted, sorted by time, and in random order; ids
are numbers or text. All calls take their turns in one process; memory is that of the call, at its peak.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import results
import survscore as ss
from data import simulate
from measure import extra_memory
from report import spaced
from results import Row, Run

TARGET = 3.0  # times reading the file with pyarrow
LAYOUTS = ("sorted by id and time", "text as ids", "sorted by time and id", "in random order")
COLUMNS = {
    "rows": "{name}", "pyarrow alone, s": "{pyarrow:.2f}", "read, s": "{read:.2f}",
    "read and scored, s": "{scored:.2f}", "times pyarrow": "{ratio}", "wanted": "{wanted}",
    "memory, MB": "{memory:MB}", "pyarrow's, MB": "{pyarrow memory:MB}",
}  # fmt: skip


def main() -> None:
    """Print times, their ratio and memory for each order of the rows."""
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="individuals")
    parser.add_argument("--times", type=int, default=24)
    parser.add_argument("--repetitions", type=int, default=5)
    asked = parser.parse_args()
    run = Run(parser, asked, packages=("numpy", "numba", "pyarrow"))
    data = simulate(asked.rows, asked.times)
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(layout, data, Path(folder), asked.repetitions) for layout in LAYOUTS]
    size = f"{spaced(asked.rows)} individuals x {asked.times} times"
    run.add("orders", COLUMNS, rows, f"{size}: {spaced(asked.rows * asked.times)} rows of id, time, survival")
    run.write()


def measure(layout: str, data: Any, folder: Path, repetitions: int) -> Row:
    """Time reading, reading as a study, and scoring too, in turn."""
    outcomes, predictions = write(layout, data, folder)

    def read_and_score() -> None:
        study = ss.io.read_study(outcomes, [predictions])
        ss.brier_score(study.outcomes, study.models["long"], weighting="administrative", times=data.grid)

    calls: dict[str, Callable[[], Any]] = {
        "pyarrow": lambda: pq.read_table(predictions),
        "read": lambda: ss.io.read_study(outcomes, [predictions]),
        "scored": read_and_score,
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repetitions + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:  # the first compiles, and fills the cache of files
                seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(several) for name, several in seconds.items()}
    print(f"{layout}: done", file=sys.stderr)
    memory = {"memory": peak(calls["scored"]), "pyarrow memory": peak(calls["pyarrow"])}
    return {"name": layout, **median, "ratio": median["scored"] / median["pyarrow"], "wanted": TARGET, **memory}


def peak(call: Callable[[], Any]) -> int:
    """Return the memory of a call, of which nothing is what Arrow has kept from those before."""
    pa.default_memory_pool().release_unused()
    return extra_memory(call, repetitions=1)


def write(layout: str, data: Any, folder: Path) -> tuple[Path, Path]:
    """Write outcomes, a row for each individual, and predictions, a row for each individual and time."""
    n, m = data.survival.shape
    ids = pa.array([f"customer-{k:07d}" for k in range(n)]) if layout == "text as ids" else pa.array(np.arange(n))
    outcomes, predictions = folder / "outcomes.parquet", folder / "long.parquet"
    columns = {"id": ids, "time": data.time, "event": data.event, "censoring_time": data.censoring_time}
    pq.write_table(pa.table(columns), outcomes)
    individuals, times = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    if layout == "sorted by time and id":
        individuals, times = np.tile(np.arange(n), m), np.repeat(np.arange(m), n)
    if layout == "in random order":
        order = np.random.default_rng(0).permutation(n * m)
        individuals, times = individuals[order], times[order]
    values = data.survival[individuals, times].astype(np.float64)
    long = pa.table({"id": ids.take(pa.array(individuals)), "time": data.grid[times], "survival": values})
    pq.write_table(long, predictions)
    return outcomes, predictions


if __name__ == "__main__":
    main()

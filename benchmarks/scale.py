"""Scores of data in files, against what it takes to read them: python benchmarks/scale.py [--engines].

Each measurement is a process of its own; CPU time is of all its threads (and of its children, for clusters). The data
are made in a folder that is deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import results
from measure import memory, printed_by
from report import spaced
from results import Row, Run

N_TIMES, ROW_GROUP = 24, 1 << 17
CALLS: dict[str, dict[str, Any]] = {
    "administrative Brier, two models with paired errors": {"weighting": "administrative"},
    "the same for 200 segments": {"weighting": "administrative", "by": ["country", "plan"]},
    "Kaplan-Meier IPCW instead": {"weighting": "ipcw"},
    "projected instead (two passes)": {"weighting": "projected"},
    "administrative and projected, as by default": {},
    "administrative, with errors of means over time": {"weighting": "administrative", "ranges": "any"},
    "administrative, with groups in buckets (three passes)": {"weighting": "administrative", "groups": "customer"},
    "administrative, with sample weights (three passes)": {"weighting": "administrative", "weights": "weight"},
    "administrative, with delayed entry": {"weighting": "administrative", "entry": "entry", "times": [15, 30, 60, 120]},
}
TARGETS = dict(zip(CALLS, (1.5, 2.0, 1.9, 2.5), strict=False))
LIMITS = ("600MB", "1GB")  # of memory
DECODING = "decoding alone, one thread a file (the floor)"
BY_SQL = "the first by DuckDB, with SQL written by hand"
COLUMNS = {
    "evaluate": "{name}", "seconds": "{wall:.1f}", "CPU seconds": "{cpu:.1f}",
    "times decoding (CPU)": "{times_decoding:.2f}", "wanted": "{wanted}", "peak memory, GB": "{peak:GB.2f}",
}  # fmt: skip
LIMITED = {
    "`memory_limit`": "{name}",
    "weighting": "{weighting}",
    "peak memory, GB": "{peak:GB.2f}",
    "of the limit": "{share:.2f}",
}
ENGINES = {"engine": "{name}", "seconds": "{wall:.1f}", "times threads": "{times_threads:.2f}"}


def make(path: Path, n: int, seed: int) -> None:
    """Write one file: whole days, two models x 24 float32 columns, 20 countries x 10 plans."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    times = 15.0 * np.arange(1, N_TIMES + 1)
    end, rate = np.ceil(rng.uniform(20, 1200, n)), rng.gamma(2, 0.001, n)
    event_time = np.ceil(rng.exponential(1 / rate))
    columns: dict[str, Any] = {
        "time": np.minimum(event_time, end),
        "event": event_time <= end,
        "censoring_time": end,
        "customer": rng.integers(0, max(n // 3, 1), n),
        "weight": rng.gamma(4, 0.25, n),
        "entry": np.floor(rng.uniform(0, np.minimum(event_time, end).clip(max=30))).clip(max=19),
        "country": pa.array([f"country {k}" for k in range(20)]).take(pa.array(rng.integers(0, 20, n))),
        "plan": pa.array([f"plan {k}" for k in range(10)]).take(pa.array(rng.integers(0, 10, n))),
    }
    noise = np.exp(0.2 * rng.normal(size=n))
    for name, factor in (("a", 1.0), ("b", noise)):
        for t in times:
            columns[f"{name}:{t:g}"] = np.exp(-rate * factor * t).astype(np.float32)
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=ROW_GROUP)


def decode(folder: Path) -> None:
    """Read the columns of the first call, one thread a file: what nothing can be faster than."""
    import pyarrow.parquet as pq

    def one(path: Path) -> None:
        file = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
        names = [name for name in file.schema_arrow.names if ":" in name or name in ("time", "event", "censoring_time")]
        for _ in file.iter_batches(batch_size=ROW_GROUP, columns=names, use_threads=False):
            pass

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, sorted(folder.rglob("*.parquet"))))


def by_sql(folder: Path) -> None:
    """Compute the same administrative scores, and sums of squares of their difference, by DuckDB, written by hand."""
    import duckdb

    terms = []
    for t in (15 * k for k in range(1, N_TIMES + 1)):
        counted, event_free = f"censoring_time >= {t}", f"(time > {t} or (time >= {t} and not event))::INT"
        losses = [f'(({event_free}) - "{name}:{t}"::DOUBLE) ** 2' for name in "ab"]
        difference = f"(({losses[0]}) - ({losses[1]}))"
        terms += [f"avg({one}) FILTER ({counted})" for one in (*losses, f"{difference} ** 2")]
    duckdb.sql(f"SELECT {', '.join(terms)} FROM read_parquet('{folder}/*.parquet')").fetchall()


def measure(folder: Path, call: str, engine: str) -> dict[str, float]:
    """Do one thing in this process, twice, and return what the second time took."""
    if call in (DECODING, BY_SQL):
        run = lambda: (decode if call == DECODING else by_sql)(folder)  # noqa: E731
        run()  # once, so that the files are in the system's memory
    else:
        import survscore as ss

        name, _, limit = call.partition(" | ")
        options = {**CALLS[name], "engine": _engine(engine), **({"memory_limit": limit} if limit else {})}
        run = lambda: ss.evaluate(folder, **options)  # noqa: E731
        ss.evaluate(sorted(folder.rglob("*.parquet"))[:6], **options)  # compiles what needs compiling, on every worker
    start, cpu = time.perf_counter(), _cpu()
    run()
    peak = memory("VmHWM")
    return {"wall": time.perf_counter() - start, "cpu": _cpu() - cpu, "peak": float(peak)}


def _engine(name: str) -> Any:
    cores = len(os.sched_getaffinity(0))
    if name == "dask":
        from dask.distributed import Client

        return Client(n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=None)
    if name == "spark":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable  # where survscore is installed
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "2g",
            "spark.executorEnv.NUMBA_NUM_THREADS": "1",
        }
        builder = SparkSession.builder.master(f"local[{cores}]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    return None


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def in_fresh_process(folder: Path, call: str, engine: str = "threads") -> dict[str, float]:
    """Run this script for one measurement."""
    arguments = "--measure", call, "--folder", folder, "--engine", engine
    return printed_by(__file__, *arguments)  # type: ignore[no-any-return]


def main() -> None:
    """Make data, measure, print tables."""
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--engines", action="store_true", help="Dask and Spark too")
    parser.add_argument("--large", type=int, default=0, metavar="ROWS", help="this many rows too, of the first call")
    parser.add_argument("--where", type=Path, help="the folder in which the data are made")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="threads", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.folder, options.measure, options.engine)))
        return
    with tempfile.TemporaryDirectory(dir=options.where) as place:
        folder = _made(Path(place) / "data", options.rows, options.files)
        size = sum(one.stat().st_size for one in folder.iterdir())
        packages = ("numpy", "numba", "pyarrow", "dask", "pyspark")
        run = Run(parser, options, packages=packages, times=N_TIMES, models=2, bytes=size)
        rows = call_rows(folder)
        if options.large:
            rows += larger_rows(Path(place), options.rows // options.files, options.large)
        form = f"{options.files} Parquet files (zstd, {size / 1e9:.2f} GB)"
        run.add("files", COLUMNS, rows, f"{spaced(options.rows)} rows x {N_TIMES} x 2 models, {form}")
        run.add("limits", LIMITED, limited_rows(folder), "Peak memory under a limit")
        if options.engines:
            run.add("engines", ENGINES, engine_rows(folder, rows[1]["wall"]), next(iter(CALLS)))
    run.write()


def _made(folder: Path, rows: int, files: int) -> Path:
    folder.mkdir()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda k: make(folder / f"{k:04d}.parquet", rows // files, k), range(files)))
    return folder


def call_rows(folder: Path) -> list[Row]:
    """Return what decoding takes, and every call beside it."""
    base = in_fresh_process(folder, DECODING)
    calls = [*CALLS, *([BY_SQL] if find_spec("duckdb") else [])]
    return [_row(DECODING, base, base), *(_row(call, in_fresh_process(folder, call), base) for call in calls)]


def limited_rows(folder: Path) -> list[Row]:
    """Return the peak memory of calls with a limit."""
    rows = []
    for call in list(CALLS)[:4]:
        for limit in LIMITS:
            peak = in_fresh_process(folder, f"{call} | {limit}")["peak"]
            share = peak / {"MB": 1e6, "GB": 1e9}[limit[-2:]] / float(limit[:-2])
            rows.append({"name": limit, "weighting": call, "peak": peak, "share": share})
    return rows


def engine_rows(folder: Path, threads: float) -> list[Row]:
    """Return the time of the first call on clusters of this machine, beside that of threads."""
    rows = [{"name": "threads", "wall": threads, "times_threads": 1.0}]
    for engine, name in (("dask", "Dask, a process a core"), ("spark", "Spark, over the names of files")):
        found = in_fresh_process(folder, next(iter(CALLS)), engine)
        rows.append({"name": name, **found, "times_threads": found["wall"] / threads})
    return rows


def larger_rows(place: Path, rows_per_file: int, large: int) -> list[Row]:
    """Copy the files, as links are refused, into folders of other names: does time grow with the rows?"""
    folder, source = place / "large", sorted((place / "data").iterdir())
    for k in range(large // rows_per_file):
        target = folder / f"copy={k // len(source)}" / f"{k:05d}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source[k % len(source)], target)
    base, call = in_fresh_process(folder, DECODING), next(iter(CALLS))
    return [_row(f"{spaced(large)} rows, {call}", in_fresh_process(folder, call), base)]


def _row(call: str, found: dict[str, float], base: dict[str, float]) -> Row:
    print(f"{call}: {found['wall']:.1f} s", file=sys.stderr)
    wanted = {"wanted": TARGETS[call]} if call in TARGETS else {}
    return {"name": call, **found, "times_decoding": found["cpu"] / base["cpu"], **wanted}


if __name__ == "__main__":
    main()

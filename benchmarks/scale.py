"""Scores of data in files, against what it takes to read them: python benchmarks/scale.py [--engines].

Each measurement is a process of its own; CPU time is of all its threads (and of its children, for clusters). The data
are made in a folder that is deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

N_TIMES, ROW_GROUP = 24, 1 << 17
CALLS: dict[str, dict[str, Any]] = {
    "administrative Brier, two models with paired errors": {"weighting": "administrative"},
    "the same for 200 segments": {"weighting": "administrative", "by": ["country", "plan"]},
    "Kaplan-Meier IPCW instead": {"weighting": "ipcw"},
    "administrative, with errors of means over time": {"weighting": "administrative", "ranges": "any"},
    "administrative, with groups in buckets (two passes)": {"weighting": "administrative", "groups": "customer"},
}
TARGETS = dict(zip(CALLS, (1.3, 1.7, 1.9, 2.2, None), strict=True))


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
        names = [name for name in file.schema_arrow.names if name not in ("customer", "country", "plan")]
        for _ in file.iter_batches(batch_size=ROW_GROUP, columns=names, use_threads=False):
            pass

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, sorted(folder.iterdir())))


def measure(folder: Path, call: str, engine: str) -> dict[str, float]:
    """Do one thing in this process, twice, and return what the second time took."""
    if call == "decode":
        run = lambda: decode(folder)  # noqa: E731
        run()  # once, so that the files are in the system's memory
    else:
        import survscore as ss

        options = {**CALLS[call], "engine": _engine(engine)}
        run = lambda: ss.evaluate(folder, **options)  # noqa: E731
        ss.evaluate(sorted(folder.iterdir())[:6], **options)  # compiles what needs compiling, on every worker
    start, cpu = time.perf_counter(), _cpu()
    run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
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
    done = subprocess.run(
        [sys.executable, __file__, "--measure", call, "--folder", str(folder), "--engine", engine],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Make data, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--engines", action="store_true", help="Dask and Spark too")
    parser.add_argument("--large", type=int, default=0, help="this many rows too, of the first call")
    parser.add_argument("--where", type=Path, default=None, help="the folder in which the data are made")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--measure")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--engine", default="threads")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.folder, given.measure, given.engine)))
        return
    with tempfile.TemporaryDirectory(dir=given.where) as place:
        rows = [*_table(Path(place), given.rows, given.files, engines=given.engines)]
        if given.large:
            rows += _larger(Path(place), given.rows, given.files, given.large)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


def _made(folder: Path, rows: int, files: int) -> Path:
    folder.mkdir()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda k: make(folder / f"{k:04d}.parquet", rows // files, k), range(files)))
    return folder


def _table(place: Path, rows: int, files: int, *, engines: bool) -> Any:
    folder = _made(place / "data", rows, files)
    size = sum(one.stat().st_size for one in folder.iterdir())
    load = os.getloadavg()[0]
    print(f"{rows:,} rows x {N_TIMES} x 2 models, {files} Parquet files (zstd, {size / 1e9:.2f} GB), load {load:.1f}\n")
    print(
        "| | wall s | CPU s | x decoding (CPU) | target | peak memory, GB |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    base = in_fresh_process(folder, "decode")
    threads: dict[str, float] = {}
    for call in ("decode", *CALLS):
        found = base if call == "decode" else in_fresh_process(folder, call)
        threads = threads or ({} if call == "decode" else found)
        yield _row(call, found, base, TARGETS.get(call))
    for engine in ("dask", "spark") if engines else ():
        call = next(iter(CALLS))
        found = in_fresh_process(folder, call, engine)
        print(
            f"| {call}, {engine} | {found['wall']:.1f} | | {found['wall'] / threads['wall']:.2f} x threads (wall) | | |"
        )
        yield {"call": call, "engine": engine, **found, "times_threads": found["wall"] / threads["wall"]}


def _larger(place: Path, rows: int, files: int, large: int) -> list[dict[str, Any]]:
    """Give the files other names, which takes no room, and see whether time grows with the rows."""
    folder, source = place / "large", sorted((place / "data").iterdir())
    folder.mkdir()
    for k in range(large // (rows // files)):
        os.link(source[k % files], folder / f"{k:05d}.parquet")
    base = in_fresh_process(folder, "decode")
    return [_row(f"{large:,} rows: {call}", in_fresh_process(folder, call), base, None) for call in list(CALLS)[:1]]


def _row(call: str, found: dict[str, float], base: dict[str, float], target: float | None) -> dict[str, Any]:
    ratio = found["cpu"] / base["cpu"]
    cells = [
        call,
        f"{found['wall']:.1f}",
        f"{found['cpu']:.1f}",
        f"{ratio:.2f}",
        f"{target or ''}",
        f"{found['peak'] / 1e9:.2f}",
    ]
    print("| " + " | ".join(cells) + " |", flush=True)
    return {"call": call, **found, "times_decoding": ratio, "target": target}


if __name__ == "__main__":
    main()

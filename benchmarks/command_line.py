"""The command line on files: how soon it answers, and 100 000 x 150 predictions from Parquet and CSV.

``python benchmarks/command_line.py [FOLDER]`` needs 400 MB of disk in FOLDER, or elsewhere. Each line is a
fresh process, start and imports included, the median of five. A process's peak memory counts from that of the process
that starts it; so those are small, and nothing is imported here before it is needed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import printed_by

N, M, REPEATS = 100_000, 150, 5
TIMES = "5:95:1"
COLUMNS = {"": "{name}", "milliseconds": "{seconds:ms}", "peak MB": "{bytes:MB}"}

# What a user would write with another package: read, put into order, score.
PYCOX = """
import sys, numpy as np, pandas as pd
from pycox.evaluation import EvalSurv
y = pd.read_parquet(sys.argv[1]).set_index("id")
p = pd.read_parquet(sys.argv[2]).set_index("id").loc[y.index]
surv = pd.DataFrame(p.to_numpy().T, index=p.columns.astype(float))
ev = EvalSurv(surv, y.time.to_numpy(), y.event.to_numpy(), censor_durations=y.censoring_time.to_numpy())
print(ev.brier_score_admin(np.arange(5.0, 96.0)).mean())
"""
SKSURV = """
import sys, numpy as np, pandas as pd
from sksurv.metrics import brier_score
from sksurv.util import Surv
y = pd.read_parquet(sys.argv[1]).set_index("id")
p = pd.read_parquet(sys.argv[2]).set_index("id").loc[y.index]
times, grid = np.arange(5.0, 96.0), p.columns.astype(float).to_numpy()
at = p.to_numpy()[:, np.searchsorted(grid, times, side="right") - 1]
data = Surv.from_arrays(y.event.astype(bool), y.time)
print(brier_score(data, data, at, times)[1].mean())
"""
FLOOR = "import sys, pyarrow.parquet as pq; print(sum(pq.read_table(p).num_rows for p in sys.argv[1:]))"
NOTHING = "pass"


def main() -> None:
    """Write the files, run every command, print a table."""
    import results

    parser = results.parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where files are made for the while")
    options = parser.parse_args()
    packages = ("numpy", "numba", "pyarrow", "pandas", "pycox", "scikit-survival")
    run = results.Run(parser, options, packages=packages, rows=N, times=M, repetitions=REPEATS)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        subprocess.run([sys.executable, __file__, "--write", folder], check=True)
        found = {
            name: printed_by(__file__, "--measure", json.dumps([str(part) for part in command]))
            for name, command in commands(Path(folder)).items()
        }
    run.add("commands", COLUMNS, [{"name": name, **values} for name, values in found.items()], "Commands")
    run.write()


def commands(folder: Path) -> dict[str, list[str | Path]]:
    """Return what is run, on the files in a folder."""
    parquet, wide, csv = ([folder / f"y.{kind}", folder / f"{form}.{kind}"] for form, kind in
                          (("lists", "parquet"), ("wide", "parquet"), ("wide", "csv")))  # fmt: skip
    program, python = [sys.executable, "-m", "survscore"], [sys.executable, "-c"]
    admin = ["-w", "administrative", "-t", TIMES, "-m", "brier"]
    both = ["-w", "administrative", "-w", "ipcw", "-t", TIMES]
    size = f"{csv[1].stat().st_size / 1e6:.0f} MB"
    return {
        "start of Python, nothing else": [*python, NOTHING],
        "``survscore --help``": [*program, "--help"],
        "reading the Parquet files with pyarrow (the floor)": [*python, FLOOR, *wide],
        "``score``, administrative Brier, Parquet lists": [*program, "score", *parquet, *admin],
        "``score``, administrative Brier, wide Parquet": [*program, "score", *wide, *admin],
        "``score``, both losses under two weightings, wide Parquet": [*program, "score", *wide, *both],
        f"``score``, administrative Brier, CSV ({size})": [*program, "score", *csv, *admin],
        "``report``, both losses under two weightings, wide Parquet": [
            *program, "report", *wide, "-o", folder / "report.html", *both
        ],
        "a script with pandas and pycox, administrative Brier, wide Parquet": [*python, PYCOX, *wide],
        "a script with pandas and scikit-survival, IPCW Brier, wide Parquet": [*python, SKSURV, *wide],
    }  # fmt: skip


def write(folder: Path) -> None:
    """Write outcomes and one model's predictions, in another order, in three forms."""
    import numpy as np
    import pandas as pd

    import survscore as ss
    from survscore import io

    rng = np.random.default_rng(1)
    rate, end, ids = rng.gamma(2, 0.01, N), rng.uniform(5, 100, N), rng.permutation(N)
    event_time = rng.exponential(1 / rate)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    grid = np.linspace(1, 100, M)
    order = rng.permutation(N)
    survival = np.exp(-rate[order, None] * grid).astype(np.float32)
    frame = pd.DataFrame(survival, columns=[repr(float(time)) for time in grid])
    frame.insert(0, "id", ids[order])
    for kind in ("parquet", "csv"):
        io.write_outcomes(folder / f"y.{kind}", y, ids=ids)
        io.write_frame(folder / f"wide.{kind}", frame)
    io.write_predictions(folder / "lists.parquet", {"net": ss.SurvivalCurves(survival, grid)}, ids=ids[order])


def measured(command: list[str]) -> dict[str, float]:
    """Return the median wall time in seconds and the largest memory of a command, run afresh each time."""
    seconds, kilobytes = [], []
    for _ in range(REPEATS + 1):
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds.append(time.perf_counter() - begun)
        kilobytes.append(used.ru_maxrss)
        if status:
            sys.exit(f"{command} ended with {status}")
    return {"seconds": statistics.median(seconds[1:]), "bytes": 1024 * max(kilobytes)}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--write", folder]:
            write(Path(folder))
        case ["--measure", command]:
            print(json.dumps(measured(json.loads(command))))
        case _:
            main()

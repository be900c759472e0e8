"""How long reports, tables of scores and comparisons take, in Python and as commands on files.

``python benchmarks/reports.py [--json FILE]``, for two sizes. Three models, of individuals with staggered entry, some
of whom drop out; administrative and projected scores, calibration and the search for leaks, as ``ss.report`` has.
Commands read a file of outcomes and one for each model: CSV for the small size, Parquet for the large one. Each line is
a fresh process with compiled code on disk, imports included, the median of three. Needs 200 MB of disk. With
``--commands`` the calls in Python are left out.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

from measure import printed_by

SIZES = ((15_000, 4), (100_000, 100))
CALLS = ("report", "score_table", "compare")
COMMANDS = ("compare", "table", "report", "formats")
HORIZONS = [20, 40, 60, 80]
REPEATS = 3
COLUMNS = {"": "{name}", "wall": "{seconds:s.2f} s", "processor": "{processor:s.2f} s"}


def main() -> None:
    """Measure every call in processes of its own, and print a table."""
    import results

    parser = results.parser(__doc__)
    parser.add_argument("--commands", action="store_true", help="only the commands on files")
    parser.add_argument("--repetitions", type=int, default=REPEATS, metavar="N", help="after one that is not counted")
    options = parser.parse_args()
    run = results.Run(parser, options, packages=("numpy", "numba", "scipy", "pandas"), models=3)
    rows = []
    for n, m in SIZES if not options.commands else ():
        for call in CALLS:
            turns = [printed_by(__file__, "--measure", call, n, m) for _ in range(options.repetitions + 1)]
            wall, processor = zip(*turns, strict=True)
            name = f"``{call}``, {n:,} individuals, {m} times".replace(",", " ")
            rows.append({"name": name, "seconds": median(wall[1:]), "processor": median(processor[1:])})
    if rows:
        run.add("calls", COLUMNS, rows, "Reports and tables of three models")
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for n, m in SIZES for row in _commands(Path(folder), n, m, options.repetitions)]
    run.add("commands", COLUMNS, rows, "Commands on files of three models")
    run.write()


def _commands(folder: Path, n: int, m: int, repetitions: int) -> list[dict[str, object]]:
    """Return the times of every command on files of this size, which are written first, in a process of their own."""
    ending = "csv" if m < 10 else "parquet"
    subprocess.run([sys.executable, __file__, "--write", str(folder), ending, str(n), str(m)], check=True)
    files = [str(folder / f"{name}.{ending}") for name in ("outcomes", "model-1", "model-2", "model-3")]
    rows = []
    for name in COMMANDS:
        own = [] if name == "formats" else ["-t", ",".join(map(str, HORIZONS))] if name != "compare" else []
        own += ["-o", str(folder / "report.html")] if name == "report" else []
        command = [sys.executable, "-m", "survscore", name, *files, *own]
        wall, processor = zip(*(_of_command(command) for _ in range(repetitions + 1)), strict=True)
        told = f"``survscore {name}``, {n:_} individuals, {m} times, {ending}".replace("_", " ")
        rows.append({"name": told, "seconds": median(wall[1:]), "processor": median(processor[1:])})
    return rows


def _of_command(command: list[str]) -> tuple[float, float]:
    """Return wall time and time of the processor of a command."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    started = time.perf_counter(), spent()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started[0], spent() - started[1]


def write(folder: Path, ending: str, n: int, m: int) -> None:
    """Write the files of a study."""
    import survscore as ss

    time, event, end, survival, grid = study(n, m)
    ids = [f"c{k:06}" for k in range(n)]
    ss.io.write_outcomes(folder / f"outcomes.{ending}", ss.Outcomes(time, event, end), ids=ids)
    for k, one in enumerate(survival, start=1):
        models = {f"model {k}": ss.SurvivalCurves(one, grid)}
        ss.io.write_predictions(folder / f"model-{k}.{ending}", models, ids=ids)


def study(n: int, m: int) -> tuple[Any, Any, Any, list[Any], Any]:
    """Return times, events, censoring times, the survival of three models, and its times."""
    import numpy as np

    rng = np.random.default_rng(1)
    rate = 0.02 * np.exp(0.6 * rng.normal(size=n))
    end = 100 - rng.uniform(0, 60, n)
    event_time, dropout = rng.exponential(1 / rate), rng.exponential(500, n)
    seen = np.minimum(np.minimum(event_time, dropout), end)
    grid = np.linspace(100 / m, 100, m) if m > 10 else np.linspace(20, 80, m)
    noisy = [rate * np.exp(0.3 * k * rng.normal(size=n)) for k in range(3)]
    survival = [np.exp(-one[:, None] * grid).astype(np.float32) for one in noisy]
    return seen, event_time == seen, end, survival, grid


def measured(call: str, n: int, m: int) -> tuple[float, float]:
    """Return wall time and time of the processor of a call, with the imports that it needs."""
    seen, event, end, survival, grid = study(n, m)
    started = time.perf_counter(), time.process_time()
    import survscore as ss

    y = ss.Outcomes(seen, event, end)
    models = {f"model {k}": ss.SurvivalCurves(one, grid) for k, one in enumerate(survival, start=1)}
    warnings.simplefilter("ignore")
    if call == "report":
        assert ss.report(y, models, horizons=HORIZONS).html
    elif call == "score_table":
        str(ss.score_table(y, models, horizons=HORIZONS))
    else:
        str(ss.compare(y, models))
    return time.perf_counter() - started[0], time.process_time() - started[1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()

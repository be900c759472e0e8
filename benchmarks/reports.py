"""How long a report and a table of scores take, for two sizes: ``python benchmarks/reports.py [--json FILE]``.

Three models, of individuals with staggered entry, some of whom drop out; administrative and projected scores,
calibration and the search for leaks, as ``ss.report`` shows them. Each line is a fresh process with compiled code on
disk, imports included, the median of three.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings

SIZES = ((15_000, 4), (100_000, 100))
CALLS = ("report", "score_table", "compare")
REPEATS = 3
COLUMNS = {"": "{name}", "wall": "{seconds:s.2f} s", "processor": "{processor:s.2f} s"}


def main() -> None:
    """Measure every call in processes of its own, and print a table."""
    import results

    parser = results.parser(__doc__)
    options = parser.parse_args()
    run = results.Run(parser, options, packages=("numpy", "numba", "scipy", "pandas"), models=3, repetitions=REPEATS)
    rows = []
    for n, m in SIZES:
        for call in CALLS:
            wall, processor = zip(*(_in_process(call, n, m) for _ in range(REPEATS + 1)), strict=True)
            name = f"``{call}``, {n:,} individuals, {m} times".replace(",", " ")
            rows.append({"name": name, "seconds": sorted(wall[1:])[1], "processor": sorted(processor[1:])[1]})
    run.add("calls", COLUMNS, rows, "Reports and tables of three models")
    run.write()


def _in_process(call: str, n: int, m: int) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", call, str(n), str(m)], stdout=subprocess.PIPE, text=True, check=True
    )
    wall, processor = json.loads(done.stdout)
    return wall, processor


def measured(call: str, n: int, m: int) -> tuple[float, float]:
    """Return wall time and time of the processor of a call, with the imports that it needs."""
    import numpy as np

    rng = np.random.default_rng(1)
    rate = 0.02 * np.exp(0.6 * rng.normal(size=n))
    end = 100 - rng.uniform(0, 60, n)
    event_time, dropout = rng.exponential(1 / rate), rng.exponential(500, n)
    seen = np.minimum(np.minimum(event_time, dropout), end)
    grid = np.linspace(100 / m, 100, m) if m > 10 else np.linspace(20, 80, m)
    noisy = [rate * np.exp(0.3 * k * rng.normal(size=n)) for k in range(3)]
    survival = [np.exp(-one[:, None] * grid).astype(np.float32) for one in noisy]
    started = time.perf_counter(), time.process_time()
    import survscore as ss

    y = ss.Outcomes(seen, event_time == seen, end)
    models = {f"model {k}": ss.SurvivalCurves(one, grid) for k, one in enumerate(survival, start=1)}
    warnings.simplefilter("ignore")
    horizons = [20, 40, 60, 80]
    if call == "report":
        assert ss.report(y, models, horizons=horizons).html
    elif call == "score_table":
        str(ss.score_table(y, models, horizons=horizons))
    else:
        str(ss.compare(y, models))
    return time.perf_counter() - started[0], time.process_time() - started[1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()

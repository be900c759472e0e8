"""What a whole table of scores costs, beside one Brier curve.

    python benchmarks/score_table.py [--rows 100000 1000000] [--times 150] [--alone] [--json FILE]

Two models and Kaplan-Meier, five horizons, administrative weights, standard errors and differences; in one process and
in turn with the Brier curve of one model (with its standard errors) at all times of the grid. Prints a table of
the fastest of several calls. --alone adds each metric by itself, --metrics says which tables; --quick is a smoke test.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import results
import survscore as ss
from data import N_TIMES, Data, simulate
from measure import extra_memory
from report import spaced
from results import Row, Run

HORIZONS = (12.0, 24.0, 36.0, 48.0, 60.0)
THRESHOLD = "net_benefit@0.2"
CURVE = "one Brier curve"
TABLES: dict[str, str | None] = {"all": "all", "default": None}
TITLES = {"all": "everything", "default": "the default metrics and a net benefit"}
WANTED = {TITLES["all"]: 20}  # Brier curves
COLUMNS = {
    "table of": "{name}", "ms": "{wall:ms}", "Brier curves": "{wall curves:.1f}", "wanted": "{wanted}",
    "ms of the processor": "{processor:ms}", "Brier curves, processor": "{processor curves:.1f}",
    "extra memory, MB": "{memory:MB.0f}",
}  # fmt: skip


def calls(data: Data, tables: Sequence[str], *, alone: bool) -> dict[str, Callable[[], Any]]:
    """Return what is timed, the Brier curve first."""
    from survscore.analysis.score_tables import EVERY, MADE
    from survscore.metrics import metric_label

    models = {"first": data.curves, "second": data.second_curves}

    def table(metrics: str | Sequence[str] | None, thresholds: Sequence[float] = ()) -> Callable[[], Any]:
        return lambda: ss.score_table(
            data.outcomes, models, horizons=HORIZONS, metric=metrics, thresholds=thresholds,
            weighting="administrative",
        )  # fmt: skip

    curve = {CURVE: lambda: ss.brier_score(data.outcomes, data.curves, weighting="administrative", times=data.grid)}
    chosen = {TITLES[name]: table(TABLES[name], [0.2]) for name in tables}
    single = {MADE.get(name) or metric_label(name): table(name) for name in (*EVERY, THRESHOLD)} if alone else {}
    return {**curve, **chosen, **single}


def fastest(calls: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, tuple[float, float]]:
    """Return the least seconds, and seconds of the processor, of calls that take turns; the first turn does not count.

    The first of the calls, with which the others are compared, comes before each of them.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    first, *others = calls
    for _ in range(repetitions + 1):
        for name in [one for other in others for one in (first, other)]:
            time.sleep(0.005)
            started = time.perf_counter(), time.process_time()
            calls[name]()
            found[name].append((time.perf_counter() - started[0], time.process_time() - started[1]))
    best = {}
    for name, turns in found.items():
        wall, processor = zip(*turns[1:], strict=True)
        best[name] = min(wall), min(processor)
    return best


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--times", type=int, default=N_TIMES)
    parser.add_argument("--metrics", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--alone", action="store_true", help="each metric by itself, too")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="2 000 rows, once")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.repetitions = [2_000], 1
    warnings.simplefilter("ignore")
    run = Run(parser, options, packages=("numpy", "numba"), models=2, horizons=len(HORIZONS))
    for n in options.rows:
        chosen = calls(simulate(n, options.times), options.metrics, alone=options.alone)
        title = f"{spaced(n)} individuals x {options.times} times, two models, horizons {HORIZONS}"
        run.add(spaced(n), COLUMNS, table_rows(chosen, options.repetitions), title)
    run.write()


def table_rows(calls: Mapping[str, Callable[[], Any]], repetitions: int) -> list[Row]:
    """Return time and memory of each call, beside those of the Brier curve."""
    found = fastest(calls, repetitions)
    curve = found[CURVE]
    rows = []
    for name, (wall, processor) in found.items():
        row: Row = {"name": name, "wall": wall, "wall curves": wall / curve[0], "processor": processor,
                    "processor curves": processor / curve[1], "cores": processor / wall,
                    "memory": extra_memory(calls[name], 1)}  # fmt: skip
        rows.append({**row, **({"wanted": WANTED[name]} if name in WANTED else {})})
    return rows


if __name__ == "__main__":
    main()

"""What a whole table of scores costs, beside one Brier curve.

    python benchmarks/score_table.py [--rows 100000 1000000] [--times 150] [--alone]

Two models and Kaplan-Meier, five horizons, administrative weights, standard errors and differences; in one process and
in turn with the Brier curve of one model (with its standard errors) at all times of the grid. Prints a table of
the fastest of several calls. --alone adds each metric by itself, --metrics says which tables; --quick is a smoke test.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import survscore as ss
from data import N_TIMES, Data, simulate
from measure import extra_memory

HORIZONS = (12.0, 24.0, 36.0, 48.0, 60.0)
THRESHOLD = "net_benefit@0.2"
CURVE = "one Brier curve"
TABLES: dict[str, str | None] = {"default": None, "all": "all"}


def calls(data: Data, tables: Sequence[str], *, alone: bool) -> dict[str, Callable[[], Any]]:
    """Return what is timed, the Brier curve first."""
    from survscore.score_tables import EVERY

    models = {"first": data.curves, "second": data.second_curves}

    def table(metrics: str | Sequence[str] | None, thresholds: Sequence[float] = ()) -> Callable[[], Any]:
        return lambda: ss.score_table(
            data.outcomes, models, horizons=HORIZONS, metrics=metrics, thresholds=thresholds,
            weighting="administrative",
        )  # fmt: skip

    curve = {CURVE: lambda: ss.brier_score(data.outcomes, data.curves, weighting="administrative", times=data.grid)}
    chosen = {f"table of {name} metrics": table(TABLES[name], [0.2]) for name in tables}
    return {**curve, **chosen, **({name: table(name) for name in (*EVERY, THRESHOLD)} if alone else {})}


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--times", type=int, default=N_TIMES)
    parser.add_argument("--metrics", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--alone", action="store_true", help="each metric by itself, too")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="2 000 rows, once")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| individuals | | ms | Brier curves | processor, ms | Brier curves | memory, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n in [2_000] if options.quick else options.rows:
        chosen = calls(simulate(n, options.times), options.metrics, alone=options.alone)
        found = fastest(chosen, 1 if options.quick else options.repetitions)
        for name, (wall, processor) in found.items():
            memory = extra_memory(chosen[name], 1)
            cells = [
                f"{n:,}".replace(",", " "), name, f"{1000 * wall:.3g}", f"{wall / found[CURVE][0]:.1f}",
                f"{1000 * processor:.3g}", f"{processor / found[CURVE][1]:.1f}", f"{memory / 1e6:.0f}",
            ]  # fmt: skip
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nTwo models x {options.times} times, horizons {HORIZONS}; survscore {ss.__version__}.")


if __name__ == "__main__":
    main()

"""What the projected Brier score costs beside the administrative one, both with standard errors; see README.md.

    python benchmarks/projected_speed.py --json docs/benchmarks/projected_speed.json

Also how long a comparison of three models under both takes. Some two minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import results
import survscore as ss
from cores import make
from data import Data
from measure import Timing, extra_memory, timings
from report import spaced
from results import Row, Run

ROWS, TIMES = 1_000_000, 100
COMPARED_ROWS, COMPARED_TIMES, MODELS = 15_000, (4, 100), ("a", "b", "c")
WEIGHTINGS = ("administrative", "projected")
MOST_RATIO, MOST_PEAK, MOST_SECONDS = 2.0, 1.1, 1.0
COSTS = {
    "predictions": "{name}",
    "administrative, ms of the processor": "{administrative:ms}",
    "projected, ms of the processor": "{projected:ms}",
    "ratio": "{ratio:.2f}",
    "ratio of elapsed times": "{elapsed:.2f}",
    "extra memory, MB: administrative": "{administrative bytes:MB.1f}",
    "projected": "{projected bytes:MB.1f}",
}
COMPARISONS = {
    "three models compared, both weightings": "{name}",
    "ms": "{seconds:ms}",
    "ms of the processor": "{processor:ms}",
}


def scored(data: Data, kind: str, weighting: str, cores: int) -> Callable[[], Any]:
    """Return a call that scores predictions in one precision on so many cores."""
    curves = ss.SurvivalCurves(data.survival.astype(kind), data.grid)

    def run() -> Any:
        with ss.config.using(threads=cores):
            return ss.brier_score(data.outcomes, curves, weighting=weighting, times=data.grid)

    return run


def cost_row(timed: Mapping[str, Timing | str]) -> Row:
    """Return seconds of the processor of both scores, and how many times as long the projected one takes."""
    both = {name: timed[name] for name in WEIGHTINGS}  # by name: they come in any order
    failed = [message for message in both.values() if isinstance(message, str)]
    if failed:
        raise RuntimeError(failed[0])
    administrative, projected = (both[name] for name in WEIGHTINGS)
    return {
        "administrative": administrative.processor,
        "projected": projected.processor,
        "ratio": projected.processor / administrative.processor,
        "elapsed": projected.median / administrative.median,
    }


def cost_rows(rows: int) -> list[Row]:
    """Return a row for each precision and number of cores."""
    data, found = make(rows, TIMES), []
    for kind in ("float32", "float64"):
        for cores in sorted({1, ss.config.n_cores()}):
            calls = {name: scored(data, kind, name, cores) for name in WEIGHTINGS}
            row = cost_row(timings(calls, repetitions=7))
            # after these: a first call loads compiled code, which is no memory of the score
            memory = {f"{name} bytes": extra_memory(call) for name, call in calls.items()}
            inputs = data.survival.size * np.dtype(kind).itemsize
            row["peak"] = (inputs + memory["projected bytes"]) / (inputs + memory["administrative bytes"])
            found.append({"name": f"{kind}, {cores} {'core' if cores == 1 else 'cores'}", **row, **memory})
    return found


def comparison_rows(rows: int) -> list[Row]:
    """Return a row for each number of evaluation times."""
    found = []
    for n_times in COMPARED_TIMES:
        data = make(rows, n_times)
        models = {name: ss.SurvivalCurves(data.survival ** (1.0 + 0.1 * k), data.grid) for k, name in enumerate(MODELS)}

        def compare(data: Data = data, models: Any = models) -> Any:
            return ss.compare(data.outcomes, models, weighting=list(WEIGHTINGS), times=data.grid)

        timing = timings({"compared": compare})["compared"]
        if isinstance(timing, str):
            raise RuntimeError(timing)
        name = f"{spaced(rows)} x {n_times}"
        found.append({"name": name, "seconds": timing.median, "processor": timing.processor})
    return found


def targets(costs: list[Row], comparisons: list[Row]) -> list[tuple[str, float, float]]:
    """Return what the library wants to reach: in words, what was measured, and the most that it may be."""
    found = []
    for row in costs:
        found.append((f"{row['name']}: at most twice the administrative score's time", row["ratio"], MOST_RATIO))
        found.append(
            (f"{row['name']}: at most 1.1 times its peak memory, predictions included", row["peak"], MOST_PEAK)
        )
    for row in comparisons:
        found.append((f"three models, {row['name']}: less than a second", row["seconds"], MOST_SECONDS))
    return found


def main() -> None:
    """Measure, print and write."""
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    run = Run(parser, options, packages=("numpy", "numba"), times=TIMES, compared=COMPARED_ROWS)
    costs, comparisons = cost_rows(options.rows), comparison_rows(min(options.rows, COMPARED_ROWS))
    run.add("costs", COSTS, costs, f"Brier scores with standard errors, {spaced(options.rows)} x {TIMES}")
    run.add("comparisons", COMPARISONS, comparisons)
    run.add_targets(targets(costs, comparisons))
    run.write()


if __name__ == "__main__":
    main()

"""Speed on 1, 2, 4, 8 and 16 cores: scores, standard errors, comparisons, and the checks of what is read.

Needs survscore and numpy alone: ``PYTHONPATH=src python benchmarks/cores.py``. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import survscore as ss
from data import Data
from measure import Timing, timings
from report import number, table
from survscore._parallel import each, row_blocks

ROWS, ROWS_WITH_GROUPS, TIMES_WITH_GROUPS, GROUPS = 2_000_000, 10_000_000, 24, 4_000_000
COUNTS = (1, 2, 4, 8, 16)

READING = "checks of 2 models' curves"
ADMINISTRATIVE, KAPLAN_MEIER = "administrative Brier", "Kaplan-Meier Brier"
ERRORS, COMPARED = "both with standard errors", "two models compared, {}"
#: How many times as fast as on one core they should be on sixteen.
WANTED = {ADMINISTRATIVE: 8, ERRORS: 6, COMPARED.format("Kaplan-Meier"): 6}


def main() -> None:
    """Measure on as many cores as there are, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="time only what has one of these words in its name")
    parser.add_argument("--groups", action="store_true", help="measure what groups cost, too")
    parser.add_argument("--group-rows", type=int, default=ROWS_WITH_GROUPS, metavar="ROWS", help="for that")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    options = parser.parse_args()
    available = len(os.sched_getaffinity(0))
    counts = [n for n in COUNTS if n <= available]
    chosen = calls(make(options.rows, 150))
    if options.only:
        chosen = {name: call for name, call in chosen.items() if any(word in name for word in options.only)}
    found = measured(chosen, counts)
    print(f"\n## {options.rows:,} x 150, float32, ms\n\n{as_table(found, counts)}", flush=True)
    if options.groups:
        compared = group_calls(options.group_rows)
        with_groups = timings(compared, repetitions=3)
        print(f"\n## {options.group_rows:,} x {TIMES_WITH_GROUPS}, two models, {available} cores\n")
        print(group_table(list(compared), with_groups))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def make(n: int, m: int) -> Data:
    """Return outcomes and predictions: hazards that differ between individuals, and a cut-off date."""
    rng = np.random.default_rng(1)
    grid = np.linspace(100 / m, 100, m)
    rate = rng.gamma(2.0, 0.01, n)
    censoring_time = rng.uniform(20.0, 110.0, n)
    event_time = rng.exponential(1.0, n) / rate
    event = event_time <= censoring_time
    time = np.where(event, event_time, censoring_time)

    def curves(bias: float) -> np.ndarray[Any, Any]:
        matrix = np.empty((n, m), dtype=np.float32)

        def fill(rows: slice) -> None:
            own = (rate[rows] * bias).astype(np.float32)
            np.exp(-own[:, None] * grid.astype(np.float32), out=matrix[rows])

        each(fill, row_blocks(n, m, compiled=True), threads=True)
        return matrix

    return Data(time, event, censoring_time, grid, curves(1.0), curves(1.1))


def calls(data: Data) -> dict[str, Callable[[], Any]]:
    """Return what is timed."""
    y, grid = data.outcomes, data.grid
    first = ss.SurvivalCurves(data.survival, grid)
    models = {"first": first, "second": ss.SurvivalCurves(data.censoring_survival, grid)}
    both = ("administrative", "ipcw")
    return {
        "sum of the matrix": _sum_of(data.survival),
        READING: lambda: [ss.SurvivalCurves(matrix, grid) for matrix in (data.survival, data.censoring_survival)],
        ADMINISTRATIVE: lambda: ss.brier_score(y, first, weighting=both[0], times=grid, errors=False),
        KAPLAN_MEIER: lambda: ss.brier_score(y, first, weighting=both[1], times=grid, errors=False),
        ERRORS: lambda: ss.score_all(y, first, metric="brier", weighting=both, times=grid),
        COMPARED.format("administrative"): lambda: ss.compare(y, models, weighting=both[0], times=grid, null=False),
        COMPARED.format("Kaplan-Meier"): lambda: ss.compare(y, models, weighting=both[1], times=grid, null=False),
    }


def _sum_of(matrix: np.ndarray[Any, Any]) -> Callable[[], Any]:
    import numba

    @numba.njit(nogil=True, fastmath=True)
    def total(rows):
        found = 0.0
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                found += rows[i, j]
        return found

    blocks = row_blocks(*matrix.shape, compiled=True)
    return lambda: sum(each(lambda rows: total(matrix[rows]), blocks, threads=True))


def measured(calls: dict[str, Callable[[], Any]], counts: list[int]) -> dict[str, dict[int, float]]:
    """Return seconds by what is timed and how many cores it may use; all counts in turn."""
    found: dict[str, dict[int, float]] = {}
    for name, call in calls.items():

        def on(n: int, call: Callable[[], Any] = call) -> Callable[[], Any]:
            def run() -> Any:
                with ss.config.using(threads=n):
                    return call()

            return run

        timed = timings({str(n): on(n) for n in counts}, repetitions=7, budget=4.0)
        found[name] = {n: one.median for n in counts if isinstance(one := timed[str(n)], Timing)}
    return found


def as_table(found: dict[str, dict[int, float]], counts: list[int]) -> str:
    """Return milliseconds by number of cores, and how many times as fast the most are as one."""
    rows = []
    for name, seconds in found.items():
        wanted = f" (wanted {WANTED[name]})" if name in WANTED and counts[-1] == COUNTS[-1] else ""
        gain = number(seconds[counts[0]] / seconds[counts[-1]])
        rows.append([name, *(number(1e3 * seconds[n]) for n in counts), gain + wanted])
    return table(["cores", *map(str, counts), f"1 / {counts[-1]}"], rows)


def group_calls(n: int) -> dict[str, Callable[[], Any]]:
    """Return comparisons without groups, with few and with millions of them."""
    data = make(n, TIMES_WITH_GROUPS)
    models = {"first": ss.SurvivalCurves(data.survival, data.grid),
              "second": ss.SurvivalCurves(data.censoring_survival, data.grid)}  # fmt: skip
    rng = np.random.default_rng(2)
    kinds = {"": None, "50": rng.integers(0, 50, len(data)), f"{GROUPS:,}": rng.integers(0, GROUPS, len(data))}
    found: dict[str, Callable[[], Any]] = {}
    for weighting in ("administrative", "ipcw"):
        for name, groups in kinds.items():

            def call(weighting: str = weighting, groups: Any = groups) -> Any:
                return ss.compare(
                    data.outcomes, models, weighting=weighting, times=data.grid, null=False, groups=groups
                )

            found[f"{weighting}, {name + ' groups' if name else 'no groups'}"] = call
    return found


def group_table(names: Sequence[str], found: dict[str, Timing | str]) -> str:
    """Return seconds, and ratios to the comparison without groups."""
    rows = []
    for name in names:
        one, plain = found[name], found[f"{name.partition(',')[0]}, no groups"]
        if isinstance(one, Timing) and isinstance(plain, Timing):
            rows.append([name, number(one.median), number(one.median / plain.median)])
        else:
            rows.append([name, str(one), ""])
    return table(["compared", "s", "x without groups (wanted: 3)"], rows)


if __name__ == "__main__":
    main()

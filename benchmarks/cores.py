"""Speed on 1, 2, 4, 8 and 16 cores: scores, standard errors, comparisons, and the checks of what is read.

Needs survscore and numpy alone: ``PYTHONPATH=src python benchmarks/cores.py``. See README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import results
import survscore as ss
from data import Data
from measure import Timing, timings
from report import spaced
from results import Row, Run
from survscore._utils.parallel import each

ROWS, TIMES = 2_000_000, 150
ROWS_WITH_GROUPS, TIMES_WITH_GROUPS, GROUPS = 10_000_000, 24, (0, 50, 4_000_000)
COUNTS = (1, 2, 4, 8, 16)

READING = "checks of 2 models' curves"
ADMINISTRATIVE, KAPLAN_MEIER = "administrative Brier", "Kaplan-Meier Brier"
ERRORS, COMPARED = "both with standard errors", "two models compared, {}"
#: How many times as fast as on one core they should be on sixteen.
WANTED = {ADMINISTRATIVE: 6, ERRORS: 6, COMPARED.format("Kaplan-Meier"): 4}


def main() -> None:
    """Measure on as many cores as there are, and print tables."""
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="time only what has one of these words in its name")
    parser.add_argument("--groups", action="store_true", help="measure what groups cost, too")
    parser.add_argument("--group-rows", type=int, default=ROWS_WITH_GROUPS, metavar="ROWS", help="for that")
    options = parser.parse_args()
    run = Run(parser, options, packages=("numpy", "numba"), times=TIMES, type="float32", group_times=TIMES_WITH_GROUPS)
    counts = [n for n in COUNTS if n <= ss.config.n_cores()]
    chosen = calls(make(options.rows, TIMES))
    if options.only:
        chosen = {name: call for name, call in chosen.items() if any(word in name for word in options.only)}
    run.add("cores", columns(counts), core_rows(chosen, counts), f"{spaced(options.rows)} x {TIMES}, float32, ms")
    if options.groups:
        title = f"{spaced(options.group_rows)} x {TIMES_WITH_GROUPS}, two models"
        run.add("groups", GROUP_COLUMNS, group_rows(options.group_rows), title)
    run.write()


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

        each(fill, [slice(start, start + 10_000) for start in range(0, n, 10_000)], threads=True)
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

    blocks = [slice(start, start + 10_000) for start in range(0, len(matrix), 10_000)]
    return lambda: sum(each(lambda rows: total(matrix[rows]), blocks, threads=True))


def core_rows(calls: dict[str, Callable[[], Any]], counts: list[int]) -> list[Row]:
    """Return seconds by what is timed and how many cores it may use, all counts in turn, and the gain of the most."""
    rows = []
    for name, call in calls.items():

        def on(n: int, call: Callable[[], Any] = call) -> Callable[[], Any]:
            def run() -> Any:
                with ss.config.using(threads=n):
                    return call()

            return run

        timed = timings({str(n): on(n) for n in counts}, repetitions=7, budget=4.0)
        row: Row = {"name": name}
        row |= {f"seconds on {n}": one.median if isinstance(one := timed[str(n)], Timing) else one for n in counts}
        least, most = timed[str(counts[0])], timed[str(counts[-1])]
        if isinstance(least, Timing) and isinstance(most, Timing):
            row["gain"] = least.median / most.median
        if name in WANTED and counts[-1] == COUNTS[-1]:
            row["wanted"] = WANTED[name]
        rows.append(row)
    return rows


def columns(counts: list[int]) -> dict[str, str]:
    """Return a column for each number of cores."""
    gain = {f"1 / {counts[-1]}": "{gain:.1f}", "wanted": "{wanted}"}
    return {"cores": "{name}", **{str(n): f"{{seconds on {n}:ms}}" for n in counts}, **gain}


def group_rows(n: int) -> list[Row]:
    """Return seconds of comparisons without groups, with few and with millions of them, and ratios to the first."""
    data = make(n, TIMES_WITH_GROUPS)
    models = {"first": ss.SurvivalCurves(data.survival, data.grid),
              "second": ss.SurvivalCurves(data.censoring_survival, data.grid)}  # fmt: skip
    rng = np.random.default_rng(2)
    kinds = {count: rng.integers(0, count, len(data)) if count else None for count in GROUPS}
    rows = []
    for weighting in ("administrative", "ipcw"):

        def compared(groups: Any, weighting: str = weighting) -> Callable[[], Any]:
            settings = {"weighting": weighting, "times": data.grid, "null": False, "groups": groups}
            return lambda: ss.compare(data.outcomes, models, **settings)

        timed = timings({str(count): compared(groups) for count, groups in kinds.items()}, repetitions=3)
        row: Row = {"name": weighting}
        plain = timed["0"]
        for count in GROUPS:
            one = timed[str(count)]
            row[f"seconds {count}"] = one.median if isinstance(one, Timing) else one
            if isinstance(one, Timing) and isinstance(plain, Timing):
                row[f"times {count}"] = one.median / plain.median
        rows.append(row)
    return rows


GROUP_COLUMNS = {
    "compared": "{name}",
    "no groups": "{seconds 0:s} s",
    **{f"{spaced(count)} groups": f"{{seconds {count}:s}} s ({{times {count}:.1f}} times)" for count in GROUPS[1:]},
}


if __name__ == "__main__":
    main()

"""Concordance beside scikit-survival's: the same values, and the time they take.

    python benchmarks/concordance.py [--rows 10000 100000 1000000] [--json FILE]

Three minutes on two cores, most of them scikit-survival's, and 1 GB of memory. --quick is a smoke test on 2 000 rows.

scikit-survival's functions visit the pairs of each event, so they are asked at sizes where that ends. They return
values alone; survscore's times are given without and with standard errors (that of the estimated censoring included).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sksurv.metrics import concordance_index_censored, concordance_index_ipcw
from sksurv.util import Surv

import results
import survscore as ss
from data import Data, simulate
from measure import Timing, timings
from results import Row, Run

HORIZON = 60.0
SIZES, QUICK_SIZES = [10_000, 100_000, 1_000_000], [2_000]
MOST_ROWS_OF_PAIRS = 100_000
KINDS: dict[str, tuple[str, ss.Metric, str]] = {
    "harrell": ("Harrell's", ss.Concordance("harrell"), "ipcw"),
    "uno": ("Uno's", ss.Concordance(), "ipcw"),
    "cohort": ("of the cohort", ss.Concordance(), "administrative"),
    "pooled": ("pooled", ss.Concordance("pooled"), "administrative"),
}
COLUMNS = {
    "concordance": "{name}, {rows} individuals", "survscore, ms": "{seconds:ms}",
    "of the processor, ms": "{processor:ms}", "with errors, ms": "{with errors:ms}",
    "scikit-survival, ms": "{peer:ms}", "times as long": "{ratio:.0f}", "difference": "{difference:.0e}",
}  # fmt: skip


def ours(data: Data, metric: ss.Metric, weighting: str, *, errors: bool) -> Callable[[], float]:
    def call() -> float:
        found = ss.score_all(
            data.outcomes, data.curves, metric=metric, weighting=weighting, times=[HORIZON], errors=errors
        )
        return float(found[0].scores[0])

    return call


def theirs(data: Data) -> dict[str, Callable[[], float]]:
    """Return Harrell's and Uno's as scikit-survival has them, of the same risks.

    Harrell's is of all events, so those after the horizon are made censored; Uno's takes a horizon, and counts events
    before it. Risks count as equal if they are, and not already if they differ by 1e-8.
    """
    risk = 1.0 - data.curves.at([HORIZON])[:, 0].astype(np.float64)
    early = data.event & (data.time <= HORIZON)
    y = Surv.from_arrays(data.event, data.time)
    return {
        "harrell": lambda: concordance_index_censored(early, data.time, risk, tied_tol=0.0)[0],
        "uno": lambda: concordance_index_ipcw(y, y, risk, tau=HORIZON, tied_tol=0.0)[0],
    }


def timing(call: Callable[[], Any], repetitions: int) -> Timing:
    found = timings({"call": call}, repetitions=repetitions)["call"]
    if not isinstance(found, Timing):
        raise RuntimeError(found)
    return found


def rows_of(n: int) -> list[Row]:
    """Time every kind of concordance of so many individuals."""
    print(f"{n} individuals", file=sys.stderr)
    data = simulate(n, 20)
    others = theirs(data) if n <= MOST_ROWS_OF_PAIRS else {}
    rows = []
    for kind, (name, metric, weighting) in KINDS.items():
        plain, full = (ours(data, metric, weighting, errors=errors) for errors in (False, True))
        alone = timing(plain, 7)
        row: Row = {"name": name, "rows": n, "seconds": alone.median, "processor": alone.processor,
                    "with errors": timing(full, 7).median}  # fmt: skip
        if kind in others:
            peer = timing(others[kind], 3).median
            row |= {"peer": peer, "ratio": peer / alone.median, "difference": abs(plain() - others[kind]())}
        rows.append(row)
    return rows


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--quick", action="store_true", help="2 000 rows only")
    options = parser.parse_args()
    if options.quick:
        options.rows = QUICK_SIZES
    run = Run(parser, options, packages=("numpy", "numba", "scikit-survival"), horizon=HORIZON)
    run.add("concordance", COLUMNS, [row for n in options.rows for row in rows_of(n)], f"Concordance up to {HORIZON:g}")
    run.write()


if __name__ == "__main__":
    main()

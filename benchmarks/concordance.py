"""Concordance beside scikit-survival's: the same values, and the time they take.

    python benchmarks/concordance.py

Prints a Markdown table; half a minute on two cores, and 1 GB of memory. --quick is a smoke test on 2 000 rows.

scikit-survival's functions visit the pairs of each event, so they are asked at sizes where that ends. They return
values alone; survscore's times are given without and with standard errors (that of the estimated censoring included).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sksurv.metrics import concordance_index_censored, concordance_index_ipcw
from sksurv.util import Surv

import survscore as ss
from data import Data, simulate
from measure import Timing, timings

HORIZON = 60.0
SIZES = (2_000, 10_000, 50_000)
LARGE = 1_000_000


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


def seconds(call: Callable[[], Any], repetitions: int) -> float:
    found = timings({"call": call}, repetitions=repetitions)["call"]
    if not isinstance(found, Timing):
        raise RuntimeError(found)
    return found.median


def milliseconds(took: float) -> str:
    return f"{1000 * took:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 000 rows only")
    sizes = SIZES[:1] if parser.parse_args().quick else SIZES
    kinds: dict[str, tuple[ss.Metric, str]] = {
        "harrell": (ss.Concordance("harrell"), "ipcw"),
        "uno": (ss.Concordance(), "ipcw"),
        "cohort": (ss.Concordance(), "administrative"),
        "pooled": (ss.Concordance("pooled"), "administrative"),
    }
    print("| individuals | concordance | survscore, ms | with errors, ms | scikit-survival, ms | ratio | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n in [*sizes, *([LARGE] if sizes == SIZES else [])]:
        data = simulate(n, 20)
        others = theirs(data) if n != LARGE else {}
        for name, (metric, weighting) in kinds.items():
            plain, full = (ours(data, metric, weighting, errors=errors) for errors in (False, True))
            alone, with_errors = seconds(plain, 7), seconds(full, 7)
            row = [f"{n:,}".replace(",", " "), name, milliseconds(alone), milliseconds(with_errors)]
            if name in others:
                their = seconds(others[name], 3)
                row += [milliseconds(their), f"{their / alone:.0f}", f"{abs(plain() - others[name]()):.1g}"]
            else:
                row += ["", "", ""]
            print(f"| {' | '.join(row)} |", flush=True)
    print(f"\nUp to {HORIZON:g}; survscore {ss.__version__}.")


if __name__ == "__main__":
    main()

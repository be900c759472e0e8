"""What delayed entry and sample weights cost, beside the same data without: time of the processor, in memory.

    python benchmarks/entry_cost.py --json docs/benchmarks/entry_cost.json

Calls run in turn. Some five minutes on two cores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import survscore as ss
from measure import timings
from results import Run, parser

COLUMNS = {
    "call": "{name}", "plain, ms": "{plain:ms}", "delayed entry": "{entry:.2f}",
    "probability weights": "{probability:.2f}", "frequency weights": "{frequency:.2f}",
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    "brier_score at 2 times": lambda y, models: ss.brier_score(
        y, models["right"], weighting="administrative", times=[2, 4]
    ),
    "compare at 2 times": lambda y, models: ss.compare(y, models, times=[2, 4]),
    "compare at 50 times": lambda y, models: ss.compare(y, models, times=np.linspace(0.1, 6, 50)),
    "score_table": lambda y, models: ss.score_table(y, models, horizons=[2, 4]),
}


def made(n: int) -> tuple[dict[str, ss.Outcomes], dict[str, ss.SurvivalCurves]]:
    """Return outcomes of several kinds, and two models of 52 times."""
    rng = np.random.default_rng(1)
    rate, entry = 0.1 * np.exp(0.8 * rng.normal(size=n)), rng.uniform(0, 5, n)
    event_time, end = entry + rng.exponential(1 / rate), entry + rng.uniform(2, 8, n)
    times = np.linspace(0.25, 13, 52)
    models = {
        name: ss.SurvivalCurves(np.exp(-power * rate[:, None] * times), times, interpolation="linear")
        for name, power in (("right", 1.0), ("wrong", 1.2))
    }
    delayed = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end, entry=entry)
    plain = delayed.since_entry()
    return {
        "plain": plain,
        "entry": delayed,
        "probability": plain.weighted(rng.gamma(4, 1, n)),
        "frequency": plain.weighted(rng.integers(1, 4, n), "frequency"),
    }, models


def main(arguments: Sequence[str] | None = None) -> None:
    """Time all calls."""
    options_of = parser(__doc__)
    options_of.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000], help="individuals (%(default)s)")
    options = options_of.parse_args(arguments)
    run = Run(options_of, options)
    warnings.simplefilter("ignore")
    for n in options.rows:
        outcomes, models = made(n)
        rows = []
        for name, call in CALLS.items():
            calls = {kind: partial(call, y, models) for kind, y in outcomes.items()}
            timed = timings(calls, repetitions=9, budget=5.0)
            plain = timed["plain"].processor  # type: ignore[union-attr]
            ratios = {kind: one.processor / plain for kind, one in timed.items()}  # type: ignore[union-attr]
            rows.append({"name": name, **ratios, "plain": plain})
        run.add(f"{n:,} individuals", COLUMNS, rows, f"{n:,} individuals; times as long as plain")
    run.write()


if __name__ == "__main__":
    main()

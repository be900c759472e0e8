"""What scores of two causes cost beside those of one event, all with standard errors; see README.md.

    python benchmarks/cause_scores.py --json docs/benchmarks/cause_scores.json

The same individuals and predictions: events of any cause, then each cause, then both by the multi-class score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import results
import survscore as ss
from cores import make
from measure import Timing, timings
from report import spaced
from results import Row, Run

ROWS, TIMES = 100_000, 100
WEIGHTINGS = ("administrative", "ipcw", "projected")
MOST = 2.2  # times the score of one event, for both causes
COLUMNS = {
    "Brier score": "{name}",
    "one event, ms": "{one:ms}",
    "both causes": "{both:ms}",
    "ratio": "{ratio:.2f}",
    "multi-class": "{multiclass:ms}",
}


def calls(rows: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return, for each kind of score, the calls that are timed beside each other."""
    data = make(rows, TIMES)
    y, times = data.outcomes, data.grid
    cause = np.where(y.event, np.random.default_rng(2).integers(1, 3, rows), 0)
    causes = ss.Outcomes(y.time, cause, y.censoring_time)
    incidence = (1 - data.survival)[:, None] * np.array([0.5, 0.5], dtype=data.survival.dtype)[:, None]
    models = {"a": ss.IncidenceCurves(incidence, times), "b": ss.IncidenceCurves(incidence * 0.9, times)}
    # what is read for every score is made once, as for one event
    by_cause = [{name: curves.for_cause(k) for name, curves in models.items()} for k in (1, 2)]
    event_free = {name: curves.event_free() for name, curves in models.items()}

    def of_kind(call: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
        return {
            "one": lambda: call(y, event_free),
            "both": lambda: [call(causes.for_cause(k), of_cause) for k, of_cause in zip((1, 2), by_cause, strict=True)],
            "multiclass": lambda: call(causes.for_cause("all"), models),
        }

    found = {}
    for weighting in WEIGHTINGS:
        settings = {"weighting": weighting, "times": times}
        found[weighting] = of_kind(lambda y, m, settings=settings: ss.brier_score(y, m["a"], **settings))
        found[f"two models compared, {weighting}"] = of_kind(
            lambda y, m, settings=settings: ss.compare(y, m, **settings)
        )
    return found


def row(name: str, timed: Mapping[str, Timing | str]) -> Row:
    """Return seconds of each call."""
    failed = [timing for timing in timed.values() if isinstance(timing, str)]
    if failed:
        raise RuntimeError(failed[0])
    seconds = {kind: timing.median for kind, timing in timed.items()}  # type: ignore[union-attr]
    return {"name": name, **seconds, "ratio": seconds["both"] / seconds["one"]}


def main() -> None:
    """Measure, print and write."""
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    run = Run(parser, options, packages=("numpy", "numba"), times=TIMES, type="float32")
    rows = [row(name, timings(of_kind, repetitions=3)) for name, of_kind in calls(options.rows).items()]
    run.add("costs", COLUMNS, rows, f"{spaced(options.rows)} x {TIMES}, float32, with standard errors")
    run.add_targets((f"{one['name']}: both causes at most {MOST} times one event", one["ratio"], MOST) for one in rows)
    run.write()


if __name__ == "__main__":
    main()

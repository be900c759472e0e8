"""Version 0.2 and this one, side by side in one run: warm, and cold with nothing compiled; see README.md.

Needs the sources of 0.2, which ``make bench-engine`` takes from the history:
``python benchmarks/engine.py --old build/0.2/src``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from measure import printed_by

SIZES = ((1_000, 100), (10_000, 100), (100_000, 150), (1_000_000, 150))
SIX_ROWS = 100_000  # at most, for six models
TURNS = 2
COLD = (("score", 20_000, 100), ("comparison", 1_000_000, 100))
COLUMNS = {"ms, all cores": "{name}", "0.2": "{old:ms}", "now": "{new:ms}", "now / 0.2": "{ratio:.2f}",
           "wanted": "{wanted}"}  # fmt: skip
START = {"first call in a fresh process, nothing compiled": "{name}", "0.2, s": "{old:.1f}", "now, s": "{new:.1f}",
         "wanted": "{wanted}"}  # fmt: skip
WANTED_COLD = {"score": "1.5", "comparison": "15"}


def main() -> None:
    """Measure both versions in turn, and print tables."""
    if sys.argv[1:2] == ["worker"]:
        print(json.dumps(WORK[sys.argv[2]](*map(int, sys.argv[3:]))))
        return
    import results
    from results import Run

    parser = results.parser(__doc__)
    parser.add_argument("--old", type=Path, required=True, metavar="PATH", help="the sources of 0.2")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="ROWS", help="only data of so many rows")
    options = parser.parse_args()
    run = Run(parser, options, packages=("numpy", "numba"), type="float32")
    with tempfile.TemporaryDirectory() as caches:
        versions = {"old": options.old.resolve(), "new": Path(__file__).parents[1] / "src"}
        for n, m in SIZES:
            if options.sizes is None or n in options.sizes:
                run.add(f"warm {n}", COLUMNS, _warm(versions, Path(caches), n, m), f"{n:,} x {m}".replace(",", " "))
        if options.sizes is None:
            run.add("cold", START, _cold(versions))
    run.write()


def _warm(versions: dict[str, Path], caches: Path, n: int, m: int) -> list[dict[str, Any]]:
    """Return the fastest of several calls, in processes that alternate between the versions."""
    fastest: dict[str, dict[str, float]] = {name: {} for name in versions}
    for _ in range(TURNS):
        for name, path in versions.items():
            for case, seconds in _run(path, caches / name, "warm", n, m).items():
                fastest[name][case] = min(seconds, fastest[name].get(case, np.inf))
    rows = []
    for case, old in fastest["old"].items():
        new = fastest["new"][case]
        wanted = "" if n < 100_000 else "1.0" if case.startswith("six") else "2.0"
        rows.append({"name": case, "old": old, "new": new, "ratio": new / old, "wanted": wanted})
    return rows


def _cold(versions: dict[str, Path]) -> list[dict[str, Any]]:
    rows = []
    for kind, n, m in COLD:
        row: dict[str, Any] = {"name": f"{kind}, {n:,} x {m}".replace(",", " "), "wanted": WANTED_COLD[kind]}
        for name, path in versions.items():
            with tempfile.TemporaryDirectory() as cache:
                row[name] = _run(path, Path(cache), kind, n, m)
        rows.append(row)
    return rows


def _run(path: Path, cache: Path, *arguments: object) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(path), "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return printed_by(__file__, "worker", *arguments, env=environment)


def _draw(n: int, m: int) -> tuple[np.ndarray, ...]:
    """Return times, events, censoring times, a grid and the hazards of the individuals."""
    rng = np.random.default_rng(1)
    rate = rng.gamma(2.0, 0.05, n)
    event_time, censoring_time = rng.exponential(1.0, n) / rate, rng.uniform(2.0, 11.0, n)
    time = np.minimum(event_time, censoring_time)
    return time, event_time <= censoring_time, censoring_time, np.linspace(10.0 / m, 10.0, m), rate


def _curves(rate: np.ndarray, grid: np.ndarray, bias: float) -> Any:
    import survscore as ss

    return ss.SurvivalCurves(np.exp(np.outer(-bias * rate, grid).astype(np.float32)), grid)


def _first_call(n: int, m: int, compared: bool) -> float:
    """Return the seconds from importing survscore to the first result."""
    time_, event, end, grid, rate = _draw(n, m)
    start = time.perf_counter()
    import survscore as ss

    loaded = time.perf_counter() - start
    y, models = ss.Outcomes(time_, event, end), {bias: _curves(rate, grid, bias) for bias in (1.0, 1.1)}
    start = time.perf_counter()
    if compared:
        ss.compare(y, {"a": models[1.0], "b": models[1.1]}, weighting="ipcw", times=grid)
    else:
        ss.brier_score(y, models[1.0], weighting="ipcw", times=grid)
    return loaded + time.perf_counter() - start


def _warm_calls(n: int, m: int) -> dict[str, float]:
    """Return the seconds of each case, the fastest of several calls."""
    import survscore as ss

    time_, event, end, grid, rate = _draw(n, m)
    y, groups = ss.Outcomes(time_, event, end), np.arange(n) // 3
    biases = np.linspace(1.0, 1.5, 6 if n <= SIX_ROWS else 2)
    models = {f"model {k}": _curves(rate, grid, bias) for k, bias in enumerate(biases)}
    first, two = models["model 0"], {name: models[name] for name in ("model 0", "model 1")}
    cases: dict[str, Callable[[], Any]] = {}
    for weighting in ("administrative", "ipcw"):
        settings = {"weighting": weighting, "times": grid}
        cases |= {
            f"score, {weighting}": lambda s=settings: ss.brier_score(y, first, errors=False, **s),
            f"with standard errors, {weighting}": lambda s=settings: ss.brier_score(y, first, **s),
            f"two compared, {weighting}": lambda s=settings: ss.compare(y, two, null=False, **s),
            f"two compared, groups of 3, {weighting}": lambda s=settings: ss.compare(
                y, two, null=False, groups=groups, **s
            ),
        }
        if n <= SIX_ROWS:
            cases[f"six and the null model, {weighting}"] = lambda s=settings: ss.compare(y, models, **s)
    both = ["administrative", "ipcw"]
    cases["both weightings"] = lambda: ss.score_all(y, first, metric="brier", weighting=both, times=grid, errors=False)
    return {name: _fastest(call, 20 if n <= 10_000 else 3) for name, call in cases.items()}


def _fastest(call: Callable[[], Any], repetitions: int) -> float:
    call()
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


WORK: dict[str, Callable[..., Any]] = {
    "warm": _warm_calls,
    "score": lambda n, m: _first_call(n, m, compared=False),
    "comparison": lambda n, m: _first_call(n, m, compared=True),
}

if __name__ == "__main__":
    main()

"""Scores of predictions on a GPU, beside the sum of the matrix; see README.md.

Needs a CUDA device and torch: ``PYTHONPATH=src python benchmarks/gpu_scores.py``. ``--rows`` and ``--times`` set the
size. What is computed is compared with the processor's numbers first.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import results
import survscore as ss
from report import spaced
from results import Row, Run

WANTED_MS = {"administrative Brier": 60, "both weightings, with standard errors": 400}
WANTED_MS |= {"two models compared, administrative": 600, "two models compared, Kaplan-Meier": 600}
WANTED_DEVIATION, WANTED_MEMORY = 1e-9, 0.2  # of the matrix
CHECKED_ROWS = 100_000
AGREEMENT = {"against the processor": "{name}", "scores": "{scores:.0e}", "standard errors": "{errors:.0e}"}
COLUMNS = {"": "{name}", "ms": "{ms:.1f}", "times the sum": "{times:.1f}", "wanted ms": "{wanted}",
           "extra memory": "{memory:.1%}"}  # fmt: skip


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device")
    warnings.simplefilter("ignore")
    run = Run(parser, asked, packages=("torch", "numpy"), device=torch.cuda.get_device_name(), type="float32")
    run.add("agreement", AGREEMENT, check(asked.times),
            f"Largest relative deviations, {spaced(CHECKED_ROWS)} rows; wanted: {WANTED_DEVIATION:.0e}")  # fmt: skip
    title = f"{spaced(asked.rows)} x {asked.times}, float32; at most {WANTED_MEMORY:.0%} extra memory wanted"
    run.add("scores", COLUMNS, measure(asked.rows, asked.times, asked.repeats), title)
    run.write()


def draw(n: int, m: int, device: str = "cuda") -> tuple[ss.Outcomes, ss.SurvivalCurves, ss.SurvivalCurves, np.ndarray]:
    """Return outcomes with a cut-off date, and the predictions of two models."""
    torch.manual_seed(1)
    grid = np.linspace(100 / m, 100, m)
    rate = torch.rand(n, device=device, dtype=torch.float64) * 0.02 + 0.005
    event_time = torch.empty_like(rate).exponential_() / rate
    end = torch.rand(n, device=device, dtype=torch.float64) * 90 + 20
    y = ss.Outcomes(torch.minimum(event_time, end), event_time <= end, end)
    times = torch.tensor(grid, device=device, dtype=torch.float32)
    curves = [ss.SurvivalCurves(torch.exp(-(rate * bias).float()[:, None] * times), grid) for bias in (1.0, 1.1)]
    return y, *curves, grid


def calls(y: Any, a: Any, b: Any, grid: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what is timed."""
    models = {"a": a, "b": b}
    return {
        "administrative Brier": lambda: ss.brier_score(y, a, weighting="administrative", times=grid, errors=False),
        "both weightings": lambda: ss.score_all(
            y, a, metric="brier", weighting=["administrative", "ipcw"], times=grid, errors=False
        ),
        "both weightings, with standard errors": lambda: ss.score_all(
            y, a, metric="brier", weighting=["administrative", "ipcw"], times=grid
        ),
        "two models compared, administrative": lambda: ss.compare(
            y, models, weighting="administrative", times=grid, null=False
        ),
        "two models compared, Kaplan-Meier": lambda: ss.compare(y, models, weighting="ipcw", times=grid, null=False),
        "AUC at 5 times": lambda: ss.auc(y, a, weighting="administrative", times=grid[10::30]),
    }


def check(m: int) -> list[Row]:
    """Compare scores and standard errors with those of the same numbers in the processor's memory."""
    y, a, b, grid = draw(CHECKED_ROWS, m)
    rows = []
    for metric in ("brier", "log"):
        for weighting in ("administrative", "ipcw"):
            here, there = (
                ss.compare(one, two, metric=metric, weighting=weighting, times=grid)
                for one, two in ((y, {"a": a, "b": b}), (y.numpy(), {"a": a.numpy(), "b": b.numpy()}))
            )
            (found,), (expected,) = here.scored, there.scored
            rows.append({
                "name": f"{metric}, {weighting}",
                "scores": _deviation(found.scores, expected.scores),
                "errors": _deviation(found.moments.pointwise**0.5, expected.moments.pointwise**0.5),
            })  # fmt: skip
    return [*rows, {"name": "largest", **{name: max(row[name] for row in rows) for name in ("scores", "errors")}}]


def _deviation(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.nanmax(np.abs(found - expected) / np.abs(expected)))


def measure(n: int, m: int, repeats: int) -> list[Row]:
    """Time calls, and the memory that they take beside the matrices."""
    y, a, b, grid = draw(n, m)
    matrix = a.probabilities
    floor, _ = seconds(matrix.sum, repeats)
    size = matrix.numel() * matrix.element_size()
    rows: list[Row] = [{"name": "sum of the matrix", "ms": 1e3 * floor, "times": 1.0, "wanted": "", "memory": 0.0}]
    for name, call in calls(y, a, b, grid).items():
        taken, memory = seconds(call, repeats)
        rows.append({"name": name, "ms": 1e3 * taken, "times": taken / floor, "wanted": WANTED_MS.get(name, ""),
                     "memory": memory / size})  # fmt: skip
    return rows


def seconds(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the median time of a call, and the memory that it needs at most beside what is there."""
    work()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, found = torch.cuda.memory_allocated(), []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found), float(torch.cuda.max_memory_allocated() - before)


if __name__ == "__main__":
    main()

"""Scores of predictions on a GPU, beside the sum of the matrix; see README.md.

Needs a CUDA device, torch and Triton: ``PYTHONPATH=src python benchmarks/gpu_scores.py``. ``--check`` compares with the
processor only, in a few cases (``--check-all``: in all), ``--tune`` tries how kernels cut up their work, ``--rows`` and
``--times`` set the size.
"""

from __future__ import annotations

import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import results
import survscore as ss
from report import spaced
from results import Row, Run
from survscore.engine import tensor_identity, tensor_kernels
from survscore.engine.blocks import Block
from survscore.engine.evaluation import Evaluation
from survscore.engine.tensor_kernels import Predicted, Shape, shapes
from survscore.engine.tensor_sums import add_by_kernel
from survscore.engine.tensors import DeviceSums
from survscore.weighting.interval_weights import TimeIndex

KERNEL, PREPARED = "kernel, with the sums of weights", "with preparation: sorting, Kaplan-Meier, weights"
ERRORS = "with standard errors"
WANTED = {KERNEL: 1.7, PREPARED: 4.0, ERRORS: 8.0}
WANTED_DEVIATION = 1e-9
WANTED_MEMORY = 0.1  # of the matrix
CHECKED_ROWS = 100_000
FEW = ["administrative, Kaplan-Meier", "log, between grid points", "compared, null model", "drop-outs"]
WEIGHTINGS = ["administrative", "ipcw"]
CHUNK = 1_000_000
SIZES = [512, 1024, 2048]  # rows that a program walks down


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--times", type=int, default=150)
    parser.add_argument("--type", default="float32", choices=["float16", "bfloat16", "float32", "float64"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--check", action="store_true", help="only compare with the processor, in a few cases")
    parser.add_argument("--check-all", action="store_true", help="the same in all cases")
    parser.add_argument("--tune", action="store_true", help="try shapes of the kernels")
    parser.add_argument("--profile", action="store_true", help="show where the time of a score with errors goes")
    asked = parser.parse_args()
    if asked.json and (asked.tune or asked.profile):
        parser.error("--json goes with measurements and checks, not with --tune and --profile")
    if not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device")
    warnings.simplefilter("ignore")
    run = Run(parser, asked, packages=("torch", "triton", "numpy"), device=torch.cuda.get_device_name())
    run.add("agreement", AGREEMENT, check(asked.times, asked.type, [*asked_for(0)] if asked.check_all else FEW),
            f"Largest relative deviations, {spaced(CHECKED_ROWS)} rows, wanted: {WANTED_DEVIATION:.0e} for scores",
            )  # fmt: skip
    if not (asked.check or asked.check_all):
        y, matrix, grid = draw(asked.rows, asked.times, asked.type)
        size = f"{matrix.numel() * matrix.element_size() / 1e9:.1f} GB"
        print(f"\n{spaced(asked.rows)} x {asked.times}, {asked.type}: {size}\n")
        if asked.tune:
            tune(y, matrix, grid, asked.repeats)
        elif asked.profile:
            profile(y, matrix, grid)
        else:
            title = f"Brier unless said, both weightings; at most {WANTED_MEMORY:.0%} extra memory wanted"
            run.add("scores", COLUMNS, measure(y, matrix, grid, asked.repeats), title)
    run.write()


AGREEMENT = {
    "against float64 on the processor": "{name}", "scores": "{scores:.0e}", "variances": "{variances:.0e}",
    "of means": "{of means:.0e}", "bounds": "{bounds:.0e}",
}  # fmt: skip
COLUMNS = {
    "": "{name}", "ms": "{seconds:ms}", "times the sum": "{sums}", "wanted": "{wanted}",
    "extra memory, %": "{memory:%.2f}",
}  # fmt: skip


def draw(n: int, m: int, kind: str, seed: int = 1) -> tuple[ss.Outcomes, torch.Tensor, np.ndarray]:
    """Draw outcomes, with everybody's censoring time, and predictions, on the device."""
    source = torch.Generator("cuda").manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=source, device="cuda", dtype=torch.float64)

    grid = np.arange(1.0, m + 1)
    star = -uniform(n).clamp(min=1e-12).log() * m
    end = uniform(n) * m * 1.1
    y = ss.Outcomes(torch.minimum(star, end), star <= end, end)
    del star, end
    matrix = torch.empty((n, m), dtype=getattr(torch, kind), device="cuda")
    times = torch.arange(1, m + 1, device="cuda", dtype=torch.float32)
    for start in range(0, n, CHUNK):
        rate = (0.5 + uniform(min(CHUNK, n - start), 1).float()) / m
        matrix[start : start + CHUNK] = torch.exp(-rate * times)
    return y, matrix, grid


def check(m: int, kind: str, names: list[str]) -> list[Row]:
    """Compare with the processor's float64 results on some rows; the last row has the largest deviations of all."""
    rows: list[Row] = []
    for name in names:
        asked = asked_for(CHECKED_ROWS)[name]
        started = time.perf_counter()
        y, matrix, grid = draw(CHECKED_ROWS, m, kind)
        other = draw(CHECKED_ROWS, m, kind, seed=2)[1]
        times = grid[:-1] + 0.25 if "between grid points" in name else grid
        models = {"one": matrix, "other": other} if asked.pop("compared", False) else {"one": matrix}
        curves = {key: ss.SurvivalCurves(values, grid) for key, values in models.items()}
        of_lost = asked.pop("lost", False)
        if of_lost:
            y = lose_some(y)
        there = Evaluation.of(y, curves, times=times, unasked=False, **asked).run()
        exact = {
            key: ss.SurvivalCurves(one.numpy().probabilities.astype(np.float64), grid) for key, one in curves.items()
        }
        here = Evaluation.of(y.numpy(), exact, times=times, unasked=False, **asked).run()
        took = time.perf_counter() - started
        rows.append({"name": name, **deviation(there, here)})
        print(f"{name}: {took:.1f} s", flush=True)
    kinds = [kind for kind in rows[0] if kind != "name"]
    return [*rows, {"name": "largest", **{kind: max(row[kind] for row in rows) for kind in kinds}}]


def lose_some(y: ss.Outcomes) -> ss.Outcomes:
    """Let some drop out before their censoring time."""
    end: Any = y.time
    lost = (torch.arange(len(y), device=end.device) % 10 == 0) & ~torch.as_tensor(y.event)
    return ss.Outcomes(torch.where(lost, 0.5 * end, end), y.event, y.censoring_time)


def asked_for(n: int) -> dict[str, dict[str, Any]]:
    groups = np.arange(n) // 5
    return {
        "administrative, Kaplan-Meier": {"weighting": WEIGHTINGS},
        "between grid points": {"weighting": WEIGHTINGS},
        "log": {"weighting": WEIGHTINGS, "metric": "log"},
        "log, between grid points": {"weighting": WEIGHTINGS, "metric": "log"},
        "compared, null model": {"weighting": WEIGHTINGS, "compared": True, "null": True},
        "drop-outs": {"weighting": "administrative", "lost": True},
        "caps": {"weighting": ss.IPCW(max_weight=2)},
        "divided by n": {"weighting": ss.Administrative(normalize="n"), "lost": True},
        "groups": {"weighting": "administrative", "groups": groups},
        "AUC": {"weighting": WEIGHTINGS, "metric": "auc"},
    }


def deviation(found: list[Any], expected: list[Any]) -> dict[str, float]:
    """Return the largest relative deviations of scores, variances, variances of means, and bounds."""

    def largest(read: Callable[[Any], np.ndarray | None]) -> float:
        worst = 0.0
        for one, other in zip(found, expected, strict=True):
            a, b = read(one), read(other)
            if a is None or b is None:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                off = np.abs(a - b) / np.abs(b)
            worst = max(worst, float(np.nanmax(np.where(b == 0, np.abs(a), off), initial=0.0)))
        return worst

    return {
        "scores": largest(lambda one: one.scores),
        "variances": largest(lambda one: one.moments.pointwise),
        "of means": largest(lambda one: one.moments.of_averages),
        "bounds": largest(
            lambda one: None if one.bounds is None else np.concatenate((one.bounds.lower, one.bounds.upper))
        ),
    }


def seconds(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the median time of a call, after one that warms up, and the memory that it takes beside what is there."""
    work()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    taken = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(stop) / 1e3)
    return statistics.median(taken), float(torch.cuda.max_memory_allocated() - before)


def kernel_only(
    y: ss.Outcomes, curves: ss.SurvivalCurves, grid: np.ndarray, *, weights: bool = True
) -> Callable[[], Any]:
    """Return the call of the sums' kernels, both weightings at once, as scores make it once weights are known."""
    index, everybody, loss = TimeIndex(y, grid), Block(slice(0, len(y)), [curves]), ss.Brier()
    stretches = [ss.Administrative().prepare(index), ss.IPCW().prepare(index)]
    predicted = Predicted.of(curves, index)

    def run() -> None:
        if weights:
            total = DeviceSums(1, 1, 2, grid.size, y.device)
            add_by_kernel(everybody, index, [loss], stretches, [0, 1], total)
        else:
            tensor_kernels.first_moments(predicted, loss, stretches, everybody.rows, grid.size)

    return run


def prepared(y: ss.Outcomes, grid: np.ndarray) -> None:
    index = TimeIndex(y[:], grid)
    for weighting in (ss.Administrative(), ss.IPCW()):
        weighting.prepare(index)


def measure(y: ss.Outcomes, matrix: torch.Tensor, grid: np.ndarray, repeats: int) -> list[Row]:
    """Return time and memory of scores and more, beside the sum of the matrix."""
    curves = ss.SurvivalCurves(matrix, grid)
    size = matrix.numel() * matrix.element_size()
    floor, _ = seconds(matrix.sum, repeats)
    groups = torch.arange(len(y), device="cuda") // 5

    def run(**asked: Any) -> Callable[[], Any]:
        given = {"weighting": WEIGHTINGS, "times": grid, "unasked": False, **asked}
        models = given.pop("models", {"net": curves})
        return lambda: Evaluation.of(y, models, **given).run()

    cases: dict[str, Callable[[], Any]] = {
        "kernel, losses alone": kernel_only(y, curves, grid, weights=False),
        KERNEL: kernel_only(y, curves, grid),
        "preparation alone": lambda: prepared(y, grid),
        PREPARED: run(errors=False),
        ERRORS: run(),
        "administrative alone, with standard errors": run(weighting="administrative"),
        "log loss, scores": run(metric="log", errors=False),
        "groups of 5, administrative": run(weighting="administrative", groups=groups),
        "AUC at one time, administrative": run(
            metric="auc", weighting="administrative", times=grid[len(grid) // 2 :][:1]
        ),
        "checks of the matrix": lambda: ss.SurvivalCurves(matrix, grid),
    }
    rows: list[Row] = [{"name": "sum of the matrix", "seconds": floor, "sums": 1.0}]

    def add(name: str, work: Callable[[], Any]) -> None:
        took, memory = seconds(work, repeats)
        wanted = {"wanted": WANTED[name]} if name in WANTED else {}
        rows.append({"name": name, "seconds": took, "sums": took / floor, "memory": memory / size, **wanted})
        print(f"{name}: {1e3 * took:.2f} ms", flush=True)

    for name, work in cases.items():
        add(name, work)
    if torch.cuda.mem_get_info()[0] > 1.3 * size:
        other = ss.SurvivalCurves((matrix * 0.98).to(matrix.dtype), grid)
        add("two models compared", run(models={"one": curves, "other": other}))
    return rows


def every(**choices: list[Any]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def tune(y: ss.Outcomes, matrix: torch.Tensor, grid: np.ndarray, repeats: int) -> None:
    """Print the fastest shapes of each kernel."""
    curves = ss.SurvivalCurves(matrix, grid)
    floor, _ = seconds(matrix.sum, repeats)
    print(f"sum of the matrix: {1e3 * floor:.2f} ms")
    kernels: dict[str, tuple[Callable[[], Callable[[], Any]], Iterator[dict[str, Any]]]] = {
        "sums": (lambda: kernel_only(y, curves, grid, weights=False), every(rows=[1, 2, 4], rows_per_program=SIZES)),
        "sums_and_squares": (lambda: of_moments(y, curves, grid)["with squares"], every(rows_per_program=SIZES)),
        "squares": (lambda: of_moments(y, curves, grid)["two models"], every(rows=[1, 2], rows_per_program=SIZES)),
        "runs": (lambda: of_moments(y, curves, grid)["runs"], every(rows_per_program=SIZES)),
    }
    for name, (make, choices) in kernels.items():
        usual: Shape = getattr(shapes, name)
        found = []
        for choice in choices:
            setattr(shapes, name, replace(usual, **choice))
            try:
                found.append((seconds(make(), 3)[0], choice))
            except Exception as error:  # some shapes do not fit on the device
                print(f"{name} {choice}: {type(error).__name__}: {error}")
        setattr(shapes, name, usual)
        print(f"\n{name}, as it is: {usual}; the fastest:")
        for took, choice in sorted(found, key=lambda pair: pair[0]):
            print(f"  {1e3 * took:.2f} ms, {took / floor:.2f} times the sum: {choice}", flush=True)


def of_moments(y: ss.Outcomes, curves: ss.SurvivalCurves, grid: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return the calls of kernels of second moments alone, under weights by Kaplan-Meier."""
    models = {"one": curves, "same": curves}
    evaluation = Evaluation.of(y, models, weighting="ipcw", times=grid, unasked=False)
    index, brier, backend = evaluation.index, ss.Brier(), evaluation._backend(evaluation._losses)
    ipcw = ss.IPCW().prepare(index)
    total = backend.sums(evaluation.models, index, evaluation._losses, [ipcw])
    counted = backend.counted(ipcw.population_stop, grid.size)
    where, _ = evaluation._undefined(brier, 0, ipcw, total)
    scored = evaluation._scored_loss(evaluation._losses[0], 0, ipcw, total, counted, where)
    units = backend.units(ipcw, None, counted)
    made = tensor_identity._Identity(scored, evaluation.models, units, evaluation._averages([where]))
    runs, both = tensor_identity.Runs(ipcw, index).make(), (made.predicted[0], made.predicted[1])
    over_time, everybody = made._over_time(slice(0, 1), stores=True), slice(0, len(y))
    centre = made.deviating.centres[0]
    return {
        "with squares": lambda: tensor_kernels.first_moments(both[0], brier, [ipcw], everybody, grid.size, centre),
        "two models": lambda: tensor_kernels.second_moments(made.deviating, (0, 1), both, over_time, None),
        "runs": lambda: tensor_kernels.add_runs(made.deviating, (0, 0), (both[0], both[0]), runs.ordered),
    }


def profile(y: ss.Outcomes, matrix: torch.Tensor, grid: np.ndarray) -> None:
    """Print which operations take the time."""
    curves = ss.SurvivalCurves(matrix, grid)
    evaluation = Evaluation.of(y, {"net": curves}, weighting=WEIGHTINGS, times=grid, unasked=False)
    evaluation.run()
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as seen:
        Evaluation.of(y, {"net": curves}, weighting=WEIGHTINGS, times=grid, unasked=False).run()
    print(seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=60))


if __name__ == "__main__":
    main()

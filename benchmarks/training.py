"""Time of training and prediction of survscore's networks, beside pycox; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from typing import Any

import numpy as np

import results
from measure import extra_memory, printed_by
from report import spaced
from results import Row, Run

OURS, PYCOX = "survscore", "pycox"
TRAINING, VALIDATION = (20_000, 1), (10_000, 2)  # rows, seed
N_TIMES = 50
NET = {"n_layers": 4, "width": 32, "dropout": 0.1}
BATCH, RATE = 256, 0.01
EPOCHS, SEEDS = 15, (0, 1, 2, 3, 4)  # cycles of 1, 2, 4 and 8 epochs
REPETITIONS = 5
ROWS, N_COVARIATES, N_OUTPUTS, N_WANTED = 100_000, 40, 150, 1_000
LARGE_NET = {"n_layers": 6, "width": 128, "dropout": 0.1}
SCORED_EPOCHS = 4  # the first prepares the score
TARGETS = {"epoch": 1.5, "prediction": 4.0, "bytes": 5e8, "score": 0.05}


def main() -> None:
    """Measure with one and with two threads, each in a process of its own, and print tables."""
    parser = results.parser(__doc__)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        print(json.dumps(measure(options.threads)))
        return
    counts = [n for n in (1, 2) if n <= len(os.sched_getaffinity(0))]
    run = Run(parser, options, packages=("torch", "pycox", "torchtuples", "numpy", "numba"), **SETTINGS)
    found = {threads: in_process_with(threads) for threads in counts}
    run.add("networks", NETWORKS, network_rows(found), "Networks")
    run.add("memory", MEMORY, memory_rows(found), f"Extra memory of predictions, {ROWS} x {N_WANTED}, result included")
    run.add("validation", VALIDATION_SCORE, validation_rows(found), f"A validation score, {ROWS} x {N_OUTPUTS}")
    run.write()


def in_process_with(threads: int) -> dict[str, Any]:
    """Run this script on so many cores."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    return printed_by(  # type: ignore[no-any-return]
        __file__, "--threads", threads, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )


def measure(threads: int) -> dict[str, Any]:
    """Return all numbers for one number of threads."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    data = examples()
    seconds: dict[str, list[float]] = {OURS: [], PYCOX: []}
    for seed in SEEDS:
        for name, run in ((OURS, train_ours), (PYCOX, train_pycox)):  # in turn, so that the machine's moods meet both
            seconds[name] += run(data, seed)
    return {
        "epoch": {name: statistics.median(values) for name, values in seconds.items()},
        **predictions(),
        **validation_score(),
    }


def examples() -> dict[str, Any]:
    """Return the paper's simulation with simple censoring, as both libraries take it.

    pycox has no way to say that an individual was censored in the first interval, so those are left out for both.
    """
    from survscore.models.grid import hazard_labels
    from survscore.simulate import SineConstantAcceleratingStudy

    study = SineConstantAcceleratingStudy("simple")
    grid = np.linspace(100 / N_TIMES, 100, N_TIMES)
    parts = {}
    for name, (n, seed) in (("training", TRAINING), ("validation", VALIDATION)):
        sample = study.sample(n, seed=seed)
        labels = hazard_labels(sample.outcomes.time, sample.outcomes.event, grid)
        seen = np.flatnonzero((labels != 0).any(axis=1))
        X = sample.covariates.to_numpy(dtype=np.float64)[seen]
        labels = labels[seen]
        parts[name] = {
            "X": X, "labels": labels,
            "pycox": ((labels != 0).sum(axis=1) - 1, (labels == 1).any(axis=1).astype(np.float32)),
        }  # fmt: skip
    mean, scale = parts["training"]["X"].mean(axis=0), parts["training"]["X"].std(axis=0)
    for part in parts.values():
        part["X"] = ((part["X"] - mean) / scale).astype(np.float32)
    return parts


def train_ours(data: dict[str, Any], seed: int) -> list[float]:
    """Return the seconds of each epoch."""
    import torch

    from survscore.models.architectures import DenseNet, TabularNet
    from survscore.models.training import Examples, Schedule, Settings, train

    def ready(part: dict[str, Any]) -> Examples:
        codes = np.zeros((len(part["X"]), 0), dtype=np.int64)
        return Examples.of((part["X"], codes), part["labels"], torch.device("cpu"))

    training, validation = ready(data["training"]), ready(data["validation"])
    torch.manual_seed(seed)
    n_inputs = data["training"]["X"].shape[1]
    net = TabularNet(n_inputs, [], N_TIMES, lambda a, b: DenseNet(a, b, **NET, batch_norm=True))
    settings = Settings(Schedule(rate=RATE), BATCH, EPOCHS, EPOCHS, 0.0, progress=False)
    seconds: list[float] = train(net, training, validation, settings, seed=seed).to_frame()["seconds"].tolist()
    return seconds


def train_pycox(data: dict[str, Any], seed: int) -> list[float]:
    """Return the same of pycox."""
    import torch
    import torchtuples as tt
    from pycox.models import LogisticHazard

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (pycox draws its batches from it)
    training, validation = data["training"], data["validation"]
    layers = [NET["width"]] * NET["n_layers"]
    net = tt.practical.MLPVanilla(training["X"].shape[1], layers, N_TIMES, True, NET["dropout"])
    optimiser = tt.optim.AdamWR(RATE, decoupled_weight_decay=0.0, cycle_eta_multiplier=0.8, cycle_multiplier=2)
    seconds: list[float] = []

    class Clock(tt.callbacks.Callback):
        def on_epoch_start(self) -> None:
            self.begun = time.perf_counter()

        def on_epoch_end(self) -> bool:
            seconds.append(time.perf_counter() - self.begun)
            return False

    LogisticHazard(net, optimiser).fit(
        training["X"], training["pycox"], BATCH, EPOCHS, [Clock()], verbose=False,
        val_data=(validation["X"], validation["pycox"]),
    )  # fmt: skip
    return seconds


def predictions() -> dict[str, Any]:
    """Time predictions at many times, and what they need in memory."""
    import torchtuples as tt
    from pycox.models import LogisticHazard as PycoxLogisticHazard

    import survscore as ss

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, N_COVARIATES)).astype(np.float32)
    y = ss.Outcomes(rng.exponential(1.0, 3_000), np.ones(3_000))
    ours = ss.models.LogisticHazard(n_times=N_OUTPUTS, **LARGE_NET, epochs=1, random_state=0, device="cpu").fit(
        X[:3_000], y
    )
    times = np.linspace(0, ours.times_[-1], N_WANTED)
    layers = [LARGE_NET["width"]] * LARGE_NET["n_layers"]
    net = tt.practical.MLPVanilla(N_COVARIATES, layers, N_OUTPUTS, True, 0.1)
    theirs = PycoxLogisticHazard(net, tt.optim.Adam, duration_index=np.linspace(0, 1, N_OUTPUTS))
    steps = -(-(N_WANTED - 1) // (N_OUTPUTS - 1))  # pycox cuts each interval into equal parts
    calls = {
        OURS: lambda: ours.predict_curves(X, times),
        PYCOX: lambda: theirs.interpolate(steps).predict_surv(X),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(REPETITIONS + 2):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            if turn > 1:
                seconds[name].append(time.perf_counter() - begun)
    return {
        "prediction": {name: statistics.median(values) for name, values in seconds.items()},
        "bytes": {name: extra_memory(call, 2) for name, call in calls.items()},
    }


def validation_score() -> dict[str, Any]:
    """Return what a score of the validation data adds to an epoch of training: as many rows, a large net."""
    import torch

    import survscore as ss
    from survscore.models.architectures import DenseNet, TabularNet
    from survscore.models.grid import hazard_labels
    from survscore.models.history import EpochScore
    from survscore.models.losses import survival_from_hazards
    from survscore.models.training import Examples, Schedule, Settings, train

    rng = np.random.default_rng(0)
    star, end = rng.exponential(60.0, ROWS), rng.uniform(0.0, 100.0, ROWS)
    y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    grid = np.linspace(0.0, 100.0, N_OUTPUTS + 1)[1:]
    X = rng.normal(size=(ROWS, N_COVARIATES)).astype(np.float32)
    codes = np.zeros((ROWS, 0), dtype=np.int64)
    data = Examples.of((X, codes), hazard_labels(y.time, y.event, grid), torch.device("cpu"))

    class Timed(EpochScore):
        seconds: list[float]

        def update(self, logits: torch.Tensor) -> None:
            begun = time.perf_counter()
            super().update(logits)
            self.spent += time.perf_counter() - begun

        def value(self) -> float:
            begun = time.perf_counter()
            mean = super().value()
            self.seconds.append(self.spent + time.perf_counter() - begun)
            self.spent = 0.0
            return mean

    def as_curves(logits: torch.Tensor) -> ss.SurvivalCurves:
        return ss.SurvivalCurves(survival_from_hazards(logits).numpy(), grid)

    score = Timed(ss.models.ValidationScore(weighting="administrative", times=grid), y, as_curves)
    score.seconds, score.spent = [], 0.0
    net = TabularNet(N_COVARIATES, [], N_OUTPUTS, lambda a, b: DenseNet(a, b, **LARGE_NET, batch_norm=True))
    settings = Settings(Schedule("constant", RATE), BATCH, SCORED_EPOCHS, SCORED_EPOCHS, 0.0, progress=False)
    epochs = train(net, data, data, settings, seed=0, scores=[score]).to_frame()["seconds"]
    pairs = list(zip(score.seconds, epochs, strict=True))[1:]
    return {
        "score": statistics.median(spent for spent, _ in pairs),
        "scored_epoch": statistics.median(epoch - spent for spent, epoch in pairs),
    }


SETTINGS = {
    "training": TRAINING[0], "validation": VALIDATION[0], "outputs": N_TIMES, "batch": BATCH, "seeds": len(SEEDS),
    "scored": ROWS, "scored_times": N_OUTPUTS,
}  # fmt: skip
NETWORKS = {
    "milliseconds": "{name}", **{name: f"{{{name}:ms}}" for name in (OURS, PYCOX)}, "ratio": "{ratio}",
    "wanted": "{wanted}",
}  # fmt: skip
MEMORY = {"threads": "{threads}", **{name: f"{{{name}:MB}} MB" for name in (OURS, PYCOX)}, "wanted": "{wanted:MB} MB"}
VALIDATION_SCORE = {
    "threads": "{threads}", "score, ms": "{score:ms}", "epoch on as many rows, ms": "{epoch:ms}", "%": "{share:%}",
    "wanted, %": "{wanted:%}",
}  # fmt: skip


def network_rows(found: dict[int, dict[str, Any]]) -> list[Row]:
    """Return the time of epochs and of predictions, by the number of threads."""
    net = f"{NET['n_layers']} x {NET['width']}, {N_TIMES} outputs"
    large = f"{LARGE_NET['n_layers']} x {LARGE_NET['width']}, {N_OUTPUTS} outputs, read at {spaced(N_WANTED)} times"
    names = {
        "epoch": f"an epoch with validation ({net})",
        "prediction": f"prediction, {spaced(ROWS)} rows ({large})",
    }
    return [
        {"name": f"{name}, {_threads(threads)}", **values[what], "ratio": values[what][PYCOX] / values[what][OURS],
         "wanted": TARGETS[what]}
        for what, name in names.items() for threads, values in found.items()
    ]  # fmt: skip


def _threads(n: int) -> str:
    return f"{n} thread{'' if n == 1 else 's'}"


def memory_rows(found: dict[int, dict[str, Any]]) -> list[Row]:
    """Return the extra memory of predictions, by the number of threads."""
    return [{"threads": threads, **values["bytes"], "wanted": TARGETS["bytes"]} for threads, values in found.items()]


def validation_rows(found: dict[int, dict[str, Any]]) -> list[Row]:
    """Return what a validation score takes beside an epoch, by the number of threads."""
    return [
        {"threads": threads, "score": values["score"], "epoch": values["scored_epoch"],
         "share": values["score"] / values["scored_epoch"], "wanted": TARGETS["score"]}
        for threads, values in found.items()
    ]  # fmt: skip


if __name__ == "__main__":
    main()

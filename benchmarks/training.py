"""Time of training and prediction of survscore's networks, beside pycox; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from measure import HERE, extra_memory
from report import number, table

OURS, PYCOX = "survscore", "pycox"
TRAINING, VALIDATION = (20_000, 1), (10_000, 2)  # rows, seed
N_TIMES = 50
NET = {"n_layers": 4, "width": 32, "dropout": 0.1}
BATCH, RATE = 256, 0.01
EPOCHS, SEEDS = 15, (0, 1, 2, 3, 4)  # cycles of 1, 2, 4 and 8 epochs
REPETITIONS = 5
ROWS, N_COVARIATES, N_OUTPUTS, N_WANTED = 100_000, 40, 150, 1_000
LARGE_NET = {"n_layers": 6, "width": 128, "dropout": 0.1}
TARGETS = {"epoch": 1.5, "prediction": 4.0, "megabytes": 500.0}


def main() -> None:
    """Measure with one and with two threads, each in a process of its own, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        print(json.dumps(measure(options.threads)))
        return
    counts = [n for n in (1, 2) if n <= len(os.sched_getaffinity(0))]
    found = {threads: in_process_with(threads) for threads in counts}
    for threads, results in found.items():
        print(f"\n## Networks, {threads} thread{'s' if threads > 1 else ''}\n\n{as_table(results)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def in_process_with(threads: int) -> dict[str, Any]:
    """Run this script on so many cores."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(
        [sys.executable, str(HERE / "training.py"), "--threads", str(threads)],
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def measure(threads: int) -> dict[str, Any]:
    """Return all numbers for one number of threads."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    data = examples()
    seconds: dict[str, list[float]] = {OURS: [], PYCOX: []}
    losses: dict[str, list[list[float]]] = {OURS: [], PYCOX: []}
    for seed in SEEDS:
        for name, run in ((OURS, train_ours), (PYCOX, train_pycox)):  # in turn, so that the machine's moods meet both
            per_epoch, by_epoch = run(data, seed)
            seconds[name] += per_epoch
            losses[name].append(by_epoch)
    return {
        "epoch": {name: statistics.median(values) for name, values in seconds.items()},
        "best": {name: [min(run) for run in runs] for name, runs in losses.items()},
        "epochs_to_pycox": [
            next((i + 1 for i, loss in enumerate(ours) if loss <= min(theirs)), None)
            for ours, theirs in zip(losses[OURS], losses[PYCOX], strict=True)
        ],
        "pycox_epochs": [int(np.argmin(run)) + 1 for run in losses[PYCOX]],
        **predictions(),
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


def train_ours(data: dict[str, Any], seed: int) -> tuple[list[float], list[float]]:
    """Return seconds and validation losses by epoch."""
    import torch

    from survscore.models.architectures import DenseNet, TabularNet
    from survscore.models.schedule import Schedule
    from survscore.models.training import Settings, train
    from survscore.models.training_data import Examples

    def ready(part: dict[str, Any]) -> Examples:
        codes = np.zeros((len(part["X"]), 0), dtype=np.int64)
        return Examples.of((part["X"], codes), part["labels"], torch.device("cpu"))

    training, validation = ready(data["training"]), ready(data["validation"])
    torch.manual_seed(seed)
    n_inputs = data["training"]["X"].shape[1]
    net = TabularNet(n_inputs, [], N_TIMES, lambda a, b: DenseNet(a, b, **NET, batch_norm=True))
    settings = Settings(Schedule(rate=RATE), BATCH, EPOCHS, EPOCHS, 0.0, progress=False)
    history = train(net, training, validation, settings, seed=seed).to_frame()
    return history["seconds"].tolist(), history["validation_loss"].tolist()


def train_pycox(data: dict[str, Any], seed: int) -> tuple[list[float], list[float]]:
    """Return the same of pycox; its own record of the loss is no mean over individuals, so the true one is computed."""
    import torch
    import torchtuples as tt
    from pycox.models import LogisticHazard

    from survscore.models.losses import binary_log_likelihood_loss

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (pycox draws its batches from it)
    training, validation = data["training"], data["validation"]
    layers = [NET["width"]] * NET["n_layers"]
    net = tt.practical.MLPVanilla(training["X"].shape[1], layers, N_TIMES, True, NET["dropout"])
    optimiser = tt.optim.AdamWR(RATE, decoupled_weight_decay=0.0, cycle_eta_multiplier=0.8, cycle_multiplier=2)
    model = LogisticHazard(net, optimiser)
    labels, inputs = torch.from_numpy(validation["labels"]), torch.from_numpy(validation["X"])
    seconds: list[float] = []
    losses: list[float] = []

    class Clock(tt.callbacks.Callback):
        def on_epoch_start(self) -> None:
            self.begun = time.perf_counter()

    class Record(tt.callbacks.Callback):
        def on_epoch_end(self) -> bool:
            seconds.append(time.perf_counter() - clock.begun)
            net.eval()
            with torch.inference_mode():
                losses.append(float(binary_log_likelihood_loss(net(inputs), labels)))
            return False

    clock, record = Clock(), Record()
    model.fit(
        training["X"], training["pycox"], BATCH, EPOCHS, [clock, record], verbose=False,
        val_data=(validation["X"], validation["pycox"]),
    )  # fmt: skip
    return seconds, losses


def predictions() -> dict[str, Any]:
    """Time predictions at many times, and what they need in memory."""
    import torchtuples as tt
    from pycox.models import LogisticHazard as PycoxLogisticHazard

    import survscore as ss

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, N_COVARIATES)).astype(np.float32)
    y = ss.Outcomes(rng.exponential(1.0, 3_000), np.ones(3_000))
    ours = ss.models.LogisticHazard(N_OUTPUTS, **LARGE_NET, epochs=1, random_state=0, device="cpu").fit(X[:3_000], y)
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
        "megabytes": {name: extra_memory(call, 2) / 1e6 for name, call in calls.items()},
    }


def as_table(results: dict[str, Any]) -> str:
    """Return one number of threads as a table."""
    epoch, prediction, megabytes = (results[key] for key in ("epoch", "prediction", "megabytes"))
    reached = [epochs for epochs in results["epochs_to_pycox"] if epochs is not None]
    best = {name: statistics.mean(values) for name, values in results["best"].items()}
    what = f"{TRAINING[0]} x 23, 4 x 32, {N_TIMES} outputs, batch {BATCH}"
    rows = [
        [f"an epoch with validation, ms ({what})", *(number(1e3 * epoch[n]) for n in (OURS, PYCOX)),
         number(epoch[PYCOX] / epoch[OURS]), f"{TARGETS['epoch']:g}"],
        [f"best validation loss in {EPOCHS} epochs, mean of {len(SEEDS)}", *(f"{best[n]:.4f}" for n in (OURS, PYCOX)),
         "", "no higher"],
        ["epochs to pycox's best, median", f"{statistics.median(reached):g}" if reached else "not reached",
         f"{statistics.median(results['pycox_epochs']):g}", f"reached in {len(reached)} of {len(SEEDS)}", "no more"],
        [f"prediction, ms ({ROWS} rows, 6 x 128, {N_OUTPUTS} outputs, read at {N_WANTED} times)",
         *(number(1e3 * prediction[n]) for n in (OURS, PYCOX)), number(prediction[PYCOX] / prediction[OURS]),
         f"{TARGETS['prediction']:g}"],
        ["its extra memory with the result, MB", *(f"{megabytes[n]:.0f}" for n in (OURS, PYCOX)), "",
         f"{TARGETS['megabytes']:g}"],
    ]  # fmt: skip
    return table(["", OURS, PYCOX, "times as fast", "wanted"], rows)


if __name__ == "__main__":
    main()

"""Training on a GPU: one captured graph per step beside ordinary calls; see README.md.

Needs a CUDA device and survscore with its models: ``PYTHONPATH=src python benchmarks/gpu.py``.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import results
from results import Row, Run
from survscore import Outcomes
from survscore.models import LogisticHazard
from survscore.models.architectures import DenseNet, TabularNet
from survscore.models.training import WARM_UP_STEPS, Examples, Schedule, Settings, _Stepper, train

CASES = {
    "10 000 x 36, 4 x 32, 50 outputs": (10_000, 36, 50, {"n_layers": 4, "width": 32}),
    "100 000 x 40, 6 x 128, 150 outputs": (100_000, 40, 150, {"n_layers": 6, "width": 128}),
}
BATCH, EPOCHS = 256, 15
TOGETHER = (1, 2, 4, 8, 16)
TURNS = 5  # both in turn, so that the machine's moods meet both
WANTED = 8  # times, for the small net
CAPTURED_COLUMNS = {
    "an epoch with validation": "{name}", "captured, ms": "{captured:ms}", "ordinary, ms": "{ordinary:ms}",
    "times as fast": "{ratio:.1f}", "wanted": "{wanted}",
}  # fmt: skip
TOGETHER_COLUMNS = {
    "replicates at once": "{nets}", "ms per epoch of all": "{seconds:ms}",
    "times the throughput of one": "{throughput:.1f}",
}  # fmt: skip


def main() -> None:
    """Measure, and check that a model trained there predicts as one trained here."""
    parser = results.parser(__doc__)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device")
    run = Run(parser, options, packages=("torch", "numpy"), device=torch.cuda.get_device_name(), batch=BATCH)
    run.add("captured", CAPTURED_COLUMNS, captured_rows())
    run.add("together", TOGETHER_COLUMNS, together_rows())
    check_predictions()
    run.write()


def captured_rows() -> list[Row]:
    """Time epochs with steps that are captured, and with ordinary calls."""
    rows = []
    for name, case in CASES.items():
        turns = [[epoch_seconds(*case, capture=capture) for capture in (True, False)] for _ in range(TURNS)]
        captured, ordinary = (statistics.median(values) for values in zip(*turns, strict=True))
        wanted = {} if rows else {"wanted": WANTED}
        rows.append({"name": name, "captured": captured, "ordinary": ordinary, "ratio": ordinary / captured, **wanted})
    return rows


def together_rows() -> list[Row]:
    """Time epochs of several small nets at once."""
    case = next(iter(CASES.values()))
    seconds = {n: together(n, *case) for n in TOGETHER}
    return [{"nets": n, "seconds": took, "throughput": n * seconds[1] / took} for n, took in seconds.items()]


SETTINGS = Settings(Schedule(), BATCH, EPOCHS, EPOCHS, 0.0, progress=False)


def epoch_seconds(n: int, p: int, m: int, net: dict[str, Any], *, capture: bool) -> float:
    """Return the median time of an epoch, the first ones, which warm up, left out."""
    settings = replace(SETTINGS, capture=capture)
    history = train(make(p, m, net), draw(n, p, m), draw(n // 5, p, m), settings, seed=0)
    return statistics.median(epoch["seconds"] for epoch in history.epochs[2:])


def together(n_nets: int, n: int, p: int, m: int, net: dict[str, Any]) -> float:
    """Return the time of an epoch, without validation, of several nets whose graphs run side by side on the device."""
    steppers = [_Stepper(make(p, m, net).train(), draw(n, p, m), SETTINGS) for _ in range(n_nets)]
    streams = [torch.cuda.Stream() for _ in range(n_nets)]
    for stepper in steppers:  # capture, one after the other
        for start, stop in [stepper.batches[0], stepper.batches[-1]] * (WARM_UP_STEPS + 1):
            stepper.step(torch.arange(start, stop, device="cuda"))
    seconds = []
    for _ in range(5):
        orders = [torch.randperm(n).cuda() for _ in range(n_nets)]
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for start, stop in steppers[0].batches:
            for stepper, stream, order in zip(steppers, streams, orders, strict=True):
                with torch.cuda.stream(stream):
                    stepper.step(order[start:stop])
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def make(p: int, m: int, net: dict[str, Any]) -> TabularNet:
    """Return a new net."""
    return TabularNet(p, [], m, lambda a, b: DenseNet(a, b, **net, dropout=0.1, batch_norm=True)).cuda()


def draw(n: int, p: int, m: int) -> Examples:
    """Return random examples."""
    rng = np.random.default_rng(0)
    encoded = rng.normal(size=(n, p)).astype(np.float32), np.zeros((n, 0), dtype=np.int64)
    return Examples.of(encoded, rng.integers(-1, 2, (n, m)).astype(np.int8), torch.device("cuda"))


def check_predictions() -> None:
    """Print how far models of both devices, and of both ways to step, lie apart; dropout is off."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4_000, 5))
    y = Outcomes(rng.exponential(np.exp(0.5 * X[:, 0])).clip(0, 5), np.ones(4_000))
    settings = {"n_times": 20, "dropout": 0.0, "epochs": 7, "random_state": 0}
    curves = {
        device: LogisticHazard(**settings, device=device).fit(X, y).predict_curves(X).probabilities
        for device in ("cuda", "cpu")
    }
    again = LogisticHazard(**settings, device="cuda").fit(X, y).predict_curves(X).probabilities
    print(f"\nlargest difference of predicted survival, twice on the GPU: {np.abs(again - curves['cuda']).max():.1e}")
    print(f"mean difference, GPU and processor: {np.abs(curves['cpu'] - curves['cuda']).mean():.1e}")


if __name__ == "__main__":
    main()

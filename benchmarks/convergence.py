"""Where training stops by itself: survscore's networks beside pycox's, on simulated and real data; see README.md."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import results
from report import spaced
from results import Row, Run

OURS, RECIPE, PYCOX, STOPPING = "survscore", "paper's recipe", "pycox", "pycox, early stopping"
#: What is trained: survscore's estimator with these parameters; and pycox's, with the paper's recipe, or with Adam at a
#: constant rate and early stopping on the validation loss, as in pycox's own examples.
METHODS: dict[str, dict[str, Any] | None] = {OURS: {}, RECIPE: {"preset": "paper"}, PYCOX: None, STOPPING: None}
SEEDS = (0, 1, 2, 3, 4)
N_TIMES = 50
SIZES = {"training": 10_000, "validation": 4_000, "test": 10_000}  # of simulated data: the paper's
SHARES = {"training": 0.6, "validation": 0.2, "test": 0.2}  # of real data
TIMES = np.arange(1.0, 99.0)
#: Real data are scored up to this quantile of their follow-up.
LAST_QUANTILE = 0.9
NET = {"n_layers": 4, "width": 32, "dropout": 0.1}
BATCH, RATE, EPOCHS = 256, 0.01, 511
WEIGHTINGS = {"administrative": "administrative", "ipcw": "IPCW"}


@dataclass(frozen=True, eq=False)
class Data:
    """One draw of a study, or one split of a real data set."""

    X: dict[str, np.ndarray]
    y: dict[str, Any]  # Outcomes
    grid: np.ndarray
    times: np.ndarray
    weighting: str
    uncensored: Any = None  # Outcomes of the test part


def simulated(study: Callable[[int], Any]) -> Callable[[int], Data]:
    """Return what draws a study with known C*: administrative scores, and the uncensored truth."""

    def draw(seed: int) -> Data:
        seeds = np.random.SeedSequence(seed).generate_state(4) >> 1
        drawn = study(int(seeds[0]))
        parts = {
            name: drawn.sample(n, seed=int(part)) for (name, n), part in zip(SIZES.items(), seeds[1:], strict=True)
        }
        return Data(
            {name: part.covariates.to_numpy(dtype=np.float64) for name, part in parts.items()},
            {name: part.outcomes for name, part in parts.items()},
            np.linspace(0.0, 100.0, N_TIMES + 1)[1:], TIMES, "administrative", parts["test"].uncensored,
        )  # fmt: skip

    return draw


def real(load: Callable[[], tuple[Any, Any]], *, without: tuple[str, ...] = ()) -> Callable[[int], Data]:
    """Return what splits a data set of scikit-survival: C* is not known, so scores are IPCW's with Kaplan-Meier.

    `without` are columns that are no covariates: known only afterwards, or the date of entry.
    """

    def draw(seed: int) -> Data:
        import pandas as pd

        import survscore as ss

        X, y = load()
        X = X.drop(columns=list(without))
        numbers = X.select_dtypes("number")
        gaps = numbers.isna()
        encoded = pd.concat(
            [
                numbers.fillna(numbers.mean()),
                gaps.loc[:, gaps.any()].add_suffix("_missing"),
                pd.get_dummies(X.drop(columns=numbers.columns), drop_first=True),
            ],
            axis=1,
        ).to_numpy(dtype=np.float64)
        outcomes = ss.Outcomes.from_structured(y)
        order = np.random.default_rng(seed).permutation(len(outcomes))
        stops = np.round(np.cumsum(list(SHARES.values())) * len(outcomes)).astype(int)
        rows = dict(zip(SHARES, np.split(order, stops[:-1]), strict=True))
        observed = {name: outcomes[some] for name, some in rows.items()}
        last = float(np.quantile(outcomes.time, LAST_QUANTILE))
        return Data(
            {name: encoded[some] for name, some in rows.items()}, observed,
            np.linspace(0.0, observed["training"].time.max(), N_TIMES + 1)[1:],
            np.linspace(0.0, last, 101)[1:], "ipcw",
        )  # fmt: skip

    return draw


def _study(kind: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from survscore import simulate

        if kind == "constant hazard":
            return simulate.ConstantHazardStudy()
        return simulate.SineConstantAcceleratingStudy(kind, seed=seed)

    return make


def _shipped(name: str) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        from sksurv import datasets

        X, y = getattr(datasets, f"load_{name}")()
        return X, y

    return load


SIMULATED = {
    "simple": "simulation, simple censoring",
    "complicated": "simulation, complicated censoring",
    "independent": "simulation, independent censoring",
    "constant hazard": "simulation, one hazard for all, C* told",
}
REAL = {"flchain": "flchain", "gbsg2": "GBSG2", "whas500": "WHAS500"}
DATA: dict[str, Callable[[int], Data]] = {
    **{name: simulated(_study(name)) for name in SIMULATED},
    "flchain": real(_shipped("flchain"), without=("chapter", "sample.yr")),
    "gbsg2": real(_shipped("gbsg2")),
    "whas500": real(_shipped("whas500")),
}


def train_ours(data: Data, seed: int, parameters: dict[str, Any]) -> tuple[Any, dict[str, float]]:
    """Return curves of the test part, and what training took."""
    import torch

    from survscore.models import LogisticHazard

    model = LogisticHazard(times=data.grid, random_state=seed, device="cpu", progress=False, **parameters)
    begun = time.process_time()
    model.fit(data.X["training"], data.y["training"], validation=(data.X["validation"], data.y["validation"]))
    seconds = time.process_time() - begun
    inputs = model.features_.encode(data.X["validation"])
    with torch.inference_mode():
        loss = validation_loss(data, model.net_(*map(torch.from_numpy, inputs)))
    curves = model.predict_curves(data.X["test"], data.times)
    return curves, {"loss": loss, "epochs": len(model.history_.epochs), "seconds": seconds}


def validation_loss(data: Data, logits: Any) -> float:
    """Return minus the log-likelihood per individual: the same for all, whatever each was trained on."""
    import torch

    from survscore.models.grid import hazard_labels
    from survscore.models.losses import binary_log_likelihood_loss

    y = data.y["validation"]
    return float(binary_log_likelihood_loss(logits, torch.from_numpy(hazard_labels(y.time, y.event, data.grid))))


def train_pycox(data: Data, seed: int, method: str) -> tuple[Any, dict[str, float]]:
    """Return the same of pycox, with the paper's recipe or with early stopping.

    Its grid starts at 0, where nothing happens: one more output. Its own validation loss is no mean over individuals,
    so that is computed here, without that output.
    """
    import torch
    import torchtuples as tt
    from pycox.models import LogisticHazard

    import survscore as ss
    from survscore.models.grid import hazard_labels

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (pycox draws its batches from it)
    mean, scale = data.X["training"].mean(axis=0), data.X["training"].std(axis=0)
    X = {name: ((part - mean) / np.where(scale > 0, scale, 1.0)).astype(np.float32) for name, part in data.X.items()}
    labels = {
        name: hazard_labels(data.y[name].time, data.y[name].event, data.grid) for name in ("training", "validation")
    }
    targets = {
        name: ((part != 0).sum(axis=1), (part == 1).any(axis=1).astype(np.float32)) for name, part in labels.items()
    }
    layers = [NET["width"]] * NET["n_layers"]
    net = tt.practical.MLPVanilla(X["training"].shape[1], layers, data.grid.size + 1, True, NET["dropout"])
    if method == STOPPING:
        optimiser, stopping = tt.optim.Adam(RATE), tt.callbacks.EarlyStopping()  # after 10 epochs without gain
    else:
        optimiser = tt.optim.AdamWR(RATE, decoupled_weight_decay=0.0, cycle_eta_multiplier=0.8, cycle_multiplier=2)
        stopping = tt.callbacks.EarlyStoppingCycle()
    model = LogisticHazard(net, optimiser)
    begun = time.process_time()
    log = model.fit(
        X["training"], targets["training"], BATCH, EPOCHS, [stopping], verbose=False,
        val_data=(X["validation"], targets["validation"]),
    )  # fmt: skip
    seconds = time.process_time() - begun
    net.eval()
    with torch.inference_mode():
        loss = validation_loss(data, net(torch.from_numpy(X["validation"]))[:, 1:])
    survival = np.clip(model.predict_surv(X["test"]), 0.0, 1.0)  # some are 1 + 1e-7
    curves = ss.SurvivalCurves(survival, np.concatenate(([0.0], data.grid)), interpolation="linear", monotone="keep")
    return curves, {"loss": loss, "epochs": len(log.to_pandas()), "seconds": seconds}


def train_and_score(task: tuple[str, str, int, dict[str, Any] | None]) -> dict[str, Any]:
    """Train one net on one draw, and score it."""
    import torch

    import survscore as ss

    name, method, seed, parameters = task
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = DATA[name](seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # pycox keeps its best weights in a file
        if parameters is None:
            curves, found = train_pycox(data, seed, method)
        else:
            curves, found = train_ours(data, seed, parameters)

    def mean_brier(y: Any, weighting: str) -> float:
        score = ss.brier_score(y, curves, weighting=weighting, times=data.times, errors=False)
        return float(score.integrated(nan="stop").value)

    found["brier"] = mean_brier(data.y["test"], data.weighting)
    if data.uncensored is not None:
        found["uncensored"] = mean_brier(data.uncensored, "uncensored")
    n = sum(len(part) for part in data.y.values())
    title = SIMULATED[name] if name in SIMULATED else f"{REAL[name]} ({spaced(n)})"
    return {"data": title, "method": method, "seed": seed, "weighting": data.weighting, **found}


def warm_up() -> None:
    """Compile the loops before anything is timed, once per process."""
    import survscore as ss

    rng = np.random.default_rng(0)
    y = ss.Outcomes(rng.exponential(1.0, 300), np.ones(300))
    ss.models.LogisticHazard(n_times=5, epochs=1, device="cpu", progress=False).fit(rng.normal(size=(300, 2)), y)


def main() -> None:
    """Train every method on every data set with every seed, and print where they end."""
    parser = results.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, each with one thread")
    parser.add_argument("--only", nargs="+", choices=list(DATA), metavar="DATA", help=f"of {', '.join(DATA)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, metavar="SEED", help="by default 0 to 4")
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), default=(OURS, RECIPE, PYCOX), metavar="METHOD",
        help=f"of {', '.join(map(repr, METHODS))}; by default the first three",
    )  # fmt: skip
    options = parser.parse_args()
    names = options.only or list(DATA)
    if importlib.util.find_spec("sksurv") is None:
        names = [name for name in names if name in SIMULATED]
        print("without scikit-survival, and so without its data sets")
    packages = ("torch", "pycox", "torchtuples", "scikit-survival", "numpy", "numba")
    run = Run(parser, options, packages=packages, outputs=N_TIMES, net=f"{NET['n_layers']} x {NET['width']}")
    tasks = [
        (name, method, seed, parameters)
        for name in names
        for seed in options.seeds
        for method, parameters in METHODS.items()
        if method in options.methods
    ]
    runs = all_runs(tasks, options.jobs)
    by_data = {title: [one for one in runs if one["data"] == title] for title in dict.fromkeys(r["data"] for r in runs)}
    methods = list(dict.fromkeys(one["method"] for one in runs))
    values = {name: f"{{{name}:.4f}}" for name in methods}
    difference = {
        f"{OURS} less {name} (standard error)": f"{{less {name}:.4f}} ({{error {name}:.4f}})"
        for name in (PYCOX, STOPPING)
        if name in methods and OURS in methods
    }
    took = {
        "epochs of each": ", ".join(f"{{epochs {name}:.0f}}" for name in methods),
        "CPU seconds of each": ", ".join(f"{{seconds {name}}}" for name in methods),
    }
    columns = {"data": "{data}", "Brier score": "{weighting}", **values, **difference}
    run.add("scores", columns, [row for title, several in by_data.items() for row in score_rows(title, several)])
    columns = {"data": "{data}", **values, **difference, **took}
    run.add("losses", columns, [loss_row(title, several) for title, several in by_data.items()])
    columns = {"data": "{data}", **values, "CPU seconds of each": took["CPU seconds of each"]}
    run.add("summary", columns, [summary_row(title, several) for title, several in by_data.items()])
    run.add("runs", {name: f"{{{name}}}" for name in runs[0]}, runs, show=False)
    run.write()


def all_runs(tasks: list[tuple[str, str, int, dict[str, Any] | None]], jobs: int) -> list[dict[str, Any]]:
    """Run tasks in so many processes; each has one thread, whatever the libraries would take."""
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    runs = []
    with multiprocessing.get_context("spawn").Pool(jobs, warm_up) as pool:
        for i, found in enumerate(pool.imap(train_and_score, tasks), 1):
            runs.append(found)
            print(f"{i} of {len(tasks)}: {found['data']}, {found['method']}, seed {found['seed']}", file=sys.stderr)
    return runs


def means(runs: list[dict[str, Any]], measure: str, prefix: str = "") -> Row:
    """Return each method's mean over seeds."""
    by_method: dict[str, list[float]] = {}
    for one in runs:
        by_method.setdefault(one["method"], []).append(one[measure])
    return {prefix + method: statistics.mean(values) for method, values in by_method.items()}


def differences(runs: list[dict[str, Any]], measure: str) -> Row:
    """Return our mean difference to each way of pycox within seeds, with its standard error over seeds."""
    by_seed: dict[int, dict[str, float]] = {}
    for one in runs:
        by_seed.setdefault(one["seed"], {})[one["method"]] = one[measure]
    row = {}
    for name in (PYCOX, STOPPING):
        values = [several[OURS] - several[name] for several in by_seed.values() if {OURS, name} <= several.keys()]
        if values:
            error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            row |= {f"less {name}": statistics.mean(values), f"error {name}": error}
    return row


def score_rows(title: str, runs: list[dict[str, Any]]) -> list[Row]:
    """Return the scores of one data set, and those without censoring where that is known."""
    kinds = {"brier": WEIGHTINGS[runs[0]["weighting"]], "uncensored": "uncensored"}
    return [
        {"data": title, "weighting": words, **means(runs, kind), **differences(runs, kind)}
        for kind, words in kinds.items()
        if kind in runs[0]
    ]


def loss_row(title: str, runs: list[dict[str, Any]]) -> Row:
    """Return the validation losses, and what training took."""
    took = {**means(runs, "epochs", "epochs "), **means(runs, "seconds", "seconds ")}
    return {"data": title, **means(runs, "loss"), **differences(runs, "loss"), **took}


def summary_row(title: str, runs: list[dict[str, Any]]) -> Row:
    """Return the score of the test data, and the seconds of training."""
    return {"data": title, **means(runs, "brier"), **means(runs, "seconds", "seconds ")}


if __name__ == "__main__":
    main()

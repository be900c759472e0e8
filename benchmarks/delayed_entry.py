"""How often `DelayedEntryWarning` finds delayed entry that was not stated, and how often it warns without reason.

    python benchmarks/delayed_entry.py --json docs/benchmarks/delayed_entry.json

Real data come from the package and from lifelines, for which Cox and Kaplan-Meier estimates of two thirds predict the
last third. Fixed seeds; some five minutes on one core.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import survscore as ss
from results import Run, parser
from survscore.analysis.assumptions import warn_if_entry_is_late

Values = NDArray[np.float64]
Case = tuple[ss.Outcomes, ss.SurvivalCurves]
#: Time and event of the sets of lifelines whose individuals were observed from their start, one row each.
SETS = {
    "rossi": ("week", "arrest"), "larynx": ("time", "death"), "gbsg2": ("time", "cens"), "waltons": ("T", "E"),
    "leukemia": ("t", "status"), "lung": ("time", "status"), "lymphoma": ("Time", "Censor"), "g3": ("time", "event"),
    "kidney_transplant": ("time", "death"),
}  # fmt: skip
WARNED = {"data": "{name}", "n": "{n:,}", "data sets": "{sets:,}", "warned": "{warned:%.1f} %"}


def warns(y: ss.Outcomes, curves: ss.SurvivalCurves) -> bool:
    """Whether one model's predictions make it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_entry_is_late(y, {"model": curves})
    return any(issubclass(one.category, ss.DelayedEntryWarning) for one in caught)


def late(n: int, seed: int, share: float) -> Case:
    """Return a true model of individuals of whom a `share` came under observation between times 0 and 5."""
    rng = np.random.default_rng([seed, n, int(100 * share)])
    risk = np.exp(0.8 * rng.normal(size=4 * n))
    event_time, entry = rng.exponential(10 / risk), rng.uniform(0, 5, 4 * n) * (rng.random(4 * n) < share)
    end = entry + rng.uniform(2, 12, 4 * n)
    there = np.flatnonzero(event_time > entry)[:n]
    times = np.linspace(0, 20, 101)
    curves = ss.SurvivalCurves(np.exp(-risk[there, None] * times / 10), times, interpolation="linear")
    event_time, end = event_time[there], end[there]
    return ss.Outcomes(np.minimum(event_time, end), event_time <= end, end), curves


def rounded(n: int, seed: int) -> Case:
    """Return a true model of times that were rounded up to whole ones."""
    y, curves = late(n, seed, 0.0)
    return ss.Outcomes(np.ceil(y.time), y.event), curves


def simulated(study: Any, n: int, seed: int) -> Case:
    """Return a true model of one of the package's studies."""
    sample = study.sample(n, seed)
    last = float(sample.outcomes.censoring_time.max())
    return sample.outcomes, sample.survival(np.linspace(1, last, 100))


def real() -> Iterator[tuple[str, pd.DataFrame, Values, NDArray[np.bool_]]]:
    """Yield names, covariates, times and events."""
    from lifelines import datasets

    for name, (time, event) in SETS.items():
        frame = getattr(datasets, f"load_{name}")()
        yield name, frame.drop(columns=[time, event]), frame[time].to_numpy(float), frame[event].to_numpy() == 1
    for name in ss.datasets.available():
        data = ss.datasets.load(name)
        yield name, pd.DataFrame(data.X), np.asarray(data.y.time), np.asarray(data.y.event)


def fitted(X: pd.DataFrame, time: Values, event: NDArray[np.bool_], seed: int) -> Iterator[Case]:
    """Yield Cox's model and Kaplan and Meier's curve of two thirds, for the last third."""
    from lifelines import CoxPHFitter, KaplanMeierFitter

    rng = np.random.default_rng([seed, len(time)])
    if len(time) > 3000:  # enough for what is looked for
        rows = rng.permutation(len(time))[:3000]
        X, time, event = X.iloc[rows], time[rows], event[rows]
    test = rng.permutation(len(time)) % 3 == 0
    grid = np.unique(np.quantile(time, np.linspace(0.005, 1, 100)))
    y = ss.Outcomes(time[test], event[test])
    names = [name for name in X if X[name].dtype != object or X[name].nunique() < 12]
    numbers = pd.get_dummies(X[names].reset_index(drop=True), drop_first=True).astype(float)
    numbers = numbers.fillna(numbers.median()).fillna(0.0)
    numbers = numbers.loc[:, numbers[~test].std() > 1e-9]
    if numbers.shape[1]:
        frame = numbers[~test].assign(T_=time[~test], E_=event[~test])
        cox = CoxPHFitter(penalizer=0.1).fit(frame, "T_", "E_")
        survival = cox.predict_survival_function(numbers[test], times=grid).T.to_numpy()
        yield y, ss.SurvivalCurves(survival, grid, interpolation="step", monotone="keep")
    curve = KaplanMeierFitter().fit(time[~test], event[~test]).predict(grid).to_numpy()
    yield y, ss.SurvivalCurves(np.tile(curve, (len(y), 1)), grid, interpolation="step", monotone="keep")


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, fit, and count."""
    made = parser(__doc__)
    made.add_argument("--replicates", type=int, default=200, help="simulated data sets of each kind (%(default)s)")
    made.add_argument("--splits", type=int, default=8, help="of each real data set (%(default)s)")
    options = made.parse_args(arguments)
    run, seeds = Run(made, options, packages=["lifelines"]), range(options.replicates)
    found = []
    for share, n in ((1.0, 300), (0.6, 300), (0.6, 1000), (0.6, 5000)):
        share_found = float(np.mean([warns(*late(n, seed, share)) for seed in seeds]))
        who = "all entered late" if share == 1 else f"{share:.0%} entered late"
        found.append({"name": f"{who}, n = {n}", "n": n, "sets": len(seeds), "warned": share_found})
    run.add("found", WARNED, found, "delayed entry that was not stated, by a true model")
    alarms = []
    studies = {
        "constant hazards that depend on a covariate": lambda seed: late(300, seed, 0.0),
        "the same, times rounded up": lambda seed: rounded(300, seed),
        "ConstantHazardStudy": lambda seed: simulated(ss.simulate.ConstantHazardStudy(), 400, seed),
        "SineConstantAcceleratingStudy": lambda seed: simulated(ss.simulate.SineConstantAcceleratingStudy(), 400, seed),
    }
    for name, draw in studies.items():
        warned = [warns(*draw(seed)) for seed in seeds]
        alarms.append({"name": name, "n": len(draw(0)[0]), "sets": len(warned), "warned": float(np.mean(warned))})
    warnings.simplefilter("ignore")  # of fits
    n_alarms = n_sets = 0
    for name, X, time, event in real():
        warned = [warns(*case) for seed in range(options.splits) for case in fitted(X, time, event, seed)]
        alarms.append({"name": name, "n": len(time), "sets": len(warned), "warned": float(np.mean(warned))})
        n_alarms, n_sets = n_alarms + sum(warned), n_sets + len(warned)
    run.add("alarms", WARNED, alarms, "warnings without delayed entry, by true models or fitted ones")
    of_true = [row for row in alarms if row["name"] in studies]
    total = {
        "true models": (sum(row["sets"] * row["warned"] for row in of_true), sum(row["sets"] for row in of_true)),
        "fitted models, real data": (n_alarms, n_sets),
    }
    every = (sum(warned for warned, _ in total.values()), sum(sets for _, sets in total.values()))
    rows = [
        {"name": name, "sets": int(sets), "warned": float(warned / sets), "number": round(warned)}
        for name, (warned, sets) in {**total, "all": every}.items()
    ]
    columns = {"data": "{name}", "data sets": "{sets:,}", "warned": "{number}", "share": "{warned:%.1f} %"}
    run.add("total", columns, rows, "false alarms")
    run.write()


if __name__ == "__main__":
    main()

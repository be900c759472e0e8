"""How often intervals hold the truth with delayed entry and with each kind of sample weights.

    python benchmarks/entry_coverage.py --json docs/benchmarks/entry_coverage.json

Hazards depend on a covariate x; of two models one is right and the other predicts 1.5 times the hazard. Fixed seeds;
some four minutes on two cores. Landmarks have a script of their own, `landmarks.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import survscore as ss
from results import Run, parser

Values = NDArray[np.float64]
HORIZON, RATE, SLOPE, WRONG = 3.0, 0.1, 0.8, 1.5
TIMES = np.arange(0.0, 13.0, 0.5)
WEIGHTINGS = ("administrative", "projected", "ipcw")
SETTINGS = {
    "delayed entry": "entry",
    "probability weights": "probability",
    "importance weights": "importance",
    "frequency weights": "frequency",
}
KINDS = {
    "score": "Brier score", "difference": "difference of Brier scores", "oe": "observed/expected", "auc": "AUC",
    "concordance": "concordance",
}  # fmt: skip


def drawn(kind: str, n: int, rng: np.random.Generator) -> tuple[ss.Outcomes, Values]:
    """Return outcomes of one of the settings, and the right model's hazards."""
    x, entry = rng.normal(size=4 * n), rng.uniform(0, 5, 4 * n) * (kind == "entry")
    if kind == "frequency":  # few values of everything, so that rows stand for several
        x = np.round(x)
    rate = RATE * np.exp(SLOPE * x - 0.1 * entry)
    event_time, end = rng.exponential(1 / rate), entry + rng.uniform(2, 8, 4 * n)
    kept = event_time > entry
    if kind == "probability":  # of those at high risk more are sampled
        kept = rng.random(4 * n) < chance(x)
    if kind == "frequency":
        event_time, end = np.ceil(2 * event_time) / 2, np.ceil(2 * end) / 2
    rows = np.flatnonzero(kept)[:n]
    x, rate, entry, event_time, end = (values[rows] for values in (x, rate, entry, event_time, end))
    time, event = np.minimum(event_time, end), event_time <= end
    if kind == "frequency":
        alike = pd.DataFrame({"rate": rate, "time": time, "event": event, "end": end})
        alike = alike.groupby(list(alike), as_index=False).size()
        y = ss.Outcomes(alike["time"], alike["event"], alike["end"], weights=alike["size"], weight_kind="frequency")
        return y, alike["rate"].to_numpy()
    if kind == "entry":
        return ss.Outcomes(time, event, end, entry=entry), rate
    weights = 1 / chance(x) if kind == "probability" else np.exp(0.5 * x)  # such as the revenue that is expected
    return ss.Outcomes(time, event, end, weights=weights, weight_kind=kind), rate  # type: ignore[arg-type]


def chance(x: Values) -> Values:
    """Return with which probability one is sampled, where weights make up for that."""
    return np.asarray(0.2 + 0.6 / (1 + np.exp(-x)))


def truths(kind: str) -> dict[str, float]:
    """Return what is estimated, from a large sample whose event times are all known; losses by their expectations."""
    rng = np.random.default_rng(0)
    y, rate = drawn(kind, 400_000, rng)
    weights = np.ones(len(y)) if y.weights is None else y.weights
    p = np.exp(-HORIZON * rate)
    score, difference = (float(np.average(values, weights=weights)) for values in (p * (1 - p), (p**WRONG - p) ** 2))
    event_time = rng.exponential(1 / rate)
    if kind == "frequency":
        rate, weights = np.repeat(rate, weights.astype(int)), np.ones(int(weights.sum()))
        event_time = np.ceil(2 * rng.exponential(1 / rate)) / 2
    whole = ss.Outcomes(event_time, np.ones(rate.size), weights=weights)
    curves = ss.SurvivalCurves(np.exp(-HORIZON * rate)[:, None], [HORIZON])
    auc, concordance = ss.score_all(
        whole, curves, metric=["auc", "concordance"], weighting="uncensored", times=[HORIZON], errors=False
    )
    of_order = {"auc": float(auc.scores[0]), "concordance": float(concordance.scores[0])}
    return {"score": score, "difference": difference, "oe": 1.0, **of_order}


def counted(kind: str, truth: dict[str, float], n: int, seed: int) -> dict[tuple[str, str], tuple[bool, float]]:
    """Return which intervals hold the truth, and the estimates, by weighting and kind of number."""
    warnings.simplefilter("ignore")
    y, rate = drawn(kind, n, np.random.default_rng([seed, n]))
    models = {
        name: ss.SurvivalCurves(np.exp(-power * rate[:, None] * TIMES), TIMES, interpolation="constant-hazard")
        for name, power in (("right", 1.0), ("wrong", WRONG))
    }
    asked = {"horizons": [HORIZON], "null": False, "weighting": WEIGHTINGS}
    table = ss.score_table(y, models, metric=["brier", "oe", "auc", "concordance"], **asked).to_frame()
    found = {}
    for row in table.to_dict("records"):
        weighting, metric = row["weighting"].split()[0], row["metric"]
        if row["model"] == "right":
            name = "score" if metric == "brier" else metric
            found[weighting, name] = row["lower"] <= truth[name] <= row["upper"], row["estimate"]
        elif metric == "brier":
            held = row["difference_lower"] <= truth["difference"] <= row["difference_upper"]
            found[weighting, "difference"] = held, row["difference"]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, and count."""
    made = parser(__doc__)
    made.add_argument("--replicates", type=int, default=2000, help="data sets of each setting (%(default)s)")
    made.add_argument("--n", type=int, default=1000, help="individuals in each (%(default)s)")
    made.add_argument("--jobs", type=int, default=2, help="processes (%(default)s)")
    options = made.parse_args(arguments)
    run = Run(made, options, horizon=HORIZON)
    coverage, bias = [], []
    with ProcessPoolExecutor(options.jobs) as processes:
        for name, kind in SETTINGS.items():
            truth, seeds = truths(kind), range(1, options.replicates + 1)
            several = list(processes.map(partial(counted, kind, truth, options.n), seeds, chunksize=20))
            for weighting in WEIGHTINGS:
                of = {"setting": name, "weighting": weighting}
                every = {what: np.array([one[weighting, what] for one in several if (weighting, what) in one])
                         for what in KINDS}  # fmt: skip
                shares = {what: float(found[:, 0].mean()) for what, found in every.items() if found.size}
                errors = {
                    what: float((found[:, 1].mean() - truth[what]) / (found[:, 1].std() / np.sqrt(len(found))))
                    for what, found in every.items()
                    if found.size
                }
                ratio = every["oe"][:, 1]
                coverage.append({**of, **shares})
                bias.append({**of, **errors, "mean O/E": float(ratio.mean()),
                             "error": float(ratio.std() / np.sqrt(ratio.size))})  # fmt: skip
    columns = {"setting, weighting": "{setting}, {weighting}"}
    percents = {title: f"{{{what}:%.1f}} %" for what, title in KINDS.items()}
    run.add("coverage", {**columns, **percents}, coverage, "intervals that cover, of 95 %")
    means = {"mean of observed/expected": "{mean O/E:.4f} (Monte Carlo error {error:.4f})"}
    errors = {f"{title}": f"{{{what}:.1f}}" for what, title in KINDS.items() if what != "oe"}
    run.add("bias", {**columns, **means, **errors}, bias, "means less the truth, in Monte Carlo errors")
    run.write()


if __name__ == "__main__":
    main()

"""How often the intervals that the library prints hold the truth; run by ``coverage.py``.

Every setting is simulated many times with fixed seeds. An interval that the library itself calls unreliable in the data
at hand is not counted as printed; how many are is told beside. Writes ``docs/coverage.csv``, for a page of the docs.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import survscore as ss

TIMES = np.array([2.0, 4.0, 6.0, 8.0])
SHORT, LONG = 2.0, 10.0  # between which C* is uniform: at the last time one in four is left
RATES = {"common": 0.12, "rare": 0.008}
SPREAD = 0.8
DROP_OUT = 0.04
LOWEST, HIGHEST = 0.92, 0.98
METRICS = ("brier", "log", "auc")

Found = dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    n: int
    events: str = "common"
    weighting: str = "administrative"
    n_groups: int = 0
    sizes: str = "equal"

    @property
    def name(self) -> str:
        groups = f"{self.n_groups} groups, {self.sizes}" if self.n_groups else "none"
        return f"{self.n} | {self.events} | {self.weighting} | {groups}"


WEIGHTINGS = (
    "administrative",
    "ipcw",
    "drop-outs, Gd of the scored",
    "drop-outs, Gd of training data",
    "drop-outs, Gd of a model",
)


def settings() -> Iterator[Setting]:
    for weighting in WEIGHTINGS:
        for events in RATES:
            for n in (100, 300, 1000):
                yield Setting(n, events, weighting)
    for sizes in ("equal", "unequal"):
        for n_groups in (5, 10, 20, 40):
            yield Setting(20 * n_groups, n_groups=n_groups, sizes=sizes)


def survival(x: NDArray[np.float64], events: str, times: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-RATES[events] * np.exp(SPREAD * x)[:, None] * times)


def predictions(x: NDArray[np.float64], events: str) -> dict[str, NDArray[np.float64]]:
    """Return two wrong models: one too gloomy, one that sees half of the differences."""
    return {"gloomy": survival(x, events, TIMES) ** 1.3, "blunt": survival(0.5 * x + 0.1, events, TIMES)}


def equally_good(x: NDArray[np.float64], events: str, rng: np.random.Generator) -> dict[str, ss.SurvivalCurves]:
    """Return two models equally far from the truth, on either side of it: they have the same expected Brier score."""
    S = survival(x, events, TIMES)
    off = 0.2 * S * (1 - S) * rng.choice([-1, 1], (x.size, 1))
    return {name: ss.SurvivalCurves(S + sign * off, TIMES, monotone="keep") for name, sign in (("a", 1), ("b", -1))}


def draw(setting: Setting, rng: np.random.Generator) -> tuple[NDArray[np.float64], ss.Outcomes, NDArray[np.int64]]:
    n, groups = setting.n, np.arange(setting.n)
    x = rng.standard_normal(n)
    if setting.n_groups:
        size = 1.0 / np.arange(1, setting.n_groups + 1) if setting.sizes == "unequal" else np.ones(setting.n_groups)
        groups = np.concatenate([np.arange(setting.n_groups), rng.choice(
            setting.n_groups, n - setting.n_groups, p=size / size.sum())])  # fmt: skip
        x = np.sqrt(0.3) * rng.standard_normal(setting.n_groups)[groups] + np.sqrt(0.7) * x
    event_time = rng.exponential(1.0 / (RATES[setting.events] * np.exp(SPREAD * x)))
    end = rng.uniform(SHORT, LONG, n)
    left = rng.exponential(1.0 / DROP_OUT, n) if "drop-outs" in setting.weighting else np.full(n, np.inf)
    time = np.minimum(np.minimum(event_time, end), left)
    return x, ss.Outcomes(time, event_time <= np.minimum(end, left), end), groups


def weighting_of(setting: Setting, rng: np.random.Generator) -> Any:
    match setting.weighting:
        case "drop-outs, Gd of training data":
            return ss.Administrative(dropout=draw(setting, rng)[1])
        case "drop-outs, Gd of a model":
            return ss.Administrative(dropout=lambda times: np.exp(-DROP_OUT * np.asarray(times)))
        case "ipcw":
            return "ipcw"
    return "administrative"


@cache
def truth(events: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the expected scores of both models, the best constant's, and the AUCs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(400_000)
    S, found = survival(x, events, TIMES), predictions(x, events)
    found["constant"] = np.broadcast_to(S.mean(axis=0), S.shape)
    scores = {
        "brier": {name: (S * (1 - p) ** 2 + (1 - S) * p**2).mean(axis=0) for name, p in found.items()},
        "log": {name: -(S * np.log(p) + (1 - S) * np.log1p(-p)).mean(axis=0) for name, p in found.items()},
    }
    order = np.argsort(-x)  # from high risk to low: cases before controls are ordered right
    cases, controls = 1 - S[order], S[order]
    ordered = (np.cumsum(cases, axis=0) * controls).sum(axis=0) / (cases.sum(axis=0) * controls.sum(axis=0))
    scores["auc"] = dict.fromkeys(found, ordered)
    return scores


def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.atleast_1d(np.trapezoid(values, TIMES) / (TIMES[-1] - TIMES[0]))


def replicate(seed: int, setting: Setting) -> Found:
    """Return for every interval whether it held the truth, and whether the library relies on it."""
    rng = np.random.default_rng([seed, setting.n, setting.n_groups])
    x, y, groups = draw(setting, rng)
    expected = truth(setting.events)
    models = {name: ss.SurvivalCurves(p, TIMES) for name, p in predictions(x, setting.events).items()}
    weighting = weighting_of(setting, rng)
    labels = groups if setting.n_groups else None
    found: Found = {}
    equal = equally_good(x, setting.events, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contrasts = (
            ss.compare(y, equal, weighting=weighting, times=TIMES, groups=labels, null=False).integrated().contrasts
        )
    found["brier: p of 0.05 or more for equally good models"] = (
        contrasts["p_value"].to_numpy() >= 0.05, contrasts["reliable"].to_numpy(dtype=bool)
    )  # fmt: skip

    def add(name: str, table: Any, target: NDArray[np.float64]) -> None:
        lower, upper = table["lower"].to_numpy(), table["upper"].to_numpy()
        known = np.isfinite(lower) & np.isfinite(upper)
        reliable = table["reliable"].to_numpy(dtype=bool) if "reliable" in table else np.ones(lower.size, dtype=bool)
        found[name] = ((lower <= target) & (target <= upper), reliable & known)

    for metric in METRICS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ss.compare(
                y, models, metric=metric, weighting=weighting, times=TIMES, null="counted",
                groups=labels,
            )  # fmt: skip
            band = result.band(n_draws=1000)
            # an AUC needs somebody of each status
            whole = None if np.isnan(result.scores["score"]).any() else result.integrated()
        values = expected[metric]
        targets: Mapping[str, Callable[[Callable[[Any], Any]], NDArray[np.float64]]] = {
            "scores": lambda average, values=values: average(values["gloomy"]),
            "contrasts": lambda average, values=values: average(values["blunt"]) - average(values["gloomy"]),
            "skill": lambda average, values=values: 1 - average(values["gloomy"]) / average(values["constant"]),
        }
        for kind, target in targets.items():
            if metric == "auc" and kind != "scores":  # both models order alike: there is no difference
                continue
            for place, source, average in (("at a time", result, lambda v: v), ("mean over time", whole, mean)):
                if source is None:
                    continue
                table = getattr(source, kind)
                model = "blunt" if kind == "contrasts" else "gloomy"
                add(f"{metric}: {kind}, {place}", table[table["model"] == model], target(average))
        if metric != "auc":
            rows = band[band["model"] == "blunt"]
            difference = values["blunt"] - values["gloomy"]
            held = (rows["lower"].to_numpy() <= difference) & (difference <= rows["upper"].to_numpy())
            found[f"{metric}: contrasts, simultaneous band"] = (
                np.array([held.all()]), np.array([rows["reliable"].all()])
            )  # fmt: skip
    return found


def replicate_calibration(seed: int, setting: Setting) -> Found:
    """Return the same for the calibration of predictions that are right."""
    rng = np.random.default_rng([seed, setting.n, setting.n_groups])
    x, y, groups = draw(setting, rng)
    curves = ss.SurvivalCurves(survival(x, setting.events, TIMES), TIMES)
    made = ss.calibration(
        y,
        curves,
        TIMES[1],
        weighting=weighting_of(setting, rng),
        groups=groups if setting.n_groups else None,
        n_draws=1,
    )
    found: Found = {}

    def add(name: str, lower: Any, upper: Any, target: Any) -> None:
        lower, upper = np.atleast_1d(lower), np.atleast_1d(upper)
        known = np.isfinite(lower) & np.isfinite(upper)
        found[f"calibration: {name}"] = ((lower <= target) & (target <= upper), known & made.reliable)

    for name, estimate, target in (
        ("observed/expected", made.observed_expected, 1.0), ("slope", made.slope, 1.0),
        ("intercept", made.intercept, 0.0), ("in the large", made.in_the_large, 0.0), ("ICI", made.ici, 0.0),
    ):  # fmt: skip
        add(name, estimate.lower, estimate.upper, target)
    add("smooth curve, at a risk", made.curve.lower, made.curve.upper, made.curve.predicted)
    add("tenths", made.groups.lower, made.groups.upper, made.groups.predicted)
    return found


def coverage(
    work: Callable[..., Found], setting: Setting, n_replicates: int, pool: ProcessPoolExecutor
) -> list[dict[str, Any]]:
    """Return a row for every kind of interval."""
    covered, reliable, total = defaultdict(int), defaultdict(int), defaultdict(int)
    for found in pool.map(partial(work, setting=setting), range(n_replicates), chunksize=50):
        for name, (held, relied) in found.items():
            covered[name] += int((held & relied).sum())
            reliable[name] += int(relied.sum())
            total[name] += held.size
    rows = []
    for name in total:
        flagged = 1 - reliable[name] / total[name]
        share = covered[name] / reliable[name] if reliable[name] else float("nan")
        rows.append(
            {
                "n": setting.n,
                "events": setting.events,
                "weights": setting.weighting,
                "groups": f"{setting.n_groups} {setting.sizes}" if setting.n_groups else "",
                "interval": name,
                "coverage": f"{100 * share:.1f}" if flagged <= 0.9 else "",
                "flagged": f"{100 * flagged:.0f}",
                "falls short": "yes" if flagged <= 0.9 and not LOWEST <= share <= HIGHEST else "",
            }
        )
    return rows


#: What is simulated, and in how many of the replicates: calibration takes longer.
KINDS: dict[str, tuple[Callable[..., Found], float]] = {
    "scores": (replicate, 1.0),
    "calibration": (replicate_calibration, 0.4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "docs" / "coverage.csv")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for (work, share), setting in product([KINDS[name] for name in given.kinds], settings()):
            found = coverage(work, setting, round(share * given.replicates), pool)
            short = [f"{row['interval']} {row['coverage']}" for row in found if row["falls short"]]
            print(f"{setting.name}: {'; '.join(short) or 'all between 92 and 98 %, or flagged'}", flush=True)
            rows += found
    with given.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{sum(bool(row['falls short']) for row in rows)} of {len(rows)} fall short", file=sys.stderr)

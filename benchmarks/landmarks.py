"""How often intervals of means over landmarks cover the truth, and how often they would if rows were independent.

    python benchmarks/landmarks.py --json docs/benchmarks/landmarks.json

Fixed seeds; some twenty minutes on one core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import survscore as ss
from results import Run, parser

HORIZON, LEVEL = 3.0, 0.95
LANDMARKS = {5: np.arange(0.0, 4.1, 1.0), 13: np.arange(0.0, 6.1, 0.5)}
WEIGHTINGS = ("administrative", "projected", "ipcw")
TIMES = np.arange(0.5, 10.1, 0.5)
Values = NDArray[np.float64]


def draw(n: int, seed: int) -> tuple[Values, Values, Values, Values]:
    """Return the true rates, those of a model that has them wrong, event times, and censoring times."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 0.06, n)
    noisy = 0.5 * rate + rng.gamma(2.0, 0.03, n)
    return rate, noisy, rng.exponential(1 / rate), rng.uniform(4, 14, n)


def truth(landmarks: Values, *, followed: bool) -> Values:
    """Return the mean Brier scores of both models, from a large study that is followed without end.

    Of those at risk at each landmark, or of those who could also be `followed` to the horizon.
    """
    rate, noisy, event_time, end = draw(2_000_000, 0)
    total, n = np.zeros(2), 0
    for s in landmarks:
        here = (event_time > s) & (end > s) & (end >= s + HORIZON if followed else True)
        survives = event_time[here] > s + HORIZON
        total += [np.sum((survives - np.exp(-HORIZON * r[here])) ** 2) for r in (rate, noisy)]
        n += np.count_nonzero(here)
    return total / n


def covers(landmarks: Values, truths: dict[str, Values], n: int, seed: int) -> dict[tuple[str, str], bool]:
    """Return which intervals hold the truth, by weighting and kind."""
    rate, noisy, event_time, end = draw(n, seed)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    models = {
        name: ss.SurvivalCurves(np.exp(-r[:, None] * TIMES), TIMES, interpolation="constant-hazard")
        for name, r in (("truth", rate), ("noisy", noisy))
    }
    rows = ss.landmark_table(
        y,
        models,
        landmarks=landmarks,
        horizons=[HORIZON],
        metric="brier",
        weighting=WEIGHTINGS,
        null=False,
        level=LEVEL,
    ).to_frame()
    found = {}
    quantile = 1.959964
    for weighting in WEIGHTINGS:
        noisy_rows = rows[rows["weighting"].str.startswith(weighting) & (rows["model"] == "noisy")]
        each, mean = noisy_rows[~noisy_rows["summary"]], noisy_rows[noisy_rows["summary"]].iloc[0]
        score, difference = truths[weighting][1], truths[weighting][1] - truths[weighting][0]
        share = each["n_counted"] / each["n_counted"].sum()
        found[weighting, "score"] = mean["lower"] <= score <= mean["upper"]
        found[weighting, "difference"] = mean["difference_lower"] <= difference <= mean["difference_upper"]
        for name, value, target in (("estimate", "se", score), ("difference", "difference_se", difference)):
            independent = math.sqrt(float(np.sum((share * each[value]) ** 2)))
            kind = "score" if name == "estimate" else name
            found[weighting, f"{kind}_independent"] = abs(mean[name] - target) <= quantile * independent
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, and count."""
    made = parser(__doc__)
    made.add_argument("--replicates", type=int, default=1000, help="samples (%(default)s)")
    made.add_argument("--n", type=int, default=500, help="individuals in each (%(default)s)")
    options = made.parse_args(arguments)
    run = Run(made, options, horizon=HORIZON)
    rows: list[dict[str, Any]] = []
    for number, landmarks in LANDMARKS.items():
        truths = {name: truth(landmarks, followed=name == "administrative") for name in WEIGHTINGS[:2]}
        truths["ipcw"] = truths["projected"]
        counts = [covers(landmarks, truths, options.n, 1 + seed) for seed in range(options.replicates)]
        for weighting in WEIGHTINGS:
            kinds = {kind for name, kind in counts[0] if name == weighting}
            shares = {kind: float(np.mean([one[weighting, kind] for one in counts])) for kind in kinds}
            rows.append({"landmarks": number, "weighting": weighting, **shares})
    columns = {
        "landmarks, weighting": "{landmarks}, {weighting}", "score": "{score:%.1f} %",
        "difference": "{difference:%.1f} %", "score, rows as independent": "{score_independent:%.1f} %",
        "difference, rows as independent": "{difference_independent:%.1f} %",
    }  # fmt: skip
    run.add("coverage", columns, rows, "intervals that cover, of 95 %")
    run.write()


if __name__ == "__main__":
    main()

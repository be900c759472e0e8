"""Comparisons and results to check."""

import datetime
import json
from dataclasses import replace

import numpy as np

import survscore as ss
from survscore.checks import Run, append_run

TIMES = np.arange(5.0, 81.0, 5.0)


def compared(seed=1, n=800, power=2.0, metric=("brier", "auc"), **options):
    """Return a comparison of the truth, called old, with something worse, called new."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 0.01, n)
    event_time, end = rng.exponential(1 / rate), rng.uniform(20, 120, n)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    grid = np.arange(1.0, 121.0)
    old = np.exp(-rate[:, None] * grid)
    shuffled = np.where(rng.random(n)[:, None] < 0.3, old[rng.permutation(n)], old**power)
    models = {"old": ss.SurvivalCurves(old, grid), "new": ss.SurvivalCurves(shuffled, grid)}
    options = {"times": TIMES, "weighting": ["administrative", "ipcw"], **options}
    return ss.compare(y, models, metric=list(metric), **options)


def day(k):
    return datetime.datetime(2025, 1, k, 2, tzinfo=datetime.UTC)


def with_segments(data):
    """Return results of ``survscore compare --json`` with two segments: one like everybody, one three times worse."""
    data = json.loads(json.dumps(data))
    for name in ("scores", "contrasts", "means", "verdicts"):
        parts = []
        for country, factor in (("(all)", 1.0), ("DE", 1.0), ("FR", 3.0)):
            for row in data[name]:
                scaled = {k: v * factor if k in ("score", "lower", "upper", "difference", "se") and v is not None else v
                          for k, v in row.items()}  # fmt: skip
                parts.append({"country": country, **scaled})
        data[name] = parts
    return data


def append_many(path, name, count):
    """Append runs to a history, in a process of its own."""
    run = Run.of(compared(n=100), id="x")
    for k in range(count):
        append_run(path, replace(run, id=f"{name}-{k}"))

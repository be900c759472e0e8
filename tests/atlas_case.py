"""A simulated data set for the atlas, and models that are quick."""

import numpy as np
import pandas as pd

import survscore as ss
from survscore.datasets import Dataset
from survscore.paper.atlas.models import Effort
from survscore.paper.atlas.running import AtlasSize

TINY = AtlasSize("tiny", 250, 2, 4, 2, Effort(trees=3, rounds=3, steps=2, epochs=2))
MODELS = [
    "Kaplan-Meier", "Cox", "Cox + entry", "logistic regression, censored dropped",
    "logistic regression, censored dropped + entry", "logistic regression, C* after horizon",
    "boosted classifiers, censored as event-free + entry",
]  # fmt: skip
BASE = np.datetime64("2010-01-01")


def simulated(name="simulated", *, n=250, seed=1, lost=False):
    """Draw a set in which people come over 1500 days; the data end on day 2500."""
    rng = np.random.default_rng(seed)
    start, risk = rng.integers(0, 1500, n), rng.normal(size=n)
    event = start + np.minimum(rng.exponential(700 * np.exp(-risk)), 80_000)
    seen = None
    if lost:
        gone = np.where(rng.random(n) < 0.2, start + rng.integers(0, 2000, n), 85_000)
        event, seen = np.where(event > gone, np.nan, event), BASE + gone.astype("m8[D]")
    dates = np.where(np.isnan(event), np.datetime64("NaT"), BASE + np.nan_to_num(event).astype("m8[D]"))
    y = ss.Outcomes.from_dates(BASE + start.astype("m8[D]"), dates, BASE + np.timedelta64(2500, "D"), last_seen=seen)
    X = pd.DataFrame({
        "age": np.where(rng.random(n) < 0.1, np.nan, risk + 0.3 * rng.normal(size=n)),
        "kind": pd.Categorical(np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b", "c"], n))),
        "visits": rng.poisson(3, n),
    })  # fmt: skip
    words = dict.fromkeys(("event", "start", "closing", "lost", "licence", "source", "notes"), "simulated")
    return Dataset(
        name=name, X=X, y=y, groups=None, horizons=(200.0, 300.0, 600.0), cutoffs=("2012-09-26", "2013-07-23"), **words
    )

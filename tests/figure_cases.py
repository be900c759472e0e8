"""One of every display, drawn from simulated data: what the tests of figures look at."""

from functools import cache

import numpy as np
import pandas as pd

import survscore as ss
from survscore.experiments import studies
from survscore.plots import TrainingDisplay

TIMES = np.arange(2.0, 97.0, 2.0)
LONG = "gradient boosting with all covariates and their interactions"


@cache
def problem():
    """Return outcomes and three models: the truth, one that is too gloomy, one that knows C*."""
    rng, n, grid = np.random.default_rng(4), 1200, np.arange(1.0, 101.0)
    rate, end = rng.gamma(1.5, 0.012, n), rng.uniform(10.0, 100.0, n)
    time = rng.exponential(1 / rate)
    truth = np.exp(-rate[:, None] * grid)
    blurred = 1.6 * rng.lognormal(sigma=0.5, size=(n, 1))
    models = {
        "truth": truth,
        "gloomy": truth**blurred,
        "leaking": 0.9 * truth * np.where(end[:, None] > grid, 1.0, 0.1),
    }
    y = ss.Outcomes(np.minimum(time, end), time <= end, end)
    return y, {name: ss.SurvivalCurves(values, grid) for name, values in models.items()}


@cache
def scores(metric="brier", weighting="administrative"):
    y, models = problem()
    function = {"brier": ss.brier_score, "auc": ss.auc}[metric]
    return {name: function(y, curves, weighting=weighting, times=TIMES) for name, curves in models.items()}


@cache
def compared(*weightings, **names):
    y, models = problem()
    named = {names.get(name, name): curves for name, curves in models.items()}
    return ss.compare(y, named, weighting=list(weightings), times=TIMES)


@cache
def segmented():
    y, models = problem()
    country = np.array(["Norway", "Sweden", "Denmark", "Finland"])[np.arange(len(y)) % 4]
    return ss.compare(y, models, weighting="administrative", times=TIMES, by={"country": country})


@cache
def calibrated(name):
    y, models = problem()
    return ss.calibration(y, models[name], 48.0)


@cache
def backtested():
    rng = np.random.default_rng(3)
    base, n = np.datetime64("2010-01-01"), 500
    start, risk = rng.integers(900, 1790, n), rng.normal(size=n)
    event = start + np.minimum(rng.exponential(1500 * np.exp(-risk)), 80_000)
    y = ss.Outcomes.from_dates(base + start.astype("m8[D]"), base + event.astype("m8[D]"), base + 3650)
    horizons = np.array([300.0, 600.0])
    models = {}
    for noise in (0.0, 0.4, 0.8):
        rate = np.exp(risk + noise * rng.normal(size=n)) / 1500
        models[f"noise {noise:g}"] = np.exp(-rate[:, None] * horizons)
    models["leaks"] = models["noise 0.4"] * np.where(horizons > (1800 - start)[:, None], 0.05, 1.0)
    curves = {name: ss.SurvivalCurves(values, horizons) for name, values in models.items()}
    return ss.backtest(y, curves, as_of=[base + 1600, base + 1700, base + 1800], horizons=horizons, n_draws=40)


def training():
    epochs = np.arange(1, 16)
    loss = 1.0 + np.exp(-epochs / 4.0)
    history = pd.DataFrame({
        "epoch": epochs, "cycle": np.searchsorted([1, 3, 7], epochs), "train_loss": loss,
        "validation_loss": loss + 0.02 * epochs, "validation_brier": 0.2 + 0.1 * np.exp(-epochs / 3.0),
    })  # fmt: skip
    return TrainingDisplay(history, 9, ["validation_brier"])


def paper_numbers(figure):
    """Return numbers of the form that the paper's figures show, of no meaning."""
    times, rng = np.linspace(1.0, 98.0, 30), np.random.default_rng(1)
    rows = [
        {"loss": "brier", "weighting": panel, "model": model, "time": t, "value": 0.2 * np.sin(t / 40) + 0.01 * k,
         "replicate": r}
        for panel in figure.panels
        for k, model in enumerate((studies.TRUTH, studies.HAZARD, studies.BCE))
        for r in range(2)
        for t in times + rng.random()
    ]  # fmt: skip
    return pd.DataFrame(rows)

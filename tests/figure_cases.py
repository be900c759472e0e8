"""One of every display, drawn from simulated data: what the tests of figures look at."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

import survscore as ss
from demo_case import kept
from survscore.paper import demo as demo_study
from survscore.paper import studies
from survscore.paper.atlas.page import draw as draw_forest
from survscore.paper.atlas.results import Atlas
from survscore.paper.figures import FIGURES
from survscore.plots import PAGE, TrainingDisplay

DOCS = Path(__file__).parents[1] / "docs"
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
def scores():
    y, models = problem()
    return {name: ss.brier_score(y, curves, weighting="administrative", times=TIMES) for name, curves in models.items()}


@cache
def compared(*weightings, **names):
    y, models = problem()
    named = {names.get(name, name): curves for name, curves in models.items()}
    return ss.compare(y, named, weighting=list(weightings), times=TIMES)


@cache
def by_theta():
    return ss.compare(*problem(), weighting="projected", times=[48.0]).sensitivity()


@cache
def over_landmarks():
    y, models = problem()
    some = {name: models[name] for name in ("truth", "gloomy")}
    settings = {"metric": "brier", "weighting": "administrative", "null": False, "unit": "month"}
    return ss.landmark_table(y, some, landmarks=[0, 12, 24, 36], horizons=[12, 24, 36, 48], **settings)


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
    days, weighting = [base + 1600, base + 1700, base + 1800], ["administrative", "ipcw"]
    return ss.backtest(y, curves, as_of=days, horizons=horizons, weighting=weighting, n_draws=40)


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
    about_survival = figure.kind == studies.SURVIVAL
    models = (studies.TRUTH, studies.BCE, studies.BCE_TOLD if about_survival else studies.HAZARD)
    rows = [
        {"loss": "brier", "censoring_time" if about_survival else "weighting": panel, "model": model, "time": t,
         "value": np.exp(-t / 80) - 0.1 * k if about_survival else 0.2 * np.sin(t / 40) + 0.01 * k, "replicate": r}
        for panel in figure.panels
        for k, model in enumerate(models)
        for r in range(2)
        for t in times + rng.random()
    ]  # fmt: skip
    return pd.DataFrame(rows)


@cache
def many():
    """Compare nine models: more than names fit at the ends of lines."""
    y, models = problem()
    truth = models["truth"]
    named = {f"power {k}": ss.SurvivalCurves(truth.probabilities ** (1 + k / 8), truth.times) for k in range(9)}
    return ss.compare(y, named, weighting="administrative", times=TIMES[::4], null=False)


def hostile(width):
    """Draw names that are long, or look like formulas or marks."""
    names = {"truth": "$x_i^{2", "gloomy": "a\nb\t<b>&amp;</b> %s {0}", "leaking": "x" * 70}
    return compared("administrative", **names).plot(width=width)


def paper(name, width):
    figure = FIGURES[name]
    about = "synthetic data" if figure.study == "kkbox" else ""
    return figure.draw(paper_numbers(figure), "brier", about=about, width=width)


def demonstration(width):
    demo = kept()
    return demo_study.draw(demo.around, demo.summary(), "brier", width=width)


#: Every display, as a function of the figure's width.
DRAWINGS = {
    "score": lambda width: scores()["truth"].plot(label="truth", unit="month", width=width),
    "comparison": lambda width: compared("administrative").plot(unit="month", width=width),
    "weightings": lambda width: compared("administrative", "ipcw", gloomy=LONG).plot(width=width),
    "many": lambda width: many().plot(width=width),
    "hostile": hostile,
    "scores": lambda width: compared("administrative", "ipcw").plot_scores(unit="month", width=width),
    "sensitivity": lambda width: by_theta().plot(width=width),
    "landmarks": lambda width: over_landmarks().plot(width=width),
    "segments": lambda width: segmented().plot(width=width),
    "calibration": lambda width: calibrated("gloomy").plot(label="gloomy", unit="month", width=width),
    "isotonic": lambda width: calibrated("gloomy").plot(curve="isotonic", width=width),
    "distribution": lambda width: ss.distribution_calibration(*of("gloomy")).plot(width=width),
    "decisions": lambda width: ss.decision_curve(*problem(), 48.0).plot(unit="month", width=width),
    "backtest": lambda width: backtested().plot(width=width),
    "diagnosis": lambda width: ss.diagnose(*problem(), times=TIMES).plot(unit="month", width=width),
    "training": lambda width: training().plot(width=width),
    # a figure of the paper for each number of panels: 2, 6 of survival, 5, 7, 8 of scores
    **{f"paper-{k}": partial(paper, f"figure-{k}") for k in (1, 2, 3, 5, 6)},
    "forest": lambda width: draw_forest(Atlas.read(DOCS / "atlas"), width=width),
    "demo": demonstration,
    "demo-wide": lambda width: demonstration(max(width, PAGE)),
}


#: Those that are compared with a picture; names that mean harm are drawn as others are.
PICTURES = [name for name in DRAWINGS if name != "hostile"]


def of(name):
    y, models = problem()
    return y, models[name]


def figure_of(name, width):
    """Draw one of them."""
    drawn = DRAWINGS[name](width)
    return getattr(drawn, "figure_", drawn)


def small_image(figure):
    """Return the inside of a figure's axes as a small image.

    Without texts, since each machine has its letters, and without what is around the axes, which they move.
    """
    import io

    from matplotlib.text import Text
    from matplotlib.transforms import Bbox
    from PIL import Image

    for text in figure.findobj(Text):
        text.set_alpha(0.0)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    box = Bbox.union([ax.get_position() for ax in figure.axes if ax.get_visible()])
    with Image.open(file) as whole:
        edges = (box.x0 * whole.width, (1 - box.y1) * whole.height, box.x1 * whole.width, (1 - box.y0) * whole.height)
        size = (120, round(120 * (edges[3] - edges[1]) / (edges[2] - edges[0])))
        return whole.convert("RGB").resize(size, Image.Resampling.BOX, box=edges)


def write_references(folder):
    """Write what the image tests compare with; look at the pictures before you keep them."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.use("Agg")
    with mpl.rc_context({"font.family": "DejaVu Sans"}):
        for name in PICTURES:
            small_image(figure_of(name, 3.4)).quantize(256).save(folder / f"{name}.png", optimize=True)
            plt.close("all")


if __name__ == "__main__":
    import sys

    write_references(Path(sys.argv[1]))

"""Results that must not change when the engine does: small data of many kinds, through the public interface alone.

`CASES` has a function for every case, and `compute` the results of all of them. Data are made by NumPy alone.
tests/reference/make_pinned.py keeps the numbers, tests/test_pinned.py compares with them.
"""

import tempfile
import warnings
from functools import cache, partial
from itertools import groupby, product
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator

import survscore as ss

# What columns and measures are called in the record

#: What a column is called by now, and what it is called in the record; None for what is not recorded.
COLUMNS = {"fit_seconds": None, "score_seconds": None, "cutoff": None, "bound_p_value": None}
COLUMNS |= dict.fromkeys(("projected", "projected_lower", "projected_upper"))  # of `diagnose`, tested elsewhere
COLUMNS |= {"n_settled": None, "n_wrong": None}
#: What a metric or a measure is called by now, and what it is called in the record.
MEASURES = {
    "calibration in the large": "intercept at slope 1",
    "miscalibration": "mean square miscalibration",
    "isotonic miscalibration": "miscalibration",
    "isotonic miscalibration, corrected": "miscalibration, corrected",
}
#: What `diagnose` answers by now, of a model and of IPCW, and what the record calls it.
ANSWERS = {
    "encodes C*": "knows C*", "misleading": "can't be trusted", "no sign of a leak": "can be trusted",
}  # fmt: skip
NAMES = {"measure": MEASURES, "metric": {"in_the_large": "intercept"}, "verdict": ANSWERS}
#: Columns of text that say what a row is about, or what was decided. Others are words, and may change.
TEXTS = {
    "best", "chosen", "component", "estimator", "measure", "metric", "model", "plan", "reference", "region", "strategy",
    "verdict",
}  # fmt: skip
ADDED = ("weight_sums", "n_event_free")  # of score curves, beside their tables
MEANS = ("value", "se", "lower", "upper", "reliable")


def curves(values, grid, interpolation="linear", extrapolation="nan"):
    return ss.SurvivalCurves(values, grid, interpolation=interpolation, extrapolation=extrapolation)


def administrative(**settings):
    return ss.Administrative(dropout_strata=None, **settings)


def scores(y, predicted, metric, weighting, times, **settings):
    settings.setdefault("ranges", "any")
    return ss.score_all(y, predicted, metric=metric, weighting=weighting, times=times, **settings)


def compared(y, models, **settings):
    settings.setdefault("ranges", "any")
    return ss.compare(y, models, **settings)


def mean_score(score, lower=None, upper=None):
    """Return a mean over time; None where the first time has no score, by one of the metrics."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ss.UndefinedScoreWarning)
            return score.integrated(lower, upper, nan="stop")
    except (ss.InputError, ss.UndefinedScoreWarning):
        return None


def streamed(y, batches, metric, weighting, times):
    stream = ss.StreamingScore(y, metric=metric, weighting=weighting, times=times)
    for batch in batches:
        stream.update(batch)
    return stream.results()


# What is kept of results


class Record(dict):
    """Arrays of numbers, and of text, by "quantity/column"."""

    def put(self, name, values):
        self[name] = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()

    def table(self, name, frame, only=None):
        """Keep the columns of a table: numbers, flags, and text that is no more than words."""
        if frame is None:
            return
        for column in frame.columns:
            kept = COLUMNS.get(column, column)
            if kept is None or (only is not None and kept not in only):
                continue
            values = frame[column]
            if kept in TEXTS:
                self[f"{name}/{kept}"] = runs(values.replace(NAMES.get(kept, {})))
            elif pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
                self.put(f"{name}/{kept}", values.to_numpy(dtype=np.float64, na_value=np.nan))

    def score_curves(self, name, several, ranges=((None, None),)):
        """Keep score curves as one long table, and their means over time as another."""
        parts = [one.to_frame().assign(**{added: getattr(one, added) for added in ADDED}) for one in several]
        self.table(name, pd.concat(parts, ignore_index=True))
        for number, ends in enumerate(ranges):
            means = [mean_score(one, *ends) for one in several]
            rows = [mean_row(one) for one in means]
            self.table(f"{name}/mean{number}", pd.DataFrame(rows, dtype=np.float64))

    def comparison(self, name, found, ranges=(), **tables):
        """Keep scores, contrasts and skill, at times and over ranges of them."""
        self.tables_of(name, found, skill=found.null is not None, **tables)
        for number, ends in enumerate(ranges):
            means = mean_score(found, *ends)
            if means is not None:
                self.tables_of(f"{name}/mean{number}", means, skill=found.null is not None, **tables)

    def tables_of(self, name, found, *, skill, only=None):
        for table in ("scores", "contrasts", *(("skill",) if skill else ())):
            self.table(f"{name}/{table}", getattr(found, table), only)


def mean_row(mean):
    if mean is None:
        return dict.fromkeys((*MEANS, "from", "to", "bound_lower", "bound_upper"), np.nan)
    bounds = (np.nan, np.nan) if mean.bounds is None else mean.bounds
    own = {name: float(getattr(mean, name)) for name in MEANS}
    return own | {"from": mean.range[0], "to": mean.range[1], "bound_lower": bounds[0], "bound_upper": bounds[1]}


def runs(values):
    """Return text with what comes several times in a row written once, "3 x better"."""
    found = [f"{len(list(same))} x {text}" for text, same in groupby(map(str, values))]
    return np.array(found, dtype=str)


# Data


def drawn(seed, n, *, whole=False, lost=False, censored=True):
    """Draw event times that depend on a covariate, as the ends of follow-up do; whole times have many ties."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rate = 0.12 * np.exp(0.7 * x)
    star, end = rng.exponential(1 / rate), 3.0 + 8.0 * rng.random(n) + 2.0 * (x > 0)
    gone, noise = rng.exponential(25.0, n), rng.normal(size=(2, n))
    if whole:
        star, end, gone = np.ceil(star), np.ceil(end), np.ceil(gone)
    seen = np.minimum(end, gone) if lost else end
    if not censored:  # but for three, who are followed beyond all that is asked for
        seen, end = np.where(np.arange(n) < n - 3, np.inf, 40.0), None
    y = (np.minimum(star, seen), star <= seen, end)
    rates = {"right": rate, "noisy": rate * np.exp(0.5 * noise[0]), "gloomy": 1.6 * rate,
             "wild": rate * np.exp(1.2 * noise[1])}  # fmt: skip
    return SimpleNamespace(
        n=n, x=x, rates=rates, arrays=y, y=ss.Outcomes(*y), few=np.arange(n) % 7, many=np.arange(n) // 3,
        region=np.array(["north", "south", "west"])[rng.choice(3, n, p=[0.5, 0.38, 0.12])],
        plan=np.where(rng.random(n) < 0.5, "basic", "full"),
    )  # fmt: skip


def predictions(rate, grid, *, decimals=None, dtype=np.float64, power=1.0):
    values = np.exp(-((rate[:, None] * grid) ** power))
    return (values if decimals is None else values.round(decimals)).astype(dtype)


#: Continuous times, curves that end early and are linear; whole times, tied and float32 curves that step and hold.
KINDS = {
    "smooth": SimpleNamespace(
        seed=1, n=160, whole=False, grid=0.75 * np.arange(1, 14), form=("linear", "nan"), decimals=None,
        dtype=np.float64, times=np.array([0.25, 1.5, 3.1, 4.5, 6.2, 7.5, 9.75, 10.5]), up_to=np.array([4.5, 8.1]),
        part=(1.5, 6.0),
    ),
    "tied": SimpleNamespace(
        seed=2, n=200, whole=True, grid=np.arange(1.0, 10.0), form=("step", "hold"), decimals=2,
        dtype=np.float32, times=np.array([0.5, 1.0, 2.0, 3.5, 5.0, 7.0, 9.0, 11.0]), up_to=np.array([4.0, 7.5]),
        part=(2.0, 6.5),
    ),
}  # fmt: skip


def prepared(kind, **data):
    """Return a study of a kind, with outcomes for training, and curves of everything that has curves."""
    k = KINDS[kind]
    found = drawn(k.seed, k.n, whole=k.whole, **data)
    grid = np.append(k.grid, [11.0, 14.0])
    found.training = drawn(k.seed + 100, 90, whole=k.whole, lost=True).y
    found.models = {
        name: curves(predictions(rate, k.grid, decimals=k.decimals, dtype=k.dtype), k.grid, *k.form)
        for name, rate in found.rates.items()
    }
    spread = np.random.default_rng(k.seed + 200).uniform(0.5, 1.5, (k.n, 1))
    found.gone_curves = curves(np.exp(-spread * grid / 25), grid, "linear", "hold")
    found.censoring_curves = curves(0.1 + 0.9 * np.exp(-spread * grid / 9), grid, "step", "hold")
    later = np.clip((13.0 - grid) / 8.0, 0.05, 1.0)  # P(C* >= t)
    found.population_curves = curves(np.tile(later, (k.n, 1)) ** spread, grid, "constant-hazard", "hold")
    return found


def survival_of_leaving(t):
    return np.exp2(-np.asarray(t) / 12.0)


AT_TIMES = [
    "brier", "log", "auc", "oe", "slope", "in_the_large", "miscalibration", "ici", "e50", "e90", "net_benefit@0.2",
    "net_benefit@0.5",
]  # fmt: skip
UP_TO = ["concordance", "crps", "log_score"]


def histories(data):
    strata = (data.x > 0).astype(int)
    return [
        *UP_TO, ss.Concordance("pooled"), ss.Concordance("weighted", strata=strata), ss.Concordance("harrell"),
        ss.Concordance(risk="antolini"), ss.Concordance("weighted", "antolini", strata=strata),
    ]  # fmt: skip


#: What data a weighting is for, how it is made of them, and whether metrics of histories take it.
ALL, LOST, NONE = {"lost": False}, {"lost": True}, {"censored": False}
WEIGHTINGS = {
    "uncensored": (NONE, lambda d: ss.Uncensored(), True),
    "administrative": (ALL, lambda d: administrative(), True),
    "administrative fixed": (ALL, lambda d: administrative(population="fixed"), True),
    "administrative from 5": (ALL, lambda d: administrative(population=5), True),
    "administrative population": (ALL, lambda d: administrative(population=d.population_curves), False),
    "lost": (LOST, lambda d: administrative(), True),
    "lost capped": (LOST, lambda d: administrative(max_weight=1.15), False),
    "lost by n": (LOST, lambda d: administrative(normalize="n"), False),
    "lost martingale": (LOST, lambda d: administrative(variance="martingale"), True),
    "lost training": (LOST, lambda d: administrative(dropout=d.training), True),
    "lost training capped by n": (
        LOST, lambda d: administrative(dropout=d.training, max_weight=1.2, normalize="n"), False,
    ),
    "lost curves": (LOST, lambda d: administrative(dropout=d.gone_curves), False),
    "lost curves capped": (LOST, lambda d: administrative(dropout=d.gone_curves, max_weight=1.2), False),
    "lost function": (LOST, lambda d: administrative(dropout=survival_of_leaving), False),
    "lost fixed": (LOST, lambda d: administrative(population="fixed"), True),
    "lost from 5": (LOST, lambda d: administrative(population=5.0), True),
    "lost population": (LOST, lambda d: administrative(population=d.population_curves), False),
    "lost population curves": (
        LOST, lambda d: administrative(dropout=d.gone_curves, population=d.population_curves), False,
    ),
    "ipcw": (LOST, lambda d: ss.IPCW(), True),
    "ipcw by n": (LOST, lambda d: ss.IPCW(normalize="n"), False),
    "ipcw capped": (LOST, lambda d: ss.IPCW(max_weight=1.6), False),
    "ipcw martingale": (LOST, lambda d: ss.IPCW(variance="martingale"), True),
    "ipcw training": (LOST, lambda d: ss.IPCW(censoring=d.training), True),
    "ipcw training by n": (LOST, lambda d: ss.IPCW(censoring=d.training, normalize="n"), False),
    "ipcw curves": (LOST, lambda d: ss.IPCW(censoring=d.censoring_curves), False),
    "ipcw curves capped by n": (
        LOST, lambda d: ss.IPCW(censoring=d.censoring_curves, max_weight=2.5, normalize="n"), False,
    ),
    "ipcw function": (LOST, lambda d: ss.IPCW(censoring=survival_of_leaving), False),
    "ipcw known": (ALL, lambda d: ss.IPCW(censoring="known"), False),
}  # fmt: skip

CASES = {}


def case(name, *rows):
    """Add a function that fills a record to the cases; once for each row of arguments, which the name repeats."""

    def added(function):
        for row in rows or [()]:
            arguments = row if isinstance(row, tuple) else (row,)
            CASES[name.format(*arguments)] = partial(function, *arguments)
        return function

    return added


# Every metric under every weighting


@case("{}, {}", *product(KINDS, WEIGHTINGS))
def under_a_weighting(kind, name, record):
    asked, make, with_histories = WEIGHTINGS[name]
    k, data = KINDS[kind], prepared(kind, **asked)
    weighting, predicted = make(data), data.models["noisy"]
    ranges = ((None, None), k.part)
    record.score_curves("scores", scores(data.y, predicted, AT_TIMES, weighting, k.times), ranges)
    if with_histories:
        found = scores(data.y, predicted, histories(data), weighting, k.up_to)
        record.score_curves("histories", found, ((None, None),))
    two = {"noisy": predicted, "gloomy": data.models["gloomy"]}
    found = compared(data.y, two, metric=["brier", "auc"], weighting=weighting, times=k.times[1:7:2], groups=data.many)
    record.comparison("compare", found, ((None, None),))


# How curves are read


@case("read {}, {}", *product(("linear", "step", "constant-hazard"), ("nan", "hold")))
def read_between_and_beyond(interpolation, extrapolation, record):
    data = drawn(3, 120, lost=True)
    grid = np.array([1.5, 3.0, 4.0, 6.0, 7.5])
    predicted = curves(predictions(data.rates["noisy"], grid, power=1.3), grid, interpolation, extrapolation)
    times = np.array([0.5, 1.5, 2.0, 4.0, 5.9, 7.5, 8.0, 9.5])
    found = scores(data.y, predicted, AT_TIMES, [administrative(), ss.IPCW()], times)
    record.score_curves("scores", found)
    metrics = ["concordance", ss.Concordance(risk="antolini"), "log_score"]
    metrics += ["crps"] if interpolation != "constant-hazard" else []
    found = scores(data.y, predicted, metrics, [administrative(), ss.IPCW()], times[[3, 4, 6]])
    record.score_curves("histories", found)
    record.put("at", predicted.at(times)[:5])


@case("impossible predictions")
def _(record):
    """Zeros and ones, in float32 on a grid that starts at 0."""
    data = drawn(4, 60, lost=True, whole=True)
    grid = np.array([0.0, 2.0, 4.0, 6.0])
    values = np.where(predictions(data.rates["wild"], grid) > 0.5, 1.0, 0.0).astype(np.float32)
    times = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
    for name, weighting in (("administrative", administrative()), ("ipcw", ss.IPCW())):
        asked = {"weighting": weighting, "times": times, "ranges": "any"}
        made = data.y, curves(values, grid)
        found = [ss.brier_score(*made, **asked), ss.log_loss(*made, epsilon=1e-4, **asked), ss.auc(*made, **asked)]
        record.score_curves(name, found)
        found = scores(data.y, curves(values, grid), UP_TO, weighting, times[2:4])
        record.score_curves(f"{name} histories", found)


@case("default times")
def _(record):
    data = prepared("smooth", lost=True)
    # those of version 0.2 by default, whatever the grid: up to its end, and the median of follow-up
    regular = np.linspace(0.0, 9.75, 101)
    for metric, times in (("brier", regular), ("auc", regular[1:])):
        found = scores(data.y, data.models["noisy"], metric, administrative(), times)
        record.score_curves(metric, found, ((None, None), (2.0, 7.0)))
    median = np.quantile(data.y.censoring_time, [0.5], method="lower")
    record.score_curves("histories", scores(data.y, data.models["noisy"], UP_TO, administrative(), median), ())


@case("scores alone, other levels and groups")
def _(record):
    data = prepared("tied", lost=True)
    predicted, times = data.models["wild"], KINDS["tied"].times
    weightings = [administrative(), ss.IPCW()]
    record.score_curves("alone", scores(data.y, predicted, AT_TIMES[:3], weightings, times, errors=False))
    for name, groups in (("few", data.few), ("many", data.many)):
        found = scores(data.y, predicted, AT_TIMES, weightings, times, groups=groups, level=0.9)
        record.score_curves(name, found, ((None, None), (2.0, 6.5)))
        found = scores(data.y, predicted, UP_TO, weightings, times[3:5], groups=groups, level=0.9)
        record.score_curves(f"{name} histories", found)
    found = scores(data.y, predicted, "brier", weightings, times, ranges=[(1.0, 5.0)])
    record.score_curves("ranges", found, ((1.0, 5.0),))


@case("without censoring times")
def _(record):
    data = drawn(5, 130, lost=True)
    y = ss.Outcomes(*data.arrays[:2])
    grid = np.linspace(1, 10, 7)
    predicted = curves(predictions(data.rates["noisy"], grid, dtype=np.float32), grid)
    times = np.array([0.5, 2.5, 4.0, 8.0])
    record.score_curves("scores", scores(y, predicted, AT_TIMES, "ipcw", times))
    record.score_curves("histories", scores(y, predicted, UP_TO, "ipcw", times[1:3]))


@case("score terms")
def _(record):
    for kind in KINDS:
        data, times = prepared(kind, lost=True), KINDS[kind].times[1:7:2]
        few = np.arange(40)
        y, predicted = data.y[few], data.models["noisy"][few]
        for name, weighting in (("administrative", administrative()), ("ipcw", ss.IPCW())):
            for metric in ("brier", "log"):
                terms = ss.score_terms(y, predicted, metric=metric, weighting=weighting, times=times)
                record.put(f"{kind}, {name}, {metric}/losses", terms.losses)
                record.put(f"{kind}, {name}, {metric}/weights", terms.weights)


@case("at a horizon")
def _(record):
    for kind, k in KINDS.items():
        data = prepared(kind, lost=True)
        for name, weighting in (("default", None), ("training", administrative(dropout=data.training))):
            found = ss.at_horizon(data.y, 5.0, weighting=weighting)
            for part in ("rows", "event", "weight"):
                record.put(f"{kind}, {name}/{part}", getattr(found, part))
        X = {"x": data.x, "region": data.region}
        found = ss.counted_population(data.y, data.models, X=X, times=k.times)
        found.columns = [f"column{j}" for j in range(len(found.columns))]
        record.table(f"{kind}, population", found)


# Comparisons


NULLS = {"Kaplan-Meier": True, "counted": "counted", "training": None, "none": False}


@case("compare {}, null {}", *product((1, 2, 4), NULLS))
def of_models(number, name, record):
    kind = "tied" if number == 2 else "smooth"
    data, times = prepared(kind, lost=True), KINDS[kind].times[[0, 1, 3, 5]]
    some = dict(list(data.models.items())[:number])
    null = data.training if name == "training" else NULLS[name]
    asked = {"metric": ["brier", "log", "auc", "oe"], "weighting": [administrative(), "ipcw"], "times": times}
    found = compared(data.y, some, null=null, reference=list(some)[-1], **asked)
    record.comparison("compare", found, ((None, None), (times[1], 4.25)))


@case("compare, {} groups", "few", "many")
def with_groups(name, record):
    data, times = prepared("smooth", lost=True), KINDS["smooth"].times[[1, 3, 5]]
    two = {name: data.models[name] for name in ("right", "wild")}
    asked = {"groups": getattr(data, name), "level": 0.9}
    for null in (True, "counted"):
        found = compared(
            data.y, two, metric=AT_TIMES, weighting=[administrative(), "ipcw"], times=times, null=null, **asked
        )
        record.comparison(f"null {null}", found, ((None, None),))
    found = compared(
        data.y, two, metric=UP_TO, weighting=[administrative(), "ipcw"], times=times[1:], null=True, **asked
    )
    record.comparison("histories", found)


@case("compare, every metric")
def _(record):
    for kind in KINDS:
        for lost in (False, True):
            data, times = prepared(kind, lost=lost), KINDS[kind].times[[2, 4]]
            two = {name: data.models[name] for name in ("noisy", "gloomy")}
            asked = {"weighting": [administrative(), "ipcw"], "times": times}
            found = compared(data.y, two, metric=AT_TIMES, **asked)
            record.comparison(f"{kind}, lost {lost}", found)
            found = compared(data.y, two, metric=histories(data), null=data.training, **asked)
            record.comparison(f"{kind}, lost {lost}, histories", found)


@case("compare, bands and disagreements")
def _(record):
    for kind in KINDS:
        data, times = prepared(kind, lost=True), KINDS[kind].times[1:7]
        three = {name: data.models[name] for name in ("right", "noisy", "wild")}
        found = compared(
            data.y, three, metric=["brier", "auc"], weighting=[administrative(), "ipcw"], times=times, ranges="any"
        )
        record.table(f"{kind}/band", found.band(n_draws=2000, seed=3))
        record.table(f"{kind}/band of wild", found.against("wild").band(level=0.8, n_draws=2000))
        told = found.against("noisy").disagreements()
        told.columns = [*told.columns[:4], *(f"weighting{k}" for k in range(told.shape[1] - 4))]
        record.table(f"{kind}/disagreements", told)


@case("segments, {}", ("administrative", administrative()), ("ipcw", "ipcw"))
def by_segments(_, weighting, record):
    data = drawn(6, 400, lost=True)
    grid, times = 0.75 * np.arange(1, 14), np.array([1.5, 4.0, 6.0])
    models = {name: curves(predictions(data.rates[name], grid), grid) for name in ("right", "noisy", "gloomy")}
    by = {"region": data.region, "plan": data.plan}
    found = compared(data.y, models, metric=["brier", "auc"], weighting=weighting, times=times, by=by)
    record.table("counts", found.counts)
    for name, one in (("times", found), ("mean", mean_score(found)), ("part", mean_score(found, 1.5, 5.0))):
        record.tables_of(name, one, skill=True)
        for of in ("difference", "score"):
            record.table(f"{name}/heterogeneity of {of}", one.heterogeneity(of=of))
            record.table(f"{name}/between of {of}", one.between(of=of, model="gloomy"))
    other = mean_score(found.against("noisy").corrected("benjamini-hochberg"))
    record.table("other/contrasts", other.contrasts)
    record.table("other/between", other.between(against=("north", "full")))
    grouped = compared(
        data.y, models, weighting=weighting, times=times, groups=data.many, by=data.region, null="counted"
    )
    record.tables_of("grouped", mean_score(grouped), skill=True)


@case("score table, {}", *KINDS)
def a_score_table(kind, record):
    data = prepared(kind, lost=kind == "tied")
    two = {name: data.models[name] for name in ("noisy", "gloomy")}
    horizons = [2.0, 4.5, 7.5]
    asked = {"horizons": horizons, "weighting": [administrative(), "ipcw"], "thresholds": [0.25, 0.4]}
    record.table("all", ss.score_table(data.y, two, metric="all", **asked).to_frame())
    found = ss.score_table(
        data.y, two, metric="all", horizons=[4.5], weighting=administrative(), groups=data.many, null=data.training,
        reference="gloomy", level=0.9,
    )  # fmt: skip
    record.table("grouped", found.to_frame())
    median = np.quantile(data.y.censoring_time, [0.5], method="lower")  # the default of version 0.2
    found = ss.score_table(data.y, two, horizons=median, weighting=administrative())
    record.table("default", found.to_frame())
    metrics = ["brier", "skill", "auc", "slope", "integrated_brier", "crps", "concordance"]
    found = ss.score_table(data.y, two, metric=metrics, horizons=[3.0, 6.0], weighting="ipcw", by={"plan": data.plan})
    record.table("segments", found.to_frame())


# Calibration, decisions, diagnosis


@case("calibration, {}", *KINDS)
def a_calibration(kind, record):
    data = prepared(kind, lost=True)
    settings = {
        "administrative": {"weighting": administrative(), "n_bins": 5, "n_draws": 40},
        "ipcw": {"weighting": "ipcw", "groups": data.many, "level": 0.9, "n_draws": 40, "seed": 2},
        "few groups": {"weighting": administrative(), "groups": data.few, "n_bins": 3, "n_draws": 20},
        "training": {"weighting": administrative(dropout=data.training), "n_draws": 20},
    }
    for name, asked in settings.items():
        found = ss.calibration(data.y, data.models["wild"], 4.5, **asked)
        record.table(f"{name}/summary", found.summary())
        record.table(f"{name}/curve", found.to_frame().iloc[::8])
        record.table(f"{name}/groups", found.groups_frame())
        for part in ("predicted", "observed", "counts", "lower", "upper"):
            record.put(f"{name}/isotonic/{part}", getattr(found.isotonic, part))
        for part in ("n", "n_counted", "n_events", "n_effective", "n_units", "reliable"):
            record.put(f"{name}/{part}", getattr(found, part))


@case("decision curve, {}", *KINDS)
def a_decision_curve(kind, record):
    data = prepared(kind, lost=True)
    two = {name: data.models[name] for name in ("right", "wild")}
    settings = {
        "administrative": {"weighting": administrative()},
        "ipcw": {"weighting": "ipcw", "groups": data.many, "reference": "treat all", "level": 0.9},
        "curves": {"weighting": administrative(dropout=data.gone_curves), "groups": data.few},
    }
    for name, asked in settings.items():
        found = ss.decision_curve(data.y, two, 4.5, thresholds=[0.1, 0.2, 0.3, 0.45, 0.6, 0.9], n_draws=1000, **asked)
        record.table(name, found.to_frame())
        record.table(f"{name}/contrasts", found.contrasts)


@case("distribution, {}", *KINDS)
def a_distribution(kind, record):
    for lost in (False, True):
        data = prepared(kind, lost=lost)
        k = KINDS[kind]
        linear = curves(predictions(data.rates["noisy"], k.grid), k.grid, "linear", "hold")
        settings = {
            "auto": {}, "bins": {"test": "bins", "n_bins": 5}, "martingale": {"test": "martingale"},
            "grouped": {"groups": data.many, "level": 0.9}, "continuous": {"form": "continuous"},
            "continuous martingale": {"form": "continuous", "test": "martingale"},
        }  # fmt: skip
        for name, asked in settings.items():
            predicted = linear if "continuous" in name else data.models["gloomy"]
            found = ss.distribution_calibration(data.y, predicted, **asked)
            record.table(f"lost {lost}, {name}/bins", found.to_frame())
            record.table(f"lost {lost}, {name}/components", found.components_frame())
            for part in ("statistic", "df", "p_value", "observed", "expected", "reliable"):
                record.put(f"lost {lost}, {name}/{part}", getattr(found, part))


@case("diagnosis")
def _(record):
    data = drawn(7, 400, lost=True)
    grid = np.arange(0.5, 14.0, 0.5)
    honest = predictions(data.rates["right"], grid)
    end = data.arrays[2]
    models = {
        "right": curves(honest, grid),
        "noisy": curves(predictions(data.rates["noisy"], grid), grid, "constant-hazard", "hold"),
        "leaking": curves(honest * (end[:, None] > grid), grid, "step"),
    }
    settings = {"default": {}, "grouped": {"groups": data.many, "level": 0.9, "width": 0.8, "weighting": ss.IPCW()}}
    for name, asked in settings.items():
        with mock.patch("survscore.analysis.ipcw_evidence.Administrative", administrative):
            found = ss.diagnose(data.y, models, times=np.array([2.0, 4.0, 6.0, 8.0, 10.0]), **asked)
        for table in ("models", "pairs", "placebo", "weights", "caps"):
            rows = getattr(found, table)
            if table == "pairs":  # recorded before the projected score could contradict IPCW, too
                opposite = (rows["ipcw_upper"] < 0) & (rows["administrative_lower"] > 0)
                opposite |= (rows["ipcw_lower"] > 0) & (rows["administrative_upper"] < 0)
                assert (rows["contradicts"] >= opposite).all()
                rows = rows.assign(contradicts=opposite)
            record.table(f"{name}/{table}", rows)
        record.put(f"{name}/survival", np.stack(list(found.survival.values())))
        record.put(f"{name}/offsets", found.offsets)
        record.put(f"{name}/numbers", [found.width, found.n, *found.time_range])
        record[f"{name}/ipcw"] = runs([ANSWERS.get(found.ipcw, found.ipcw)])


# Several days, folds, batches and files


@case("backtest")
def _(record):
    rng = np.random.default_rng(8)
    n, base, horizons = 300, np.datetime64("2010-01-01"), np.array([300.0, 600.0])
    start, risk = rng.integers(0, 1500, n), rng.normal(size=n)
    event = start + np.ceil(rng.exponential(900 * np.exp(-risk)))
    gone = np.where(rng.random(n) < 0.15, start + rng.integers(1, 1500, n), 10_000)
    dates = np.where(event > gone, np.datetime64("NaT", "D"), base + event.astype("m8[D]"))
    y = ss.Outcomes.from_dates(
        base + start.astype("m8[D]"), dates, base + np.timedelta64(3650, "D"), last_seen=base + gone.astype("m8[D]")
    )
    models = {
        f"noise {noise:g}": curves(
            predictions(np.exp(risk + noise * rng.normal(size=n)) / 900, horizons), horizons
        )
        for noise in (0.0, 0.5, 1.0)
    }  # fmt: skip
    days = [base + np.timedelta64(days, "D") for days in (1300, 1700)]
    settings = {"brier": {}, "auc": {"metric": "auc", "groups": np.arange(n) // 2, "level": 0.9}}
    for name, asked in settings.items():
        asked |= {"as_of": days, "horizons": horizons, "weighting": [administrative(), "ipcw"]}
        with mock.patch("survscore.analysis.backtest.Administrative", administrative):
            found = ss.backtest(y, models, n_draws=5, seed=1, **asked)
        record.table(f"{name}/scores", found.scores)
        record.table(f"{name}/table", found.table)
        record.table(f"{name}/summary", found.summary)


class Exponential(BaseEstimator):
    """A rate that grows with the covariate, on a grid as the fold happens to have it."""

    def __init__(self, strength=1.0):
        self.strength = strength

    def fit(self, X, y):
        self.rate_, self.grid_ = y.event.sum() / y.time.sum(), np.linspace(0.5, y.time.max(), 12)
        return self

    def predict_curves(self, X):
        return curves(predictions(self.rate_ * np.exp(self.strength * np.asarray(X)[:, 0]), self.grid_), self.grid_)


@case("cross-validation")
def _(record):
    data = drawn(9, 120, lost=True)
    times, n = np.array([1.5, 3.0, 5.0]), np.arange(120)
    folds = [(n[n % 3 != k], n[n % 3 == k]) for k in range(3)]
    estimators = {"some": Exponential(0.7), "none": Exponential(0.0)}
    found = ss.cross_validate(
        estimators, data.x[:, None], data.y, cv=folds, metric=["brier", "log"], weighting=[administrative(), "ipcw"],
        times=times, progress=False,
    )  # fmt: skip
    record.comparison("compare", found.comparison, ((None, None),))
    record.table("folds", found.folds)
    record.table("mean folds", found.integrated_folds())
    score = ss.make_scorer("brier", weighting=administrative(), times=times)
    record.put("scorer", score(Exponential(0.7).fit(data.x[:, None], data.y), data.x[:, None], data.y))


@case("batches")
def _(record):
    for kind, k in KINDS.items():
        data, times = prepared(kind, lost=True), k.times
        predicted = data.models["noisy"]

        def batches(predicted=predicted, n=data.n):
            for start in range(0, n, 64):
                yield predicted[np.arange(start, min(start + 64, n))]

        weightings = [administrative(), ss.IPCW(), administrative(dropout=data.gone_curves)]
        record.score_curves(f"{kind}/stream", streamed(data.y, batches(), ["brier", "log"], weightings, times))
        held = ss.CurveBatches(batches, data.n)
        found = scores(data.y, held, ["brier", "log"], weightings, times, groups=data.many)
        record.score_curves(f"{kind}/scores", found, ((None, None), k.part))
        two = {"noisy": held, "gloomy": data.models["gloomy"]}
        found = compared(data.y, two, weighting=weightings, times=times[1:7:2])
        record.comparison(f"{kind}/compare", found, ((None, None),))


def written(folder, *, lost, whole):
    """Write the rows of a study to three Parquet files."""
    data = drawn(10, 240, lost=lost, whole=whole)
    grid = np.array([2.0, 4.0, 6.0])
    time, event, end = data.arrays
    columns = {"time": time, "event": event.astype(np.int8), "censoring_time": end, "region": data.region,
               "customer": np.arange(240) // 4}  # fmt: skip
    for name in ("noisy", "gloomy"):
        values = predictions(data.rates[name], grid)
        columns |= {f"{name}:{t:g}": values[:, j] for j, t in enumerate(grid)}
    table = pa.table(columns)
    for k in range(3):
        pq.write_table(table.slice(80 * k, 80), folder / f"part-{k}.parquet")


@case("files, lost {}, whole {}", (False, False), (True, False), (True, True))
def of_files(lost, whole, record):
    asked = {"weighting": [administrative(), "ipcw"], "metric": ["brier", "log"]}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        written(folder, lost=lost, whole=whole)
        record.comparison("plain", ss.evaluate(folder, **asked))
        record.comparison("ranges", ss.evaluate(folder, ranges="any", **asked), ((None, None), (2.0, 5.0)))
        record.comparison("groups", ss.evaluate(folder, groups="customer", reference="gloomy", level=0.9, **asked))
        record.comparison(
            "rows", ss.evaluate(folder, metric=["auc", "oe"], weighting=administrative(), times=[2.0, 4.0])
        )
        found = ss.evaluate(folder, by="region", **asked)
        record.table("segments/counts", found.counts)
        record.table("segments/scores", found.scores)
        record.table("segments/contrasts", found.contrasts)
        record.table("segments/heterogeneity", found.heterogeneity())


# Large enough for compiled loops, which run from 524 288 cells on


#: With many times, covariances over time are not made, and means over time have a way of their own.
LARGE = {
    "tied and grouped": {"whole": True, "grouped": True, "n_times": 100},
    "grouped": {"whole": False, "grouped": True, "n_times": 190},
    "alone": {"whole": False, "grouped": False, "n_times": 190},
}


@case("large, {}", *LARGE)
def large(name, record):
    """Keep a tenth of the times, and the columns that say the most."""
    whole, grouped, n_times = LARGE[name].values()
    n, grid = 6000, np.linspace(0.2, 12.0, 60)
    data = drawn(11, n, lost=True, whole=whole)
    times = np.linspace(0.1, 12.0, n_times)
    part = (float(times[10]), float(times[n_times // 2]))
    models = {
        "right": curves(predictions(data.rates["right"], grid, dtype=np.float32), grid, extrapolation="hold"),
        "noisy": curves(predictions(data.rates["noisy"], grid), grid, "constant-hazard", "hold"),
    }
    only = {"metric", "model", "score", "se", "lower", "upper", "difference", "p_value", "verdict", "skill",
            "bound_lower", "bound_upper", "n_effective", "n_groups"}  # fmt: skip
    groups = np.random.default_rng(12).integers(0, 900, n) if grouped else None
    asked = {"weighting": [administrative(), "ipcw"], "groups": groups}
    found = compared(data.y, models, metric=["brier", "log"], times=times, ranges=[part], **asked)
    some = SimpleNamespace(**{table: getattr(found, table)[::10] for table in ("scores", "contrasts", "skill")})
    record.tables_of("compare", some, skill=True, only=only)
    for number, ends in enumerate(((None, None), part)):
        record.tables_of(f"compare/mean{number}", mean_score(found, *ends), skill=True, only=only)
    metrics = [*AT_TIMES[2:], "crps", "log_score", "concordance"]
    linear = {"right": models["right"], "gloomy": curves(predictions(data.rates["gloomy"], grid), grid)}
    found = compared(data.y, linear, metric=metrics, times=[3.0, 7.1], **asked)
    record.tables_of("others", found, skill=True, only=only)


@case("large, one model")
def _(record):
    data, grid = drawn(13, 6000, lost=True), np.linspace(0.5, 12.0, 20)
    predicted = curves(predictions(data.rates["noisy"], grid, decimals=2), grid, "step", "hold")
    several = scores(data.y, predicted, "brier", [administrative(), ss.IPCW()], np.linspace(0.1, 12.0, 90))
    for number, one in enumerate(several):
        record.table(f"weighting{number}", one.to_frame()[::10])
        for ends in ((None, None), (2.0, 7.0)):
            record.table(f"weighting{number}/mean {ends[0]}", pd.DataFrame([mean_row(mean_score(one, *ends))]))


# All of them


@cache
def computed(name):
    """Return the results of a case, by quantity: arrays of float64, or of text."""
    record = Record()
    with warnings.catch_warnings():  # many of the cases have times without score, and few groups
        for kind in (ss.UndefinedScoreWarning, ss.FewGroupsWarning):
            warnings.simplefilter("ignore", kind)
        CASES[name](record)
    return dict(record)


def compute():
    """Return all results, by "case/quantity"."""
    return {f"{name}/{quantity}": values for name in CASES for quantity, values in computed(name).items()}

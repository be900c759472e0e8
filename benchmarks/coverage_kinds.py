"""What is counted in every simulated data set: does an interval hold the truth, does a test reject what is right?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import survscore as ss
from coverage_designs import (
    GRID,
    HORIZONS,
    TIMES,
    Array,
    Sample,
    Setting,
    draw,
    equally_far,
    exchangeable,
    ordered_alike,
    ordered_otherwise,
    survival,
    weighting_of,
)
from coverage_truths import DECISION_THRESHOLDS, THRESHOLDS, mean_over, of_decisions, of_losses, of_metrics
from survscore.analysis.calibration_measures import Distance
from survscore.results.estimates import Estimates

LEVEL = 0.95


class Counted(NamedTuple):
    """Whether intervals held the truth, or tests rejected; and whether the library relies on them.

    Limits of distances are meant to hold the truth at least as often as they say.
    """

    hit: NDArray[np.bool_]
    relied: NDArray[np.bool_]
    nominal: Literal["95", "95 or more", "5"] = "95"


Found = dict[str, Counted]

#: Metrics that have a value of right predictions, which is where most intervals will be asked for.
WITH_TARGET = ["oe", "slope", "in_the_large", "miscalibration"]


def _held(lower: Any, upper: Any, target: Any, reliable: Any = True) -> Counted:
    lower, upper = np.atleast_1d(lower), np.atleast_1d(upper)
    known = np.isfinite(lower) & np.isfinite(upper)
    return Counted((lower <= target) & (target <= upper), known & np.asarray(reliable, dtype=bool))


def _of_table(table: Any, target: Array) -> Counted:
    """Take a table, or its columns: frames of many small tables would take longer than what is in them."""
    return _held(*(np.asarray(table[name]) for name in ("lower", "upper")), target, np.asarray(table["reliable"]))


def _band(table: Any, target: Array) -> Counted:
    held = _of_table(table, target)
    return Counted(np.array([held.hit.all()]), np.array([held.relied.all()]))


def _rejected(p_value: Any, reliable: Any) -> Counted:
    p_value = np.atleast_1d(p_value)
    return Counted(p_value < 0.05, np.isfinite(p_value) & np.asarray(reliable, dtype=bool), "5")


def _start(seed: int, setting: Setting) -> tuple[Sample, Any, np.random.Generator]:
    rng = np.random.default_rng([seed, setting.n, setting.n_groups])
    sample = draw(setting, rng)
    return sample, weighting_of(setting, rng), rng


def losses(seed: int, setting: Setting) -> Found:
    """Count scores, differences, skill and bands at four times and in the mean over them."""
    sample, weighting, rng = _start(seed, setting)
    expected = of_losses(setting.events)
    models = {name: ss.SurvivalCurves(p, TIMES) for name, p in ordered_alike(sample.x, setting.events).items()}
    asked: dict[str, Any] = {"weighting": weighting, "times": TIMES, "groups": sample.groups}
    found: Found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equal = ss.compare(sample.y, equally_far(sample.x, setting.events, rng), null=False, **asked)
    contrasts = equal.integrated().contrasts
    found["brier: p below 0.05, equally good"] = _rejected(contrasts["p_value"], contrasts["reliable"])
    for metric, values in expected.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ss.compare(sample.y, models, metric=metric, null="counted", **asked)
            band = result.band(n_draws=1000)
            # an AUC needs somebody of each status
            whole = None if np.isnan(result.scores["score"]).any() else result.integrated()
        targets: Mapping[str, Callable[[Callable[[Any], Any]], Array]] = {
            "scores": lambda average, values=values: average(values["gloomy"]),
            "contrasts": lambda average, values=values: average(values["blunt"]) - average(values["gloomy"]),
            "skill": lambda average, values=values: 1 - average(values["gloomy"]) / average(values["constant"]),
        }
        for kind, target in targets.items():
            if metric == "auc" and kind != "scores":  # both models order alike: there is no difference
                continue
            for place, source, average in (("at a time", result, _as_it_is), ("mean over time", whole, _mean)):
                if source is not None:
                    table = getattr(source, kind)
                    rows = table[table["model"] == ("blunt" if kind == "contrasts" else "gloomy")]
                    found[f"{metric}: {kind}, {place}"] = _of_table(rows, target(average))
        if metric != "auc":
            rows = band[band["model"] == "blunt"]
            found[f"{metric}: contrasts, simultaneous band"] = _band(rows, values["blunt"] - values["gloomy"])
    return found


def _as_it_is(values: Array) -> Array:
    return values


def _mean(values: Array) -> Array:
    return mean_over(TIMES, values)


def calibration(seed: int, setting: Setting) -> Found:
    """Count the intervals of `survscore.calibration`, for predictions that are right, at the second time."""
    sample, weighting, _ = _start(seed, setting)
    right = ss.SurvivalCurves(survival(sample.x, setting.events, TIMES), TIMES)
    targets = {"slope": 1.0, "intercept": 0.0, "in_the_large": 0.0, "observed_expected": 1.0,
               "ici": 0.0, "e50": 0.0, "e90": 0.0, "miscalibration": 0.0}  # fmt: skip
    made = ss.calibration(sample.y, right, TIMES[1], weighting=weighting, groups=sample.groups, n_draws=1)
    tenths = made.groups
    return {
        **_calibration(made, targets, lambda risk: risk),
        "calibration: tenths": _held(tenths.lower, tenths.upper, tenths.predicted, made.reliable),
    }


def wrong_calibration(seed: int, setting: Setting) -> Found:
    """Count the same for predictions that are too gloomy."""
    sample, weighting, _ = _start(seed, setting)
    gloomy = ss.SurvivalCurves(survival(sample.x, setting.events, TIMES) ** 1.3, TIMES)
    truth = {name: float(values["gloomy"][0]) for name, values in of_metrics(setting).items() if "gloomy" in values}
    targets = {"slope": truth["slope"], "in_the_large": truth["in_the_large"], "observed_expected": truth["oe"],
               "ici": truth["ici"], "e50": truth["e50"], "e90": truth["e90"],
               "miscalibration": truth["miscalibration"]}  # fmt: skip
    made = ss.calibration(sample.y, gloomy, TIMES[1], weighting=weighting, groups=sample.groups, n_draws=1)
    return _calibration(made, targets, lambda risk: 1 - (1 - risk) ** (1 / 1.3))


def _calibration(made: ss.Calibration, targets: dict[str, float], share: Callable[[Any], Any]) -> Found:
    names = {"observed_expected": "observed/expected", "in_the_large": "in the large", "ici": "ICI", "e50": "E50",
             "e90": "E90", "miscalibration": "miscalibration"}  # fmt: skip
    found: Found = {}
    for name, target in targets.items():
        one = getattr(made, name)
        held = _held(one.lower, one.upper, target, made.reliable)
        found[f"calibration: {names.get(name, name)}"] = (
            held._replace(nominal="95 or more") if isinstance(one, Distance) else held
        )
    curve = made.curve
    found["calibration: smooth curve, at a risk"] = _held(
        curve.lower, curve.upper, share(curve.predicted), made.reliable
    )
    return found


def all_metrics(sample: Sample) -> list[Any]:
    """Return every metric of the library that has a name in the table of truths."""
    return [
        "brier", "log", "auc", "oe", "slope", "in_the_large", "miscalibration", "ici", "e50", "e90",
        *(ss.NetBenefit(z) for z in THRESHOLDS),
        ss.Concordance(), ss.Concordance("pooled"), ss.Concordance("weighted", strata=sample.x > 0),
        ss.Concordance("harrell"), ss.Concordance(risk="antolini"), "crps", "log_score",
    ]  # fmt: skip


def metrics(seed: int, setting: Setting) -> Found:
    """Count the intervals of every metric: of one model, and of the difference of two that order otherwise."""
    sample, weighting, _ = _start(seed, setting)
    truth = of_metrics(setting)
    curves = ordered_otherwise(sample.x, sample.noise[:, 0], setting.events, GRID)
    right, gloomy, noisy = (ss.SurvivalCurves(curves[name], GRID) for name in ("right", "gloomy", "noisy"))
    asked: dict[str, Any] = {"weighting": weighting, "times": HORIZONS, "groups": sample.groups}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = {"gloomy": gloomy, "noisy": noisy}
        result = ss.compare(sample.y, both, metric=all_metrics(sample), null=False, **asked)
        of_crps = ss.compare(sample.y, {"gloomy": gloomy}, metric="crps", **asked)
        if_right = ss.compare(sample.y, {"right": right}, metric=WITH_TARGET, null=False, **asked)
    found: Found = {}
    halves = np.full(HORIZONS.size, 1 / HORIZONS.size)
    for one in result.scored:
        values = truth[one.metric]
        difference = values["noisy"] - values["gloomy"]
        seen, means = Estimates(one, LEVEL), Estimates(one, LEVEL, halves)
        found[f"{one.metric}: one model"] = _of_table(seen.score(0), values["gloomy"])
        found[f"{one.metric}: one model, mean over time"] = _of_table(
            means.score(0), mean_over(HORIZONS, values["gloomy"])
        )
        found[f"{one.metric}: difference"] = _of_table(seen.difference(1, 0), difference)
        found[f"{one.metric}: difference, mean over time"] = _of_table(
            means.difference(1, 0), mean_over(HORIZONS, difference)
        )
    for one in if_right.scored:
        found[f"{one.metric}: one model, right"] = _of_table(Estimates(one, LEVEL).score(0), truth[one.metric]["right"])
    of_null = 1 - truth["crps"]["gloomy"] / truth["crps"]["Kaplan-Meier"]
    found["crps: skill"] = _of_table(Estimates(of_crps.scored[0], LEVEL).skill(0, 1), of_null)
    return found


#: Of how many other data sets the projected score's own estimand is the mean.
OWN = 1000
OWN_METRICS = ["brier", "log", "auc", "oe"]
#: The difference of a model from the right one: from the same covariate, and from one that is mixed with noise.
AGAINST = {"same information": "gloomy", "different information": "noisy"}


def _quantities(seed: int, setting: Setting) -> Iterator[tuple[str, Any, Callable[[Mapping[str, Array]], Array]]]:
    """Yield what is asked of the projected score: its name, estimates with intervals, and how the truth tells it."""
    sample, weighting, _ = _start(seed, setting)
    curves = ordered_otherwise(sample.x, sample.noise[:, 0], setting.events, HORIZONS)
    names = list(curves)
    models = {name: ss.SurvivalCurves(p, HORIZONS) for name, p in curves.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ss.compare(
            sample.y, models, metric=OWN_METRICS, weighting=weighting, times=HORIZONS, null=False, reference="right"
        )
    halves = np.full(HORIZONS.size, 1 / HORIZONS.size)
    for one in result.scored:
        for place, average, averaged in (("", None, _as_it_is), (", mean over time", halves, _mean_of_horizons)):
            seen = Estimates(one, LEVEL) if average is None else Estimates(one, LEVEL, average)
            model = names.index("noisy")
            yield (
                f"{one.metric}: one model{place}",
                seen.score(model),
                lambda truth, averaged=averaged: averaged(truth["noisy"]),
            )
            for what, name in AGAINST.items():
                if one.metric == "auc" and name == "gloomy":  # both order alike: there is no difference
                    continue
                yield (
                    f"{one.metric}: difference, {what}{place}",
                    seen.difference(names.index(name), names.index("right")),
                    lambda truth, name=name, averaged=averaged: averaged(truth[name] - truth["right"]),
                )


def _mean_of_horizons(values: Array) -> Array:
    return mean_over(HORIZONS, values)


@cache
def _own_estimands(setting: Setting) -> dict[str, Array]:
    """Return the means over other data sets of the same size."""
    found: dict[str, list[Array]] = {}
    for seed in range(OWN):
        for name, columns, _ in _quantities(1_000_000 + seed, setting):
            value = columns["estimate"]
            found.setdefault(name, []).append(np.atleast_1d(np.asarray(value)))
    return {name: np.mean(several, axis=0) for name, several in found.items()}


def projected(seed: int, setting: Setting) -> Found:
    """Count the intervals of projected scores: do they hold the truth, and the mean of such scores?"""
    truth, own = of_metrics(setting), _own_estimands(setting)
    found: Found = {}
    for name, columns, target in _quantities(seed, setting):
        metric = name.split(":")[0]
        found[f"{name}: truth"] = _of_table(columns, target(truth[metric]))
        found[f"{name}: own estimand"] = _of_table(columns, own[name])
    return found


def dropouts(seed: int, setting: Setting) -> Found:
    """Count the intervals of a right model's scores, with weights for drop-outs by one curve and by risk strata."""
    sample, _, _ = _start(seed, setting)
    truth = of_metrics(setting)
    right = ss.SurvivalCurves(survival(sample.x, setting.events, HORIZONS), HORIZONS)
    halves = np.full(HORIZONS.size, 1 / HORIZONS.size)
    found: Found = {}
    for how, strata in (("risk strata", "own-ranks"), ("one curve", None)):
        result = ss.compare(
            sample.y, {"right": right}, metric=["brier", "log", "auc"], times=HORIZONS, null=False,
            weighting=ss.Administrative(dropout_strata=strata),
        )  # fmt: skip
        for one in result.scored:
            target = truth[one.metric]["right"]
            found[f"{one.metric}: one model: {how}"] = _of_table(Estimates(one, LEVEL).score(0), target)
            found[f"{one.metric}: one model, mean over time: {how}"] = _of_table(
                Estimates(one, LEVEL, halves).score(0), _mean_of_horizons(target)
            )
    return found


def sizes(seed: int, setting: Setting) -> Found:
    """Count how often two equally good models are called different, by every metric."""
    sample, weighting, _ = _start(seed, setting)
    curves = exchangeable(sample.x, sample.noise, setting.events, GRID)
    models = {name: ss.SurvivalCurves(p, GRID) for name, p in curves.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ss.compare(
            sample.y, models, metric=all_metrics(sample), weighting=weighting, times=HORIZONS, groups=sample.groups,
            null=False,
        )  # fmt: skip
    contrasts = {one.metric: Estimates(one, LEVEL).difference(1, 0) for one in result.scored}
    return {
        f"{metric}: p below 0.05, equally good": _rejected(columns["p_value"], columns["reliable"])
        for metric, columns in contrasts.items()
    }


def decisions(seed: int, setting: Setting) -> Found:
    """Count the intervals and bands of decision curves."""
    sample, weighting, _ = _start(seed, setting)
    truth = of_decisions(setting)
    curves = ordered_otherwise(sample.x, sample.noise[:, 0], setting.events, HORIZONS[:1])
    models = {name: ss.SurvivalCurves(p, HORIZONS[:1]) for name, p in curves.items()}
    made = ss.decision_curve(
        sample.y, models, HORIZONS[0], thresholds=DECISION_THRESHOLDS, weighting=weighting, reference="gloomy",
        groups=sample.groups, n_draws=1000,
    )  # fmt: skip
    found: Found = {}
    for name, table, model, target in (
        ("one model", made.to_frame(), "gloomy", truth["gloomy"]),
        ("difference", made.contrasts, "noisy", truth["noisy"] - truth["gloomy"]),
        ("difference to treating all", made.contrasts, "treat all", truth["treat all"] - truth["gloomy"]),
    ):
        rows = table[table["strategy"] == model]
        found[f"decision curve: {name}, at a threshold"] = _of_table(rows, target)
        band = _held(rows["band_lower"], rows["band_upper"], target)
        # there is no limit where nothing varies
        held = (band.hit | ~band.relied).all()
        found[f"decision curve: {name}, band"] = Counted(np.array([held]), np.array([rows["band_reliable"].all()]))
    return found


def distribution(seed: int, setting: Setting) -> Found:
    """Count how often right curves are called wrong, by all tests that these data allow, and intervals of bins."""
    sample, _, _ = _start(seed, setting)
    curves = survival(sample.x, setting.events, GRID)
    found: Found = {}
    tests = ("martingale", "bins") if setting.drop_outs else ("smooth", "martingale", "bins")
    for form, interpolation in (("intervals", "linear"), ("continuous", "constant-hazard")):
        right = ss.SurvivalCurves(curves, GRID, interpolation=interpolation)
        for test in tests:
            made = ss.distribution_calibration(sample.y, right, test=test, form=form, groups=sample.groups)
            found[f"distribution calibration: p below 0.05 when right, {test}, {form}"] = _rejected(
                made.p_value, made.reliable
            )
        bins = made.bins
        found[f"distribution calibration: observed by expected in a bin, {form}"] = _held(
            bins.lower, bins.upper, 1.0, made.reliable
        )
    return found

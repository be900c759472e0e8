"""Calibration at some horizons, and the table of what a reviewer asks for at them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    InterpolationWarning,
    UndefinedScoreWarning,
    as_times,
)
from survscore.analysis.calibration import Calibration, calibration
from survscore.analysis.score_tables import score_table
from survscore.causes import ALL_STATUSES
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import Null
from survscore.engine.times import shared_times
from survscore.outcomes import Outcomes
from survscore.reports.comparing import Table, as_table, plain
from survscore.results.tables import spread_over
from survscore.weighting import Administrative, Weighting

CALIBRATION_NUMBERS = (
    "observed_expected", "observed_expected_lower", "observed_expected_upper", "slope", "slope_lower", "slope_upper",
    "miscalibration", "ici", "ici_if_right",
)  # fmt: skip
BRIER_PARTS = (
    "brier",
    "isotonic_miscalibration",
    "isotonic_miscalibration_if_right",
    "discrimination",
    "uncertainty",
)
AT_HORIZONS = ("brier", "auc", "oe")
MOST_HORIZONS = 4  # of times that were asked for


def horizons_of(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    times: NDArray[np.float64],
    asked: ArrayLike | None,
    *,
    given: bool = False,
) -> list[float]:
    """Return the horizons that were asked for; of `given` times all if they are few, or else three of them.

    Where nothing was asked for, three within what predictions and data reach: predicted ones, if these are few.
    """
    if asked is not None:
        return [float(t) for t in as_times(asked, "horizons")]
    last = min([float(times[-1]), *(float(curves.times[-1]) for curves in models.values())])
    if y.censoring_time is not None:
        last = min(last, float(y.censoring_time.max()))
    if last <= 0:
        return []
    within = times[(times > 0) & (times <= last)]
    if given and within.size:
        few = within.size <= MOST_HORIZONS
        return [float(within[place]) for place in spread_over(np.arange(within.size), within.size if few else 3)]
    with suppress(InputError):  # models that share no time, of which the times of the comparison were named
        shared = shared_times(models, last)
        if shared is not None:
            return [float(shared[place]) for place in spread_over(np.arange(shared.size), 3)]
    return [float(f"{last * share:.3g}") for share in (0.25, 0.5, 0.75)]


def calibrated(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: Weighting,
    horizons: Sequence[float],
    groups: ArrayLike | None,
    level: float,
    *,
    asked: bool,
) -> dict[str, Any]:
    """Return smooth calibration curves, their numbers, and the parts of the Brier score, under one weighting."""
    curves: Table = {name: [] for name in ("model", "horizon", "predicted", "observed", "lower", "upper")}
    numbers: Table = {name: [] for name in ("model", "horizon", "n", "events", *CALIBRATION_NUMBERS)}
    parts: Table = {name: [] for name in ("model", "horizon", "n", *BRIER_PARTS)}
    missing = "calibration is of one cause at a time" if y.interest == ALL_STATUSES else None
    for horizon in horizons if missing is None else ():
        for model, predicted in models.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", InterpolationWarning)  # `at_horizons` warns, and names the model
                    found = calibration(y, predicted, horizon, weighting=weighting, groups=groups, level=level)
            except InputError as error:
                if asked:
                    raise
                missing = str(error)  # a horizon that nobody asked for may be out of reach
                continue
            if not np.isnan(found.curve.observed).all():
                for name in ("predicted", "observed", "lower", "upper"):
                    curves[name] += [plain(value) for value in getattr(found.curve, name).tolist()]
                curves["model"] += [model] * found.curve.predicted.size
                curves["horizon"] += [horizon] * found.curve.predicted.size
            for table in (numbers, parts):
                table["model"].append(model)
                table["horizon"].append(horizon)
                table["n"].append(found.n_counted)
            numbers["events"].append(found.n_events)
            for name, value in _calibration_numbers(found).items():
                numbers[name].append(plain(value))
            for name in BRIER_PARTS:
                parts[name].append(plain(getattr(found, name)))
    nothing = not numbers["model"]
    return {
        "missing": missing if nothing else None,
        "weighting": weighting.label(y),
        "curves": {} if nothing else curves,
        "numbers": {} if nothing else numbers,
        "parts": {} if nothing else parts,
    }


def for_the_same(weighting: Weighting, times: NDArray[np.float64]) -> Weighting:
    """Return a weighting that counts at one time those whom it counts at all times together."""
    if isinstance(weighting, Administrative) and isinstance(weighting.population, str):  # "fixed", by the last time
        return replace(weighting, population=float(times[-1]))
    return weighting


def _calibration_numbers(found: Calibration) -> dict[str, float]:
    """Return the numbers that a report shows first."""
    ratio, slope = found.observed_expected, found.slope
    values = (
        ratio.value, ratio.lower, ratio.upper, slope.value, slope.lower, slope.upper,
        found.miscalibration.value, found.ici.value, found.ici.if_right,
    )  # fmt: skip
    return dict(zip(CALIBRATION_NUMBERS, values, strict=True))


def at_horizons(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: Weighting,
    horizons: Sequence[float],
    *,
    reference: str,
    null: Null,
    groups: ArrayLike | None,
    level: float,
) -> Table:
    """Return Brier score, AUC and observed/expected at each horizon, with differences to a reference and p-values."""
    if not horizons:
        return {}
    with warnings.catch_warnings():
        for told_by_a_note in (UndefinedScoreWarning, FewFollowedWarning, FewGroupsWarning):
            warnings.simplefilter("ignore", told_by_a_note)
        try:
            found = score_table(
                y, models, horizons=horizons, metric=AT_HORIZONS, weighting=weighting, reference=reference, null=null,
                groups=groups, level=level,
            )  # fmt: skip
        except InputError:  # data that calibration can't do either, which says why
            return {}
    frame = found.to_frame().drop(columns=["over_time", "weighting"])
    order = {name: place for place, name in enumerate(AT_HORIZONS)}
    placed = frame.assign(place=frame["metric"].map(order)).sort_values(["time", "place"], kind="stable")
    return as_table(placed.drop(columns="place").rename(columns={"time": "horizon"}))

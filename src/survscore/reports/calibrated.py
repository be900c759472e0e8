"""Calibration at some horizons, and the table of what a reviewer asks for at them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.parallel import LONG_VECTOR, each
from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    InterpolationWarning,
    UndefinedScoreWarning,
    UnequalWeightsWarning,
    as_times,
)
from survscore.analysis.calibration import Calibration, calibration
from survscore.analysis.score_tables import score_table
from survscore.causes import ALL_STATUSES
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import Null
from survscore.engine.times import shared_times
from survscore.metrics import controls_note
from survscore.outcomes import Outcomes
from survscore.reports.cells import Column, Table, decimals, digits_of, even, judged, scope, with_interval
from survscore.reports.cells import numbers as of_numbers
from survscore.reports.comparing import as_table, extend, mark_of, plain, records
from survscore.reports.section import Display, Panel, Section, runs
from survscore.reports.verdicts import fixed, short
from survscore.results.tables import spread_over
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study

CALIBRATION_NUMBERS = (
    "observed_expected", "observed_expected_lower", "observed_expected_upper", "slope", "slope_lower", "slope_upper",
    "miscalibration", "ici", "ici_if_right",
)  # fmt: skip
BRIER_PARTS = (
    "brier", "isotonic_miscalibration", "isotonic_miscalibration_if_right", "discrimination", "uncertainty",
)  # fmt: skip
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
    rows: list[dict[str, Any]] = []
    missing = "calibration is of one cause at a time" if y.interest == ALL_STATUSES else None

    def judged(pair: tuple[float, str]) -> Calibration | InputError:
        horizon, model = pair
        try:
            return calibration(y, models[model], horizon, weighting=weighting, groups=groups, level=level)
        except InputError as error:
            if asked:
                raise
            return error  # a horizon that nobody asked for may be out of reach

    pairs = [(horizon, model) for horizon in horizons for model in models] if missing is None else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # `at_horizons` warns, and names the model
        results = each(judged, pairs, threads=len(y) >= LONG_VECTOR)
    for (horizon, model), found in zip(pairs, results, strict=True):
        if isinstance(found, InputError):
            missing = str(found)
            continue
        if not np.isnan(found.curve.observed).all():
            drawn = {name: getattr(found.curve, name) for name in ("predicted", "observed", "lower", "upper")}
            extend(curves, drawn, model=model, horizon=horizon)
        about = {"model": model, "horizon": horizon, "n": found.n_counted, "events": found.n_events}
        rows.append({**about, **_numbers_of(found)})
    of_all = ("model", "horizon", "n")
    numbers, parts = (
        {name: [plain(row[name]) for row in rows] for name in (*of_all, *names)} if rows else {}
        for names in (("events", *CALIBRATION_NUMBERS), BRIER_PARTS)
    )
    return {
        "missing": None if rows else missing,
        "weighting": weighting.label(y),
        "curves": curves if rows else {},
        "numbers": numbers,
        "parts": parts,
    }


def for_the_same(weighting: Weighting, times: NDArray[np.float64]) -> Weighting:
    """Return a weighting that counts at one time those whom it counts at all times together."""
    if isinstance(weighting, Administrative) and isinstance(weighting.population, str):  # "fixed", by the last time
        return replace(weighting, population=float(times[-1]))
    return weighting


def _numbers_of(found: Calibration) -> dict[str, float]:
    """Return the numbers that a report shows, and the parts of the Brier score."""
    ratio, slope = found.observed_expected, found.slope
    values = (
        ratio.value, ratio.lower, ratio.upper, slope.value, slope.lower, slope.upper,
        found.miscalibration.value, found.ici.value, found.ici.if_right,
    )  # fmt: skip
    parts = {name: getattr(found, name) for name in BRIER_PARTS}
    return {**dict(zip(CALIBRATION_NUMBERS, values, strict=True)), **parts}


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
    encodes: Collection[str] = (),
) -> Table:
    """Return Brier score, AUC and observed/expected at each horizon, with differences to a reference and p-values."""
    if not horizons:
        return {}
    with warnings.catch_warnings():
        for told_by_a_note in (UndefinedScoreWarning, FewFollowedWarning, FewGroupsWarning, UnequalWeightsWarning):
            warnings.simplefilter("ignore", told_by_a_note)
        try:
            found = score_table(
                y, models, horizons=horizons, metric=AT_HORIZONS, weighting=weighting, reference=reference, null=null,
                groups=groups, level=level,
            )  # fmt: skip
        except InputError:  # data that calibration can't do either, which says why
            return {}
    frame = found.to_frame().drop(columns=["over_time"])
    rows = ({**row, "reference": reference} for row in records(frame))
    frame["mark"] = [mark_of(row, encodes) for row in rows]
    frame = frame.drop(columns="weighting")
    order = {name: place for place, name in enumerate(AT_HORIZONS)}
    placed = frame.assign(place=frame["metric"].map(order)).sort_values(["time", "place"], kind="stable")
    return as_table(placed.drop(columns="place").rename(columns={"time": "horizon"}))


class CalibrationSection(Section):
    """Calibration at some horizons, and what a reviewer asks for at them."""

    files = {
        "horizons": "horizons", "calibration": "calibration curves", "calibration-numbers": "calibration numbers",
        "calibration-parts": "calibration parts",
    }  # fmt: skip

    doing = "checking calibration"

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        y, named, options = study.y, study.models, study.options
        # one weighting for all: that which needs no assumption
        weighting = for_the_same(study.chosen, study.comparison.times)
        groups, level = options.groups, options.level
        reference = study.comparison.reference
        asked = options.horizons is not None
        return {
            "calibration": calibrated(y, named, weighting, study.horizons, groups, level, asked=asked),
            "horizons": at_horizons(
                y,
                named,
                weighting,
                study.horizons,
                reference=reference,
                null=options.null,
                groups=groups,
                level=level,
                encodes=study.comparison.encodes,
            ),
        }

    def _curves(self) -> list[Panel]:
        panels: dict[float, Panel] = {}
        top = _top(self.summary["calibration"]["curves"])
        for (horizon, model), start, stop in runs(self.summary["calibration"]["curves"], ("horizon", "model")):
            panel = panels.setdefault(
                horizon,
                {
                    "title": f"at {short(horizon)} {self.summary['unit']}"
                    if self.summary.get("unit")
                    else f"at time {short(horizon)}",
                    "x": "predicted",
                    "y": "observed",
                    "lower": "lower",
                    "upper": "upper",
                    "xlabel": "predicted risk",
                    "ylabel": "observed proportion",
                    "domain": [0, top],
                    "diagonal": True,
                    "series": [],
                },
            )
            panel["series"].append(self.series(model, start, stop))
        return list(panels.values())

    def _horizons(self) -> Iterable[Display]:
        """Yield Brier score, AUC and observed/expected at the horizons, with differences and p-values."""
        table = self.summary["horizons"]
        if not table:
            return
        texts: dict[int, list[str]] = {}
        for metric in dict.fromkeys(table["metric"]):  # each with as many decimals as it needs
            kept = [k for k, one in enumerate(table["metric"]) if one == metric]
            columns = self._at_horizons({name: [column[k] for k in kept] for name, column in table.items()})
            texts |= {k: [column.texts[place] for column in columns] for place, k in enumerate(kept)}
        rows = [texts[k] for k in range(len(table["metric"]))]
        of_metric = list(zip(table["horizon"], table["metric"], strict=True))
        names = [
            f"{label} ({direction} is better)" if k == 0 or of_metric[k] != of_metric[k - 1] else ""
            for k, (label, direction) in enumerate(zip(table["label"], table["direction"], strict=True))
        ]
        first = {horizon: k for k, horizon in reversed(list(enumerate(table["horizon"])))}
        groups = [
            f"At {short(horizon)}{self.in_unit}: {fixed(table['n_counted'][first[horizon]], 0)} counted, "
            f"{fixed(table['n_events'][first[horizon]], 0)} with event"
            for horizon in table["horizon"]
        ]
        weighting = self.short(self.summary["calibration"]["weighting"])
        told = f"Accuracy, discrimination and calibration at single times, {weighting}"
        controls = controls_note(table["metric"], self.summary.get("cause") or "")
        yield Display(
            "horizons",
            ". ".join([told, *controls]) + scope(table),
            [Column("measure", names), Column("model", table["model"], "model"),
             *(Column(one.heading, [row[c] for row in rows], one.kind) for c, one in enumerate(columns))],
            table["model"],
            groups=groups,
        )  # fmt: skip

    def _at_horizons(self, table: Table) -> list[Column]:
        """Return the columns of one metric; the reference has no difference to itself."""
        estimates = with_interval("estimate", table["estimate"], table["lower"], table["upper"], self.level)
        digits = digits_of(table["lower"], table["upper"], table["estimate"]) + 1
        differences = with_interval(
            f"difference to {self.summary['reference']}", table["difference"], table["difference_lower"],
            table["difference_upper"], self.level, digits,
        )  # fmt: skip
        own = [model == self.summary["reference"] for model in table["model"]]
        columns = [*differences, *judged(table)]
        for column in columns:
            column.texts[:] = ["" if mine else text for mine, text in zip(own, column.texts, strict=True)]
        return [*estimates, *columns]

    def _numbers(self) -> Iterable[Display]:
        """Yield the numbers of calibration."""
        table = self.summary["calibration"]["numbers"]
        if not table:
            return
        columns = [
            Column("model", table["model"], "model"),
            of_numbers("individuals", table["n"]),
            of_numbers("events", table["events"]),
        ]
        for name, heading in (("observed_expected", "observed / expected"), ("slope", "slope")):
            values, lower, upper = (table[f"{name}{end}"] for end in ("", "_lower", "_upper"))
            columns += with_interval(heading, values, lower, upper, self.level)
        digits = max(2, min(4, decimals(table["ici"])))
        columns += [
            Column(heading, [even(one, places) for one in table[name]], "number")
            for name, heading, places in (
                ("miscalibration", "miscalibration", 5), ("ici", "ICI", digits),
                ("ici_if_right", "ICI expected if right", digits),
            )
        ]  # fmt: skip
        caption = (
            "Observed / expected above 1: predicted risks are too low; slope below 1: predictions are too far apart"
        )
        yield Display("calibration-numbers", caption, columns, table["model"], None, self._at(table["horizon"]))

    def _parts(self) -> Iterable[Display]:
        """Yield the parts of the Brier score."""
        table = self.summary["calibration"]["parts"]
        if not table:
            return
        names = {
            "brier": "Brier score", "isotonic_miscalibration": "= miscalibration", "discrimination": "− discrimination",
            "uncertainty": "+ uncertainty", "isotonic_miscalibration_if_right": "miscalibration expected if right",
        }  # fmt: skip
        columns = [Column("model", table["model"], "model")]
        columns += [Column(heading, [even(one, 4) for one in table[name]], "number") for name, heading in names.items()]
        caption = "Parts of the Brier score; by chance alone, right predictions have some miscalibration too"
        yield Display("calibration-parts", caption, columns, table["model"], None, self._at(table["horizon"]))

    def _at(self, horizons: Sequence[float]) -> list[str]:
        return [f"At {short(horizon)}{self.in_unit}" for horizon in horizons]

    charts = {"calibration": _curves}
    shown = {"horizons": _horizons, "calibration-numbers": _numbers, "calibration-parts": _parts}


def _top(curves: Table) -> float:
    """Return the end of both axes of calibration, in tenths: the largest risk that is drawn, and no more than 1."""
    drawn = [
        value for name in ("predicted", "observed", "upper") for value in curves.get(name, []) if value is not None
    ]
    return min(1.0, math.ceil(10 * max(drawn, default=1.0)) / 10)

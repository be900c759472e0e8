"""Calibration at some horizons, and the table of what a reviewer asks for at them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.parallel import LONG_VECTOR, each
from survscore._validation import InputError, InterpolationWarning, as_times
from survscore.analysis.calibration import Calibration, calibration
from survscore.analysis.score_tables import score_table
from survscore.causes import ALL_STATUSES
from survscore.curves import SurvivalCurves
from survscore.engine.times import shared_times
from survscore.metrics import controls_note
from survscore.outcomes import Outcomes
from survscore.reports.comparing import SHOWN_AS_NOTES, as_table, extend, mark_of, plain, records
from survscore.reports.section import (
    MODEL,
    Column,
    PageTable,
    Panel,
    Section,
    Table,
    judged,
    numbers,
    rows_where,
    runs,
    scope,
)
from survscore.results.rounding import column_decimals, digits_of, fixed, short
from survscore.results.tables import spread_over
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study

#: Numbers of the page, by the name that they have there: of which result, and which of its attributes.
CALIBRATION_NUMBERS = {
    "observed_expected": ("observed_expected", "value"),
    "observed_expected_lower": ("observed_expected", "lower"),
    "observed_expected_upper": ("observed_expected", "upper"),
    "slope": ("slope", "value"),
    "slope_lower": ("slope", "lower"),
    "slope_upper": ("slope", "upper"),
    "miscalibration": ("miscalibration", "value"),
    "ici": ("ici", "value"),
    "ici_if_right": ("ici", "if_right"),
}
#: Parts of the Brier score, and what they are called on the page.
BRIER_PARTS = {
    "brier": "Brier score",
    "isotonic_miscalibration": "= miscalibration",
    "discrimination": "− discrimination",
    "uncertainty": "+ uncertainty",
    "isotonic_miscalibration_if_right": "miscalibration expected if right",
}
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


def calibrated(study: Study, weighting: Weighting) -> dict[str, Any]:
    """Return smooth calibration curves, their numbers, and the parts of the Brier score, under one weighting."""
    y, options = study.y, study.options
    curves: Table = {name: [] for name in ("model", "horizon", "predicted", "observed", "lower", "upper")}
    rows: list[dict[str, Any]] = []
    missing = "calibration is of one cause at a time" if y.interest == ALL_STATUSES else None

    def of_pair(pair: tuple[float, str]) -> Calibration | InputError:
        horizon, model = pair
        groups, level = options.groups, options.level
        try:
            return calibration(y, study.models[model], horizon, weighting=weighting, groups=groups, level=level)
        except InputError as error:
            if options.horizons is not None:
                raise
            return error  # a horizon that the user did not name may be out of reach

    pairs = [(horizon, model) for horizon in study.horizons for model in study.models] if missing is None else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # `at_horizons` warns, and names the model
        results = each(of_pair, pairs, threads=len(y) >= LONG_VECTOR)
    for (horizon, model), result in zip(pairs, results, strict=True):
        if isinstance(result, InputError):
            missing = str(result)
            continue
        if not np.isnan(result.curve.observed).all():
            drawn = {name: getattr(result.curve, name) for name in ("predicted", "observed", "lower", "upper")}
            extend(curves, drawn, model=model, horizon=horizon)
        row = {"model": model, "horizon": horizon, "n": result.n_counted, "events": result.n_events}
        row |= {name: getattr(getattr(result, of), which) for name, (of, which) in CALIBRATION_NUMBERS.items()}
        rows.append(row | {name: getattr(result, name) for name in BRIER_PARTS})
    of_models, parts = (
        {name: [plain(row[name]) for row in rows] for name in ("model", "horizon", "n", *names)} if rows else {}
        for names in (("events", *CALIBRATION_NUMBERS), BRIER_PARTS)
    )
    return {
        "missing": None if rows else missing,
        "weighting": weighting.label(y),
        "curves": curves if rows else {},
        "numbers": of_models,
        "parts": parts,
    }


def for_the_same(weighting: Weighting, times: NDArray[np.float64]) -> Weighting:
    """Return a weighting that counts at one time those whom it counts at all times together."""
    if isinstance(weighting, Administrative) and isinstance(weighting.population, str):  # "fixed", by the last time
        return replace(weighting, population=float(times[-1]))
    return weighting


def at_horizons(study: Study, weighting: Weighting) -> Table:
    """Return Brier score, AUC and observed/expected at each horizon, with differences to a reference and p-values."""
    options, reference = study.options, study.comparison.reference
    if not study.horizons:
        return {}
    with warnings.catch_warnings():
        for category in SHOWN_AS_NOTES:
            warnings.simplefilter("ignore", category)
        try:
            table = score_table(
                study.y,
                study.models,
                horizons=study.horizons,
                metric=AT_HORIZONS,
                weighting=weighting,
                reference=reference,
                null=options.null,
                groups=options.groups,
                level=options.level,
            )
        except InputError:  # data for which there is no calibration either, which says why
            return {}
    frame = table.to_frame().drop(columns=["over_time"])
    rows = ({**row, "reference": reference} for row in records(frame))
    frame["mark"] = [mark_of(row, study.comparison.encodes) for row in rows]
    frame["place"] = frame["metric"].map({name: place for place, name in enumerate(AT_HORIZONS)})
    placed = frame.sort_values(["time", "place"], kind="stable").drop(columns=["weighting", "place"])
    return as_table(placed.rename(columns={"time": "horizon"}))


class CalibrationSection(Section):
    """Calibration at some horizons, and what a reviewer asks for at them."""

    files = {
        "horizons": "horizons",
        "calibration": "calibration curves",
        "calibration-numbers": "calibration numbers",
        "calibration-parts": "calibration parts",
    }
    doing = "checking calibration"

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        # one weighting for all: that which needs no assumption
        weighting = for_the_same(study.chosen, study.comparison.times)
        return {"calibration": calibrated(study, weighting), "horizons": at_horizons(study, weighting)}

    def _curves(self) -> list[Panel]:
        panels: dict[float, Panel] = {}
        table, unit = self.summary["calibration"]["curves"], self.summary.get("unit")
        drawn = [value for name in ("predicted", "observed", "upper") for value in table.get(name, [])]
        # both axes end at the largest risk that is drawn, in tenths
        top = min(1.0, math.ceil(10 * max((value for value in drawn if value is not None), default=1.0)) / 10)
        axes = {"lower": "lower", "upper": "upper", "domain": [0, top], "diagonal": True}
        for (horizon, model), start, stop in runs(table, ("horizon", "model")):
            title = f"at {short(horizon)} {unit}" if unit else f"at time {short(horizon)}"
            labels = ("predicted risk", "observed proportion")
            panel = panels.setdefault(horizon, self.panel(title, "predicted", "observed", labels, **axes))
            panel["series"].append(self.series(model, start, stop))
        return list(panels.values())

    def _horizons(self) -> Iterable[PageTable]:
        """Yield Brier score, AUC and observed/expected at the horizons, with differences and p-values."""
        table = self.summary["horizons"]
        if not table:
            return
        texts: dict[int, list[str]] = {}
        for metric in dict.fromkeys(table["metric"]):  # each with as many decimals as it needs
            places = [k for k, other in enumerate(table["metric"]) if other == metric]
            columns = self._of_metric(rows_where(table, "metric", metric))
            texts |= dict(zip(places, map(list, zip(*(column.texts for column in columns), strict=True)), strict=True))
        in_order = map(list, zip(*(texts[k] for k in range(len(texts))), strict=True))
        of_metric = list(zip(table["horizon"], table["metric"], strict=True))
        labels = [
            f"{label} ({direction} is better)" if k == 0 or of_metric[k] != of_metric[k - 1] else ""
            for k, (label, direction) in enumerate(zip(table["label"], table["direction"], strict=True))
        ]
        first = {horizon: k for k, horizon in reversed(list(enumerate(table["horizon"])))}
        counts = [[fixed(table[name][first[at]], 0) for name in ("n_counted", "n_events")] for at in table["horizon"]]
        when = self.at(table["horizon"])
        groups = [f"{at}: {n} counted, {events} with event" for at, (n, events) in zip(when, counts, strict=True)]
        weighting = self.short(self.summary["calibration"]["weighting"])
        controls = controls_note(table["metric"], self.summary.get("cause") or "")
        caption = [f"Accuracy, discrimination and calibration at single times, {weighting}", *controls]
        shown = [Column("measure", labels), Column("model", table["model"], MODEL)]
        shown += [column._replace(texts=rows) for column, rows in zip(columns, in_order, strict=True)]
        yield self.page_table("horizons", ". ".join(caption) + scope(table), shown, groups=groups)

    def _of_metric(self, table: Table) -> list[Column]:
        """Return the columns of one metric; the reference has no difference to itself."""
        reference = self.summary["reference"]
        digits = digits_of(table["lower"], table["upper"], table["estimate"]) + 1
        heading = f"difference to {reference}"
        differences = [*self.estimates(heading, table, "difference", "difference_", digits), *judged(table)]
        for column in differences:
            pairs = zip(table["model"], column.texts, strict=True)
            column.texts[:] = ["" if model == reference else text for model, text in pairs]
        return [*self.estimates("estimate", table, "estimate"), *differences]

    def _numbers(self) -> Iterable[PageTable]:
        """Yield the numbers of calibration."""
        table = self.summary["calibration"]["numbers"]
        if not table:
            return
        digits = max(2, min(4, column_decimals(table["ici"])))
        columns = [
            Column("model", table["model"], MODEL),
            numbers("individuals", table["n"]),
            numbers("events", table["events"]),
            *self.estimates("observed / expected", table, "observed_expected", "observed_expected_"),
            *self.estimates("slope", table, "slope", "slope_"),
            numbers("miscalibration", table["miscalibration"], 5),
            numbers("ICI", table["ici"], digits),
            numbers("ICI expected if right", table["ici_if_right"], digits),
        ]
        caption = (
            "Observed / expected above 1: predicted risks are too low; slope below 1: predictions are too far apart"
        )
        yield self.page_table("calibration-numbers", caption, columns, groups=self.at(table["horizon"]))

    def _parts(self) -> Iterable[PageTable]:
        """Yield the parts of the Brier score."""
        table = self.summary["calibration"]["parts"]
        if not table:
            return
        columns = [Column("model", table["model"], MODEL)]
        columns += [numbers(heading, table[name], 4) for name, heading in BRIER_PARTS.items()]
        caption = "Parts of the Brier score; by chance alone, right predictions have some miscalibration too"
        yield self.page_table("calibration-parts", caption, columns, groups=self.at(table["horizon"]))

    charts = {"calibration": _curves}
    shown = {"horizons": _horizons, "calibration-numbers": _numbers, "calibration-parts": _parts}

"""Signs that predictions encode C* and that IPCW is misled: in words, tables, and means around C*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError
from survscore.analysis.diagnose import diagnose
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.reports import verdicts
from survscore.reports.cells import Column, Table, with_interval
from survscore.reports.comparing import as_table, extend, rows_of
from survscore.reports.section import Display, Panel, Section, runs
from survscore.reports.verdicts import missing, short
from survscore.weighting import IPCW, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study


def around_censoring(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weightings: Sequence[Weighting],
    times: NDArray[np.float64],
    groups: ArrayLike | None,
    level: float,
) -> dict[str, Any]:
    """Return the signs that IPCW is misled and that predictions encode C*: in words, tables, and means around C*."""
    nothing: dict[str, Any] = {
        "curves": {}, "falls": {}, "weights": {}, "caps": {}, "ipcw": None, "sentences": [], "width": None, "n": 0,
    }  # fmt: skip
    if y.censoring_time is None:
        return {"missing": "that needs C* of each individual", **nothing}
    questioned = next((one for one in weightings if isinstance(one, IPCW)), "ipcw")
    try:
        diagnosis = diagnose(y, models, weighting=questioned, times=times, groups=groups, level=level)
    except InputError as error:
        return {"missing": str(error), **nothing}
    curves: Table = {"model": [], "offset": [], "survival": []}
    for name, mean in diagnosis.survival.items():
        extend(curves, {"offset": diagnosis.offsets, "survival": mean}, model=name)
    return {
        "missing": None,
        "curves": curves,
        "falls": as_table(diagnosis.models),
        "weights": as_table(diagnosis.weights),
        "caps": as_table(diagnosis.caps),
        "ipcw": diagnosis.ipcw,
        "sentences": list(diagnosis.sentences),
        "width": diagnosis.width,
        "n": diagnosis.n,
    }


def leak_sentences(around: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each model how far it falls right after C*, and what that says."""
    return [
        {"model": row["model"], "verdict": row["verdict"], "sentence": verdicts.leak_sentence(row)}
        for row in rows_of(around["falls"])
    ]


class DiagnosisSection(Section):
    """Whether predictions encode C*, and IPCW is misled."""

    files = {
        "around-censoring": "around_censoring curves", "falls": "around_censoring falls",
        "ipcw-weights": "around_censoring weights", "ipcw-caps": "around_censoring caps",
    }  # fmt: skip

    doing = "looking for signs of leaks"

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        y, models, options = study.of_any_kind, study.of_any_event, study.options
        around = around_censoring(
            y,
            models,
            study.weightings,
            study.comparison.times,
            options.groups,
            options.level,
        )
        return {"around_censoring": around, "leaks": leak_sentences(around)}

    def _around(self) -> list[Panel]:
        around = self.summary["around_censoring"]
        if around["missing"]:
            return []
        lines = [one for one in runs(around["curves"], ("model",)) if one[0][0] in self.summary["models"]]
        return [
            {
                "title": f"Mean predicted {self.predicted} around each individual's own C*",
                "main": True,
                "x": "offset",
                "y": "survival",
                "xlabel": self.time("time since C*"),
                "ylabel": f"mean predicted {self.predicted}",
                "ydomain": [0, 1],
                "marks": [{"x": 0, "label": "C*"}],
                "series": [self.series(model, start, stop) for (model,), start, stop in lines],
            }
        ]

    def _falls(self) -> Iterable[Display]:
        """Yield how far predictions fall right after C*, and elsewhere."""
        around = self.summary["around_censoring"]
        table = around["falls"]
        if not table:
            return
        favour, lower, upper = (table[f"ipcw_minus_administrative{end}"] for end in ("", "_lower", "_upper"))
        columns = [
            Column("model", table["model"], "model"),
            Column("verdict", table["verdict"]),
            *(Column(heading, ["–" if missing(one) else f"{100 * one:.1f} %" for one in table[name]], "number")
              for name, heading in (("fall_after", "right after C*"), ("fall_elsewhere", "elsewhere"))),
            *with_interval("times as steep", table["ratio"], table["ratio_lower"], table["ratio_upper"], self.level),
            *with_interval("IPCW − administrative", favour, lower, upper, self.level),
        ]  # fmt: skip
        width = f"{short(around['width'])}{self.in_unit}"
        predicted = self.predicted
        caption = f"Share of the predicted {predicted} lost over {width} right after C*, and elsewhere"
        yield Display("falls", caption, columns, table["model"])

    charts = {"around-censoring": _around}
    shown = {"falls": _falls}

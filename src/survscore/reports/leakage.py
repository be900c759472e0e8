"""Signs that predictions encode C* and that IPCW is misled: in words, tables, and means around C*."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.analysis.diagnose import diagnose
from survscore.reports.comparing import Row, as_table, extend, rows_of
from survscore.reports.section import MODEL, Column, PageTable, Panel, Section, Table, runs
from survscore.results.rounding import MISSING, missing, short
from survscore.weighting import IPCW

if TYPE_CHECKING:
    from survscore.reports.study import Study


def around_censoring(study: Study) -> dict[str, Any]:
    """Return the signs that IPCW is misled and that predictions encode C*: in words, tables, and means around C*."""
    y, options = study.of_any_kind, study.options
    nothing: dict[str, Any] = {name: {} for name in ("curves", "falls", "weights", "caps")}
    nothing |= {"ipcw": None, "sentences": [], "width": None, "n": 0}
    if y.censoring_time is None:
        return {"missing": "that needs C* of each individual", **nothing}
    questioned = next((weighting for weighting in study.weightings if isinstance(weighting, IPCW)), "ipcw")
    try:
        diagnosis = diagnose(
            y,
            study.of_any_event,
            weighting=questioned,
            times=study.comparison.times,
            groups=options.groups,
            level=options.level,
        )
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


class DiagnosisSection(Section):
    """Whether predictions encode C*, and IPCW is misled."""

    files = {
        "around-censoring": "around_censoring curves",
        "falls": "around_censoring falls",
        "ipcw-weights": "around_censoring weights",
        "ipcw-caps": "around_censoring caps",
    }
    doing = "looking for signs of leaks"

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        around = around_censoring(study)
        leaks = [
            {"model": row["model"], "verdict": row["verdict"], "sentence": leak_sentence(row)}
            for row in rows_of(around["falls"])
        ]
        return {"around_censoring": around, "leaks": leaks}

    def _around(self) -> list[Panel]:
        around = self.summary["around_censoring"]
        if around["missing"]:
            return []
        title, predicted = f"Mean predicted {self.predicted} around each individual's own C*", self.predicted
        labels, marks = (f"time since C*{self.unit}", f"mean predicted {predicted}"), [{"x": 0, "label": "C*"}]
        panel = self.panel(title, "offset", "survival", labels, main=True, ydomain=[0, 1], marks=marks)
        lines = [run for run in runs(around["curves"], ("model",)) if run[0][0] in self.summary["models"]]
        panel["series"] = [self.series(model, start, stop) for (model,), start, stop in lines]
        return [panel]

    def _falls(self) -> Iterable[PageTable]:
        """Yield how far predictions fall right after C*, and elsewhere."""
        around = self.summary["around_censoring"]
        table = around["falls"]
        if not table:
            return
        falls = {
            heading: [MISSING if missing(share) else f"{100 * share:.1f} %" for share in table[name]]
            for name, heading in (("fall_after", "right after C*"), ("fall_elsewhere", "elsewhere"))
        }
        favour = "ipcw_minus_administrative"
        columns = [
            Column("model", table["model"], MODEL),
            Column("verdict", table["verdict"]),
            *(Column(heading, texts, "r") for heading, texts in falls.items()),
            *self.estimates("times as steep", table, "ratio", "ratio_"),
            *self.estimates("IPCW − administrative", table, favour, f"{favour}_"),
        ]
        width = f"{short(around['width'])}{self.in_unit}"
        caption = f"Share of the predicted {self.predicted} lost over {width} right after C*, and elsewhere"
        yield self.page_table("falls", caption, columns)

    charts = {"around-censoring": _around}
    shown = {"falls": _falls}


def leak_sentence(row: Row) -> str:
    """Return how far a model falls right after C*, and what that says, of a row of `Diagnosis.models`."""
    name, verdict = row["model"], row["verdict"]
    if verdict == "too few" or missing(row["fall_after"]) or missing(row["fall_elsewhere"]):
        return f"Whether {name} encodes the censoring time cannot be assessed: there are too few data."
    after, elsewhere = (_percent(row[key]) for key in ("fall_after", "fall_elsewhere"))
    falls = f"{name} falls by {after} right after C*"
    match verdict:
        case "encodes C*":
            return f"{falls}, against {elsewhere} elsewhere: it encodes the censoring time."
        case "unclear":
            return f"{falls}, against {elsewhere} elsewhere: whether it encodes the censoring time is unclear."
        case _:
            return f"{falls}, against {elsewhere} elsewhere: no sign that it encodes the censoring time."


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"

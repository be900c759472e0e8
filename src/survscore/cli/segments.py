"""Results by segment in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from survscore._validation import plural
from survscore._validation import shown as printable
from survscore.cli.answers import View, paragraphs, plain_number, width
from survscore.metrics import cause_label, metric_label
from survscore.results.printing import verdict_of
from survscore.results.rounding import Number, p_text
from survscore.results.tables import Line, Part, Tables, as_text

if TYPE_CHECKING:
    import pandas as pd

    from survscore.io import Study
    from survscore.reports.segments import SegmentFindings
    from survscore.results.comparison import Comparison
    from survscore.weighting import Weighting

MOST_PRINTED = 50


def scored_segments(study: Study, weightings: list[Weighting], arguments: dict[str, Any]) -> SegmentFindings:
    """Return the scores of all individuals and of every segment, by the arguments of a command."""
    from survscore.analysis.compare import compare as compare_models
    from survscore.reports.segments import SegmentFindings

    segmented = compare_models(
        study.outcomes, study.models, metric=arguments["metrics"], weighting=weightings, times=arguments["times"],
        null=False, groups=study.groups, level=arguments["level"], ranges=[arguments["time_range"]], by=study.by,
    )  # fmt: skip
    return SegmentFindings.of(segmented, arguments["time_range"])


def segments_text(findings: SegmentFindings, view: View, *, weighting: str | None = None) -> str:
    """Return the differences to the reference by segment, and what they say in words.

    By the first metric and one weighting, unless `view` is of all.
    """
    from survscore.reports.comparing import records

    total = findings.segmented.total
    metrics = total.metrics if view.full or view.metrics_asked else total.metrics[:1]
    weightings = total.weightings if view.full or weighting is None else [weighting]
    parts: list[Part] = []
    for metric in metrics:
        for name in weightings:
            rows = findings.judged[(findings.judged["metric"] == metric) & (findings.judged["weighting"] == name)]
            told = [printable(sentence, most=1000) for sentence in findings.sentences(metric, name)]
            for model, part in rows.groupby("model", sort=False):
                whose = f"{printable(model)} to {printable(total.reference)}"
                lines = [
                    Line(_named(findings, row), (_number(row, "difference", "+"),), _judged(row, total))
                    for row in records(_some(part))
                ]
                header = (*_header(findings), "difference", "p", "p adjusted", "verdict")
                sentence = told.pop(0) if told else ""
                notes = [*_left_out(part), *([sentence] if sentence else [])]
                title = f"{_title(findings, metric, view)}; {whose}; {name}"
                parts.append(Part.of(title, header, lines, notes, _align(findings) + "rrrl", len(findings.by)))
    return f"{as_text(Tables('', parts), width())}\n\n{paragraphs(findings.notes())}"


def segment_scores_text(findings: SegmentFindings, view: View) -> str:
    """Return the scores by segment, one column for each model."""
    total = findings.segmented.total
    parts = []
    for (metric, weighting), rows in findings.scored.groupby(["metric", "weighting"], sort=False):
        by_model = [part for _, part in rows.groupby("model", sort=False)]
        kept = [_some(part.reset_index(drop=True)) for part in by_model]
        lines = [
            Line(_named(findings, cells[0]), tuple(_number(cell, "score") for cell in cells))
            for cells in zip(*(part.to_dict("records") for part in kept), strict=True)
        ]
        header = (*_header(findings), *map(printable, total.models))
        title = f"{_title(findings, str(metric), view)}; {weighting}"
        align = _align(findings) + "r" * len(total.models)
        parts.append(Part.of(title, header, lines, _left_out(by_model[0]), align, len(findings.by)))
    return as_text(Tables("", parts), width())


def _title(findings: SegmentFindings, metric: str, view: View) -> str:
    total = findings.segmented.total
    (scored, *_) = [one for one in total.scored if one.metric == metric]
    over = f"at {view.labelled(float(total.times[total.usable_place(metric)]))}"
    if findings.means is not None:
        first, last = findings.means.over[metric][1]
        over = f"mean over {plain_number(first)} to {view.labelled(last)}"
    label = cause_label(metric_label(metric), scored.cause)
    names = ", ".join(printable(name) for name in findings.by)
    return f"{label[0].upper()}{label[1:]} ({scored.direction} is better) by {names}, {over}"


def _header(findings: SegmentFindings) -> tuple[str, ...]:
    return (*map(printable, findings.by), "individuals", "events")


def _align(findings: SegmentFindings) -> str:
    return "l" * len(findings.by) + "rr"


def _named(findings: SegmentFindings, row: dict[str, Any]) -> tuple[str, ...]:
    return (*(printable(row[name]) or "''" for name in findings.by), f"{row['n']:,}", f"{row['n_events']:,}")


def _number(row: dict[str, Any], name: str, sign: str = "") -> Number:
    return Number(row[name], row["lower"], row["upper"], se=row["se"], reliable=bool(row["reliable"]), sign=sign)


def _judged(row: Mapping[Any, Any], total: Comparison) -> tuple[str, ...]:
    return p_text(row["p_value"]), p_text(row["p_adjusted"]), verdict_of(row, total.leak_warnings.keys())


def _some(part: pd.DataFrame) -> pd.DataFrame:
    """Return the total and the largest segments, in their order."""
    if len(part) <= MOST_PRINTED + 1:
        return part
    largest = part.iloc[1:].sort_values("n", ascending=False, kind="stable").index[:MOST_PRINTED]
    return part.loc[[part.index[0], *sorted(largest)]]


def _left_out(part: Sequence[Any] | pd.DataFrame) -> list[str]:
    left_out = len(part) - 1 - MOST_PRINTED
    if left_out <= 0:
        return []
    return [f"{plural(left_out, 'smaller segment')} not shown: --csv, --json and --parquet write all"]

"""Results by segment as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from survscore._validation import plural
from survscore._validation import shown as printable
from survscore.cli.tables import contrast_cells, heading, new_table, plain_text, with_limits

if TYPE_CHECKING:
    import pandas as pd

    from survscore.io import Study
    from survscore.reports.segments import SegmentFindings
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


def segment_tables(findings: SegmentFindings) -> list[Any]:
    """Return the differences to the reference by segment, and what they say in words, ready to print."""
    from rich.text import Text

    from survscore.reports.comparing import by_name, records

    total = findings.segmented.total
    directions = {one.metric: one.direction for one in total.scored}
    printed: list[Any] = []
    for (metric,), of_metric in by_name(findings.judged, "metric"):
        printed.append(_heading(findings, metric, f"{directions[metric]} is better"))
        for (weighting,), of_weighting in by_name(of_metric, "weighting"):
            for (model,), part in by_name(of_weighting, "model"):
                table = _table(findings, f"{weighting}: {model} to {total.reference}")
                for name in ("difference", "p", "p adjusted"):
                    table.add_column(name, justify="right", no_wrap=True)
                table.add_column("verdict", no_wrap=True)
                for row in records(_some(part)):
                    table.add_row(*_named(findings, row), *contrast_cells(row, adjusted=True, encodes=total.encodes))
                printed += [table, *_left_out(part)]
            told = [printable(sentence, most=1000) for sentence in findings.sentences(metric, weighting)]
            printed.append(Text("\n".join(told) + "\n"))
    return [*printed, Text("\n".join(findings.notes()) + "\n")]


def segment_score_tables(findings: SegmentFindings) -> list[Any]:
    """Return the scores by segment, one column for each model, ready to print."""
    from survscore.reports.comparing import by_name, records

    total = findings.segmented.total
    directions = {one.metric: one.direction for one in total.scored}
    printed: list[Any] = []
    scored = findings.scored
    for (metric,), of_metric in by_name(scored, "metric"):
        printed.append(_heading(findings, metric, f"{directions[metric]} is better"))
        for (weighting,), part in by_name(of_metric, "weighting"):
            table = _table(findings, weighting)
            for model in total.models:
                table.add_column(plain_text(model), justify="right", overflow="fold")
            by_model = {model: records(rows) for (model,), rows in by_name(part, "model")}
            kept = set(_some(part[part["model"] == total.models[0]].reset_index(drop=True)).index)
            for k, row in enumerate(by_model[total.models[0]]):
                if k in kept:
                    cells = [by_model[model][k] for model in total.models]
                    shown = [with_limits(cell["score"], cell["lower"], cell["upper"]) for cell in cells]
                    table.add_row(*_named(findings, row), *shown)
            printed += [table, *_left_out(part[part["model"] == total.models[0]])]
    return printed


def _heading(findings: SegmentFindings, metric: str, better: str) -> Any:
    total = findings.segmented.total
    over = f"at {total.times[total.usable_place(metric)]:g}"
    if findings.means is not None:
        first, last = findings.means.over[metric][1]
        over = f"mean over {first:g} to {last:g}"
    names = ", ".join(printable(name) for name in findings.by)
    how = f"by {names}, {over}, {100 * total.level:g} % intervals, {better}"
    return heading(metric, total.n, total.n_dropped_out, how, total.scored[0].cause)


def _table(findings: SegmentFindings, title: str) -> Any:
    table = new_table(title)
    for name in findings.by:
        table.add_column(plain_text(name), overflow="fold")
    for name in ("individuals", "events"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _named(findings: SegmentFindings, row: dict[str, Any]) -> list[Any]:
    labels = [plain_text(str(row[name]) or "''") for name in findings.by]
    return [*labels, f"{row['n']:,}", f"{row['n_events']:,}"]


def _some(part: pd.DataFrame) -> pd.DataFrame:
    """Return the total and the largest segments, in their order."""
    if len(part) <= MOST_PRINTED + 1:
        return part
    largest = part.iloc[1:].sort_values("n", ascending=False, kind="stable").index[:MOST_PRINTED]
    return part.loc[[part.index[0], *sorted(largest)]]


def _left_out(part: pd.DataFrame) -> list[Any]:
    from rich.text import Text

    left_out = len(part) - 1 - MOST_PRINTED
    if left_out <= 0:
        return []
    return [Text(f"{plural(left_out, 'smaller segment')} not shown: --csv, --json and --parquet write all\n")]

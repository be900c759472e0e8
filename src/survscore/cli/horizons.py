"""Scores and differences in the terminal: at every time where there are few, and as means over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import shown as printable
from survscore.cli.tables import (
    bounds_cell,
    contrast_cells,
    heading,
    missing,
    new_table,
    plain_number,
    plain_text,
    score_cell,
    with_limits,
)

if TYPE_CHECKING:
    import pandas as pd

    from survscore.analysis.dropout_test import DropoutTest
    from survscore.reports.comparing import Findings
    from survscore.results.comparison import Comparison
    from survscore.results.long_tables import MeanOver

MOST_TIMES = 8  # so many fit on a screen; of more, means are printed
SHOWN = 4  # of more, beside means
MEAN = "mean"
PARTS = ("share_observed", "observed", "projected")
Row = dict[str, Any]
Cell = tuple[str, str]  # weighting, model


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of a table that are about one time, or about the mean over time: a metric's, by weighting and model."""

    label: str
    scores: Mapping[Cell, Row]
    contrasts: Mapping[Cell, Row]


def score_tables(
    means: pd.DataFrame, by_time: pd.DataFrame, settings: dict[str, Any], unit: str | None = None
) -> list[Any]:
    """Return each model's scores with their intervals, by time and as a mean, ready to print."""
    from rich.text import Text

    from survscore.metrics import as_metric
    from survscore.reports.comparing import by_name

    times = [float(time) for time in by_time["time"].unique()]
    every = len(times) <= MOST_TIMES or means.empty
    printed: list[Any] = []
    for (metric,), of_metric in by_name(by_time, "metric"):
        of_mean = means[means["metric"] == metric] if len(means) else means
        better = f"{100 * settings['level']:g} % intervals, {as_metric(metric).direction} is better"
        over = _over(of_mean, unit) or f"at {_with_unit(times[0], unit)}, " * (len(times) == 1)
        printed.append(
            heading(metric, settings["individuals"], settings["dropped_out"], over + better, settings.get("cause", ""))
        )
        blocks = blocks_of(of_metric if every else None, None, of_mean, None)
        if not every:
            blocks = blocks_of(of_metric[of_metric["time"].isin(some_of(times))], None, of_mean, None)
        for (weighting,), part in by_name(of_metric, "weighting"):
            bounded = "bound_lower" in part and bool(part["bound_lower"].notna().any())
            models = list(dict.fromkeys(part["model"]))
            table = _with_time(weighting, blocks, unit)
            table.add_column("model", overflow="fold")
            table.add_column("score", justify="right", no_wrap=True)
            if bounded:
                table.add_column("bounds", justify="right", no_wrap=True)
            split = "observed" in part and bool(part["observed"].notna().any())
            for name in ("observed (C* >= t)", "projected (C* < t)") if split else ():
                table.add_column(name, justify="right")
            for block in blocks:
                for k, model in enumerate(models):
                    row = block.scores.get((weighting, model))
                    if row is None:
                        continue
                    cells = [*_label(block, k, blocks), model, with_limits(row["score"], row["lower"], row["upper"])]
                    cells += [bounds_cell("{:.4f}", row)] if bounded else []
                    cells += part_cells(row) if split else []
                    table.add_row(*(plain_text(cell) for cell in cells))
            printed.append(table)
    if "bound_lower" in by_time:
        n, n_dropped_out = settings["individuals"], settings["dropped_out"]
        printed.append(Text(f"Whatever happened to the {n_dropped_out:,} of {n:,} who dropped out, scores lie within "
                            "their bounds.\n"))  # fmt: skip
    return printed + ([] if every else [about_times(len(times), "scores")])


def part_cells(row: Row) -> list[str]:
    """Return the parts of a projected score, each with its proportion of the individuals."""
    share, *scores = (row[name] for name in PARTS)
    return [
        "-" if missing(score) else f"{score:.4f} ({100 * proportion:.0f} %)"
        for score, proportion in zip(scores, (share, 1 - share), strict=True)
    ]


def comparison_tables(findings: Findings, *, unit: str | None = None, advice: Sequence[str] = ()) -> list[Any]:
    """Return scores, differences with p-values by time and of means, and what weightings disagree about.

    Parameters
    ----------
    findings : Findings
        What was found.
    unit : str, optional
        What times are counted in: days.
    advice : sequence of str
        What to say after all tables: which weighting to use, and which models encode C*.
    """
    from rich.text import Text

    from survscore.reports.comparing import records
    from survscore.reports.verdicts import has_bounds

    compared, judged = findings.comparison, findings.judged
    every = compared.times.size <= MOST_TIMES
    sentences = findings.disagreements()
    by_time = (compared.scores, compared.contrasts) if every else (None, None)
    of_means = (None, None) if findings.means is None else (findings.means.scores, findings.means.contrasts)
    printed: list[Any] = []
    for metric in compared.metrics:
        concluded = findings.recommendations.get(metric)
        if concluded is not None:
            told = (printable(sentence, most=4000) for sentence in concluded.sentences)
            printed.append(Text.assemble(("Recommendation: ", "bold"), "\n".join(told), "\n"))
        tables = [None if table is None else table[table["metric"] == metric] for table in (*by_time, *of_means)]
        mean = None if findings.means is None else findings.means.over[metric]
        printed += difference_tables(compared, metric, blocks_of(*tables), unit, _over(tables[2], unit), mean)
        about_lost = [
            printable(f"{row['model']}, {row['weighting']}: {findings.bounds_sentence(row)}", most=1000)
            for row in records(judged[judged["metric"] == metric])
            if has_bounds(row)
        ]
        printed += [Text("\n".join(about_lost) + "\n")] if about_lost else []
        for sentence in sentences["contradictions"][metric]:
            careful = "Weightings contradict each other: " + printable(sentence, most=1000)
            printed.append(Text.assemble(("Careful. ", "bold yellow"), careful, "\n"))
        printed += [Text(printable(sentence, most=1000) + "\n") for sentence in sentences["unclear"][metric]]
    printed += [] if every else [about_times(compared.times.size, "differences")]
    return printed + about_dropout(compared.dropout_test, compared.level) + advised(advice)


def about_dropout(test: DropoutTest | None, level: float) -> list[Any]:
    """Return whether drop-out depends on predicted risk or on C*, in sentences."""
    return advised([f"{one[0].upper()}{one[1:]}." for one in (() if test is None else test.sentences(level))])


def advised(sentences: Sequence[str]) -> list[Any]:
    """Return sentences that stand after all tables."""
    from rich.text import Text

    return [Text(printable(sentence, most=4000) + "\n") for sentence in sentences]


def difference_tables(
    compared: Comparison,
    metric: str,
    blocks: Sequence[Block],
    unit: str | None,
    over: str = "",
    mean: MeanOver | None = None,
) -> list[Any]:
    """Return a heading, and for each weighting a table of scores and differences to the reference."""
    (scored, *_) = [one for one in compared.scored if one.metric == metric]
    if not over and compared.times.size == 1:
        over = f"at {_with_unit(float(compared.times[0]), unit)}, "
    relative = scored.has_ratios and scored.direction in ("lower", "higher")  # nothing of what is to be close to one
    how = f"{over}{100 * compared.level:g} % intervals, {scored.direction} is better"
    printed, encodes = [heading(metric, compared.n, compared.n_dropped_out, how, scored.cause)], compared.encodes
    for weighting in compared.weightings:
        rows = [row for block in blocks for (name, _), row in block.scores.items() if name == weighting]
        bounded = any(not missing(row.get("bound_lower")) for row in rows)
        table = _with_time(weighting, blocks, unit)
        table.add_column("model", overflow="fold")
        table.add_column("score", justify="right", no_wrap=True)
        table.add_column(
            plain_text(f"difference to {compared.reference}"), justify="right", overflow="fold", min_width=15
        )
        if relative:
            table.add_column("relative", justify="right", no_wrap=True)
        if bounded:
            table.add_column("bounds", justify="right", no_wrap=True)
        table.add_column("p", justify="right", no_wrap=True)
        table.add_column("verdict", overflow="fold", min_width=10)
        for block in blocks:
            reference = block.scores[weighting, compared.reference]["score"]
            for k, model in enumerate(compared.models):
                row, contrast = block.scores[weighting, model], block.contrasts.get((weighting, model))
                if contrast is None:
                    cells: list[Any] = [""] * (2 + relative + bounded) + ["reference"]
                else:
                    with_interval, *rest = contrast_cells(contrast, bounded=bounded, encodes=encodes)
                    ratio = [relative_cell(contrast["difference"], reference)] if relative else []
                    cells = [with_interval, *ratio, *rest]
                named = [plain_text(cell) for cell in (*_label(block, k, blocks), model, score_cell(row["score"]))]
                table.add_row(*named, *cells)
        printed += [table, *_parts_of(compared, metric, weighting, mean)]
    return printed


def _parts_of(compared: Comparison, metric: str, weighting: str, mean: MeanOver | None) -> list[Any]:
    """Return the parts of projected scores in words: of the mean over time, or at the one time."""
    from rich.text import Text

    from survscore.results.parts import part_notes

    place = compared.usable_place(metric)
    when = f"at {compared.times[place]:g}" if mean is None else MEAN
    weights = np.eye(compared.times.size)[place] if mean is None else mean[0]
    scored = next(one for one in compared.scored if (one.metric, one.weighting) == (metric, weighting))
    lines = part_notes(scored, compared.models, when, weights)
    return [Text("\n".join(printable(line, most=1000) for line in lines) + "\n")] if lines else []


def blocks_of(
    scores: pd.DataFrame | None,
    contrasts: pd.DataFrame | None,
    mean_scores: pd.DataFrame | None = None,
    mean_contrasts: pd.DataFrame | None = None,
) -> list[Block]:
    """Return the blocks of a table: one for each of the times, one for the means, where there are such tables."""
    from survscore.reports.comparing import records

    def cells(table: pd.DataFrame | None) -> dict[Cell, Row]:
        rows = [] if table is None else records(table)
        return {(row["weighting"], row["model"]): row for row in rows}

    def at(table: pd.DataFrame | None, time: float) -> pd.DataFrame | None:
        return None if table is None else table[table["time"] == time]

    times = [] if scores is None else scores["time"].unique().tolist()
    blocks = [Block(plain_number(time), cells(at(scores, time)), cells(at(contrasts, time))) for time in times]
    if mean_scores is not None and len(mean_scores):
        blocks.append(Block(MEAN, cells(mean_scores), cells(mean_contrasts)))
    return blocks


def relative_cell(difference: float, reference: float) -> str:
    """Return a difference in percent of the reference's score, where that is positive."""
    if missing(difference) or missing(reference) or reference <= 0:
        return "-"
    percent = 100 * difference / reference
    return f"{percent:+.1f} %" if abs(percent) < 1000 else f"{percent:+.0f} %"


def _with_time(title: str, blocks: Sequence[Block], unit: str | None) -> Any:
    """Return an empty table, with a column of times where there are several, or times and means."""
    table = new_table(title)
    if len(blocks) > 1:
        table.add_column("time" if unit is None else f"time ({unit})", justify="right", no_wrap=True)
    return table


def _label(block: Block, row: int, blocks: Sequence[Block]) -> list[str]:
    """Return the cell of the column of times, if there is one: in the first row of the block."""
    return [] if len(blocks) == 1 else [block.label if row == 0 else ""]


def _over(means: pd.DataFrame | None, unit: str | None) -> str:
    """Say over which time means are; nothing, where there are none."""
    if means is None or means.empty:
        return ""
    first = means.iloc[0]
    return f"mean over {plain_number(first['from'])} to {_with_unit(float(first['to']), unit)}, "


def _with_unit(time: float, unit: str | None) -> str:
    return plain_number(time) if unit is None else f"{plain_number(time)} {unit}"


def about_times(count: int, what: str) -> Any:
    """Say that not all times are printed, and how to see them."""
    from rich.text import Text

    return Text(f"There are {what} at {count} times: --csv FILE writes all, -t 90,180,365 prints those at some.\n")


def some_of(times: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    """Return some of many times, from early to the last."""
    return [float(times[round(k * (len(times) - 1) / SHOWN)]) for k in range(1, SHOWN + 1)]

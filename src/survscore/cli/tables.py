"""Results as tables in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from survscore._validation import shown as printable

if TYPE_CHECKING:
    import pandas as pd

    from survscore.checks import Finding
    from survscore.reports.comparing import Findings

WIDTH_ELSEWHERE = 160


def print_demo(summary: Any, n: int) -> None:
    """Print which method each weighting prefers, and where that is wrong."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from survscore.inference import normal_quantile

    hazard, bce, z = "Logistic-Hazard", "BCE", normal_quantile(0.95)
    truth = dict(zip(*(summary.loc[summary.weighting == "uncensored", c] for c in ("loss", "prefers")), strict=True))
    console = Console()
    fooled = []
    for loss, title in (("brier", "Integrated Brier score"), ("log", "Integrated logarithmic loss")):
        heading = f"{title} of {n} simulated individuals, with 95 % intervals (lower is better)"
        table = Table(title=heading, title_justify="left", box=SIMPLE, pad_edge=False)
        table.add_column("weighting")
        for column in (hazard, bce, "difference"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("prefers")
        for row in summary[summary.loss == loss].to_dict("records"):
            verdict = row["prefers"] or "neither"
            if truth[loss] and verdict not in (truth[loss], "neither"):
                verdict += " [bold red]wrong[/]"
                fooled.append(row["weighting"])
            table.add_row(
                escape(row["weighting"]),
                *(f"{row[model]:.4f} ±{z * row[f'{model} se']:.4f}" for model in (hazard, bce)),
                f"{row['difference']:+.4f} ±{(row['upper'] - row['lower']) / 2:.4f}",
                verdict,
            )
        console.print(table)
    console.print(
        f"The uncensored score, which real data do not allow, prefers {truth['brier'] or 'neither'}. "
        + (f"Fooled: {escape('; '.join(dict.fromkeys(fooled)))}." if fooled else "No score was fooled.")
    )


def print_claims(name: str, claims: Any, replicates: int) -> None:
    """Print the claims about a figure, and whether they hold."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    losses = [loss for loss in dict.fromkeys(claims.loss) if loss] or [""]
    how = "holds" if replicates == 1 else f"held in, of {replicates} replicates"
    table = Table(title=f"What the paper says about {name}: {how}, margin and 95 % interval", title_justify="left")
    table.add_column("claim")
    for loss in losses:
        table.add_column({"brier": "Brier score", "log": "log loss"}.get(loss, ""))
    for claim, rows in claims.groupby("claim", sort=False):
        by_loss = {row["loss"]: _answer(row) for row in rows.to_dict("records")}
        table.add_row(escape(claim), *([by_loss[""]] if "" in by_loss else [by_loss[loss] for loss in losses]))
    Console().print(table)


def _answer(row: Any) -> str:
    from rich.markup import escape

    if not row["replicates"]:
        return f"[dim]not checked: needs {row['needs']}[/]"
    held = round(row["share"] * row["replicates"])
    style = "green" if row["holds"] else "yellow" if held else "bold red"
    answer = ("yes" if held else "no") if row["replicates"] == 1 else str(held)
    interval = f" [{row['lower']:+.3f}, {row['upper']:+.3f}]" if row["lower"] == row["lower"] else ""
    margin = escape(f"{row['margin']:+.3f}{interval}")
    return f"[{style}]{answer}[/] {margin}"


def score_tables(means: pd.DataFrame, by_time: pd.DataFrame, settings: dict[str, Any]) -> list[Any]:
    """Return each model's mean score with its interval, and its score at some of the times, ready to print."""
    from survscore.metrics import as_metric
    from survscore.reports.comparing import by_name, records

    anybody_lost = "bound_lower" in means
    mean_of = {(row["metric"], row["weighting"], row["model"]): row for row in records(means)}
    room = (console().width - (76 if anybody_lost else 56)) // 9 if mean_of else 8  # for what stands before the times
    times = _some(by_time["time"].unique(), max(0, min(4, room)) if mean_of else max(1, room))
    printed: list[Any] = []
    for (metric,), of_metric in by_name(by_time, "metric"):
        better = f"{as_metric(metric).direction} is better"
        printed.append(heading(metric, settings["individuals"], settings["dropped_out"], better))
        for (weighting,), part in by_name(of_metric, "weighting"):
            bounded = anybody_lost and "bound_lower" in part and bool(part["bound_lower"].notna().any())
            table = new_table(weighting)
            table.add_column("model", overflow="fold")
            if mean_of:
                table.add_column(f"mean ({100 * settings['level']:g} %)", justify="right", no_wrap=True)
                if bounded:
                    table.add_column("bounds", justify="right", no_wrap=True)
                table.add_column("over time", no_wrap=True)
            for time in times:
                table.add_column(f"at {_plain(time)}", justify="right", no_wrap=True)
            for (model,), rows in by_name(part, "model"):
                cells = [model]
                mean = mean_of.get((metric, weighting, model))
                if mean is not None:
                    cells.append(with_limits(mean["score"], mean["lower"], mean["upper"]))
                    cells += [_bounds("{:.4f}", mean)] if bounded else []
                    cells.append(f"{_plain(mean['from'])} to {_plain(mean['to'])}")
                scores = rows.set_index("time")["score"]
                table.add_row(
                    *(plain_text(cell) for cell in cells), *(plain_text(_score(scores[time])) for time in times)
                )
            printed.append(table)
    return printed + ([_about_bounds(settings["dropped_out"], settings["individuals"])] if anybody_lost else [])


def comparison_tables(findings: Findings) -> list[Any]:
    """Return scores, differences with p-values, and what weightings disagree about, ready to print."""
    from rich.text import Text

    from survscore.reports.comparing import by_name, records
    from survscore.reports.verdicts import has_bounds

    compared, judged = findings.comparison, findings.judged
    contrast_of = {(row["metric"], row["weighting"], row["model"]): row for row in records(judged)}
    scores = compared.scores if findings.means is None else findings.mean_scores
    sentences = findings.disagreements()
    printed: list[Any] = []
    for (metric,), of_metric in by_name(scores, "metric"):
        ends = findings.time_ranges.get(metric)
        over = "at one time" if ends is None else f"mean over {_plain(ends[0])} to {_plain(ends[1])}"
        how = f"{over}, {100 * compared.level:g} % intervals, {findings.directions[metric]} is better"
        printed.append(heading(metric, compared.n, compared.n_dropped_out, how))
        for (weighting,), part in by_name(of_metric, "weighting"):
            bounded = "bound_lower" in part and bool(part["bound_lower"].notna().any())
            table = new_table(weighting)
            table.add_column("model", overflow="fold")
            table.add_column("score", justify="right", no_wrap=True)
            table.add_column(
                plain_text(f"difference to {compared.reference}"), justify="right", overflow="fold", min_width=7
            )
            if bounded:
                table.add_column("bounds", justify="right", no_wrap=True)
            table.add_column("p", justify="right", no_wrap=True)
            table.add_column("verdict", no_wrap=True)
            for row in records(part):
                contrast = contrast_of.get((metric, weighting, row["model"]))
                if contrast is None:
                    cells = ["", *([""] if bounded else []), "", "reference"]
                else:
                    cells = contrast_cells(contrast, bounded=bounded)
                table.add_row(plain_text(row["model"]), plain_text(_score(row["score"])), *cells)
            printed.append(table)
        about_lost = [
            printable(f"{row['model']}, {row['weighting']}: {findings.bounds_sentence(row)}", most=1000)
            for row in records(judged[judged["metric"] == metric])
            if has_bounds(row)
        ]
        printed += [Text("\n".join(about_lost) + "\n")] if about_lost else []
        for sentence in sentences["contradictions"][metric]:
            careful = "Weightings contradict each other: " + printable(sentence, most=1000)
            printed.append(Text.assemble(("Careful. ", "bold yellow"), careful, "\n"))
        printed += [Text(printable(sentence, most=1000) + "\n") for sentence in sentences["unsure"][metric]]
    return printed


def findings_table(findings: Sequence[Finding]) -> Any:
    """Return what came of checks, ready to print."""
    from rich.text import Text

    from survscore.checks.output import required, verdict, with_interval

    colours = {"failed": "bold red", "undefined": "bold red", "warning": "yellow", "skipped": "dim", "passed": "green"}
    segmented = any(one.segment for one in findings)
    table = new_table("")
    for name in ("check", *(["segment"] if segmented else []), "of"):
        table.add_column(name, overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("must be", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for one in findings:
        said = Text(verdict(one), colours[verdict(one)])
        if one.reason:
            said.append(f", {printable(one.reason, most=200)}", "default")
        cells = [one.check, *([one.whose] if segmented else []), one.what, with_interval(one), required(one)]
        table.add_row(*(plain_text(cell) for cell in cells), said)
    return table


def heading(metric: str, n: int, n_dropped_out: int | None, how: str) -> Any:
    """Return the line above tables of a metric."""
    from rich.text import Text

    from survscore.metrics import metric_label
    from survscore.reports.verdicts import people, share

    dropped_out = f", {share(n_dropped_out, n)} dropped out" if n_dropped_out else ""
    return Text.assemble((_capital(metric_label(metric)), "bold"), f" of {people(n)}{dropped_out}, {how}")


def _about_bounds(n_dropped_out: int, n: int) -> Any:
    from rich.text import Text

    from survscore.reports.verdicts import share

    return Text(f"Whatever happened to the {share(n_dropped_out, n)} who dropped out, means lie within their bounds.\n")


def console() -> Any:
    """Return where results are printed: a terminal, or something else that need not be narrow."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)


def contrast_cells(row: dict[str, Any], *, bounded: bool = False, adjusted: bool = False) -> list[Any]:
    """Return the cells of a difference: its interval, where asked for its bounds, p-values, and the verdict."""
    from rich.text import Text

    difference = _with_half("{:+.4f}", row["difference"], row["lower"], row["upper"])
    return [
        "-" if _missing(row["difference"]) else difference,
        *([_bounds("{:+.4f}", row)] if bounded else []),
        _p(row["p_value"]),
        *([_p(row["p_adjusted"])] if adjusted else []),
        Text(row["verdict"], {"better": "green", "worse": "red"}.get(row["verdict"], "dim")),
    ]


def _p(value: float) -> str:
    return "-" if _missing(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def _bounds(form: str, row: dict[str, Any]) -> str:
    """Return between which values a number lies whatever happened to those who dropped out; nothing if not known."""
    from survscore.reports.verdicts import has_bounds

    if not has_bounds(row):
        return ""
    return f"{form.format(row['bound_lower'])} to {form.format(row['bound_upper'])}"


def new_table(title: str) -> Any:
    """Return an empty table."""
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=plain_text(title), title_justify="left", box=SIMPLE, pad_edge=False)


def plain_text(text: str) -> Any:
    """Return text as it is: no markup, no control characters."""
    from rich.text import Text

    return Text(printable(text, most=200))


def _some(times: Any, most: int) -> list[float]:
    """Return some of the times, from early to the last."""
    if len(times) <= most:
        return [float(time) for time in times]
    return [float(times[round(k * (len(times) - 1) / most)]) for k in range(1, most + 1)]


def _with_half(form: str, value: float, lower: float, upper: float) -> str:
    """Return a value with half the length of its interval, if it has one."""
    return form.format(value) + ("" if _missing(lower) else f" ±{(upper - lower) / 2:.4f}")


def with_limits(value: float, lower: float, upper: float) -> str:
    """Return a value with its interval, which need not lie evenly around it; a dash where there is none."""
    return _score(value) + ("" if _missing(lower) else f" ({lower:.4f} to {upper:.4f})")


def _missing(value: float | None) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN


def _score(value: float) -> str:
    return "-" if _missing(value) else f"{value:.4f}"


def _plain(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

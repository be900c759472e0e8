"""Results as tables in the terminal."""

from __future__ import annotations

import os
import sys
from typing import Any

from survscore._validation import shown as printable

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


def score_tables(means: Any, by_time: Any, n: int, level: float) -> list[Any]:
    """Return each model's mean score with its interval, and its score at some of the times, ready to print."""
    from rich.text import Text

    from survscore.losses import loss_label
    from survscore.reports.words import people

    wholes = {(row["loss"], row["weighting"], row["model"]): row for row in means.to_dict("records")}
    room = (console().width - 56) // 9 if wholes else 8  # for what stands before the times
    times = _some(by_time["time"].unique(), max(0, min(4, room)) if wholes else max(1, room))
    shown: list[Any] = []
    for loss, of_loss in by_time.groupby("loss", sort=False):
        heading = f" of {people(n)}, lower is better"
        shown.append(Text.assemble((_capital(loss_label(loss)), "bold"), heading))
        for weighting, part in of_loss.groupby("weighting", sort=False):
            table = _table(str(weighting))
            table.add_column("model", overflow="fold")
            if wholes:
                table.add_column(f"mean ({100 * level:g} %)", justify="right", no_wrap=True)
                table.add_column("over time", no_wrap=True)
            for time in times:
                table.add_column(f"at {_plain(time)}", justify="right", no_wrap=True)
            for model, rows in part.groupby("model", sort=False):
                cells = [_text(str(model))]
                whole = wholes.get((loss, weighting, model))
                if whole is not None:
                    span = f"{_plain(whole['from'])} to {_plain(whole['to'])}"
                    cells += [_text(_with_half("{:.4f}", whole["score"], whole["lower"], whole["upper"])), _text(span)]
                scores = rows.set_index("time")["score"]
                table.add_row(*cells, *(_text(_score(scores[time])) for time in times))
            shown.append(table)
    return shown


def comparison_tables(tables: Any, sentences: Any, settings: Any) -> list[Any]:
    """Return scores, differences with p-values, and what weightings disagree about, ready to print."""
    from rich.text import Text

    from survscore.losses import loss_label
    from survscore.reports.words import people

    level, reference, span, n = (settings[key] for key in ("level", "reference", "range", "individuals"))
    over = f"mean over {_plain(span[0])} to {_plain(span[1])}" if span else "at one time"
    contrasts = tables["verdicts"]
    found = {(row["loss"], row["weighting"], row["model"]): row for row in contrasts.to_dict("records")}
    scores = tables["means"] if span else tables["scores"]
    shown: list[Any] = []
    for loss, of_loss in scores.groupby("loss", sort=False):
        heading = f" of {people(n)}, {over}, {100 * level:g} % intervals, lower is better"
        shown.append(Text.assemble((_capital(loss_label(loss)), "bold"), heading))
        for weighting, part in of_loss.groupby("weighting", sort=False):
            table = _table(str(weighting))
            table.add_column("model", overflow="fold")
            table.add_column("score", justify="right", no_wrap=True)
            table.add_column(_text(f"difference to {reference}"), justify="right", overflow="fold", min_width=7)
            table.add_column("p", justify="right", no_wrap=True)
            table.add_column("verdict", no_wrap=True)
            for row in part.to_dict("records"):
                contrast = found.get((loss, weighting, row["model"]))
                rest = ["", "", "reference"] if contrast is None else _contrast(contrast)
                table.add_row(_text(row["model"]), _text(_score(row["score"])), *rest)
            shown.append(table)
        for sentence in sentences["contradictions"][loss]:
            careful = "Weightings contradict each other: " + printable(sentence, most=1000)
            shown.append(Text.assemble(("Careful. ", "bold yellow"), careful, "\n"))
        shown += [Text(printable(sentence, most=1000) + "\n") for sentence in sentences["unsure"][loss]]
    return shown


def console() -> Any:
    """Return where results are printed: a terminal, or something else that need not be narrow."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)


def _contrast(row: Any) -> list[Any]:
    from rich.text import Text

    from survscore.reports import words

    verdict = words.outcome(row)
    p = row["p_value"]
    return [
        _with_half("{:+.4f}", row["difference"], row["lower"], row["upper"]),
        "-" if _missing(p) else "<0.001" if p < 0.001 else f"{p:.3f}",
        Text(verdict, {"better": "green", "worse": "red"}.get(verdict, "dim")),
    ]


def _table(title: str) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=_text(title), title_justify="left", box=SIMPLE, pad_edge=False)


def _text(text: str) -> Any:
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


def _missing(value: float | None) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN


def _score(value: float) -> str:
    return "-" if _missing(value) else f"{value:.4f}"


def _plain(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

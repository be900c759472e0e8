"""Results as tables in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from survscore._validation import shown as printable
from survscore.results.rounding import p_text

if TYPE_CHECKING:
    from survscore.checks import Finding

WIDTH_ELSEWHERE = 160


def print_claims(name: str, claims: Any, replicates: int, *, quick: bool = False) -> None:
    """Print the claims about a figure, and whether they hold; of a quick run that says nothing, and is told."""
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
    if quick:
        table.caption = (
            "A quick run shows that it works. With few individuals and nets that are barely trained, what holds here "
            "and a claim that fails means nothing: use --size paper."
        )
        table.caption_justify = "left"
    Console().print(table)


def _answer(row: Any) -> str:
    from rich.markup import escape

    from survscore.paper.claims import answer

    if not row["replicates"]:
        return f"[dim]not checked: needs {row['needs']}[/]"
    style = "green" if row["holds"] else "yellow" if row["share"] else "bold red"
    told, margin = answer(row)
    return f"[{style}]{told}[/] {escape(margin)}"


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


def heading(metric: str, n: int, n_dropped_out: int | None, how: str, cause: str = "") -> Any:
    """Return the line above tables of a metric."""
    from rich.text import Text

    from survscore.metrics import cause_label, metric_label
    from survscore.reports.verdicts import people, share

    dropped_out = f", {share(n_dropped_out, n)} dropped out" if n_dropped_out else ""
    return Text.assemble(
        (_capital(cause_label(metric_label(metric), cause)), "bold"), f" of {people(n)}{dropped_out}, {how}"
    )


def console() -> Any:
    """Return where results are printed: a terminal, or something else that need not be narrow."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)


def contrast_cells(
    row: dict[str, Any], *, bounded: bool = False, adjusted: bool = False, encodes: Collection[str] = ()
) -> list[Any]:
    """Return the cells of a difference: its interval, where asked for its bounds, p-values, and the verdict.

    `encodes` names the models that encode C*.
    """
    from rich.text import Text

    from survscore.results.printing import verdict_text

    encoded = not {row["model"], row["reference"]}.isdisjoint(encodes)
    verdict = verdict_text(row["verdict"], row["weighting"], encoded=encoded)
    colour = {"better": "green", "worse": "red"}.get(verdict, "dim")  # of those that hold for each individual

    difference = _with_half("{:+.4f}", row["difference"], row["lower"], row["upper"])
    return [
        "-" if missing(row["difference"]) else difference,
        *([bounds_cell("{:+.4f}", row)] if bounded else []),
        _p(row["p_value"]),
        *([_p(row["p_adjusted"])] if adjusted else []),
        Text(verdict, colour),
    ]


def _p(value: float) -> str:
    return "-" if missing(value) else p_text(value)


def bounds_cell(form: str, row: dict[str, Any]) -> str:
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


def _with_half(form: str, value: float, lower: float, upper: float) -> str:
    """Return a value with half the length of its interval, if it has one."""
    return form.format(value) + ("" if missing(lower) else f" ±{(upper - lower) / 2:.4f}")


def with_limits(value: float, lower: float, upper: float) -> str:
    """Return a value with its interval, which need not lie evenly around it; a dash where there is none."""
    return score_cell(value) + ("" if missing(lower) else f" ({lower:.4f} to {upper:.4f})")


def missing(value: float | None) -> bool:
    """Whether there is no number."""
    return value is None or value != value  # noqa: PLR0124 - NaN


def score_cell(value: float) -> str:
    """Return a score; a dash where there is none."""
    return "-" if missing(value) else f"{value:.4f}"


def plain_number(value: float) -> str:
    """Return a time in few digits."""
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

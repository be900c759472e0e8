"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from survscore._validation import shown as printable
from survscore.cli.answers import width

if TYPE_CHECKING:
    from survscore.checks import Finding


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


def console() -> Any:
    """Return where results are printed: a terminal, or something else that need not be narrow."""
    from rich.console import Console

    return Console(width=width())


def new_table(title: str) -> Any:
    """Return an empty table."""
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=plain_text(title), title_justify="left", box=SIMPLE, pad_edge=False)


def plain_text(text: str) -> Any:
    """Return text as it is: no markup, no control characters."""
    from rich.text import Text

    return Text(printable(text, most=200))

"""What the demo prints: what it is about to do, which method each score prefers, and what that says."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import shown
from survscore.cli.screen import LONGEST_LINE, say

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from survscore.paper.demo import Demo

LOSSES = {"brier": "Brier score", "log": "Logarithmic loss"}
LEGEND = {
    "uncensored": "all event times, as only a simulation has them: the truth.",
    "projected": "all, each with its own prediction; where C* < t, with the proportion event-free at t among others of "
    "similar predicted risk.",
    "administrative": "counts at each time t those with C* >= t.",
    "IPCW": "the usual score, weighted by the inverse probability of not being censored, by Kaplan-Meier.",
    "censored left out": "those with unknown status dropped, as classifiers do.",
}


def print_opening(n_training: int, n_test: int) -> None:
    """Print what the demo is about to do."""
    from rich.console import Console

    Console(highlight=False).print(
        f"Simulating individuals under administrative censoring: follow-up ends on one day, so each censoring time C* "
        f"is known. {n_training:,} are for fitting two networks given C* as a covariate, {n_test:,} for scoring them. "
        "Logistic-Hazard learns from the censored, too; BCE, a classifier for each time, leaves them out. Which one "
        "does each score prefer?", end="\n\n",
    )  # fmt: skip


def print_demo(found: Demo) -> None:
    """Print which method each score prefers, where that is wrong, and why; it fits into 60 columns."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(what_they_predict(found), end="\n\n")
    summary = found.summary()
    for loss, name in LOSSES.items():
        console.print(_table(name, summary[summary.loss == loss]))
        console.print()
    for name, meaning in LEGEND.items():
        console.print(Text.assemble((name, "bold"), f": {meaning}"))
    console.print()
    console.print(Text(what_was_seen(found), "bold"))


def print_written(paths: list[Path]) -> None:
    """Print which files there are now, the report in a line of its own; names of files stay whole."""
    from rich.console import Console

    *others, page = paths
    told = shown(f"Written to {page.parent}: {', '.join(path.name for path in others)}", most=LONGEST_LINE)
    click.echo(textwrap.fill(told, Console().width, break_long_words=False, break_on_hyphens=False))
    say(f"The report, to open in a browser: {page}")


def what_they_predict(found: Demo) -> str:
    """Return how far both methods' predictions fall right after C*."""
    from survscore.paper import studies as s
    from survscore.paper.demo import FALLS

    fall = {name: f"{100 * found.falls(name):.0f} %" for name in (s.TRUTH, s.HAZARD, s.BCE)}
    return (
        f"In the {FALLS:g} units of time after C*, predictions of being event-free fall by {fall[s.BCE]} on average if "
        f"made by BCE, by {fall[s.HAZARD]} if by Logistic-Hazard. In truth it is {fall[s.TRUTH]}."
    )


def what_was_seen(found: Demo) -> str:
    """Return in a sentence or two which scores are right."""
    from survscore.paper import studies as s

    rows = found.summary()
    rows = rows[rows.loss == "brier"].set_index("weighting")
    truth, ours = rows.prefers[s.UNCENSORED], (rows.prefers[s.PROJECTED], rows.prefers[s.ADMINISTRATIVE])
    if not truth or not all(ours):
        return (
            "At this size the methods do not differ significantly, in truth, by the projected or by the administrative "
            "score: take more individuals (without --size quick), or another --seed."
        )
    other = s.BCE if truth == s.HAZARD else s.HAZARD
    higher = {name: 100 * (rows[other][name] / rows[truth][name] - 1) for name in rows.index}
    fooled = [name for weighting, name in _names().items() if rows.prefers[weighting] not in ("", truth)]
    right = (
        f"The projected score says {higher[s.PROJECTED]:.0f} %, and the administrative score "
        f"{higher[s.ADMINISTRATIVE]:.1f} %: it counts only those with C* >= t."
        if ours == (truth, truth)
        else "The projected and the administrative score do not both confirm this."
    )
    others = f" Misled: {'; '.join(fooled)}." if fooled else " No score was misled."
    skill = {name: 100 * found.against_null(name) for name in (truth, other)}
    null = ", ".join(
        f"that of {name} is {abs(value):.0f} % {'lower' if value > 0 else 'higher'}" for name, value in skill.items()
    )
    return (
        f"{truth} is better in truth: the other's Brier score is {higher[s.UNCENSORED]:.0f} % higher. Compared with "
        f"Kaplan-Meier's, {null}. {right}{others}"
    )


def _names() -> dict[str, str]:
    """Return what each weighting is called here: as in the legend."""
    from survscore.paper.demo import WEIGHTINGS

    return dict(zip(WEIGHTINGS, LEGEND, strict=True))


def _table(name: str, rows: pd.DataFrame) -> Any:
    from rich.table import Table
    from rich.text import Text

    from survscore.paper.demo import verdict

    names = _names()
    table = Table(title=f"{name}: BCE minus Logistic-Hazard, 95 % interval", title_justify="left", box=None,
                  padding=(0, 2, 0, 0), pad_edge=False)  # fmt: skip
    table.add_column("score", no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("so better is", no_wrap=True)
    table.add_column("", no_wrap=True)
    truth = rows["prefers"].iloc[0]
    for _, row in rows.iterrows():
        _, told = verdict(row["weighting"], row["prefers"], truth)
        style = {"wrong": "bold red", "right": "green", "truth": "green"}.get(told, "dim")
        difference = f"{row['difference']:+.4f} ±{(row['upper'] - row['lower']) / 2:.4f}"
        table.add_row(names[row["weighting"]], difference, row["prefers"] or "neither", Text(told, style))
    return table

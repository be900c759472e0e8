"""The command that asks on real data which score would have chosen the right model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore.cli.helping import command
from survscore.cli.screen import check_folder, one_line, progress, say

if TYPE_CHECKING:
    import pandas as pd

    from survscore.paper.atlas import Atlas


@command(short_help="Which score would have selected the best model, on real data.")
@click.option("--sets", metavar="NAMES", help="Data sets, as aids2,thoro; by default all that can be loaded here.")
@click.option(
    "--by-cause",
    "by_cause",
    is_flag=True,
    help="Predictions of competing causes, on the sets that have some, instead of events of any cause.",
)
@click.option("--size", type=click.Choice(["full", "quick"]), default="full", show_default=True,
              help="All of it, or few individuals and models barely fitted: to see that it works.")  # fmt: skip
@click.option("--draws", type=click.IntRange(min=0), default=None,
              help="Resamples for intervals of sets; 0 leaves these out. By default 200, quick 20.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--jobs", type=click.IntRange(min=1), default=None,
              help="Sets to compute at once; by default as many as there are cores.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default="atlas", show_default=True,
              help="Folder for tables and the forest plot. Sets that are finished there are kept.")  # fmt: skip
def atlas(
    sets: str | None, by_cause: bool, size: str, draws: int | None, seed: int, jobs: int | None, out: Path
) -> None:
    """Fit the same models to real data sets, and see which score would have chosen the right one.

    At the data cut-off: which model each score prefers, and where two scores contradict each other significantly. On
    earlier days: in which order each score would have put the models, and how much worse than the best its choice was,
    by what happened since. An interrupted run goes on where it stopped.

    \b
    Examples:
      survscore atlas
      survscore atlas --sets thoro,aids2 --size quick --out trial
      survscore atlas --by-cause
    """  # noqa: D301
    from survscore._config import config
    from survscore.cli.tables import console
    from survscore.paper.atlas import atlas as run
    from survscore.paper.atlas.models import SIZES

    check_folder(out)
    names = None if sets is None else [name.strip() for name in sets.split(",") if name.strip()]
    for text in notes(every_set=names is None, by_cause=by_cause):  # before it takes its time
        click.echo(f"survscore: note: {one_line(text)}", err=True)
    amount = SIZES[size] if draws is None else replace(SIZES[size], n_draws=draws)
    with progress(total=None if names is None else len(names)) as show:
        n_jobs = jobs or config.n_cores()
        found = run(names, out=out, by_cause=by_cause, size=amount, seed=seed, n_jobs=n_jobs, progress=show)
    lines = printed(found)
    console().print(*lines, sep="\n")
    say(f"Written to {out}")


def notes(*, every_set: bool, by_cause: bool = False) -> list[str]:
    """Return what will be left out, a line each."""
    from survscore import datasets
    from survscore.paper.atlas.models import installed, listed

    _, packages = installed(listed())
    without = (
        f"models of scikit-survival{'' if by_cause else ', and weights by a Cox model,'} are left out: "
        "pip install 'survscore[atlas]'"
    )
    here, names = datasets.available(), datasets.names(causes=True) if by_cause else datasets.names()
    unavailable = [name for name in names if name not in here] if every_set and here else []
    not_here = f"sets that can't be loaded here are left out: {', '.join(unavailable)} (survscore.datasets.describe())"
    return [without] * bool(packages) + [not_here] * bool(unavailable)


def printed(found: Atlas) -> list[Any]:
    """Return the summary and what it says, ready to print."""
    from survscore.paper.atlas.page import closing_table, family_table, set_table

    days = "earlier days, judged by what happened since"
    if found.by_cause:
        first = f"By cause on {days}: all models", set_table(found)
        return _tables(first, ("Means over sets", family_table(found)), sentences=found.sentences)
    return _tables(
        ("On the closing date: administrative and IPCW", closing_table(found)),
        (f"On {days}: means over sets", family_table(found)),
        sentences=[found.closing_sentence, *found.sentences],
    )


def _tables(*titled: tuple[str, pd.DataFrame], sentences: Sequence[str]) -> list[Any]:
    from rich.text import Text

    from survscore.cli.tables import new_table

    lines: list[Any] = []
    for title, shown in titled:
        table = new_table(title)
        for k, name in enumerate(shown.columns):
            table.add_column(name, justify="left" if k == 0 else "right", overflow="fold")
        for row in shown.itertuples(index=False):
            table.add_row(*map(str, row))
        lines += [table] if len(shown) else []
    return [*lines, *(Text(sentence) for sentence in sentences)]

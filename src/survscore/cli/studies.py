"""Commands that run studies: the demo, the paper's figures, KKBox, the atlas."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError, shown
from survscore.cli.options import choice, command, folder, number, option
from survscore.cli.screen import LONGEST_LINE, check_folder, one_line, print_claims, progress, say

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from survscore.paper.atlas import Atlas
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
        "does each score prefer?",
        end="\n\n",
    )


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
    title = f"{name}: BCE minus Logistic-Hazard, 95 % interval"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
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


@command(short_help="Show which of two methods each score prefers.")
@folder("demo-output", "Folder for the figures, the scores and the settings.")
@choice(
    "--size",
    of=["demo", "quick"],
    default="demo",
    help="Number of individuals and epochs: half a minute, or a third of it.",
)
@number("--seed", "Seed of all random numbers.", 1)
def demo(out: Path, size: str, seed: int) -> None:
    """Show on simulated data which of two methods each score prefers.

    Simulates individuals under administrative censoring, with C* as a covariate; fits a Logistic-Hazard net
    and a BCE net (classifiers that drop the censored) to it; and scores both under every weighting. The uncensored
    score, which needs data that only a simulation has, says which is better.
    """
    from survscore.paper import demo as study
    from survscore.paper.studies import DEMO_SIZES

    check_folder(out)
    chosen = DEMO_SIZES[size]
    print_opening(chosen.training + chosen.validation, chosen.test)
    with progress(total=None) as show:
        result = study.run(size=chosen, seed=seed, report=lambda what: show(0, 0, what))
    paths = result.save(out)
    print_demo(result)
    click.echo()
    print_written(paths)


@command(short_help="Reproduce a figure of the paper, with its claims.")
@click.argument("figure", type=click.Choice([*(f"figure-{k}" for k in range(1, 7)), "all"]))
@choice(
    "--size",
    of=["paper", "quick"],
    default="paper",
    help="As many individuals as in the paper, or few, barely trained: to see that it works.",
)
@number("--seed", "Seed of all random numbers.", 1)
@number("--replicates", "How often to repeat the study, with new data and nets.", 1, least=1)
@number("--jobs", "Replicates to compute at once; by default as many as there are cores.", least=1)
@folder("reproduction", "Folder for figures, numbers and claims. Replicates that are there are kept.")
@option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Prepared KKBox data, for figures 1 and 6; without it they show synthetic data.",
)
def reproduce(
    figure: str, size: str, seed: int, replicates: int, jobs: int | None, out: Path, data: Path | None
) -> None:
    """Reproduce a figure of the paper, and check what the paper says about it.

    Each figure is written as PNG and SVG, with every plotted number, integrated scores, the settings, and a table of
    claims: what the paper states, whether it holds in this run, and by how much. An interrupted run goes on where it
    stopped. "all" are the simulations, figures 2 to 5.
    """
    from survscore._config import config
    from survscore.paper.reproduce import Run, reproduce
    from survscore.paper.studies import CHURN_SIZES, SIZES

    check_folder(out)
    names = [f"figure-{k}" for k in range(2, 6)] if figure == "all" else [figure]
    on_churn = names[0] in ("figure-1", "figure-6")
    if data is not None and not on_churn:
        raise InputError("--data is for figures 1 and 6; the others show simulations")
    # one replicate of the churn study uses all cores itself
    n_jobs = jobs or (1 if on_churn else config.n_cores())
    run = Run(SIZES[size], seed, replicates, out, n_jobs, CHURN_SIZES[size], data)
    with progress(total=replicates) as show:
        results = reproduce(names, run, show)
    if on_churn and data is None:
        click.echo("These are synthetic data, not KKBox's: the statements are about the latter.")
    if on_churn:
        click.echo("checked: no customer is in two parts")
    for name, result in results.items():
        print_claims(name, result.claims, replicates, quick=size == "quick")
        say(f"Written to {result.folder}")
        click.echo()


@click.group(short_help="Prepare KKBox's churn data, or make some alike.")
def kkbox() -> None:
    """Prepare KKBox's churn data (Kaggle, 2017), or make raw files of the same form."""


@kkbox.command("prepare")
@click.argument("raw_dir", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--memory", default="4GB", show_default=True, help="How much the database may use before it spills to disk."
)
def kkbox_prepare(raw_dir: Path, out: Path, memory: str) -> None:
    """Make survival data from the raw files in RAW_DIR, and write them to OUT (Parquet).

    RAW_DIR holds transactions, members_v3 and train, each as .csv, .csv.gz or Kaggle's .csv.7z.
    """
    from survscore.datasets.kkbox import prepare

    with progress(total=1) as show:
        summary = prepare(raw_dir, out, memory=memory, progress=show)
    for name, count in summary.read.items():
        click.echo(f"read {count:>12,} rows of {name}")
    for reason, count in summary.dropped.items():
        click.echo(f"dropped {count:>9,} {reason}")
    for what, count in summary.noted.items():
        click.echo(f"noted {count:>11,} spells: {what}")
    low, high = summary.censoring_time
    click.echo(
        f"spells {summary.spells:>10,} of {summary.customers:,} customers, {summary.events:,} with churn "
        f"({summary.events / summary.spells:.1%}); C* from {low:g} to {high:g} days"
    )
    click.echo("checked: " + "; ".join(summary.invariants))
    say(f"Written: {out}")


@kkbox.command("synthesize")
@click.argument("out_dir", type=click.Path(file_okay=False, path_type=Path))
@number("--customers", "With transactions; the real data have about 2.4 million.", 100_000, least=1)
@number("--seed", "The same seed gives the same files.", 1)
@click.option("--force", is_flag=True, help="Replace raw files that are there.")
def kkbox_synthesize(out_dir: Path, customers: int, seed: int, force: bool) -> None:
    """Write raw files of the form of Kaggle's into OUT_DIR, and the truth behind them."""
    from survscore.datasets.kkbox import synthesize

    check_folder(out_dir)
    with progress(total=customers) as show:
        rows = synthesize(out_dir, customers=customers, seed=seed, overwrite=force, progress=show)
    say(f"Written to {out_dir}: " + ", ".join(f"{count:,} rows of {name}" for name, count in rows.items()))


@kkbox.command("describe")
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def kkbox_describe(data: Path) -> None:
    """Describe prepared DATA (Parquet): follow-up, churn, censoring, and how well covariates predict C*."""
    from survscore.datasets.kkbox import describe, read

    found = describe(read(data))
    for name, value in found.counts.items():
        click.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.1%}")
    click.echo("\nquantiles in days\n" + found.quantiles.T.to_string(float_format="{:.0f}".format))
    click.echo("\n" + found.horizons.to_string(index=False, float_format="{:.3f}".format))
    error = f"a mean error of {found.censoring_error:.0f} days"
    click.echo(f"\ncovariates predict C* of other customers with R2 {found.censoring_r2:.2f}, and {error}")


@command(short_help="Which score would have selected the best model, on real data.")
@click.option("--sets", metavar="NAMES", help="Data sets, as aids2,thoro; by default all that can be loaded here.")
@click.option(
    "--by-cause",
    "by_cause",
    is_flag=True,
    help="Predictions of competing causes, on the sets that have some, instead of events of any cause.",
)
@choice(
    "--size",
    of=["full", "quick"],
    default="full",
    help="All of it, or few individuals and models barely fitted: to see that it works.",
)
@number("--draws", "Resamples for intervals of sets; 0 leaves these out. By default 200, quick 20.")
@number("--seed", "Seed of all random numbers.", 1)
@number("--jobs", "Sets to compute at once; by default as many as there are cores.", least=1)
@folder("atlas", "Folder for tables and the forest plot. Sets that are finished there are kept.")
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
    from survscore.cli.screen import console
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

    from survscore.cli.screen import new_table

    lines: list[Any] = []
    for title, frame in titled:
        table = new_table(title)
        for k, name in enumerate(frame.columns):
            table.add_column(name, justify="left" if k == 0 else "right", overflow="fold")
        for row in frame.itertuples(index=False):
            table.add_row(*map(str, row))
        lines += [table] if len(frame) else []
    return [*lines, *(Text(sentence) for sentence in sentences)]

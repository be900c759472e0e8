"""Commands that run studies: the demo, the paper's figures, KKBox."""

from __future__ import annotations

from pathlib import Path

import click

from survscore._validation import InputError
from survscore.cli.demonstrating import print_demo, print_opening, print_written
from survscore.cli.helping import command
from survscore.cli.screen import check_folder, progress, say
from survscore.cli.tables import print_claims


@command(short_help="Show which of two methods each score prefers.")
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default="demo-output", show_default=True,
              help="Folder for the figures, the scores and the settings.")  # fmt: skip
@click.option("--size", type=click.Choice(["demo", "quick"]), default="demo", show_default=True,
              help="Number of individuals and epochs: half a minute, or a third of it.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all random numbers.")
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
@click.option("--size", type=click.Choice(["paper", "quick"]), default="paper", show_default=True,
              help="As many individuals as in the paper, or few, barely trained: to see that it works.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--replicates", type=click.IntRange(min=1), default=1, show_default=True,
              help="How often to repeat the study, with new data and nets.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=None,
              help="Replicates to compute at once; by default as many as there are cores.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default="reproduction",
              show_default=True,
              help="Folder for figures, numbers and claims. Replicates that are there are kept.")  # fmt: skip
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Prepared KKBox data, for figures 1 and 6; without it they show synthetic data.")  # fmt: skip
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
@click.option("--customers", type=click.IntRange(min=1), default=100_000, show_default=True,
              help="With transactions; the real data have about 2.4 million.")  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed gives the same files."
)
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
    click.echo(f"\ncovariates predict C* of other customers with R2 {found.censoring_r2:.2f}, "
               f"and a mean error of {found.censoring_error:.0f} days")  # fmt: skip

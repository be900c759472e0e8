"""The command line: parse, call, print. What is heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from survscore._validation import InputError
from survscore._version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="survscore")
def cli() -> None:
    """Score time-to-event predictions when the data end on a known date."""


@cli.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="demo-output", show_default=True,
              help="Folder for the figure, the scores and the settings.")  # fmt: skip
@click.option("--n", type=click.IntRange(min=100), default=20_000, show_default=True, help="Individuals to simulate.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the simulation.")
def demo(out: Path, n: int, seed: int) -> None:
    """Show on simulated data which of two predictions each score prefers.

    One prediction is the true survival. The other leaks: it falls to zero around everybody's censoring time, as
    classifiers do that drop the censored. The uncensored score, which needs data nobody has, says which is better.
    """
    from survscore.experiments import demo as study

    result = study.run(n=n, seed=seed)
    paths = result.save(out)
    summary = result.summary()
    _print_demo(summary, n)
    click.echo("\nWritten: " + ", ".join(str(path) for path in paths))


def _print_demo(summary: Any, n: int) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    truth = dict(zip(*(summary.loc[summary.weighting == "uncensored", c] for c in ("loss", "prefers")), strict=True))
    console = Console()
    for loss, title in (("brier", "Integrated Brier score"), ("log", "Integrated logarithmic loss")):
        rows = summary[summary.loss == loss]
        table = Table(title=f"{title} of {n} simulated individuals (lower is better)", title_justify="left")
        table.add_column("weighting")
        for column in ("honest", "leaking", "prefers"):
            table.add_column(column, justify="right" if column != "prefers" else "left")
        for row in rows.itertuples():
            verdict = "" if row.prefers == truth[loss] else "  [bold red]wrong[/]"
            table.add_row(escape(row.weighting), f"{row.honest:.4f}", f"{row.leaking:.4f}", row.prefers + verdict)
        console.print(table)
    fooled = sorted(set(summary.loc[summary.prefers != summary.loss.map(truth), "weighting"]))
    console.print(
        f"The uncensored score, which real data do not allow, prefers the {truth['brier']} prediction. "
        + (f"Fooled: {escape('; '.join(fooled))}." if fooled else "No score was fooled.")
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    try:
        cli.main(args=arguments, prog_name="survscore", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("survscore: interrupted", err=True)
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:  # no command: the help is the answer
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"survscore: {error.format_message()}", err=True)
        sys.exit(2)
    except (InputError, OSError, ImportError) as error:
        click.echo(f"survscore: {error}", err=True)
        sys.exit(2)

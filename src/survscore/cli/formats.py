"""The command that says what files must look like, and proposes the command for some."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from survscore._validation import InputError
from survscore.cli import options
from survscore.cli.helping import command

EXPLAINED = Path(__file__).with_suffix(".txt")


@command(short_help="Explain what files must look like, propose the command for yours, and check them.")
@click.argument("paths", nargs=-1, metavar="[FILE]...", type=options.FILE)
@click.option("--check", is_flag=True, help="Read all rows; exit with 2 if they cannot be read as proposed.")
@click.option("--json", "as_json", is_flag=True, help="Print the proposal as JSON.")
def formats(paths: tuple[Path, ...], check: bool, as_json: bool) -> None:
    """Explain what files must look like; with FILES, propose the command that reads them.

    FILES are any tables, outcomes and predictions in any order, or folders of them as Spark writes. The proposal is
    based on the names of columns and the values of some rows, and asks about what is uncertain. With --check all rows
    are read.

    \b
    Examples:
      survscore formats
      survscore formats customers.csv predictions.csv
      survscore formats --check outcomes.csv net.parquet
    """  # noqa: D301
    if not paths and (check or as_json):
        raise InputError("--check and --json are for files; name one")
    if not paths:
        click.echo(EXPLAINED.read_text(encoding="utf-8"), nl=False)
        return
    from survscore.cli.proposing import page, propose

    proposal = propose(paths, whole=check)
    if as_json:
        click.echo(json.dumps({"sure": proposal.sure, **dataclasses.asdict(proposal)}, indent=1))
    else:
        click.echo("\n".join(page(proposal)))
    if check and proposal.failed:
        raise SystemExit(2)

"""What files must look like, and whether one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from survscore._utils.dates import Unit
from survscore._validation import InputError, plural
from survscore.cli import options
from survscore.cli.helping import command
from survscore.cli.scoring import outcome_arguments
from survscore.cli.screen import noted, one_line, say
from survscore.cli.sources import shared_form

EXPLAINED = """\
survscore reads CSV (.csv, .tsv, also .gz, .zst), Parquet (.parquet, .pq) and Arrow (.arrow, .feather). A CSV file has
a header line; its separator is a comma, semicolon, tab or bar; missing values are empty, NA, NaN or null. One file may
be -, standard input.

OUTCOMES, one row per individual: times ...

    id,time,event,censoring_time
    a17,75,1,89
    b02,45,0,45

    time            when the event happened, or until when the individual was seen without it; zero or later
    event           1 (true) where the event happened at time, 0 (false) where it did not; or words that mean one
                    thing only: yes, y, event, churned, died, dead, deceased, failed; no, n, censored, active, alive.
                    Where several events compete, their causes 1, 2, ... and 0 without event; --causes default,repayment
                    names them, and then the column may hold these names
    censoring_time  C*, when follow-up of this individual ends, also if the event came first; at least time. Who has
                    no event and a time before C* dropped out, and administrative scores weight for that. Without
                    this column only IPCW scores are possible, and they mislead if predictions encode C*.
                    Where it is below time by no more than one in the last digit shown, and not both are whole
                    numbers, that is taken for rounding, and said

... or, with --cutoff 2017-01-29, dates (2017-01-15, or with a time of day: 2017-01-15T08:30:00):

    id,start,event_date
    a17,2016-11-01,2017-01-15
    b02,2016-12-15,

    start           when the individual came under observation
    event_date      when the event happened; empty where it has not
    last_seen       optional: when an individual who dropped out before the cut-off was last seen

    --open-end 9999-12-31 names dates that say that there is no end yet; they count as empty.

    A date is its midnight. If events on the day of the cut-off are in the data, the cut-off is the day after.
    --unit M and Y count months and years of the calendar: whole ones, plus the fraction of the one begun.

    Where a date may be another end than the event, name it --end, and say which it was by --event (a column of 0 and 1,
    or of causes; other ends before the cut-off are drop-outs), or --reason, a column of reasons, and what each means:

    --event-reasons churn,fraud       the event
    --censored-reasons moved,active   the event may still come, unseen: drop-outs, and who was still there
    --competing-reasons died          it can't come any more, since another event came first (competing risks). Each is
                                      a cause of its own; scores are of the event, or of another by --cause died. Do not
                                      name them as censored, which overstates the risk of the event

    churn=cancelled calls the cause of a reason churn, and several reasons of one name are one cause. Different causes
    of interest: --event-reasons churn=cancelled,non-payment=unpaid, and --cause churn.

    --date-format '%d.%m.%Y' (or %Y%m%d, or decimal-year for 2017.5) and --origin 1970-01-01 (for numbers of days) take
    dates that are written otherwise; so do epoch-seconds and epoch-milliseconds, since 1970.

PREDICTIONS, one row per individual, each value the probability (0 to 1) of being event-free after that time. If it is
that of having had the event, as classifiers give it, say --predicts event; if it is a percentage, --percent. Wide ...

    id,30,60,90                          one model, called like the file
    a17,0.95,0.88,0.71

    id,net:30,net:60,cox:30,cox:60       several models, before a colon; --columns takes other patterns
    a17,0.95,0.88,0.93,0.85

... or, in Parquet, a column of lists for each model, all of one length, with the times

    in the metadata of the column or of the file, key "survscore":   {"grid": [30, 60, 90], "interpolation": "step"}
    or in --grid 30,60,90 (or 30:90:30, or a text file)

    Called "survival", the column is named like its file. "interpolation" says how predictions are read between grid
    points (linear, step or constant-hazard), "extrapolation" what holds after the last one (nan or hold).

... or long, with a row per individual and time (recognised if ids are repeated, and times are called time, times, t or
horizon; --long says so, and --time-column day names them):

    id,time,survival                     or, instead of survival, a column for each model
    a17,30,0.95
    a17,60,0.88

... or, with --transposed, with a row per time and a column per individual, named by its id, as lifelines writes them:

    ,a17,b02
    30,0.95,0.99
    60,0.88,0.97

... or, of several causes of events, with a column per cause and time (--columns '{cause}_{time}' takes default_30;
--columns '{cause}' a column of lists per cause; a long file has a column cause). Each value is the probability of an
event of that cause by that time; for each individual and time they sum to at most 1:

    id,default@30,default@60,repayment@30,repayment@60        net:default@30 ..., if there are several models
    a17,0.02,0.04,0.11,0.19

    Causes are called as in the outcomes, or 1, 2, ... --cause default says which one scores are of, --cause all asks
    for multi-class scores; "survscore table" and "survscore report" show all causes. A file of one cause alone, with
    columns 30, 60, needs --cause and --predicts event.

    If times are in another unit than those of the outcomes, --predictions-unit month converts them (a year is 365.25
    days, a month a twelfth of it). Without dates, --unit then says what unit the outcomes have.

    Of files that differ, each may have its options in brackets: columns, grid, interpolation, extrapolation, monotone,
    predicts, unit (as --predictions-unit), percent, transposed, long, time-column. In shells, quote them:

    survscore compare outcomes.csv 'new=a.csv[columns=month_{time},unit=month,predicts=event]' old=b.csv --unit D

IDS. If files have a column id (--id names another), rows are matched by it, in any order: every id once, and the same
ids in all files (--allow-extra leaves out predictions without outcome). Without ids, or with --by-order, rows are
matched by their order. Outcomes and predictions may be one file.

In messages, rows are counted from 0, without the header.

"survscore formats FILE ..." proposes the command for your files, and with --check checks them; "survscore simulate
play" writes some. --study takes a long command from a TOML file, which "survscore formats FILE ... --toml" prints.
"""


@command(short_help="Explain what files must look like, propose the command for yours, and check them.")
@click.argument("paths", nargs=-1, metavar="[FILE]...", type=options.FILE)
@click.option("--check", is_flag=True, help="Read all rows, describe the contents of files and check them; so does "
              "any of the options below that describe files.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the proposal as JSON.")
@click.option("--toml", is_flag=True, help="Print the proposal as a study file, for --study.")
@options.reading
def formats(paths: tuple[Path, ...], check: bool, as_json: bool, toml: bool, **arguments: Any) -> None:
    """Explain what files must look like; with FILES, propose the command that reads them.

    FILES are any tables, outcomes and predictions in any order, or folders of them as Spark writes. The
    proposal is based on the names of columns and the values of some rows; a question mark marks what is uncertain. With
    --check, or options that describe files, all rows are read, and errors are reported.

    \b
    Examples:
      survscore formats
      survscore formats customers.csv predictions.csv
      survscore formats customers.csv predictions.csv --toml > study.toml
      survscore formats --check outcomes.csv net.parquet
      survscore formats subscriptions.csv --cutoff 2017-01-29
    """  # noqa: D301
    given_by = click.get_current_context().get_parameter_source
    asked = [name for name in arguments if given_by(name) is not ParameterSource.DEFAULT]
    about_files = {"--check": check, "--json": as_json, "--toml": toml}
    about_files |= {f"--{name.removesuffix('_column').replace('_', '-')}": True for name in asked}
    given = [name for name, is_given in about_files.items() if is_given]
    if not paths and given:
        raise InputError(f"{given[0]} is for checking a file; name one")
    if (as_json or toml) and len(given) > 1:
        raise InputError(f"{given[0]} and {given[1]} can't be given together: proposals look at files by themselves")
    if not paths:
        click.echo(EXPLAINED, nl=False)
    elif check or asked:
        _check(paths, arguments)
    else:
        from survscore.cli.proposing import propose

        propose(paths, as_json=as_json, toml=toml)


def _check(paths: tuple[Path, ...], arguments: dict[str, Any]) -> None:
    """Read files whole, and say what they hold; exit, where one is not as it should be."""
    wrong = 0
    with noted():
        for path in paths:
            try:
                for line in describe(path, arguments):
                    say(f"{path}: {line}")
            except InputError as error:
                click.echo(f"survscore: {one_line(error)}", err=True)
                wrong += 1
    if wrong:
        raise SystemExit(2)


def describe(path: Path, arguments: dict[str, Any]) -> list[str]:
    """Return what a file holds, in lines; raise, if it holds something that is not as it should be."""
    from survscore.io import read_outcomes
    from survscore.io.layouts import looks_transposed
    from survscore.io.outcomes import labels_in
    from survscore.io.predictions import holds_predictions, predictions_in
    from survscore.io.tables import listed, open_table

    form = shared_form(arguments)
    file = open_table(path, text=labels_in(arguments["id_column"]))
    names = set(file.names)
    of_outcomes = outcome_arguments(arguments)
    status = arguments["reason"] or arguments["event"] or "event"
    times = {arguments["time"] or "time", status} <= names
    ended = {arguments["event_date"] or "event_date"} if arguments["end"] is None else {arguments["end"], status}
    dates = {arguments["start"] or "start", *ended} <= names
    lines = []
    if dates and arguments["cutoff"] is None and not times:
        raise InputError(f"{path}: holds dates; give the data cut-off as --cutoff")
    if (dates and arguments["cutoff"] is not None) or (times and arguments["cutoff"] is None):
        observed = read_outcomes(file, id=arguments["id_column"], **of_outcomes)
        lines.append(f"outcomes: {observed.outcomes!r}, {_ids(observed.ids)}")
    held = not (lines and form.transposed) and holds_predictions(file, form, arguments["id_column"])
    if held or (not lines and looks_transposed(file, named_by_time=False)):
        to: Unit | None = None if form.unit is None else arguments["unit"] or "D"
        predicted = predictions_in(file, None, form, to, arguments["id_column"])
        if form.grid is not None and not predicted.took_grid:
            raise InputError(f"{path}: a grid is for list columns; here the columns' names are the times")
        for name, curves in predicted.models.items():
            lines.append(f"predictions of {name!r}: {curves!r}, {_ids(predicted.ids)}")
        if predicted.ignored and not lines[0].startswith("outcomes"):
            lines.append(f"ignored columns: {listed(predicted.ignored)}")
    if not lines:
        wanted = (
            f"columns named like {arguments['columns']!r}"
            if arguments["columns"]
            else "columns named by time, or list columns"
        )
        raise InputError(
            f"{path}: holds neither outcomes (time and event, or start and event_date) nor predictions ({wanted}); "
            "'survscore formats' explains"
        )
    return lines


def _ids(ids: Any) -> str:
    return "no ids" if ids is None else f"{plural(len(ids), 'id')}, all different"


@command(short_help="Make the shell complete commands and options.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options and files.

    \b
    For this session, in bash or zsh:
      eval "$(survscore completion bash)"
    For good, put that line into ~/.bashrc or ~/.zshrc. In fish:
      survscore completion fish > ~/.config/fish/completions/survscore.fish
    """  # noqa: D301
    from click.shell_completion import get_completion_class

    from survscore.cli import cli

    completer = get_completion_class(shell)
    if completer is None:
        raise InputError(f"shell must be one of bash, zsh and fish, not {shell}")
    click.echo(completer(cli, {}, "survscore", "_SURVSCORE_COMPLETE").source())

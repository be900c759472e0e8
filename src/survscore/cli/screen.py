"""What a person at a terminal sees: progress, notes, errors of one line, tables; and where results are written."""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, shown
from survscore._validation import shown as printable
from survscore.cli.answers import width
from survscore.io.files import check_regular, replaceable, written_whole

if TYPE_CHECKING:
    from survscore.checks import Finding

LONGEST_LINE = 1000
# Messages name arguments and other Python in backticks; what is an option here is printed as such.
CODE = re.compile(r"`([^`]+)`")
ARGUMENT = re.compile(r"(?P<name>\w+)(=(?P<value>'[^']*'|\w*))?")
# What has another name here than its option, and Python that stands for an option.
OTHER_NAMES = {
    "by": "--by",
    "groups": "--groups",
    "horizons": "--horizons",
    "id": "--id",
    "lower": "--range START",
    "max_weight": "--cap",
    "storage_options": "--storage-option",
    "times": "--horizons",
    "upper": "STOP",
    "weighting": "--weighting",
    "null": "--null",
    "format": "--format",
    "unit": "--unit",
}
OTHER_CODE = {
    "times or horizons": "--horizons",
    "late_starts='drop'": "--drop-late-starts",
    "dropout=Outcomes": "--train",
    "overwrite=True": "--force",
    "null=False": "--null none",
    "from_event_probabilities": "--predicts event",
    "SurvivalCurves": "--predicts survival",
    "Outcomes.from_dates": "--cutoff",
    "IPCW()": "'ipcw'",
    "Administrative()": "'administrative'",
    "IPCW(max_weight=1)": "--weighting ipcw --cap 1",
    "pandas.to_datetime(..., format='%Y%m%d')": "--date-format %Y%m%d, for 2017.5 --date-format decimal-year, and for "
    "numbers of days --origin",
}


@cache
def _options() -> dict[str, str]:
    """Return the options of all commands by the name of their argument."""
    from survscore.cli import cli

    named = [
        (one.name, max(one.opts, key=len))
        for command in cli.commands.values()
        for one in command.params
        if isinstance(one, click.Option)
    ]
    return {str(name): option for name, option in named} | OTHER_NAMES


def as_option(code: str) -> str:
    """Return the option that some Python stands for: ``--percent`` for ``percent=True``; other code as it is.

    Examples
    --------
    >>> [as_option(code) for code in ("predicts='event'", "percent=True", "cause=", "max_weight", "y.until(end)")]
    ['--predicts event', '--percent', '--cause', '--cap', 'y.until(end)']
    """
    if code in OTHER_CODE:
        return OTHER_CODE[code]
    argument = ARGUMENT.fullmatch(code)
    option = None if argument is None else _options().get(argument["name"])
    if argument is None or option is None:
        return code
    value = (argument["value"] or "").strip("'")
    return f"{option} {value}" if value not in ("", "True") else option


def one_line(message: object) -> str:
    """Return a message on one line, in the words of the command line, without control characters."""
    text = CODE.sub(lambda found: as_option(found[1]), " ".join(str(message).split()))
    return shown(text, most=LONGEST_LINE)


def say(text: str) -> None:
    """Print a line of which users have named parts."""
    click.echo(shown(text, most=LONGEST_LINE))


def check_folder(folder: Path) -> None:
    """Find out now whether results can be written there, not when they are ready."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, not a folder")
    check_parent(folder / "anything", folder)


def check_target(path: Path, endings: tuple[str, ...], inputs: list[Path]) -> None:
    """Find out now whether a file can be written, and that it is not one that is read."""
    if not path.name.lower().endswith(endings):
        raise InputError(f"{path}: must end in {' or '.join(endings)}")
    target = replaceable(path)
    for given in inputs:
        if given.exists():
            check_regular(given)
    if target in [given.resolve() for given in inputs if given.exists()]:
        raise InputError(f"{path}: is read and can't be written too")
    check_parent(path)


def check_parent(path: Path, told: Path | None = None) -> None:
    """Raise unless a file could be made there, in the next folder above that exists; nothing is left behind."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise InputError(f"{told or path}: can't be written: {error.strerror}") from None


class Outputs:
    """Where results go: files, all of them or none, and at most one on standard output; checked before the work.

    `endings` are those of each kind of file, for its option ``--kind``; the last kind is none that can be printed.
    """

    def __init__(self, arguments: Mapping[str, Any], endings: Mapping[str, Sequence[str]], reading: list[Path]) -> None:
        asked = {name: arguments[f"{name}_path"] for name in endings if arguments[f"{name}_path"] is not None}
        self.paths = {name: path for name, path in asked.items() if str(path) != "-"}
        self.printed = [name for name in asked if name not in self.paths]
        for name, path in self.paths.items():
            check_target(path, tuple(endings[name]), reading)
        *printable, last = endings
        if len({path.resolve() for path in self.paths.values()}) < len(self.paths):
            raise InputError(f"{', '.join(f'--{name}' for name in printable)} and --{last} must be different files")
        if last in self.printed:
            raise InputError(f"--{last} can't go to standard output; name a file")
        if len(self.printed) > 1:
            raise InputError(f"only one of {' and '.join(f'--{name}' for name in printable)} can go to standard output")

    def write(
        self,
        text: Callable[[str], str],
        written: Mapping[str, Callable[[Path], None]] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> bool:
        """Write everything, and return whether standard output is taken, so that nothing else is printed there.

        Each kind is a text, unless it is `written` to files in another way; `last` is done when all others are ready.
        """
        with ExitStack() as stack:  # all are ready before the first takes its place
            for name, path in self.paths.items():
                temporary = stack.enter_context(written_whole(path))
                if name in (written or {}):
                    (written or {})[name](temporary)
                else:
                    temporary.write_text(text(name), encoding="utf-8", errors="replace")
            last()
        for path in self.paths.values():
            click.echo(f"Written: {one_line(path)}", err=True)
        for name in self.printed:
            click.echo(text(name), nl=False)
        return bool(self.printed)


@contextmanager
def progress(total: int | None) -> Iterator[Progress]:
    """Give a function (done, total, what is being done) that shows a bar on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if total is not None:
        columns[1:1] = [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, total, what: bar.update(task, completed=done, total=total or None, description=shown(what))


@contextmanager
def noted() -> Iterator[None]:
    """Print the library's warnings as notes of one line each, on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(one_line(one.message) for one in caught if issubclass(one.category, UserWarning)):
        click.echo(f"survscore: note: {text}", err=True)


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

    from survscore.checks.findings import required, verdict, with_interval

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

"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from survscore._validation import InputError
from survscore.losses import LOSSES
from survscore.weighting import IPCW, WEIGHTINGS, choices_that_fit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from survscore.io import Study
    from survscore.outcomes import Outcomes
    from survscore.weighting import Weighting

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
KNOWN = "known"  # IPCW with known censoring times, which the library has no name of its own for
MOST_TIMES = 100_000
READING = "survscore.files"  # where a command keeps which files its options have read


class Times(click.ParamType[Any]):
    """Times as ``30,90,365``, as ``START:STOP:STEP`` (the end is included), or in a text file."""

    name = "times"

    def convert(self, value: Any, param: Any, ctx: Any) -> NDArray[np.float64]:
        """Return the numbers."""
        import numpy as np

        if isinstance(value, np.ndarray):
            return value
        text = str(value)
        found = _numbers(text)
        if found is None and (_is_file(text) or not any(char in text for char in ",: ")):
            try:
                found = _numbers(Path(text).read_text(encoding="utf-8-sig"))
                ctx.meta.setdefault(READING, []).append(Path(text))
            except FileNotFoundError:
                self.fail(f"{value!r} is neither a number nor a file")
            except (OSError, UnicodeDecodeError):
                self.fail(f"{value!r} can't be read as a text file")
        if found is None:
            self.fail(f"{value!r} must be like 30,90,365 or 0:365:5 (START:STOP:STEP, going up), or a file of numbers")
        return np.array(found)


def _numbers(text: str) -> list[float] | None:
    """Return the numbers in a list, or in a range whose end is included; None, where they are none."""
    try:
        if ":" not in text:
            return [float(part) for part in text.replace(",", " ").split()] or None
        # decimal, since 0.1 + 2 * 0.1 is a little more than 0.3
        start, stop, step = (Decimal(part.strip()) for part in text.split(":"))
        if not (step > 0 and stop >= start and (stop - start) / step < MOST_TIMES):
            return None
        return [float(start + step * k) for k in range(int((stop - start) / step) + 1)]
    except (ValueError, ArithmeticError):
        return None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a name
        return False


class Range(click.ParamType[Any]):
    """A range of time as ``START:STOP``; either may be left out."""

    name = "start:stop"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float | None, float | None]:
        """Return both ends, None where one is left out."""
        if isinstance(value, tuple):
            return value
        try:
            start, stop = str(value).split(":")
            return (float(start) if start else None, float(stop) if stop else None)
        except ValueError:
            self.fail(f"{value!r} must be like 0:365, :365 or 30:")


class Cap(click.ParamType[Any]):
    """A number, or ``none``."""

    name = "number|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | None:
        """Return the number, or None."""
        if value is None or str(value).lower() == "none":
            return None
        try:
            cap = float(value)
        except ValueError:
            cap = math.inf
        if not 1 <= cap < math.inf:
            self.fail(f"{value!r} must be a number of at least 1, or none")
        return cap


def once(context: click.Context, parameter: click.Parameter, value: tuple[Any, ...]) -> Any:
    """Return the only value of an option; two are one too many, since neither is to be ignored."""
    if len(value) > 1:
        raise click.BadParameter("give it once, such as 10,20,30", context, parameter)
    return value[0] if value else None


def several(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for many options, which the help lists in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(*names: str, help: str, usual: str | None = None, **settings: Any) -> Any:
    """Return an option whose help ends with what holds if it is not given."""
    return click.option(*names, help=help if usual is None else f"{help}  [default: {usual}]", **settings)


def column(name: str, help: str, usual: str) -> Any:
    """Return an option that names a column."""
    return option(name, help=help, usual=usual, metavar="COLUMN")


def choice(*names: str, of: Sequence[str], help: str, **settings: Any) -> Any:
    """Return an option with few possible values."""
    return option(*names, help=help, type=click.Choice(of), **settings)


def times_option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return an option that takes times."""
    decorate: Callable[[Command], Command] = option(*names, type=Times(), multiple=True, callback=once, **settings)
    return decorate


reading = several(
    option("--id", "id_column", metavar="COLUMN", help="Column of ids in all files, by which rows are matched.",
           usual="id, if there is one"),
    column("--time", "Column of times.", "time"),
    column("--event", "Column that says whether the event was observed (0, 1).", "event"),
    column("--censoring-time", "Column of C*.", "censoring_time, if there is one"),
    option("--cutoff", metavar="DATE", help="Outcomes are dates; when the data end, or a column of such dates."),
    column("--start", "With --cutoff, column of dates of entry.", "start"),
    column("--event-date", "With --cutoff, column of dates of the event, empty where there was none.", "event_date"),
    column("--last-seen", "With --cutoff, when drop-outs were last seen.", "last_seen, if there is one"),
    choice("--unit", of=["D", "W", "h", "min", "s"], help="With --cutoff, the unit of time.", usual="D"),
    option("--drop-late-starts", is_flag=True, help="With --cutoff, leave out who starts later, instead of refusing."),
    times_option("--grid", help="Times of list columns whose file does not say them, as for --times."),
    option("--columns", metavar="PATTERN", help="Names of columns of predictions, such as 'surv_{time}'.",
           usual="{time} or {model}:{time}"),
    choice("--between", of=["linear", "step", "constant-hazard"], help="How to read predictions between grid points.",
           usual="as the file says, or linear"),
    choice("--beyond", of=["nan", "hold"], help="What holds after the last grid point: nothing, or the last value.",
           usual="as the file says, or nan"),
    choice("--monotone", of=["check", "keep", "enforce"], default="check", show_default=True,
           help="What to do with survival that rises with time."),
)  # fmt: skip

files = several(
    click.argument("outcomes", type=FILE),
    click.argument("predictions", nargs=-1, metavar="[[NAME=]PREDICTIONS]...", type=FILE),
    reading,
    option("--by-order", is_flag=True, help="Match rows by their order, whatever ids files have."),
    option("--allow-extra", is_flag=True, help="Leave out predictions for ids without outcome, instead of refusing."),
)  # fmt: skip

weightings = several(
    choice("-w", "--weighting", "names", of=[*WEIGHTINGS, KNOWN], multiple=True,
           help="Whom to count: everybody; those with C* >= t; all not censored, by the inverse of how likely that is; "
           "the same with known C*. Repeat it for several. Censored data have no default."),
    option("--cap", "caps", type=Cap(), multiple=True, help="Largest IPCW weight, or none. Repeat it for several."),
    choice("--divide-by", of=["weights", "n"], help="What IPCW sums are divided by.", usual="weights"),
    option("--train", type=FILE, metavar="OUTCOMES", help="IPCW weights from Kaplan-Meier of these outcomes.",
           usual="of the scored outcomes"),
    option("--censoring", type=FILE, metavar="PREDICTIONS",
           help="IPCW weights from these predictions of a censoring model, P(C* > t)."),
    choice("--censoring-between", of=["linear", "step", "constant-hazard"],
           help="How to read these between grid points.", usual="as the file says, or linear"),
)  # fmt: skip

scoring = several(
    choice("-l", "--loss", "losses", of=list(LOSSES), multiple=True, default=list(LOSSES), show_default=True,
           callback=lambda context, parameter, value: tuple(dict.fromkeys(value)), help="What a prediction costs."),
    times_option("-t", "--times", help="Evaluation times: 30,90,365 or 0:365:5, or a text file.",
                 usual="101 times up to where 5 % are still followed"),
    option("--range", "span", type=Range(), default=":", help="Over which time mean scores are taken: 0:365.",
           usual="all times"),
    option("--groups", metavar="COLUMN", help="Labels of those that belong together, for robust standard errors."),
    option("--level", type=float, default=0.95, show_default=True, help="Of the confidence intervals."),
)  # fmt: skip

results = several(
    option("--json", "json_path", type=FILE, metavar="FILE", help="Write all results as JSON; - is standard output."),
    option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write the table by time as CSV, or - as well."),
    option("--parquet", "parquet_path", type=FILE, metavar="FILE", help="Write the table by time as Parquet."),
)  # fmt: skip


def as_predictions(given: tuple[Path, ...]) -> list[tuple[str | None, Path]]:
    """Return names and paths; a name stands before an equals sign."""
    named: list[tuple[str | None, Path]] = []
    for one in given:
        name, equals, path = str(one).partition("=")
        found = equals and name and path and not one.exists()
        named.append((name, Path(path)) if found else (None, one))
    return named


def as_weightings(
    study: Study,
    names: tuple[str, ...],
    caps: tuple[float | None, ...],
    divide_by: str | None,
    train: Outcomes | None,
    usual: list[str] | None = None,
) -> list[Weighting]:
    """Return the weightings that were asked for; `usual` are those of a command that has a default."""
    if not names:
        if usual is None and not study.outcomes.event.all():
            raise InputError(
                f"--weighting must be given, since there are censored individuals. {choices_that_fit(study.outcomes)}"
            )
        names = tuple(usual or ["uncensored"])
    if train is not None and study.censoring is not None:
        raise InputError("--train and --censoring both say where IPCW weights come from; give one")
    given = {"--cap": caps, "--divide-by": divide_by, "--train": train, "--censoring": study.censoring}
    if IPCW.name not in names:
        for option, value in given.items():
            if value is not None and value != ():
                raise InputError(f"{option} is for --weighting ipcw")
    source = next((one for one in (train, study.censoring) if one is not None), "kaplan-meier")
    normalize = divide_by or "weights"
    chosen: list[Weighting] = []
    for name in dict.fromkeys(names):
        if name == IPCW.name:
            chosen += [IPCW(source, max_weight=cap, normalize=normalize) for cap in dict.fromkeys(caps or (None,))]
        else:
            chosen.append(IPCW("known") if name == KNOWN else WEIGHTINGS[name]())
    return chosen

"""Options that several commands share, how their values are read, and how help lists them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import click
from click.shell_completion import CompletionItem

from survscore._utils.dates import as_unit
from survscore._validation import InputError, plural
from survscore.inference.multiplicity import CORRECTIONS
from survscore.io.flags import split_words
from survscore.metrics import LOSSES, METRICS, as_metric
from survscore.weighting import (
    IPCW,
    WEIGHTINGS,
    Administrative,
    Projected,
    default_weightings,
    weightings_that_fit,
)
from survscore.weighting.base import NORMALIZE, Weighting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from survscore.io import Study
    from survscore.outcomes import Outcomes

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only from click 8.4 on

MOST_SHOWN = 25
#: By topic, the options that ``--help`` shows of commands that have more than `MOST_SHOWN`, and those that only
#: ``--help-all`` does.
TOPICS: dict[str, tuple[str, str]] = {
    "Input": (
        "study id time event censoring-time cutoff start event-date cause predicts columns outcomes format "
        "state results",
        "causes end reason event-reasons competing-reasons censored-reasons last-seen entry entry-date weights "
        "weight-kind date-format origin open-end drop-late-starts percent interpolation extrapolation monotone "
        "transposed long time-column "
        "grid by-order allow-extra models manifest skip-bad-files checksums storage-option add",
    ),
    "Times": ("horizons range unit predictions-unit as-of", "predicted-on"),
    "Method": (
        "weighting metric reference by groups threshold",
        "level null correction dropout population dropout-strata strata reference-curves theta cap divide-by train "
        "censoring censoring-interpolation draws seed threads memory-limit jobs",
    ),
    "Output": (
        "out full json csv toml check history init help help-all",
        "parquet junit markdown record run-id state-out title individuals layout",
    ),
}
#: What most people do not need of commands with many options of their own.
RARE = {
    "check": "by groups range columns unit",
    "report": "as-of history",
    "evaluate": "start event-date",
}


def _long_name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len).removeprefix("--")


class Command(click.Command):
    """A command whose help is grouped by topic."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.n_options > MOST_SHOWN:
            everything = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                                      callback=_show_all, help="Show all options and exit.")  # fmt: skip
            self.params.append(everything)

    @property
    def n_options(self) -> int:
        """How many options there are, beside that for help."""
        return sum(isinstance(parameter, click.Option) for parameter in self.params)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each topic; of few options, all in one list."""
        if self.n_options <= MOST_SHOWN:
            super().format_options(ctx, formatter)
            return
        everything, rare = bool(ctx.meta.get(__name__)), RARE.get(self.name or "", "").split()
        records = {_long_name(parameter): parameter.get_help_record(ctx) for parameter in self.get_params(ctx)
                   if isinstance(parameter, click.Option)}  # fmt: skip
        named = " ".join(" ".join(names) for names in TOPICS.values()).split()
        topics = {**TOPICS, "More": ("", " ".join(name for name in records if name not in named))}
        n_shown = 0
        for topic, (usual, others) in topics.items():
            wanted = {*usual.split(), *others.split()} if everything else {*usual.split()}.difference(rare)
            chosen = [record for name, record in records.items() if record is not None and name in wanted]
            n_shown += len(chosen)
            if chosen:
                with formatter.section(topic):
                    formatter.write_dl(chosen)
        if n_shown < len(records):
            formatter.write_paragraph()
            formatter.write_text(f"{plural(len(records) - n_shown, 'more option')}: {ctx.command_path} --help-all")


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[__name__] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def command(**settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return the decorator that makes a command of a function."""
    return click.command(cls=Command, **settings)


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Decorator(Protocol):
    """What adds options to a command, and leaves its type."""

    def __call__(self, command: Decorated, /) -> Decorated:
        """Return the command."""


Dropout = Literal["kaplan-meier", "refuse"]
DROPOUT: tuple[Dropout, ...] = ("kaplan-meier", "refuse")
Usual = Literal["none", "shown", "all"]  # weightings where none is asked for
KNOWN = "known"  # IPCW with known censoring times, which the library has no name of its own for
NONE = "none"  # one stratum
MOST_TIMES = 100_000
READING = "survscore.files"  # where a command keeps which files its options have read
FILE = click.Path(path_type=Path)


class Parsed(ParamType):
    """A text that a function reads; what is no text was read before."""

    def __init__(self, name: str, read: Callable[[str], Any], known: Iterable[str] = ()) -> None:
        self.name, self.read, self.known = name, read, known

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return what the text means; a ValueError says what is wrong with it."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the known values that begin so."""
        return [CompletionItem(name) for name in self.known if name.startswith(incomplete)]


class PathOr(click.Path):
    """A path, or what a function says to be something else."""

    def __init__(self, is_other: Callable[[Any], bool]) -> None:
        super().__init__(path_type=Path)
        self.is_other = is_other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or the value as it is."""
        return value if self.is_other(value) else super().convert(value, param, ctx)


def _times(text: str) -> NDArray[np.float64]:
    """Return times from ``30,90,365``, from ``START:STOP:STEP`` (the end is included), or from a text file."""
    import numpy as np

    times, path = _numbers(text), Path(text)
    try:
        is_file = path.is_file()
    except OSError:  # too long for a name
        is_file = False
    if times is None and (is_file or not any(char in text for char in ",: ")):
        try:
            if path.exists() and not is_file:
                raise ValueError(f"{text!r} is no file that can be read")
            times = _numbers(path.read_text(encoding="utf-8-sig"))
            click.get_current_context().meta.setdefault(READING, []).append(path)
        except FileNotFoundError:
            raise ValueError(f"{text!r} is neither a number nor a file") from None
        except (OSError, UnicodeDecodeError):
            raise ValueError(f"{text!r} can't be read as a text file") from None
    if times is None:
        form = "like 30,90,365 or 0:365:5 (START:STOP:STEP, going up), or a file of numbers"
        raise ValueError(f"{text!r} must be {form}")
    return np.array(times)


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


def _range(text: str) -> tuple[float | None, float | None]:
    try:
        start, stop = (float(end) if end else None for end in text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} must be like 0:365, :365 or 30:") from None
    return start, stop


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _cap(text: str) -> float | None:
    if text.lower() == NONE:
        return None
    if not 1 <= _float(text) < math.inf:
        raise ValueError(f"{text!r} must be a number of at least 1, or none")
    return float(text)


def _population(text: str) -> Literal["fixed"] | float:
    if text == "fixed":
        return "fixed"
    if not 0 <= _float(text) < math.inf:
        raise ValueError(f"{text!r} must be fixed, or a time, zero or later")
    return float(text)


METRIC = Parsed("name", lambda text: as_metric(text).name, METRICS)
TIMES = Parsed("times", _times)
RANGE = Parsed("start:stop", _range)
UNIT = Parsed("unit", lambda text: as_unit("it", text))
CAP = Parsed("number|none", _cap)
POPULATION = Parsed("fixed|time", _population)
MODEL_OR_FILE = Parsed("name|predictions", str)
#: A file of predictions, with its name and options; one that a study file describes comes as it is.
SOURCE = PathOr(lambda value: not isinstance(value, (str, Path)))
FILE_OR_ADDRESS = PathOr(lambda value: isinstance(value, str) and "://" in value)


def once(context: click.Context, parameter: click.Parameter, value: tuple[Any, ...]) -> Any:
    """Return the only value of an option; two are one too many, since neither is to be ignored."""
    if len(value) > 1:
        raise click.BadParameter("give it once, such as 10,20,30", context, parameter)
    return value[0] if value else None


def words(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Return the words of a list; None, where none was given."""
    if value is None:
        return None
    found = tuple(split_words(value))
    if not found:
        raise click.BadParameter("it must name one or more, separated by commas", context, parameter)
    return found


def several(*options: Decorator) -> Decorator:
    """Return one decorator for many options, which the help lists in this order."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(*names: str, help: str, usual: str | None = None, **settings: Any) -> Decorator:
    """Return an option whose help ends with what holds if it is not given."""
    text = help if usual is None else f"{help}  [default: {usual}]"
    return click.option(*names, help=text, show_default="default" in settings, **settings)


def number(name: str, help: str, default: int | None = None, *, least: int = 0, usual: str | None = None) -> Decorator:
    """Return an option that is a whole number."""
    settings = {} if default is None else {"default": default}
    return option(name, type=click.IntRange(min=least), help=help, usual=usual, **settings)


def folder(default: str, help: str) -> Decorator:
    """Return the option that names the folder of results."""
    return option("-o", "--out", type=click.Path(file_okay=False, path_type=Path), default=default, help=help)


def column(name: str, help: str, usual: str) -> Decorator:
    """Return an option that names a column."""
    return option(name, help=help, usual=usual, metavar="COLUMN")


def choice(*names: str, of: Sequence[str], help: str, **settings: Any) -> Decorator:
    """Return an option with few possible values."""
    return option(*names, help=help, type=click.Choice(of), **settings)


def horizons(usual: str | None = None, name: str = "times", *, required: bool = False) -> Decorator:
    """Return the option that says at which times models are judged."""
    text = "Times at which predictions are scored: 30,90,365 or 0:365:5, or a text file."
    return option("-t", "--horizons", name, type=TIMES, multiple=True, callback=once, help=text, usual=usual,
                  required=required)  # fmt: skip


def distinct(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of an option without repetitions."""
    return tuple(dict.fromkeys(value))


# Options as a table: what follows is laid out by hand.
# fmt: off
outcome_columns = several(
    column("--time", "Column of times.", "time"),
    column("--event", "Column that says whether the event was observed (0, 1; yes, no; churned, active), or its cause "
           "(0, 1, 2, ...).", "event"),
    option("--causes", metavar="NAME,...", callback=words, usual="their numbers",
           help="Names of the causes 1, 2, ... in the column of events, which may hold these names too: churn,fraud."),
    column("--censoring-time", "Column of C*.", "censoring_time, if there is one"),
    option("--cutoff", metavar="DATE", help="Outcomes are dates; the data cut-off, or a column of such dates."),
    column("--start", "With --cutoff, column of dates of entry.", "start"),
    column("--event-date", "With --cutoff, column of dates of the event, empty where there was none.", "event_date"),
    column("--last-seen", "With --cutoff, when drop-outs were last seen.", "last_seen, if there is one"),
    option("--unit", type=UNIT, usual="D",
           help="With --cutoff, the unit of time: D, W, M (calendar months), Y (calendar years), h, min, s."),
)
entry_and_weights = several(
    option("--entry", metavar="COLUMN", help="With delayed entry, column of the times at which individuals came under "
           "observation: scores count time from there."),
    option("--entry-date", metavar="COLUMN", help="The same with --cutoff: column of these dates."),
    option("--weights", metavar="COLUMN", help="Column of sample weights."),
    choice("--weight-kind", of=["probability", "importance", "frequency"], default="probability",
           help="What sample weights are; those of kind frequency stand for so many individuals each."),
)
end = option("--end", metavar="COLUMN", help="With --cutoff, column of dates of the event or another end of "
             "observation; --event or --reason says which.")
date_format = option("--date-format", metavar="FORMAT", usual="as 2017-01-29",
                     help="Format of dates: '%d.%m.%Y', decimal-year for 2017.5, epoch-seconds or epoch-milliseconds "
                     "since 1970.")
origin = option("--origin", metavar="DATE", help="Dates are numbers of days since this date.")
values = several(
    choice("--predicts", of=["survival", "event"], default="survival",
           help="Whether predictions are probabilities of being event-free, or of having had the event."),
    option("--percent", is_flag=True, help="Predictions are percentages, 0 to 100."),
    option("--predictions-unit", type=UNIT,
           help="Unit of time of predictions, converted to that of outcomes: month and others, as for --unit, which is "
           "then also for outcomes without dates."),
    choice("--interpolation", of=["linear", "step", "constant-hazard"],
           help="How to interpolate predictions between grid points.", usual="as the file says, or linear"),
    choice("--extrapolation", of=["nan", "hold"],
           help="After the last grid point: undefined (nan), or the last value.", usual="as the file says, or nan"),
    choice("--monotone", of=["check", "keep", "enforce"], default="check",
           help="How to treat survival that increases with time: reject, keep or correct it."),
)
long = option("--long", is_flag=True, usual="if ids are repeated",
              help="Files of predictions have a row per individual and time.")
time_column = option("--time-column", metavar="COLUMN", usual="time, times, t or horizon",
                     help="Times of long files of predictions, with a row per individual and time.")
columns = option("--columns", metavar="PATTERN", usual="{time}, {model}:{time} or {model}:{cause}@{time}",
                 help="Names of columns of predictions: 'surv_{time}'; '{cause}_{time}' for those by cause, '{cause}' "
                 "for lists.")
reading = several(
    option("--id", "id_column", metavar="COLUMN", help="Column of ids in all files, by which rows are matched.",
           usual="id, if there is one"),
    outcome_columns,
    entry_and_weights,
    end,
    option("--reason", metavar="COLUMN", help="Instead of --event, column that says why observation ended. Each reason "
           "in it must be named in one of the next three options."),
    option("--event-reasons", metavar="WORD,...", callback=words, help="Reasons that are the event: churn,fraud; "
           "with names if they are different causes: churn=cancelled,non-payment=unpaid."),
    option("--competing-reasons", metavar="WORD,...", callback=words,
           help="Reasons that are other events, after which the event cannot happen, each a separate cause: repaid."),
    option("--censored-reasons", metavar="WORD,...", callback=words,
           help="Reasons after which the event may still happen (drop-out, still under observation): moved,active."),
    date_format,
    origin,
    option("--open-end", metavar="DATE,...", callback=words,
           help="Dates that mean that there is no end yet: 9999-12-31. They count as missing."),
    option("--drop-late-starts", is_flag=True,
           help="With --cutoff, leave out individuals who start later, instead of rejecting the data."),
    values,
    option("--transposed", is_flag=True, help="Files of predictions have a row per time and a column per individual."),
    long,
    option("--grid", type=TIMES, multiple=True, callback=once,
           help="Times of list columns, if the file does not contain them, as for --horizons."),
    time_column,
    columns,
)
matching = several(
    reading,
    option("--by-order", is_flag=True, help="Match rows by their order, ignoring ids."),
    option("--allow-extra", is_flag=True,
           help="Leave out predictions for ids without outcome, instead of rejecting them."),
    option("--cause", metavar="NAME|all", usual="the event of --event-reasons; else tables and reports show all causes",
           help="Under competing risks, the cause to score, by its name or number; all for multi-class scores over "
           "event-free and all causes."),
)
predictions = click.argument("predictions", nargs=-1, metavar="[[NAME=]PREDICTIONS[[OPTIONS]]]...", type=SOURCE)
files = several(click.argument("outcomes", type=FILE), predictions, matching)

dropout = choice("--dropout", of=DROPOUT, usual=DROPOUT[0],
                 help="With administrative, if individuals dropped out before C*: weights for them, or an "
                 "error.")
population = option("--population", type=POPULATION, usual="at each time those with C* >= t",
                    help="With administrative, count the same individuals at all times: those with C* at or after the "
                    "last time, or at or after this time.")
caps = option("--cap", "caps", type=CAP, multiple=True, help="Largest weight for censoring (ipcw) or drop-out "
              "(administrative), or none. Repeat it for several.")
weightings = several(
    choice("-w", "--weighting", "names", of=[*WEIGHTINGS, KNOWN], multiple=True,
           help="uncensored: all individuals, if none is censored; administrative: those with C* >= t; projected: all, "
           "with projected statuses after C*; ipcw: inverse probability of censoring; known: IPCW with known C*. "
           "Repeat it for several. Comparisons show administrative and projected by default, where C* is known."),
    dropout,
    population,
    option("--dropout-strata", metavar="COLUMN|own-ranks|none", usual="own-ranks",
           help="With administrative, strata for drop-out: individuals of similar predicted risk, of the "
           "same value in a column of the outcomes, or all."),
    option("--strata", metavar="COLUMN|own-ranks|mean-ranks|none", usual="own-ranks",
           help="With projected, strata for projecting statuses: individuals of similar predicted risk, by each "
           "model's own ranks or the mean ranks of all models; of the same value in a column of the outcomes; all."),
    option("--reference-curves", type=MODEL_OR_FILE, usual="Kaplan-Meier by strata",
           help="With projected, curves for projecting statuses: the name of a model, or a file of predictions."),
    option("--theta", type=float, help="With projected, factor of the hazards of hidden statuses.", usual="1"),
    caps,
    choice("--divide-by", of=NORMALIZE, help="Divisor of weighted sums: the sum of weights, or n.", usual="weights"),
    option("--train", type=FILE, metavar="OUTCOMES",
           help="Estimate weights for censoring or drop-out by Kaplan-Meier of these outcomes.",
           usual="of the scored outcomes"),
    option("--censoring", type=FILE, metavar="PREDICTIONS",
           help="IPCW weights from these predictions of a censoring model, P(C* > t)."),
    choice("--censoring-interpolation", of=["linear", "step", "constant-hazard"],
           help="How to interpolate these between grid points.", usual="as the file says, or linear"),
)

by = option("--by", metavar="COLUMN", multiple=True, callback=distinct,
            help="Also score each segment, such as each country. Repeat it for combinations of columns.")
level = option("--level", type=float, default=0.95, help="Level of the confidence intervals.")
groups = option("--groups", metavar="COLUMN", help="Labels of individuals that depend on each other, such as a "
                "customer's subscriptions, for robust standard errors. For scores of each country or plan, use "
                "--by.")
segments = several(by, groups, level)


def metrics(help: str, default: Sequence[str]) -> Decorator:
    """Return the option that names metrics."""
    return option("-m", "--metric", "metrics", type=METRIC, multiple=True, default=default,
                  callback=distinct, help=help)


scoring = several(
    metrics("Metric to compute: brier, log, auc, oe, slope, net_benefit@0.2, concordance, crps and others.", LOSSES),
    horizons("the predicted times, if at most 20; else 101, up to where 5 % are still followed"),
    option("--range", "time_range", type=RANGE, callback=lambda context, parameter, value: value or (None, None),
           help="Range of times for mean scores: 0:365.",
           usual="all times"),
    segments,
)
NULLS: dict[str, Any] = {"kaplan-meier": True, "counted": "counted", "none": False}
null = choice("--null", of=list(NULLS), default="kaplan-meier",
              callback=lambda context, parameter, value: NULLS[value],
              help="The null model: Kaplan-Meier for all individuals, the event-free proportion of those counted, or "
              "none.")
reference = option("-r", "--reference", metavar="NAME", help="The model to compare with.", usual="the first")
correction = choice("--correction", of=CORRECTIONS, usual=CORRECTIONS[0],
                    help="With --by, how p-values allow for the number of segments.")
storage_options = option("--storage-option", "storage_options", metavar="KEY=VALUE", multiple=True,
                         callback=lambda context, parameter, value: _storage_options(value),
                         help="How to reach remote storage, such as region=eu-north-1. Never shown. Repeat it for "
                         "several.")


def as_of(*, required: bool = False) -> Decorator:
    """Return the option that names earlier days for a backtest."""
    what = "An earlier data cut-off" + ("" if required else ", to add a backtest")
    return option("--as-of", metavar="DATE", multiple=True, required=required, help=f"{what}. Repeat it for several.")


backtest = several(
    option("--predicted-on", metavar="DATE",
           help="Date on which predictions were made; they must not be later than the earlier days."),
    option("--draws", type=click.IntRange(min=0), default=200,
           help="Number of resamples of individuals for the intervals of a backtest."),
    option("--seed", type=click.IntRange(min=0), default=0, help="Seed of these draws."),
)
full = option("--full", is_flag=True, help="Print all times, metrics and weightings with all columns, instead of a "
              "short answer.")
results = several(
    option("--json", "json_path", type=FILE, metavar="FILE", help="Write all results as JSON; - is standard output."),
    option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write the table by time as CSV, or - as well."),
    option("--parquet", "parquet_path", type=FILE, metavar="FILE", help="Write the table by time as Parquet."),
)
# fmt: on

NUMBERS = re.compile(r"timeout|limit|attempts|size", re.IGNORECASE)  # storage options that are numbers


def _storage_options(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Return options by name: true and false, numbers where numbers are meant, and else text."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):  # it may hold a secret, and is not repeated
            raise InputError("--storage-option must be like region=eu-north-1: a name, an equals sign, and a value")
        found[name] = {"true": True, "false": False}.get(value.lower(), value)
        if NUMBERS.search(name):
            try:
                found[name] = int(value) if value.isdigit() else float(value)
            except ValueError:
                raise InputError(f"--storage-option {name} must be a number") from None
    return found or None


#: Which weightings use an option.
USED_BY: dict[str, tuple[type[Weighting], ...]] = {
    "dropout": (Administrative,),
    "population": (Administrative,),
    "dropout_strata": (Administrative,),
    "strata": (Projected,),
    "reference_curves": (Projected,),
    "theta": (Projected,),
    "censoring": (IPCW,),
    "cap": (IPCW, Administrative),
    "divide_by": (IPCW, Administrative),
    "train": (IPCW, Administrative),
}


def as_weightings(
    study: Study, arguments: dict[str, Any], *, train: Outcomes | None, usual: Usual, metrics: Sequence[str]
) -> list[Weighting]:
    """Return the weightings that were asked for; by default those that comparisons show, or all that fit the data.

    Strata are words or labels, None where the option was not given.
    """
    y, censoring, names = study.outcomes, study.censoring, arguments["names"]
    if not names:
        choices = weightings_that_fit(y)
        if usual != "none" and choices.default:
            names = tuple(weighting.name for weighting in default_weightings(y, map(as_metric, metrics)))
        elif usual == "all" or y.event.all():
            names = choices.names
        else:
            raise InputError(f"--weighting must be given, since there are censored individuals. {choices.sentence}")
    given = {name: arguments.get(name) is not None for name in USED_BY}
    given |= {"cap": bool(arguments["caps"]), "train": train is not None, "censoring": censoring is not None}
    _check_used(names, given, y, refuse=arguments["dropout"] == "refuse")
    caps = list(dict.fromkeys(arguments["caps"] or (None,)))
    normalize: Any = arguments["divide_by"] or "weights"
    drops = arguments["dropout"] or DROPOUT[0]
    weightings: list[Weighting] = []
    for name in dict.fromkeys(names):
        if name == IPCW.name:
            source = next((known for known in (train, censoring) if known is not None), "kaplan-meier")
            weightings += [IPCW(source, max_weight=cap, normalize=normalize) for cap in caps]
        elif name == Administrative.name and y.n_dropped_out:
            source = drops if train is None or drops == "refuse" else train
            strata = _strata(arguments["dropout_strata"])
            weightings += [
                Administrative(source, arguments["population"], cap, normalize, dropout_strata=strata) for cap in caps
            ]
        elif name == Administrative.name:
            weightings.append(Administrative(drops, arguments["population"]))
        elif name == Projected.name:
            curves = study.reference if study.reference is not None else arguments["reference_curves"]
            theta = 1.0 if arguments["theta"] is None else arguments["theta"]
            weightings.append(Projected(_strata(arguments["strata"]), curves, theta))
        else:
            weightings.append(IPCW("known") if name == KNOWN else WEIGHTINGS[name]())
    return weightings


def _strata(given: Any) -> Any:
    """Return strata as the library takes them, by default by own ranks."""
    if given is None:
        return "own-ranks"
    return None if isinstance(given, str) and given == NONE else given


def _check_used(names: tuple[str, ...], given: Mapping[str, bool], y: Outcomes, *, refuse: bool) -> None:
    """Raise if options exclude each other, or if an option was given that none of the weightings would use."""
    if given["train"] and given["censoring"]:
        raise InputError("--train and --censoring both say where IPCW weights come from; give one")
    for name, is_given in given.items():
        option_name, users = f"--{name.replace('_', '-')}", [user.name for user in USED_BY[name]]
        if is_given and not set(users) & set(names):
            raise InputError(f"{option_name} is for --weighting {' or '.join(users)}")
        # where C* is unknown, administrative scores are refused anyway
        if is_given and len(users) > 1 and y.n_dropped_out == 0 and IPCW.name not in names:
            where = "is for --weighting ipcw, or administrative with drop-outs"
            raise InputError(f"{option_name} {where}; here no individual dropped out")
    if given["strata"] and given["reference_curves"]:
        raise InputError("--strata is for Kaplan-Meier curves, which --reference-curves replaces")
    if given["dropout_strata"] and (given["train"] or refuse):
        alone = "is for weights from the scored outcomes alone: give no --train, and no --dropout refuse"
        raise InputError(f"--dropout-strata {alone}")
    if given["dropout_strata"] and y.n_dropped_out == 0:
        raise InputError("--dropout-strata is for drop-outs, and here no individual dropped out")

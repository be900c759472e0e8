"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.shell_completion import CompletionItem

from survscore._utils.dates import Unit, as_unit
from survscore._validation import InputError
from survscore.inference.multiplicity import CORRECTIONS
from survscore.io.flags import split_words
from survscore.metrics import METRICS, as_metric
from survscore.weighting import (
    IPCW,
    WEIGHTINGS,
    Administrative,
    Projected,
    default_weightings,
    weightings_that_fit,
)
from survscore.weighting.base import NORMALIZE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from survscore.io import Study
    from survscore.outcomes import Outcomes
    from survscore.weighting.base import Normalize, Weighting

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only from click 8.4 on

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
Dropout = Literal["kaplan-meier", "refuse"]
DROPOUT: tuple[Dropout, ...] = ("kaplan-meier", "refuse")
Usual = Literal["none", "shown", "all"]  # weightings where none is asked for
FIXED = "fixed"
KNOWN = "known"  # IPCW with known censoring times, which the library has no name of its own for
MOST_TIMES = 100_000
READING = "survscore.files"  # where a command keeps which files its options have read


class SourceFile(click.Path):
    """A file of predictions, with its name and options; one that a study file describes comes as it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        return super().convert(value, param, ctx) if isinstance(value, (str, Path)) else value


class MetricName(ParamType):
    """The name of a metric, with its setting where it has one: ``brier``, ``net_benefit@0.2``."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, if there is such a metric."""
        return as_metric(str(value)).name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        return [CompletionItem(name) for name in METRICS if name.startswith(incomplete)]


class Times(ParamType):
    """Times as ``30,90,365``, as ``START:STOP:STEP`` (the end is included), or in a text file."""

    name = "times"

    def convert(self, value: Any, param: Any, ctx: Any) -> NDArray[np.float64]:
        """Return the numbers."""
        import numpy as np

        if isinstance(value, np.ndarray):
            return value
        text = str(value)
        times = _numbers(text)
        if times is None and (_is_file(text) or not any(char in text for char in ",: ")):
            if Path(text).exists() and not _is_file(text):
                self.fail(f"{value!r} is no file that can be read")
            try:
                times = _numbers(Path(text).read_text(encoding="utf-8-sig"))
                ctx.meta.setdefault(READING, []).append(Path(text))
            except FileNotFoundError:
                self.fail(f"{value!r} is neither a number nor a file")
            except (OSError, UnicodeDecodeError):
                self.fail(f"{value!r} can't be read as a text file")
        if times is None:
            self.fail(f"{value!r} must be like 30,90,365 or 0:365:5 (START:STOP:STEP, going up), or a file of numbers")
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


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a name
        return False


class Range(ParamType):
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


class UnitName(ParamType):
    """A unit of time, by its sign or its word."""

    name = "unit"

    def convert(self, value: Any, param: Any, ctx: Any) -> Unit:
        """Return its sign."""
        try:
            return as_unit("it", value)
        except InputError as error:
            self.fail(str(error))


class Cap(ParamType):
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


class ModelOrFile(ParamType):
    """The name of a model, or a file of predictions."""

    name = "name|predictions"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return it as it is."""
        return str(value)


class Population(ParamType):
    """``fixed``, or a time."""

    name = "fixed|time"

    def convert(self, value: Any, param: Any, ctx: Any) -> Literal["fixed"] | float:
        """Return the word, or the number."""
        if value == FIXED:
            return "fixed"
        try:
            time = float(value)
        except ValueError:
            time = math.nan
        if not 0 <= time < math.inf:
            self.fail(f"{value!r} must be fixed, or a time, zero or later")
        return time


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


def several(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator for many options, which the help lists in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(*names: str, help: str, usual: str | None = None, **settings: Any) -> Callable[[Command], Command]:
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


def horizons(usual: str | None = None, name: str = "times", *, required: bool = False) -> Callable[[Command], Command]:
    """Return the option that says at which times models are judged."""
    text = "Times at which predictions are scored: 30,90,365 or 0:365:5, or a text file."
    return times_option("-t", "--horizons", name, help=text, usual=usual, required=required)


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
    option("--unit", type=UnitName(), usual="D",
           help="With --cutoff, the unit of time: D, W, M (calendar months), Y (calendar years), h, min, s."),
)  # fmt: skip

entry_and_weights = several(
    option("--entry", metavar="COLUMN", help="With delayed entry, column of the times at which individuals came under "
           "observation: scores count time from there."),
    option("--entry-date", metavar="COLUMN", help="The same with --cutoff: column of these dates."),
    option("--weights", metavar="COLUMN", help="Column of sample weights."),
    choice("--weight-kind", of=["probability", "importance", "frequency"], default="probability", show_default=True,
           help="What sample weights are; those of kind frequency stand for so many individuals each."),
)  # fmt: skip

values = several(
    choice("--predicts", of=["survival", "event"], default="survival", show_default=True,
           help="Whether predictions are probabilities of being event-free, or of having had the event."),
    option("--percent", is_flag=True, help="Predictions are percentages, 0 to 100."),
    option("--predictions-unit", type=UnitName(),
           help="Unit of time of predictions, converted to that of outcomes: month and others, as for --unit, which is "
           "then also for outcomes without dates."),
    choice("--interpolation", of=["linear", "step", "constant-hazard"],
           help="How to interpolate predictions between grid points.", usual="as the file says, or linear"),
    choice("--extrapolation", of=["nan", "hold"],
           help="After the last grid point: undefined (nan), or the last value.", usual="as the file says, or nan"),
    choice("--monotone", of=["check", "keep", "enforce"], default="check", show_default=True,
           help="How to treat survival that increases with time: reject, keep or correct it."),
)  # fmt: skip

reading = several(
    option("--id", "id_column", metavar="COLUMN", help="Column of ids in all files, by which rows are matched.",
           usual="id, if there is one"),
    outcome_columns,
    entry_and_weights,
    option("--end", metavar="COLUMN", help="With --cutoff, column of dates of the event or another end of observation; "
           "--event or --reason says which."),
    option("--reason", metavar="COLUMN", help="Instead of --event, column that says why observation ended. Each reason "
           "in it must be named in one of the next three options."),
    option("--event-reasons", metavar="WORD,...", callback=words, help="Reasons that are the event: churn,fraud; "
           "with names if they are different causes: churn=cancelled,non-payment=unpaid."),
    option("--competing-reasons", metavar="WORD,...", callback=words,
           help="Reasons that are other events, after which the event cannot happen, each a separate cause: repaid."),
    option("--censored-reasons", metavar="WORD,...", callback=words,
           help="Reasons after which the event may still happen (drop-out, still under observation): moved,active."),
    option("--date-format", metavar="FORMAT", help="Format of dates: '%d.%m.%Y', decimal-year for 2017.5, "
           "epoch-seconds or epoch-milliseconds since 1970.",
           usual="as 2017-01-29"),
    option("--origin", metavar="DATE", help="Dates are numbers of days since this date."),
    option("--open-end", metavar="DATE,...", callback=words,
           help="Dates that mean that there is no end yet: 9999-12-31. They count as missing."),
    option("--drop-late-starts", is_flag=True,
           help="With --cutoff, leave out individuals who start later, instead of rejecting the data."),
    values,
    option("--transposed", is_flag=True, help="Files of predictions have a row per time and a column per individual."),
    option("--long", is_flag=True, help="Files of predictions have a row per individual and time.",
           usual="if ids are repeated"),
    times_option("--grid", help="Times of list columns, if the file does not contain them, as for --horizons."),
    option("--time-column", metavar="COLUMN", usual="time, times, t or horizon",
           help="Times of long files of predictions, with a row per individual and time."),
    option("--columns", metavar="PATTERN", help="Names of columns of predictions: 'surv_{time}'; '{cause}_{time}' for "
           "those by cause, '{cause}' for lists.", usual="{time}, {model}:{time} or {model}:{cause}@{time}"),
)  # fmt: skip

matching = several(
    reading,
    option("--by-order", is_flag=True, help="Match rows by their order, ignoring ids."),
    option("--allow-extra", is_flag=True,
           help="Leave out predictions for ids without outcome, instead of rejecting them."),
    option("--cause", metavar="NAME|all", usual="the event of --event-reasons; else tables and reports show all causes",
           help="Under competing risks, the cause to score, by its name or number; all for multi-class scores over "
           "event-free and all causes."),
)  # fmt: skip

files = several(
    click.argument("outcomes", type=FILE),
    click.argument(
        "predictions", nargs=-1, metavar="[[NAME=]PREDICTIONS[[OPTIONS]]]...", type=SourceFile(path_type=Path)
    ),
    matching,
)

weightings = several(
    choice("-w", "--weighting", "names", of=[*WEIGHTINGS, KNOWN], multiple=True,
           help="uncensored: all individuals, if none is censored; administrative: those with C* >= t; projected: all, "
           "with projected statuses after C*; ipcw: inverse probability of censoring; known: IPCW with known C*. "
           "Repeat it for several. Comparisons show administrative and projected by default, where C* is known."),
    choice("--dropout", of=DROPOUT, usual=DROPOUT[0],
           help="With administrative, if individuals dropped out before C*: weights for them, or an error."),
    option("--population", type=Population(),
           help="With administrative, count the same individuals at all times: those with C* at or after the last "
           "time, or at or after this time.", usual="at each time those with C* >= t"),
    option("--dropout-strata", metavar="COLUMN|own-ranks|none", usual="own-ranks",
           help="With administrative, strata for drop-out: individuals of similar predicted risk, of the "
           "same value in a column of the outcomes, or all."),
    option("--strata", metavar="COLUMN|own-ranks|mean-ranks|none", usual="own-ranks",
           help="With projected, strata for projecting statuses: individuals of similar predicted risk, by each "
           "model's own ranks or the mean ranks of all models; of the same value in a column of the outcomes; all."),
    option("--reference-curves", type=ModelOrFile(), usual="Kaplan-Meier by strata",
           help="With projected, curves for projecting statuses: the name of a model, or a file of predictions."),
    option("--theta", type=float, help="With projected, factor of the hazards of hidden statuses.", usual="1"),
    option("--cap", "caps", type=Cap(), multiple=True,
           help="Largest weight for censoring (ipcw) or drop-out (administrative), or none. Repeat it for several."),
    choice("--divide-by", of=NORMALIZE, help="Divisor of weighted sums: the sum of weights, or n.", usual="weights"),
    option("--train", type=FILE, metavar="OUTCOMES",
           help="Estimate weights for censoring or drop-out by Kaplan-Meier of these outcomes.",
           usual="of the scored outcomes"),
    option("--censoring", type=FILE, metavar="PREDICTIONS",
           help="IPCW weights from these predictions of a censoring model, P(C* > t)."),
    choice("--censoring-interpolation", of=["linear", "step", "constant-hazard"],
           help="How to interpolate these between grid points.", usual="as the file says, or linear"),
)  # fmt: skip

segments = several(
    option("--by", metavar="COLUMN", multiple=True, callback=lambda _, __, value: tuple(dict.fromkeys(value)),
           help="Also score each segment, such as each country. Repeat it for combinations of columns."),
    option("--groups", metavar="COLUMN",
           help="Labels of individuals that depend on each other, such as a customer's subscriptions, for robust "
           "standard errors. For scores of each country or plan, use --by."),
    option("--level", type=float, default=0.95, show_default=True, help="Level of the confidence intervals."),
)  # fmt: skip

scoring = several(
    option("-m", "--metric", "metrics", type=MetricName(), multiple=True, default=["brier", "log"], show_default=True,
           callback=lambda context, parameter, value: tuple(dict.fromkeys(value)),
           help="Metric to compute: brier, log, auc, oe, slope, net_benefit@0.2, concordance, crps and others."),
    horizons("the predicted times, if at most 20; else 101, up to where 5 % are still followed"),
    option("--range", "time_range", type=Range(), default=":", help="Range of times for mean scores: 0:365.",
           usual="all times"),
    segments,
)  # fmt: skip

correction: Callable[[Command], Command] = choice("--correction", of=CORRECTIONS, usual=CORRECTIONS[0],
                    help="With --by, how p-values allow for the number of segments.")  # fmt: skip


def as_of(*, required: bool = False) -> Callable[[Command], Command]:
    """Return the option that names earlier days for a backtest."""
    what = "An earlier data cut-off" + ("" if required else ", to add a backtest")
    decorate: Callable[[Command], Command] = option(
        "--as-of", metavar="DATE", multiple=True, required=required, help=f"{what}. Repeat it for several."
    )
    return decorate


predicted_on: Callable[[Command], Command] = option(
    "--predicted-on", metavar="DATE",
    help="Date on which predictions were made; they must not be later than the earlier days.",
)  # fmt: skip
draws: Callable[[Command], Command] = option(
    "--draws", type=click.IntRange(min=0), default=200, show_default=True,
    help="Number of resamples of individuals for the intervals of a backtest.",
)  # fmt: skip
seed: Callable[[Command], Command] = option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of these draws."
)
backtest = several(as_of(), predicted_on, draws, seed)

full: Callable[[Command], Command] = option(
    "--full", is_flag=True, help="Print all times, metrics and weightings with all columns, instead of a short answer."
)
results = several(
    option("--json", "json_path", type=FILE, metavar="FILE", help="Write all results as JSON; - is standard output."),
    option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write the table by time as CSV, or - as well."),
    option("--parquet", "parquet_path", type=FILE, metavar="FILE", help="Write the table by time as Parquet."),
)  # fmt: skip


def as_weightings(
    study: Study,
    names: tuple[str, ...],
    *,
    caps: tuple[float | None, ...] = (),
    divide_by: Normalize | None = None,
    train: Outcomes | None = None,
    dropout: Dropout | None = None,
    population: Literal["fixed"] | float | None = None,
    dropout_strata: Any = None,
    strata: Any = None,
    reference_curves: str | None = None,
    theta: float | None = None,
    usual: Usual = "none",
    metrics: Sequence[str] = (),
) -> list[Weighting]:
    """Return the weightings that were asked for; by default those that comparisons show, or all that fit the data.

    Strata are words or labels, None where the option was not given.
    """
    y, censoring = study.outcomes, study.censoring
    if not names:
        choices = weightings_that_fit(y)
        if usual != "none" and choices.default:
            names = tuple(one.name for one in default_weightings(y, map(as_metric, metrics)))
        elif usual == "all" or y.event.all():
            names = choices.names
        else:
            raise InputError(f"--weighting must be given, since there are censored individuals. {choices.sentence}")
    both = train is not None and censoring is not None
    _refuse_together(both, "--train and --censoring both say where IPCW weights come from; give one")
    weighted = {"--cap": bool(caps), "--divide-by": divide_by is not None, "--train": train is not None}
    of_dropouts = {"--dropout-strata": dropout_strata is not None}
    given = {"--dropout": dropout is not None, "--population": population is not None, **of_dropouts}
    _refuse_ignored(names, (Administrative,), given)
    of_curves = {"--strata": strata is not None, "--reference-curves": reference_curves is not None}
    _refuse_ignored(names, (Projected,), {**of_curves, "--theta": theta is not None})
    _refuse_together(all(of_curves.values()), "--strata is for Kaplan-Meier curves, which --reference-curves replaces")
    elsewhere = dropout_strata is not None and (train is not None or dropout == "refuse")
    _refuse_together(elsewhere, "--dropout-strata is for weights from the scored outcomes alone: give no --train, and "
                     "no --dropout refuse")  # fmt: skip
    _refuse_ignored(names, (IPCW,), {"--censoring": censoring is not None})
    _refuse_ignored(names, (IPCW, Administrative), weighted)
    if y.n_dropped_out == 0 and IPCW.name not in names:  # where C* is unknown, administrative scores are refused anyway
        why = "is for --weighting ipcw, or administrative with drop-outs; here no individual dropped out"
        _refuse_ignored(names, (IPCW,), weighted, why)
    nobody = dropout_strata is not None and y.n_dropped_out == 0
    _refuse_together(nobody, "--dropout-strata is for drop-outs, and here no individual dropped out")
    each_cap = list(dict.fromkeys(caps or (None,)))
    normalize: Normalize = divide_by or "weights"
    weightings: list[Weighting] = []
    for name in dict.fromkeys(names):
        if name == IPCW.name:
            source = next((known for known in (train, censoring) if known is not None), "kaplan-meier")
            weightings += [IPCW(source, max_weight=cap, normalize=normalize) for cap in each_cap]
        elif name == Administrative.name and y.n_dropped_out:
            source = train if train is not None and dropout != "refuse" else dropout or "kaplan-meier"
            weightings += [
                Administrative(source, population, cap, normalize, dropout_strata=_labels(dropout_strata))
                for cap in each_cap
            ]
        elif name == Administrative.name:
            weightings.append(Administrative(dropout or "kaplan-meier", population))
        else:
            weightings.append(IPCW("known") if name == KNOWN else WEIGHTINGS[name]())
    if Projected.name in names:
        reference = study.reference if study.reference is not None else reference_curves
        projected = Projected(_labels(strata), reference, 1.0 if theta is None else theta)
        weightings = [projected if isinstance(one, Projected) else one for one in weightings]
    return weightings


NONE = "none"  # one stratum


def _labels(given: Any) -> Any:
    """Return strata as the library takes them, by default by own ranks."""
    if given is None:
        return "own-ranks"
    return None if isinstance(given, str) and given == NONE else given


def _refuse_together(given: bool, why: str) -> None:
    """Raise if options were given that exclude each other."""
    if given:
        raise InputError(why)


def _refuse_ignored(
    names: tuple[str, ...], users: tuple[type[Weighting], ...], given: Mapping[str, bool], why: str | None = None
) -> None:
    """Raise if an option was given, and none of the weightings that would use it."""
    wanted = [user.name for user in users]
    for option_name, is_given in given.items():
        if is_given and not set(wanted) & set(names):
            told = "is for --weighting " + " or ".join(wanted)
            raise InputError(f"{option_name} {why or told}")


def null(command: Command) -> Command:
    """Add the null model that models are compared with."""
    choices: dict[str, Any] = {"kaplan-meier": True, "counted": "counted", "none": False}
    return click.option(
        "--null",
        type=click.Choice(list(choices)),
        default="kaplan-meier",
        show_default=True,
        callback=lambda _, __, value: choices[value],
        help="The null model: Kaplan-Meier for all individuals, the event-free proportion of those counted, or none.",
    )(command)

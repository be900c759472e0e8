"""Reading what a command was given: files, causes of events, weightings; and how results were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from survscore._utils.jobs import Progress
from survscore._validation import InputError, several
from survscore._version import __version__
from survscore.causes import ALL_CAUSES, ALL_STATUSES, Causes
from survscore.cli import options
from survscore.cli.files import Source, shared_form, sources
from survscore.weighting.projected import RANKS

if TYPE_CHECKING:
    from survscore.io import Study
    from survscore.outcomes import Outcomes
    from survscore.weighting import Weighting

Arguments = dict[str, Any]  # of a command, by the name of the parameter
# What settings do not repeat: where results go, and what nobody is to read.
UNTOLD = ("json", "csv", "parquet", "full", "storage-option", "state-out")
REASONS = ("reason", "event_reasons", "competing_reasons", "censored_reasons")
#: Options that are words, or else name a column.
WORDS = {"strata": (*RANKS, options.NONE), "dropout_strata": ("own-ranks", options.NONE)}
DATES = ("start", "event_date", "last_seen", "entry_date", "end", "date_format", "origin", "open_end")


def read(
    arguments: Arguments, show: Progress, *, usual: options.Usual = "none", metrics: Sequence[str] = ()
) -> tuple[Study, list[Weighting]]:
    """Read all files that a command was given, and say which weightings it was asked for; of one cause of events."""
    study, weightings = read_files(arguments, show, usual=usual, metrics=metrics)
    study = with_cause(study, arguments["cause"], arguments.get("times"))
    warn_if_reversed(study, weightings, arguments)
    return study, weightings


def read_files(
    arguments: Arguments, show: Progress, *, usual: options.Usual, metrics: Sequence[str] = ()
) -> tuple[Study, list[Weighting]]:
    """Read all files that a command was given, whatever causes of events they have, and say which weightings."""
    from survscore.io import Form, read_outcomes, read_study

    form = shared_form(arguments)
    predictions = [(one.name, one.path, one.form(form)) for one in sources(arguments["predictions"])]
    _check_options(arguments, converts=any(its.unit for *_, its in predictions) or form.unit is not None)
    columns = outcome_arguments(arguments)
    censoring = None
    if arguments["censoring"] is not None:
        source = Source.of(arguments["censoring"])
        of_all = Form(form.grid, form.columns, monotone=form.monotone, unit=form.unit)
        censoring = (source.path, source.form(of_all))
    labels = {name: arguments[name] for name in WORDS if arguments[name] not in (None, *WORDS[name])}
    reference = reference_file(arguments)
    study = read_study(
        arguments["outcomes"],
        predictions or [(None, arguments["outcomes"], form)],
        id=arguments["id_column"],
        groups=arguments["groups"],
        by=tuple(dict.fromkeys((*arguments["by"], *labels.values()))),
        reference=None if reference is None else (reference, form),
        grid=form.grid,
        censoring=censoring,
        progress=show,
        **{name: arguments[name] for name in ("censoring_interpolation", "by_order", "allow_extra")},
        **columns,
    )
    train = None if arguments["train"] is None else read_outcomes(arguments["train"], id=False, **columns).outcomes
    columns_read = study.by or {}
    strata = {name: columns_read[column] for name, column in labels.items()}
    asked_for = {name: column for name, column in columns_read.items() if name in arguments["by"]}
    study = replace(study, by=asked_for or None)
    return study, options.as_weightings(study, arguments | strata, train=train, usual=usual, metrics=metrics)


def warn_if_reversed(study: Study, weightings: list[Weighting], arguments: Arguments) -> None:
    """Warn if predictions may be the opposite of what they are said to be; see `warn_if_reversed`."""
    from survscore.analysis.compare import warn_if_reversed as warn
    from survscore.engine.evaluation import Evaluation

    given = arguments.get("times")
    try:
        times = Evaluation.of(study.outcomes, study.models, metric="brier", weighting=weightings, times=given).times
    except InputError:  # the command itself will say what is wrong
        return
    warn(study.outcomes, study.models, weighting=weightings[0], times=times)


def outcome_arguments(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of `read_outcomes` that options stand for."""
    named = (
        "time",
        "event",
        "causes",
        "censoring_time",
        "entry",
        "cutoff",
        *DATES,
        *REASONS,
        "unit",
        "weights",
        "weight_kind",
    )
    late = "drop" if arguments["drop_late_starts"] else "raise"
    return {name: arguments[name] for name in named if arguments[name] is not None} | {"late_starts": late}


def _check_options(arguments: Arguments, *, converts: bool) -> None:
    """Raise if an option was given that has no use."""
    of_dates = [*DATES, "drop_late_starts", *([] if converts else ["unit"])]
    for name in of_dates if arguments["cutoff"] is None else []:
        if arguments[name]:
            raise InputError(f"--{name.replace('_', '-')} is for dates, which need --cutoff")
    for name, option in (("id_column", "--id"), ("allow_extra", "--allow-extra")):
        if arguments["by_order"] and arguments[name]:
            raise InputError(f"{option} is for matching by id, not for --by-order")
    if arguments["censoring_interpolation"] and not arguments["censoring"]:
        raise InputError("--censoring-interpolation is for --censoring")
    if arguments.get("correction") and not arguments["by"]:
        raise InputError("--correction is for --by")
    if [str(path) for path in inputs(arguments)].count("-") > 1:
        raise InputError("-, standard input, can be one file only")


def reference_file(arguments: Arguments) -> Path | None:
    """Return the file of --reference-curves; None where it names a model, or is not given."""
    given = arguments.get("reference_curves")
    return Path(given) if given is not None and Path(given).exists() else None


def inputs(arguments: Arguments) -> list[Path]:
    """Return all files that a command reads."""
    named = [source.path for source in sources(arguments["predictions"])]
    of_times = click.get_current_context().meta.get(options.READING, [])
    censoring = None if arguments["censoring"] is None else Source.of(arguments["censoring"]).path
    every = (arguments["outcomes"], *named, arguments["train"], censoring, reference_file(arguments), *of_times)
    return [path for path in every if path is not None]


def settings_of(command: str, study: Study, weightings: list[Weighting], arguments: Arguments) -> dict[str, Any]:
    """Return how results were made, as plain data."""
    from survscore.engine.inputs import curves_read

    y = study.outcomes
    return {
        "survscore": __version__,
        "command": command,
        "metrics": list(arguments["metrics"]),
        "weightings": [weighting.label(y) for weighting in weightings],
        "level": arguments["level"],
        "individuals": y.n_individuals,
        "events": y.n_of(y.event),
        **({"causes": y.n_by_cause} if y.causes else {}),
        **({"cause": y.chosen_cause} if y.interest else {}),
        **({"clock": y.clock} if y.clock else {}),
        "dropped_out": y.n_dropped_out,
        "files": study.files,
        "curves": curves_read(study.models, np.zeros(0)),
        "options": asked_options(arguments),
    }


def asked_options(arguments: Arguments) -> dict[str, Any]:
    """Return the options of a command as plain data, by their long names, in the order of its help."""
    values: dict[str, Any] = {}
    for parameter in click.get_current_context().command.params:
        name, value = max(parameter.opts, key=len).removeprefix("--"), _plain(arguments.get(str(parameter.name)))
        if isinstance(parameter, click.Option) and name not in UNTOLD and value not in (None, False, []):
            values[name] = value
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value in ((None, None), (None,)):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return ["none" if one is None else _plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def with_cause(study: Study, cause: str | None, times: Any = None) -> Study:
    """Return a study with one cause as the event of interest: the one that was named, or the event of reasons.

    Its predictions are then of this cause alone, or of all, for multi-class scores. With delayed entry they are made
    for `times` after it, those at which the command scores them. Raise where there are several causes and none is
    known.
    """
    from survscore.engine.inputs import of_cause

    y = study.outcomes
    if cause is not None and not y.causes:
        raise InputError(f"--cause {cause} is for competing causes: these outcomes have events of one kind")
    if cause is None and y.causes and not y.interest:
        raise InputError(f"{listed_causes(y)}: --cause says which one scores are of")
    wanted = None if cause is None else _named(y, cause)
    y, models = of_cause(y, study.models, wanted, times=times, multiclass=True)
    return replace(study, outcomes=y, models=models)


def with_each_cause(study: Study, cause: str | None, times: Any = None) -> list[Study]:
    """Return a study for each cause that is to be shown: the one that was named, or all, if models predict all.

    The last is then of all causes together, for multi-class scores.
    """
    from survscore.reports.study import causes_shown

    if cause is not None:
        return [with_cause(study, cause, times)]
    causes = causes_shown(study.outcomes, study.models, None)
    shown = [*causes, ALL_CAUSES] if causes else [None]
    return [with_cause(study, name, times) for name in shown]


def listed_causes(y: Outcomes) -> str:
    """Return in words which causes there are, and how many events of each."""
    counts = several([f"{name!r} ({count:,})" for name, count in y.n_by_cause.items()])
    return f"events have {len(y.causes)} causes, {counts}"


def _named(y: Outcomes, cause: str) -> str:
    """Return a cause that is given by its name or its number, or "all", as the library takes it."""
    by_number = cause not in y.causes and cause.isdigit()
    number = Causes(y.causes, y.cause_codes).number(int(cause) if by_number else cause, "--cause")
    return ALL_CAUSES if number == ALL_STATUSES else y.causes[number - 1]

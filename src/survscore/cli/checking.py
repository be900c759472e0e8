"""The command that checks scores by rules: for every night, with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError, shown
from survscore.cli import options
from survscore.cli.helping import command
from survscore.cli.options import FILE
from survscore.cli.scoring import Arguments, inputs, read, settings_of
from survscore.cli.screen import check_parent, check_target, noted, one_line, progress, say

if TYPE_CHECKING:
    from survscore.checks import Finding, History, Rule, Run
    from survscore.engine.averaging import Range

COLUMNS = ("time", "event", "causes", "censoring_time", "cutoff", "start", "event_date", "last_seen", "unit")
OF_FOLDER = ("times", "time_range", "by", "groups", "cause", "level")
OWN = ("rules", "results", "history", "record", "run_id", "init", "json_path", "junit_path", "markdown_path")


@command(short_help="Check scores by rules, with an exit code for CI.")
@click.argument("rules", type=FILE, metavar="RULES")
@click.argument("outcomes", type=FILE, required=False)
@click.argument("predictions", nargs=-1, metavar="[[NAME=]PREDICTIONS[[OPTIONS]]]...", type=FILE)
@click.option(
    "--results",
    type=FILE,
    metavar="FILE",
    help='Check what "survscore compare --json FILE" wrote, instead of OUTCOMES and PREDICTIONS.',
)
@click.option(
    "--history",
    type=FILE,
    metavar="FILE",
    help="Earlier runs, to which this one is appended (.jsonl).",
)
@click.option(
    "--record/--no-record",
    default=None,
    help="Whether this run is appended to the history, also if checks fail.  [default: record]",
)
@click.option("--run-id", metavar="ID", help="What this run is called there.  [default: date and a digest]")
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write findings as JSON; - is standard output.")
@click.option("--junit", "junit_path", type=FILE, metavar="FILE", help="Write findings as JUnit XML.")
@click.option(
    "--markdown", "markdown_path", type=FILE, metavar="FILE", help="Write findings as Markdown, or - as well."
)
@click.option("--init", is_flag=True, help="Write an example of rules to RULES, and stop.")
@options.matching
@options.weightings
@options.scoring
@options.null
def check(**arguments: Any) -> None:
    """Check scores by the rules in RULES, a TOML file: 0 all passed, 1 some failed, 2 something is wrong.

    Files and options are as for "survscore compare"; OUTCOMES may be a folder, as for "survscore evaluate". Without
    --metric and --horizons, those that the rules name are computed, too. Where C* is known, administrative and
    projected scores are computed by default, and rules about differences between models that name no weighting go by
    the recommendation, which is printed.

    \b
    Examples:
      survscore check --init rules.toml
      survscore check rules.toml play/outcomes.csv play/truth.csv play/leaking.csv
      survscore check rules.toml outcomes.csv new=a.parquet old=b.parquet --history history.jsonl
      survscore check rules.toml lake/ --by country --history history.jsonl
      survscore check rules.toml --results result.json --junit checks.xml --markdown summary.md
    """  # noqa: D301
    from survscore.checks import check as check_run
    from survscore.checks import exit_code, read_rules
    from survscore.checks.judging import summary
    from survscore.checks.output import recommended
    from survscore.cli.answers import paragraphs
    from survscore.cli.tables import console, findings_table

    if arguments["init"]:
        _write_example(arguments)
        return
    write = _writer(arguments)
    rules = read_rules(arguments["rules"])
    earlier = _earlier(arguments)
    with noted(), progress(total=1) as show:
        run = _given(arguments) if arguments["results"] is not None else _computed(arguments, rules, show)
        findings = check_run(run, rules, None if earlier is None else earlier.runs)
    if not write(run, rules, findings):
        console().print(findings_table(findings))
        recommendations = recommended(run, findings)
        if recommendations:
            click.echo(f"{paragraphs(recommendations)}\n")
        say(summary(findings))
    else:
        click.echo(summary(findings), err=True)
    if exit_code(findings):
        sys.exit(1)


def _write_example(arguments: Arguments) -> None:
    from survscore.checks import example
    from survscore.io.files import written_whole

    given = _named(but=("rules", "init"))
    if given:
        raise InputError(f"--init writes an example to {arguments['rules']} and takes nothing else, not {given[0]}")
    check_target(arguments["rules"], (".toml",), [])
    if arguments["rules"].exists():
        raise InputError(f"{arguments['rules']}: is there already, and is not overwritten")
    with written_whole(arguments["rules"]) as temporary:
        temporary.write_text(example(), encoding="utf-8")
    say(f"Written: {arguments['rules']}")


def _named(but: Sequence[str] = ()) -> list[str]:
    """Return what was given at the command line, without some parameters."""
    context = click.get_current_context()
    here = click.core.ParameterSource.COMMANDLINE
    return [
        parameter.opts[0] if isinstance(parameter, click.Option) else str(parameter.name)
        for parameter in context.command.params
        if parameter.name not in but
        and context.get_parameter_source(str(parameter.name)) is here
        and not (isinstance(parameter, click.Argument) and not context.params[str(parameter.name)])
    ]


def _given(arguments: Arguments) -> Run:
    """Return the run of a file of results."""
    from survscore.checks import read_results

    ignored = _named(but=OWN)
    if ignored:
        raise InputError(f"--results holds scores that are computed already, without use for {ignored[0]}")
    return read_results(arguments["results"], id=arguments["run_id"])


def _computed(arguments: Arguments, rules: Sequence[Rule], show: Any) -> Run:
    """Return the run of a comparison of files, with all metrics, times, ranges and references of the rules."""
    from survscore.checks import Run
    from survscore.checks.runs import check_id

    if arguments["outcomes"] is None:
        raise InputError("give OUTCOMES and PREDICTIONS, or --results")
    if arguments["run_id"] is not None:
        check_id(arguments["run_id"])
    arguments |= {"metrics": _metrics(arguments, rules)}
    ranges = list(dict.fromkeys(rule.range for rule in rules if rule.range is not None))
    make = _of_folder if arguments["outcomes"].is_dir() else _of_files
    compared, whole, settings = make(arguments, rules, ranges, show)
    models = getattr(compared, "total", compared).models
    wanted = dict.fromkeys(rule.reference for rule in rules if rule.reference is not None)
    return Run.of(
        compared,
        whole=whole,
        ranges=ranges,
        references=[name for name in wanted if name in models] or None,
        times=[rule.at for rule in rules if rule.at is not None],
        settings=settings,
        id=arguments["run_id"],
    )


def _of_files(
    arguments: Arguments, rules: Sequence[Rule], ranges: Sequence[Range], show: Any
) -> tuple[Any, Range, dict[str, Any]]:
    from survscore.analysis.compare import compare as compare_models

    study, weightings = read(arguments, show, usual="shown", metrics=arguments["metrics"])
    show(0, 1, "comparing")
    times, whole = _times(arguments, rules, study, weightings)
    compared = compare_models(
        study.outcomes, study.models, metric=arguments["metrics"], weighting=weightings, times=times,
        null=arguments["null"], groups=study.groups, level=arguments["level"], ranges=[whole, *ranges],
        by=study.by,
    )  # fmt: skip
    asked = {name: value for name, value in arguments.items() if name not in OWN}
    return compared, whole, settings_of("check", study, weightings, asked)


def _of_folder(
    arguments: Arguments, rules: Sequence[Rule], ranges: Sequence[Range], show: Any
) -> tuple[Any, Range, dict[str, Any]]:
    """Return scores of a folder of files, as "survscore evaluate" does, at the times that its columns have."""
    from survscore.scale import evaluate

    ignored = _named(but=(*OWN, "outcomes", "names", "metrics", *OF_FOLDER, *COLUMNS))
    if arguments["predictions"] or ignored:
        raise InputError(
            f"{arguments['outcomes']} is a folder, which holds outcomes and predictions, without use for "
            f"{(ignored or ['PREDICTIONS'])[0]}; survscore evaluate --json has all options, and --results checks it"
        )
    columns = {name: arguments[name] for name in COLUMNS if arguments[name] is not None}
    compared = evaluate(
        str(arguments["outcomes"]), metric=arguments["metrics"], weighting=list(arguments["names"]) or None,
        times=arguments["times"], outcomes=columns or None, ranges="any", progress=show,
        **{name: arguments[name] for name in ("by", "groups", "cause", "level")},
    )  # fmt: skip
    return compared, arguments["time_range"], {"command": "check", "files": {"source": str(arguments["outcomes"])}}


def _metrics(arguments: Arguments, rules: Sequence[Rule]) -> tuple[str, ...]:
    """Return the metrics that were asked for, or else those that the rules about this cause name."""
    from survscore.checks.rules import nearest
    from survscore.metrics import METRICS

    by_rules: list[str] = []
    cause = arguments["cause"]
    for rule in rules:
        for name in rule.metric or ("brier",):
            if name not in METRICS:
                raise rule.wrong(f"metric {shown(name)!r} is unknown; {nearest(name, METRICS)}")
            # a number may stand for any name
            if cause is None or cause.isdigit() or rule.cause in (None, cause):
                by_rules.append(name)
    asked = "-m" in _named() or not by_rules
    return tuple(arguments["metrics"]) if asked else tuple(dict.fromkeys(by_rules))


def _times(arguments: Arguments, rules: Sequence[Rule], study: Any, weightings: Any) -> tuple[Any, Range]:
    """Return the evaluation times, and over which of them the whole mean is.

    Unless times were named, those of the rules are added to the usual ones, which go on as far as ranges do; the whole
    mean stays that of the usual ones.
    """
    import numpy as np

    from survscore.engine.evaluation import Evaluation

    asked, whole = arguments["times"], arguments["time_range"]
    if asked is not None:
        return asked, whole
    usual = Evaluation.of(
        study.outcomes, study.models, metric=arguments["metrics"], weighting=weightings, level=arguments["level"]
    ).times
    earliest = [rule.range[0] for rule in rules if rule.range is not None and rule.range[0] < usual[0]]
    latest = max((rule.range[1] for rule in rules if rule.range is not None), default=0.0)
    further: list[float] = []
    if latest > usual[-1] and usual.size > 1:
        further = [*np.arange(usual[-1], latest, np.median(np.diff(usual))), latest]
    times = np.unique([*usual, *further, *earliest, *(rule.at for rule in rules if rule.at is not None)])
    if usual.size in (times.size, 1):
        return times, whole
    lower, upper = whole
    return times, (float(usual[0]) if lower is None else lower, float(usual[-1]) if upper is None else upper)


def _earlier(arguments: Arguments) -> History | None:
    """Return the history; what is broken in it is told, and that the run's name is taken is told now, not later."""
    from survscore.checks import read_history

    path = arguments["history"]
    if path is None:
        if arguments["record"] is not None:
            raise InputError("--record and --no-record are for --history")
        return None
    found = read_history(path)
    for note in found.notes:
        click.echo(f"survscore: note: {one_line(note)}", err=True)
    recording = arguments["record"] is not False
    if recording:
        check_parent(path)
    if recording and any(run.id == arguments["run_id"] for run in found.runs):
        raise InputError(f"{path}: there is a run {arguments['run_id']!r} already; --run-id names this one otherwise")
    return found


def _writer(arguments: Arguments) -> Callable[..., bool]:
    """Check now where findings go, and return what writes them and the history; it says if standard output is taken."""
    from survscore.checks import append_run, as_json, as_junit, as_markdown

    forms = {"json": as_json, "junit": as_junit, "markdown": as_markdown}
    asked = {name: arguments[f"{name}_path"] for name in forms if arguments[f"{name}_path"] is not None}
    paths = {name: path for name, path in asked.items() if str(path) != "-"}
    printed = [name for name in asked if name not in paths]
    reading = [arguments["rules"], *(path for path in (arguments["results"], arguments["history"]) if path is not None)]
    reading += inputs(arguments) if arguments["outcomes"] is not None else []
    endings = {"json": (".json",), "junit": (".xml",), "markdown": ("",)}  # CI services give summaries odd names
    for name, path in paths.items():
        check_target(path, endings[name], reading)
    if len({path.resolve() for path in paths.values()}) < len(paths):
        raise InputError("--json, --junit and --markdown must be different files")
    if "junit" in printed:
        raise InputError("--junit can't go to standard output; name a file")
    if len(printed) > 1:
        raise InputError("only one of --json and --markdown can go to standard output")

    def write(run: Run, rules: Sequence[Rule], findings: Sequence[Finding]) -> bool:
        from survscore.io.files import written_whole

        with ExitStack() as stack:  # all are ready before the first takes its place
            for name, path in paths.items():
                temporary = stack.enter_context(written_whole(path))
                temporary.write_text(forms[name](run, findings), encoding="utf-8", errors="replace")
            if arguments["history"] is not None and arguments["record"] is not False:
                append_run(arguments["history"], run, times=[rule.at for rule in rules if rule.at is not None])
        for path in paths.values():
            click.echo(f"Written: {one_line(path)}", err=True)
        for name in printed:
            click.echo(forms[name](run, findings), nl=False)
        return bool(printed)

    return write

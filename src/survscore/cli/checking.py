"""The command that checks scores by rules: for every night, with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError, shown
from survscore.cli import options
from survscore.cli.options import FILE, command
from survscore.cli.reading import Arguments, inputs, read, settings_of
from survscore.cli.screen import Outputs, check_parent, check_target, noted, one_line, progress, say

if TYPE_CHECKING:
    from survscore.checks import Rule, Run
    from survscore.engine.averaging import Range

COLUMNS = ("time", "event", "causes", "censoring_time", "cutoff", "start", "event_date", "last_seen", "unit")
OF_LAKE = ("times", "by", "groups", "cause", "level", "storage_options")
OWN = ("rules", "results", "history", "record", "run_id", "init", "json_path", "junit_path", "markdown_path")


@command(short_help="Check scores by rules, with an exit code for CI.")
@click.argument("rules", type=FILE, metavar="RULES")
@click.argument("outcomes", type=options.FILE_OR_ADDRESS, required=False)
@click.argument("predictions", nargs=-1, metavar="[[NAME=]PREDICTIONS[[OPTIONS]]]...", type=FILE)
@options.option(
    "--results", type=FILE, metavar="FILE", help='Check what "survscore compare --json FILE" wrote, instead of files.'
)
@click.option("--history", type=FILE, metavar="FILE", help="Earlier runs, to which this one is appended (.jsonl).")
@click.option(
    "--record/--no-record",
    default=None,
    help="Whether this run is appended to the history, also if checks fail.  [default: record]",
)
@click.option("--run-id", metavar="ID", help="What this run is called there.  [default: date and a digest]")
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write findings as JSON; - is standard output.")
@click.option("--junit", "junit_path", type=FILE, metavar="FILE", help="Write findings as JUnit XML.")
@click.option("--markdown", "markdown_path", type=FILE, metavar="FILE", help="Write findings as Markdown; or -.")
@click.option("--init", is_flag=True, help="Write an example of rules to RULES, and stop.")
@options.storage_options
@options.matching
@options.weightings
@options.scoring
@options.null
def check(**arguments: Any) -> None:
    """Check scores by the rules in RULES, a TOML file: 0 all passed, 1 some failed, 2 something is wrong.

    Files and options are as for "survscore compare"; OUTCOMES may be a folder or an address, as for "survscore
    evaluate". Without --metric and --horizons, those that the rules name are computed, too. Where C* is known,
    administrative and projected scores are computed by default, and rules about differences between models that name
    no weighting go by the recommendation, which is printed.

    \b
    Examples:
      survscore check --init rules.toml
      survscore check rules.toml play/outcomes.csv play/truth.csv play/leaking.csv
      survscore check rules.toml outcomes.csv new=a.parquet old=b.parquet --history history.jsonl
      survscore check rules.toml lake/ --by country --history history.jsonl
      survscore check rules.toml --results result.json --junit checks.xml --markdown summary.md
    """  # noqa: D301
    from survscore import checks
    from survscore.checks.findings import recommended, summary
    from survscore.cli.answers import paragraphs
    from survscore.cli.screen import console, findings_table

    if arguments["init"]:
        _write_example(arguments)
        return
    reading = [arguments["rules"], *(arguments[name] for name in ("results", "history") if arguments[name] is not None)]
    reading += inputs(arguments) if isinstance(arguments["outcomes"], Path) else []
    # CI services give summaries odd names
    outputs = Outputs(arguments, {"json": (".json",), "markdown": ("",), "junit": (".xml",)}, reading)
    rules = checks.read_rules(arguments["rules"])
    earlier = _earlier(arguments)
    with noted(), progress(total=1) as show:
        run = _given(arguments) if arguments["results"] is not None else _computed(arguments, rules, show)
        findings = checks.check(run, rules, earlier)
    texts = {"json": checks.as_json, "junit": checks.as_junit, "markdown": checks.as_markdown}

    def append() -> None:
        if arguments["history"] is not None and arguments["record"] is not False:
            times = [rule.at for rule in rules if rule.at is not None]
            checks.append_run(arguments["history"], run, times=times)

    if outputs.write(lambda name: texts[name](run, findings), last=append):
        click.echo(summary(findings), err=True)
    else:
        console().print(findings_table(findings))
        if sentences := recommended(run, findings):
            click.echo(f"{paragraphs(sentences)}\n")
        say(summary(findings))
    sys.exit(checks.exit_code(findings))


def _write_example(arguments: Arguments) -> None:
    from survscore.checks import example
    from survscore.io.files import written_whole

    given = _given_options(but=("rules", "init"))
    if given:
        raise InputError(f"--init writes an example to {arguments['rules']} and takes nothing else, not {given[0]}")
    check_target(arguments["rules"], (".toml",), [])
    if arguments["rules"].exists():
        raise InputError(f"{arguments['rules']}: is there already, and is not overwritten")
    with written_whole(arguments["rules"]) as temporary:
        temporary.write_text(example(), encoding="utf-8")
    say(f"Written: {arguments['rules']}")


def _given_options(but: Sequence[str] = ()) -> list[str]:
    """Return what was given at the command line, without some parameters."""
    context = click.get_current_context()
    here = click.core.ParameterSource.COMMANDLINE
    given = [
        parameter
        for parameter in context.command.params
        if parameter.name not in but and context.get_parameter_source(str(parameter.name)) is here
    ]
    # an argument that was left out comes from the command line as well
    return [
        parameter.opts[0]
        for parameter in given
        if not isinstance(parameter, click.Argument) or context.params[str(parameter.name)] not in (None, ())
    ]


def _given(arguments: Arguments) -> Run:
    """Return the run of a file of results."""
    from survscore.checks import read_results

    ignored = _given_options(but=OWN)
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
    is_lake = isinstance(arguments["outcomes"], str) or arguments["outcomes"].is_dir()
    compared, whole, settings = (_of_lake if is_lake else _of_files)(arguments, rules, show)
    return Run.of(compared, rules, whole=whole, settings=settings, id=arguments["run_id"])


def _of_files(arguments: Arguments, rules: Sequence[Rule], show: Any) -> tuple[Any, Range, dict[str, Any]]:
    from survscore.analysis.compare import compare as compare_models

    if arguments["storage_options"]:
        raise InputError("--storage-option is for an address, such as s3://lake/churn")
    study, weightings = read(arguments, show, usual="shown", metrics=arguments["metrics"])
    show(0, 1, "comparing")
    times, whole = _times(arguments, rules, study, weightings)
    ranges = [whole, *dict.fromkeys(rule.range for rule in rules if rule.range is not None)]
    compared = compare_models(
        study.outcomes,
        study.models,
        metric=arguments["metrics"],
        weighting=weightings,
        times=times,
        null=arguments["null"],
        groups=study.groups,
        level=arguments["level"],
        ranges=ranges,
        by=study.by,
    )
    asked = {name: value for name, value in arguments.items() if name not in OWN}
    return compared, whole, settings_of("check", study, weightings, asked)


def _of_lake(arguments: Arguments, rules: Sequence[Rule], show: Any) -> tuple[Any, Range, dict[str, Any]]:
    """Return scores of a folder or an address, as "survscore evaluate" does, at the times that its columns have."""
    from survscore.scale import evaluate
    from survscore.scale.files import without_secrets

    source = str(arguments["outcomes"])
    ignored = _given_options(but=(*OWN, "outcomes", "names", "metrics", "time_range", *OF_LAKE, *COLUMNS))
    if ignored:
        raise InputError(
            f"{without_secrets(source)} holds outcomes and predictions, without use for {ignored[0]}; survscore "
            "evaluate --json has all options, and --results checks it"
        )
    columns = {name: arguments[name] for name in COLUMNS if arguments[name] is not None}
    compared = evaluate(
        source,
        metric=arguments["metrics"],
        weighting=list(arguments["names"]) or None,
        outcomes=columns or None,
        ranges="any",
        progress=show,
        **{name: arguments[name] for name in OF_LAKE},
    )
    return compared, arguments["time_range"], {"command": "check", "files": {"source": without_secrets(source)}}


def _metrics(arguments: Arguments, rules: Sequence[Rule]) -> tuple[str, ...]:
    """Return the metrics that were asked for, or else those that the rules about this cause name."""
    from survscore.checks.rules import nearest
    from survscore.metrics import METRICS

    for rule in rules:
        for name in rule.metric or ():
            if name not in METRICS:
                raise rule.wrong(f"metric {shown(name)!r} is unknown; {nearest(name, METRICS)}")
    cause = arguments["cause"]
    of_cause = [rule for rule in rules if cause is None or cause.isdigit() or rule.cause in (None, cause)]
    by_rules = dict.fromkeys(name for rule in of_cause for name in rule.metric or ("brier",))
    asked = "-m" in _given_options() or not by_rules
    return tuple(arguments["metrics"] if asked else by_rules)


def _times(arguments: Arguments, rules: Sequence[Rule], study: Any, weightings: Any) -> tuple[Any, Range]:
    """Return the evaluation times, and over which of them the whole mean is.

    Unless times were named, those of the rules are added to the usual ones, which go on as far as ranges do; the whole
    mean stays that of the usual ones.
    """
    import numpy as np

    from survscore.engine.evaluation import Evaluation

    lower, upper = arguments["time_range"]
    if arguments["times"] is not None:
        return arguments["times"], (lower, upper)
    usual = Evaluation.of(
        study.outcomes, study.models, metric=arguments["metrics"], weighting=weightings, level=arguments["level"]
    ).times
    ranges = [rule.range for rule in rules if rule.range is not None]
    added = [rule.at for rule in rules if rule.at is not None] + [low for low, _ in ranges if low < usual[0]]
    latest = max((high for _, high in ranges), default=0.0)
    if latest > usual[-1] and usual.size > 1:
        added += [*np.arange(usual[-1], latest, np.median(np.diff(usual))), latest]
    times = np.unique([*usual, *added])
    if usual.size in (times.size, 1):
        return times, (lower, upper)
    return times, (float(usual[0]) if lower is None else lower, float(usual[-1]) if upper is None else upper)


def _earlier(arguments: Arguments) -> Sequence[Run] | None:
    """Return earlier runs; print notes on what is broken, and raise now if this run could not be recorded later."""
    from survscore.checks import read_history

    path = arguments["history"]
    if path is None:
        if arguments["record"] is not None:
            raise InputError("--record and --no-record are for --history")
        return None
    history = read_history(path)
    for note in history.notes:
        click.echo(f"survscore: note: {one_line(note)}", err=True)
    if arguments["record"] is not False:
        check_parent(path)
        if any(run.id == arguments["run_id"] for run in history.runs):
            taken = f"{path}: there is a run {arguments['run_id']!r} already"
            raise InputError(f"{taken}; --run-id names this one otherwise")
    return history.runs

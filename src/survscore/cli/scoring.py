"""Commands on files of outcomes and predictions: score, compare, report, simulate, formats."""

from __future__ import annotations

import dataclasses
import json
import shlex
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from survscore._utils.jobs import Progress
from survscore._validation import InputError, InterpolationWarning
from survscore.cli import files, options
from survscore.cli.options import FILE, command
from survscore.cli.reading import (
    Arguments,
    asked_options,
    inputs,
    listed_causes,
    read,
    read_files,
    settings_of,
    warn_if_reversed,
    with_each_cause,
)
from survscore.cli.screen import Outputs, check_folder, check_target, noted, one_line, progress, say

if TYPE_CHECKING:
    import pandas as pd

    from survscore.cli.answers import View
    from survscore.engine.averaging import Range
    from survscore.io import Study
    from survscore.io.writing import Ending, SimulatedStudy
    from survscore.outcomes import Outcomes
    from survscore.reports.answers import WeightingChoice
    from survscore.results.score_curve import ScoreCurve
    from survscore.weighting import Weighting

MOST_HORIZONS = 6  # at which a report shows calibration


@command(short_help="Score predictions in files.")
@options.files
@files.study
@options.weightings
@options.scoring
@options.results
def score(**arguments: Any) -> None:
    """Score predictions: OUTCOMES and one or more files of PREDICTIONS, CSV or Parquet.

    OUTCOMES has columns time, event (0 or 1) and censoring_time; or, with --cutoff, start and event_date. PREDICTIONS
    has a column for every time, holding the probability of being event-free after it, or a column of lists. Rows are
    matched by the column id, if there is one. "survscore formats" says more, and checks files.

    \b
    Examples:
      survscore simulate play
      survscore score play/outcomes.csv play/truth.csv play/leaking.csv -w administrative
      survscore score play/outcomes.csv net=play/truth.csv -w administrative -w ipcw --cap 5 --cap none
      survscore score subscriptions.csv net.parquet --cutoff 2017-01-29 -w administrative -t 0:365:5
      survscore score all.parquet -w administrative --csv scores.csv    (predictions in the same file)
      survscore score outcomes.csv net.csv -w administrative --by country --by plan
    """  # noqa: D301
    from survscore.cli.answers import paragraphs, score_text, scored_segments, segment_scores_text

    write = results_writer(arguments)
    time_range = arguments["time_range"]
    with noted(), progress(total=1) as show:
        study, weightings = read(arguments, show)
        if study.by is None:
            means, by_time = _score_frames(_scores(study, weightings, arguments, show), time_range)
        else:
            show(0, 1, "scoring")
            segments = scored_segments(study, weightings, arguments)
        advice = _advice(study, weightings, arguments)
    settings = settings_of("score", study, weightings, arguments)
    view = _view(study, arguments)
    if study.by is None:
        printed, tables = score_text(means, by_time, settings, view), {"means": means, "scores": by_time}
    else:
        printed = segment_scores_text(segments, view)
        tables = {name: segments.frames()[name] for name in ("means", "scores", "counts")}
    if not write(tables["scores"], tables, settings):
        click.echo("\n\n".join([printed, *([paragraphs(advice)] if advice else [])]))


def _view(study: Study, arguments: Arguments) -> View:
    """Return how much of the results is printed."""
    from survscore.cli.answers import View

    given = click.get_current_context().get_parameter_source
    named = {name: given(name) is not ParameterSource.DEFAULT for name in ("times", "metrics")}
    return View(arguments.get("full", False), study.time_unit, named["times"], named["metrics"])


def _scores(study: Study, weightings: list[Weighting], arguments: Arguments, show: Progress) -> dict[str, Any]:
    """Return the score curves of every model."""
    from survscore.engine.evaluation import Evaluation
    from survscore.engine.inputs import curves_read, reads_whole_curves
    from survscore.results.printing import warn_about_interpolation
    from survscore.scores import score_among

    metrics, level = arguments["metrics"], arguments["level"]
    # one grid for all models, within the reach of all of them unless times were named
    plan = Evaluation.of(
        study.outcomes, study.models, metric=metrics, weighting=weightings, times=arguments["times"], level=level
    )
    warn_about_interpolation(curves_read(study.models, plan.index.times, whole=reads_whole_curves(plan.metrics)))
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # of one model at a time, without its name
        for done, name in enumerate(study.models):
            show(done, len(study.models), f"scoring {name}")
            scores[name] = score_among(
                study.outcomes,
                study.models,
                name,
                metric=metrics,
                weighting=weightings,
                times=plan.times,
                groups=study.groups,
                level=level,
                ranges=[arguments["time_range"]],
            )
    return scores


@command(short_help="Compare models: differences, intervals, p-values.")
@options.files
@files.study
@options.weightings
@options.scoring
@options.reference
@options.null
@options.correction
@options.full
@options.results
def compare(reference: str | None, null: Any, **arguments: Any) -> None:
    """Compare models on the same individuals: which one is better, by how much, and how certain that is.

    OUTCOMES has columns time, event (0 or 1) and censoring_time; or, with --cutoff, start and event_date. PREDICTIONS
    has a column for every time, holding the probability of being event-free after it. Rows are matched by the column
    id. "survscore formats FILES" looks at your files, and proposes the command.

    Where C* is known, models are compared by projected scores (all individuals) and administrative ones (those with
    C* >= t). --full prints all times, metrics and weightings; --csv writes the differences by time, --json everything.

    \b
    Examples:
      survscore compare play/outcomes.csv play/truth.csv play/leaking.csv
      survscore compare outcomes.parquet new=a.parquet old=b.parquet -r old -t 90,365
      survscore compare subscriptions.csv new.csv old.csv --cutoff 2017-01-29 --predicts event
      survscore compare outcomes.csv new.csv old.csv --by country --csv countries.csv
    """  # noqa: D301
    import pandas as pd

    from survscore.analysis.compare import compare as compare_models
    from survscore.cli.answers import compared_text, segments_text
    from survscore.reports.comparing import Findings
    from survscore.reports.segments import SegmentFindings
    from survscore.results.long_tables import ALL
    from survscore.results.segments import SegmentedComparison

    write = results_writer(arguments)
    time_range = arguments["time_range"]
    with noted(), progress(total=1) as show:
        study, weightings = read(arguments, show, usual="shown", metrics=arguments["metrics"])
        show(0, 1, "comparing")
        compared: Any = compare_models(
            study.outcomes,
            study.models,
            metric=arguments["metrics"],
            weighting=weightings,
            times=arguments["times"],
            reference=reference,
            null=null,
            groups=study.groups,
            level=arguments["level"],
            ranges=[time_range],
            by=study.by,
        )
        segments = None
        if isinstance(compared, SegmentedComparison):
            segments = SegmentFindings.of(compared.corrected(arguments["correction"] or "holm"), time_range)
            compared = compared.total
        findings = Findings.of(compared, time_range)
        view = _view(study, arguments)
        encoding = {name for one in findings.recommendations.values() for name in one.encodes}
        advice = _advice(study, weightings, arguments, () if view.full else encoding)
    settings = {
        **settings_of("compare", study, weightings, arguments),
        "reference": compared.reference,
        "null": compared.null,
        "ranges": {metric: list(ends) for metric, ends in findings.time_ranges.items()},
    }
    frames = findings.frames() if segments is None else segments.frames()
    if findings.recommendations:
        concluded = pd.concat([one.to_frame() for one in findings.recommendations.values()], ignore_index=True)
        frames["recommendations"] = concluded.assign(**dict.fromkeys([] if segments is None else segments.by, ALL))
    if not write(frames["contrasts"], frames, settings):
        by = _concluding(weightings, study.outcomes)
        click.echo(compared_text(findings, view, advice=advice, weighting=by))
        if segments is not None:
            click.echo(f"\n{segments_text(segments, view, weighting=findings.projected or by)}")


@command(short_help="Write a report: one page that works offline.")
@options.files
@files.study
@options.weightings
@options.scoring
@click.option("-o", "--out", type=FILE, default="report.html", show_default=True, help="File of the report.")
@options.reference
@options.null
@options.correction
@options.number("--individuals", "Of how many to show the curves.", 6)
@click.option("--history", type=FILE, metavar="FILE", help='Show the runs that "survscore check --history" has stored.')
@options.as_of()
@options.backtest
@click.option("--title", default="How good are the predictions?", show_default=True, help="Of the page.")
def report(
    out: Path,
    reference: str | None,
    null: Any,
    individuals: int,
    history: Path | None,
    title: str,
    as_of: tuple[str, ...],
    predicted_on: str | None,
    draws: int,
    seed: int,
    **arguments: Any,
) -> None:
    """Write a report: one page that works offline, with charts, tables and verdicts in words.

    Files are as for "survscore score". Without --weighting, the report shows administrative and projected scores where
    C* is known, and recommends by both; where C* is unknown, it shows IPCW, with a caution.

    With outcomes as dates (--cutoff), --as-of adds a backtest as by "survscore backtest": what each score would have
    chosen, had follow-up ended earlier, by the first metric at --horizons.

    \b
    Examples:
      survscore report play/outcomes.csv play/truth.csv play/leaking.csv -o report.html
      survscore report subscriptions.csv net.parquet --cutoff 2017-01-29 -t 90,365 --title "Churn, March"
      survscore report y.csv new.csv old.csv --cutoff 2020-12-31 --as-of 2016-12-31 -t 365
    """  # noqa: D301
    from survscore.analysis.backtest import backtest
    from survscore.reports import report as make_report

    check_target(out, (".html", ".htm"), inputs(arguments))
    if history is not None and not history.exists():
        raise InputError(f"{history}: there is no such history")
    if as_of and arguments["cutoff"] is None:
        raise InputError("--as-of needs outcomes as dates: give the data cut-off as --cutoff")
    times = arguments["times"]
    if as_of and times is None:
        raise InputError("--as-of needs --horizons, the times at which predictions are scored")
    horizons = times if times is not None and len(times) <= MOST_HORIZONS else None  # of calibration
    for name in () if as_of else ("predicted_on", "draws", "seed"):
        if click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise InputError(f"--{name.replace('_', '-')} is for --as-of, an earlier data cut-off")
    with noted(), progress(total=1) as show:
        study, weightings = read_files(arguments, show, usual="all")
        studies = with_each_cause(study, arguments["cause"], arguments["times"])
        cause = studies[0].outcomes.chosen_cause or None
        warn_if_reversed(studies[0], weightings, arguments)
        tested = None
        if as_of and len(studies) > 1:
            raise InputError(f"--as-of is for one cause of events: {listed_causes(study.outcomes)}; --cause names one")
        if as_of:
            tested = backtest(
                studies[0].outcomes,
                studies[0].models,
                as_of=list(as_of),
                horizons=times,
                weighting=weightings,
                metric=arguments["metrics"][0],
                predicted_on=predicted_on,
                groups=study.groups,
                n_draws=draws,
                level=arguments["level"],
                seed=seed,
                progress=show,
            )
        made = make_report(
            study.outcomes,
            study.models,
            metric=arguments["metrics"],
            weighting=weightings,
            times=times,
            time_range=arguments["time_range"],
            reference=reference,
            null=null,
            horizons=horizons,
            groups=study.groups,
            by=study.by,
            correction=arguments["correction"] or "holm",
            level=arguments["level"],
            n_curves=individuals,
            title=title,
            ids=None if study.ids is None else study.ids.to_pylist(),
            settings={"files": study.files, "options": asked_options({**arguments, "as_of": as_of})},
            history=history,
            backtest=tested,
            unit=study.unit,
            cause=cause if len(studies) == 1 else None,
            progress=show,
        )
        made.save(out)
    parts = made.summary.get("causes", [])
    if parts:
        _say_dropped_out(made.summary)
    for summary in parts:
        say(f"Cause {summary['cause']}:" if summary["cause"] else "All causes:")
        _say_found(summary)
    if not parts:
        _say_found(made.summary, alone=True)
    if tested is not None:
        say(one_line(tested.sentence))
    say(f"Written: {out}")


def _say_dropped_out(summary: dict[str, Any]) -> None:
    from survscore.reports.comparing import share

    if summary["data"]["dropped_out"]:
        say(f"{share(summary['data']['dropped_out'], summary['data']['n'])} dropped out.")


def _say_found(summary: dict[str, Any], *, alone: bool = False) -> None:
    """Say what a report found; of one of several causes, not what is the same for all."""
    if summary["caution"]:
        say(f"Careful. {one_line(summary['caution'])}")
    if alone:
        _say_dropped_out(summary)
    judged, first_metric = summary["verdicts"], next(iter(summary["metrics"]))
    for sentence, metric, weighting in zip(judged["sentence"], judged["metric"], judged["weighting"], strict=True):
        if (metric, weighting) == (first_metric, summary["headline"]):
            say(sentence)
    if summary["around_censoring"]["ipcw"] in ("misleading", "suspect"):
        say(one_line(summary["around_censoring"]["sentences"][0]))


@command(short_help="Write example files.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@options.choice(
    "--kind",
    "study",
    of=["simple", "complicated", "independent", "constant", "competing"],
    default="simple",
    help="Kind of censoring; in the first two and the last, covariates predict C*. The last has two causes.",
)
@options.option("-n", "--individuals", type=click.IntRange(min=1), default=1000, help="Number of individuals.")
@options.number("--seed", "The same seed gives the same files.", 1)
@options.choice("--format", "ending", of=["csv", "parquet"], default="csv", help="Format of the files.")
@click.option("--cutoff", metavar="DATE", help="Write dates of entry and event, up to this date, instead of times.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def simulate(
    folder: Path, study: SimulatedStudy, individuals: int, seed: int, ending: Ending, cutoff: str | None, force: bool
) -> None:
    """Write example files into FOLDER: outcomes, covariates, and predictions, of which one is the truth.

    "truth" is the true survival. "leaking" equals it until each individual's own C*, and is zero after it: classifiers
    trained without the censored predict like this, and IPCW scores prefer it to the truth. With competing causes,
    predictions are incidences of churn and non-payment.

    \b
    Examples:
      survscore simulate play
      survscore simulate play --individuals 100000 --format parquet
      survscore simulate play --cutoff 2017-01-29
      survscore simulate causes --kind competing
    """  # noqa: D301
    from survscore.io.writing import study_files, write_study

    check_folder(folder)
    there = [path for path in study_files(folder, ending) if path.exists()]
    if there and not force:
        raise InputError(f"{there[0]}: is there already; --force replaces it")
    with progress(total=None) as show:
        show(0, 0, "simulating")
        paths = write_study(folder, study, individuals, seed, ending, cutoff)
    say("Written: " + ", ".join(str(path) for path in paths))
    dates = ["--cutoff", cutoff] if cutoff else []
    if study == "competing":
        dates += [*(["--end", "end"] if cutoff else []), "--causes", "churn,non-payment", "--cause", "churn"]
    say(f"Try: {shlex.join(['survscore', 'compare', *map(str, paths[:3]), *dates])}")


def _advice(study: Study, weightings: list[Weighting], arguments: Arguments, known: Collection[str] = ()) -> list[str]:
    """Return what to say after all tables: which models encode C*, and which of the weightings asked for to use.

    Models that are `known` to encode it are left out.
    """
    from survscore.analysis.diagnose import leak_warnings
    from survscore.engine.inputs import any_event

    y, models = any_event(study.outcomes, study.models)
    others = {name: curves for name, curves in models.items() if name not in known}
    found = leak_warnings(y, others, weightings, groups=study.groups, level=arguments["level"]) if others else {}
    sentences = list(found.values())
    if len(weightings) > 1 and arguments["names"]:
        return [*sentences, _recommended(weightings, y).sentence]
    return sentences


def _recommended(weightings: list[Weighting], y: Outcomes) -> WeightingChoice:
    from survscore.reports.answers import recommended_weighting

    return recommended_weighting(weightings, n=y.n_individuals, n_dropped_out=y.n_dropped_out)


def _concluding(weightings: list[Weighting], y: Outcomes) -> str:
    """Return the weighting, in words, by which to conclude where there is no recommendation by two."""
    return weightings[_recommended(weightings, y).position].label(y)


def results_writer(arguments: Arguments, reading: list[Path] | None = None) -> Callable[..., bool]:
    """Check now where results are to go, and return a function that writes them there when they are ready."""
    from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS

    endings = {"json": (".json",), "csv": CSV_ENDINGS, "parquet": PARQUET_ENDINGS}
    outputs = Outputs(arguments, endings, inputs(arguments) if reading is None else reading)

    def write(table: pd.DataFrame, tables: dict[str, pd.DataFrame], settings: dict[str, Any]) -> bool:
        from survscore.io import write_frame
        from survscore.io.writing import without_formulas

        def text(name: str) -> str:
            if name == "json":
                return _as_json(tables, settings)
            return str(without_formulas(table, printable=True).to_csv(index=False))

        def as_csv(path: Path) -> None:
            write_frame(path, without_formulas(table), settings=settings)

        def as_parquet(path: Path) -> None:
            write_frame(path, table, settings=settings)

        return outputs.write(text, {"csv": as_csv, "parquet": as_parquet})

    return write


def _as_json(tables: dict[str, pd.DataFrame], settings: dict[str, Any]) -> str:
    from survscore.reports.comparing import plain, records

    rows = {
        name: [{column: plain(value) for column, value in row.items()} for row in records(frame)]
        for name, frame in tables.items()
    }
    return json.dumps({"settings": settings, **rows}, indent=1, allow_nan=False) + "\n"


def _score_frames(scores: dict[str, list[ScoreCurve]], time_range: Range) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean scores, and the scores by time, of all models."""
    import pandas as pd

    from survscore.cli.answers import PARTS
    from survscore.reports.comparing import means_of
    from survscore.results.long_tables import names_of

    means, tables = [], []
    for name, curves in scores.items():
        for curve in curves:
            table = curve.to_frame()
            table.insert(list(table).index("weighting") + 1, "model", name)
            if (parts := curve.parts) is not None:
                table = table.assign(**{column: parts[column] for column in PARTS})
            tables.append(table)
            mean = means_of(curve, time_range)
            if mean is not None:
                row = {**names_of(curve.scored), "model": name, "score": mean.value}
                row |= {"se": mean.se, "lower": mean.lower, "upper": mean.upper}
                if mean.bounds is not None:
                    row |= {"bound_lower": mean.bounds[0], "bound_upper": mean.bounds[1]}
                row |= dict(zip(PARTS, mean.parts, strict=True)) if mean.parts is not None else {}
                means.append({**row, "from": mean.range[0], "to": mean.range[1]})
    return pd.DataFrame(means), pd.concat(tables, ignore_index=True)


EXPLAINED = Path(__file__).with_name("formats.txt")


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

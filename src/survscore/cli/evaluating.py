"""The command on data that do not fit in memory: evaluate."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._config import config
from survscore._validation import InputError
from survscore._version import __version__
from survscore.cli import options
from survscore.cli.files import FLAGS, SETTINGS, Source, own_options
from survscore.cli.options import FILE, choice, command, option
from survscore.cli.reading import Arguments, asked_options
from survscore.cli.scoring import results_writer
from survscore.cli.screen import check_folder, check_target, noted, one_line, progress
from survscore.metrics import LOSSES
from survscore.weighting import IPCW, Administrative, Projected, Uncensored

if TYPE_CHECKING:
    import pandas as pd

    from survscore.io import Form
    from survscore.scale import State
    from survscore.scale.work import Gathered
    from survscore.weighting import Weighting

WEIGHTINGS = (Administrative.name, Projected.name, IPCW.name, Uncensored.name)

asked = options.several(
    choice(
        "-w",
        "--weighting",
        "names",
        of=WEIGHTINGS,
        multiple=True,
        help="administrative: individuals with C* >= t; projected: all, with projected statuses after C*; ipcw: "
        "inverse probability of censoring; uncensored: all, if none is censored. Repeat it for several.",
        usual="administrative and projected, where C* is known; administrative with --state, --state-out or --add",
    ),
    option(
        "--strata",
        metavar="COLUMN",
        help="With projected, share statuses among individuals of the same label.",
        usual="strata by ranks of predictions",
    ),
    options.dropout,
    options.population,
    options.caps,
    options.metrics(
        "Metric to compute. Metrics other than brier and log need all predictions in memory at once.", LOSSES[:1]
    ),
    options.horizons("those of the columns that all models have"),
    option(
        "--range",
        "time_range",
        type=options.RANGE,
        help="Range of times for means with standard errors: 0:365, or : for all. Takes about twice as long.",
        usual="no means",
    ),
    options.level,
    options.reference,
    options.by,
    options.groups,
    options.columns,
    options.long,
    options.time_column,
    option(
        "--cause",
        metavar="NAME",
        help="Under competing risks, the cause of events that scores are of, by its name or its number.",
    ),
    option(
        "--outcomes",
        "outcomes_from",
        metavar="SOURCE",
        help="Outcomes in a table of their own, a file or a folder, joined by --id.",
        usual="with the predictions",
    ),
    option("--id", default="id", metavar="COLUMN", help="With --outcomes, column of ids."),
    option("--models", metavar="NAME", multiple=True, help="Score only these models. Repeat it for several."),
    options.outcome_columns,
    options.entry_and_weights,
    options.end,
    options.date_format,
    options.origin,
    options.values,
    choice("--format", of=["parquet", "csv", "arrow"], help="Format of the files.", usual="by their endings"),
    option(
        "--manifest",
        metavar="FILE",
        help="Text file of the names of all files, relative to the folder: one more or one less is an error.",
    ),
    option(
        "--skip-bad-files", is_flag=True, help="Leave out and report files that cannot be read, instead of stopping."
    ),
    option("--checksums", is_flag=True, help="Verify the checksums of Parquet pages."),
    options.storage_options,
    option(
        "--state",
        metavar="FOLDER",
        type=FILE,
        help="Keep the sums of finished files here: after an interruption, the same command continues.",
    ),
    option("--state-out", metavar="FILE", type=FILE, help="Write the sums of all rows, to be added to other days."),
    option(
        "--add",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help="Add sums that --state-out wrote for other files. Repeat it for several.",
    ),
    option("--threads", type=click.IntRange(min=1), help="Number of files to process at once.", usual="all cores"),
    option(
        "--memory-limit",
        metavar="SIZE",
        help="Such as 1GB: read less at once, and reject what would not fit.",
        usual="300 MB a thread, and for sums half of the memory",
    ),
)


@command(short_help="Score data in many files, without loading them.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@asked
@options.full
@options.results
def evaluate(sources: tuple[str, ...], **arguments: Any) -> None:
    """Score and compare models on data of any size: outcomes and predictions in Parquet, CSV or Arrow files.

    SOURCE is a folder, a file, a pattern such as 'day=2024-*/*.parquet', or an address: s3://bucket/folder; options in
    brackets, such as 'predictions/[predicts=event,unit=month]', are for all. Names of folders such as country=DE are
    columns too. Columns are as for one file that holds everything, see "survscore
    formats". The result does not depend, within rounding (1e-12), on how rows are cut into files.

    \b
    Examples:
      survscore evaluate predictions/
      survscore evaluate predictions/ -w administrative -w ipcw --by country --csv segments.csv
      survscore evaluate s3://lake/churn/day=2024-06-01 -w administrative --storage-option region=eu-north-1
      survscore evaluate predictions/ -w administrative --state progress/        (interrupt it, and run it again)
      survscore evaluate day-2/ -w administrative --add day-1.state --state-out days.state --json -
    """  # noqa: D301
    import pandas as pd

    from survscore._utils.dates import plural_word
    from survscore.cli.answers import View, compared_text, segment_scores_text, segments_text
    from survscore.reports.answers import recommended_weighting
    from survscore.reports.comparing import WHOLE, Findings
    from survscore.reports.segments import SegmentFindings
    from survscore.results.long_tables import ALL
    from survscore.results.segments import SegmentedComparison
    from survscore.scale.evaluating import sums_and_result, warn_about_all

    sources, form = _form(sources, arguments)
    write = _writer(sources, arguments)
    ranged = arguments["time_range"]
    as_they_are = (
        "times",
        "level",
        "by",
        "groups",
        "reference",
        "outcomes_from",
        "cause",
        "id",
        "format",
        "manifest",
        "skip_bad_files",
        "checksums",
        "state",
        "strata",
        "storage_options",
        "weights",
        "weight_kind",
    )
    with noted(), config.using(threads=arguments["threads"]), progress(total=1) as show:
        total, result = sums_and_result(
            list(sources),
            weighting=_weightings(arguments),
            metric=arguments["metrics"],
            models=_models(arguments, form),
            outcomes=_outcomes(arguments, form),
            form=form,
            ranges=None if ranged is None else "any",
            add=list(arguments["add"]),
            memory_limit=arguments["memory_limit"],
            lasting=arguments["state_out"] is not None,
            progress=show,
            **{name: arguments[name] for name in as_they_are},
        )
        warn_about_all(total, result)
        unit = arguments["unit"] or ("D" if arguments["cutoff"] else None)
        used = list(total.specification.weightings)
        recommended = recommended_weighting(used, n=total.n, n_dropped_out=total.n_dropped_out)
        segmented = result if isinstance(result, SegmentedComparison) else None
        compared: Any = result if segmented is None else segmented.total
        means = None if ranged is None else compared.integrated(*ranged, nan="stop")
        findings = Findings(compared, means, ranged or WHOLE)
        segments = None
        if segmented is not None:
            own = None if ranged is None else segmented.integrated(*ranged, nan="stop")
            segments = SegmentFindings(segmented, own)
    frames = _frames(result, means if segments is None else segments.means)
    if findings.recommendations:
        concluded = pd.concat([one.to_frame() for one in findings.recommendations.values()], ignore_index=True)
        frames["recommendations"] = concluded.assign(**dict.fromkeys(arguments["by"], ALL))
    if write(total, frames, _settings(sources, total, compared, arguments)):
        return
    view = View(arguments["full"], plural_word(unit), arguments["times"] is not None, metrics_asked=True)
    by = compared.weightings[recommended.position]
    advice = [recommended.sentence] if len(used) > 1 and not findings.recommendations else []
    click.echo(compared_text(findings, view, advice=advice, weighting=by))
    if segments is not None:
        several = len(compared.models) > 1
        click.echo(
            "\n" + (segments_text(segments, view, weighting=by) if several else segment_scores_text(segments, view))
        )


def _frames(whole: Any, means: Any) -> dict[str, pd.DataFrame]:
    """Return long tables, in which the segmenting columns come first."""
    found = {"scores": whole.scores, "contrasts": whole.contrasts}
    found |= {} if means is None else {"means": means.scores, "verdicts": means.contrasts}
    return {name: frame for name, frame in found.items() if frame is not None and len(frame)}


def _weightings(arguments: Arguments) -> list[Weighting] | None:
    names, caps = dict.fromkeys(arguments["names"]), list(dict.fromkeys(arguments["caps"])) or [None]
    for name in ("dropout", "population"):
        if arguments[name] is not None and Administrative.name not in names:
            raise InputError(f"--{name} is for --weighting {Administrative.name}")
    if arguments["caps"] and not {Administrative.name, IPCW.name} & set(names):
        raise InputError(f"--cap is for --weighting {IPCW.name} or {Administrative.name}")
    found: list[Weighting] = []
    for name in names:
        if name == Projected.name:
            found.append(Projected())
        elif name == Uncensored.name:
            found.append(Uncensored())
        elif name == IPCW.name:
            found += [IPCW(max_weight=cap) for cap in caps]
        else:
            dropout = arguments["dropout"] or options.DROPOUT[0]
            found += [Administrative(dropout, arguments["population"], cap) for cap in caps]
    return found or None


def _form(sources: tuple[str, ...], arguments: Arguments) -> tuple[tuple[str, ...], Form]:
    """Return the sources without options in brackets, and what options say that their predictions look like."""
    from survscore.io import Form

    named = ("interpolation", "extrapolation", "monotone", "predicts", "percent", "long", "time_column")
    shared = Form(**{name: arguments[name] for name in named}, unit=arguments["predictions_unit"])
    paths, forms = zip(*(_with_options(source, shared) for source in sources), strict=True)
    told = [form.settings for form in forms]
    for source, its in zip(sources, told, strict=True):
        if its != told[0]:
            raise InputError(f"{source}: all sources are read as one table, so options in brackets must be the same")
    if forms[0].columns is not None and arguments["columns"] is not None:
        raise InputError("--columns and options in brackets both say names of columns; give one")
    return paths, forms[0]


def _with_options(source: str, shared: Form) -> tuple[str, Form]:
    """Return a source without its options; brackets of a pattern such as part-[0-9] are none."""
    text, opens, inside = source.removesuffix("]").rpartition("[")
    first = re.split("[=,]", inside, maxsplit=1)[0].strip()
    if not (opens and source.endswith("]") and first in (*SETTINGS, *FLAGS)) or Path(source).exists():
        return source, shared
    return text, Source(None, Path(text), own_options(inside, source)).form(shared)


def _models(arguments: Arguments, form: Form) -> Any:
    pattern, names = arguments["columns"], list(arguments["models"])
    if form.columns is not None and names:
        raise InputError("--models picks among several, which --columns distinguishes, not options in brackets")
    if pattern is None or not names:
        return pattern or names or None
    if "{model}" not in pattern:
        raise InputError("--models picks among several, but --columns has no {model}")
    return {name: pattern.replace("{model}", name) for name in names}


def _outcomes(arguments: Arguments, form: Form) -> dict[str, Any] | None:
    """Return the columns of outcomes that were named; None: those of the usual names."""
    times = ("time", "event", "censoring_time", "causes", "entry")
    dates = ("start", "event_date", "last_seen", "entry_date", "end", "date_format", "origin", "unit")
    dated, ended = arguments["cutoff"] is not None, arguments["end"] is not None
    if ended and dated:
        for name in ("event_date", "last_seen"):
            if arguments[name] is not None:
                raise InputError(f"--{name.replace('_', '-')} and --end both say when observation ended; give one")
    if arguments["date_format"] is not None and arguments["origin"] is not None:
        raise InputError("--date-format and --origin both say how dates are written; give one")
    for name in times if dated else dates:
        useful = (name in ("event", "causes") and ended) or (name == "unit" and form.unit is not None)
        if arguments[name] is not None and not useful:
            told = "is for times, not for --cutoff" if dated else "is for dates, which need --cutoff"
            raise InputError(f"--{name.replace('_', '-')} {told}")
    named = {name: arguments[name] for name in (*times, "cutoff", *dates) if arguments[name] is not None}
    return named or None


def _writer(sources: tuple[str, ...], arguments: Arguments) -> Callable[..., bool]:
    """Check now where results are to go, and return a function that writes them and the sums."""
    from survscore.io.files import written_whole

    files = [Path(source) for source in sources if Path(source).is_file()]
    write = results_writer(arguments, files)
    state_out = arguments["state_out"]
    if state_out is not None:
        check_target(state_out, ("",), files)
    if arguments["state"] is not None:
        check_folder(arguments["state"])
    for name in ("json_path", "csv_path", "parquet_path", "state_out", "state"):
        for source in sources:
            target = arguments[name]
            if target is not None and Path(source).is_dir() and Path(source).resolve() in target.resolve().parents:
                raise InputError(f"{target}: lies in {source}, which is read; write it elsewhere")

    def write_all(total: Any, frames: dict[str, pd.DataFrame], settings: dict[str, Any]) -> bool:
        with ExitStack() as stack:
            if state_out is not None:
                stack.enter_context(written_whole(state_out)).write_bytes(total.to_bytes())
            taken = write(_beside(frames), frames, settings)
        if state_out is not None:
            click.echo(f"Written: {one_line(state_out)}", err=True)
        return taken

    return write_all


def _beside(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the scores by time, and beside each its difference to the reference."""
    scores, contrasts = frames["scores"], frames.get("contrasts")
    if contrasts is None:
        return scores
    keys = [*scores.columns[: list(scores).index("model") + 1], "time"]
    own = {name: f"difference_{name}" for name in contrasts.columns if name in scores and name not in keys}
    return scores.merge(contrasts.rename(columns=own), how="left", on=keys)


def _settings(sources: tuple[str, ...], total: State | Gathered, compared: Any, arguments: Arguments) -> dict[str, Any]:
    from survscore.scale.files import without_secrets

    skipped = [dict(zip(("file", "reason"), text.split(": ", 1), strict=False)) for text in total.skipped]
    cause, causes = compared.scored[0].cause, list(total.specification.outcomes.causes)
    return {
        "survscore": __version__,
        "command": "evaluate",
        "metrics": compared.metrics,
        "weightings": compared.weightings,
        "level": compared.level,
        "reference": compared.reference,
        "sources": [without_secrets(source) for source in sources],
        "individuals": total.n,
        **({"causes": causes} if causes else {}),
        **({"cause": cause} if cause else {}),
        "dropped_out": total.n_dropped_out,
        "files_read": len(total.files) - len(total.skipped),
        "files_skipped": len(skipped),
        "skipped_files": skipped,
        "segments": len(total.segments) if total.specification.by else None,
        "bins": total.specification.bins if isinstance(total.specification.bins, str) else None,
        "options": asked_options(arguments),
    }

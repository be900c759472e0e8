"""The commands that put all that a reviewer asks for into one table: at some horizons, and on earlier days."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from survscore._validation import InputError
from survscore.analysis.score_tables import OF_ALL_CAUSES
from survscore.causes import ALL_STATUSES
from survscore.cli import files, options
from survscore.cli.options import FILE, command
from survscore.cli.reading import inputs, read, read_files, settings_of, warn_if_reversed, with_each_cause
from survscore.cli.scoring import results_writer
from survscore.cli.screen import check_target, noted, one_line, progress
from survscore.metrics import as_metric
from survscore.results.latex import LAYOUTS, MATRIX, Layout

if TYPE_CHECKING:
    from survscore.io import Study
    from survscore.results.score_table import ScoreTable
    from survscore.weighting import Weighting

FORMATS: dict[str, Callable[..., str]] = {
    ".txt": lambda table: f"{table}\n",
    ".md": lambda table: str(table.to_markdown()),
    ".tex": lambda table, **how: str(table.to_latex(**how)),
    ".html": lambda table: str(table.to_html()),
}


@command(short_help="One table: accuracy, discrimination, calibration, benefit.")
@options.files
@files.study
@options.weightings
@options.option(
    "-m",
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Metric to compute; all for all metrics. Repeat it for several.",
    usual="brier, skill, auc, oe, slope, miscalibration, integrated_brier, crps, concordance, distribution",
)
@options.horizons("the median of follow-up", "horizons")
@options.option(
    "--threshold",
    "thresholds",
    type=float,
    multiple=True,
    metavar="RISK",
    help="Threshold probability of the net benefit. Repeat it for several.",
)
@options.segments
@options.reference
@options.null
@options.option(
    "-o",
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write the tables as text, Markdown, LaTeX or HTML: .txt, .md, .tex, .html.",
)
@options.choice(
    "--layout",
    of=LAYOUTS,
    help="With -o table.tex: the tables as printed (long, as by default), or a row for each model, for a paper.",
)
@options.results
def table(
    reference: str | None, null: Any, out: Path | None, layout: Layout | None, horizons: Any, **arguments: Any
) -> None:
    """Judge models at some horizons and over all time: estimates, intervals, differences and p-values in one table.

    Files are as for "survscore score". --csv and --parquet write one row for each metric, horizon, weighting and model.
    Under competing risks there is a table for each cause, unless --cause names one.

    \b
    Examples:
      survscore table play/outcomes.csv play/truth.csv play/leaking.csv -w administrative
      survscore table outcomes.csv new.csv old.csv -w administrative -t 90,180,365 --threshold 0.2
      survscore table outcomes.csv new.csv old.csv -w administrative -m brier -m auc -o table.tex
      survscore table outcomes.csv new.csv old.csv -o table.tex --layout "models x metrics"
    """  # noqa: D301
    import pandas as pd

    from survscore.analysis.assumptions import dropout_test
    from survscore.analysis.score_tables import score_table
    from survscore.cli.answers import dropout_sentences, paragraphs
    from survscore.engine.inputs import any_event

    write = results_writer(arguments)
    if out is not None:
        check_target(out, tuple(FORMATS), inputs(arguments))
    if layout is not None and (out is None or out.suffix.lower() != ".tex"):
        raise InputError("--layout is for -o FILE.tex")
    metrics = arguments["metrics"]
    with noted(), progress(total=1) as show:
        study, weightings = read_files(arguments, show, usual="shown")
        studies = with_each_cause(study, arguments["cause"], horizons)
        for study in studies:
            warn_if_reversed(study, weightings, {"times": horizons})
        tables = []
        if len(studies) > 1 and metrics not in ((), ("all",)) and not _of_all_causes(metrics):
            studies = studies[:-1]
        for done, study in enumerate(studies):
            show(done, len(studies), "judging")
            own, thresholds = metrics, arguments["thresholds"]
            if len(studies) > 1 and study.outcomes.interest == ALL_STATUSES:
                own, thresholds = _of_all_causes(metrics), ()
            tables.append(
                score_table(
                    study.outcomes,
                    study.models,
                    horizons=horizons,
                    thresholds=thresholds,
                    metric="all" if own == ("all",) else own or None,
                    weighting=weightings,
                    reference=reference,
                    null=null,
                    groups=study.groups,
                    by=study.by,
                    level=arguments["level"],
                    unit=study.unit,
                )
            )
    frame = pd.concat([found.to_frame() for found in tables], ignore_index=True)
    taken = write(frame, {"rows": frame}, _settings(studies, weightings, arguments, tables))
    if out is not None:
        how = {"layout": layout, "unit": studies[0].unit if layout == MATRIX else None} if layout else {}
        _write_page(out, tables, how)
    elif not taken:
        horizons = np.asarray(tables[0].settings["horizons"], dtype=np.float64)
        for study, found in zip(studies, tables, strict=True):
            test = dropout_test(*any_event(study.outcomes, study.models), horizons)
            click.echo(found.to_text(shutil.get_terminal_size().columns))
            about = dropout_sentences(test, arguments["level"])
            click.echo(paragraphs(about) if about else "")


def _of_all_causes(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the metrics that have a multi-class form; the usual ones, if all were asked for."""
    return tuple(name for name in metrics if name in OF_ALL_CAUSES)


def _settings(
    studies: Sequence[Study], weightings: list[Weighting], arguments: dict[str, Any], tables: Sequence[ScoreTable]
) -> dict[str, Any]:
    """Return how the tables were made; of several causes, none is the one that they are about."""
    settings = {**settings_of("table", studies[0], weightings, arguments), **tables[0].settings}
    return settings if len(studies) == 1 else {name: told for name, told in settings.items() if name != "cause"}


def _write_page(path: Path, tables: Sequence[ScoreTable], how: dict[str, Any]) -> None:
    from survscore.io.files import written_whole

    with written_whole(path) as temporary:
        pages = [FORMATS[path.suffix.lower()](table, **how) for table in tables]
        temporary.write_text("\n".join(pages), encoding="utf-8")
    click.echo(f"Written: {one_line(path)}", err=True)


@command(short_help="Which score would have selected the best model on earlier days.")
@options.files
@files.study
@options.weightings
@options.as_of(required=True)
@options.horizons(name="horizons", required=True)
@options.option(
    "-m",
    "--metric",
    type=options.METRIC,
    default="brier",
    help="What models are chosen by: brier, log, auc, crps and others.",
)
@options.groups
@options.backtest
@options.level
@options.option("--state", metavar="FOLDER", help="Keep finished days there: an interrupted run goes on from them.")
@options.number("--jobs", "Number of processes. It does not change results.", 1, least=1)
@options.results
def backtest(
    horizons: Any, draws: int, seed: int, predicted_on: str | None, state: str | None, jobs: int, **arguments: Any
) -> None:
    """Suppose that follow-up had ended earlier: which model each score would have selected, and how good it is.

    Files are as for "survscore score", with outcomes as dates, and predictions made at the start of each individual.
    Weightings are administrative, projected and ipcw by default; the first is what the others are compared with. --csv
    and --parquet write one row for each day, horizon and weighting.

    \b
    Examples:
      survscore backtest outcomes.csv new.csv old.csv --cutoff 2020-12-31 --as-of 2016-12-31 -t 365
      survscore backtest y.csv new.csv old.csv --cutoff 2020-12-31 --as-of 2016-12-31 --as-of 2017-12-31 -t 90,365
    """  # noqa: D301
    from survscore.analysis.backtest import backtest as run
    from survscore.analysis.backtest import weightings_tried

    write = results_writer({**arguments, "by": ()})
    if arguments["cutoff"] is None:
        raise InputError("backtest needs outcomes as dates: give the data cut-off as --cutoff")
    names = arguments["names"] or weightings_tried(as_metric(arguments["metric"]))
    asked = {**arguments, "by": (), "names": names, "times": horizons}
    asked["metrics"] = (arguments["metric"],)
    with noted(), progress(total=1) as show:
        study, weightings = read(asked, show)
        found = run(
            study.outcomes,
            study.models,
            as_of=list(arguments["as_of"]),
            horizons=horizons,
            weighting=weightings,
            metric=arguments["metric"],
            predicted_on=predicted_on,
            groups=study.groups,
            n_draws=draws,
            level=arguments["level"],
            seed=seed,
            state=state,
            n_jobs=jobs,
            progress=show,
        )
    settings = {**settings_of("backtest", study, weightings, asked), **found.settings, "sentence": found.sentence}
    frames = {"table": found.table, "scores": found.scores}
    dated = {name: frame.assign(cutoff=frame["cutoff"].astype(str)) for name, frame in frames.items()}
    if not write(dated["table"], {"summary": found.summary, **dated}, settings):
        click.echo(found.to_text(shutil.get_terminal_size().columns))

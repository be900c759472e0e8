"""The command that asks which score would have chosen the right model, had it been asked earlier."""

from __future__ import annotations

import shutil
from typing import Any

import click

from survscore._validation import InputError
from survscore.cli import options, study_files
from survscore.cli.helping import command
from survscore.cli.scoring import read, results_writer, settings_of
from survscore.cli.screen import noted, progress
from survscore.metrics import as_metric


@command(short_help="Which score would have selected the best model on earlier days.")
@options.files
@study_files.study
@options.weightings
@options.as_of(required=True)
@options.horizons(name="horizons", required=True)
@click.option("-m", "--metric", type=options.MetricName(), default="brier", show_default=True,
              help="What models are chosen by: brier, log, auc, crps and others.")  # fmt: skip
@options.predicted_on
@options.option("--groups", metavar="COLUMN", help="Labels of dependent individuals, which are resampled together.")
@options.draws
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@options.seed
@options.option("--state", metavar="FOLDER", help="Keep finished days there: an interrupted run goes on from them.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True,
              help="Number of processes. It does not change results.")  # fmt: skip
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
            study.outcomes, study.models, as_of=list(arguments["as_of"]), horizons=horizons, weighting=weightings,
            metric=arguments["metric"], predicted_on=predicted_on, groups=study.groups, n_draws=draws,
            level=arguments["level"], seed=seed, state=state, n_jobs=jobs, progress=show,
        )  # fmt: skip
    settings = {**settings_of("backtest", study, weightings, asked), **found.settings, "sentence": found.sentence}
    dated = {name: frame.assign(cutoff=frame["cutoff"].astype(str))
             for name, frame in (("table", found.table), ("scores", found.scores))}  # fmt: skip
    if not write(dated["table"], {"summary": found.summary, **dated}, settings):
        click.echo(found.to_text(shutil.get_terminal_size().columns))

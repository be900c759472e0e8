"""Commands on files of outcomes and predictions: score, compare, report, simulate."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._progress import Progress
from survscore._validation import InputError
from survscore._version import __version__
from survscore.cli import options
from survscore.cli.options import FILE
from survscore.cli.screen import check_folder, check_target, noted, one_line, progress, say

if TYPE_CHECKING:
    import pandas as pd

    from survscore.io import Study
    from survscore.weighting import Weighting

# Options whose parameter has another name; files and where results go are told elsewhere.
OPTION_NAMES = {"names": "weighting", "caps": "cap", "losses": "loss", "span": "range", "id_column": "id"}
OPTION_NAMES |= dict.fromkeys(("json_path", "csv_path", "parquet_path", "outcomes", "predictions"), "")


@click.command(short_help="Score predictions in files.")
@options.files
@options.weightings
@options.scoring
@options.results
def score(losses: tuple[str, ...], times: Any, span: Any, level: float, **given: Any) -> None:
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
    """  # noqa: D301
    from survscore.cli.tables import console, score_tables
    from survscore.scores import default_times, score_all

    write = results_writer(given)
    with noted(), progress(total=1) as show:
        study, weightings = read(given, show)
        wanted = default_times(study.outcomes, study.models.values()) if times is None else times
        total = 1 + len(study.models)
        found = {}
        for done, (name, curves) in enumerate(study.models.items()):
            show(done, total, f"scoring {name}")
            found[name] = score_all(
                study.outcomes, curves, losses=losses, weightings=weightings, times=wanted, groups=study.groups,
                level=level,
            )  # fmt: skip
        show(total - 1, total, "standard errors")
        means, table = _frames(found, span)
    settings = _settings("score", study, weightings, given | {"losses": losses, "times": times, "span": span}, level)
    shown = score_tables(means, table, len(study.outcomes), level)
    if not write(table, {"means": means, "scores": table}, settings):
        console().print(*shown, sep="\n")


@click.command(short_help="Compare models: differences, intervals, p-values.")
@options.files
@options.weightings
@options.scoring
@click.option("-r", "--reference", metavar="NAME", help="The model to compare with.  [default: the first]")
@click.option("--no-null", is_flag=True, help="Leave out the null model, Kaplan-Meier for everybody.")
@options.results
def compare(
    losses: tuple[str, ...], times: Any, span: Any, level: float, reference: str | None, no_null: bool, **given: Any
) -> None:
    """Compare models on the same individuals: differences, intervals, p-values, and where weightings disagree.

    Files are as for "survscore score". --csv and --parquet write the differences by time.

    \b
    Examples:
      survscore compare play/outcomes.csv play/truth.csv play/leaking.csv -w administrative -w ipcw
      survscore compare outcomes.parquet new=a.parquet old=b.parquet -w administrative -r old --range 0:365
      survscore compare outcomes.csv models.csv -w administrative --groups customer --json -
    """  # noqa: D301
    import pandas as pd

    from survscore.cli.tables import comparison_tables, console
    from survscore.reports.comparing import compare_losses

    write = results_writer(given)
    with noted(), progress(total=1) as show:
        study, weightings = read(given, show)
        compared = compare_losses(
            study.outcomes, study.models, losses, times=times, span=span, weighting=weightings, reference=reference,
            null=not no_null, groups=study.groups, level=level, progress=show,
        )  # fmt: skip
        tables = {name: pd.DataFrame(table) for name, table in compared.tables().items()}
    settings = {
        **_settings("compare", study, weightings, given | {"losses": losses, "times": times, "span": span}, level),
        "reference": compared.comparisons[0].reference,
        "range": None if compared.range is None else list(compared.range),
    }
    shown = comparison_tables(tables, compared.disagreements(), settings)
    if not write(tables["contrasts"], tables, settings):
        console().print(*shown, sep="\n")


@click.command(short_help="Write a report: one page that works offline.")
@options.files
@options.weightings
@options.scoring
@click.option("-o", "--out", type=FILE, default="report.html", show_default=True, help="Where to write the page.")
@click.option("-r", "--reference", metavar="NAME", help="The model to compare with.  [default: the first]")
@options.times_option("--horizons", help="At which times to show calibration: 90,365.")
@click.option("--individuals", type=click.IntRange(min=0), default=6, show_default=True,
              help="Of how many to show the curves.")  # fmt: skip
@click.option("--title", default="How good are the predictions?", show_default=True, help="Of the page.")
def report(
    losses: tuple[str, ...], times: Any, span: Any, level: float, out: Path, reference: str | None, horizons: Any,
    individuals: int, title: str, **given: Any,
) -> None:  # fmt: skip
    """Write a report: one page that works offline, with charts, tables and verdicts in words.

    Files are as for "survscore score". Without --weighting, the report shows those that the data allow, and goes
    by the administrative one if it is among them.

    \b
    Examples:
      survscore report play/outcomes.csv play/truth.csv play/leaking.csv -o report.html
      survscore report subscriptions.csv net.parquet --cutoff 2017-01-29 --horizons 90,365 --title "Churn, March"
    """  # noqa: D301
    from survscore.reports import report as make_report
    from survscore.reports.summary import fitting

    check_target(out, (".html", ".htm"), _inputs(given))
    with noted(), progress(total=1) as show:
        study, weightings = read(given, show, usual=fitting)
        made = make_report(
            study.outcomes, study.models, weightings=weightings, losses=losses, times=times, range=span,
            reference=reference, horizons=horizons, groups=study.groups, level=level, n_curves=individuals,
            ids=None if study.ids is None else study.ids.to_pylist(), title=title,
            settings={"files": study.files, "options": _asked(given)},
            progress=show,
        )  # fmt: skip
        made.save(out)
    for sentence in made.summary["verdicts"].get("sentence", [])[: len(made.summary["models"]) - 1]:
        say(sentence)
    say(f"Written: {out}")


@click.command(short_help="Write files to play with.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--study", type=click.Choice(["simple", "complicated", "independent", "constant"]), default="simple",
              show_default=True, help="Kind of censoring; in the first two, covariates tell C*.")  # fmt: skip
@click.option("-n", "--individuals", type=click.IntRange(min=1), default=1000, show_default=True, help="How many.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed, the same files.")
@click.option("--format", "ending", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
              help="Of the files.")  # fmt: skip
@click.option("--cutoff", metavar="DATE", help="Write dates of entry and event, up to this date, instead of times.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def simulate(
    folder: Path, study: str, individuals: int, seed: int, ending: str, cutoff: str | None, force: bool
) -> None:
    """Write files to play with into FOLDER: outcomes, covariates, and predictions of which the truth is known.

    "truth" is the true survival. "leaking" is the same until everybody's own C*, and zero after it: what classifiers
    learn that drop the censored, and what IPCW scores prefer to the truth.

    \b
    Examples:
      survscore simulate play
      survscore simulate play --individuals 100000 --format parquet
      survscore simulate play --cutoff 2017-01-29
    """  # noqa: D301
    from survscore.io.playing import study_files, write_study

    check_folder(folder)
    there = [path for path in study_files(folder, ending) if path.exists()]
    if there and not force:
        raise InputError(f"{there[0]}: is there already; --force replaces it")
    with progress(total=None) as show:
        show(0, 0, "simulating")
        paths = write_study(folder, study, individuals, seed, ending, cutoff)
    say("Written: " + ", ".join(str(path) for path in paths))
    dates = ["--cutoff", cutoff] if cutoff else []
    command = ["survscore", "compare", *map(str, paths[:3]), "-w", "administrative", "-w", "ipcw", *dates]
    say(f"Try: {shlex.join(command)}")


def read(
    given: dict[str, Any], show: Progress, usual: Callable[[Any], list[str]] | None = None
) -> tuple[Study, list[Weighting]]:
    """Read all files that a command was given, and say which weightings it was asked for."""
    from survscore.io import read_outcomes, read_study

    dates = ("start", "event_date", "last_seen", "unit", "drop_late_starts")
    for name in dates if given["cutoff"] is None else ():
        if given[name]:
            raise InputError(f"--{name.replace('_', '-')} is for dates, which need --cutoff")
    for name, option in (("id_column", "--id"), ("allow_extra", "--allow-extra")):
        if given["by_order"] and given[name]:
            raise InputError(f"{option} is for matching by id, not for --by-order")
    if given["censoring_between"] and not given["censoring"]:
        raise InputError("--censoring-between is for --censoring")
    columns = {name: given[name] for name in ("time", "event", "censoring_time", "cutoff", *dates[:3])}
    columns |= {"unit": given["unit"] or "D", "late_starts": "drop" if given["drop_late_starts"] else "raise"}
    as_they_are = ("censoring", "censoring_between", "by_order", "allow_extra", "grid", "columns", "between", "beyond")
    study = read_study(
        given["outcomes"],
        options.as_predictions(given["predictions"]),
        id=given["id_column"],
        groups=given["groups"],
        monotone=given["monotone"],
        progress=show,
        **{name: given[name] for name in as_they_are},
        **columns,
    )
    train = None if given["train"] is None else read_outcomes(given["train"], id=False, **columns).outcomes
    usual_names = None if usual is None else usual(study.outcomes)
    return study, options.as_weightings(study, given["names"], given["caps"], given["divide_by"], train, usual_names)


def results_writer(given: dict[str, Any]) -> Callable[..., bool]:
    """Check now where results are to go, and return a function that writes them there when they are ready.

    The function says whether standard output is taken, so that nothing else is printed there.
    """
    from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS

    endings = {"json": (".json",), "csv": CSV_ENDINGS, "parquet": PARQUET_ENDINGS}
    asked = {name: given[f"{name}_path"] for name in endings if given[f"{name}_path"] is not None}
    paths = {name: path for name, path in asked.items() if str(path) != "-"}
    printed = [name for name in asked if name not in paths]
    for name, path in paths.items():
        check_target(path, endings[name], _inputs(given))
    if "parquet" in printed:
        raise InputError("--parquet can't go to standard output; name a file")
    if len(printed) > 1:
        raise InputError("only one of --json and --csv can go to standard output")

    def write(table: pd.DataFrame, tables: dict[str, pd.DataFrame], settings: dict[str, Any]) -> bool:
        from survscore._files import written_whole
        from survscore.io import write_frame

        with ExitStack() as stack:  # all are ready before the first takes its place
            for name, path in paths.items():
                temporary = stack.enter_context(written_whole(path))
                if name == "json":
                    temporary.write_text(_as_json(tables, settings), encoding="utf-8")
                else:
                    write_frame(temporary, table, settings=settings)
        for path in paths.values():
            click.echo(f"Written: {one_line(path)}", err=True)
        if printed:
            click.echo(_as_json(tables, settings) if printed == ["json"] else table.to_csv(index=False), nl=False)
        return bool(printed)

    return write


def _as_json(tables: dict[str, pd.DataFrame], settings: dict[str, Any]) -> str:
    from survscore.reports.comparing import as_table

    records = {}
    for name, frame in tables.items():
        columns = as_table(frame)
        records[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps({"settings": settings, **records}, indent=1, allow_nan=False) + "\n"


def _inputs(given: dict[str, Any]) -> list[Path]:
    """Return all files that a command reads."""
    named = [path for _, path in options.as_predictions(given["predictions"])]
    of_times = click.get_current_context().meta.get(options.READING, [])
    every = (given["outcomes"], *named, given["train"], given["censoring"], *of_times)
    return [path for path in every if path is not None]


def _frames(found: dict[str, Any], span: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean scores, and the scores by time, of all models."""
    import pandas as pd

    from survscore.reports.comparing import WHOLE

    means, tables = [], []
    for name, curves in found.items():
        for curve in curves:
            table = curve.to_frame()
            table.insert(2, "model", name)
            tables.append(table)
            if curve.times.size > 1 or span != WHOLE:
                mean = curve.integrated(*span, nan="stop")
                means.append(
                    {"loss": mean.loss, "weighting": mean.weighting, "model": name, "score": mean.value, "se": mean.se,
                     "lower": mean.lower, "upper": mean.upper, "from": mean.range[0], "to": mean.range[1]}
                )  # fmt: skip
    return pd.DataFrame(means), pd.concat(tables, ignore_index=True)


def _settings(
    command: str, study: Study, weightings: list[Weighting], given: dict[str, Any], level: float
) -> dict[str, Any]:
    return {
        "survscore": __version__,
        "command": command,
        "weightings": [str(one) for one in weightings],
        "losses": list(given["losses"]),
        "level": level,
        "individuals": len(study.outcomes),
        "events": int(study.outcomes.event.sum()),
        "files": study.files,
        "curves": {name: {"between": curves.between, "beyond": curves.beyond} for name, curves in study.models.items()},
        "options": _asked(given),
    }


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, as plain data."""
    named = {OPTION_NAMES.get(name, name.replace("_", "-")): _plain(value) for name, value in given.items()}
    return {name: value for name, value in named.items() if name and value not in (None, False, [])}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value in ((None, None), (None,)):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return ["none" if one is None else _plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value

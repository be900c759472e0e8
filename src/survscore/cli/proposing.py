"""Which command reads some files: a proposal by names and values of some rows, and what is in question."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from survscore._utils.dates import Unit, word
from survscore._utils.jobs import silent
from survscore._validation import InputError, several, shown
from survscore.cli.files import shared_form, sources
from survscore.cli.reading import outcome_arguments, read_files, warn_if_reversed, with_cause
from survscore.cli.screen import one_line
from survscore.io.flags import joined_words
from survscore.io.guesses import Observed, Predicted, id_column, observed_columns, predicted_columns
from survscore.io.outcomes import ID, read_outcomes
from survscore.io.predictions import predictions_in
from survscore.io.profiles import Doubt, Profile, Sample, plain, profile, sample
from survscore.io.study import longest_follow_up
from survscore.io.tables import TableFile, listed
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW, Administrative, weightings_that_fit

OUTCOMES, PREDICTIONS = "OUTCOMES", "PREDICTIONS"  # for files that were not given
MOST_COLUMNS = 5000
MOST_ROWS, WIDEST = 60, 40  # of columns that are printed
FITS = (1 / 3, 1.5)  # how far predictions reach, by the longest follow-up, where both seem to have the same unit
# What warnings say that is no reason to doubt: what words mean, and that numbers are rounded.
HARMLESS = ("is the event", "is no event", "treated as rounding")
# Options that `survscore evaluate` has, which reads folders.
OF_FOLDERS = (
    "time",
    "event",
    "censoring-time",
    "cutoff",
    "start",
    "event-date",
    "last-seen",
    "end",
    "date-format",
    "origin",
    "unit",
    "columns",
    "id",
    "predicts",
    "percent",
    "predictions-unit",
    "cause",
    "causes",
)
Options = dict[str, Any]  # by long name without dashes


@dataclass(frozen=True, eq=False)
class FileGuess:
    """What one file looks like."""

    sample: Sample
    profiles: tuple[Profile, ...]
    id: str | None
    observed: Observed | None
    predicted: Predicted | None
    doubts: list[Doubt]

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.sample.path)

    @property
    def transposed(self) -> bool:
        """Whether its columns are individuals."""
        return self.predicted is not None and self.predicted.form.transposed

    @property
    def columns(self) -> list[dict[str, str]]:
        """What the columns look like, those of predictions in one line."""
        predicted, names = self.predicted, tuple[str, ...]()
        roles = {} if self.observed is None else self.observed.meanings
        meanings = {name: role.replace("_", " ") for name, role in roles.items()}
        meanings |= {} if self.id is None else {self.id: "id"}
        if predicted is not None and predicted.layout is not None and predicted.columns:
            names = predicted.columns
            of_events = "events by cause" if predicted.causes else "the event"
            values = of_events if predicted.causes or predicted.form.predicts == "event" else "being event-free"
            looks = [f"probabilities of {values}", predicted.layout.words]
            looks += ["in percent"] if predicted.form.percent else []
            looks += [f"times in {word(predicted.unit)}s"] if predicted.unit else []
            meanings |= {names[0]: ", ".join(looks), str(predicted.time_column): "times of predictions"}
        rows = []
        for one in self.profiles:
            if one.name not in names[1:]:
                name = f"{names[0]} ... {names[-1]} ({len(names)})" if one.name in names[:1] != names else one.name
                kind = one.writing.words if one.writing is not None and one.kind == "dates" else one.kind
                rows.append({"column": name, "values": kind, "looks_like": meanings.get(one.name, "")})
        return rows


@dataclass
class Proposal:
    """What to say of files: the words of a command, what is in question, and what the files hold if read so.

    `files` are, for each file, how much of it was read and what its columns look like; `failed` is whether it can't be
    read so.
    """

    command: list[str] = field(default_factory=list)
    options: Options = field(default_factory=dict)
    questions: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    failed: bool = False

    @property
    def sure(self) -> bool:
        """Whether nothing is in question."""
        return not self.questions

    def ask(self, about: str, text: str) -> None:
        """Put something in question."""
        self.questions += [] if Doubt(about, text) in self.questions else [Doubt(about, text)]


def propose(paths: Sequence[Path], *, whole: bool = False) -> Proposal:
    """Return what to say of files, or folders of files, of outcomes and predictions, given in any order.

    Unless `whole`, only some rows of large files are read.
    """
    guesses = [guess(path, whole=whole) for path in paths]
    for one in guesses:
        if one.observed is None and one.predicted is None:
            names = [profile.name for profile in one.profiles]
            blanks = " Is it separated by blanks? Commas, semicolons, tabs and bars are read."
            raise InputError(
                f"{one.path}: holds neither outcomes (time and event, or dates of start and event) nor predictions "
                "(probabilities by time) that can be recognised by names and values; the columns are "
                f"{listed(names)}.{blanks if len(names) == 1 and ' ' in names[0].strip() else ''}"
            )
    made = Proposal()
    of_outcomes = [one for one in guesses if one.observed is not None]
    alone = [one for one in of_outcomes if one.predicted is None]
    observed = next(iter(alone or of_outcomes), None)
    for one in alone:
        if one is not observed:
            made.ask(one.path, "looks like outcomes, too; it is left out")
    predicting = [one for one in guesses if one.predicted is not None]
    for one in guesses:
        for doubt in one.doubts:
            made.ask(doubt.about, doubt.text)
        rows = f"{one.sample.table.num_rows:,} rows{'' if one.sample.whole else ', not all'}"
        made.files[one.path] = {"looked_at": rows, "columns": one.columns}
    files, owns = _say_of_all(made, guesses, observed, predicting)
    seen = {} if observed is None or observed.observed is None else observed.observed.options
    known = observed is None or bool({"cutoff", "censoring-time"} & set(seen))
    weighting = Administrative.name if known else IPCW.name
    folder, all_rows = any(one.sample.folder for one in guesses), all(one.sample.whole for one in guesses)
    if all_rows and not folder:
        weighting = _read_as_proposed(made, files, weighting)
    n_models = sum(len(one.predicted.layout.models) for one in predicting if one.predicted and one.predicted.layout)
    command, first = "compare" if n_models > 1 else "score", Options()
    if folder:
        extra = [f"--{name}" for own in (made.options, *owns) for name in own if name not in OF_FOLDERS]
        if extra or len(predicting) > 1:
            what = f"has no {', '.join(dict.fromkeys(extra))}" if extra else "takes predictions that are in one table"
            made.ask("evaluate", f"survscore evaluate, which reads folders, {what}: make one file of it for score")
        command, first = "evaluate", {"outcomes": files[0]} if len(files) > 1 else {}
        files = files[1:] or files
    if observed is not None and [observed] != predicting and observed.id is None and "id" not in made.options:
        made.notes.append("Files have no ids: rows are matched by their order.")
    # without it, comparisons show administrative and projected scores, and what to conclude from both
    usual = command == "compare" and weighting == Administrative.name
    weightings = [] if usual else ["-w", weighting]
    made.command = ["survscore", command, *files, *weightings, *_words(first | made.options)]
    if not all_rows:
        made.notes.append("Not all rows were looked at; --check reads all.")
    return made


def guess(path: Path, *, whole: bool = False) -> FileGuess:
    """Return what one file looks like."""
    rows = sample(path, whole=whole)
    names = rows.table.column_names[:MOST_COLUMNS]
    profiles = tuple(profile(name, rows.table.column(name)) for name in names)
    ids, doubts = id_column(profiles)
    table = rows.table
    if not rows.whole and ids is not None:  # where ids are repeated, individuals of whom all rows were looked at
        labels = table.column(ids).to_pandas()
        counts = labels.map(labels.value_counts())
        table = table.filter((counts == counts.max()).to_numpy(dtype=bool))
    predicted = predicted_columns(TableFile.of(rows.path, table), profiles, ids)
    used, alone = set[str | None](), False
    if predicted is not None:
        used, alone = {*predicted.columns, predicted.time_column}, predicted.time_column is not None
        ids = None if predicted.form.transposed or predicted.time_column == ids else ids
    observed = None if alone else observed_columns([one for one in profiles if one.name not in {*used, ids}], names)
    if observed is not None and any(one.name == ids and not one.distinct for one in profiles):
        text = f"{ids!r} is there several times: has an individual several rows? They are matched by order"
        doubts, observed.options["groups"], ids = [Doubt("--groups", text)], str(ids), None
    doubts = [*doubts, *(predicted.doubts if predicted is not None else ())]
    return FileGuess(rows, profiles, ids, observed, predicted, doubts)


def _say_of_all(
    made: Proposal, guesses: list[FileGuess], observed: FileGuess | None, predicting: list[FileGuess]
) -> tuple[list[str], list[Options]]:
    """Add the options of all files; return the files, and the options of each file of predictions."""
    seen = None if observed is None else observed.observed
    predicted = [one.predicted for one in predicting if one.predicted is not None]
    if seen is not None:
        for doubt in seen.doubts:
            made.ask(doubt.about, doubt.text)
        made.notes += seen.notes
        made.options |= {name: value for name, value in seen.options.items() if value != name.replace("-", "_")}
    made.options |= _id_option(made, [one for one in guesses if one is observed or one in predicting])
    # units are said where those of predictions differ from that of outcomes; names of columns tell them
    unit: Unit | None = None if seen is None else seen.unit
    if unit is None and any(one.unit for one in predicted):
        unit = "D"
        made.ask("--unit", "nothing says in which unit the times of outcomes are; days are assumed")
    units = [None if one.unit == unit else one.unit for one in predicted]
    if unit is not None and any(units) and not (seen is not None and "start" in seen.options):
        made.options["unit"] = unit
    owns = [replace(one, form=replace(one.form, unit=its)).options for one, its in zip(predicted, units, strict=True)]
    shared = all(own == owns[0] for own in owns)
    if shared and owns:
        made.options |= {"predictions-unit" if name == "unit" else name: value for name, value in owns[0].items()}
    made.options |= _names_of_causes(made, observed, predicted)
    files = [OUTCOMES if observed is None else observed.path]
    if predicting != [observed]:
        files += [_source(one.path, {} if shared else own) for one, own in zip(predicting, owns, strict=True)]
        files += [] if predicting else [PREDICTIONS]
    made.notes += [f"{name} stands for a file that you name." for name in (OUTCOMES, PREDICTIONS) if name in files]
    return [f"./{path}" if path.startswith("-") and path != "-" else path for path in files], owns  # no options


def _words(options: Options) -> list[str]:
    """Return options as the words of a command."""
    return [word for name, value in options.items() for word in (f"--{name}", *([] if value is True else [str(value)]))]


def _source(path: str, own: Options) -> str:
    """Return a path with the options that are about it alone."""
    settings = ",".join(name if value is True else f"{name}={value}" for name, value in own.items())
    return f"{Path(path).name.split('.')[0].replace('=', '-') or 'model'}={path}[{settings}]" if own else path


def _names_of_causes(made: Proposal, observed: FileGuess | None, predicted: list[Predicted]) -> Options:
    """Return the names of causes that predictions have, where the column of events has as many numbers."""
    causes = next((one.causes for one in predicted if one.causes), ())
    event = None if observed is None or observed.observed is None else observed.observed.options.get("event")
    codes = {plain(code) for one in (observed.profiles if observed else ()) if one.name == event for code in one.words}
    if all(map(str.isdigit, causes)) or codes - {"0"} != {str(code) for code in range(1, len(causes) + 1)}:
        return {}
    named = ", ".join(f"{code} {name!r}" for code, name in enumerate(causes, 1))
    made.ask("--causes", f"are {named} in {event!r}, in this order?")
    return {"causes": joined_words(causes)}


def _id_option(made: Proposal, used: list[FileGuess]) -> Options:
    """Return how rows are matched: by a column of all files, or by order."""
    turned = [one.predicted for one in used if one.predicted is not None and one.transposed]
    by_column = [one for one in used if not one.transposed]
    names = sorted({one.id for one in by_column if one.id is not None})
    if len(names) > 1:
        made.ask("--id", f"ids are called {names[0]!r} in one file and {names[1]!r} in another; rename one of them")
        return {}
    numbered = all(list(one.columns) == [str(k) for k in range(len(one.columns))] for one in turned)  # as by pandas
    if by_column and not names and not numbered:
        made.ask("--id", "columns of predictions are called like ids, and outcomes have none: are rows in their order?")
    if names and any(one.id is None for one in by_column):
        made.ask("--id", "only some files have ids that are recognised: are rows in the same order?")
        return {"by-order": True} if names == [ID] else {}  # a column called id would be used
    if names:
        return {} if names == [ID] else {"id": names[0]}
    return {"by-order": True} if any(column.name == ID for one in by_column for column in one.profiles) else {}


def _read_as_proposed(made: Proposal, files: list[str], weighting: str) -> str:
    """Read files as the command does that is proposed, and return which weighting fits."""
    from survscore.cli import cli

    context = cli.commands["compare"].make_context("compare", [*files, *_words(made.options)])
    arguments = context.params
    id: Any = False if arguments["by_order"] else arguments["id_column"]
    with context, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            if OUTCOMES in files:
                form, unit = shared_form(arguments), arguments["unit"]
                for source in sources(arguments["predictions"]):
                    made.read += predictions_in(source.path, None, source.form(form), unit, id).summary
            elif PREDICTIONS in files:
                observed = read_outcomes(files[0], id=id, **outcome_arguments(arguments))
                made.read = [f"outcomes: {observed.summary}"]
                weighting = weightings_that_fit(observed.outcomes).names[0]
                _ask_about_outcomes(made, observed.outcomes)
            else:
                study, weightings = read_files(arguments, silent, usual="all", metrics=())
                y, made.read = study.outcomes, [f"outcomes: {study.outcomes!r}"]
                made.read += [f"predictions of {name!r}: {curves!r}" for name, curves in study.models.items()]
                _ask_about_units(made, y, study.models)
                weighting = weightings_that_fit(y).names[0]
                _ask_about_outcomes(made, y)
                warn_if_reversed(with_cause(study, made.options.get("cause")), weightings, arguments)
        except InputError as error:
            made.ask("reading", str(error))
            made.failed = True
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        if any(harmless in text for harmless in HARMLESS):
            made.notes.append(text)
        else:
            made.ask("reading", text)
    return weighting


def _ask_about_outcomes(made: Proposal, y: Outcomes) -> None:
    """Ask which cause is of interest, and doubt drop-outs of most, as if flags were the other way round."""
    if y.causes and not y.interest:
        counts = several([f"{name!r} ({count})" for name, count in y.n_by_cause.items()])
        text = f"events have {len(y.causes)} causes, {counts}: which one are scores of? Without --cause, table and "
        made.ask("--cause", f"{text}report show all")
        made.options["cause"] = y.causes[0]
    without = int((~y.event).sum())
    if y.n_dropped_out is not None and y.n_dropped_out * 2 > without:
        text = f"{y.n_dropped_out} of {without} without event were not followed until their C*: is the event coded as "
        made.ask("drop-outs", f"{text}assumed, and are these the dates or times at which follow-up ends?")


def _ask_about_units(made: Proposal, y: Outcomes, models: Mapping[str, Any]) -> None:
    """Doubt that predictions are in the unit of outcomes, where they do not reach about as far as follow-up does."""
    longest = longest_follow_up(y)
    for name, curves in models.items():
        last = float(curves.times[-1])
        if longest > 0 and last > 0 and not FITS[0] <= last / longest <= FITS[1]:
            text = f"predictions of {name!r} reach up to {last:g}, and follow-up up to {longest:g}"
            made.ask("--predictions-unit", f"{text}: are both in the same unit of time?")
            return


def page(proposal: Proposal) -> list[str]:
    """Return what is printed, in lines: the columns, the command, what is in question, and what else there is."""
    lines = []
    for path, file in proposal.files.items():
        rows = [("column", "values", "looks like")]
        rows += [(shown(one["column"], WIDEST), one["values"], one["looks_like"] or "-") for one in file["columns"]]
        left_out = len(rows) - MOST_ROWS - 1
        rows = rows[: MOST_ROWS + 1]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        lines += [f"{shown(path, most=500)} ({file['looked_at']})", ""]
        lines += [f"  {name.ljust(widths[0])}  {kind.ljust(widths[1])}  {looks}" for name, kind, looks in rows]
        lines += [f"  and {left_out} more columns", ""] if left_out > 0 else [""]
    count = len(proposal.questions)
    lines += [f"Command{f', with {count} question(s) (?)' if count else ''}:", ""]
    lines += [f"  {shown(shlex.join(proposal.command), most=10_000)}", ""]
    lines += [f"? {shown(doubt.about, WIDEST)}: {one_line(doubt.text)}" for doubt in proposal.questions]
    lines += [""] * bool(count) + [one_line(note) for note in proposal.notes]
    lines += ["Read so, these rows hold"] if proposal.read else []
    return lines + [f"  {one_line(text)}" for text in proposal.read]

"""What to say of files so that they are read as they are meant: a command, and what can't be known.

Rules look at names and values of a sample. Then the sample is read as proposed: what can't be read so is in question.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from survscore._utils.dates import SECONDS, Unit, word
from survscore._validation import InputError, plural, several
from survscore.analysis.compare import warn_if_reversed
from survscore.engine.inputs import of_cause
from survscore.io.flags import REASON_OPTIONS, joined_words, split_words
from survscore.io.forms import Form
from survscore.io.observed_columns import MEANINGS, Observed, id_column, observed_columns
from survscore.io.outcomes import ID, ObservedFile, labels_in, read_outcomes
from survscore.io.predicted_columns import Doubt, Predicted, as_texts, predicted_columns
from survscore.io.predictions import PredictedFile, predictions_in
from survscore.io.profiles import Profile, profile
from survscore.io.samples import Sample, sample
from survscore.io.study import matching_rows
from survscore.io.tables import TableFile, listed
from survscore.io.vocabulary import Role, strength
from survscore.outcomes import Outcomes
from survscore.weighting import weightings_that_fit

OUTCOMES, PREDICTIONS = "OUTCOMES", "PREDICTIONS"  # for files that were not given
FITS = (1 / 3, 1.5)  # how far predictions reach, by the longest follow-up, where both seem to have the same unit
LONG = {"long", "time-column"}  # options of files in long form
MOST_COLUMNS = 5000
# What warnings say that is no reason to doubt: what words mean, and that numbers are rounded.
HARMLESS = ("is the event", "is no event", "treated as rounding")
# What `survscore evaluate` can be told of a folder.
OF_FOLDERS = (
    "time", "event", "censoring-time", "cutoff", "start", "event-date", "last-seen", "end", "date-format", "origin",
    "unit", "columns", "id", "predicts", "percent", "predictions-unit", "cause", "causes",
)  # fmt: skip


@dataclass(frozen=True)
class ColumnGuess:
    """What one column, or several of a kind, look like.

    Attributes
    ----------
    column : str
        The name, or the first and the last of several.
    kind : str
        What values are.
    looks_like : str
        What it seems to be for; empty where it is not used.
    why : str
        How it was recognised.
    unsure : bool
        Whether that is in question.
    """

    column: str
    kind: str
    looks_like: str
    why: str
    unsure: bool = False


@dataclass(frozen=True, eq=False)
class FileGuess:
    """What one file looks like."""

    sample: Sample
    profiles: tuple[Profile, ...]
    id: str | None
    observed: Observed | None
    predicted: Predicted | None
    doubts: tuple[Doubt, ...] = ()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.sample.path


@dataclass(frozen=True)
class Model:
    """A file of predictions, what to say of it alone, and how many models it holds."""

    path: str
    own: dict[str, Any]
    n_models: int = 1


@dataclass(frozen=True, eq=False)
class Proposal:
    """What to say of files.

    Attributes
    ----------
    command : {"score", "compare", "evaluate"}
        Which command to give.
    outcomes : str
        The file of outcomes, or a word that stands for it.
    models : tuple of Model
        Files of predictions, or a word that stands for one; none, where they are in the file of outcomes.
    options : dict of str to str or True
        By long name without dashes.
    weighting : str
        Which one fits the outcomes.
    columns : dict of str to list of ColumnGuess
        By file.
    doubts : tuple of Doubt
        What can't be known: the command may be wrong there.
    notes : tuple of str
        What else is worth knowing.
    looked_at : dict of str to str
        How much of each file was read.
    held : tuple of str
        What the files hold, if they are read as proposed.
    """

    command: str
    outcomes: str
    models: tuple[Model, ...]
    options: dict[str, str | bool]
    weighting: str
    columns: dict[str, list[ColumnGuess]]
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...]
    looked_at: dict[str, str]
    held: tuple[str, ...] = field(default_factory=tuple)

    @property
    def sure(self) -> bool:
        """Whether nothing is in question."""
        return not self.doubts


def propose(paths: Sequence[Path]) -> Proposal:
    """Return what to say of files of outcomes and predictions, given in any order.

    Parameters
    ----------
    paths : sequence of Path
        Of files, or of folders of files.

    Raises
    ------
    InputError
        If a file can't be read, or holds neither outcomes nor predictions.
    """
    guesses = [guess(path) for path in paths]
    for one in guesses:
        if one.observed is None and one.predicted is None:
            raise InputError(
                f"{one.path}: holds neither outcomes (time and event, or dates of start and event) nor predictions "
                f"(probabilities by time) that can be recognised by names and values{_nearly(one)}; the columns are "
                f"{listed([profile.name for profile in one.profiles])}"
            )
    by_file = [one for one in guesses if one.observed is not None and one.predicted is None]
    observed = next(iter(by_file or [one for one in guesses if one.observed is not None]), None)
    predicting = [one for one in guesses if one.predicted is not None]
    doubts = [
        Doubt(str(one.path), "looks like outcomes, too; it is left out") for one in by_file if one is not observed
    ]
    return _joined(guesses, observed, predicting, doubts)


def _nearly(one: FileGuess) -> str:
    """Say what could be recognised in a file that holds too little."""
    if len(one.profiles) == 1 and " " in one.profiles[0].name.strip():
        return " (is it separated by blanks? Commas, semicolons, tabs and bars are read)"
    roles: tuple[Role, ...] = ("time", "event", "start", "event_date", "end")
    near = [f"{column.name!r} ({role.replace('_', ' ')})" for role in roles for column in one.profiles
            if strength(column.name, role) == 2][:4]  # fmt: skip
    return f" (by name, only {', '.join(near)} could be)" if near else ""


def guess(path: Path) -> FileGuess:
    """Return what one file looks like."""
    rows = sample(path)
    names = rows.table.column_names[:MOST_COLUMNS]
    profiles = tuple(profile(name, rows.table.column(name)) for name in names)
    ids, doubts = id_column(profiles)
    predicted = predicted_columns(rows.file(), profiles, ids)
    if predicted is not None and predicted.time_column == ids:
        ids = None
    of_predictions = set() if predicted is None else {*predicted.columns, predicted.time_column}
    left = [one for one in profiles if one.name not in of_predictions and one.name != ids]
    alone = predicted is not None and bool({"transposed", *LONG} & set(predicted.options))
    observed = None if alone else observed_columns(left, names)
    if predicted is not None and "transposed" in predicted.options:
        ids = None
    its_id = next((one for one in profiles if one.name == ids), None)
    if observed is not None and its_id is not None and not its_id.distinct:
        ids = None
        doubts = [Doubt("--groups", f"{its_id.name!r} is there several times: several rows of one individual? Rows are "
                        "treated as individuals that depend on each other, and matched by their order")]  # fmt: skip
        observed = replace(observed, options={**observed.options, "groups": its_id.name})
    return FileGuess(rows, profiles, ids, observed, predicted, tuple(doubts))


def _joined(
    guesses: Sequence[FileGuess], observed: FileGuess | None, predicting: Sequence[FileGuess], doubts: list[Doubt]
) -> Proposal:
    options: dict[str, str | bool] = {}
    notes: list[str] = []
    for one in guesses:
        doubts += one.doubts
    if observed is not None and observed.observed is not None:
        doubts += observed.observed.doubts
        notes += observed.observed.notes
        options |= {name: value for name, value in observed.observed.options.items() if value != _usual(name)}
    for one in predicting:
        doubts += [] if one.predicted is None else one.predicted.doubts
    options |= _id_option([one for one in guesses if one is observed or one in predicting], doubts)
    units = _units(observed, predicting, doubts)
    if units.outcomes is not None:
        options["unit"] = units.outcomes
    owns = [dict(one.predicted.options) | units.of(one) for one in predicting if one.predicted is not None]
    owns = [{name: value for name, value in own.items() if (name, value) != ("long", True)} for own in owns]
    shared = bool(owns) and all(own == owns[0] for own in owns)
    if shared:
        named = {"unit": "predictions-unit"}
        options |= {named.get(name, name): value for name, value in owns[0].items()}
    alone = observed is not None and list(predicting) == [observed]
    counts = [one.predicted.n_models for one in predicting if one.predicted is not None]
    models = tuple(
        Model(str(one.path), {} if shared else own, count)
        for one, own, count in zip(predicting, owns, counts, strict=True)
        if not alone
    )
    outcomes = OUTCOMES if observed is None else str(observed.path)
    command = "compare" if sum(counts) > 1 else "score"
    folders = [one for one in guesses if one.sample.folder]
    if folders:
        command = "evaluate"
        doubts += _doubts_of_folders(options, owns, observed, predicting)
    options |= _names_of_causes(observed, predicting, doubts)
    read = _read_as_proposed(observed, predicting, options, owns)
    doubts += read.doubts
    options |= {} if read.cause is None else {"cause": read.cause}
    notes += _order_note(observed, predicting, options)
    return Proposal(
        command,
        outcomes,
        models or (() if predicting else (Model(PREDICTIONS, {}),)),
        options,
        read.weighting,
        {str(one.path): columns_of(one, doubts) for one in guesses},
        tuple(dict.fromkeys(doubts)),
        tuple(dict.fromkeys([*notes, *read.notes])),
        {str(one.path): _looked_at(one.sample) for one in guesses},
        read.held,
    )


def _names_of_causes(
    observed: FileGuess | None, predicting: Sequence[FileGuess], doubts: list[Doubt]
) -> dict[str, str | bool]:
    """Return the names of causes that predictions have, where the column of events has as many numbers."""
    causes = next((one.predicted.causes for one in predicting if one.predicted and one.predicted.causes), ())
    if observed is None or observed.observed is None or all(map(str.isdigit, causes)):
        return {}
    event = observed.observed.options.get("event")
    codes = [word for one in observed.profiles if one.name == event for word in one.words]
    if {word.removesuffix(".0") for word in codes} - {"0"} != {str(code) for code in range(1, len(causes) + 1)}:
        return {}
    told = f"are {', '.join(f'{code} {name!r}' for code, name in enumerate(causes, 1))} in {event!r}, in this order?"
    doubts.append(Doubt("--causes", told))
    return {"causes": joined_words(causes)}


def _usual(option: str) -> str | None:
    """Return the name of a column that needs no option."""
    of_columns = ("time", "event", "censoring-time", "start", "event-date", "last-seen")
    return option.replace("-", "_") if option in of_columns else None


def _id_option(used: Sequence[FileGuess], doubts: list[Doubt]) -> dict[str, str | bool]:
    """Return how rows are matched: by a column of all files, or by order."""
    by_column = [one for one in used if one.predicted is None or "transposed" not in one.predicted.options]
    names = sorted({one.id for one in by_column if one.id is not None})
    if len(names) > 1:
        told = f"ids are called {names[0]!r} in one file and {names[1]!r} in another; rename one of them"
        doubts.append(Doubt("--id", told))
        return {}
    turned = [one for one in used if one not in by_column]
    if turned and not names and not _are_positions(turned[0]):
        told = f"columns of {turned[0].path} are called like ids, and outcomes have none: are rows in their order?"
        doubts.append(Doubt("--id", told))
    if names and any(one.id is None for one in by_column):
        by_order = {"by-order": True} if names == [ID] else {}  # a column called id would be used
        doubts.append(Doubt("--id", "only some files have ids that are recognised: are rows in the same order?"))
        return dict(by_order)
    if names:
        return {} if names == [ID] else {"id": names[0]}
    repeated = any(ID in [column.name for column in one.profiles] for one in by_column)
    return {"by-order": True} if repeated else {}


def _are_positions(one: FileGuess) -> bool:
    """Whether individuals of a transposed file are called 0, 1, 2, as by pandas, and not by ids."""
    names = [] if one.predicted is None else one.predicted.columns
    return names == [str(k) for k in range(len(names))]


@dataclass(frozen=True)
class _Units:
    """Which units must be said: that of outcomes, and those of predictions that differ from it, by file."""

    outcomes: Unit | None
    predictions: dict[int, str]

    def of(self, one: FileGuess) -> dict[str, str]:
        unit = self.predictions.get(id(one))
        return {} if unit is None else {"unit": unit}


def _units(observed: FileGuess | None, predicting: Sequence[FileGuess], doubts: list[Doubt]) -> _Units:
    """Compare units of time, as names of columns say them, and how far times reach."""
    of_outcomes = None if observed is None or observed.observed is None else observed.observed.unit
    dated = observed is not None and observed.observed is not None and "start" in observed.observed.options
    named = {id(one): one.predicted.unit for one in predicting if one.predicted is not None and one.predicted.unit}
    longest = None if observed is None else _longest(observed)
    for one in predicting:
        unit = named.get(id(one))
        last = None if one.predicted is None else one.predicted.last
        if unit is not None and of_outcomes is None:
            continue
        to = of_outcomes or "D"
        if longest and last and not _fits(last, unit or to, to, longest):
            told = f"predictions in {one.path} reach up to {last:g}{_of(unit)}, and follow-up up to {longest:g}"
            told += f"{_of(of_outcomes)}: " + ("is that one unit of time?" if unit is None else "is that so?")
            doubts.append(Doubt("--predictions-unit", told))
    if not named:
        return _Units(None, {})
    if of_outcomes is None:
        reached = [(unit, one.predicted.last) for one in predicting if one.predicted is not None
                   for unit in [named.get(id(one))] if unit is not None and one.predicted.last]  # fmt: skip
        fitting = [
            unit for unit in SECONDS if longest and all(_fits(last, own, unit, longest) for own, last in reached)
        ]
        assumed: Unit = fitting[0] if fitting and reached else "D"
        where = OUTCOMES if observed is None else str(observed.path)
        told = f"nothing says in which unit the times of {where} are; {word(assumed)}s are assumed"
        doubts.append(Doubt("--unit", told))
        if all(unit == assumed for unit in named.values()):
            return _Units(None, {})
        return _Units(assumed, {key: word(unit) for key, unit in named.items()})
    differing = {key: word(unit) for key, unit in named.items() if unit != of_outcomes}
    return _Units(None if dated or not differing else of_outcomes, differing)


def _fits(last: float, unit: Unit, to: Unit, longest: float) -> bool:
    """Whether predictions up to `last`, converted to another unit, go about as far as follow-up does."""
    return FITS[0] <= last * SECONDS[unit] / SECONDS[to] / longest <= FITS[1]


def _of(unit: Unit | None) -> str:
    return "" if unit is None else f" {word(unit)}s"


def _longest(one: FileGuess) -> float | None:
    """Return the longest follow-up that was seen."""
    options = {} if one.observed is None else {**one.observed.options, "by-order": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            y = _read_outcomes(one, options).outcomes
    except InputError:
        return None
    ends = y.time if y.censoring_time is None else y.censoring_time
    finite = ends[np.isfinite(ends)]
    return float(finite.max()) if finite.size else None


def _read_outcomes(one: FileGuess, options: dict[str, Any]) -> ObservedFile:
    known = (
        "time", "event", "censoring-time", "cutoff", "start", "event-date", "last-seen", "end", "reason", "date-format",
        "origin", "unit",
    )  # fmt: skip
    said = {name.replace("-", "_"): options[name] for name in known if name in options}
    lists = (*REASON_OPTIONS, "causes", "open-end")
    said |= {name.replace("-", "_"): split_words(options[name]) for name in lists if name in options}
    name = _matched_by(options)
    return read_outcomes(one.sample.file(labels_in(name)), id=name, **said)


def _matched_by(options: dict[str, Any]) -> str | Literal[False] | None:
    return False if options.get("by-order") else options.get("id")


@dataclass(frozen=True)
class _Reading:
    """What came of reading the samples as proposed."""

    weighting: str = "administrative"
    held: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()
    cause: str | None = None


def _read_as_proposed(
    observed: FileGuess | None, predicting: Sequence[FileGuess], options: dict[str, Any], owns: Sequence[dict[str, Any]]
) -> _Reading:
    """Read the rows that were looked at as proposed: what fails, or makes readers warn, is in question."""
    doubts: list[Doubt] = []
    held: list[str] = []
    weighting, cause = "administrative", None
    name = _matched_by(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        outcomes = _tried(doubts, observed, lambda one: _read_outcomes(one, options))
        if outcomes is not None:
            weighting = weightings_that_fit(outcomes.outcomes).names[0]
            held.append(f"outcomes: {outcomes.outcomes!r}, {_ids(outcomes.ids)}")
            doubts += _doubts_of_drop_outs(outcomes.outcomes)
            cause, unsure = _cause_of_interest(outcomes.outcomes)
            doubts += unsure
        for one, own in zip(predicting, owns, strict=True):
            to = options.get("unit") or "D" if "unit" in own else None
            long = one.predicted is not None and bool(LONG & set(one.predicted.options)) and not one.sample.whole
            form = _form({**own, "long": True} if long else own)
            read = _tried(doubts, one, lambda one, form=form, to=to: predictions_in(
                _predictions_file(one, name), None, form, to, name))  # fmt: skip
            if read is None:
                continue
            for model, curves in read.models.items():
                held.append(f"predictions of {model!r}: {curves!r}, {_ids(read.ids)}")
            if outcomes is not None and observed is not None:
                doubts += _matched(outcomes, read, observed, one, weighting)
    notes = list(dict.fromkeys(str(one.message) for one in caught))
    doubts += [Doubt("reading", text) for text in notes if not any(harmless in text for harmless in HARMLESS)]
    return _Reading(weighting, tuple(held), tuple(doubts),
                    tuple(text for text in notes if any(harmless in text for harmless in HARMLESS)), cause)  # fmt: skip


def _cause_of_interest(y: Outcomes) -> tuple[str | None, list[Doubt]]:
    """Return which cause of events to take, where several compete and none is known to be the one of interest."""
    if not y.causes or y.interest:
        return None, []
    counts = several([f"{name!r} ({count})" for name, count in y.n_by_cause.items()])
    told = f"events have {len(y.causes)} causes, {counts}: which one are scores of? Without --cause, table and report "
    return y.causes[0], [Doubt("--cause", told + "show all")]


def _doubts_of_drop_outs(y: Outcomes) -> list[Doubt]:
    """Doubt, where most of those without event end before their data do, as if flags were the other way round."""
    without = int((~y.event).sum())
    if y.n_dropped_out is None or y.n_dropped_out * 2 <= without:
        return []
    told = f"{y.n_dropped_out} of {without} without event were not followed until their C*: is the event coded as "
    return [Doubt("drop-outs", f"{told}assumed, and are these the dates or times at which follow-up ends?")]


def _predictions_file(one: FileGuess, name: str | Literal[False] | None) -> TableFile:
    """Return the rows that were looked at; of a long file, those of individuals of whom all times were."""
    file = one.sample.file(labels_in(name))
    if one.sample.whole or one.predicted is None or not LONG & set(one.predicted.options) or one.id is None:
        return file
    _, who, counts = np.unique(as_texts(file, one.id), return_inverse=True, return_counts=True)
    kept = counts[who] == counts.max()
    if counts.max() == 1:  # in the order of time
        times = np.asarray(file.read([str(one.predicted.time_column)]).column(0).to_numpy())
        kept = times == times[0]
    table = file.read(file.names).filter(kept)
    return TableFile(file.path, table.schema, table.num_rows, table.select)


def _tried(doubts: list[Doubt], one: FileGuess | None, read: Any) -> Any:
    if one is None:
        return None
    try:
        return read(one)
    except InputError as error:
        doubts.append(Doubt("reading", str(error)))
        return None


def _ids(ids: Any) -> str:
    return "no ids" if ids is None else f"{plural(len(ids), 'id')}, all different"


def _form(own: dict[str, Any]) -> Form:
    said = {name.replace("-", "_"): value for name, value in own.items()}
    grid = said.pop("grid", None)
    if grid is not None:
        length = int(str(grid).split(":")[1])
        said["grid"] = np.arange(1.0, length + 1)
    return Form(**said)


def _matched(
    outcomes: ObservedFile, read: PredictedFile, observed: FileGuess, one: FileGuess, weighting: str
) -> list[Doubt]:
    """Match rows by id or by order, where all rows are there, and look whether predictions are the opposite."""
    if not (observed.sample.whole and one.sample.whole):
        return []
    try:
        rows = matching_rows(outcomes, read)
    except InputError as error:
        return [Doubt("--id", str(error))]
    y = outcomes.outcomes
    try:
        y, models = of_cause(
            y if y.interest or not y.causes else y.for_cause(y.causes[0]),
            {name: curves if rows is None else curves[rows] for name, curves in read.models.items()},
        )
    except InputError as error:
        return [Doubt("--cause", str(error))]
    try:
        times = next(iter(models.values())).times
        warn_if_reversed(y, models, weighting=weighting, times=times[times <= y.time.max()])
    except InputError:
        return []  # too few, or none left at these times
    return []


def _doubts_of_folders(
    options: dict[str, Any], owns: Sequence[dict[str, Any]], observed: FileGuess | None, predicting: Sequence[FileGuess]
) -> list[Doubt]:
    extra = [f"--{name}" for name in options if name not in OF_FOLDERS]
    extra += [f"--{name}" for own in owns for name in own if name not in OF_FOLDERS and f"--{name}" not in extra]
    doubts = []
    if extra:
        told = f"survscore evaluate, which reads folders, has no {', '.join(extra)}: make one file of it for score"
        doubts.append(Doubt(extra[0], told))
    if len(predicting) > 1:
        doubts.append(Doubt(str(predicting[1].path), "survscore evaluate takes predictions that are in one table"))
    return doubts


def _order_note(observed: FileGuess | None, predicting: Sequence[FileGuess], options: dict[str, Any]) -> list[str]:
    several = observed is not None and any(one is not observed for one in predicting)
    if several and observed is not None and observed.id is None and "id" not in options:
        return ["Files have no ids: rows are matched by their order."]
    return []


def _looked_at(rows: Sample) -> str:
    seen = f"{rows.table.num_rows:,}"
    if rows.whole:
        return f"all {seen} rows"
    return f"{seen} of {rows.n_rows:,} rows" if rows.n_rows is not None else f"{seen} rows, not all"


def columns_of(one: FileGuess, doubts: Sequence[Doubt]) -> list[ColumnGuess]:
    """Return what the columns of a file look like, those of predictions in one line."""
    in_question = {doubt.about for doubt in doubts}
    predicted = one.predicted
    names = [] if predicted is None else predicted.columns
    meanings = {} if one.observed is None else {meaning.column: meaning for meaning in one.observed.meanings}
    found = []
    for column in one.profiles:
        meaning = meanings.get(column.name)
        kind = column.kind if column.writing is None or column.kind != "dates" else column.writing.words
        if predicted is not None and column.name in names[:1]:
            unsure = any(doubt in in_question for doubt in _ABOUT_PREDICTIONS)
            shown = column.name if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names)})"
            of_what = "the event" if predicted.options.get("predicts") else "being event-free"
            said = f"probabilities of {'events by cause' if predicted.causes else of_what}"
            said += f", {predicted.layout}" + (", in percent" if predicted.options.get("percent") else "")
            said += f", times in {word(predicted.unit)}s" if predicted.unit else ""
            found.append(ColumnGuess(shown, column.kind, said, predicted.why, unsure))
        elif predicted is not None and column.name == predicted.time_column:
            found.append(ColumnGuess(column.name, kind, "times of predictions", predicted.why))
        elif column.name == one.id:
            why = "all different" if column.distinct else "named so"
            found.append(ColumnGuess(column.name, kind, MEANINGS["id"], why, "--id" in in_question))
        elif meaning is not None:
            options = {f"--{meaning.role.replace('_', '-')}", *_ALSO.get(meaning.role, ())}
            unsure = bool(options & in_question)
            found.append(ColumnGuess(column.name, kind, MEANINGS[meaning.role], meaning.why, unsure))
        elif column.name not in names[1:]:
            found.append(ColumnGuess(column.name, kind, "", "", column.name in in_question))
    return found


_ABOUT_PREDICTIONS = ("--predicts", "--percent", "--columns", "--grid", "--monotone", "--predictions-unit")
ABOUT_REASONS = tuple(f"--{name}" for name in REASON_OPTIONS)
_ALSO: dict[str, tuple[str, ...]] = {"reason": ABOUT_REASONS, "event": ABOUT_REASONS}

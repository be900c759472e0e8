"""Which columns of a table look like predictions: of which times, in which unit, of survival or of the event."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit, word
from survscore._validation import InputError
from survscore.io.column_names import ByCause, columns_by_cause, columns_by_time
from survscore.io.layouts import CAUSE, METADATA, SURVIVAL, TIMES, list_columns, long_time_column, looks_transposed
from survscore.io.profiles import Profile
from survscore.io.tables import TableFile, labels, readable
from survscore.io.vocabulary import (
    CURVE_WORDS,
    EVENT_WORDS,
    MODEL_WORDS,
    PROBABILITY_WORDS,
    SURVIVAL_WORDS,
    UNIT_LETTERS,
    UNIT_WORDS,
    strength,
    tokens,
    unit_in,
)

NUMBERED = re.compile(r"(?P<before>.*?)(?P<time>\d+(?:\.\d+)?)(?P<after>\D*)", re.DOTALL)
TELLING_WORDS = PROBABILITY_WORDS | MODEL_WORDS | set(UNIT_WORDS) | set(UNIT_LETTERS)
FEW_INDIVIDUALS = 5  # in a file of rows by time
YEARS = (1900, 2100)
MOST_INDIVIDUALS = 2000  # columns of a transposed file that are looked at


@dataclass(frozen=True)
class Doubt:
    """Something that is uncertain.

    Attributes
    ----------
    about : str
        The option, column or file that is in question.
    text : str
        What can't be known, and what was assumed.
    """

    about: str
    text: str


@dataclass(frozen=True, eq=False)
class Predicted:
    """Columns that look like predictions.

    Attributes
    ----------
    options : dict
        What to say of the file, by long option without dashes, as in brackets behind its name: columns, predicts,
        percent, transposed, long, grid.
    columns : list of str
        The columns of predictions.
    layout : str
        In words: "a column per time".
    why : str
        How they were recognised.
    unit : Unit or None
        Of their times, where names say it.
    last : float or None
        The last of their times.
    n_models : int
        How many models these are.
    doubts : tuple of Doubt
        What can't be known.
    time_column : str or None
        Of long and transposed files.
    causes : tuple of str
        Of which events these are probabilities, where they are of several causes.
    """

    options: dict[str, Any]
    columns: list[str]
    layout: str
    why: str
    unit: Unit | None = None
    last: float | None = None
    n_models: int = 1
    doubts: tuple[Doubt, ...] = field(default_factory=tuple)
    time_column: str | None = None
    causes: tuple[str, ...] = ()


def predicted_columns(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Return which columns look like predictions, by the first rule that finds some."""
    others = [one for one in profiles if one.name != id_column]
    for rule in (_transposed, _lists, _named_by_time, _named_by_cause, _long, _named_by_pattern):
        found = rule(file, others, id_column)
        if found is not None:
            return found
    return None


def _transposed(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Rows are times: the first column goes up, and all others go one way with it."""
    if any(one.is_flag and strength(one.name, "event") for one in profiles):
        return None  # outcomes in the order of time
    first = file.names[-1] if file.names[-1] == TIMES[-1] else file.names[0]
    others = [name for name in file.names if name != first][:MOST_INDIVIDUALS]
    part = TableFile(file.path, file.read([first, *others]).schema, file.n_rows, file.read)
    try:
        named_by_time = any(len(found) > 1 for found in columns_by_time(others).values())
    except InputError:
        named_by_time = False
    if not looks_transposed(part, named_by_time):
        return None
    times = np.asarray(file.read([first]).column(0).to_numpy(), dtype=np.float64)
    matrix = _matrix([one for one in profiles if one.name != first][:MOST_INDIVIDUALS]).T
    found = Predicted({"transposed": True}, [name for name in file.names if name != first],
                      "a row per time, a column per individual", f"{first!r} goes up, and all other columns go one way",
                      unit_in(first), float(times[-1]), time_column=first)  # fmt: skip
    words = {word for name in others[:10] for word in tokens(name)}
    if len(others) < FEW_INDIVIDUALS or words & (CURVE_WORDS | SURVIVAL_WORDS | EVENT_WORDS):
        told = f"are {', '.join(repr(name) for name in others[:3])} individuals, or columns of one curve?"
        found = replace(found, doubts=(Doubt("--transposed", told),))
    return _valued(found, matrix, ())


def _lists(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    names = list_columns(file.schema)
    if not names:
        return None
    says: dict[str, Any] = {}
    for metadata in (file.schema.metadata, file.schema.field(names[0]).metadata):
        try:
            says |= dict(json.loads((metadata or {}).get(METADATA, b"{}")))
        except (ValueError, TypeError, RecursionError):
            return None
    table = file.read(names)
    first = table.column(0)
    length = len(first[0].as_py() or ()) if first[0].is_valid else 0
    rows = [row for row in first.to_pylist() if row is not None and len(row) == length]
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if matrix.ndim != 2 or not matrix.size or not ((matrix >= 0) & (matrix <= 100)).all():
        return None
    found = Predicted({}, names, "a list per individual", "lists of probabilities", n_models=len(names))
    grid = says.get("grid")
    if isinstance(grid, list) and grid and all(isinstance(time, (int, float)) for time in grid):
        found = replace(found, last=float(grid[-1]))
    else:
        doubt = Doubt("--grid", f"nothing says of which {length} times the lists are; 1 to {length} is a guess")
        found = replace(found, options={"grid": f"1:{length}:1"}, doubts=(doubt,))
    if _may_be_causes(names, table, length):
        pattern = {"columns": "{cause}"}
        found = replace(found, options=found.options | pattern, layout="a list per individual and cause", n_models=1)
        return replace(found, causes=tuple(names), doubts=(*found.doubts, _causes_or_models(names)))
    return _valued(found, matrix, tokens(names[0]) if len(names) == 1 else ())


def _may_be_causes(names: Sequence[str], table: Any, length: int) -> bool:
    """Whether lists may be incidences of causes: none falls with time, and their sum is at most 1."""
    if len(names) < 2 or any(set(tokens(name)) & (SURVIVAL_WORDS | MODEL_WORDS) for name in names):
        return False
    total = np.zeros(length)
    for name in names:
        rows = [row for row in table.column(name).to_pylist() if row is not None and len(row) == length]
        matrix = np.array(rows, dtype=np.float64)
        if len(rows) < table.num_rows or (np.diff(matrix, axis=1) < 0).any():
            return False
        total = total + matrix
    return bool(total.max() <= 1 + 1e-6)


def _causes_or_models(names: Sequence[str]) -> Doubt:
    told = (
        f"are {', '.join(repr(one) for one in names[:4])} causes of events, of which at most one happens, as assumed, "
    )
    return Doubt("--columns", told + "or models?")


def _named_by_time(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Columns are named by time, as 30 or net:30, which needs no option."""
    try:
        wide = columns_by_time([one.name for one in profiles])
    except InputError:
        return None
    if not wide:
        return None
    by_name = {one.name: one for one in profiles}
    columns = [name for by_time in wide.values() for name in by_time.values()]
    if not all(by_name[name].is_probability for name in columns):
        return None
    times = sorted(next(iter(wide.values())))
    found = Predicted({}, columns, "a column per time", "names are times", last=times[-1], n_models=len(wide))
    matrices = [_matrix([by_name[by_time[time]] for time in sorted(by_time)]) for by_time in wide.values()]
    found = _valued(found, matrices, tokens(" ".join(wide)))
    if times == list(range(len(times))) and len(times) > 1 and not _starts_as_survival(matrices[0], found):
        text = "names count from 0, and predictions at 0 are not those of the beginning: are these times, or positions?"
        found = replace(found, doubts=(*found.doubts, Doubt(", ".join(columns[:2]), text)))
    if times[0] >= YEARS[0] and times[-1] <= YEARS[1] and len(times) > 1:
        found = replace(found, doubts=(*found.doubts, Doubt(columns[0], "are names times, or years of the calendar?")))
    return found


def _named_by_cause(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Columns are named by cause and time, as default@30, which needs no option."""
    try:
        wide = columns_by_cause([one.name for one in profiles])
    except InputError:
        return None
    return _of_causes(wide, {one.name: one for one in profiles}, {}, "names are causes and times", ()) if wide else None


def _of_causes(
    wide: Mapping[str, ByCause],
    by_name: Mapping[str, Profile],
    options: dict[str, Any],
    why: str,
    doubts: tuple[Doubt, ...],
) -> Predicted | None:
    """Return predictions by cause, if values can be such: they do not fall with time, and sum to at most 1."""
    of_times = [by_time for several in wide.values() for by_time in several.values() if isinstance(by_time, dict)]
    columns = [name for by_time in of_times for name in by_time.values()]
    if not all(by_name[name].is_probability and by_name[name].complete for name in columns):
        return None
    times = sorted(of_times[0])
    matrices = {id(one): _matrix([by_name[one[time]] for time in sorted(one)]) for one in of_times}
    high = max(float(matrix.max()) for matrix in matrices.values())
    whole = 100.0 if high > 1 else 1.0
    rises = all(bool((np.diff(matrix, axis=1) >= -1e-9 * whole).all()) for matrix in matrices.values())
    sums = [
        sum(matrices[id(one)] for one in several.values() if isinstance(one, dict)) for several in wide.values()
        if len({matrices[id(one)].shape for one in several.values() if isinstance(one, dict)}) == 1
    ]  # fmt: skip
    if not rises or len(sums) < len(wide) or any(np.max(total) > whole * (1 + 1e-6) for total in sums):
        return None
    if high > 1:
        options = options | {"percent": True}
    return Predicted(options, columns, "a column per cause and time", why, last=times[-1], n_models=len(wide),
                     doubts=doubts, causes=tuple(next(iter(wide.values()))))  # fmt: skip


def _starts_as_survival(matrix: NDArray[np.float64], found: Predicted) -> bool:
    at_zero = 0.0 if found.options.get("predicts") == "event" else 100.0 if found.options.get("percent") else 1.0
    return bool(np.nanmean(np.abs(matrix[:, 0] - at_zero)) < 1e-6)


def _long(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Return predictions with a row for each id and time: ids are repeated, and their times go up."""
    if id_column is None or any(one.is_flag and strength(one.name, "event") for one in profiles):
        return None
    ids = as_texts(file, id_column)
    repeated = len(set(ids.tolist())) < ids.size
    if not repeated and not {"time", SURVIVAL} <= {one.name for one in profiles}:
        return None
    names = [one for one in profiles if one.name in ("time", "times", "t", "horizon", "day", "month", "days", "months")]
    names += [one for one in profiles if unit_in(one.name) and one not in names]
    timed = next((one for one in names if one.numbers is not None and one.complete), None)
    if timed is None or timed.numbers is None:
        return None
    cause = next((one for one in profiles if one.name == CAUSE and one.complete), None)
    values = [one for one in profiles if one is not timed and one is not cause and one.numbers is not None]
    probable = [one for one in values if one.is_probability and one.complete]
    probable = [one for one in probable if one.name == SURVIVAL] or probable
    causes = ["" for _ in ids] if cause is None else as_texts(file, CAUSE).tolist()
    if not probable or len(set(zip(ids.tolist(), timed.numbers.tolist(), causes, strict=True))) < ids.size:
        return None
    doubts = []
    if not repeated:  # in the order of time, some rows are about different individuals
        doubts.append(Doubt(id_column, "ids are not repeated in the rows that were looked at: are they in others?"))
    extra = [one.name for one in values if one not in probable and probable[0].name != SURVIVAL]
    if extra:
        doubts.append(Doubt(extra[0], f"every column of numbers would be read as a model; leave out {extra[0]!r}"))
    elif len(probable) > 1:
        named = ", ".join(repr(one.name) for one in probable[:4])
        doubts.append(Doubt(probable[0].name, f"every column of numbers is read as a model: {named}"))
    if cause is not None:
        ids = np.char.add(np.char.add(ids, "\0"), np.array(causes))
    order = np.lexsort((timed.numbers, ids))
    differences = [np.diff(one.numbers[order]) for one in probable if one.numbers is not None]
    same = ids[order][1:] == ids[order][:-1]
    stacked = np.concatenate([one[same] for one in differences]) if same.any() else np.zeros(0)
    found = Predicted(
        {"long": True}
        if timed.name == long_time_column([one.name for one in profiles])
        else {"time-column": timed.name},
        [one.name for one in probable],
        "a row per individual and time" if cause is None else "a row per individual, time and cause",
        f"ids in {id_column!r} are repeated, each with times of its own in {timed.name!r}",
        unit_in(timed.name),
        float(np.nanmax(timed.numbers)),
        len(probable),
        tuple(doubts),
        timed.name,
        tuple(dict.fromkeys(causes)) if cause is not None else (),
    )
    high = max(float(np.nanmax(one.numbers)) for one in probable if one.numbers is not None)
    if cause is not None and not (stacked < 0).any():  # of events, whatever the column is called
        return replace(found, options=found.options | ({"percent": True} if high > 1 else {}))
    return _with_direction(found, stacked, high, tokens(" ".join(one.name for one in probable)))


def as_texts(file: TableFile, id_column: str) -> NDArray[np.str_]:
    """Return ids as text, whatever they are."""
    with readable(file.path):
        return np.array(labels(file, id_column).cast("string").to_pylist(), dtype=np.str_)


def _named_by_pattern(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Columns have numbers in their names, such as surv_30 or "12 months", and hold probabilities that go one way."""
    groups: dict[tuple[str, str], dict[float, Profile]] = defaultdict(dict)
    for one in profiles:
        match = NUMBERED.fullmatch(one.name)
        if match is not None and one.is_probability and one.complete and "{" not in one.name:
            groups[match["before"], match["after"]].setdefault(float(match["time"]), one)
    likely = {named: group for named, group in groups.items() if _is_likely(*named, group)}
    if not likely:
        return None
    matrices = [_matrix([group[time] for time in sorted(group)]) for group in likely.values()]
    names = [one.name for one in profiles]
    of_causes = _causes_by_pattern(likely, profiles)
    if of_causes is not None:
        return of_causes
    pattern, chosen, doubts = _pattern_of(likely, names)
    used = [one.name for named in chosen for one in likely[named].values()]
    times = sorted(likely[chosen[0]])
    before, after = chosen[0]
    unit, doubt = _unit_of_pattern(before, after)
    why = "numbered, and go one way" if len(times) > 1 else "named so"
    doubts += [] if doubt is None else [doubt]
    found = Predicted({"columns": pattern}, used, "a column per time", why, unit, times[-1], len(chosen), tuple(doubts))
    return _valued(found, [one for named, one in zip(likely, matrices, strict=True) if named in chosen],
                   tokens(before) + tokens(after))  # fmt: skip


def _causes_by_pattern(
    likely: Mapping[tuple[str, str], dict[float, Profile]], profiles: Sequence[Profile]
) -> Predicted | None:
    """Return predictions by cause, if groups of columns may be causes: what is predicted sums to at most 1."""
    befores, afters = {named[0] for named in likely}, {named[1] for named in likely}
    ends = {before[-1:] for before in befores}
    words = [set(tokens(before)) for before in befores]
    if len(befores) < 2 or len(afters) > 1 or len(ends) > 1 or "".join(ends).isalnum() or not all(words):
        return None
    # what names say of survival, or of models, is no cause
    if any(some & (SURVIVAL_WORDS | MODEL_WORDS) or not some - (TELLING_WORDS - EVENT_WORDS) for some in words):
        return None
    pattern = f"{{cause}}{ends.pop()}{{time}}{afters.pop()}"
    wide = columns_by_cause([one.name for one in profiles], pattern)
    causes = list(next(iter(wide.values()))) if len(wide) == 1 else []
    if len(causes) != len(likely):
        return None
    by_name = {one.name: one for one in profiles}
    doubts = (_causes_or_models(causes),)
    return _of_causes(wide, by_name, {"columns": pattern}, "numbered, and do not fall", doubts)


def _is_likely(before: str, after: str, group: dict[float, Profile]) -> bool:
    """Whether columns that differ by a number only are predictions, and not covariates such as x1, x2, x3."""
    about = set(tokens(before) + tokens(after))
    telling = not about - TELLING_WORDS
    matrix = _matrix([group[time] for time in sorted(group)])
    if not telling and (matrix.max() > 1 or (matrix == np.round(matrix)).all()):
        return False  # visits_30d and visits_60d go one way, too
    if matrix.shape[1] == 1:
        some_vary = bool(np.ptp(matrix) > 0) and not (matrix == np.round(matrix)).all()
        of_time = telling and bool(about & set(UNIT_WORDS))
        return some_vary and (of_time or bool(about & (SURVIVAL_WORDS | EVENT_WORDS | {"prob", "proba", "p"})))
    steps = np.diff(matrix, axis=1)
    one_way = bool((steps <= 0).all() or (steps >= 0).all()) and bool(steps.any())
    mostly = max(float((steps <= 0).mean()), float((steps >= 0).mean())) > 0.9 and bool(steps.any())
    if len(matrix) < 3:
        return one_way and telling
    return one_way or (mostly and telling)


def _pattern_of(
    likely: dict[tuple[str, str], dict[float, Profile]], names: Sequence[str]
) -> tuple[str, list[tuple[str, str]], list[Doubt]]:
    """Return the pattern of names, the groups it stands for, and whether others were left out."""
    largest = max(likely, key=lambda named: len(likely[named]))
    alike = [named for named in likely if named[1] == largest[1] and set(likely[named]) == set(likely[largest])]
    ends = {named[0][-1:] for named in alike}
    separator = ends.pop() if len(ends) == 1 else ""
    pattern, chosen = f"{largest[0]}{{time}}{largest[1]}", [largest]
    if len(alike) > 1 and separator and not separator.isalnum():
        several = f"{{model}}{separator}{{time}}{largest[1]}"
        wanted = {one.name for named in alike for one in likely[named].values()}
        if wanted == _columns_like(several, names):
            pattern, chosen = several, alike
    doubts = []
    strange = [token for named in chosen for token in tokens(" ".join(named)) if token not in TELLING_WORDS]
    if strange:
        told = f"are columns with {strange[0]!r} in their names predictions? They are between 0 and 1, and go one way"
        doubts.append(Doubt("--columns", told))
    left_out = [named for named in likely if named not in chosen]
    if left_out:
        other = "{time}".join(left_out[0])
        doubts.append(Doubt("--columns", f"columns like {other!r} look like predictions, too; these are left out"))
    if {one.name for named in chosen for one in likely[named].values()} != _columns_like(pattern, names):
        doubts.append(Doubt("--columns", f"{pattern!r} also fits columns that look otherwise"))
    return pattern, chosen, doubts


def _columns_like(pattern: str, names: Sequence[str]) -> set[str]:
    try:
        return {name for by_time in columns_by_time(names, pattern).values() for name in by_time.values()}
    except InputError:
        return set()


def _unit_of_pattern(before: str, after: str) -> tuple[Unit | None, Doubt | None]:
    unit = unit_in(f"{before} {after}")
    if unit is not None:
        return unit, None
    if after.strip().lower() in UNIT_LETTERS:
        return UNIT_LETTERS[after.strip().lower()], None
    last = (tokens(before) or ("",))[-1]
    if last in UNIT_LETTERS:
        unit = UNIT_LETTERS[last]
        return unit, Doubt("--predictions-unit", f"is {before!r} in the names of predictions for {word(unit)}s?")
    return None, None


def _matrix(profiles: Sequence[Profile]) -> NDArray[np.float64]:
    columns = [one.numbers for one in profiles if one.numbers is not None]
    return np.column_stack(columns) if columns else np.zeros((0, 0))


def _valued(
    found: Predicted, matrix: NDArray[np.float64] | Sequence[NDArray[np.float64]], about: Sequence[str]
) -> Predicted:
    """Return predictions with what their values tell: of survival or of the event, percentages or not."""
    matrices = [matrix] if isinstance(matrix, np.ndarray) else list(matrix)
    steps = np.concatenate([np.diff(one, axis=1).ravel() for one in matrices])
    return _with_direction(found, steps, max(float(np.nanmax(one)) for one in matrices), about)


def _with_direction(found: Predicted, steps: NDArray[np.float64], high: float, about: Sequence[str]) -> Predicted:
    words = set(about)
    named = {"survival": bool(words & SURVIVAL_WORDS), "event": bool(words & EVENT_WORDS)}
    says = next((kind for kind, is_named in named.items() if is_named and sum(named.values()) == 1), None)
    falls, rises = bool((steps < 0).any()), bool((steps > 0).any())
    goes = "survival" if falls and not rises else "event" if rises and not falls else None
    if falls and rises:
        goes = "survival" if np.nanmean(steps) < 0 else "event"
    doubts = list(found.doubts)
    predicts = goes or says or "survival"
    if goes and says and goes != says:
        way = "fall" if goes == "survival" else "rise"
        doubts.append(Doubt("--predicts", f"names speak of {says}, but values {way} with time, as those of {goes} do"))
    elif goes is None and says is None:
        doubts.append(Doubt("--predicts", "are these probabilities of the event, or of being event-free?"))
    elif falls and rises:
        doubts.append(Doubt("--monotone", f"values go both ways with time; on average as those of {goes} do"))
    options = dict(found.options)
    if predicts == "event":
        options["predicts"] = "event"
    if high > 1:
        options["percent"] = True
        if high <= 2:
            doubts.append(Doubt("--percent", f"the largest value is {high:g}: percentages, or probabilities above 1?"))
    elif words & {"pct", "percent"} or any("%" in name for name in found.columns):
        doubts.append(Doubt("--percent", "names speak of percentages, but no value is above 1"))
    return replace(found, options=options, doubts=tuple(doubts))

"""Which columns of a table look like predictions: forms that readers know are tried, and values say which fits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from survscore._utils.dates import Unit, word
from survscore._validation import InputError
from survscore.curves import Predicts
from survscore.io.column_names import NamedColumns
from survscore.io.forms import Form
from survscore.io.layouts import CAUSE, SURVIVAL, layout_of, list_columns, long_time_column, looks_transposed, said_in
from survscore.io.layouts import time_column as first_column
from survscore.io.profiles import Doubt, Profile
from survscore.io.tables import TableFile
from survscore.io.vocabulary import UNIT_LETTERS, UNIT_WORDS, WORDS, strength, tokens, unit_in

NUMBERED = re.compile(r"(?P<before>.*?)(?P<time>\d+(?:\.\d+)?)(?P<after>\D*)", re.DOTALL)
SURVIVAL_WORDS, EVENT_WORDS, MODEL_WORDS = (WORDS[f"{what} words"] for what in ("survival", "event", "model"))
TELLING_WORDS = SURVIVAL_WORDS | EVENT_WORDS | MODEL_WORDS | WORDS["probability words"] | {*UNIT_WORDS, *UNIT_LETTERS}
FEW_INDIVIDUALS = 5  # in a file of rows by time
CAUSES_OR_MODELS = Doubt(
    "--columns", "are these causes of events, of which at most one happens, as assumed, or models?"
)
Group = dict[float, Profile]  # columns by the number in their names


@dataclass(frozen=True, eq=False)
class Predicted:
    """Columns that look like predictions: the form they have, in words as well, and what can't be known.

    `about` are words that say what values are, and `last` is the last of their times.
    """

    form: Form
    layout: str
    about: Sequence[str] = ()
    unit: Unit | None = None
    doubts: tuple[Doubt, ...] = ()
    time_column: str | None = None
    columns: tuple[str, ...] = ()
    last: float | None = None
    n_models: int = 1
    causes: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """What to say of the file, by long option without dashes; that a file is long, readers find out."""
        said = {name.replace("_", "-"): value for name, value in self.form.said.items() if name != "long"}
        said |= {"grid": f"1:{len(said['grid'])}:1"} if "grid" in said else {}
        return said | ({"unit": word(said["unit"])} if "unit" in said else {})

    def asking(self, about: str, text: str, *, when: bool = True) -> Predicted:
        """Return the same with a doubt more."""
        return replace(self, doubts=(*self.doubts, Doubt(about, text))) if when else self


def predicted_columns(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Return which columns look like predictions, by the first form whose values can be such."""
    others = [one for one in profiles if one.name != id_column]
    tried = (_tried(file, others, candidate, id_column) for candidate in _candidates(file, others, id_column))
    return next((found for found in tried if found is not None), None)


def _candidates(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Iterator[Predicted]:
    """Yield forms that a file may have."""
    with_event = any(one.is_flag and strength(one.name, "event") for one in profiles)
    try:
        named = NamedColumns.of([one.name for one in profiles], list_columns(file.schema), None)
    except InputError:
        named = NamedColumns({}, {}, {})
    by_time = any(len(found) > 1 for found in named.by_time.values())
    if not with_event and looks_transposed(file, by_time):  # not outcomes in the order of time
        column = first_column(file)
        others = [name for name in file.names if name != column]
        words = {word for name in others[:10] for word in tokens(name)}
        few = len(others) < FEW_INDIVIDUALS or words & (WORDS["curve words"] | SURVIVAL_WORDS | EVENT_WORDS)
        found = Predicted(Form(transposed=True), "a row per time, a column per individual", time_column=column)
        found = replace(found, unit=unit_in(column))
        yield found.asking("--transposed", "are columns individuals, or belong to one curve?", when=bool(few))
    if named.lists:
        yield from _lists(file, list(named.lists))
    elif named:
        layout = "a column per cause and time" if named.by_cause else "a column per time"
        yield Predicted(Form(), layout, tokens(" ".join(named.by_time)))
    if id_column is not None and not with_event:
        yield from _long(profiles)
    yield from _patterns(profiles)


def _lists(file: TableFile, names: list[str]) -> Iterator[Predicted]:
    """Yield lists as causes and as models; of which times they are, metadata say, or nothing does."""
    found = Predicted(Form(), "a list per individual", tokens(names[0]) if len(names) == 1 else ())
    try:
        length = len(file.read(names[:1]).column(0)[0].as_py() or ())
        known = "grid" in said_in(file.schema, names[0])
    except InputError:  # reading them will say so, too
        return
    if length and not known:
        told = f"nothing says of which {length} times the lists are; 1 to {length} is a guess"
        found = replace(found, form=Form(grid=np.arange(1.0, length + 1))).asking("--grid", told)
    if len(names) > 1 and not any(set(tokens(name)) & (SURVIVAL_WORDS | MODEL_WORDS) for name in names):
        form = replace(found.form, columns="{cause}")
        doubts = (*found.doubts, CAUSES_OR_MODELS)
        yield replace(found, form=form, layout="a list per individual and cause", doubts=doubts)
    yield found


def _long(profiles: Sequence[Profile]) -> Iterator[Predicted]:
    """Yield predictions with a row for each id and time."""
    usual = long_time_column([one.name for one in profiles])
    names = [one for one in profiles if one.name == usual or unit_in(one.name)]
    timed = next(
        (one.name for one in sorted(names, key=lambda one: one.name != usual) if one.is_between(0, np.inf)), None
    )
    values = [one for one in profiles if one.name not in (timed, CAUSE) and "numbers" in one.kind]
    values = [one for one in values if one.name == SURVIVAL] or values
    if timed is None or not values:
        return
    layout = "a row per individual, time and cause" if any(one.name == CAUSE for one in profiles) else None
    form = Form(long=True) if timed == usual else Form(time_column=timed)
    about = tokens(" ".join(one.name for one in values))
    found = Predicted(form, layout or "a row per individual and time", about, unit_in(timed), time_column=timed)
    several = len(values) > 1
    yield found.asking(values[0].name, "every column of numbers is read as a model: are they?", when=several)


def _patterns(profiles: Sequence[Profile]) -> Iterator[Predicted]:
    """Yield columns with numbers in their names, such as surv_30 or "12 months", which hold probabilities."""
    groups: dict[tuple[str, str], Group] = defaultdict(dict)
    for one in profiles:
        match = NUMBERED.fullmatch(one.name)
        if match is not None and one.is_between(0, 100) and one.complete and "{" not in one.name:
            groups[match["before"], match["after"]].setdefault(float(match["time"]), one)
    likely = {named: group for named, group in groups.items() if _is_likely(*named, group)}
    if not likely:
        return
    before, after = largest = max(likely, key=lambda named: len(likely[named]))
    alike = [named for named in likely if named[1] == after and likely[named].keys() == likely[largest].keys()]
    signs = {named[0][-1:] for named in alike}
    if len(alike) > 1 and len(signs) == 1 and not (sign := signs.pop()).isalnum():
        words = [set(tokens(named[0])) for named in alike]
        # what names say of survival, or of models, is no cause
        strange = (some - (TELLING_WORDS - EVENT_WORDS) and not some & (SURVIVAL_WORDS | MODEL_WORDS) for some in words)
        if len(alike) == len(likely) and all(strange):
            form = Form(columns=f"{{cause}}{sign}{{time}}{after}")
            yield Predicted(form, "a column per cause and time", doubts=(CAUSES_OR_MODELS,))
        yield _of_pattern(f"{{model}}{sign}{{time}}{after}", alike, likely)
    yield _of_pattern(f"{before}{{time}}{after}", [largest], likely)


def _is_likely(before: str, after: str, group: Group) -> bool:
    """Whether columns that differ by a number only are predictions, and not covariates such as x1, x2, x3."""
    about = set(tokens(before) + tokens(after))
    telling = not about - TELLING_WORDS
    matrix = np.column_stack([group[time].numbers for time in sorted(group)])
    whole = bool((matrix == np.round(matrix)).all())
    if not telling and (matrix.max() > 1 or whole):
        return False  # visits_30d and visits_60d go one way, too
    if matrix.shape[1] == 1:
        of_time = telling and bool(about & set(UNIT_WORDS))
        return not whole and (of_time or bool(about & (SURVIVAL_WORDS | EVENT_WORDS | {"prob", "proba", "p"})))
    steps = np.diff(matrix, axis=1)
    down, up = float((steps <= 0).mean()), float((steps >= 0).mean())
    most = max(down, up) if len(matrix) > 2 or telling else 0
    return bool(steps.any()) and (most == 1 or (most > 0.9 and telling and len(matrix) > 2))


def _of_pattern(pattern: str, chosen: list[tuple[str, str]], likely: dict[tuple[str, str], Group]) -> Predicted:
    """Return what columns are that are named by a pattern, and what is doubtful about that."""
    before, after = chosen[0]
    unit = unit_in(f"{before} {after}") or UNIT_LETTERS.get(after.strip().lower())
    last = UNIT_LETTERS.get((tokens(before) or ("",))[-1])
    columns = tuple(one.name for named in chosen for one in likely[named].values())
    found = Predicted(
        Form(columns=pattern), "a column per time", tokens(before) + tokens(after), unit or last, columns=columns
    )
    if unit is None and last is not None:
        found = found.asking("--predictions-unit", f"is {before!r} in the names of predictions for {word(last)}s?")
    strange = [token for named in chosen for token in tokens(" ".join(named)) if token not in TELLING_WORDS]
    left_out = ["{time}".join(named) for named in likely if named not in chosen]
    told = f"are columns with {''.join(strange[:1])!r} in their names predictions? Their values can be such"
    found = found.asking("--columns", told, when=bool(strange))
    told = f"columns like {''.join(left_out[:1])!r} look like predictions, too; these are left out"
    return found.asking("--columns", told, when=bool(left_out))


def _tried(file: TableFile, profiles: Sequence[Profile], found: Predicted, id_column: str | None) -> Predicted | None:
    """Return predictions as they are read in a form; None, where there are none, or values can't be such."""
    long = found.form.long or found.form.time_column is not None
    try:
        layout = layout_of(file, found.form, id_column if long and id_column else False)
        read = [] if layout is None else [layout.read(model) for model in layout.models]
    except InputError:
        return None
    if layout is None or not all(matrix.size and ((matrix >= 0) & (matrix <= 100)).all() for _, matrix, _ in read):
        return None
    used = tuple(one.name for one in profiles if one.name in layout.used and one.name not in (found.time_column, CAUSE))
    others = bool(found.columns) and set(found.columns) != set(used)
    if others and "{model}" in str(found.form.columns):
        return None
    once = long and layout.ids is not None and len(layout.ids) == file.n_rows
    found = found.asking(str(id_column), "ids are not repeated in the rows looked at: are they in others?", when=once)
    found = found.asking("--columns", f"{found.form.columns!r} also fits columns that look otherwise", when=others)
    steps = np.concatenate([np.diff(matrix, axis=-1).ravel() for _, matrix, _ in read])
    high, times = max(float(matrix.max()) for _, matrix, _ in read), read[0][0]
    last = None if found.form.grid is not None else float(times[-1])
    found = replace(found, columns=used, n_models=len(layout.models), last=last)
    if layout.causes:  # probabilities of their events do not fall with time, and sum to at most 1
        whole = 100.0 if high > 1 else 1.0
        if (steps < -1e-9 * whole).any() or max(np.max(one.sum(axis=1)) for _, one, _ in read) > whole * (1 + 1e-6):
            return None
        return replace(found, form=replace(found.form, percent=high > 1), causes=next(iter(layout.causes.values())))
    if found.form == Form() or not found.form.said:  # names are numbers
        first = read[0][1][:, 0]
        odd = (
            np.array_equal(times, np.arange(times.size))
            and min(np.abs(first - one).mean() for one in (0, 1, 100)) > 1e-6
        )
        told = "predictions at 0 are not those of the beginning: are names times, or positions?"
        found = found.asking(", ".join(used[:2]), told, when=bool(odd and times.size > 1))
        years = times.size > 1 and times[0] >= 1900 and times[-1] <= 2100
        found = found.asking(used[0], "are names times, or years of the calendar?", when=bool(years))
    return _with_direction(found, steps, high)


def _with_direction(found: Predicted, steps: Any, high: float) -> Predicted:
    """Return predictions with what their values tell: of survival or of the event, percentages or not."""
    words = set(found.about)
    named: list[Predicts] = [kind for kind in ("survival", "event") if words & WORDS[f"{kind} words"]]
    says = named[0] if len(named) == 1 else None
    falls, rises = bool((steps < 0).any()), bool((steps > 0).any())
    goes: Predicts | None = None
    if falls or rises:
        goes = "survival" if steps.mean() < 0 else "event"
    told = f"names speak of {says}, but values go with time as those of {goes} do"
    found = found.asking("--predicts", told, when=None not in (goes, says) and goes != says)
    told = "are these probabilities of the event, or of being event-free?"
    found = found.asking("--predicts", told, when=goes is None and says is None)
    told = f"values go both ways with time; on average as those of {goes} do"
    found = found.asking("--monotone", told, when=falls and rises)
    told = f"the largest value is {high:g}: percentages, or probabilities?"
    percent = bool(words & {"pct", "percent"}) or any("%" in name for name in found.columns)
    found = found.asking("--percent", told, when=1 < high <= 2 or (high <= 1 and percent))
    return replace(found, form=replace(found.form, predicts=goes or says or "survival", percent=high > 1))

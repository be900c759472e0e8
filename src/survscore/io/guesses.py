"""Which columns of a table look like outcomes, and which like predictions: what `survscore formats` goes by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from survscore._utils.dates import Unit, word
from survscore._validation import InputError
from survscore.curves import Predicts
from survscore.io.dates import DECIMAL_YEAR, EPOCHS
from survscore.io.flags import REASON_OPTIONS, joined_words
from survscore.io.flags import WORDS as FLAG_WORDS
from survscore.io.forms import Form
from survscore.io.layouts import (
    CAUSE,
    LISTS,
    LONG,
    SURVIVAL,
    TRANSPOSED,
    Layout,
    layout_of,
    list_columns,
    long_time_column,
    looks_transposed,
    metadata_of,
    time_column,
)
from survscore.io.profiles import (
    UNIT_WORDS,
    WORDS,
    Doubt,
    Profile,
    plain,
    speaks_of,
    strength,
    tokens,
    unit_in,
)
from survscore.io.tables import TableFile

WITHOUT_C = (
    "The censoring time C* is not in the table, so only IPCW scores are possible, which mislead if predictions encode "
    "C*. If follow-up ends on a known date, dates of entry and --cutoff, or a column for --censoring-time, allow "
    "administrative scores."
)
STATED = ("churned", "died", "dead", "deceased", "active", "alive", "censored")  # flags that say what they mean


NUMBERED = re.compile(r"(?P<before>.*?)(?P<time>\d+(?:\.\d+)?)(?P<after>\D*)", re.DOTALL)
UNIT_LETTERS: dict[str, Unit] = {"d": "D", "w": "W", "m": "M", "y": "Y", "h": "h"}
SURVIVAL_WORDS, EVENT_WORDS, MODEL_WORDS = (WORDS[f"{what} words"] for what in ("survival", "event", "model"))
TELLING_WORDS = SURVIVAL_WORDS | EVENT_WORDS | MODEL_WORDS | WORDS["probability words"] | {*UNIT_WORDS, *UNIT_LETTERS}
FEW_INDIVIDUALS = 5  # in a file of rows by time
CAUSES_OR_MODELS = "are these causes of events, of which at most one happens, as assumed, or models?"
Group = dict[float, Profile]  # columns by the number in their names


@dataclass
class Observed:
    """What columns that look like outcomes seem to be, and what to say of the file, by long option without dashes."""

    left: list[Profile]  # which may still be anything
    of_business: bool = False
    options: dict[str, str] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unit: Unit | None = None

    def best(self, role: str, fits: Callable[[Profile], bool], *, least: int = 1) -> Profile | None:
        """Return the column whose name fits a role best, if its values do too; doubt, where two fit as well."""
        ranked = [(strength(one.name, role), one) for one in self.left if one.name not in self.meanings and fits(one)]
        top = max((rank for rank, _ in ranked), default=0)
        best = [one for rank, one in ranked if rank == top >= least]
        exact = [one for one in best if one.name.lower() == role]
        if len(best) > 1 and not exact:
            others = " or ".join(repr(one.name) for one in best[1:4])
            self.doubt(f"--{role.replace('_', '-')}", f"{best[0].name!r}, or is it {others}?")
        return next(iter(exact or best), None)

    def take(self, role: str, one: Profile, doubt: str | None = None) -> None:
        """Add the option that names a column; a doubt, if its name does not say clearly that it is that."""
        option = role.replace("_", "-")
        self.options[option], self.meanings[one.name] = one.name, role
        if doubt is not None and strength(one.name, role) < 2:
            self.doubt(f"--{option}", doubt)

    def doubt(self, about: str, text: str) -> None:
        """Ask about something."""
        self.doubts.append(Doubt(about, text))


def id_column(profiles: Sequence[Profile]) -> tuple[str | None, list[Doubt]]:
    """Return the column of ids, repeated or not, and what is doubtful about it."""
    kinds = ("text", "whole numbers", "flags", "dates")
    held = Observed([one for one in profiles if one.complete and one.kind in kinds and one.name])
    several = len(profiles[0].missing) > 1
    chosen = held.best("id", lambda one: one.name == "id" or (one.distinct and several), least=2)
    chosen = chosen or held.best("id", lambda one: True, least=2)
    chosen = chosen or held.best("id", lambda one: one.distinct and several)
    return None if chosen is None else chosen.name, held.doubts


def observed_columns(profiles: Sequence[Profile], names: Sequence[str] = ()) -> Observed | None:
    """Return which columns look like outcomes: dates with a known cut-off, times, or dates, whichever is clearer.

    `profiles` are of the columns that are neither ids nor predictions; `names` of all columns tell what it is about.
    """
    of_business = any(speaks_of(word, "business") for name in names for word in tokens(name))
    by_dates = _dates(Observed(list(profiles), of_business))
    by_times = _times(Observed(list(profiles), of_business))
    if by_dates is None or by_times is None:
        return by_dates or by_times
    certain = "--cutoff" not in {doubt.about for doubt in by_dates.doubts}
    return by_dates if certain or by_times.doubts else by_times


def _times(held: Observed) -> Observed | None:
    time = held.best("time", _is_duration)
    if time is None:
        return None
    held.take("time", time, f"is {time.name!r} how long they were followed?")
    if not _status(held):
        return None
    held.unit = unit_in(time.name)
    end = held.best("censoring_time", lambda one: _is_duration(one) and bool((one.numbers >= time.numbers - 1).all()))
    if end is None:
        held.notes.append(WITHOUT_C)
    else:
        held.take("censoring_time", end, f"is {end.name!r} when the data of each end (C*)?")
    for one in held.left:
        if one.name.lower() in ("start", "tstart", "time1", "entry", "_t0") and (one.numbers > 0).any():
            held.doubt(one.name, f"are these times of entry? If so, --entry {one.name} counts time from them")
    _ask_about_ends(held, time, end)
    return held


def _ask_about_ends(held: Observed, time: Profile, end: Profile | None) -> None:
    """Ask about other columns that may say who dropped out, or why observation ended, unless others say the same."""
    flag = next((one for one in held.left if one.name == held.options.get("event")), None)
    for one in [one for one in held.left if one.name not in held.meanings]:
        if one.is_flag and speaks_of(one.name, "dropout"):
            held.meanings[one.name] = "dropout"
            if end is None or flag is None:
                held.doubt(one.name, "without C*, all without event are treated alike, dropped out or not: is that so?")
            elif differ := int(((~flag.is_yes & (time.numbers < end.numbers)) != one.is_yes).sum()):
                text = f"{one.name!r} says otherwise than times in {differ} rows: drop-outs are those without event "
                held.doubt(one.name, f"{text}whose {time.name!r} is before {end.name!r}. Is that so?")
            continue
        same = flag is not None and one.words == flag.words and np.array_equal(one.values, flag.values)
        named = strength(one.name, "reason") or strength(one.name, "event") == 2
        if named and not same and 2 <= len(one.words) <= 12 and one.kind in ("flags", "text", "whole numbers"):
            text = f"does it say why observation ended ({', '.join(one.words[:6])})? It is ignored; if some of it is "
            held.doubt(one.name, f"{text}another event or a drop-out, say --reason and what each means")


def _is_duration(one: Profile) -> bool:
    held = one.numbers[~one.missing]
    return one.is_between(0, np.inf) and bool((held > 1).any() or (held != np.round(held)).any())


def _status(held: Observed) -> bool:
    """Add the options that say who had the event, if a column does: a flag, or few words or numbers."""

    def could_be(one: Profile) -> bool:
        few = one.is_flag or 2 <= len(one.words) <= 12
        return few and one.kind in ("flags", "text", "whole numbers", "numbers")

    status = held.best("event", lambda one: one.is_flag and could_be(one))
    status = status or held.best("event", could_be, least=2) or held.best("reason", could_be)
    if status is None:
        return False
    if max(strength(status.name, "event"), strength(status.name, "reason")) < 2:
        held.doubt("--event", f"is {status.name!r} whether the event happened?")
    options, doubt = event_options(status)
    if doubt is None and status.kind == "flags" and held.of_business and "status" in tokens(status.name):
        doubt = Doubt("--event", f"is 1 in {status.name!r} the event, or an active one?")
    held.meanings[status.name] = "event" if "event" in options else "reason"
    held.doubts += [] if doubt is None else [doubt]
    held.options |= options
    return True


def event_options(status: Profile) -> tuple[dict[str, str], Doubt | None]:
    """Return which option takes a column of flags or reasons, and what is doubtful."""
    words = {plain(word): word for word in status.words}
    some_words, name = ", ".join(status.words[:6]), status.name
    after = " Can it still come after the others? Then name these in --censored-reasons"
    if status.is_flag:
        free = [word for key, word in words.items() if not FLAG_WORDS.get(key, True)]
        if free and not set(STATED) & set(words) and (speaks_of(name, "censored") or speaks_of(name, "active")):
            text = f"does {free[0]} in {name!r} stand for the event, as its name says?"
            return _meant(status, free[:1]), Doubt("--event-reasons", text)
        only = Doubt("--event", f"all rows have {status.words[0]} in {name!r}: is it the flag?")
        return {"event": name}, only if len(words) == 1 else None
    if set(words) == {"1", "2"}:
        one, two = words["1"], words["2"]
        text = f"{name!r} is {one} or {two}: in R's data sets {two} is the event, as assumed; otherwise say "
        return _meant(status, [two]), Doubt("--event-reasons", f"{text}--event-reasons {one} --censored-reasons {two}")
    if all(key.isdigit() for key in words):
        events = [word for key, word in words.items() if float(key)]
        if len(events) == len(words):
            doubt = Doubt("--event-reasons", f"{name!r} is {some_words}: which is the event?{after}")
            return _meant(status, events[:1], events[1:]), doubt
        text = f"{name!r} is {some_words}: 0 without event, and causes of events that compete, as assumed? If one is a "
        return {"event": name}, Doubt("--event", f"{text}drop-out, or several are one event, say --reason")
    some = [word for key, word in words.items() if not any(part in f"{key} " for part in WORDS["other reasons"])]
    events = [word for word in some if word.strip().lower().startswith(tuple(WORDS["event reasons"]))]
    events = events or [word for word in some if any(part in word.lower() for part in WORDS["event reasons"])]
    # What is neither the event nor known to be without may have ruled the event out: rather that than a drop-out.
    competing = [word for word in some if word not in events]
    doubt = Doubt("--event-reasons", f"which of {some_words} are the event?{after if competing else ''}")
    return _meant(status, events or ["WHICH"], competing), doubt


def _meant(status: Profile, event: Sequence[str], competing: Sequence[str] = ()) -> dict[str, str]:
    """Return the options for a column of reasons, of which all others are censored."""
    censored = [word for word in status.words if word not in event and word not in competing]
    named = zip(REASON_OPTIONS, (event, competing, censored), strict=True)
    lists = {name: joined_words(list(dict.fromkeys(word.strip() for word in some))) for name, some in named if some}
    return {"reason": status.name, **lists}


def _dates(held: Observed) -> Observed | None:
    start = held.best("start", lambda one: one.is_dated and one.complete)
    if start is None:
        return None
    held.take("start", start)
    held.unit = "D"
    every = held.left
    held.left = [one for one in every if one.is_dated and one.is_written_like(start)]
    cutoff = held.best("cutoff", lambda one: (one.complete and not one.distinct) or len(one.missing) == 1)
    if cutoff is not None:
        held.meanings[cutoff.name] = "cutoff"
    event = held.best("event_date", lambda one: True)
    seen = held.best("last_seen", lambda one: True, least=2)
    end = held.best("end", lambda one: one is not seen)
    ended = event or end or seen
    held.left = every
    if ended is None:
        return None
    if event is not None and not event.complete:
        _of_events(held, event, seen, end)
    else:  # a flag or a reason must say whether it is the date of the event
        held.meanings[ended.name] = "end"
        if _status(held):
            held.take("end", ended)
        else:
            held.take("event_date", ended)
            text = f"no flag says whether {ended.name!r} is when the event happened: is every date one of it?"
            held.doubt("--event-date", text)
    used = [one for one in every if one.name in held.meanings and one.is_dated]
    _cutoff(held, cutoff, used)
    _written(held, used)
    return held


def _of_events(held: Observed, event: Profile, seen: Profile | None, end: Profile | None) -> None:
    """Add the options for dates that are there only for those with event."""
    held.take("event_date", event)
    # being active is no contact with those who study somebody: who was not active lately is not lost to them
    contact = seen is not None and not speaks_of(seen.name, "activity")
    seen = seen or (end if end is not None and end.complete else None)
    if seen is not None:
        held.take("last_seen", seen)
        if not contact:
            text = f"are those without event lost on the date in {seen.name!r}? If not, leave it out"
            held.doubt("--last-seen", text)
    elif end is not None:
        held.doubt("--event-date", f"{event.name!r}, or is it {end.name!r}?")
    flags = Observed([one for one in held.left if one.kind == "flags" and one.complete], meanings=held.meanings)
    flag = flags.best("event", lambda one: not speaks_of(one.name, "censored") and not speaks_of(one.name, "active"))
    differ = 0 if flag is None else int((flag.is_yes != ~event.missing).sum())
    if flag is not None and differ:
        held.doubt("--event-date", f"{flag.name!r} says otherwise than {event.name!r} in {differ} rows")


def _written(held: Observed, used: Sequence[Profile]) -> None:
    """Add how dates are written: what can be read in two ways is read as the columns are that can be read in one."""
    several = list(dict.fromkeys(one.writing for one in used if one.writing is not None and one.kind != "empty"))
    clear = next((one for one in several if one.doubt is None), several[0])
    if clear.date_format is not None:
        held.options["date-format"] = clear.date_format
        held.notes += ["Times of day are those of UTC."] if clear.date_format in EPOCHS else []
    if clear.origin is not None:
        held.options["origin"] = clear.origin
        held.notes.append("Dates are numbers of days; since when they count does not matter to times in days.")
    if open_ends := list(dict.fromkeys(date for one in used for date in one.open_end)):
        held.options["open-end"] = joined_words(open_ends)
        held.notes.append(f"Where a date is {', '.join(open_ends)}, there is no end yet.")
    if clear.doubt is not None:
        held.doubt("--date-format", clear.doubt)
    elif len(several) > 1 and all(one.doubt is None for one in several):
        held.doubt("--date-format", "columns write dates in different ways; only one can be read")


def _cutoff(held: Observed, cutoff: Profile | None, used: Sequence[Profile]) -> None:
    """Add the data cut-off: a column, or the largest date seen."""
    if cutoff is not None:
        held.options["cutoff"] = cutoff.name
    try:
        if cutoff is not None:
            late = max(int(np.asarray(one.dates() > cutoff.dates()).sum()) for one in used)
            if late:
                held.doubt("--cutoff", f"{late} rows have dates after {cutoff.name!r}: is that the data cut-off?")
            return
        latest = max(one.dates().max() for one in used if not one.missing.all())
    except (InputError, TypeError, ValueError):
        return  # reading the rows as proposed will say what is wrong
    text = str(latest.date()) if latest == latest.normalize() and latest.tz is None else latest.isoformat()
    own = [one for one in used if one.writing is not None and one.writing.date_format == DECIMAL_YEAR]
    if own:  # as the file has it, which a date could only be near to
        text = repr(max(float(np.nanmax(one.numbers)) for one in own))
    held.options["cutoff"] = text
    held.doubt("--cutoff", f"the data cut-off is unknown; {text} is the largest date seen. Say the date of the export")


@dataclass(frozen=True, eq=False)
class Predicted:
    """Columns that look like predictions: the form they have, and what can't be known.

    `about` are words that say what values are, and `layout` is how they are read.
    """

    form: Form
    about: Sequence[str] = ()
    unit: Unit | None = None
    doubts: tuple[Doubt, ...] = ()
    time_column: str | None = None
    columns: tuple[str, ...] = ()
    layout: Layout | None = None

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes that are predicted."""
        return next(iter(self.layout.causes.values()), ()) if self.layout is not None else ()

    @property
    def options(self) -> dict[str, Any]:
        """What to say of the file, by long option without dashes; that a file is long, readers find out."""
        options = {name.replace("_", "-"): value for name, value in self.form.settings.items() if name != "long"}
        options |= {"grid": f"1:{len(options['grid'])}:1"} if "grid" in options else {}
        return options | ({"unit": word(options["unit"])} if "unit" in options else {})

    def asking(self, about: str, text: str, *, when: bool = True) -> Predicted:
        """Return the same with a doubt more."""
        return replace(self, doubts=(*self.doubts, Doubt(about, text))) if when else self


def predicted_columns(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Predicted | None:
    """Return which columns look like predictions: forms that readers know are tried, and values say which fits."""
    others = [one for one in profiles if one.name != id_column]
    tried = (_tried(file, others, candidate, id_column) for candidate in _candidates(file, others, id_column))
    return next((found for found in tried if found is not None), None)


def _candidates(file: TableFile, profiles: Sequence[Profile], id_column: str | None) -> Iterator[Predicted]:
    """Yield forms that a file may have: first as readers take it by themselves."""
    with_event = any(one.is_flag and strength(one.name, "event") for one in profiles)
    try:
        usual = layout_of(file, Form(), False)
    except InputError:
        usual = None
    if not with_event and looks_transposed(file, usual):  # not outcomes in the order of time
        column = time_column(file)
        others = [name for name in file.names if name != column]
        words = {word for name in others[:10] for word in tokens(name)}
        few = len(others) < FEW_INDIVIDUALS or words & (WORDS["curve words"] | SURVIVAL_WORDS | EVENT_WORDS)
        found = Predicted(Form(transposed=True), unit=unit_in(column), time_column=column)
        yield found.asking("--transposed", "are columns individuals, or belong to one curve?", when=bool(few))
    if usual is not None and usual.kind == LISTS:
        yield from _lists(file, list_columns(file.schema))
    elif usual is not None and usual.kind != LONG:
        yield Predicted(Form())
    if id_column is not None and not with_event:
        yield from _long(profiles)
    yield from _patterns(profiles)


def _lists(file: TableFile, names: list[str]) -> Iterator[Predicted]:
    """Yield lists as causes and as models; of which times they are, metadata say, or nothing does."""
    found = Predicted(Form())
    try:
        length = len(file.read(names[:1]).column(0)[0].as_py() or ())
        known = "grid" in metadata_of(file.schema, names[0])
    except InputError:  # reading them will say so, too
        return
    if length and not known:
        text = f"nothing says of which {length} times the lists are; 1 to {length} is a guess"
        found = replace(found, form=Form(grid=np.arange(1.0, length + 1))).asking("--grid", text)
    if len(names) > 1 and not any(set(tokens(name)) & (SURVIVAL_WORDS | MODEL_WORDS) for name in names):
        by_cause = replace(found, form=replace(found.form, columns="{cause}"))
        yield by_cause.asking("--columns", CAUSES_OR_MODELS)
    yield found


def _long(profiles: Sequence[Profile]) -> Iterator[Predicted]:
    """Yield predictions with a row for each id and time."""
    usual = long_time_column([one.name for one in profiles])
    names = [one for one in profiles if (one.name == usual or unit_in(one.name)) and one.is_between(0, np.inf)]
    timed = next((one.name for one in sorted(names, key=lambda one: one.name != usual)), None)
    values = [one for one in profiles if one.name not in (timed, CAUSE) and "numbers" in one.kind]
    values = [one for one in values if one.name == SURVIVAL] or values
    if timed is None or not values:
        return
    form = Form(long=True) if timed == usual else Form(time_column=timed)
    found = Predicted(form, tokens(" ".join(one.name for one in values)), unit_in(timed), time_column=timed)
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
            yield Predicted(form).asking("--columns", CAUSES_OR_MODELS)
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
    found = Predicted(Form(columns=pattern), tokens(before) + tokens(after), unit or last, columns=columns)
    if unit is None and last is not None:
        found = found.asking("--predictions-unit", f"is {before!r} in the names of predictions for {word(last)}s?")
    strange = [token for named in chosen for token in tokens(" ".join(named)) if token not in TELLING_WORDS]
    left_out = ["{time}".join(named) for named in likely if named not in chosen]
    text = f"are columns with {''.join(strange[:1])!r} in their names predictions? Their values can be such"
    found = found.asking("--columns", text, when=bool(strange))
    text = f"columns like {''.join(left_out[:1])!r} look like predictions, too; these are left out"
    return found.asking("--columns", text, when=bool(left_out))


def _tried(file: TableFile, profiles: Sequence[Profile], found: Predicted, id_column: str | None) -> Predicted | None:
    """Return predictions as they are read in a form; None, where there are none, or values can't be such."""
    form = found.form
    long = form.long or form.time_column is not None
    try:
        layout = layout_of(file, form, id_column if long and id_column else False)
        read = [] if layout is None else [layout.read(model) for model in layout.models]
    except InputError:
        return None
    if layout is None or not all(matrix.size and ((matrix >= 0) & (matrix <= 100)).all() for _, matrix, _ in read):
        return None
    used = tuple(one.name for one in profiles if one.name in layout.used and one.name not in (found.time_column, CAUSE))
    others = bool(found.columns) and set(found.columns) != set(used)
    if others and "{model}" in str(form.columns):
        return None
    named = layout.kind != TRANSPOSED and (layout.kind != LISTS or len(layout.models) == 1)
    about = found.about or (tokens(" ".join(layout.models)) if named else ())
    found = replace(found, columns=used, layout=layout, about=about)
    once = long and layout.ids is not None and len(layout.ids) == file.n_rows
    found = found.asking(str(id_column), "ids are not repeated in the rows looked at: are they in others?", when=once)
    found = found.asking("--columns", f"{form.columns!r} also fits columns that look otherwise", when=others)
    steps = np.concatenate([np.diff(matrix, axis=-1).ravel() for _, matrix, _ in read])
    high, times = max(float(matrix.max()) for _, matrix, _ in read), read[0][0]
    if layout.causes:  # probabilities of their events do not fall with time, and sum to at most 1
        whole = 100.0 if high > 1 else 1.0
        if (steps < -1e-9 * whole).any() or max(np.max(one.sum(axis=1)) for _, one, _ in read) > whole * (1 + 1e-6):
            return None
        return replace(found, form=replace(form, percent=high > 1))
    if not form.settings:  # names are numbers
        first = read[0][1][:, 0]
        at_begin = min(np.abs(first - one).mean() for one in (0, 1, 100)) <= 1e-6
        odd = times.size > 1 and np.array_equal(times, np.arange(times.size)) and not at_begin
        text = "predictions at 0 are not those of the beginning: are names times, or positions?"
        found = found.asking(", ".join(used[:2]), text, when=odd)
        years = times.size > 1 and times[0] >= 1900 and times[-1] <= 2100
        found = found.asking(used[0], "are names times, or years of the calendar?", when=bool(years))
    return _with_direction(found, steps, high)


def _with_direction(found: Predicted, steps: Any, high: float) -> Predicted:
    """Return predictions with what their values tell: of survival or of the event, percentages or not."""
    words = set(found.about)
    named: list[Predicts] = [kind for kind in ("survival", "event") if words & WORDS[f"{kind} words"]]
    stated = named[0] if len(named) == 1 else None
    falls, rises = bool((steps < 0).any()), bool((steps > 0).any())
    goes: Predicts | None = None
    if falls or rises:
        goes = "survival" if steps.mean() < 0 else "event"
    text = f"names speak of {stated}, but values go with time as those of {goes} do"
    found = found.asking("--predicts", text, when=None not in (goes, stated) and goes != stated)
    text = "are these probabilities of the event, or of being event-free?"
    found = found.asking("--predicts", text, when=goes is None and stated is None)
    text = f"values go both ways with time; on average as those of {goes} do"
    found = found.asking("--monotone", text, when=falls and rises)
    text = f"the largest value is {high:g}: percentages, or probabilities?"
    percent = bool(words & {"pct", "percent"}) or any("%" in name for name in found.columns)
    found = found.asking("--percent", text, when=1 < high <= 2 or (high <= 1 and percent))
    return replace(found, form=replace(found.form, predicts=goes or stated or "survival", percent=high > 1))

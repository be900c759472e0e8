"""Which columns of a table look like outcomes: times and flags, or dates and the data cut-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import InputError
from survscore.io.dates import DECIMAL_YEAR, EPOCHS
from survscore.io.flags import REASON_OPTIONS, WORDS, joined_words
from survscore.io.profiles import Doubt, Profile, Writing
from survscore.io.vocabulary import WORDS as SAID
from survscore.io.vocabulary import speaks_of, strength, tokens, unit_in

WITHOUT_C = (
    "The censoring time C* is not in the table, so only IPCW scores are possible, which mislead if predictions encode "
    "C*. If follow-up ends on a known date, dates of entry and --cutoff, or a column for --censoring-time, allow "
    "administrative scores."
)
STATED = ("churned", "died", "dead", "deceased", "active", "alive", "censored")  # flags that say what they mean


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
            self.doubt(f"--{role.replace('_', '-')}", f"{best[0].name!r}, or is it {_or(best[1:])}?")
        return next(iter(exact or best), None)

    def doubt(self, about: str, text: str) -> None:
        """Ask about something."""
        self.doubts.append(Doubt(about, text))


def _or(profiles: Sequence[Profile]) -> str:
    return " or ".join(repr(one.name) for one in profiles[:3])


def id_column(profiles: Sequence[Profile]) -> tuple[str | None, list[Doubt]]:
    """Return the column of ids, repeated or not, and what is doubtful about it."""
    kinds = ("text", "whole numbers", "flags", "dates")
    held = Observed([one for one in profiles if one.complete and one.kind in kinds and one.name])
    several = len(profiles[0].missing) > 1
    chosen = held.best("id", lambda one: one.name == "id" or (one.distinct and several), least=2)
    chosen = (
        chosen or held.best("id", lambda one: True, least=2) or held.best("id", lambda one: one.distinct and several)
    )
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
    held.meanings[time.name] = "time"
    if strength(time.name, "time") < 2:
        held.doubt("--time", f"is {time.name!r} how long they were followed?")
    if not _status(held):
        return None
    held.options["time"], held.unit = time.name, unit_in(time.name)
    end = held.best("censoring_time", lambda one: _is_duration(one) and bool((one.numbers >= time.numbers - 1).all()))
    if end is None:
        held.notes.append(WITHOUT_C)
    else:
        if strength(end.name, "censoring_time") < 2:
            held.doubt("--censoring-time", f"is {end.name!r} when the data of each end (C*)?")
        held.options["censoring-time"], held.meanings[end.name] = end.name, "censoring_time"
    for one in held.left:
        if one.name.lower() in ("start", "tstart", "time1", "entry", "_t0") and (one.numbers > 0).any():
            held.doubt(one.name, f"are these times of entry? If so, --entry {one.name} counts time from them")
    _ask_about_ends(held, time, end)
    return held


def _ask_about_ends(held: Observed, time: Profile, end: Profile | None) -> None:
    """Ask about other columns that may say who dropped out, or why observation ended, unless others say the same."""
    flag = next((one for one in held.left if one.name == held.options.get("event")), None)
    for one in [one for one in held.left if one.name not in held.meanings]:
        few = 2 <= len(one.words) <= 12 and one.kind in ("flags", "text", "whole numbers")
        if one.is_flag and speaks_of(one.name, "dropout"):
            held.meanings[one.name] = "dropout"
            if end is None or flag is None:
                held.doubt(one.name, "without C*, all without event are treated alike, dropped out or not: is that so?")
            elif differ := int(((~flag.is_yes & (time.numbers < end.numbers)) != one.is_yes).sum()):
                held.doubt(one.name, f"{one.name!r} says otherwise than times in {differ} rows: drop-outs are those "
                           f"without event whose {time.name!r} is before {end.name!r}. Is that so?")  # fmt: skip
            continue
        same = flag is not None and one.words == flag.words and np.array_equal(one.values, flag.values)
        if few and not same and (strength(one.name, "reason") or strength(one.name, "event") == 2):
            told = f"does it say why observation ended ({', '.join(one.words[:6])})? It is ignored; if some of it is "
            held.doubt(one.name, f"{told}another event or a drop-out, say --reason and what each means")


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
    words = {word.strip().lower().removesuffix(".0"): word for word in status.words}
    shown, name = ", ".join(status.words[:6]), status.name
    left = " Can it still come after the others? Then name these in --censored-reasons"
    if status.is_flag:
        free = [word for plain, word in words.items() if not WORDS.get(plain, True)]
        if free and not set(STATED) & set(words) and (speaks_of(name, "censored") or speaks_of(name, "active")):
            told = f"does {free[0]} in {name!r} stand for the event, as its name says?"
            return _meant(status, free[:1]), Doubt("--event-reasons", told)
        only = Doubt("--event", f"all rows have {status.words[0]} in {name!r}: is it the flag?")
        return {"event": name}, only if len(words) == 1 else None
    if set(words) == {"1", "2"}:
        one, two = words["1"], words["2"]
        told = f"{name!r} is {one} or {two}: in R's data sets {two} is the event, as assumed; otherwise say "
        return _meant(status, [two]), Doubt("--event-reasons", f"{told}--event-reasons {one} --censored-reasons {two}")
    if all(plain.isdigit() for plain in words):
        events = [word for plain, word in words.items() if float(plain)]
        if len(events) == len(words):
            doubt = Doubt("--event-reasons", f"{name!r} is {shown}: which is the event?{left}")
            return _meant(status, events[:1], events[1:]), doubt
        told = f"{name!r} is {shown}: 0 without event, and causes of events that compete, as assumed? If one is a "
        return {"event": name}, Doubt("--event", f"{told}drop-out, or several are one event, say --reason")
    some = [word for plain, word in words.items() if not any(part in f"{plain} " for part in SAID["other reasons"])]
    events = [word for word in some if word.strip().lower().startswith(tuple(SAID["event reasons"]))]
    events = events or [word for word in some if any(part in word.lower() for part in SAID["event reasons"])]
    # What is neither the event nor known to be without may have ruled the event out: rather that than a drop-out.
    competing = [word for word in some if word not in events]
    doubt = Doubt("--event-reasons", f"which of {shown} are the event?{left if competing else ''}")
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
    held.meanings[start.name], held.options["start"], held.unit = "start", start.name, "D"
    every = held.left
    held.left = [one for one in every if one.is_dated and _same_writing(one, start)]
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
    else:
        _of_ends(held, ended)
    used = [one for one in every if one.name in held.meanings and one.is_dated]
    _cutoff(held, cutoff, used)
    _written(held, used)
    return held


def _of_events(held: Observed, event: Profile, seen: Profile | None, end: Profile | None) -> None:
    """Add the options for dates that are there only for those with event."""
    held.options["event-date"], held.meanings[event.name] = event.name, "event_date"
    # being active is no contact with those who study somebody: who was not active lately is not lost to them
    contact = seen is not None and not speaks_of(seen.name, "activity")
    seen = seen or (end if end is not None and end.complete else None)
    if seen is not None:
        held.options["last-seen"], held.meanings[seen.name] = seen.name, "last_seen"
        if not contact:
            held.doubt(
                "--last-seen", f"are those without event lost on the date in {seen.name!r}? If not, leave it out"
            )
    elif end is not None:
        held.doubt("--event-date", f"{event.name!r}, or is it {end.name!r}?")
    flags = Observed([one for one in held.left if one.kind == "flags" and one.complete], meanings=held.meanings)
    flag = flags.best("event", lambda one: not speaks_of(one.name, "censored") and not speaks_of(one.name, "active"))
    differ = 0 if flag is None else int((flag.is_yes != ~event.missing).sum())
    if flag is not None and differ:
        held.doubt("--event-date", f"{flag.name!r} says otherwise than {event.name!r} in {differ} rows")


def _of_ends(held: Observed, ended: Profile) -> None:
    """Add the options for dates of which a flag or a reason says whether they are of the event."""
    held.meanings[ended.name] = "end"
    if _status(held):
        held.options["end"] = ended.name
        return
    held.options["event-date"], held.meanings[ended.name] = ended.name, "event_date"
    held.doubt(
        "--event-date", f"no flag says whether {ended.name!r} is when the event happened: is every date one of it?"
    )


def _same_writing(one: Profile, other: Profile) -> bool:
    """Whether two columns can be read as dates at once; of texts, `_written` finds out."""
    mine, others = one.writing or Writing(), other.writing or Writing()
    same = (mine.date_format, mine.origin) == (others.date_format, others.origin)
    return one.kind == "empty" or (same if "dates" not in (one.kind, other.kind) else one.kind == other.kind)


def _written(held: Observed, used: Sequence[Profile]) -> None:
    """Add how dates are written: what can be read in two ways is read as the columns are that can be read in one."""
    several = list(dict.fromkeys(one.writing for one in used if one.writing is not None and one.kind != "empty"))
    clear = next((one for one in several if one.doubt is None), several[0])
    if clear.date_format is not None:
        held.options["date-format"] = clear.date_format
    if clear.origin is not None:
        held.options["origin"] = clear.origin
        held.notes.append("Dates are numbers of days; since when they count does not matter to times in days.")
    open_ends = list(dict.fromkeys(date for one in used for date in one.open_end))
    if open_ends:
        held.options["open-end"] = joined_words(open_ends)
        held.notes.append(f"Where a date is {', '.join(open_ends)}, there is no end yet.")
    if clear.doubt is not None:
        held.doubt("--date-format", clear.doubt)
    elif len(several) > 1 and all(one.doubt is None for one in several):
        held.doubt("--date-format", "columns write dates in different ways; only one can be read")
    if clear.date_format in EPOCHS:
        held.notes.append("Times of day are those of UTC.")


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

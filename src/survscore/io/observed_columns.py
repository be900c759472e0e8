"""Which columns of a table look like outcomes: times and flags, or dates and the data cut-off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import InputError
from survscore.io.dates import DECIMAL_YEAR, EPOCHS
from survscore.io.flags import REASON_OPTIONS, WORDS, joined_words
from survscore.io.predicted_columns import Doubt
from survscore.io.profiles import Profile, Writing
from survscore.io.vocabulary import (
    ACTIVE_WORDS,
    ACTIVITY_WORDS,
    BUSINESS_WORDS,
    CENSORED_WORDS,
    DROPOUT_WORDS,
    EVENT_REASONS,
    OTHER_REASONS,
    Role,
    strength,
    tokens,
    unit_in,
)

MEANINGS: dict[Role, str] = {
    "id": "who it is",
    "start": "when they came under observation",
    "event_date": "when the event happened",
    "end": "when observation ended, by the event or otherwise",
    "last_seen": "when they were last seen",
    "cutoff": "the data cut-off",
    "time": "time of the event, or until when they were seen",
    "censoring_time": "the censoring time C*",
    "event": "whether the event happened",
    "reason": "why observation ended",
    "dropout": "who dropped out",
}


@dataclass(frozen=True)
class Meaning:
    """What a column seems to be.

    Attributes
    ----------
    column : str
        Its name.
    role : Role
        What it is for.
    why : str
        How it was recognised.
    """

    column: str
    role: Role
    why: str


@dataclass(frozen=True, eq=False)
class Observed:
    """Columns that look like outcomes.

    Attributes
    ----------
    options : dict of str to str
        What to say of the file, by long option without dashes.
    meanings : tuple of Meaning
        What columns seem to be.
    doubts : tuple of Doubt
        What can't be known, and makes the options a guess.
    notes : tuple of str
        What else is worth saying.
    unit : Unit or None
        Of their times, where that is known.
    """

    options: dict[str, str]
    meanings: tuple[Meaning, ...]
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()
    unit: Unit | None = None


@dataclass
class _Candidates:
    """The columns that are left, and what was found out about them so far."""

    profiles: list[Profile]
    about: frozenset[str] = frozenset()
    meanings: list[Meaning] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def best(self, role: Role, fits: Any, *, least: int = 1) -> Profile | None:
        """Return the column whose name fits a role best, if its values do too; doubt, where two fit as well."""
        taken = {meaning.column for meaning in self.meanings}
        ranked = [(strength(one.name, role), one) for one in self.profiles if one.name not in taken and fits(one)]
        top = max((rank for rank, _ in ranked), default=0)
        if top < least:
            return None
        best = [one for rank, one in ranked if rank == top]
        exact = [one for one in best if one.name.lower() == role]
        chosen = (exact or best)[0]
        if len(best) > 1 and not exact:
            others = " or ".join(repr(one.name) for one in best[1:4])
            self.doubts.append(Doubt(f"--{role.replace('_', '-')}", f"{chosen.name!r}, or is it {others}?"))
        return chosen

    def take(self, role: Role, one: Profile, why: str) -> None:
        self.meanings.append(Meaning(one.name, role, why))


def id_column(profiles: Sequence[Profile]) -> tuple[str | None, list[Doubt]]:
    """Return the column of ids, repeated or not, and what is doubtful about it."""

    def could_be(one: Profile) -> bool:
        return one.complete and one.kind in ("text", "whole numbers", "flags", "dates") and one.name != ""

    ranked = [(strength(one.name, "id"), one) for one in profiles if could_be(one)]
    exact = next((one for _, one in ranked if one.name == "id"), None)
    if exact is not None:
        return exact.name, []
    for rank in (2, 1):
        named = [one for strong, one in ranked if strong == rank]
        different = [one for one in named if one.distinct and len(one.missing) > 1]
        if different:
            chosen = different[0]
            others = " or ".join(repr(one.name) for one in different[1:4])
            doubts = [Doubt("--id", f"{chosen.name!r}, or is it {others}?")] if others else []
            return chosen.name, doubts
        if named and rank == 2:
            return named[0].name, []
    return None, []


def observed_columns(profiles: Sequence[Profile], names: Sequence[str] = ()) -> Observed | None:
    """Return which columns look like outcomes: dates with a known cut-off, times, or dates, whichever is clearer.

    Parameters
    ----------
    profiles : sequence of Profile
        The columns that are neither ids nor predictions.
    names : sequence of str
        Of all columns, which tell what the table is about.
    """
    about = frozenset(word for name in names for word in tokens(name))
    by_dates, by_times = _dates(_Candidates(list(profiles), about)), _times(_Candidates(list(profiles), about))
    if by_dates is None or by_times is None:
        return by_dates or by_times
    if "--cutoff" not in {doubt.about for doubt in by_dates.doubts} or by_times.doubts:
        return by_dates
    return by_times


# Times


def _times(held: _Candidates) -> Observed | None:
    profiles = held.profiles
    if any(one.name == "_t0" and one.numbers is not None and np.nanmax(one.numbers) > 0 for one in profiles):
        held.doubts.append(Doubt("_t0", "some come under observation later than at 0, which is not allowed for"))
    time = _stata("_t", profiles) or held.best("time", _is_duration)
    if time is None:
        return None
    held.take("time", time, f"numbers from {np.nanmin(_numbers(time)):g} to {np.nanmax(_numbers(time)):g}")
    if strength(time.name, "time") < 2 and time.name != "_t":
        held.doubts.append(Doubt("--time", f"is {time.name!r} how long they were followed?"))
    options = {"time": time.name}
    status = _status(held, _stata("_d", profiles))
    if status is None:
        return None
    options |= status
    end = held.best("censoring_time", lambda one: _is_duration(one) and _not_before(one, time))
    if end is not None:
        if strength(end.name, "censoring_time") < 2:
            held.doubts.append(Doubt("--censoring-time", f"is {end.name!r} when the data of each end (C*)?"))
        held.take("censoring_time", end, "never before time")
        options["censoring-time"] = end.name
    else:
        held.notes.append(
            "The censoring time C* is not in the table, so only IPCW scores are possible, which mislead if "
            "predictions encode C*. If follow-up ends on a known date, dates of entry and --cutoff, or a column for "
            "--censoring-time, allow administrative scores."
        )
    started = next((one for one in profiles if one.name.lower() in ("start", "tstart", "time1", "entry")), None)
    if started is not None and started.numbers is not None and started.kind != "dates" and np.nanmax(started.numbers):
        told = f"{started.name!r} looks like a time of entry, or of the beginning of an interval; it is ignored. If "
        told += f"those who had the event before it are not in the table, --entry {started.name} counts time from it"
        held.doubts.append(Doubt(started.name, told))
    _ask_about_drop_outs(held, time, end, status)
    _ask_about_ends(held)
    return Observed(options, tuple(held.meanings), tuple(held.doubts), tuple(held.notes), unit_in(time.name))


def _ask_about_drop_outs(held: _Candidates, time: Profile, end: Profile | None, status: dict[str, str]) -> None:
    """Ask about a column that says who dropped out, unless times and C* say the same."""
    taken = {meaning.column for meaning in held.meanings}
    for one in held.profiles:
        if one.name in taken or not one.is_flag or not DROPOUT_WORDS & {*tokens(one.name), "".join(tokens(one.name))}:
            continue
        flag = next((other for other in held.profiles if other.name == status.get("event")), None)
        yes = np.array([WORDS.get(str(value).strip().lower().removesuffix(".0"), False) for value in one.values])
        held.take("dropout", one, ", ".join(one.words))
        if end is None or flag is None or flag.values is None:
            told = f"{one.name!r} says who dropped out; without C* all without event are treated alike: is that so?"
            held.doubts.append(Doubt(one.name, told))
            continue
        event = np.array([WORDS.get(str(value).strip().lower().removesuffix(".0"), False) for value in flag.values])
        early = ~event & (_numbers(time) < _numbers(end))
        differ = int((early != yes).sum())
        if not differ:
            held.notes.append(f"{one.name!r} says the same as times before C* without event; it is not needed.")
            continue
        told = f"{one.name!r} says otherwise than times in {differ} rows: drop-outs are those without event whose time "
        told += (
            f"is before C* ({int(early.sum())} rows). Is {time.name!r} when they were last seen, and {end.name!r} C*?"
        )
        held.doubts.append(Doubt(one.name, told))


def _ask_about_ends(held: _Candidates) -> None:
    """Ask about other columns that may say why observation ended; a flag that says the same as the event does not."""
    taken = {meaning.column: meaning.role for meaning in held.meanings}
    flag = next((one for one in held.profiles if taken.get(one.name) == "event"), None)
    for one in held.profiles:
        few = 2 <= len(one.words) <= 12 and one.kind in ("flags", "text", "whole numbers")
        if one.name in taken or not few or not (strength(one.name, "reason") or strength(one.name, "event") == 2):
            continue
        if flag is not None and one.words == flag.words and np.array_equal(one.values, flag.values):
            continue
        shown = ", ".join(one.words[:6])
        told = f"{one.name!r} ({shown}) may say why observation ended, too; it is ignored. If some of it is another "
        told += "event or a drop-out, say --reason and what each means"
        held.doubts.append(Doubt(one.name, told))


def _stata(name: str, profiles: Sequence[Profile]) -> Profile | None:
    """Return a column as Stata's stset calls it, if there is one."""
    return next((one for one in profiles if one.name == name and one.numbers is not None), None)


def _numbers(one: Profile) -> Any:
    return np.zeros(0) if one.numbers is None else one.numbers


def _is_duration(one: Profile) -> bool:
    held = _numbers(one)[~one.missing] if one.numbers is not None else np.zeros(0)
    return held.size > 0 and bool((held >= 0).all()) and bool((held > 1).any() or (held != np.round(held)).any())


def _not_before(one: Profile, time: Profile) -> bool:
    return bool((_numbers(one) >= _numbers(time) - 1).all())


def _status(held: _Candidates, known: Profile | None = None) -> dict[str, str] | None:
    """Return the option that says who had the event."""

    def could_be(one: Profile) -> bool:
        return (one.is_flag or 2 <= len(one.words) <= 12) and one.kind in ("flags", "text", "whole numbers", "numbers")

    two = _Candidates([one for one in held.profiles if one.is_flag], held.about, list(held.meanings))
    status = known or two.best("event", could_be)
    if status is not None:
        held.doubts += two.doubts
    else:
        status = held.best("event", could_be, least=2) or held.best("reason", could_be)
    if status is None:
        return None
    if strength(status.name, "event") < 2 and strength(status.name, "reason") < 2 and known is None:
        held.doubts.append(Doubt("--event", f"is {status.name!r} whether the event happened?"))
    options, why, doubt = event_options(status)
    could_be_active = bool(held.about & BUSINESS_WORDS) and "status" in tokens(status.name)
    if doubt is None and "event" in options and status.kind == "flags" and could_be_active:
        doubt = Doubt("--event", f"is 1 in {status.name!r} the event, or an active one?")
    held.take("event" if "event" in options else "reason", status, why)
    if doubt is not None:
        held.doubts.append(doubt)
    return options


def event_options(status: Profile) -> tuple[dict[str, str], str, Doubt | None]:
    """Return which option takes a column of flags or reasons, how it looks, and what is doubtful."""
    words = {word.strip().lower(): word for word in status.words}
    shown = ", ".join(status.words[:6])
    named = set(tokens(status.name))
    if status.is_flag:
        free = [word for plain, word in words.items() if not WORDS.get(plain.removesuffix(".0"), True)]
        stated = any(plain in words for plain in ("churned", "died", "dead", "deceased", "active", "alive", "censored"))
        if named & (CENSORED_WORDS | ACTIVE_WORDS) and not stated and free:
            what = "was censored" if named & CENSORED_WORDS else "is active"
            doubt = Doubt("--event-reasons", f"does {free[0]} in {status.name!r} stand for the event? By its "
                          f"name, the other {what}")  # fmt: skip
            return _meant(status, event=free[:1]), shown, doubt
        only = f"all rows have {status.words[0]} in {status.name!r}: is it the flag?" if len(words) == 1 else None
        return {"event": status.name}, shown, None if only is None else Doubt("--event", only)
    if set(words) in ({"1", "2"}, {"1.0", "2.0"}):
        event, free_word = words.get("2") or words["2.0"], words.get("1") or words["1.0"]
        told = (
            f"{status.name!r} is {free_word} or {event}: in R's data sets {event} is the event, as assumed; otherwise "
            f"say --event-reasons {free_word} --censored-reasons {event}"
        )
        return _meant(status, event=[event]), shown, Doubt("--event-reasons", told)
    if all(word.replace(".0", "").isdigit() for word in words):
        events = [word for plain, word in words.items() if float(plain) != 0]
        if len(events) == len(words):
            told = f"{status.name!r} is {shown}: which is the event? After the others, can it not come any more? If it "
            told += "can, name them in --censored-reasons"
            return _meant(status, event=events[:1], competing=events[1:]), shown, Doubt("--event-reasons", told)
        told = f"{status.name!r} is {shown}: 0 without event, and causes of events that compete, as assumed? If one is "
        told += "a drop-out, or several are the same event, say --reason and what each means"
        return {"event": status.name}, shown, Doubt("--event", told)
    other = [word for word in status.words if any(part in f"{word.strip().lower()} " for part in OTHER_REASONS)]
    left = [word for word in status.words if word not in other]
    events = [word for word in left if word.strip().lower().startswith(EVENT_REASONS)]
    events = events or [word for word in left if any(part in word.lower() for part in EVENT_REASONS)]
    # What is neither the event nor known to be without may have ruled the event out: rather that than a drop-out.
    competing = [word for word in left if word not in events]
    told = f"which of {shown} are the event?" + (" Some look like it" if events else " Name them")
    if competing:
        told += f". After {', '.join(competing[:6])}, can it not come any more? If it can, name them in "
        told += "--censored-reasons"
    return _meant(status, event=events or ["WHICH"], competing=competing), shown, Doubt("--event-reasons", told)


def _meant(status: Profile, event: Sequence[str], competing: Sequence[str] = ()) -> dict[str, str]:
    """Return the options for a column of reasons, of which all others are censored."""
    censored = [word for word in status.words if word not in event and word not in competing]
    options = {"reason": status.name}
    for name, some in zip(REASON_OPTIONS, (event, competing, censored), strict=True):
        if some:
            options[name] = joined_words(list(dict.fromkeys(word.strip() for word in some)))
    return options


# Dates


def _dates(held: _Candidates) -> Observed | None:
    profiles = held.profiles
    start = held.best("start", lambda one: _is_dated(one) and one.complete)
    if start is None or start.writing is None:
        return None
    held.take("start", start, start.writing.words)
    dated = _Candidates([one for one in profiles if _is_dated(one) and _same_writing(one, start)], held.about,
                        held.meanings, held.doubts, held.notes)  # fmt: skip
    cutoff = dated.best("cutoff", lambda one: (one.complete and not one.distinct) or len(one.missing) == 1)
    if cutoff is not None:
        held.take("cutoff", cutoff, "a date for every individual")
    event = dated.best("event_date", lambda one: True)
    seen = dated.best("last_seen", lambda one: True, least=2)
    end = dated.best("end", lambda one: one is not seen)
    ended = event or end or seen
    if ended is None:
        return None
    options = {"start": start.name}
    if event is not None and not event.complete:
        options |= _of_events(held, event, seen, end)
    else:
        options |= _of_ends(held, ended)
    used = [one for one in profiles if one.name in {meaning.column for meaning in held.meanings} and _is_dated(one)]
    if cutoff is not None:
        options["cutoff"] = cutoff.name
        _check_cutoff(held, cutoff, used)
    else:
        _guess_cutoff(held, options, used)
    _written(held, options, start.writing, used)
    return Observed(options, tuple(held.meanings), tuple(held.doubts), tuple(held.notes), "D")


def _of_events(held: _Candidates, event: Profile, seen: Profile | None, end: Profile | None) -> dict[str, str]:
    """Return the options for dates that are there only for those with event."""
    held.take("event_date", event, f"{event.writing.words if event.writing else 'dates'}, empty for some")
    options = {"event-date": event.name}
    contact = seen is not None and not set(tokens(seen.name)) & ACTIVITY_WORDS
    seen = seen or (end if end is not None and end.complete else None)
    if seen is not None:
        held.take("last_seen", seen, "dates")
        options["last-seen"] = seen.name
    elif end is not None:
        held.doubts.append(Doubt("--event-date", f"{event.name!r}, or is it {end.name!r}?"))
    if seen is not None and not contact:
        told = f"individuals without event count as lost on the date in {seen.name!r}, if it is before the cut-off"
        held.doubts.append(Doubt("--last-seen", f"{told}; leave it out if they were still there"))
    _compare_with_flag(held, event)
    return options


def _of_ends(held: _Candidates, ended: Profile) -> dict[str, str]:
    """Return the options for dates of which a flag or a reason says whether they are of the event."""
    held.take("end", ended, "dates")
    status = _status(held)
    if status is not None:
        return {"end": ended.name, **status}
    held.meanings.pop()
    held.take("event_date", ended, "dates")
    missing = "empty for some" if not ended.complete else "there for every individual"
    told = f"{ended.name!r} is {missing}, and no flag says whether the event happened then: is every date one of it?"
    held.doubts.append(Doubt("--event-date", told))
    return {"event-date": ended.name}


def _is_dated(one: Profile) -> bool:
    return one.kind in ("dates", "empty") or (one.writing is not None and one.kind in ("numbers", "whole numbers"))


def _same_writing(one: Profile, other: Profile) -> bool:
    """Whether two columns can be read as dates at once; of texts, `_written` finds out."""
    if one.kind == "empty" or (one.kind == "dates" and other.kind == "dates"):
        return True
    if "dates" in (one.kind, other.kind) or one.writing is None or other.writing is None:
        return False
    return (one.writing.date_format, one.writing.origin) == (other.writing.date_format, other.writing.origin)


def _written(held: _Candidates, options: dict[str, str], writing: Writing, used: Sequence[Profile]) -> None:
    several = {one.writing for one in used if one.writing is not None and one.kind != "empty"}
    formats = {(one.date_format, one.origin) for one in several}
    # what can be read in two ways is read as the columns are that can be read in one
    clear = next((one for one in several if one.doubt is None), writing)
    doubt = next((one.doubt for one in several if one.doubt is not None), None)
    if clear.date_format is not None:
        options["date-format"] = clear.date_format
    if clear.origin is not None:
        options["origin"] = clear.origin
        held.notes.append("Dates are numbers of days; since when they count does not matter to times in days.")
    open_ends = list(dict.fromkeys(date for one in used for date in one.open_end))
    if open_ends:
        options["open-end"] = joined_words(open_ends)
        held.notes.append(f"Where a date is {', '.join(open_ends)}, there is no end yet.")
    if doubt is not None and (len(formats) == 1 and clear.doubt is not None):
        held.doubts.append(Doubt("--date-format", doubt))
    elif len(formats) > 1 and doubt is None:
        held.doubts.append(Doubt("--date-format", "columns write dates in different ways; only one can be read"))
    if clear.date_format in EPOCHS:
        held.notes.append("Times of day are those of UTC.")


def _compare_with_flag(held: _Candidates, event: Profile) -> None:
    """Doubt, where a column of flags contradicts who has a date of the event."""
    flags = _Candidates([one for one in held.profiles if one.kind == "flags"], held.about, list(held.meanings))
    flag = flags.best("event", lambda one: one.complete)
    if flag is None or set(tokens(flag.name)) & (CENSORED_WORDS | ACTIVE_WORDS):
        return
    agree = (_numbers(flag) == 1) == ~event.missing
    if not agree.all():
        rows = int((~agree).sum())
        told = f"{flag.name!r} says otherwise than {event.name!r} whether the event happened, in {rows} rows"
        held.doubts.append(Doubt("--event-date", told))
    else:
        held.notes.append(f"{flag.name!r} says the same as whether {event.name!r} is there; it is not needed.")


def _check_cutoff(held: _Candidates, cutoff: Profile, used: Sequence[Profile]) -> None:
    try:
        ends = cutoff.dates()
        late = max((int(np.asarray(one.dates() > ends).sum()) for one in used if one is not cutoff), default=0)
    except (InputError, TypeError, ValueError):
        return  # verification will say what is wrong
    if late:
        held.doubts.append(
            Doubt("--cutoff", f"{late} rows have dates after {cutoff.name!r}: is that the data cut-off?")
        )


def _guess_cutoff(held: _Candidates, options: dict[str, str], used: Sequence[Profile]) -> None:
    try:
        latest = max(one.dates().max() for one in used if not one.missing.all())
    except (InputError, TypeError, ValueError):
        return
    own = [one for one in used if one.writing is not None and one.writing.date_format == DECIMAL_YEAR]
    text = str(latest.date()) if latest == latest.normalize() and latest.tz is None else latest.isoformat()
    if own:  # as the file has it, which a date could only be near to
        text = repr(max(float(np.nanmax(_numbers(one))) for one in own))
    options["cutoff"] = text
    told = f"the data cut-off is unknown; {text} is the largest date seen. Say the date of the export"
    held.doubts.append(Doubt("--cutoff", told))

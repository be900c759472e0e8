"""Who had the event, from a column of flags, words or reasons."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import COMPETING_RECIPE, InputError, plural, shown, warn
from survscore.io.tables import TableFile, arrow, listed, vector

# Words that mean one thing only. Others, such as "closed" or "2", are for `Reasons`.
ANSWERS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
STATES = {
    "event": True, "churned": True, "died": True, "dead": True, "deceased": True, "failed": True,
    "censored": False, "active": False, "alive": False,
}  # fmt: skip
WORDS = ANSWERS | STATES
MEANT = ("event", "competing", "censored")  # what a reason can mean
REASON_OPTIONS = tuple(f"{what}-reasons" for what in MEANT)
FLAG_NAMES = ("event", "churn", "cancel", "status", "died", "dead", "death")  # parts of names of columns of flags


def flags(file: TableFile, name: str) -> NDArray[np.generic]:
    """Return a column that says who had the event: words as booleans, anything else for a check that comes later."""
    values = vector(file.column(name))
    return flags_of_words(values, name, f"{file.path}: ") if is_text(file.schema.field(name).type) else values


def is_text(kind: Any) -> bool:
    """Whether a column of this type may hold words."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def flags_of_words(values: NDArray[Any], name: str, where: str = "") -> NDArray[np.bool_]:
    """Return for words whether they mean the event; raise if one may mean anything."""
    words = np.array([str(value).strip().lower() for value in values])
    unknown = ~np.isin(words, list(WORDS))
    if unknown.any():
        first = int(np.argmax(unknown))
        raise InputError(
            f"{where}column {name!r} must hold 0 and 1, booleans, or words that say yes or no "
            f"({', '.join(WORDS)}): {int(unknown.sum())} of {unknown.size} are none, the first in row {first} "
            f"({shown(values[first])!r}); reason= and event_reasons= take other words"
        )
    states = sorted(set(words.tolist()) & set(STATES))
    if states:
        told = ", ".join(f"{state!r} is {'the event' if STATES[state] else 'no event'}" for state in states)
        warn(f"{where}in column {name!r}, {told}")
    return np.array([WORDS[word] for word in words])


@dataclass(frozen=True)
class Reasons:
    """What the reasons in a column mean.

    After a reason that is censored, the event may still come; after one that competes with it, it can't. Who has no
    reason is censored, too: nothing is known to have happened.

    Attributes
    ----------
    event : sequence of str
        Which reasons are the event.
    competing : sequence of str
        Which are other events that rule it out.
    censored : sequence of str
        Which are drop-outs, or mean that an individual was still there.
    keep_event_free : bool
        Whether individuals with a competing event stay event-free until C*, instead of being refused.
    """

    event: Sequence[str] = ()
    competing: Sequence[str] = ()
    censored: Sequence[str] = ()
    keep_event_free: bool = False

    def __post_init__(self) -> None:
        for what in MEANT:
            some = getattr(self, what)
            if isinstance(some, str) or (what == "event" and not some):
                raise InputError(f"{what}_reasons must be reasons, such as ['churn'], not {some!r}")
        named = [str(reason) for what in MEANT for reason in getattr(self, what)]
        twice = sorted({reason for reason in named if named.count(reason) > 1})
        if twice:
            raise InputError(f"a reason can mean one thing only: {listed(twice)} {'is' if len(twice) == 1 else 'are'} "
                             "named more than once")  # fmt: skip

    def read(self, file: TableFile, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return who had the event, and who had a competing one, from a column of reasons."""
        values = vector(file.read([name]).column(0))
        given = np.array(["" if _is_missing(value) else str(value).strip() for value in values])
        found, counts = np.unique(given[given != ""], return_counts=True)
        known = found.tolist()
        where = f"{file.path}: column {name!r}"
        meant = {what: [str(reason) for reason in getattr(self, what)] for what in MEANT}
        nobody = [reason for reason in meant["event"] if reason not in known]
        if len(nobody) == len(meant["event"]):
            raise InputError(f"{where}: no individual has a reason {listed(nobody)}; it holds {listed(known)}")
        unlisted = [
            (reason, count) for reason, count in zip(known, counts.tolist(), strict=True)
            if not any(reason in some for some in meant.values())
        ]  # fmt: skip
        if unlisted:
            first = int(np.argmax(np.isin(given, [reason for reason, _ in unlisted])))
            told = ", ".join(f"{reason!r} ({count})" for reason, count in unlisted[:12])
            told += f" and {len(unlisted) - 12} more" if len(unlisted) > 12 else ""
            raise InputError(
                f"{where} holds reasons that are not explained: {told}, the first in row {first}. Name each in "
                "event_reasons, censored_reasons (the event may still come: drop-outs, or still there) or "
                "competing_reasons (it can't come any more)"
            )
        if nobody:
            warn(f"{where}: no individual has the reason {listed(nobody)}")
        competing = np.isin(given, meant["competing"])
        if competing.any() and not self.keep_event_free:
            here = [reason for reason in meant["competing"] if reason in known]
            raise InputError(
                f"{where}: {listed(here)} of {plural(int(competing.sum()), 'individual')}, the first in row "
                f"{int(np.argmax(competing))}, are competing risks, which are not supported: {COMPETING_RECIPE}. "
                "competing='event-free' keeps them event-free"
            )
        return np.isin(given, meant["event"]), competing


def split_words(text: str) -> list[str]:
    """Return the words of a list such as ``churn,"moved, abroad"``: quotes keep commas."""
    try:
        words = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"{shown(text)!r} is no list of words: {error}") from None
    return [word.strip() for word in words if word.strip()]


def joined_words(words: Sequence[str]) -> str:
    """Return words as `split_words` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(words)
    return line.getvalue()


def warn_if_flags_are_ignored(file: TableFile, event_date: str, used: Sequence[str | None]) -> None:
    """Warn if all have a date of the event, and a column of flags says that some had none."""
    if file.read([event_date]).column(0).null_count:
        return
    for name in file.names:
        if name in used or not any(part in name.lower() for part in FLAG_NAMES):
            continue
        column = file.read([name]).column(0)
        words = [str(value).strip().lower() for value in column.to_pylist()]
        if column.null_count or not set(words) <= set(WORDS) or all(WORDS[word] for word in words):
            continue
        without = sum(not WORDS[word] for word in words)
        warn(
            f"{file.path}: every individual has a date in column {event_date!r}, and all are treated as events, but "
            f"column {name!r} says that {plural(without, 'individual')} of {len(words)} had none; end={event_date!r} "
            f"with event={name!r} goes by it",
        )
        return


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))

"""Who had the event, from a column of flags, words or reasons."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, shown, warn
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


def flags(file: TableFile, name: str, causes: Sequence[str] = ()) -> NDArray[np.generic]:
    """Return a column that says who had the event: words as booleans, anything else for a check that comes later.

    With names of `causes`, words are these, and become codes.
    """
    if not is_text(file.schema.field(name).type):
        return vector(file.column(name))
    if causes:
        return codes_of_words(vector(file.read([name]).column(0)), name, causes, f"{file.path}: ")
    return flags_of_words(vector(file.column(name)), name, f"{file.path}: ")


def codes_of_words(values: NDArray[Any], name: str, causes: Sequence[str], where: str = "") -> NDArray[np.int8]:
    """Return the code of each cause that words name, 0 without event; raise if one means neither."""
    words = np.array(["" if _is_missing(value) else _as_reason(value) for value in values])
    found, places = np.unique(words, return_inverse=True)
    known = dict.fromkeys(("", *(free for free, happened in WORDS.items() if not happened)), 0)
    numbered = {str(code): code for code in range(1, len(causes) + 1)}
    codes = [({cause: code for code, cause in enumerate(causes, 1)} | numbered).get(word, known.get(word.lower(), -1))
             for word in found.tolist()]  # fmt: skip
    unknown = np.array(codes)[places] < 0
    if unknown.any():
        labels, counts = np.unique(words[unknown], return_counts=True)
        told = ", ".join(f"{label!r} ({n})" for label, n in zip(labels[:12].tolist(), counts.tolist(), strict=False))
        raise InputError(
            f"{where}column {name!r} must hold the causes {listed(list(causes))}, or no event (empty, 0, censored): "
            f"{int(unknown.sum())} of {unknown.size} are neither, {told}, the first in row {int(np.argmax(unknown))}"
        )
    return np.array(codes, dtype=np.int8)[places]


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
            f"({shown(values[first])!r}); `reason` and `event_reasons` take other words, `causes` names of causes"
        )
    states = sorted(set(words.tolist()) & set(STATES))
    if states:
        told = ", ".join(f"{state!r} is {'the event' if STATES[state] else 'no event'}" for state in states)
        warn(f"{where}in column {name!r}, {told}")
    return np.array([WORDS[word] for word in words])


@dataclass(frozen=True, eq=False)
class Ends:
    """Who had an event, and of which cause.

    Attributes
    ----------
    event : ndarray
        Flags; the codes of causes, 0 without event, under competing risks.
    causes : tuple of str or None
        What these causes are called, if they have names.
    interest : str or None
        The cause that is the event of interest, if that is known.
    """

    event: NDArray[Any]
    causes: tuple[str, ...] | None = None
    interest: str | None = None


@dataclass(frozen=True)
class Reasons:
    """What the reasons in a column mean.

    After a reason that is censored, the event may still come; after an event that competes with it, it can't. Who has
    no reason is censored, too: nothing is known to have happened. ``NAME=REASON`` says what to call the cause of a
    reason, and reasons of the same name are one cause. Otherwise all reasons that are the event are one cause, and
    each competing one is a cause of its own, called like it.

    Attributes
    ----------
    event : sequence of str
        Which reasons are the event.
    competing : sequence of str
        Which are other events that rule it out.
    censored : sequence of str
        Which are drop-outs, or mean that an individual was still there.
    """

    event: Sequence[str] = ()
    competing: Sequence[str] = ()
    censored: Sequence[str] = ()

    def __post_init__(self) -> None:
        for what in MEANT:
            some = getattr(self, what)
            if isinstance(some, str) or (what == "event" and not some):
                raise InputError(f"{what}_reasons must be reasons, such as ['churn'], not {some!r}")
            object.__setattr__(self, what, tuple(_as_reason(reason) for reason in some))

    def read(self, file: TableFile, name: str) -> Ends:
        """Return who had an event, and of which cause, from a column of reasons."""
        values = vector(file.read([name]).column(0))
        given = np.array(["" if _is_missing(value) else _as_reason(value) for value in values])
        found, counts = np.unique(given[given != ""], return_counts=True)
        known = dict(zip(found.tolist(), counts.tolist(), strict=True))
        where = f"{file.path}: column {name!r}"
        named = {what: [_named(word, known) for word in getattr(self, what)] for what in MEANT}
        named["censored"] = [(None, word) for word in self.censored]  # which are no causes, and have no name
        meant = {what: [reason for _, reason in named[what]] for what in MEANT}
        _check_once([reason for some in meant.values() for reason in some])
        nobody = [reason for reason in meant["event"] if reason not in known]
        if len(nobody) == len(meant["event"]):
            raise InputError(f"{where}: no individual has a reason {listed(nobody)}; it holds {listed(list(known))}")
        self._check_explained(given, known, meant, where)
        nobody += [reason for reason in meant["competing"] if reason not in known]
        if nobody:
            warn(f"{where}: no individual has the reason {listed(nobody)}")
        return _ends(given, named["event"], named["competing"])

    @staticmethod
    def _check_explained(
        given: NDArray[np.str_], known: Mapping[str, int], meant: Mapping[str, Sequence[str]], where: str
    ) -> None:
        """Raise if there are reasons that mean nothing: none is taken for a drop-out silently."""
        unlisted = {reason: n for reason, n in known.items() if not any(reason in some for some in meant.values())}
        if not unlisted:
            return
        first = int(np.argmax(np.isin(given, list(unlisted))))
        told = ", ".join(f"{reason!r} ({count})" for reason, count in list(unlisted.items())[:12])
        told += f" and {len(unlisted) - 12} more" if len(unlisted) > 12 else ""
        raise InputError(
            f"{where} holds reasons that are not explained: {told}, the first in row {first}. Name each in "
            "`event_reasons`, `censored_reasons` (the event may still come: drop-outs, or still there) or "
            "`competing_reasons` (it can't come any more)"
        )


def _as_reason(value: object) -> str:
    """Return a reason as text; a whole number is the same whether its column could hold others or not."""
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(value).strip())


def _named(word: str, known: Collection[str]) -> tuple[str | None, str]:
    """Return the cause and the reason of ``NAME=REASON``; no cause, if that is a reason itself."""
    name, equals, reason = (part.strip() for part in word.partition("="))
    return (name, _as_reason(reason)) if equals and name and reason and word not in known else (None, word)


def _check_once(reasons: Sequence[str]) -> None:
    twice = sorted({reason for reason in reasons if reasons.count(reason) > 1})
    if twice:
        raise InputError(f"a reason can mean one thing only: {listed(twice)} {'is' if len(twice) == 1 else 'are'} "
                         "named more than once")  # fmt: skip


def _ends(
    given: NDArray[np.str_], event: Sequence[tuple[str | None, str]], competing: Sequence[tuple[str | None, str]]
) -> Ends:
    """Return the causes of reasons; flags, if there is one cause alone."""
    usual = " or ".join(reason for name, reason in event if name is None)
    causes: dict[str, list[str]] = {}
    for name, reason in event:
        causes.setdefault(name or usual, []).append(reason)
    of_interest = list(causes)
    for name, reason in competing:
        if (name or reason) in of_interest:
            raise InputError(f"a cause can be the event or compete with it, not both: {name or reason!r}")
        causes.setdefault(name or reason, []).append(reason)
    if len(causes) == 1:
        return Ends(np.isin(given, next(iter(causes.values()))))
    codes = np.zeros(given.size, dtype=np.int8)
    for code, reasons in enumerate(causes.values(), start=1):
        codes[np.isin(given, reasons)] = code
    return Ends(codes, tuple(causes), of_interest[0] if len(of_interest) == 1 else None)


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
            f"with event={name!r} uses it",
        )
        return


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))

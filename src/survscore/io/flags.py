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
    "event": True,
    "churned": True,
    "died": True,
    "dead": True,
    "deceased": True,
    "failed": True,
    "censored": False,
    "active": False,
    "alive": False,
}
WORDS = ANSWERS | STATES
MEANT = ("event", "competing", "censored")  # what a reason can mean
REASON_OPTIONS = tuple(f"{what}-reasons" for what in MEANT)
FLAG_NAMES = ("event", "churn", "cancel", "status", "died", "dead", "death")  # parts of names of columns of flags


def codes_of_words(values: NDArray[Any], name: str, causes: Sequence[str], where: str = "") -> NDArray[np.int8]:
    """Return the code of each cause that words name, 0 without event; raise if one means neither."""
    words = np.array([_as_reason(value) for value in values])
    found, places = np.unique(words, return_inverse=True)
    known = dict.fromkeys(("", *(free for free, happened in WORDS.items() if not happened)), 0)
    numbered = {str(code): code for code in range(1, len(causes) + 1)}
    codes = [
        ({cause: code for code, cause in enumerate(causes, 1)} | numbered).get(word, known.get(word.lower(), -1))
        for word in found.tolist()
    ]
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
    """Who had an event: flags, or under competing risks the codes of causes, 0 without event.

    `causes` are the names of these, and `interest` the one that is the event of interest, where they are known.
    """

    event: NDArray[Any]
    causes: tuple[str, ...] | None = None
    interest: str | None = None


@dataclass(frozen=True)
class Status:
    """The column that says who had the event: `event`, or `reason` with what each reason in it means.

    After a reason that is censored, the event may still come; after an event that competes with it, it can't. Who has
    no reason is censored, too: nothing is known to have happened. ``NAME=REASON`` says what to call the cause of a
    reason, and reasons of the same name are one cause. Otherwise all reasons that are the event are one cause, and
    each competing one is a cause of its own, called like it.
    """

    file: TableFile
    event: str | None
    reason: str | None
    reasons: Mapping[str, Sequence[str] | None]  # by what they mean, one of `MEANT`
    causes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.reason is None and any(words is not None for words in self.reasons.values()):
            raise InputError("what reasons mean needs `reason`, the column that says why observation ended")
        if self.reason is None:
            return
        if self.reasons["event"] is None:
            raise InputError("`reason` needs `event_reasons`: a column of reasons, and which are the event")
        if self.event is not None:
            raise InputError("event and reason both say who had the event; give one")
        if self.causes:
            raise InputError(
                "`causes` names those in `event`; with `reason`, `event_reasons` and `competing_reasons` name them"
            )

    @property
    def column(self) -> str:
        """The name of the column."""
        argument, name = ("event", self.event) if self.reason is None else ("reason", self.reason)
        return self.file.named(argument, name)

    def read(self) -> Ends:
        """Return who had an event, and of which cause."""
        if self.reason is not None:
            return self._of_reasons()
        name = self.column
        if not is_text(self.file.schema.field(name).type):  # numbers and booleans are checked later
            return Ends(vector(self.file.column(name)), tuple(self.causes) or None)
        if self.causes:
            words = vector(self.file.read([name]).column(0))
            return Ends(codes_of_words(words, name, self.causes, f"{self.file.path}: "), tuple(self.causes))
        return Ends(flags_of_words(vector(self.file.column(name)), name, f"{self.file.path}: "))

    def _of_reasons(self) -> Ends:
        words = {meaning: self.reasons[meaning] or () for meaning in MEANT}
        for meaning, some in words.items():
            if isinstance(some, str) or (meaning == "event" and not some):
                raise InputError(f"{meaning}_reasons must be reasons, such as ['churn'], not {some!r}")
        given = np.array([_as_reason(value) for value in vector(self.file.read([self.column]).column(0))])
        labels, counts = np.unique(given[given != ""], return_counts=True)
        known = dict(zip(labels.tolist(), counts.tolist(), strict=True))
        where = f"{self.file.path}: column {self.column!r}"
        named = {meaning: [_named(_as_reason(word), known) for word in some] for meaning, some in words.items()}
        named["censored"] = [(None, _as_reason(word)) for word in words["censored"]]  # no causes, without names
        meant = [reason for pairs in named.values() for _, reason in pairs]
        twice = sorted({reason for reason in meant if meant.count(reason) > 1})
        if twice:
            raise InputError(
                f"a reason can mean one thing only: {listed(twice)} {'is' if len(twice) == 1 else 'are'} "
                "named more than once"
            )
        unused = {meaning: [reason for _, reason in pairs if reason not in known] for meaning, pairs in named.items()}
        if len(unused["event"]) == len(named["event"]):
            raise InputError(
                f"{where}: no individual has a reason {listed(unused['event'])}; it holds {listed(list(known))}"
            )
        unlisted = {reason: n for reason, n in known.items() if reason not in meant}
        if unlisted:  # none is taken for a drop-out silently
            first = int(np.argmax(np.isin(given, list(unlisted))))
            shown_reasons = ", ".join(f"{reason!r} ({count})" for reason, count in list(unlisted.items())[:12])
            shown_reasons += f" and {len(unlisted) - 12} more" if len(unlisted) > 12 else ""
            raise InputError(
                f"{where} holds reasons that are not explained: {shown_reasons}, the first in row {first}. Name each "
                "in `event_reasons`, `censored_reasons` (the event may still come: drop-outs, or still there) or "
                "`competing_reasons` (it can't come any more)"
            )
        absent = unused["event"] + unused["competing"]
        if absent:
            warn(f"{where}: no individual has the reason {listed(absent)}")
        return _ends(given, named["event"], named["competing"])


def _as_reason(value: object) -> str:
    """Return a reason as text, empty where it is missing.

    A whole number is the same whether its column could hold others or not.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(value).strip())


def _named(word: str, known: Collection[str]) -> tuple[str | None, str]:
    """Return the cause and the reason of ``NAME=REASON``; no cause, if that is a reason itself."""
    name, equals, reason = (part.strip() for part in word.partition("="))
    return (name, _as_reason(reason)) if equals and name and reason and word not in known else (None, word)


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

"""Who had the event, from a column of flags, words or reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, shown, warn
from survscore.io.tables import TableFile, arrow, listed, vector

# Words that mean one thing only. Others, such as "closed" or "2", are for `event_reasons`.
ANSWERS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
STATES = {
    "event": True, "churned": True, "died": True, "dead": True, "deceased": True, "failed": True,
    "censored": False, "active": False, "alive": False,
}  # fmt: skip
WORDS = ANSWERS | STATES
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


def had_reason(file: TableFile, name: str, event_reasons: Sequence[str]) -> NDArray[np.bool_]:
    """Return which individuals have one of some reasons in a column; those without had no event."""
    if isinstance(event_reasons, str) or not event_reasons:
        raise InputError(f"event_reasons must be reasons, such as ['churn'], not {event_reasons!r}")
    values = vector(file.read([name]).column(0))
    given = np.array(["" if _is_missing(value) else str(value) for value in values])
    wanted = [str(reason) for reason in event_reasons]
    known = sorted(set(given.tolist()) - {""})
    without = [reason for reason in wanted if reason not in known]
    if len(without) == len(wanted):
        raise InputError(
            f"{file.path}: nobody has a reason {listed(wanted)} in column {name!r}, which holds {listed(known)}"
        )
    if without:
        warn(f"{file.path}: nobody has the reason {listed(without)} in column {name!r}")
    return np.isin(given, wanted)


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

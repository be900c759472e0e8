"""Units of time: what they are called, and how long they are."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError

Unit = Literal["D", "W", "M", "Y", "h", "min", "s"]
# A year is 365.25 days and a month a twelfth of it, where there are no dates to count months between.
SECONDS: dict[Unit, int] = {"D": 86_400, "W": 604_800, "M": 2_629_800, "Y": 31_557_600, "h": 3_600, "min": 60, "s": 1}
UNITS = tuple(SECONDS)
WORDS: dict[str, Unit] = dict(zip(("day", "week", "month", "year", "hour", "minute", "second"), UNITS, strict=True))


def as_unit(name: str, given: Any) -> Unit:
    """Return the unit that is meant by its sign or its word: ``"M"``, ``"month"``, ``"months"``."""
    if given in SECONDS:
        return cast(Unit, given)
    word = str(given).lower()
    unit = WORDS.get(word, WORDS.get(word.removesuffix("s")))
    if unit is None:
        signs = ", ".join(repr(sign) for sign in UNITS)
        raise InputError(f"{name} must be one of {signs} (or a word, such as 'month'), not {given!r}")
    return unit


def converted(times: NDArray[np.float64], unit: Unit, to: Unit) -> NDArray[np.float64]:
    """Return times that are in one unit in another one."""
    return times if unit == to else times * SECONDS[unit] / SECONDS[to]


def word(unit: Unit) -> str:
    """Return what a unit is called: ``"month"``."""
    return next(name for name, sign in WORDS.items() if sign == unit)


def plural_word(given: Any) -> str | None:
    """Return what times in a unit are counted in, for labels: ``"months"``; None, where nobody said a unit."""
    return None if given is None else f"{word(as_unit('unit', given))}s"


def named_in(text: str) -> Unit | None:
    """Return the unit whose word is part of a text such as ``"month_{time}"``; None, where none is, or two are."""
    found = {unit for name, unit in WORDS.items() if name in text.lower()}
    return found.pop() if len(found) == 1 else None

"""Columns of tables as texts: as many decimals in all of a column, intervals in one cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from survscore.reports.verdicts import fixed, missing, short
from survscore.results.rounding import MOST_DECIMALS, interval_decimals, p_text
from survscore.results.tables import ON_SCOPED

Table = dict[str, list[Any]]
Kind = Literal["text", "number", "model", "weighting", "verdict"]
SIGNIFICANT = 4


@dataclass(frozen=True)
class Column:
    """A column of texts.

    Attributes
    ----------
    heading : str
        At the top.
    texts : list of str
        One for each row.
    kind : {"text", "number", "model", "weighting", "verdict"}
        How it is set: numbers stand on the right, so that points are in line.
    """

    heading: str
    texts: list[str]
    kind: Kind = "text"


def decimals(values: Iterable[Any]) -> int:
    """Return with how many decimals to write numbers: four digits of the largest."""
    sizes = [abs(value) for value in values if not missing(value) and value != 0]
    if not sizes or all(float(size).is_integer() for size in sizes):
        return 0
    return max(0, min(MOST_DECIMALS, SIGNIFICANT - 1 - math.floor(math.log10(max(sizes)))))


def even(value: Any, digits: int) -> str:
    """Return a number with so many decimals; one that would be rounded to zero, with its own digits."""
    if missing(value):
        return "–"
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        return short(float(f"{value:.2g}"))
    return fixed(value, digits)


def evenly(values: Sequence[Any]) -> list[str]:
    """Return the numbers of a column, all with as many decimals.

    Examples
    --------
    >>> from survscore.reports.cells import evenly
    >>> evenly([0.1234567, 0.02, None])
    ['0.1235', '0.0200', '–']
    """
    digits = decimals(values)
    return [even(value, digits) for value in values]


def digits_of(lower: Sequence[Any], upper: Sequence[Any], values: Sequence[Any]) -> int:
    """Return with how many decimals to write estimates: as many as their intervals support."""
    digits = interval_decimals(lower, upper)
    return min(decimals(values), SIGNIFICANT) if digits is None else digits


def with_interval(
    heading: str,
    values: Sequence[Any],
    lower: Sequence[Any],
    upper: Sequence[Any],
    level: str,
    most: int = MOST_DECIMALS,
) -> list[Column]:
    """Return a column of estimates and one of their intervals, with as many decimals, and no more than `most`."""
    digits = min(most, digits_of(lower, upper, values))
    estimates = Column(heading, [fixed(value, digits) for value in values], "number")
    return [estimates, Column(level, between(lower, upper, digits), "number")]


def between(lower: Sequence[Any], upper: Sequence[Any], digits: int) -> list[str]:
    """Return intervals with so many decimals."""
    return [
        "–" if missing(a) or missing(b) else f"{fixed(a, digits)} to {fixed(b, digits)}"
        for a, b in zip(lower, upper, strict=True)
    ]


def p_values(values: Sequence[Any], heading: str = "p") -> Column:
    """Return p-values as papers print them."""
    return Column(heading, ["–" if missing(p) else p_text(p) for p in values], "number")


def judged(table: Table) -> list[Column]:
    """Return p-values and verdicts of differences, with their marks."""
    verdicts = [f"{verdict or ''}{mark}" for verdict, mark in zip(table["verdict"], table["mark"], strict=True)]
    return [p_values(table["p_value"]), Column("verdict", verdicts, "verdict")]


def scope(table: Table) -> str:
    """Return what the mark of verdicts says, to follow a caption; nothing where there is none."""
    return f". {ON_SCOPED}" if any(table["mark"]) else ""


def numbers(heading: str, values: Sequence[Any]) -> Column:
    """Return a column of numbers."""
    return Column(heading, evenly(values), "number")


def relative(difference: Any, score: Any) -> str:
    """Return a difference in percent of a score, with its sign."""
    if missing(difference) or missing(score) or score <= 0:
        return "–"
    text = f"{100 * difference / score:+z,.1f} %"
    return "0.0 %" if text == "+0.0 %" else text.replace("-", "−")

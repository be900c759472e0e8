"""How numbers are written: with as many digits as their standard errors support."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

DOUBT = " ?"  # behind an interval that is not reliable
MISSING = "–"  # on pages, where there is no number
LEAST_P = 0.001
MOST_DECIMALS = 6
WITHOUT_ERROR = 2  # decimals, where no standard error says how many
SIGNIFICANT = 4  # digits of the largest number of a column, where there are no intervals either


def decimals(errors: Iterable[float], otherwise: int = WITHOUT_ERROR) -> int:
    """Return so many decimals that the smallest standard error shows two digits: 4 for 0.0031."""
    known = [float(se) for se in errors if se > 0 and math.isfinite(se)]
    return min(max(1 - math.floor(math.log10(min(known))), 0), MOST_DECIMALS) if known else otherwise


def typical_decimals(errors: Iterable[float], otherwise: int = 4) -> int:
    """Return so many decimals that the median of the standard errors shows two digits: for numbers over time.

    Some of these have hardly an error, as a score of nearly a quarter whatever happens, and would make all others long.
    """
    known = sorted(float(se) for se in errors if se > 0 and math.isfinite(se))
    return decimals(known[len(known) // 2 : len(known) // 2 + 1], otherwise)


def interval_decimals(lower: Iterable[float | None], upper: Iterable[float | None], least: int = 0) -> int | None:
    """Return so many decimals that half of each interval has two digits of its own; None without intervals.

    One narrow interval among wide ones gets no more than one decimal more than they need.
    """
    ends = [(a, b) for a, b in zip(lower, upper, strict=True) if a is not None and b is not None]
    needed = [1 - math.floor(math.log10((b - a) / 2)) for a, b in ends if 0 < b - a < math.inf]
    return max(least, min(max(needed), min(needed) + 1, MOST_DECIMALS)) if needed else None


def column_decimals(values: Iterable[Any]) -> int:
    """Return with how many decimals to write a column of numbers: four digits of the largest, none of whole numbers."""
    sizes = [abs(value) for value in values if not missing(value) and value != 0]
    if not sizes or all(float(size).is_integer() for size in sizes):
        return 0
    return max(0, min(MOST_DECIMALS, SIGNIFICANT - 1 - math.floor(math.log10(max(sizes)))))


@dataclass(frozen=True)
class Number:
    """A number with its interval, which is left out if a limit is missing; without a value nothing is written.

    `reliable` says whether there are enough events for the interval; decimals go by `se`, for all of one kind alike.
    """

    value: float
    lower: float = math.nan
    upper: float = math.nan
    _: KW_ONLY
    se: float = math.nan
    reliable: bool = True
    sign: str = ""
    decimals: int = WITHOUT_ERROR

    def rounded(self, decimals: int) -> Number:
        """Return the same with so many decimals; without limits there is no interval to doubt."""
        return replace(self, decimals=decimals, reliable=self.reliable or math.isnan(self.lower))

    @property
    def doubtful(self) -> bool:
        """Whether it is marked."""
        return not (self.reliable or math.isnan(self.value))

    @property
    def parts(self) -> list[str]:
        """The number and its limits as text; those that are not written are empty."""
        if math.isnan(self.value):
            return ["", "", ""]
        limits = (self.lower, self.upper)
        written = ["", ""] if any(map(math.isnan, limits)) else [f"{limit:z.{self.decimals}f}" for limit in limits]
        return [f"{self.value:{self.sign}z.{self.decimals}f}", *written]

    def padded(self, widths: Iterable[int] = (0, 0, 0), fill: str = " ", unmarked: str = "") -> str:
        """Return the number with its parts so wide, so that points stand below each other; `unmarked` for no mark."""
        value, lower, upper = (part and part.rjust(width, fill) for part, width in zip(self.parts, widths, strict=True))
        return value and value + (f" ({lower}, {upper})" if lower else "") + (DOUBT if self.doubtful else unmarked)

    def __str__(self) -> str:
        return self.padded()


def p_text(value: float) -> str:
    """Return a p-value; small ones as "<" and a limit."""
    if math.isnan(value):
        return ""
    return f"<{LEAST_P:g}" if value < LEAST_P else f"{value:.3f}"


def rounded(value: float, se: float) -> str:
    """Return a number to the digit that its standard error supports, and that error: "0.1964, se 0.0021"."""
    if se == 0 or not math.isfinite(se):
        return f"{value:.6g}, se {se:.3g}"
    places = max(1 - math.floor(math.log10(se)), 0)
    return f"{value:z.{places}f}, se {se:.{places}f}"


# On pages, where numbers have a true minus sign, and commas between thousands


def missing(value: Any) -> bool:
    """Whether there is no number."""
    return value is None or math.isnan(value)


def fixed(value: Any, digits: int = 4) -> str:
    """Return a number rounded to so many decimals, without a minus sign before zero."""
    return MISSING if missing(value) else f"{value:z,.{digits}f}".replace("-", "−")


def short(value: Any) -> str:
    """Return a value for a sentence or a table on the page; all digits are in the CSV file."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not value.is_integer():
        value = round(value, 1) if abs(value) >= 1000 else float(f"{value:.4g}")
    if isinstance(value, (int, float)):
        return re.sub(r"e([+-])0+", r"e\1", f"{value:.15g}").replace("-", "−")  # no leading zeros
    return str(value)


def evenly(values: Sequence[Any], digits: int | None = None) -> list[str]:
    """Return the numbers of a column, all with as many decimals; one that would be rounded to zero has its own digits.

    Examples
    --------
    >>> from survscore.results.rounding import evenly
    >>> evenly([0.1234567, 0.02, None])
    ['0.1235', '0.0200', '–']
    """
    places = column_decimals(values) if digits is None else digits
    return [
        short(float(f"{value:.2g}"))
        if not missing(value) and 0 < abs(value) < 0.5 * 10**-places
        else fixed(value, places)
        for value in values
    ]


def digits_of(lower: Sequence[Any], upper: Sequence[Any], values: Sequence[Any]) -> int:
    """Return with how many decimals to write a column of estimates: as many as their intervals support."""
    digits = interval_decimals(lower, upper)
    return min(column_decimals(values), SIGNIFICANT) if digits is None else digits


def between(lower: Sequence[Any], upper: Sequence[Any], digits: int) -> list[str]:
    """Return a column of intervals with so many decimals."""
    return [
        MISSING if missing(a) or missing(b) else f"{fixed(a, digits)} to {fixed(b, digits)}"
        for a, b in zip(lower, upper, strict=True)
    ]

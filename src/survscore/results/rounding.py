"""How many digits a number has: as many as its standard error supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace

DOUBT = " ?"  # behind an interval that is not reliable
LEAST_P = 0.001
MOST_DECIMALS = 6
WITHOUT_ERROR = 2  # decimals, where no standard error says how many


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


@dataclass(frozen=True)
class Number:
    """A number with its interval, of which nothing is written where a limit is missing, and nothing at all where it is.

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

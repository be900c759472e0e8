"""How many digits a number has: as many as its standard error supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

DOUBT = " ?"  # behind an interval that is not reliable
LEAST_P = 0.001
MOST_DECIMALS = 6
WITHOUT_ERROR = 2  # decimals, where no standard error says how many


def decimals(errors: Iterable[float], otherwise: int = WITHOUT_ERROR) -> int:
    """Return so many decimals that the smallest standard error shows two digits.

    Examples
    --------
    >>> from survscore.results.rounding import decimals
    >>> decimals([0.0031, 0.024])
    4
    """
    known = [float(se) for se in errors if se > 0 and math.isfinite(se)]
    return min(max(1 - math.floor(math.log10(min(known))), 0), MOST_DECIMALS) if known else otherwise


def typical_decimals(errors: Iterable[float], otherwise: int = 4) -> int:
    """Return so many decimals that the median of the standard errors shows two digits: for numbers over time.

    Some of these have hardly an error, as a score of nearly a quarter whatever happens, and would make all others long.

    Examples
    --------
    >>> from survscore.results.rounding import typical_decimals
    >>> typical_decimals([0.0031, 0.024, 0.0001])
    4
    """
    known = sorted(float(se) for se in errors if se > 0 and math.isfinite(se))
    return decimals(known[len(known) // 2 : len(known) // 2 + 1], otherwise)


@dataclass(frozen=True)
class Number:
    """A number as it is written, with its interval where there is one; those of one kind have the same decimals.

    Attributes
    ----------
    value : str
        Empty where there is none.
    limits : tuple of str or None
        Of the interval.
    decimals : int
        How many there are.
    doubtful : bool
        Whether there are too few events for a reliable interval.
    """

    value: str
    limits: tuple[str, str] | None = None
    decimals: int = 0
    doubtful: bool = False

    @classmethod
    def of(
        cls,
        value: float,
        lower: float = math.nan,
        upper: float = math.nan,
        *,
        decimals: int,
        sign: str = "",
        reliable: bool = True,
    ) -> Number:
        """Round a number and its limits; no interval stands where a limit is missing."""
        if math.isnan(value):
            return cls("", None, decimals)
        known = not (math.isnan(lower) or math.isnan(upper))
        limits = (f"{lower:z.{decimals}f}", f"{upper:z.{decimals}f}") if known else None
        return cls(f"{value:{sign}z.{decimals}f}", limits, decimals, not reliable)

    def padded(self, widths: tuple[int, int, int], fill: str = " ") -> str:
        """Return the number with its parts so wide, so that points stand below each other."""
        if not self.value:
            return ""
        text = self.value.rjust(widths[0], fill)
        if self.limits is not None:
            lower, upper = (part.rjust(width, fill) for part, width in zip(self.limits, widths[1:], strict=True))
            text += f" ({lower}, {upper})"
        return text + (DOUBT if self.doubtful else "")

    @property
    def widths(self) -> tuple[int, int, int]:
        """How wide its parts are."""
        lower, upper = ("", "") if self.limits is None else self.limits
        return len(self.value), len(lower), len(upper)

    def __str__(self) -> str:
        return self.padded((0, 0, 0))


def p_text(value: float) -> str:
    """Return a p-value; small ones are only said to be small.

    Examples
    --------
    >>> from survscore.results.rounding import p_text
    >>> p_text(0.0312), p_text(1e-9)
    ('0.031', '<0.001')
    """
    if math.isnan(value):
        return ""
    return f"<{LEAST_P:g}" if value < LEAST_P else f"{value:.3f}"


def rounded(value: float, se: float) -> str:
    """Return a number to the digit that its standard error supports, and that error.

    Examples
    --------
    >>> from survscore.results.rounding import rounded
    >>> rounded(0.196425, 0.00213)
    '0.1964, se 0.0021'
    """
    if not math.isfinite(se):
        return f"{value:.6g}, se {se:.3g}"
    if se == 0:
        return f"{value:.6g}, se 0"
    places = max(1 - math.floor(math.log10(se)), 0)
    return f"{value:z.{places}f}, se {se:.{places}f}"

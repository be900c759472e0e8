"""Means over a range of time, as weights of the evaluation times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice, plural

WhereNaN = Literal["raise", "stop"]
Range = tuple[float | None, float | None]
Ranges = Sequence[Range] | Literal["any"] | None


def check_ranges(ranges: Any) -> None:
    """Raise unless these are ranges of time, or ``"any"``, or None."""
    if isinstance(ranges, str):
        check_choice("ranges", ranges, ("any",))
        return
    if ranges is not None and not isinstance(ranges, Sequence):
        raise InputError(f"ranges must be pairs (lower, upper) of times, or 'any', not {ranges!r}")
    for given in ranges or ():
        pair = isinstance(given, (tuple, list)) and len(given) == 2
        if not pair or not all(end is None or isinstance(end, (int, float, np.number)) for end in given):
            raise InputError(f"ranges must be pairs (lower, upper) of times, or 'any', not {given!r}")


def averaging_weights(
    times: NDArray[np.float64],
    scores: NDArray[np.float64],
    lower: float | None,
    upper: float | None,
    nan: str,
    undefined: Iterable[str],
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return c with ``c @ scores`` the mean over the range, and the range; see `ScoreCurve.integrated`."""
    check_choice("nan", nan, ("raise", "stop"))
    first, last = float(times[0]), float(times[-1])
    lower = first if lower is None else float(lower)
    upper = last if upper is None else float(upper)
    if times.size == 1:
        raise InputError(f"one time, {first:g}, spans no range to integrate over; score several `times`")
    if not first <= lower < upper <= last:
        raise InputError(
            f"`lower` and `upper` must satisfy {first:g} <= lower < upper <= {last:g}, the range of times scored, "
            f"not lower={lower:g}, upper={upper:g}; give the score `times` that cover the range"
        )
    weights = trapezoid_weights(times, lower, upper)
    missing = np.isnan(scores) & (weights > 0)
    if missing.any():
        first_missing = int(np.argmax(missing))
        message = f"the score is NaN at {plural(int(missing.sum()), 'time')} within [{lower:g}, {upper:g}], the first "
        message += f"{times[first_missing]:g} ({'; '.join(undefined)})"
        if nan == "raise":
            raise InputError(f"{message}; choose a smaller upper, or nan='stop'")
        if first_missing == 0 or times[first_missing - 1] <= lower:
            raise InputError(f"{message}; nothing is left to integrate")
        upper = float(times[first_missing - 1])
        weights = trapezoid_weights(times, lower, upper)
    return weights / (upper - lower), (lower, upper)


def trapezoid_weights(times: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Return c with ``c @ values`` the integral from `lower` to `upper` of the piecewise linear curve through `values`.

    Each segment's part within the limits adds the integrals of its two hat functions.
    """
    left, right = times[:-1], times[1:]
    width = right - left
    # the part of each segment within the limits, on the segment's own scale from 0 to 1
    start = np.clip((lower - left) / width, 0.0, 1.0)
    stop = np.clip((upper - left) / width, 0.0, 1.0)
    rising = 0.5 * width * (stop**2 - start**2)
    weights = np.zeros(times.size)
    weights[1:] += rising
    weights[:-1] += width * (stop - start) - rising
    return weights

"""Censoring times that a file shows with fewer digits than they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, warn

MOST_DIGITS = 6  # with more, numbers are shown as they are, and not rounded
SHOWN_IN_FULL = 1e-9  # of differences between such numbers, by the largest


def as_shown(
    path: Path, time: NDArray[np.float64], event: NDArray[np.bool_], end: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return censoring times that are not before `time` because of rounding.

    Where :math:`C^*` is the day of the cut-off minus that of entry, rounded, and time is not, or otherwise, those
    without event have a time that is off from :math:`C^*` by up to one in the last digit. Some then come after their
    own :math:`C^*`, and the others look as if they had dropped out. If all that come after it do so by no more than
    that, :math:`C^*` is the time of those who are as close to it and had no event, or come after it.

    Nothing is changed where nobody comes after their :math:`C^*`: a difference of one in the last digit may be true.
    """
    late = time > end
    if not late.any():
        return end
    tolerance = _tolerance(time, end)
    apart = np.abs(time - end) <= tolerance * (1 + 1e-6)
    if (late & ~apart).any():
        first = int(np.argmax(late & ~apart))
        raise InputError(
            f"time must not exceed censoring_time: {int(late.sum())} of {late.size} do, and "
            f"{int((late & ~apart).sum())} by more than {tolerance:g}, which is treated as rounding of what the file "
            f"shows, the first at position {first} ({time[first]} > {end[first]}); an event after the censoring time "
            "was not observed: set time to censoring_time and event to 0 there"
        )
    changed = apart & (late | ~event) & (time != end)
    warn(
        f"{path}: {plural(int(late.sum()), 'time')} of {late.size} exceed censoring_time, none by more than "
        f"{tolerance:g}, one in the last digit that the file shows; this is treated as rounding, and censoring_time is "
        f"set to time for {plural(int(changed.sum()), 'individual')} that close to it",
    )
    return np.where(changed, time, end)


def _tolerance(time: NDArray[np.float64], end: NDArray[np.float64]) -> float:
    """Return one in the last digit of the column that has fewer; nothing, if both are whole numbers."""
    digits = sorted((_digits(time), _digits(end)))
    if digits[0] > MOST_DIGITS:
        return SHOWN_IN_FULL * float(np.abs(time).max())
    return 0.0 if digits[1] == 0 else 10.0 ** -digits[0]


def _digits(values: NDArray[np.float64]) -> int:
    finite = values[np.isfinite(values)]
    for digits in range(MOST_DIGITS + 1):
        if np.allclose(np.round(finite, digits), finite, rtol=1e-14, atol=0):
            return digits
    return MOST_DIGITS + 1

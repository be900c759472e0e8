"""Survival from other forms of the same distribution: probability masses, hazards, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.probabilities import FEW_MASSES, ROUNDING, as_matrix
from survscore._validation import InputError, check_length, plural, shown

Values = NDArray[np.float64]
HAZARDS = ("probability", "rate", "cumulative")
FEW = 50  # individuals, of whom all may be at a high risk by chance
LOOKED_AT = 1000  # individuals: what a matrix holds shows in these
BELOW_ONE = 0.8  # survival at the first time, for all individuals, that makes one look again


def survival_of_masses(masses: ArrayLike, n_times: int) -> Values:
    """Return 1 minus the running sum of probability masses; one more than there are times is that after the last."""
    matrix = _matrix(masses, "masses")
    _refuse(matrix, "masses", "between 0 and 1", ~((matrix >= 0) & (matrix <= 1)))
    if matrix.shape[1] not in (n_times, n_times + 1):
        raise InputError(
            f"masses has {plural(matrix.shape[1], 'column')}, but times has length {n_times}: one for each time, and "
            "perhaps one more for what comes after the last"
        )
    total = matrix.sum(axis=1)
    more = total > 1.0 + ROUNDING
    if more.any():
        first = int(np.argmax(more))
        hint = "; survival probabilities go to SurvivalCurves as they are" if (np.diff(matrix) <= 0).all() else ""
        raise InputError(
            f"masses must sum to at most 1 in each row: {plural(int(more.sum()), 'row')} of {more.size} "
            f"{'does' if more.sum() == 1 else 'do'} not, the first is row {first} ({total[first]:.6g}){hint}"
        )
    return np.maximum(1.0 - np.cumsum(matrix[:, :n_times], axis=1), 0.0)


def survival_of_hazards(hazards: ArrayLike, times: Values, kind: str) -> Values:
    """Return the product of 1 - hazard, or exp of minus the cumulative hazard."""
    matrix = _matrix(hazards, "hazards")
    check_length("each row of hazards", matrix.shape[1], "times", times.size)
    if kind == "probability":
        bad = ~((matrix >= 0) & (matrix <= 1))
        hint = "; hazards per unit of time are kind='rate'" if bool((matrix > 1).any()) else ""
        _refuse(matrix, "hazards", "probabilities between 0 and 1", bad, hint)
        return np.asarray(np.cumprod(1.0 - matrix, axis=1), dtype=np.float64)
    _refuse(matrix, "hazards", "at least 0", ~(matrix >= 0))
    if kind == "rate":
        with np.errstate(invalid="ignore"):  # an infinite rate over no time
            steps = np.where(matrix > 0, matrix * np.diff(times, prepend=0.0), 0.0)
        matrix = np.cumsum(np.nan_to_num(steps, nan=0.0, posinf=np.inf), axis=1)
    else:
        _refuse(
            matrix, "cumulative hazards", "such that they do not fall with time",
            np.diff(matrix, axis=1, prepend=0.0) < 0, "; hazards of each interval are kind='probability' or 'rate'",
        )  # fmt: skip
    survival: Values = np.exp(-matrix)
    return survival


def survival_of_quantiles(quantiles: ArrayLike, levels: ArrayLike, times: Values, *, hold: bool) -> Values:
    """Return survival at times from quantiles of the event time, between which the distribution function is linear."""
    matrix = np.asarray(arrays.to_host(quantiles) if arrays.is_tensor(quantiles) else quantiles, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(f"quantiles must have shape (individuals, levels), not {matrix.shape}")
    level = np.asarray(levels, dtype=np.float64)
    if level.ndim != 1 or not level.size or not ((level > 0) & (level <= 1)).all() or (np.diff(level) <= 0).any():
        raise InputError("levels must increase, and lie above 0 and at most at 1: probabilities of the event")
    check_length("each row of quantiles", matrix.shape[1], "levels", level.size)
    _refuse(matrix, "quantiles", "at least 0", ~(matrix >= 0))
    with np.errstate(invalid="ignore"):  # two that are infinite
        falls = np.diff(matrix, axis=1, prepend=0.0) < 0
    _refuse(matrix, "quantiles", "such that they do not fall with the level", falls)
    if not hold and (matrix[:, -1] < times[-1]).any() and level[-1] < 1:
        ends = matrix[:, -1]
        short = ends < times[-1]
        first = int(np.argmax(short))
        raise InputError(
            f"times reach {times[-1]:g}, and the last quantile (level {level[-1]:g}) is earlier for "
            f"{plural(int(short.sum()), 'individual')} of {short.size}, the first at position {first} "
            f"({ends[first]:g}): nothing is known of them afterwards; end times at {ends.min():g}, or say "
            "extrapolation='hold'"
        )
    return np.array([1.0 - _distribution(row, level, times) for row in matrix])


def _distribution(quantiles: Values, levels: Values, times: Values) -> Values:
    """Return the distribution function of one individual at times; it jumps where several quantiles are the same."""
    known = np.isfinite(quantiles)
    nodes, values = np.append(0.0, quantiles[known]), np.append(0.0, levels[known])
    # of equal nodes the last one counts: the function is continuous from the right
    after = np.searchsorted(nodes, times, side="right")
    lower, upper = after - 1, np.minimum(after, nodes.size - 1)
    width = nodes[upper] - nodes[lower]
    share = np.divide(times - nodes[lower], width, out=np.zeros(times.size), where=width > 0)
    return np.asarray(values[lower] + share * (values[upper] - values[lower]))


def looks_like_masses(survival: Any, *, fewest: int = FEW) -> bool:
    """Whether survival probabilities look like a probability mass function: rows sum to at most 1, and start low."""
    if survival.shape[0] < fewest or survival.shape[1] < FEW_MASSES:
        return False
    step = max(survival.shape[0] // LOOKED_AT, 1)
    # one row at first, which nearly always shows that there is nothing to look at
    if float(survival[0].sum()) > 1.0 + ROUNDING or float(survival[0, 0]) >= BELOW_ONE:
        return False
    some = arrays.to_host(survival[::step][:LOOKED_AT]).astype(np.float64)
    total = some.sum(axis=1)
    return bool((total <= 1.0 + ROUNDING).all() and (total > 0).any() and (some[:, 0] < BELOW_ONE).all())


def _matrix(values: ArrayLike, name: str) -> Values:
    try:
        matrix = as_matrix(values)
    except InputError as error:
        raise InputError(str(error).replace("probabilities", name, 1)) from None
    return np.asarray(arrays.to_host(matrix), dtype=np.float64)


def _refuse(matrix: Values, name: str, rule: str, broken: NDArray[np.bool_], hint: str = "") -> None:
    count = int(np.count_nonzero(broken))
    if count:
        row, column = np.unravel_index(int(np.argmax(broken)), broken.shape)
        raise InputError(
            f"{name} must be {rule}: {plural(count, 'value')} {'is' if count == 1 else 'are'} not, the first in row "
            f"{row}, column {column} ({shown(float(matrix[row, column]))}){hint}"
        )

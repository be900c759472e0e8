"""Probabilities that are given: checks of matrices of them, and survival from other forms of the same distribution.

Matrices are checked on all cores; one that is refused is searched for what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import each
from survscore._validation import (
    FloatArray,
    InputError,
    as_array,
    as_numbers,
    check_length,
    one_dimensional,
    plural,
    shown,
)

Values = NDArray[np.float64]
HAZARDS = ("probability", "rate", "cumulative")
FEW_MASSES = 4  # columns: of fewer, survival may sum to less than 1, too
ROUNDING = 1e-6  # what a mean of float32 may be off by
CHECKED_CELLS, MOST_CHECKED = 1 << 16, 1 << 19  # at a time, so that they stay in the cache
DEVICE_CELLS = 1 << 26
FEW = 50  # individuals, of whom all may be at a high risk by chance
LOOKED_AT = 1000  # individuals: what a matrix holds shows in these
BELOW_ONE = 0.8  # survival at the first time, for all individuals, that makes one look again


def as_matrix(
    probabilities: ArrayLike, axes: tuple[str, ...] = ("individuals", "times"), name: str = "probabilities"
) -> FloatArray:
    """Return a row-contiguous float32 or float64 array, the user's own memory where it is one already."""
    tensor = arrays.resident(probabilities)
    if tensor is None and config.backend == "torch" and arrays.is_tensor(probabilities):
        tensor = arrays.to_device(probabilities, "cpu")
    matrix = as_array(probabilities, name) if tensor is None else tensor
    if matrix.ndim != len(axes):
        raise InputError(f"{name} must have shape ({', '.join(axes)}), not {tuple(matrix.shape)}")
    if matrix.shape[0] == 0:
        raise InputError(f"{name} has no rows: curves need at least one individual")
    holds_numbers = matrix.dtype.kind in "biuf" if tensor is None else not tensor.is_complex()
    if not holds_numbers:
        raise InputError(f"{name} must hold numbers, not {matrix.dtype}")
    if tensor is not None:
        floats: FloatArray = (tensor if tensor.is_floating_point() else tensor.double()).contiguous()
        return floats
    matrix = as_computed(matrix)
    if matrix.dtype not in (np.float32, np.float64) or not matrix.dtype.isnative:
        matrix = matrix.astype(np.float64)
    return np.ascontiguousarray(matrix)


def as_computed(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return half precision, with which processors do not compute, as float32."""
    return matrix.astype(np.float32) if matrix.dtype == np.float16 else matrix


def check_probabilities(
    survival: FloatArray,
    given: FloatArray,
    times: NDArray[np.float64],
    predicts: Literal["survival", "event"],
    *,
    check_monotone: bool,
) -> None:
    """Raise unless `survival` is right, in terms of what was `given`: that, or the probabilities of the event."""
    tolerance = 4.0 * arrays.rounding_unit(given) if check_monotone else np.inf
    if has_bad_probabilities(survival, tolerance):
        swapped = (
            "they rise on average, as probabilities of the event do: `from_event_probabilities` takes these"
            if predicts == "survival"
            else "they fall on average, as survival does: `SurvivalCurves` takes these as they are"
        )
        names = ("probabilities", "survival" if predicts == "survival" else "the probability of the event")
        _refuse_curves(given, times, names, tolerance, swapped, falls=predicts == "survival")


def check_incidences(
    given: FloatArray, times: NDArray[np.float64], causes: Sequence[str], *, check_monotone: bool
) -> None:
    """Raise unless (individuals, causes, times) are incidences: of each cause, and together at most 1."""
    swapped = "they fall on average, as survival does, and incidences are probabilities that the event has happened"
    tolerance = 4.0 * arrays.rounding_unit(given) if check_monotone else np.inf
    n, n_causes, m = given.shape
    if has_bad_probabilities(given.reshape(n * n_causes, m), tolerance, rising=True):
        for k, cause in enumerate(causes):
            names = (f"incidences of cause {cause!r}", f"the incidence of cause {cause!r}")
            _refuse_curves(given[:, k], times, names, tolerance, swapped, falls=False)
    if n_causes > 1:
        _check_sums(given, times, causes)


def _check_sums(given: FloatArray, times: NDArray[np.float64], causes: Sequence[str]) -> None:
    """Raise if the incidences of all causes add up to more than 1."""
    most = 1.0 + max(ROUNDING, 4.0 * len(causes) * arrays.rounding_unit(given))
    size = max(1, (DEVICE_CELLS if arrays.on_device(given) else MOST_CHECKED) // (given.shape[1] * given.shape[2]))
    blocks = [slice(start, start + size) for start in range(0, len(given), size)]

    def over(rows: slice) -> Any:
        return arrays.sum_of_causes(given[rows]) > most

    if not any(each(lambda rows: bool(over(rows).any()), blocks, threads=len(blocks) > 8)):
        return
    found = [(rows.start, arrays.to_host(over(rows))) for rows in blocks]
    count = sum(int(np.count_nonzero(broken)) for _, broken in found)
    start, broken = next((start, broken) for start, broken in found if broken.any())
    row, column = (int(place) for place in np.unravel_index(int(np.argmax(broken)), broken.shape))
    parts = arrays.to_host(arrays.as_float64(given[start + row, :, column]))
    listed = " + ".join(f"{part:.4g}" for part in parts[:5]) + (" + ..." if parts.size > 5 else "")
    raise InputError(
        f"incidences of all causes must sum to at most 1: {plural(count, 'sum')} {'is' if count == 1 else 'are'} "
        f"larger, the first in row {start + row} at time {times[column]:g} ({parts.sum():.7g} = {listed})"
    )


def _refuse_curves(
    given: FloatArray,
    times: NDArray[np.float64],
    names: tuple[str, str],
    tolerance: float,
    swapped: str,
    *,
    falls: bool,
) -> None:
    """Raise if some curve is wrong; only those that will be refused are searched in detail, row block by row block.

    `names` are of the numbers and of what may not fall or rise, and `swapped` is what to do if they go the other way.
    """
    values, name = names
    _refuse(given, times, values, "must be without NaN", np.isnan, lambda *_: ")")
    _refuse(given, times, values, "must be between 0 and 1", lambda block: (block < 0) | (block > 1), _why_outside)
    if tolerance == np.inf:
        return

    def why(matrix: FloatArray, row: int, column: int) -> str:
        first, last = (arrays.to_host(matrix[:, k]).astype(np.float64).mean() for k in (0, -1))
        # noisy curves of survival still fall
        wrong_way = (last - first if falls else first - last) > ROUNDING
        hint = swapped if wrong_way else "`monotone='keep'` or `monotone='enforce'` takes such curves"
        totals = [arrays.to_host(block).sum(axis=1, dtype=np.float64).max() for _, block in _blocks(matrix)]
        if falls and matrix.shape[1] >= FEW_MASSES and max(totals) <= 1.0 + ROUNDING:
            hint = "each row sums to at most 1, as a probability mass function does: from_pmf takes that"
        return f" after {_value(matrix, row, column - 1)}); {hint}"

    def steps(block: FloatArray) -> NDArray[np.bool_]:
        lower, upper = (block[:, :-1], block[:, 1:]) if falls else (block[:, 1:], block[:, :-1])
        return np.pad(upper > lower + block.dtype.type(tolerance), ((0, 0), (1, 0)))

    _refuse(given, times, name, f"must not {'increase' if falls else 'decrease'} with time", steps, why)


def has_bad_probabilities(matrix: FloatArray, tolerance: float, *, rising: bool = False) -> bool:
    """Whether a value is outside [0, 1], or NaN, or larger than the one before it by more than a tolerance.

    Or smaller, of curves that should be `rising`.

    Block by block, on all cores. Where no curve rises, which no NaN passes as, the first and the last column have the
    extremes; else these are found among all values, and are NaN where a value is.
    """
    checks_steps = tolerance < np.inf and matrix.shape[1] > 1

    def bad(rows: slice) -> bool:
        block: Any = matrix[rows]
        if checks_steps and _goes_one_way(block, rising):
            smallest, largest = (0, -1) if rising else (-1, 0)
            return not (bool(block[:, smallest].min() >= 0) and bool(block[:, largest].max() <= 1))
        if arrays.is_tensor(block) and block.element_size() < 4:
            block = block.float()  # a sum in half precision would round the tolerance away
        bad = ~((block.min() >= 0) & (block.max() <= 1))
        if checks_steps:
            steps = block[:, 1:] - block[:, :-1]
            bad = bad | ((-steps.min() if rising else steps.max()) > tolerance)
        return bool(bad)

    # Many threads get in each other's way between blocks, for the interpreter: then a few large ones take a third of
    # the time of many that stay in the cache, which are faster on few cores.
    n_cells, n_cores = matrix.shape[0] * matrix.shape[1], config.n_cores()
    most = MOST_CHECKED * max(1, n_cores // 4)
    cells = DEVICE_CELLS if arrays.on_device(matrix) else min(max(CHECKED_CELLS, n_cells // (4 * n_cores)), most)
    size = max(1, cells // matrix.shape[1])
    blocks = [slice(start, start + size) for start in range(0, len(matrix), size)]
    return any(each(bad, blocks, threads=n_cells > 8 * CHECKED_CELLS))


def _goes_one_way(block: Any, rising: bool) -> bool:
    """Whether no row has a NaN, and none rises, or none falls, where curves should be `rising`.

    As one long row, in a third of the time, leaving out the steps between two.
    """
    values = block.reshape(-1)
    right = values[1:] >= values[:-1] if rising else values[1:] <= values[:-1]
    right[block.shape[1] - 1 :: block.shape[1]] = True
    return bool(right.all())


def _refuse(
    matrix: FloatArray,
    times: NDArray[np.float64],
    name: str,
    rule: str,
    find: Callable[[FloatArray], NDArray[np.bool_]],
    hint: Callable[[FloatArray, int, int], str],
) -> None:
    """Raise if any value breaks the rule, and say how many do, where the first is, and what may be the reason."""
    count, first = 0, None
    for start, block in _blocks(matrix):
        broken = find(block)
        count += int(np.count_nonzero(broken))
        if first is None and broken.any():
            row, column = np.unravel_index(int(np.argmax(broken)), broken.shape)
            first = (start + int(row), int(column))
    if first is not None:
        value = _value(matrix, *first)
        one, many = ("is not", "are not") if rule.startswith("must be") else ("does", "do")
        raise InputError(
            f"{name} {rule}: {plural(count, 'value')} {one if count == 1 else many}, "
            f"the first in row {first[0]} at time {times[first[1]]:g} ({value}{hint(matrix, *first)}"
        )


def _blocks(matrix: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    for start in range(0, matrix.shape[0], 4096):
        yield start, as_computed(arrays.to_host(matrix[start : start + 4096]))


def _value(matrix: FloatArray, row: int, column: int) -> Any:
    return arrays.to_host(matrix[row, column])[()]


def _why_outside(matrix: FloatArray, row: int, column: int) -> str:
    value = _value(matrix, row, column)
    if (-value if value < 0 else value - 1) < 1e-5:
        return "; a rounding error: clip the predictions)"
    if all(bool(((block >= 0) & (block <= 100)).all()) for _, block in _blocks(matrix)):
        return "); are these percentages? Divide them by 100, or read files with `percent=True`"
    if all(bool((block < -ROUNDING).any() and (block > 1 + ROUNDING).any()) for _, block in _blocks(matrix)):
        return "); risk scores are no probabilities: the page 'What survscore does not do' says what to do with them"
    return ")"


# Survival from probability masses, hazards and quantiles


def survival_of_masses(masses: ArrayLike, n_times: int) -> Values:
    """Return 1 minus the running sum of probability masses; one more than there are times is that after the last."""
    matrix = _matrix(masses, "masses")
    _refuse_form(matrix, "masses", "between 0 and 1", ~((matrix >= 0) & (matrix <= 1)))
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
        _refuse_form(matrix, "hazards", "probabilities between 0 and 1", bad, hint)
        return np.asarray(np.cumprod(1.0 - matrix, axis=1), dtype=np.float64)
    _refuse_form(matrix, "hazards", "at least 0", ~(matrix >= 0))
    if kind == "rate":
        with np.errstate(invalid="ignore"):  # an infinite rate over no time
            steps = np.where(matrix > 0, matrix * np.diff(times, prepend=0.0), 0.0)
        matrix = np.cumsum(np.nan_to_num(steps, nan=0.0, posinf=np.inf), axis=1)
    else:
        _refuse_form(
            matrix,
            "cumulative hazards",
            "such that they do not fall with time",
            np.diff(matrix, axis=1, prepend=0.0) < 0,
            "; hazards of each interval are kind='probability' or 'rate'",
        )
    survival: Values = np.exp(-matrix)
    return survival


def survival_of_quantiles(quantiles: ArrayLike, levels: ArrayLike, times: Values, *, hold: bool) -> Values:
    """Return survival at times from quantiles of the event time, between which the distribution function is linear."""
    matrix = _matrix(quantiles, "quantiles", "levels")
    level = as_numbers(one_dimensional(levels, "levels"), "levels")
    if not level.size or not ((level > 0) & (level <= 1)).all() or (np.diff(level) <= 0).any():
        raise InputError("levels must increase, and lie above 0 and at most at 1: probabilities of the event")
    check_length("each row of quantiles", matrix.shape[1], "levels", level.size)
    _refuse_form(matrix, "quantiles", "at least 0", ~(matrix >= 0))
    with np.errstate(invalid="ignore"):  # two that are infinite
        falls = np.diff(matrix, axis=1, prepend=0.0) < 0
    _refuse_form(matrix, "quantiles", "such that they do not fall with the level", falls)
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


def looks_like_masses(survival: Any) -> bool:
    """Whether survival probabilities look like a probability mass function: rows sum to at most 1, and start low."""
    if survival.shape[0] < FEW or survival.shape[1] < FEW_MASSES:
        return False
    step = max(survival.shape[0] // LOOKED_AT, 1)
    # one row at first, which nearly always shows that there is nothing to look at
    if float(survival[0].sum()) > 1.0 + ROUNDING or float(survival[0, 0]) >= BELOW_ONE:
        return False
    some = arrays.to_host(survival[::step][:LOOKED_AT]).astype(np.float64)
    total = some.sum(axis=1)
    return bool((total <= 1.0 + ROUNDING).all() and (total > 0).any() and (some[:, 0] < BELOW_ONE).all())


def _matrix(values: ArrayLike, name: str, columns: str = "times") -> Values:
    return np.asarray(arrays.to_host(as_matrix(values, ("individuals", columns), name)), dtype=np.float64)


def _refuse_form(matrix: Values, name: str, rule: str, broken: NDArray[np.bool_], hint: str = "") -> None:
    count = int(np.count_nonzero(broken))
    if count:
        row, column = np.unravel_index(int(np.argmax(broken)), broken.shape)
        raise InputError(
            f"{name} must be {rule}: {plural(count, 'value')} {'is' if count == 1 else 'are'} not, the first in row "
            f"{row}, column {column} ({shown(float(matrix[row, column]))}){hint}"
        )

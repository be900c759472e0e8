"""What was predicted: survival curves on a grid, and how they are read between its points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._config import config
from survscore._utils import arrays
from survscore._utils.parallel import each
from survscore._validation import (
    FloatArray,
    InputError,
    as_array,
    as_index,
    as_times,
    check_choice,
    check_length,
    plural,
)
from survscore.interpolation import Interpolation, blend

InterpolationKind = Literal["linear", "step", "constant-hazard"]
ExtrapolationKind = Literal["nan", "hold"]
Monotone = Literal["check", "keep", "enforce"]
Predicts = Literal["survival", "event"]
INTERPOLATIONS = ("linear", "step", "constant-hazard")
EXTRAPOLATIONS = ("nan", "hold")
MONOTONE = ("check", "keep", "enforce")
PREDICTS = ("survival", "event")
ROUNDING = 1e-6  # what a mean of float32 may be off by
CHECKED_CELLS, MOST_CHECKED = 1 << 16, 1 << 19  # at a time, so that they stay in the cache
DEVICE_CELLS = 1 << 26


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurves:
    r"""Predicted survival probabilities :math:`\pi_i(t) = P(T^*_i > t)` on a grid of times.

    Parameters
    ----------
    probabilities : array_like of shape (n, m)
        One row per individual, one column per time. Float32 and float64 are used as they are, without
        a copy if rows are contiguous; torch tensors share their memory too. Tensors on a CUDA device (also CuPy's and
        JAX's arrays, by DLPack) stay there, half precision included, and are scored there; see `to` and `numpy`.
        Probabilities of the event go to `from_event_probabilities`.
    times : array_like of shape (m,)
        The grid: strictly increasing, zero or later.
    interpolation : {"linear", "step", "constant-hazard"}, default "linear"
        How to read between grid points. ``"linear"``: survival is linear there, that is, the density is
        constant. ``"step"``: survival falls at grid points only. ``"constant-hazard"``: the logarithm of
        survival is linear. Left of the first grid point all start from S(0) = 1.
    extrapolation : {"nan", "hold"}, default "nan"
        What is predicted after the last grid point: nothing, or the last value for ever.
    monotone : {"check", "keep", "enforce"}, default "check"
        Survival can't rise with time. ``"check"`` refuses curves that do by more than rounding (four units
        in the last place of the number type); ``"keep"`` takes them as they are, for example from a net with one
        classifier per time; ``"enforce"`` replaces every value by the smallest so far, in a copy.

    Examples
    --------
    >>> import survscore as ss
    >>> curves = ss.SurvivalCurves([[0.8, 0.4], [0.9, 0.9]], times=[1, 3])
    >>> curves.at([0.5, 2, 3])
    array([[0.9 , 0.6 , 0.4 ],
           [0.95, 0.9 , 0.9 ]])
    >>> curves
    SurvivalCurves(2 individuals, 2 times from 1 to 3, interpolation='linear', extrapolation='nan', float64)
    """

    probabilities: FloatArray
    times: NDArray[np.float64]
    interpolation: InterpolationKind = "linear"
    extrapolation: ExtrapolationKind = "nan"

    def __init__(
        self,
        probabilities: ArrayLike,
        times: ArrayLike,
        interpolation: InterpolationKind = "linear",
        *,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> None:
        self._take(probabilities, times, interpolation, extrapolation, monotone, "survival")

    # Other ways in

    @classmethod
    def from_event_probabilities(
        cls,
        probabilities: ArrayLike,
        times: ArrayLike,
        interpolation: InterpolationKind = "linear",
        *,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> Self:
        r"""Take probabilities that the event has happened, :math:`P(T^*_i \le t) = 1 - \pi_i(t)`.

        That is what classifiers give, one per time, and cumulative incidence. At a single time, the numbers alone do
        not distinguish them from survival probabilities: if one is passed as the other, the opposite of what was
        predicted is scored.

        Parameters
        ----------
        probabilities : array_like of shape (n, m)
            One row per individual, one column per time. Survival is kept in double precision, also if these are not:
            float32 has room for a small probability of the event, and not for one minus it.
        times, interpolation, extrapolation
            As for `SurvivalCurves`.
        monotone : {"check", "keep", "enforce"}, default "check"
            The probability that the event has happened can't fall with time. ``"check"`` refuses those that do by more
            than rounding, ``"keep"`` takes them as they are, ``"enforce"`` replaces every value by the largest so far.

        Returns
        -------
        SurvivalCurves

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves.from_event_probabilities([[0.25, 0.5]], times=[1, 3]).probabilities
        array([[0.75, 0.5 ]])
        """
        made = object.__new__(cls)
        made._take(probabilities, times, interpolation, extrapolation, monotone, "event")
        return made

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        interpolation: InterpolationKind = "linear",
        *,
        extrapolation: ExtrapolationKind = "nan",
        monotone: Monotone = "check",
    ) -> Self:
        """Take a pandas frame with one row per time and one column per individual, the index holding the times.

        That is what pycox's ``predict_surv_df`` and lifelines' ``predict_survival_function`` return. The
        curves of lifelines are step functions: say ``interpolation="step"`` for them.

        Examples
        --------
        >>> import pandas as pd
        >>> import survscore as ss
        >>> frame = pd.DataFrame({"a": [1.0, 0.7], "b": [1.0, 0.5]}, index=[0.0, 2.0])
        >>> ss.SurvivalCurves.from_frame(frame).at([1])
        array([[0.85],
               [0.75]])
        """
        if not hasattr(frame, "index") or not hasattr(frame, "to_numpy"):
            raise InputError(f"frame must be a pandas data frame, not {type(frame).__name__}")
        by_time = frame.to_numpy()
        times = as_times(frame.index, "the index of frame")
        return cls(by_time.T, times, interpolation, extrapolation=extrapolation, monotone=monotone)

    @classmethod
    def from_step_functions(cls, functions: Iterable[Any], *, extrapolation: ExtrapolationKind = "nan") -> Self:
        """Take scikit-survival's step functions, as ``predict_survival_function`` returns them.

        Each has its jump times in ``x`` and its values in ``y``. Where the jump times differ, the grid is
        their union, and `extrapolation` decides what a function says after its own last one.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import survscore as ss
        >>> functions = [SimpleNamespace(x=[1, 2], y=[0.9, 0.5]), SimpleNamespace(x=[1, 2], y=[0.8, 0.7])]
        >>> ss.SurvivalCurves.from_step_functions(functions).at([1.5])
        array([[0.9],
               [0.8]])
        """
        several = list(functions)
        if not several:
            raise InputError("functions is empty")
        try:
            grids = [as_times(function.x, f"x of function {i}") for i, function in enumerate(several)]
            # scikit-survival scales by `a` and shifts by `b`
            rows = [getattr(f, "a", 1.0) * np.asarray(f.y, dtype=np.float64) + getattr(f, "b", 0.0) for f in several]
        except AttributeError:
            raise InputError("functions must be step functions with attributes x and y") from None
        for i, (grid, row) in enumerate(zip(grids, rows, strict=True)):
            check_length(f"y of function {i}", row.size, "its x", grid.size)
        same = all(grid is grids[0] or np.array_equal(grid, grids[0]) for grid in grids)
        union = grids[0] if same else np.unique(np.concatenate(grids))
        if not same:
            ends = np.array([grid[-1] for grid in grids])
            if extrapolation == "nan":  # every function must reach the end of the common grid
                union = union[union <= ends.min()]
                if union.size == 0:
                    raise InputError("functions have no time in common; extrapolation='hold' extends their last values")
            padded = [np.concatenate(([1.0], row)) for row in rows]
            rows = [row[np.searchsorted(grid, union, side="right")] for grid, row in zip(grids, padded, strict=True)]
        return cls(np.stack(rows), union, "step", extrapolation=extrapolation)

    @classmethod
    def concatenate(cls, parts: Iterable[SurvivalCurves], *, times: ArrayLike | None = None) -> Self:
        """Join the curves of several groups of individuals, in order, such as those of the folds of a cross-validation.

        Where grids differ, the new one has the times of all of them. That changes no curve, since each is read at the
        others' times as it would be anyway, and has all its own. What ends the curves of one part ends all: after the
        first of the last grid points nothing is said about anybody, unless every part holds its last values.

        Parameters
        ----------
        parts : iterable of SurvivalCurves
            Read alike between grid points (`interpolation`).
        times : array_like, optional
            A common grid, to which the curves are reduced, where that of all times would take too much memory. All must
            reach it. Between its points curves are read anew, as `interpolation` says.

        Returns
        -------
        SurvivalCurves
            Double precision, unless all have the same grid and number type.

        Examples
        --------
        >>> import survscore as ss
        >>> early, late = ss.SurvivalCurves([[0.8, 0.4]], [1, 3]), ss.SurvivalCurves([[0.9, 0.5]], [2, 4])
        >>> both = ss.SurvivalCurves.concatenate([early, late])
        >>> both.times, both.probabilities
        (array([1., 2., 3.]), array([[0.8 , 0.6 , 0.4 ],
               [0.95, 0.9 , 0.7 ]]))
        """
        several = list(parts)
        if not several:
            raise InputError("parts is empty")
        if not all(isinstance(part, SurvivalCurves) for part in several):
            raise InputError("parts must be SurvivalCurves")
        first = several[0]
        other = next((part for part in several if part.interpolation != first.interpolation), None)
        if other is not None:
            raise InputError(
                f"parts must be read alike between grid points: some say interpolation={first.interpolation!r}, "
                f"others {other.interpolation!r}"
            )
        holds = all(part.extrapolation == "hold" for part in several)
        same = times is None and all(np.array_equal(part.times, first.times) for part in several[1:])
        grid = first.times if same else _common_grid(several) if times is None else as_times(times)
        if times is not None:
            ends = np.array([np.inf if part.extrapolation == "hold" else part.times[-1] for part in several])
            if grid[-1] > ends.min():
                raise InputError(
                    f"times must be reached by all parts: they end at {grid[-1]:g}, and part {int(np.argmin(ends))} at "
                    f"{ends.min():g}"
                )
        matrix = _stacked(
            [part.probabilities for part in several] if same else (part.at(grid) for part in several),
            sum(map(len, several)),
            grid.size,
        )
        made = object.__new__(cls)
        made._set(matrix, grid, first.interpolation, "hold" if holds else "nan")
        return made

    # What it tells

    def at(self, times: ArrayLike) -> FloatArray:
        """Return the predictions at `times`, shape (n, len(times)); NaN after the grid where `extrapolation` says so.

        A tensor, if the curves are held as one.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves([[0.64, 0.16]], times=[1, 2], interpolation="constant-hazard").at([0.5, 1.5, 2.5])
        array([[0.8 , 0.32,  nan]])
        """
        wanted = as_times(times)
        values = self.interpolate(wanted)(self.probabilities)
        readable = self.reaches(wanted)
        if not readable.all():
            values = arrays.where(arrays.beside(readable, values), values, np.nan)
        return values

    def only_at(self, times: NDArray[np.float64]) -> Self:
        """Return the curves on a grid of these times alone, all of which they reach."""
        values = self.interpolate(times)(self.probabilities)
        made = object.__new__(type(self))
        # rows stay contiguous: columns that were picked are not
        matrix = values if arrays.is_tensor(values) else np.ascontiguousarray(values)
        made._set(matrix, times, self.interpolation, self.extrapolation)
        return made

    def before(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return every row's left limit :math:`\pi_i(t_i-)` at its own time :math:`t_i`.

        Only a ``"step"`` curve jumps, and any curve at time 0, before which nothing has happened; elsewhere this
        is the value at :math:`t_i`.
        """
        grid, last = arrays.beside(self.times, self.probabilities), self.times.size - 1
        lower = arrays.count_below(grid, time, inclusive=False) - 1
        rows, inside = arrays.columns(len(self), self.probabilities), lower.clip(0)
        left = arrays.where(lower < 0, 1.0, self.probabilities[rows, inside])
        if self.interpolation == "step":
            values = left
        else:
            upper = (lower + 1).clip(0, last)
            start = arrays.where(lower < 0, 0.0, grid[inside])
            # the weight is 0 after the grid, and at time 0 when the grid starts there
            weight = arrays.ratio(time - start, grid[upper] - start)
            values = blend(left, self.probabilities[rows, upper], weight, self.interpolation == "constant-hazard")
        if self.extrapolation == "nan":
            values = arrays.where(time > grid[-1], np.nan, values)
        left_limit: NDArray[np.float64] = arrays.as_float64(values)
        return left_limit

    def increases(self) -> bool:
        """Whether some curve increases with time by more than rounding."""
        return _has_bad_probabilities(self.probabilities, 4.0 * arrays.rounding_unit(self.probabilities))

    def reaches(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the curves say anything at each of `times`."""
        if self.extrapolation == "hold":
            return np.ones(times.shape, dtype=np.bool_)
        return np.asarray(times <= self.times[-1])

    def interpolate(self, times: NDArray[np.float64]) -> Interpolation:
        """Return how to read the grid at `times`; times after the grid hold the last value."""
        grid, last = self.times, self.times.size - 1
        lower = np.searchsorted(grid, times, side="right") - 1
        if self.interpolation == "step":
            weight = np.zeros(times.size)
        else:
            start = np.where(lower < 0, 0.0, grid[np.maximum(lower, 0)])
            width = grid[np.minimum(lower + 1, last)] - start
            weight = np.divide(times - start, width, out=np.zeros(times.size), where=lower < last)
        return Interpolation(lower, weight, self.interpolation == "constant-hazard")

    # Where it lives

    @property
    def device(self) -> Any:
        """The torch device that holds the probabilities; None for a NumPy array in the processor's memory."""
        return arrays.device_of(self.probabilities)

    def to(self, device: Any) -> Self:
        """Return the same curves with their probabilities as a torch tensor on a device, such as ``"cuda"``.

        Without a copy where they are there already. Curves held as a tensor are scored by torch where they are.
        """
        return self._with(arrays.to_device(self.probabilities, device))

    def numpy(self) -> Self:
        """Return the same curves with their probabilities as a NumPy array in the processor's memory.

        Half precision becomes float32.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.SurvivalCurves([[0.8, 0.4]], times=[1, 3]).numpy().probabilities
        array([[0.8, 0.4]])
        """
        if self.device is None:
            return self
        return self._with(_as_computed(arrays.to_host(self.probabilities)))

    def __len__(self) -> int:
        return int(self.probabilities.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, m)``."""
        return (self.probabilities.shape[0], self.probabilities.shape[1])

    def __getitem__(self, key: Any) -> Self:
        """Pick individuals by position, slice or boolean mask."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, (int, np.integer)):
            key = [range(len(self))[key]]
        rows = self.probabilities[as_index(key, self.probabilities)]
        if rows.ndim != 2:
            raise IndexError("survival curves are picked by individual")
        return self._with(rows)

    def __repr__(self) -> str:
        n, m = self.shape
        return (
            f"SurvivalCurves({n} individual{'' if n == 1 else 's'}, {m} time{'' if m == 1 else 's'} "
            f"from {self.times[0]:g} to {self.times[-1]:g}, interpolation={self.interpolation!r}, "
            f"extrapolation={self.extrapolation!r}, {arrays.type_name(self.probabilities)})"
        )

    def _take(
        self,
        probabilities: ArrayLike,
        times: ArrayLike,
        interpolation: InterpolationKind,
        extrapolation: ExtrapolationKind,
        monotone: Monotone,
        predicts: Predicts,
    ) -> None:
        check_choice("interpolation", interpolation, INTERPOLATIONS)
        check_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        check_choice("monotone", monotone, MONOTONE)
        grid = as_times(times)
        matrix = _as_matrix(probabilities)
        if matrix.shape[1] != grid.size:
            hint = "; it looks transposed" if matrix.shape[0] == grid.size else ""
            raise InputError(
                f"probabilities has {matrix.shape[1]} columns, but times has length {grid.size} "
                f"(rows are individuals, columns are times{hint})"
            )
        survival = matrix if predicts == "survival" else 1.0 - arrays.as_float64(matrix)
        _check_probabilities(survival, matrix, grid, predicts, check_monotone=monotone == "check")
        if monotone == "enforce":
            survival = arrays.smallest_so_far(survival)
        self._set(survival, grid, interpolation, extrapolation)

    def _with(self, probabilities: Any) -> Self:
        """Return curves on the same grid, of probabilities that need no check."""
        made = object.__new__(type(self))
        made._set(probabilities, self.times, self.interpolation, self.extrapolation)
        return made

    def _set(
        self,
        probabilities: FloatArray,
        times: NDArray[np.float64],
        interpolation: InterpolationKind,
        extrapolation: ExtrapolationKind,
    ) -> None:
        # the user's own array stays writeable
        shown = probabilities if arrays.is_tensor(probabilities) else arrays.read_only(probabilities)
        object.__setattr__(self, "probabilities", shown)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "interpolation", interpolation)
        object.__setattr__(self, "extrapolation", extrapolation)


def _common_grid(parts: list[SurvivalCurves]) -> NDArray[np.float64]:
    """Return all times of all grids, up to where the first of them ends."""
    union = np.unique(np.concatenate([part.times for part in parts]))
    end = min((part.times[-1] for part in parts if part.extrapolation == "nan"), default=union[-1])
    grid: NDArray[np.float64] = union[union <= end]
    grid.flags.writeable = False
    return grid


def _stacked(blocks: Iterable[FloatArray], n: int, m: int) -> FloatArray:
    """Return blocks of rows as one matrix, filled as they come, so that there is never more than that and a block."""
    rows = iter(blocks)
    block = next(rows)
    if arrays.is_tensor(block):
        tensors: FloatArray = arrays.concatenate([block, *rows])
        return tensors
    matrix = np.empty((n, m), dtype=block.dtype)
    start = 0
    for host in map(arrays.to_host, chain([block], rows)):
        if host.dtype != matrix.dtype:
            matrix = matrix.astype(np.float64)
        matrix[start : start + len(host)] = host
        start += len(host)
    return matrix


def _as_matrix(probabilities: ArrayLike) -> FloatArray:
    """Return a row-contiguous float32 or float64 matrix, the user's own memory where it is one already."""
    tensor = arrays.resident(probabilities)
    if tensor is None and config.backend == "torch" and arrays.is_tensor(probabilities):
        tensor = arrays.to_device(probabilities, "cpu")
    matrix = as_array(probabilities, "probabilities") if tensor is None else tensor
    if matrix.ndim != 2:
        raise InputError(f"probabilities must have shape (individuals, times), not {tuple(matrix.shape)}")
    if matrix.shape[0] == 0:
        raise InputError("probabilities has no rows: curves need at least one individual")
    if tensor is not None:
        if tensor.is_complex():
            raise InputError(f"probabilities must hold numbers, not {tensor.dtype}")
        floats: FloatArray = (tensor if tensor.is_floating_point() else tensor.double()).contiguous()
        return floats
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"probabilities must hold numbers, not {matrix.dtype}")
    matrix = _as_computed(matrix)
    if matrix.dtype not in (np.float32, np.float64) or not matrix.dtype.isnative:
        matrix = matrix.astype(np.float64)
    return np.ascontiguousarray(matrix)


def _as_computed(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return half precision, with which processors do not compute, as float32."""
    return matrix.astype(np.float32) if matrix.dtype == np.float16 else matrix


def _check_probabilities(
    survival: FloatArray,
    given: FloatArray,
    times: NDArray[np.float64],
    predicts: Predicts,
    *,
    check_monotone: bool,
) -> None:
    """Raise unless `survival` is right, in terms of what was `given`: that, or the probabilities of the event."""
    tolerance = 4.0 * arrays.rounding_unit(given)
    if not _has_bad_probabilities(survival, tolerance if check_monotone else np.inf):
        return
    # Only a matrix that will be rejected is searched in detail, row block by row block.
    name, rule, direction = {
        "survival": ("survival", "must not increase with time", 1),
        "event": ("the probability of the event", "must not decrease with time", -1),
    }[predicts]
    _refuse(given, times, "probabilities", "must be without NaN", np.isnan, lambda *_: ")")
    _refuse(
        given, times, "probabilities", "must be between 0 and 1", lambda block: (block < 0) | (block > 1), _why_outside
    )
    if check_monotone:
        hint = _why_not_monotone if predicts == "survival" else _why_event_not_monotone
        _refuse(given, times, name, rule, lambda block: _steps(block, direction, tolerance), hint)


def _has_bad_probabilities(matrix: FloatArray, tolerance: float) -> bool:
    """Whether a value is outside [0, 1], or NaN, or larger than the one before it by more than a tolerance.

    By extremes, which NumPy finds fastest, and which are NaN where a value is: block by block, on all cores.
    """

    def bad(rows: slice) -> bool:
        block: Any = matrix[rows]
        if arrays.is_tensor(block) and block.element_size() < 4:
            block = block.float()  # a sum in half precision would round the tolerance away
        bad = ~((block.min() >= 0) & (block.max() <= 1))
        if tolerance < np.inf and block.shape[1] > 1:
            bad = bad | ((block[:, 1:] - block[:, :-1]).max() > tolerance)
        return bool(bad)

    # threads get in each other's way between blocks, so that large matrices have larger ones
    on_processor = min(max(CHECKED_CELLS, matrix.shape[0] * matrix.shape[1] // 512), MOST_CHECKED)
    cells = DEVICE_CELLS if arrays.on_device(matrix) else on_processor
    size = max(1, cells // matrix.shape[1])
    blocks = [slice(start, start + size) for start in range(0, len(matrix), size)]
    return any(each(bad, blocks, threads=len(blocks) > 8))


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
        yield start, _as_computed(arrays.to_host(matrix[start : start + 4096]))


def _value(matrix: FloatArray, row: int, column: int) -> Any:
    return arrays.to_host(matrix[row, column])[()]


def _steps(block: FloatArray, direction: int, tolerance: float) -> NDArray[np.bool_]:
    """Return which values are above (1) or below (-1) the one before them by more than rounding."""
    steps = np.zeros(block.shape, dtype=np.bool_)
    before, after = block[:, :-1], block[:, 1:]
    upper, lower = (after, before) if direction > 0 else (before, after)
    steps[:, 1:] = upper > lower + block.dtype.type(tolerance)
    return steps


def _why_outside(matrix: FloatArray, row: int, column: int) -> str:
    value = _value(matrix, row, column)
    if (-value if value < 0 else value - 1) < 1e-5:
        return "; a rounding error: np.clip the predictions)"
    if all(bool(((block >= 0) & (block <= 100)).all()) for _, block in _blocks(matrix)):
        return "); are these percentages? Then divide by 100"
    return ")"


def _why_not_monotone(matrix: FloatArray, row: int, column: int) -> str:
    after = f" after {_value(matrix, row, column - 1)})"
    if _rise_on_average(matrix) > ROUNDING:  # noisy curves of survival still fall
        return after + "; they rise on average, as probabilities of the event do: from_event_probabilities takes these"
    return after + "; monotone='keep' or 'enforce' takes such curves"


def _why_event_not_monotone(matrix: FloatArray, row: int, column: int) -> str:
    after = f" after {_value(matrix, row, column - 1)})"
    if _rise_on_average(matrix) < -ROUNDING:
        return after + "; they fall on average, as survival does: SurvivalCurves takes these as they are"
    return after + "; monotone='keep' or 'enforce' takes such curves"


def _rise_on_average(matrix: FloatArray) -> float:
    """Return how much larger the last column is than the first, on average over individuals."""
    first, last = (arrays.to_host(matrix[:, k]).astype(np.float64).mean() for k in (0, -1))
    return float(last - first)

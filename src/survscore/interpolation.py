"""Predictions on a grid: how they are read at other times, where they live, and several grids made one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore._utils.probabilities import as_computed
from survscore._validation import FloatArray, InputError, as_index, as_list, as_times, check_length, plural


@dataclass(frozen=True, eq=False)
class Interpolation:
    """How the columns of a grid give the values at other times, the same way for every row.

    The value at time j lies between column ``lower[j]`` and the next one, with `weight` on the latter;
    ``lower[j] == -1`` stands for S(0) = 1, left of the first column. Times ascend, and `lower` with them.
    """

    lower: NDArray[np.intp]
    weight: NDArray[np.float64]
    geometric: bool

    @classmethod
    def of(cls, grid: NDArray[np.float64], times: NDArray[np.float64], kind: str) -> Self:
        """Return how to read a grid at `times`; times after the grid hold the last value."""
        last = grid.size - 1
        lower = np.searchsorted(grid, times, side="right") - 1
        if kind == "step":
            weight = np.zeros(times.size)
        else:
            start = np.where(lower < 0, 0.0, grid[np.maximum(lower, 0)])
            width = grid[np.minimum(lower + 1, last)] - start
            weight = np.divide(times - start, width, out=np.zeros(times.size), where=lower < last)
        return cls(lower, weight, kind == "constant-hazard")

    @cached_property
    def direct(self) -> bool:
        """Whether the values are a contiguous range of columns, so that nothing needs to be gathered."""
        first = self.lower[0]
        contiguous = np.array_equal(self.lower, np.arange(first, first + self.lower.size))
        return bool(first >= 0 and contiguous and not self.weight.any())

    def __call__(self, probabilities: FloatArray, start: float = 1.0) -> FloatArray:
        """Read whole rows: (individuals, grid) to (individuals, times); `start` is the value at time 0."""
        if self.direct:
            return probabilities[:, self.lower[0] : self.lower[0] + self.lower.size]
        lower, last = arrays.beside(self.lower, probabilities), probabilities.shape[1] - 1
        left = arrays.as_float64(probabilities[:, lower.clip(0)])
        left[:, lower < 0] = start
        right = arrays.as_float64(probabilities[:, (lower + 1).clip(0, last)])
        return blend(left, right, arrays.beside(self.weight, probabilities), self.geometric)


class OnGrid:
    """What all predictions on a grid of times have in common, whatever their rows hold: individuals come first."""

    probabilities: FloatArray
    times: NDArray[np.float64]
    interpolation: Any
    extrapolation: Any
    default_interpolation: bool

    @classmethod
    def concatenate(cls, parts: Iterable[Self], *, times: ArrayLike | None = None) -> Self:
        """Join the curves of several groups of individuals, in order, such as those of the folds of a cross-validation.

        Where grids differ, the new one has the times of all of them. That changes no curve, since each is read at the
        others' times as it would be anyway, and has all its own. What ends the curves of one part ends all: after the
        first of the last grid points there are no predictions, unless every part holds its last values.

        Parameters
        ----------
        parts : iterable of curves
            Of the same kind, read alike between grid points (`interpolation`), and of the same causes.
        times : array_like, optional
            A common grid, to which the curves are reduced, where that of all times would take too much memory. All must
            reach it. Between its points curves are read anew, as `interpolation` says.

        Returns
        -------
        SurvivalCurves or IncidenceCurves
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
        several: list[Self] = as_list(parts, "parts", cls.__name__)
        if not several:
            raise InputError("parts is empty")
        if not all(isinstance(part, cls) for part in several):
            raise InputError(f"parts must be {cls.__name__}")
        first = several[0]
        for part in several:
            first._check_alike(part)
        holds = all(part.extrapolation == "hold" for part in several)
        same = times is None and all(np.array_equal(part.times, first.times) for part in several[1:])
        ends = np.array([np.inf if part.extrapolation == "hold" else part.times[-1] for part in several])
        if times is not None:
            grid = as_times(times)
        else:
            grid = first.times if same else common_grid([part.times for part in several], float(ends.min()))
        if grid[-1] > ends.min():
            raise InputError(
                f"times must be reached by all parts: they end at {grid[-1]:g}, and part {int(np.argmin(ends))} at "
                f"{ends.min():g}"
            )
        matrix = stacked(
            [part.probabilities for part in several] if same else (part.at(grid) for part in several),
            sum(map(len, several)),
        )
        return first._with(
            matrix,
            times=grid,
            extrapolation="hold" if holds else "nan",
            default_interpolation=any(part.default_interpolation for part in several),
        )

    def _check_alike(self, other: Self) -> None:
        """Raise unless other curves can be joined to these."""
        if other.interpolation != self.interpolation:
            raise InputError(
                f"parts must be read alike between grid points: some say interpolation={self.interpolation!r}, "
                f"others {other.interpolation!r}"
            )

    @abstractmethod
    def at(self, times: ArrayLike) -> FloatArray:
        """Return the predictions at `times`."""

    def reaches(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the curves say anything at each of `times`."""
        if self.extrapolation == "hold":
            return np.ones(times.shape, dtype=np.bool_)
        return np.asarray(times <= self.times[-1])

    def interpolate(self, times: NDArray[np.float64]) -> Interpolation:
        """Return how to read the grid at `times`; times after the grid hold the last value."""
        return Interpolation.of(self.times, times, self.interpolation)

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
        return self._with(as_computed(arrays.to_host(self.probabilities)))

    def __len__(self) -> int:
        return int(self.probabilities.shape[0])

    def __getitem__(self, key: Any) -> Self:
        """Pick individuals by position, slice or boolean mask."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, (int, np.integer)):
            key = [range(len(self))[key]]
        rows = self.probabilities[as_index(key, self.probabilities)]
        if rows.ndim != self.probabilities.ndim:
            raise IndexError("curves are picked by individual")
        return self._with(rows)

    def _read(self, wanted: NDArray[np.float64], rows: FloatArray, start: float) -> FloatArray:
        """Return rows at other times, and NaN after the grid where `extrapolation` says so; `start` holds at time 0."""
        values = self.interpolate(wanted)(rows, start)
        readable = self.reaches(wanted)
        if not readable.all():
            values = arrays.where(arrays.beside(readable, values), values, np.nan)
        return values

    def _with(self, probabilities: Any, **changed: Any) -> Self:
        """Return curves of probabilities that need no check, otherwise as these but for what is `changed`."""
        read: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return object.__new__(type(self))._set(**{**read, "probabilities": probabilities, **changed})

    def _set(self, probabilities: Any, **read: Any) -> Self:
        # the user's own array stays writeable
        shown = probabilities if arrays.is_tensor(probabilities) else arrays.read_only(probabilities)
        for name, value in {"probabilities": shown, **read}.items():
            object.__setattr__(self, name, value)
        return self

    def _described(self) -> str:
        """Return how the curves are read and held, for their representations."""
        return (
            f"{plural(self.times.size, 'time')} from {self.times[0]:g} to "
            f"{self.times[-1]:g}, interpolation={self.interpolation!r}, extrapolation={self.extrapolation!r}, "
            f"{arrays.type_name(self.probabilities)}"
        )


def blend(left: FloatArray, right: FloatArray, weight: FloatArray, geometric: bool) -> NDArray[np.float64]:
    """Mix neighbours: arithmetically (survival linear) or geometrically (log-survival linear).

    The powers, unlike logarithms, are right where survival is zero: 0 ** 0 is 1.
    """
    if not geometric:
        return (1.0 - weight) * left + weight * right
    left, right = arrays.as_float64(left), arrays.as_float64(right)
    mixed: NDArray[np.float64] = arrays.power(left, 1.0 - weight) * arrays.power(right, weight)
    return mixed


def common_grid(grids: Sequence[NDArray[np.float64]], end: float) -> NDArray[np.float64]:
    """Return all times of all grids, up to where the first of the curves ends."""
    union = np.unique(np.concatenate(grids))
    grid: NDArray[np.float64] = union[union <= end]
    grid.flags.writeable = False
    return grid


def stacked(blocks: Iterable[FloatArray], n: int) -> FloatArray:
    """Return blocks of rows as one array, filled as they come, so that there is never more than that and a block."""
    rows = iter(blocks)
    block = next(rows)
    if arrays.is_tensor(block):
        tensors: FloatArray = arrays.concatenate([block, *rows])
        return tensors
    matrix = np.empty((n, *block.shape[1:]), dtype=block.dtype)
    start = 0
    for host in map(arrays.to_host, chain([block], rows)):
        if host.dtype != matrix.dtype:
            matrix = matrix.astype(np.float64)
        matrix[start : start + len(host)] = host
        start += len(host)
    return matrix


def of_step_functions(functions: Sequence[Any], extrapolation: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of step functions, one row each, and their common grid."""
    if not functions:
        raise InputError("functions is empty")
    try:
        grids = [as_times(function.x, f"x of function {i}") for i, function in enumerate(functions)]
        # scikit-survival scales by `a` and shifts by `b`
        rows = [getattr(f, "a", 1.0) * np.asarray(f.y, dtype=np.float64) + getattr(f, "b", 0.0) for f in functions]
    except AttributeError:
        raise InputError("functions must be step functions with attributes x and y") from None
    for i, (grid, row) in enumerate(zip(grids, rows, strict=True)):
        check_length(f"y of function {i}", row.size, "its x", grid.size)
    same = all(grid is grids[0] or np.array_equal(grid, grids[0]) for grid in grids)
    if same:
        return np.stack(rows), grids[0]
    # every function must reach the end of the common grid, unless it holds its last value
    union = common_grid(grids, min(grid[-1] for grid in grids) if extrapolation == "nan" else np.inf)
    padded = [np.concatenate(([1.0], row)) for row in rows]
    rows = [row[np.searchsorted(grid, union, side="right")] for grid, row in zip(grids, padded, strict=True)]
    return np.stack(rows), union

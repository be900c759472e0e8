"""Predictions, block of rows by block of rows: from matrices in memory, or as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._parallel import row_blocks
from survscore._validation import InputError, plural
from survscore.curves import SurvivalCurves


@dataclass(frozen=True, eq=False)
class Block:
    """Some individuals, by position, and what every model predicts for them."""

    rows: slice
    curves: Sequence[SurvivalCurves]


@dataclass(frozen=True, eq=False, repr=False)
class CurveBatches:
    """Predictions that come in batches, of which one is in memory at a time.

    Parameters
    ----------
    batches : callable
        Returns an iterable of `SurvivalCurves`, the individuals in order, all on the same grid. It is called once for
        scores, and again for their standard errors: so it must give the same each time.
    n : int
        How many individuals there are.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> def predict_in_batches():
    ...     for start in range(0, 6, 2):
    ...         yield ss.SurvivalCurves(np.full((2, 1), 0.5 + start / 10), times=[2])
    >>> y = ss.Outcomes(time=[1, 3, 4, 1, 3, 4], event=[1, 0, 1, 1, 1, 0], censoring_time=[4, 3, 6, 3, 3, 4])
    >>> batches = ss.CurveBatches(predict_in_batches, n=6)
    >>> ss.brier_score(y, batches, weighting="administrative", times=[2]).scores.round(4)
    array([0.1833])
    """

    batches: Callable[[], Iterable[SurvivalCurves]]
    n: int

    def __post_init__(self) -> None:
        if not callable(self.batches):
            raise InputError("batches must be a function that returns an iterable of SurvivalCurves, so that it can be "
                             "gone through more than once")  # fmt: skip
        first = next(iter(self), None)
        if first is None:
            raise InputError("batches is empty")
        object.__setattr__(self, "_first", first[:1])

    def __iter__(self) -> Iterator[SurvivalCurves]:
        grid: NDArray[np.float64] | None = None
        for batch in self.batches():
            if not isinstance(batch, SurvivalCurves):
                raise InputError(f"batches must be SurvivalCurves, not {type(batch).__name__}")
            if grid is None:
                grid = batch.times
            elif not np.array_equal(grid, batch.times):
                raise InputError("batches must all be on the same grid of times")
            yield batch

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: NDArray[np.intp]) -> CurveBatches:
        """Pick individuals by rising positions; the batches still come one at a time, without those left out."""

        def some() -> Iterator[SurvivalCurves]:
            start = 0
            for batch in self:
                first, last = np.searchsorted(rows, [start, start + len(batch)])
                if last > first:
                    yield batch[rows[first:last] - start]
                start += len(batch)

        return CurveBatches(some, len(rows))

    # What scoring asks of curves: the grid, and how it is read

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid."""
        return self._some.times

    @property
    def between(self) -> str:
        """How the curves are read between grid points."""
        return self._some.between

    @property
    def beyond(self) -> str:
        """What holds after the last grid point."""
        return self._some.beyond

    def reaches(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the curves say anything at each of `times`."""
        return self._some.reaches(times)

    @property
    def device(self) -> Any:
        """The torch device that holds the first batch; None for NumPy arrays."""
        return self._some.device

    def to(self, device: Any) -> CurveBatches:
        """Return batches that are moved to a device as they come."""
        return CurveBatches(lambda: (batch.to(device) for batch in self), self.n)

    @property
    def _some(self) -> SurvivalCurves:
        some: SurvivalCurves = self.__dict__["_first"]
        return some

    def __repr__(self) -> str:
        return f"CurveBatches({plural(self.n, 'individual')}, {plural(self.times.size, 'time')})"


Predictions = SurvivalCurves | CurveBatches


@dataclass(frozen=True, eq=False)
class Models:
    """What several models predict for the same individuals."""

    curves: Mapping[str, Predictions]
    n: int

    @property
    def in_memory(self) -> list[SurvivalCurves] | None:
        """All curves as matrices, where none comes in batches."""
        found = [curves for curves in self.curves.values() if isinstance(curves, SurvivalCurves)]
        return found if len(found) == len(self.curves) else None

    def blocks(self, n_times: int, *, compiled: bool) -> Iterator[Block]:
        """Yield all individuals, block by block; batches stay as they come."""
        matrices = self.in_memory
        if matrices is not None:
            for rows in row_blocks(self.n, n_times, compiled=compiled):
                yield Block(rows, [curves[rows] for curves in matrices])
            return
        yield from self._zipped()

    def _zipped(self) -> Iterator[Block]:
        running: dict[str, Any] = {name: iter(c) for name, c in self.curves.items() if isinstance(c, CurveBatches)}
        start = 0
        while start < self.n:
            batches: dict[str, Any] = {name: next(batch, None) for name, batch in running.items()}
            sizes = {0 if batch is None else len(batch) for batch in batches.values()}
            if len(sizes) != 1:
                raise InputError("batches of different models must have the same sizes")
            (size,) = sizes
            if size == 0 or start + size > self.n:
                raise InputError(f"batches hold {'fewer' if size == 0 else 'more'} than the {self.n} individuals of y")
            rows = slice(start, start + size)
            curves = [c[rows] if isinstance(c, SurvivalCurves) else batches[name] for name, c in self.curves.items()]
            yield Block(rows, curves)
            start += size
        if any(next(batch, None) is not None for batch in running.values()):
            raise InputError(f"batches hold more than the {self.n} individuals of y")

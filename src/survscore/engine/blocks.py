"""Predictions, block of rows by block of rows: from matrices in memory, or as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, plural
from survscore.causes import Cause
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.interpolation import Interpolation
from survscore.weighting import Weighting
from survscore.weighting.interval_weights import TimeIndex

#: Columns in memory to one that is read, from which on it pays to gather those once: less is fetched with each pass.
SPARSE = 8
#: Of one float64 matrix of a block, 1 MB: smaller ones cost calls, larger ones leave the cache.
BLOCK_CELLS = 1 << 17
DEVICE_CELLS = 15 << 21  # of a block on a CUDA device, of all models and the weights
FEWEST_ROWS = 64


def row_blocks(n_rows: int, n_columns: int, like: Any = None, n_models: int = 1) -> Iterator[slice]:
    """Cut rows into blocks whose matrices stay in the cache, or keep a device busy, the same on every machine."""
    cells = DEVICE_CELLS // (n_models + 1) if arrays.on_device(like) else BLOCK_CELLS
    size = max(FEWEST_ROWS, cells // max(n_columns, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


@dataclass(frozen=True, eq=False)
class Block:
    """Some individuals, by position, and what every model predicts for them."""

    rows: slice
    curves: Sequence[SurvivalCurves]


@dataclass
class Arrivals:
    """Which individuals the next batch is about, pulled or pushed: they come in order, and no more than there are."""

    n: int
    n_arrived: int = 0

    def rows_of(self, size: int) -> slice:
        """Return the place of the next `size` individuals."""
        if self.n_arrived + size > self.n:
            raise InputError(f"batches hold more than the {self.n} individuals of y")
        rows = slice(self.n_arrived, self.n_arrived + size)
        self.n_arrived = rows.stop
        return rows

    def check_complete(self) -> None:
        """Raise unless all individuals have come."""
        if self.n_arrived < self.n:
            raise InputError(f"batches hold fewer than the {self.n} individuals of y")


def check_batch(batch: Any, first: Any) -> None:
    """Raise unless this is a batch of curves like the first one."""
    if not isinstance(batch, (SurvivalCurves, IncidenceCurves)):
        raise InputError(f"batches must be SurvivalCurves or IncidenceCurves, not {type(batch).__name__}")
    if first is None:
        return
    if getattr(batch, "causes", None) != getattr(first, "causes", None):
        raise InputError("batches must all be of the same causes")
    if not (batch.times is first.times or np.array_equal(batch.times, first.times)):
        raise InputError("batches must all be on the same grid of times")
    if (batch.interpolation, batch.extrapolation) != (first.interpolation, first.extrapolation):
        raise InputError("batches must all be read the same way: interpolation and extrapolation")
    if batch.device != first.device:
        raise InputError(
            f"batches must all be in one place: {batch.device or 'NumPy'} is not {first.device or 'NumPy'}"
        )


class InBatches:
    """Predictions of which no more than a batch is in memory; what scoring asks of them, it asks of their first row."""

    first: SurvivalCurves
    n: int

    def __len__(self) -> int:
        return self.n

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid."""
        return self.first.times

    @property
    def interpolation(self) -> str:
        """How the curves are read between grid points."""
        return self.first.interpolation

    @property
    def extrapolation(self) -> str:
        """What holds after the last grid point."""
        return self.first.extrapolation

    @property
    def default_interpolation(self) -> bool:
        """Whether that was left to the library."""
        return self.first.default_interpolation

    def reaches(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the curves say anything at each of `times`."""
        return self.first.reaches(times)

    def interpolate(self, times: NDArray[np.float64]) -> Interpolation:
        """Return how the curves are read at `times`."""
        return self.first.interpolate(times)

    @property
    def device(self) -> Any:
        """The torch device that holds the first batch; None for NumPy arrays."""
        return self.first.device


@dataclass(frozen=True, eq=False)
class PushedCurves(InBatches):
    """Predictions that are pushed batch by batch, and gone afterwards: there is no second look at them."""

    first: SurvivalCurves
    n: int

    def to(self, device: Any) -> PushedCurves:
        """Return the same, for batches on a device."""
        return PushedCurves(self.first.to(device), self.n)


@dataclass(frozen=True, eq=False, repr=False)
class CurveBatches(InBatches):
    """Predictions that come in batches, of which one is in memory at a time.

    Parameters
    ----------
    batches : callable
        Returns an iterable of `SurvivalCurves`, or of `IncidenceCurves`, the individuals in order, all on the same
        grid. It is called once for scores, and again for their standard errors: so it must give the same each time.
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
            raise InputError(
                "batches must be a function that returns an iterable of SurvivalCurves, so that it can be gone through "
                "more than once"
            )
        first = next(iter(self), None)
        if first is None:
            raise InputError("batches is empty")
        object.__setattr__(self, "first", first[[0]])  # a copy: a slice would keep the batch

    def __iter__(self) -> Iterator[SurvivalCurves]:
        first: SurvivalCurves | None = None
        for batch in self.batches():
            check_batch(batch, first)
            first = batch[[0]] if first is None else first
            yield batch

    def __getitem__(self, rows: NDArray[np.intp]) -> CurveBatches:
        """Pick individuals by rising positions; the batches still come one at a time, without those left out."""

        def chosen() -> Iterator[SurvivalCurves]:
            start = 0
            for batch in self:
                first, last = np.searchsorted(rows, [start, start + len(batch)])
                if last > first:
                    yield batch[rows[first:last] - start]
                start += len(batch)

        return CurveBatches(chosen, len(rows))

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes that incidences are of; empty for survival."""
        return getattr(self.first, "causes", ())

    def for_cause(self, cause: Cause) -> CurveBatches:
        """Return batches of survival curves of one cause; see `IncidenceCurves.for_cause`."""
        of_one: Callable[[Any], SurvivalCurves] = methodcaller("for_cause", cause)
        return CurveBatches(lambda: map(of_one, self), self.n)

    def thinned(self, times: NDArray[np.float64], first: int) -> CurveBatches:
        """Return batches that are read from every second grid point; see `SurvivalCurves.thinned`."""
        return CurveBatches(lambda: (batch.thinned(times, first) for batch in self), self.n)

    def to(self, device: Any) -> CurveBatches:
        """Return batches that are moved to a device as they come."""
        return CurveBatches(lambda: (batch.to(device) for batch in self), self.n)

    def __repr__(self) -> str:
        return f"CurveBatches({plural(self.n, 'individual')}, {plural(self.times.size, 'time')})"


Predictions = SurvivalCurves | CurveBatches | PushedCurves
#: What users give: incidences become survival curves of the cause that scores are of.
GivenPredictions = Predictions | IncidenceCurves


@dataclass(frozen=True, eq=False)
class Models:
    """What several models predict for the same individuals."""

    curves: Mapping[str, Predictions]
    n: int

    @property
    def in_memory(self) -> list[SurvivalCurves] | None:
        """All curves as matrices, where none comes in batches."""
        in_memory = [curves for curves in self.curves.values() if isinstance(curves, SurvivalCurves)]
        return in_memory if len(in_memory) == len(self.curves) else None

    def matrices(self, metric: str) -> list[SurvivalCurves]:
        """Return all curves as matrices, which a metric needs."""
        if self.in_memory is None:
            raise InputError(f"{metric} needs all predictions at once, not batches")
        return self.in_memory

    def gathered(self, times: NDArray[np.float64]) -> Models:
        """Return the same for several passes over some times: where few columns are read of many, copies of these."""

        def of_one(curves: Predictions) -> Predictions:
            few = len(curves) > 1 and SPARSE * times.size <= curves.times.size and curves.device is None
            return curves.only_at(times) if few and isinstance(curves, SurvivalCurves) else curves

        return Models({name: of_one(curves) for name, curves in self.curves.items()}, self.n)

    def collected(self, times: NDArray[np.float64]) -> Models:
        """Return predictions that come in batches as matrices at some times."""
        parts: dict[str, list[Any]] = {name: [] for name in self.curves}
        for block in self.blocks(times.size):
            for part, curves in zip(parts.values(), block.curves, strict=True):
                part.append(curves.only_at(times))
        return Models({name: SurvivalCurves.concatenate(several) for name, several in parts.items()}, self.n)

    def known_to(self, weighting: Weighting, index: TimeIndex) -> Mapping[str, SurvivalCurves]:
        """Return what weights may depend on: matrices in memory, or of batches the times that a weighting reads."""
        known, times = self.curves, None if self.in_memory is not None else weighting.reads(index)
        if times is not None:
            if not self.repeatable:
                message = f"{str(weighting)!r} needs all predictions before they are scored; strata=None needs none"
                raise InputError(message)
            known = self.collected(times).curves
        return {name: curves for name, curves in known.items() if isinstance(curves, SurvivalCurves)}

    def blocks(self, n_times: int) -> Iterator[Block]:
        """Yield all individuals, block by block; batches stay as they come."""
        matrices = self.in_memory
        if matrices is not None:
            for rows in row_blocks(self.n, n_times, matrices[0].probabilities, len(matrices)):
                yield Block(rows, [curves[rows] for curves in matrices])
            return
        running: dict[str, Any] = {name: iter(c) for name, c in self.curves.items() if isinstance(c, CurveBatches)}
        arrivals = Arrivals(self.n)
        while True:
            batches: dict[str, Any] = {name: next(batch, None) for name, batch in running.items()}
            if all(batch is None for batch in batches.values()):
                break
            sizes = {0 if batch is None else len(batch) for batch in batches.values()}
            if len(sizes) != 1:
                raise InputError("batches of different models must have the same sizes")
            rows = arrivals.rows_of(*sizes)
            curves = [c[rows] if isinstance(c, SurvivalCurves) else batches[name] for name, c in self.curves.items()]
            yield Block(rows, curves)
        arrivals.check_complete()

    @property
    def repeatable(self) -> bool:
        """Whether predictions can be gone through once more."""
        return not any(isinstance(curves, PushedCurves) for curves in self.curves.values())

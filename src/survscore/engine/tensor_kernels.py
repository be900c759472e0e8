"""Starts Triton's kernels (`_triton`), and says what they know and how they cut up their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.tensor_loops import runs_triton, take
from survscore.curves import SurvivalCurves
from survscore.engine import _triton, _triton_moments, _triton_squares
from survscore.engine.tensors import Tensor, on
from survscore.interpolation import Reading
from survscore.metrics import Brier, Log, Loss
from survscore.weighting.stretches import Stretches, TimeIndex

#: The kernels' form of a loss, bound to its exact class: a subclass may have changed the formula.
KERNELS: dict[type[Loss], int] = {Brier: _triton.BRIER.value, Log: _triton.LOG.value}
MOST_COLUMNS = 2048  # that a program of those which need whole rows holds at once
COLUMNS_PER_TILE = 256  # at most, where it need not
LANES_PER_WARP = 32
ROWS_PER_COUNT = 1024
ROWS_PER_TABLE = 1 << 13  # that a program counts
GROUPS_PER_PROGRAM = 256
COLUMNS_PER_COUNT = 256
COPIES = 32  # of the table in which weights are added up by where stretches end


@dataclass(frozen=True)
class Shape:
    """How a kernel cuts up its work.

    Attributes
    ----------
    rows : int
        That a program reads at once.
    rows_per_program : int
        How far it walks down.
    warps : int
        Of 32 threads each, that share a row of up to 256 columns.
    """

    rows: int
    rows_per_program: int
    warps: int = 1

    def of(self, n_rows: int, n_columns: int, *, whole: bool = False) -> Cut:
        """Return how a matrix of this size is cut, with each row `whole` or in several tiles."""
        n_tiles = 1 if whole else triton.cdiv(n_columns, COLUMNS_PER_TILE)
        width = triton.cdiv(n_columns, n_tiles)
        wide = width > COLUMNS_PER_TILE
        warps = self.warps * triton.next_power_of_2(triton.cdiv(width, COLUMNS_PER_TILE))
        per_program = min(self.rows_per_program, max(self.rows, triton.next_power_of_2(n_rows)))
        main, tail = _tiles(width, LANES_PER_WARP * warps)
        return Cut(1 if wide else self.rows, per_program, warps, main, tail, triton.cdiv(n_columns, main + tail))


@dataclass(frozen=True)
class Cut:
    """A `Shape` for a matrix: `n_tiles` of `main` + `tail` columns, which are powers of two (`tail` may be 0)."""

    rows: int
    rows_per_program: int
    warps: int
    main: int
    tail: int
    n_tiles: int

    def programs(self, n_rows: int) -> int:
        """Return how many programs walk down so many rows."""
        n: int = triton.cdiv(n_rows, self.rows_per_program)
        return n


def _tiles(n_columns: int, lanes: int) -> tuple[int, int]:
    """Return two powers of two, the second perhaps 0, that hold the columns with few to spare."""
    units = triton.cdiv(n_columns, lanes)
    main = triton.next_power_of_2(units)
    if main > units:
        half = main // 2
        tail = triton.next_power_of_2(units - half)
        if tail < half:
            return half * lanes, tail * lanes
    return main * lanes, 0


@dataclass
class Shapes:
    """The shapes in use; `benchmarks/gpu_scores.py --tune` tries others."""

    sums: Shape = Shape(2, 1024)
    sums_and_squares: Shape = Shape(1, 2048)
    squares: Shape = Shape(1, 512)
    runs: Shape = Shape(1, 512)


shapes = Shapes()


def know(losses: Sequence[Loss], stretches: Stretches, curves: Sequence[SurvivalCurves], index: TimeIndex) -> bool:
    """Whether the kernels can do these: built-in losses, weights common to all in the first stretch, linear reading."""
    readings = [index.reading(one) for one in curves]
    return (
        all(type(loss) in KERNELS for loss in losses)
        and stretches.first_weight is not None
        and stretches.population is None
        and all(runs_triton(one.probabilities) for one in curves)
        and not any(one.geometric and one.weight.any() for one in readings)
    )


#: How grids are read, on their device: asked for by every loss, weighting and pass of an evaluation.
_READINGS: WeakKeyDictionary[Reading, tuple[Tensor, Tensor]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Predicted:
    """One model's predictions as kernels take them: a matrix and its reading, or losses that are the same for all."""

    matrix: Tensor
    lower: Tensor
    mix: Tensor
    direct: bool
    first_column: int
    losses: Tensor | None = None

    @classmethod
    def of(cls, curves: SurvivalCurves, index: TimeIndex) -> Predicted:
        """Take curves on a device."""
        matrix: Any = curves.probabilities
        reading = index.reading(curves)
        if reading not in _READINGS:
            _READINGS[reading] = (
                on(matrix.device, reading.lower.astype(np.int32)), on(matrix.device, reading.weight)
            )  # fmt: skip
        return cls(matrix, *_READINGS[reading], reading.direct, int(reading.lower[0]))

    def constant(self, event_free: NDArray[np.float64], event: NDArray[np.float64]) -> Predicted:
        """Return a prediction that is the same for everybody, by its losses; this one lends its matrix, unread."""
        return replace(self, losses=on(self.matrix.device, np.array([event_free, event])))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Matrix, its width, and how it is read."""
        return (self.matrix, self.matrix.shape[1], self.lower, self.mix)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Where the stretches of some rows end, and the weights of the second, as kernels take them."""

    first: Tensor
    last: Tensor
    weight: Tensor
    all_last: bool
    one: bool

    @classmethod
    def of(cls, stretches: Stretches, rows: slice | Tensor = slice(None)) -> Vectors:
        """Take some rows: a range, or places in their order."""
        first, last, weight = (on_rows(vector, rows) for vector in
                               (stretches.first_stop, stretches.last_stop, stretches.last_weight))  # fmt: skip
        return cls(first, last, weight, *(_arrays.is_repeated(vector) for vector in (last, weight)))

    @property
    def arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """First and last stop, and weight."""
        return (self.first, self.last, self.weight)


def on_rows(vector: Any, rows: slice | Tensor) -> Tensor:
    """Return some rows of a vector; what is the same for all has its stride however many there are."""
    if not isinstance(rows, slice):
        taken: Tensor = vector[:1].expand(len(rows)) if _arrays.is_repeated(vector) else take(vector, rows)
        return taken
    cut: Tensor = vector[rows]
    return cut if _arrays.is_repeated(vector) or cut.is_contiguous() else cut.contiguous()


def first_moments(
    predicted: Predicted,
    loss: Loss,
    stretches: Sequence[Stretches],
    rows: slice,
    n_columns: int,
    centre: Tensor | None = None,
) -> Tensor:
    """Return the sums of `_triton.first_moments` under one weighting or two, (weightings, 2 stretches, columns).

    With a number of each column that is taken off, `centre`, those of `_triton_squares`: (weightings, 5, columns).
    """
    n, device = rows.stop - rows.start, predicted.matrix.device
    one, other = stretches[0], stretches[-1]
    label: Any = one.label
    a, b = Vectors.of(one, rows), Vectors.of(other, rows)
    cut = (shapes.sums if centre is None else shapes.sums_and_squares).of(n, n_columns)
    n_programs = cut.programs(n)
    shape = (n_programs, len(stretches), 2 if centre is None else 5, n_columns)
    out = torch.empty(shape, dtype=torch.float64, device=device)
    given = (*predicted.arguments, epsilon_of(loss, device), n, n_columns, cut.rows_per_program, cut.n_tiles,
             label[rows], *a.arguments, *b.arguments)  # fmt: skip
    known = {
        "DIRECT": predicted.direct, "LOSS": KERNELS[type(loss)], "TWO": len(stretches) == 2,
        "SAME_FIRST": one.first_stop is other.first_stop, "ALL_LAST_A": a.all_last, "ONE_A": a.one,
        "ALL_LAST_B": b.all_last, "ONE_B": b.one, "MAIN": cut.main, "TAIL": cut.tail, "num_warps": cut.warps,
    }  # fmt: skip
    grid = (n_programs * cut.n_tiles,)
    with on_device(device):
        if centre is None:
            _triton.first_moments[grid](*given, out, ROWS=cut.rows, **known)
        else:
            _triton_squares.sums_and_squares[grid](*given, centre, out, **known)
    return out.sum(dim=0)


@cache
def _of_tables(device: Any) -> Tensor:
    """Return how what was counted by the ends of stretches gives the counts of `count_stretches`, (6, 5)."""
    signs = [[-1, 0, 0, 0, 0], *[[0, 1, 0, -1, 0], [0, 0, 1, 0, -1]] * 2, [0, 1, 1, -1, -1]]
    return torch.tensor(signs, dtype=torch.float64, device=device)


def count_stretches(stretches: Stretches, rows: slice, n_columns: int, n_first: Tensor | None = None) -> Tensor:
    """Return sums over individuals that need no predictions, (6, columns); each is visited once, not at every time.

    How many are in their first stretch (given where it is known from another weighting); in the second, the weights of
    those event-free and with event, how many these are, and squared weights.
    """
    vectors, label = Vectors.of(stretches, rows), on_rows(stretches.label, rows)
    n, device = rows.stop - rows.start, label.device
    if not vectors.one:
        n_first = still_counted(vectors.first, n_columns) if n_first is None else n_first
        return torch.cat((n_first[None], _add_weights(vectors, label, n, n_columns)))
    bins = triton.next_power_of_2(n_columns + 1)
    tables = torch.empty((triton.cdiv(n, ROWS_PER_TABLE), 5, bins), dtype=torch.int32, device=device)
    with on_device(device):
        _triton.count_stretches[(len(tables),)](
            label, vectors.first, vectors.last, n, ROWS_PER_TABLE, tables,
            ALL_LAST=vectors.all_last, ROWS=ROWS_PER_COUNT, BINS=bins, num_warps=4,
        )  # fmt: skip
    by_then = tables.sum(dim=0)[:, :n_columns].cumsum(dim=1).double()  # whole numbers, of which nothing is lost
    counts = _of_tables(device) @ by_then
    counts[0] += n
    return counts


def _add_weights(vectors: Vectors, label: Tensor, n: int, n_columns: int) -> Tensor:
    """Return sums over the second stretch: weights by status, how many these are, and squared weights.

    Added up by where both stretches end, so that nothing is taken off again and no digits are lost.
    """
    side, device = n_columns + 1, label.device
    copies = COPIES if n > ROWS_PER_COUNT * COPIES else 1
    out = torch.zeros((copies, 5, side * side), dtype=torch.float64, device=device)
    with on_device(device):
        _triton.add_weights[(triton.cdiv(n, ROWS_PER_COUNT),)](
            label, *vectors.arguments, n, n_columns, copies, out,
            ALL_LAST=vectors.all_last, ROWS=ROWS_PER_COUNT, num_warps=4,
        )  # fmt: skip
    stop = torch.arange(side, device=device)
    turned = out.sum(dim=0).reshape(5, side, side).cumsum(dim=1)[:, :n_columns]  # by then
    return torch.where(stop > stop[:n_columns, None], turned, 0.0).sum(dim=2)


def still_counted(stop: Tensor, n_times: int) -> Tensor:
    """Return how many individuals have a `stop` after each time."""
    n, bins = len(stop), triton.next_power_of_2(n_times + 1)
    tables = torch.empty((triton.cdiv(n, ROWS_PER_TABLE), bins), dtype=torch.int32, device=stop.device)
    with on_device(stop.device):
        _triton.count_values[(len(tables),)](
            stop, n, ROWS_PER_TABLE, tables, SIZE=ROWS_PER_COUNT, BINS=bins, num_warps=4
        )
    return n - tables.sum(dim=0)[:n_times].cumsum(dim=0).double()


@dataclass(frozen=True, eq=False)
class Deviating:
    """What turns losses into deviations, as kernels take it: by column, on the device.

    The weight of the first stretch, what sums are multiplied by, and what is taken off.
    """

    loss: Loss
    stretches: Stretches
    early: Tensor
    scale: Tensor
    centres: Sequence[Tensor]  # of each model, (columns,)


@dataclass(frozen=True, eq=False)
class NullPart:
    """What estimating the null model adds: by column `slope` and `common`, by row when it has the event, and `own`."""

    slope: Tensor
    common: Tensor
    before: Tensor
    own: Tensor


@dataclass(frozen=True, eq=False)
class MeansOverTime:
    """What is asked of everybody's means over time.

    Attributes
    ----------
    weights : Tensor of shape (averages, columns)
        What deviations are multiplied by.
    stored : int
        From which of them on everybody's means are returned.
    null : tuple of Tensor
        What estimating the null model adds to each, by when an individual has the event: as long as it has not, and
        afterwards as a multiple of its own; (averages, columns + 1).
    """

    weights: Tensor
    stored: int
    null: tuple[Tensor, Tensor] | None


def second_moments(
    deviating: Deviating,
    models: tuple[int, int],
    predicted: tuple[Predicted, Predicted],
    over_time: MeansOverTime,
    null: NullPart | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the squares of two models' deviations and of their difference, (3, columns).

    Also those of means over time, (3, averages), and everybody's, whole and of the second stretch: (models, averages,
    rows) each.
    """
    device, n_columns = deviating.scale.device, deviating.scale.shape[0]
    vectors, label = Vectors.of(deviating.stretches), on_rows(deviating.stretches.label, slice(None))
    n, scale, n_averages = len(label), deviating.scale, len(over_time.weights)
    cut = shapes.squares.of(n, n_columns, whole=True)
    a, b = predicted
    n_programs, squared = cut.programs(n), triton.next_power_of_2(max(n_averages, 1))
    out = torch.zeros((n_programs, 3, n_columns), dtype=torch.float64, device=device)
    of_means = torch.zeros((n_programs, 3, squared), dtype=torch.float64, device=device)
    stored = (2, n_averages - over_time.stored, n)
    whole, late = (torch.empty(stored, dtype=torch.float64, device=device) for _ in range(2))
    weights = over_time.weights * scale if n_averages else scale
    extra: tuple[Tensor, ...] = (scale, scale, label, scale, scale, scale)
    if null is not None and over_time.null is not None:
        slope = torch.where(scale > 0, null.slope / scale, 0.0)
        extra = (slope, null.common, null.before, null.own, *over_time.null)
    with on_device(device):
        _triton_moments.second_moments[(n_programs,)](
            *a.arguments, *b.arguments, scale if b.losses is None else b.losses, epsilon_of(deviating.loss, device),
            label, *vectors.arguments, deviating.early, deviating.centres[models[0]], deviating.centres[models[1]],
            weights, whole, late, *extra, n, n_columns, cut.rows_per_program, out, of_means,
            ALL_LAST=vectors.all_last, ONE=vectors.one, DIRECT_A=a.direct, DIRECT_B=b.direct,
            CONSTANT=b.losses is not None, NULL=null is not None, AVERAGES=n_averages, STORED=over_time.stored,
            SQUARED=squared, LOSS=KERNELS[type(deviating.loss)], ROWS=cut.rows, MAIN=cut.main, TAIL=cut.tail,
            LANES=LANES_PER_WARP * cut.warps, num_warps=cut.warps,
        )  # fmt: skip
    return out.sum(dim=0) * scale.square(), of_means.sum(dim=0)[:, :n_averages], whole, late


@dataclass(frozen=True, eq=False)
class Ordered:
    """Individuals from the latest time to the earliest, in runs of `size`.

    Attributes
    ----------
    order : Tensor
        Their rows.
    label : Tensor, vectors : Vectors
        Final status, where stretches end, and weights, in this order: a kernel waits for no more than predictions.
    steps : Tensor
        The running sum of the steps of G up to each individual's time, and 0 after the last.
    """

    order: Tensor
    label: Tensor
    vectors: Vectors
    steps: Tensor
    size: int


def add_runs(
    deviating: Deviating, models: tuple[int, int], predicted: tuple[Predicted, Predicted], ordered: Ordered
) -> Tensor:
    """Return the sums over runs of `_triton_moments.add_runs`, (3 or 7, columns, runs)."""
    n_columns, device = deviating.scale.shape[0], deviating.scale.device
    order, vectors, size = ordered.order, ordered.vectors, ordered.size
    cut = shapes.runs.of(size, n_columns)
    a, b = predicted
    two = models[0] != models[1]
    n_runs = triton.cdiv(len(order), size)
    out = torch.zeros((n_runs, 7 if two else 3, n_columns), dtype=torch.float64, device=device)
    if n_runs:
        with on_device(device):
            _triton_moments.add_runs[(n_runs * cut.n_tiles,)](
                *a.arguments, *b.arguments, deviating.scale if b.losses is None else b.losses,
                epsilon_of(deviating.loss, device), ordered.label, *vectors.arguments, deviating.centres[models[0]],
                deviating.centres[models[1]], order, ordered.steps, len(order), n_columns, size, cut.n_tiles, out,
                ALL_LAST=vectors.all_last, ONE=vectors.one, DIRECT_A=a.direct, DIRECT_B=b.direct, TWO=two,
                CONSTANT=b.losses is not None, LOSS=KERNELS[type(deviating.loss)], MAIN=cut.main, TAIL=cut.tail,
                num_warps=cut.warps,
            )  # fmt: skip
    scale = deviating.scale
    powers = torch.stack([scale, scale, scale.square()] + [scale, scale, scale.square(), scale.square()] * two)
    return out.permute(1, 2, 0).contiguous() * powers[:, :, None]


def group_moments(
    deviating: Deviating,
    models: tuple[int, int],
    predicted: tuple[Predicted, Predicted],
    averages: Tensor,
    order: Tensor,
    starts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the squares of groups' sums of deviations, (3, columns), and of their means over time, (3, averages)."""
    scale, n_averages, n_groups = deviating.scale, len(averages), len(starts) - 1
    n_columns, device = len(scale), scale.device
    vectors, label = Vectors.of(deviating.stretches), on_rows(deviating.stretches.label, slice(None))
    cut = shapes.squares.of(n_groups, n_columns, whole=True)
    a, b = predicted
    n_programs, squared = triton.cdiv(n_groups, GROUPS_PER_PROGRAM), triton.next_power_of_2(max(n_averages, 1))
    out = torch.zeros((n_programs, 3, n_columns), dtype=torch.float64, device=device)
    of_means = torch.zeros((n_programs, 3, squared), dtype=torch.float64, device=device)
    with on_device(device):
        _triton_moments.group_moments[(n_programs,)](
            *a.arguments, *b.arguments, scale if b.losses is None else b.losses, epsilon_of(deviating.loss, device),
            label, *vectors.arguments, deviating.early, deviating.centres[models[0]], deviating.centres[models[1]],
            averages * scale if n_averages else scale, order, starts, n_groups, n_columns, GROUPS_PER_PROGRAM, out,
            of_means, ALL_LAST=vectors.all_last, ONE=vectors.one, DIRECT_A=a.direct, DIRECT_B=b.direct,
            TWO=models[0] != models[1], CONSTANT=b.losses is not None, AVERAGES=n_averages, SQUARED=squared,
            LOSS=KERNELS[type(deviating.loss)], MAIN=cut.main, TAIL=cut.tail, LANES=LANES_PER_WARP * cut.warps,
            num_warps=cut.warps,
        )  # fmt: skip
    return out.sum(dim=0) * scale.square(), of_means.sum(dim=0)[:, :n_averages]


def group_sizes(stop: Tensor, order: Tensor, starts: Tensor, n_times: int) -> tuple[Tensor, Tensor]:
    """Return sums of powers of the sizes of groups, 0 to 5, (6, times), and the largest; see `units.PowerSums`."""
    n_groups, n_tiles = len(starts) - 1, triton.cdiv(n_times, COLUMNS_PER_COUNT)
    n_programs = triton.cdiv(n_groups, GROUPS_PER_PROGRAM)
    out = torch.zeros((n_programs, 7, n_times), dtype=torch.float64, device=stop.device)
    with on_device(stop.device):
        _triton.group_sizes[(n_programs * n_tiles,)](
            stop, order, starts, n_groups, n_times, GROUPS_PER_PROGRAM, n_tiles, out, COLUMNS=COLUMNS_PER_COUNT,
            num_warps=1,
        )  # fmt: skip
    return out[:, :6].sum(dim=0), out[:, 6].amax(dim=0)


@lru_cache(maxsize=8)
def _clip(epsilon: float, device: Any) -> Tensor:
    return torch.full((), epsilon, dtype=torch.float64, device=device)


def epsilon_of(loss: Loss, device: Any) -> Tensor:
    """Return where predictions are clipped, as a tensor: kernels take plain numbers as float32."""
    return _clip(loss.epsilon, device)


def on_device(device: Any) -> Any:
    """Return the context in which kernels start on a device."""
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()

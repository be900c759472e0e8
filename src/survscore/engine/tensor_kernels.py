"""Starts Triton's kernels (`_triton`), and says what they know and how they cut up their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from survscore import _arrays
from survscore._tensor_loops import runs_triton
from survscore.curves import SurvivalCurves
from survscore.engine import _triton
from survscore.engine.tensors import Tensor, on
from survscore.metrics import Brier, Log, Loss
from survscore.stretches import Stretches, TimeIndex

#: The kernels' form of a loss, bound to its exact class: a subclass may have changed the formula.
KERNELS: dict[type[Loss], int] = {Brier: _triton.BRIER.value, Log: _triton.LOG.value}
MOST_COLUMNS = 2048  # that a program of those which need whole rows holds at once
ROWS_PER_COUNT = 1024
COPIES = 16  # of the table in which individuals are counted by where their stretches end


@dataclass(frozen=True)
class Shape:
    """How a kernel cuts up its work.

    Attributes
    ----------
    rows, columns : int
        Of the tile that a program holds at once, powers of two; `columns` matters where a program has not whole rows.
    rows_per_program : int
        How far it walks down.
    warps : int
        Of 32 threads each, that share a tile.
    double : bool
        Whether losses are computed in float64; sums always are.
    """

    rows: int
    columns: int
    rows_per_program: int
    warps: int
    double: bool = True

    @property
    def kind(self) -> Any:
        """The type in which losses are computed."""
        return tl.float64 if self.double else tl.float32

    def of(self, n_rows: int, n_columns: int) -> Shape:
        """Return the same for a matrix of this size: programs no longer than that, and whole rows if no others."""
        least = max(16, triton.next_power_of_2(n_columns))
        rows = min(self.rows_per_program, max(self.rows, triton.next_power_of_2(n_rows)))
        return replace(self, columns=min(self.columns or least, least), rows_per_program=rows)


@dataclass
class Shapes:
    """The shapes in use; `benchmarks/gpu_scores.py --tune` tries others."""

    sums: Shape = Shape(4, 64, 2048, 1)
    squares: Shape = Shape(1, 0, 1024, 1)
    runs: Shape = Shape(1, 0, 1024, 2)


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


@dataclass(frozen=True, eq=False)
class Predicted:
    """One model's predictions as kernels take them: a matrix and its reading, or losses that are the same for all."""

    matrix: Tensor
    lower: Tensor
    mix: Tensor
    direct: bool
    losses: Tensor | None = None

    @classmethod
    def of(cls, curves: SurvivalCurves, index: TimeIndex) -> Predicted:
        """Take curves on a device."""
        matrix: Any = curves.probabilities
        reading = index.reading(curves)
        lower, mix = on(matrix.device, reading.lower.astype(np.int32)), on(matrix.device, reading.weight)
        return cls(matrix, lower, mix, reading.direct)

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
    def of(cls, stretches: Stretches, rows: slice = slice(None)) -> Vectors:
        """Take some rows."""
        first, last, weight = (on_rows(vector, rows) for vector in
                               (stretches.first_stop, stretches.last_stop, stretches.last_weight))  # fmt: skip
        return cls(first, last, weight, *(_arrays.is_repeated(vector) for vector in (last, weight)))

    @property
    def arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """First and last stop, and weight."""
        return (self.first, self.last, self.weight)


def on_rows(vector: Any, rows: slice) -> Tensor:
    """Return some rows of a vector; what is the same for all has its stride however many there are."""
    cut: Tensor = vector[rows]
    return cut if _arrays.is_repeated(vector) or cut.is_contiguous() else cut.contiguous()


def first_moments(
    predicted: Predicted, loss: Loss, stretches: Sequence[Stretches], rows: slice, n_columns: int
) -> Tensor:
    """Return the sums of `_triton.first_moments` under one weighting or two, (weightings, 2 stretches, columns)."""
    n, device = rows.stop - rows.start, predicted.matrix.device
    shape = shapes.sums.of(n, n_columns)
    one, other = stretches[0], stretches[-1]
    label: Any = one.label
    n_programs = triton.cdiv(n, shape.rows_per_program)
    out = torch.zeros((n_programs, 4, n_columns), dtype=torch.float64, device=device)
    a, b = Vectors.of(one, rows), Vectors.of(other, rows)
    with _on(device):
        _triton.first_moments[(n_programs * triton.cdiv(n_columns, shape.columns),)](
            *predicted.arguments, _epsilon(loss, device), n, n_columns, shape.rows_per_program, label[rows],
            *a.arguments, *b.arguments, out,
            DIRECT=predicted.direct, LOSS=KERNELS[type(loss)], TWO=len(stretches) == 2,
            SAME_FIRST=one.first_stop is other.first_stop, ALL_LAST_A=a.all_last, ONE_A=a.one, ALL_LAST_B=b.all_last,
            ONE_B=b.one, KIND=shape.kind, ROWS=shape.rows, COLUMNS=shape.columns, num_warps=shape.warps,
        )  # fmt: skip
    return out.sum(dim=0).reshape(2, 2, n_columns)[: len(stretches)]


@dataclass(frozen=True, eq=False)
class StretchSums:
    """Sums over individuals that need no predictions, (columns,) each.

    How many are in their first stretch; in the second, the weights of those event-free and with event, squared weights,
    and how many have the event.
    """

    n_first: Tensor
    free: Tensor
    event: Tensor
    squares: Tensor
    n_events: Tensor


def count_stretches(stretches: Stretches, rows: slice, n_columns: int) -> StretchSums:
    """Return the sums of weights: every individual is visited once, not at every time.

    Added up by where both stretches end, so that nothing is taken off again and no digits are lost.
    """
    vectors, label = Vectors.of(stretches, rows), on_rows(stretches.label, rows)
    n, side, device = rows.stop - rows.start, n_columns + 1, label.device
    copies = COPIES if n > ROWS_PER_COUNT * COPIES else 1
    out = torch.zeros((copies, 5, side * side), dtype=torch.float64, device=device)
    with _on(device):
        _triton.count_stretches[(triton.cdiv(n, ROWS_PER_COUNT),)](
            label, *vectors.arguments, n, n_columns, copies, out,
            ALL_LAST=vectors.all_last, ONE=vectors.one, ROWS=ROWS_PER_COUNT, num_warps=4,
        )  # fmt: skip
    everybody, events, *weights = out.sum(dim=0).reshape(5, side, side)  # by first and last stop
    stop = torch.arange(side, device=device)

    def in_second(table: Tensor) -> Tensor:
        """Sum at every time over those who turned by then, and have not stopped."""
        turned = table.cumsum(dim=0)[:n_columns]
        return torch.where(stop > stop[:n_columns, None], turned, 0.0).sum(dim=1)

    n_second, n_events = in_second(everybody), in_second(events)
    of_first = everybody.sum(dim=1)
    n_first = of_first.flip(0).cumsum(dim=0).flip(0)[1:]
    if vectors.one:
        return StretchSums(n_first, n_second - n_events, n_events, n_second, n_events)
    free, event, squares = map(in_second, weights)
    return StretchSums(n_first, free, event, squares, n_events)


@dataclass(frozen=True, eq=False)
class Deviating:
    """What turns losses into deviations, as kernels take it: by column, on the device."""

    loss: Loss
    stretches: Stretches
    early: Tensor
    scale: Tensor
    centres: Tensor  # (models, columns)


@dataclass(frozen=True, eq=False)
class NullPart:
    """What estimating the null model adds: by column `slope` and `common`, by row when it has the event, and `own`."""

    slope: Tensor
    common: Tensor
    before: Tensor
    own: Tensor


def second_moments(
    deviating: Deviating,
    models: tuple[int, int],
    predicted: tuple[Predicted, Predicted],
    averages: Tensor,
    rows: slice,
    null: NullPart | None,
    *,
    late: bool,
) -> tuple[Tensor, Tensor]:
    """Return the squares of two models' deviations (or of one, named twice) and of their difference, (3, columns).

    Also everybody's averages over time, whole and, if asked for, of the second stretch: (2 models, averages, 2, rows).
    """
    n, n_columns, device = rows.stop - rows.start, deviating.scale.shape[0], deviating.scale.device
    shape = shapes.squares.of(n, n_columns)
    vectors, label = Vectors.of(deviating.stretches), on_rows(deviating.stretches.label, slice(None))
    a, b = predicted
    two = models[0] != models[1]
    n_programs = triton.cdiv(n, shape.rows_per_program)
    out = torch.zeros((n_programs, 3, n_columns), dtype=torch.float64, device=device)
    means = torch.empty((1 + two, len(averages), 2, n), dtype=torch.float64, device=device)
    unused = deviating.scale
    extra = (unused, unused, label, unused) if null is None else (null.slope, null.common, null.before, null.own)
    with _on(device):
        _triton.second_moments[(n_programs,)](
            *a.arguments, *b.arguments, unused if b.losses is None else b.losses, _epsilon(deviating.loss, device),
            label, *vectors.arguments, deviating.early, deviating.scale, deviating.centres[models[0]],
            deviating.centres[models[1]], averages, len(averages), means, n, *extra, rows.start, n, n_columns,
            shape.rows_per_program, out, ALL_LAST=vectors.all_last, ONE=vectors.one,
            DIRECT_A=a.direct, DIRECT_B=b.direct, TWO=two, CONSTANT=b.losses is not None, NULL=null is not None,
            LATE=late, LOSS=KERNELS[type(deviating.loss)], KIND=shape.kind, ROWS=shape.rows, COLUMNS=shape.columns,
            num_warps=shape.warps,
        )  # fmt: skip
    return out.sum(dim=0), means


def add_runs(
    deviating: Deviating,
    models: tuple[int, int],
    predicted: tuple[Predicted, Predicted],
    order: Tensor,
    steps: Tensor,
    size: int,
) -> Tensor:
    """Return the sums over runs of so many individuals of `_triton.add_runs`, (runs, 7, columns)."""
    n_columns, device = deviating.scale.shape[0], deviating.scale.device
    shape = shapes.runs.of(len(order), n_columns)
    vectors, label = Vectors.of(deviating.stretches), on_rows(deviating.stretches.label, slice(None))
    a, b = predicted
    n_runs = triton.cdiv(len(order), size)
    out = torch.zeros((n_runs, 7, n_columns), dtype=torch.float64, device=device)
    if n_runs == 0:
        return out
    with _on(device):
        _triton.add_runs[(n_runs,)](
            *a.arguments, *b.arguments, deviating.scale if b.losses is None else b.losses,
            _epsilon(deviating.loss, device), label, *vectors.arguments, deviating.scale,
            deviating.centres[models[0]], deviating.centres[models[1]], order, steps, len(order),
            size, n_columns, out, ALL_LAST=vectors.all_last, ONE=vectors.one,
            DIRECT_A=a.direct, DIRECT_B=b.direct, TWO=models[0] != models[1], CONSTANT=b.losses is not None,
            LOSS=KERNELS[type(deviating.loss)], KIND=shape.kind, ROWS=shape.rows, COLUMNS=shape.columns,
            num_warps=shape.warps,
        )  # fmt: skip
    return out


def _epsilon(loss: Loss, device: Any) -> Tensor:
    """Return where predictions are clipped, as a tensor: kernels take plain numbers as float32."""
    return torch.full((), loss.epsilon, dtype=torch.float64, device=device)


def _on(device: Any) -> Any:
    """Return the context in which kernels start on a device."""
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()

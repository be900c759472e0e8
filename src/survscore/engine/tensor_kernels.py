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
KERNELS: dict[type[Loss], Any] = {Brier: _triton.BRIER, Log: _triton.LOG}
MOST_COLUMNS = 2048  # that a program of those which need whole rows holds at once
N_SUMS = 7  # of `first_moments`, for each weighting


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

    sums: Shape = Shape(8, 64, 4096, 4)
    squares: Shape = Shape(4, 0, 2048, 4)
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


def _vectors(stretches: Stretches, rows: slice) -> tuple[list[Tensor], list[int]]:
    """Return first and last stop and weight of some rows, and their strides."""
    vectors: list[Any] = [stretches.first_stop, stretches.last_stop, stretches.last_weight]
    cut = [vector[rows] for vector in vectors]
    return cut, [0 if _arrays.is_repeated(vector) else 1 for vector in vectors]


def first_moments(
    predicted: Predicted, loss: Loss, stretches: Sequence[Stretches], rows: slice, n_columns: int, *, weights: bool
) -> Tensor:
    """Return the sums of `_triton.first_moments` under one weighting or two, (weightings, 7, columns)."""
    n, device = rows.stop - rows.start, predicted.matrix.device
    shape = shapes.sums.of(n, n_columns)
    one, other = stretches[0], stretches[-1]
    label: Any = one.label
    n_programs = triton.cdiv(n, shape.rows_per_program)
    out = torch.zeros((n_programs, 2 * N_SUMS, n_columns), dtype=torch.float64, device=device)
    (vectors_a, strides_a), (vectors_b, strides_b) = _vectors(one, rows), _vectors(other, rows)
    with _on(device):
        _triton.first_moments[(n_programs * triton.cdiv(n_columns, shape.columns),)](
            *predicted.arguments, _epsilon(loss, device), n, n_columns, shape.rows_per_program, label[rows],
            *vectors_a, *strides_a, *vectors_b, *strides_b, out,
            DIRECT=predicted.direct, LOSS=KERNELS[type(loss)], TWO=len(stretches) == 2,
            SAME_FIRST=one.first_stop is other.first_stop, WEIGHTS=weights, KIND=shape.kind, ROWS=shape.rows,
            COLUMNS=shape.columns, num_warps=shape.warps,
        )  # fmt: skip
    return out.sum(dim=0).reshape(2, N_SUMS, n_columns)[: len(stretches)]


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
) -> tuple[Tensor, Tensor]:
    """Return the squares of two models' deviations (or of one, named twice) and of their difference, (3, columns).

    Also everybody's averages over time, whole and of the second stretch: (2 models, averages, 2, rows).
    """
    n, n_columns, device = rows.stop - rows.start, deviating.scale.shape[0], deviating.scale.device
    shape = shapes.squares.of(n, n_columns)
    vectors, strides = _vectors(deviating.stretches, slice(None))
    label: Any = deviating.stretches.label
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
            label, *vectors, *strides, deviating.early, deviating.scale, deviating.centres[models[0]],
            deviating.centres[models[1]], averages, len(averages), means, n, *extra, rows.start, n, n_columns,
            shape.rows_per_program, out,
            DIRECT_A=a.direct, DIRECT_B=b.direct, TWO=two, CONSTANT=b.losses is not None, NULL=null is not None,
            LOSS=KERNELS[type(deviating.loss)], KIND=shape.kind, ROWS=shape.rows, COLUMNS=shape.columns,
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
    vectors, strides = _vectors(deviating.stretches, slice(None))
    label: Any = deviating.stretches.label
    a, b = predicted
    n_runs = triton.cdiv(len(order), size)
    out = torch.zeros((n_runs, 7, n_columns), dtype=torch.float64, device=device)
    if n_runs == 0:
        return out
    with _on(device):
        _triton.add_runs[(n_runs,)](
            *a.arguments, *b.arguments, deviating.scale if b.losses is None else b.losses,
            _epsilon(deviating.loss, device), label, *vectors, *strides, deviating.scale,
            deviating.centres[models[0]], deviating.centres[models[1]], order, steps, len(order),
            size, n_columns, out,
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

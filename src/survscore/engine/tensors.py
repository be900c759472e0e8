"""The torch backend: sums over tensors on the device that holds them.

Vectors over individuals are tensors there, vectors over evaluation times NumPy arrays in the processor's memory. The
predictions are visited in chunks of rows, and what is added up stays on the device until the end: no chunk waits for
the processor, and the matrix is never copied. Kernels take over where there are some (`tensor_sums`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.tensor_loops import runs_triton
from survscore._validation import DeviceMemoryError, InputError
from survscore.engine.blocks import Block, Models
from survscore.engine.sums import Sums
from survscore.metrics import Brier, Log, Loss
from survscore.weighting.stretches import Stretches, TimeIndex

Tensor = torch.Tensor
#: Sums over individuals, and how many are in either stretch under some weightings.
Finished = tuple[Sums, dict[int, NDArray[np.float64]]]

#: Cells of a chunk: few enough on a processor to stay in its cache; on a GPU enough to fill it, in little memory.
CELLS_PER_CHUNK = {"cpu": 1 << 17, "cuda": 1 << 22}


def on(device: Any, values: Any) -> Tensor:
    """Return values, of a processor's array or a tensor, as a tensor on a device."""
    tensor: Tensor = _arrays.to_device(values, device)
    return tensor


def chunk_rows(n_columns: int, device: Any) -> int:
    """Return how many rows are visited at once."""
    return max(64, CELLS_PER_CHUNK[device.type] // max(n_columns, 1))


def blocks(models: Models, n_columns: int, device: Any) -> Iterator[Block]:
    """Yield all individuals, chunk by chunk; batches stay as they come."""
    if models.in_memory is None:
        for block in models.blocks(n_columns, compiled=False):
            yield Block(block.rows, [curves.to(device) for curves in block.curves])
        return
    size = chunk_rows(n_columns, device)
    for start in range(0, models.n, size):
        rows = slice(start, min(start + size, models.n))
        yield Block(rows, [curves[rows] for curves in models.in_memory])


@contextmanager
def memory_of(device: Any) -> Iterator[None]:
    """Turn the device's lack of memory into an error that says what to do."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        told = str(error).split(". ")[0]
        raise DeviceMemoryError(
            f"{device} has too little memory left for what scoring needs beside the predictions: {told}. Free other "
            "tensors, score fewer models or times in one call, predict in batches (CurveBatches), or score in the "
            "processor's memory (curves.numpy())"
        ) from error


def has_kernels(index: TimeIndex) -> bool:
    """Whether Triton's kernels can be had where the individuals are."""
    return runs_triton(index.outcomes.time)


def _brier(loss: Loss, survival: Tensor) -> tuple[Tensor, Tensor]:
    return (1.0 - survival).square(), survival.square()


def _log(loss: Loss, survival: Tensor) -> tuple[Tensor, Tensor]:
    clipped = survival.clamp(loss.epsilon, 1.0 - loss.epsilon)
    return -clipped.log(), -(1.0 - clipped).log()


#: The torch form of a loss, bound to its exact class: a subclass may have changed the formula.
FORMULAS: dict[type[Loss], Callable[[Loss, Tensor], tuple[Tensor, Tensor]]] = {Brier: _brier, Log: _log}


def losses_of(loss: Loss, survival: Tensor) -> tuple[Tensor, Tensor]:
    """Return what predictions cost those who are event-free, and those with event.

    A loss of a user's own gets NumPy arrays in the processor's memory, and tensors elsewhere.
    """
    formula = FORMULAS.get(type(loss))
    if formula is not None:
        return formula(loss, survival)
    given: Any = survival.numpy() if survival.device.type == "cpu" else survival
    try:
        return tuple(  # type: ignore[return-value]
            on(survival.device, method(given)).double() for method in (loss.of_event_free, loss.of_event)
        )
    except TypeError as error:
        raise InputError(
            f"metric {loss.name!r} does not take tensors on {survival.device} ({error}): write it with operators and "
            "torch's functions, or score in the processor's memory (curves.numpy())"
        ) from error


class DeviceSums:
    """`Sums` as they are added up on a device, side by side so that they come back in one go.

    Kernels leave what is the same for all individuals to the end: `counts` has what `tensor_kernels.count_stretches`
    found, (weightings, 6, times), and their `losses` of first stretches lack the weight.
    """

    def __init__(self, n_models: int, n_metrics: int, n_weightings: int, n_times: int, device: Any) -> None:
        zero = Sums.zero(n_models, n_metrics, n_weightings, n_times)
        self._shapes = [part.shape for part in vars(zero).values()] + [(n_weightings, 6, n_times)]
        self._all = torch.zeros(sum(map(math.prod, self._shapes)), dtype=torch.float64, device=device)
        self.losses, self.weights, self.squares, self.events, self.counts = self._parts(self._all)

    def _parts(self, values: Any) -> Iterator[Any]:
        sizes = [math.prod(shape) for shape in self._shapes]
        for start, size, shape in zip(itertools.accumulate(sizes, initial=0), sizes, self._shapes, strict=False):
            yield values[start : start + size].reshape(shape)

    def finish(self, by_kernel: Mapping[int, NDArray[np.float64]]) -> Callable[[], Finished]:
        """Return what waits for them in the processor's memory, and for how many are in either stretch.

        Takes the weights of the first stretch, where kernels were at work.
        """
        on_its_way = _arrays.on_its_way(self._all)
        return lambda: self._finish(on_its_way(), by_kernel)

    def _finish(self, values: NDArray[np.float64], by_kernel: Mapping[int, NDArray[np.float64]]) -> Finished:
        *parts, counts = self._parts(values)
        sums, in_either = Sums(*parts), {}
        with np.errstate(invalid="ignore"):  # where nothing is counted, a weight may be infinite
            for q, weight in by_kernel.items():
                n_first, free, event, n_free, n_events, squares = counts[q]
                early = sums.losses[0, :, :, q]
                sums.losses[0, :, :, q] = np.where(early != 0, weight * early, 0.0)
                first, first_squares = (np.where(n_first != 0, one * n_first, 0.0) for one in (weight, weight**2))
                sums.weights[:, q] = first, free, event
                sums.squares[q], sums.events[q] = first_squares + squares, n_events
                in_either[q] = n_first + n_free + n_events
        return sums, in_either


def update(
    block: Block,
    index: TimeIndex,
    losses: Sequence[Loss],
    stretches: Sequence[Stretches],
    places: Sequence[int],
    total: DeviceSums,
) -> None:
    """Add the sums over a chunk under the weightings at these places: as the formulas say, like `sums.update`."""
    times, m = index.times, index.times.size
    parts = [stretches[q].rows(block.rows) for q in places]
    event = event_cells(parts[0], index, block.rows, slice(0, m))
    cells: list[Any] = [part.cells(times) for part in parts]
    for a, curves in enumerate(block.curves if losses else []):
        survival = on(event.device, curves.at(times)).double()
        for k, loss in enumerate(losses):
            event_free, with_event = losses_of(loss, survival)
            values = torch.where(event, with_event, event_free)
            for q, pair in zip(places, cells, strict=True):
                for stretch, weight in enumerate(pair):
                    total.losses[stretch, a, k, q] += (weight * values).sum(dim=0)
    for q, (early, late) in zip(places, cells, strict=True):
        total.weights[0, q] += early.sum(dim=0)
        total.weights[1, q] += torch.where(event, 0.0, late).sum(dim=0)
        total.weights[2, q] += torch.where(event, late, 0.0).sum(dim=0)
        total.events[q] += (event & (late != 0)).sum(dim=0)
        total.squares[q] += early.square().sum(dim=0) + late.square().sum(dim=0)


def event_cells(part: Stretches, index: TimeIndex, rows: slice, columns: slice) -> Tensor:
    """Return at which of some times some individuals have had the event, (rows, times)."""
    event_from: Any = part.event_from(index.before_time[rows], index.times.size)
    column = torch.arange(columns.start, columns.stop, device=event_from.device)
    event: Tensor = column >= event_from[:, None]
    return event


def still_counted(stop: Any, n_times: int) -> NDArray[np.float64]:
    """Return how many individuals have a `stop` after each time."""
    if _arrays.is_repeated(stop):
        return np.full(n_times, float(len(stop)))
    ends = _arrays.to_host(torch.bincount(stop, minlength=n_times + 1))[: n_times + 1]
    return np.asarray(len(stop) - np.cumsum(ends)[:n_times], dtype=np.float64)

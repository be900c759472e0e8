"""What `_loops` does, for tensors: on the device that holds them, without a copy to the processor.

A table (a grid, a curve) is moved to the keys that look things up in it, unless these are few: evaluation times live in
the processor's memory, and only what was found for them comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from survscore._utils.arrays import beside, is_tensor, on_its_way, to_device, to_host

CELLS_PER_CHUNK = 1 << 24
FEW = 1024


@cache
def _triton() -> str:
    """Whether Triton's kernels can be had: compiled, interpreted on the processor (slow, for tests), or not at all."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return "none"
    return "interpreted" if os.environ.get("TRITON_INTERPRET") == "1" else "compiled"


def runs_triton(tensor: Any) -> bool:
    """Whether Triton's kernels work on a tensor where it is."""
    return _triton() == "interpreted" or (_triton() == "compiled" and bool(tensor.is_cuda))


def count_below(grid: Any, keys: Any, *, inclusive: bool) -> Any:
    """Return for each key how many values of a sorted grid are below it (at or below it, if `inclusive`)."""
    if not is_tensor(keys):
        return to_host(count_below(grid, to_device(keys, grid.device), inclusive=inclusive))
    return torch.searchsorted(beside(grid, keys), keys, right=inclusive, out_int32=True)


def step_values(grid: Any, values: Any, keys: Any, *, inclusive: bool) -> Any:
    """Read a step function that is 1 before the grid and ``values[k]`` from ``grid[k]`` on, at or just before keys."""
    if not is_tensor(keys):
        return to_host(step_values(grid, values, to_device(keys, grid.device), inclusive=inclusive))
    return after_steps(beside(values, keys), count_below(grid, keys, inclusive=inclusive))


def after_steps(values: Any, places: Any) -> Any:
    """Return the values after so many steps; 1 after none."""
    return take(torch.cat((values.new_ones(1), values)), places)


def take(values: Any, places: Any) -> Any:
    """Return the values at some places."""
    if runs_triton(values):
        from survscore._utils import tensor_kernels as _tensor_kernels

        return _tensor_kernels.take(values.contiguous(), places.contiguous())
    return values.index_select(0, places)


def curve_at(grid: Any, values: Any, times: Any) -> Callable[[], Any]:
    """Read a step function at a few times of the processor's memory; also how many of its steps come until then.

    Returns what waits for both, (2, times).
    """
    reached = count_below(grid, to_device(times, grid.device), inclusive=True)
    return on_its_way(torch.stack((after_steps(values, reached), reached.double())))


def has_bad_probabilities(matrix: Any, tolerance: float) -> bool:
    """Whether a value lies outside [0, 1], is NaN, or exceeds the one before it in its row by more than `tolerance`."""
    if runs_triton(matrix):
        from survscore._utils import tensor_kernels as _tensor_kernels

        return bool(_tensor_kernels.has_bad_probabilities(matrix, tolerance))
    bad = torch.zeros((), dtype=torch.bool, device=matrix.device)
    rows = max(1, CELLS_PER_CHUNK // max(matrix.shape[1], 1))
    for start in range(0, len(matrix), rows):
        block = matrix[start : start + rows]
        if block.dtype not in (torch.float32, torch.float64):  # a sum in half precision would round the tolerance away
            block = block.float()
        bad |= ~((block >= 0) & (block <= 1)).all()  # written so that NaN fails
        bad |= (block[:, 1:] > block[:, :-1] + tolerance).any()
    return bool(bad)


def exit_table(time: Any, leaves: Any, *, others_first: bool) -> tuple[Any, ...]:
    """Return the distinct times at which somebody leaves, how many, and out of how many; see `ProductLimit.of`.

    Also, of the individuals from the latest time to the earliest, which after a sort is cheap: their positions, and how
    many of these times come before their own; see `InOrder`.
    """
    n_left = on_its_way(leaves.sum()[None])  # before the device has much to do
    ordered, order = _sorted(time)
    left = take(leaves, order)
    so_far = left.cumsum(0, dtype=torch.int32)
    if runs_triton(ordered):  # as if no two had the same time, as long as that is not known
        from survscore._utils import tensor_kernels as _tensor_kernels

        distinct = on_its_way((ordered[1:] != ordered[:-1]).all()[None])
        found = _tensor_kernels.exits_in_order(ordered, order, left, so_far, int(n_left()[0]))
        if distinct()[0]:
            return found
        del found
    times, exits, at_risk, before = _of_ties(ordered, so_far, others_first=others_first)
    del ordered, so_far
    return times, exits, at_risk, order.to(torch.int32).flip(0), before.flip(0)


def back_in_place(values: Any, positions: Any, wanted: Any = None, *, otherwise: float = 0.0) -> Any:
    """Return values at their positions; `otherwise` at positions that are not wanted."""
    if runs_triton(values):
        from survscore._utils import tensor_kernels as _tensor_kernels

        return _tensor_kernels.back_in_place(values, positions, wanted, otherwise)
    placed = torch.full_like(values, otherwise)
    if wanted is not None:
        these = wanted[positions.long()]
        values, positions = values[these], positions[these]
    placed[positions.long()] = values
    return placed


def _sorted(time: Any) -> tuple[Any, Any]:
    """Return times in increasing order, and where they were."""
    # if half the digits are enough they sort in half the time; a few tell already if they are not
    few = to_host(time[:FEW])
    if bool((few.astype("f4") == few).all()) and bool((time.float() == time).all()):
        return tuple(time.float().sort())
    return tuple(time.sort())


def _of_ties(ordered: Any, so_far: Any, *, others_first: bool) -> tuple[Any, Any, Any, Any]:
    """Return the table of exits, and how many come before each time, where some may have the same time."""
    n = len(ordered)
    first = torch.cat((so_far.new_ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]))
    starts = first.nonzero()[:, 0].to(torch.int32)
    ends = torch.cat((starts[1:], starts.new_full((1,), n)))
    left_so_far = so_far.index_select(0, ends - 1)
    exits = torch.diff(left_so_far, prepend=left_so_far.new_zeros(1))
    del left_so_far
    at_risk = n - ends + exits if others_first else n - starts
    some = exits > 0
    kept = some.nonzero()[:, 0]
    times = ordered.index_select(0, starts[kept]).double()
    exits, at_risk = exits[kept], at_risk[kept]
    del starts, ends, kept
    before = some.cumsum(0, dtype=torch.int32) - some.to(torch.int32)
    return times, exits, at_risk, before.index_select(0, first.cumsum(0, dtype=torch.int32) - 1)


def survival(exits: Any, at_risk: Any) -> Any:
    """Return the product-limit curve from each of its times on."""
    if runs_triton(at_risk):
        from survscore._utils import tensor_kernels as _tensor_kernels

        return _tensor_kernels.of_exits(exits, at_risk, greenwood=False).cumprod_(0)
    return ((at_risk - exits).double() / at_risk).cumprod(0)


def greenwood(exits: Any, at_risk: Any) -> Any:
    """Return what each time adds to the variance of the curve's logarithm; a step to zero adds nothing."""
    if runs_triton(at_risk):
        from survscore._utils import tensor_kernels as _tensor_kernels

        return _tensor_kernels.of_exits(exits, at_risk, greenwood=True)
    rest = at_risk - exits
    steps = exits.double() / (at_risk.double() * rest)
    return torch.where(rest > 0, steps, 0.0)


def inverse(curve: Any, max_weight: float) -> Any:
    """Return 1/G, at most `max_weight`."""
    weights = curve.double().reciprocal()
    return weights if max_weight == float("inf") else weights.clamp_(max=max_weight)


def order_statistic(values: Any, place: int) -> float:
    """Return the value that so many are smaller than, or equal to."""
    return float(values.kthvalue(place + 1).values)


def rows_by_group(codes: Any, n_groups: int) -> tuple[Any, Any]:
    """Return the positions of individuals group by group, and where each group starts, and the last one ends."""
    ordered, order = codes.sort(stable=True)
    edges = torch.arange(n_groups + 1, dtype=ordered.dtype, device=codes.device)
    return order.to(torch.int32), torch.searchsorted(ordered, edges, out_int32=True)

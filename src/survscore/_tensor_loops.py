"""What `_loops` does, for tensors: on the device that holds them, without a copy to the processor.

A table (a grid, a curve) is moved to the keys that look things up in it, unless these are few: evaluation times live in
the processor's memory, and only what was found for them comes back.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch

from survscore._arrays import beside, is_tensor, to_device, to_host

CELLS_PER_CHUNK = 1 << 24


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
    return torch.cat((torch.ones(1, dtype=values.dtype, device=values.device), values))[places]


def has_bad_probabilities(matrix: Any, tolerance: float) -> bool:
    """Whether a value lies outside [0, 1], is NaN, or exceeds the one before it in its row by more than `tolerance`."""
    if runs_triton(matrix):
        from survscore import _tensor_kernels

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


def exit_table(time: Any, leaves: Any, *, others_first: bool) -> tuple[Any, Any, Any, Any]:
    """Return the distinct times at which somebody leaves, how many, and out of how many; see `ProductLimit.of`.

    Last, how many of these times come before each individual's own, in the order given: after a sort that is cheaper
    than a search.
    """
    n = len(time)
    narrow = time.float()
    exact = bool((narrow == time).all())  # then half the digits sort as well, in half the time
    ordered, order = (narrow if exact else time).sort()
    fresh = torch.ones(n, dtype=torch.bool, device=time.device)
    torch.ne(ordered[1:], ordered[:-1], out=fresh[1:])
    starts = fresh.nonzero()[:, 0].to(torch.int32)
    ends = torch.cat((starts[1:], starts.new_full((1,), n)))
    left_so_far = leaves[order].cumsum(0, dtype=torch.int32)[ends - 1]
    exits = torch.diff(left_so_far, prepend=left_so_far.new_zeros(1))
    at_risk = n - ends + exits if others_first else n - starts
    some = exits > 0
    before = some.cumsum(0, dtype=torch.int32) - some.to(torch.int32)
    places = torch.empty(n, dtype=torch.int32, device=time.device)
    places[order] = before[fresh.cumsum(0, dtype=torch.int32) - 1]
    return ordered[starts[some]].to(torch.float64), exits[some], at_risk[some], places


def survival(exits: Any, at_risk: Any) -> Any:
    """Return the product-limit curve from each of its times on."""
    return ((at_risk - exits).double() / at_risk).cumprod(0)


def greenwood(exits: Any, at_risk: Any) -> Any:
    """Return what each time adds to the variance of the curve's logarithm; a step to zero adds nothing."""
    rest = at_risk - exits
    steps = exits.double() / (at_risk.double() * rest)
    return torch.where(rest > 0, steps, 0.0)


def inverse(curve: Any, max_weight: float) -> Any:
    """Return 1/G, at most `max_weight`."""
    return curve.double().reciprocal().clamp(max=max_weight)


def order_statistic(values: Any, place: int) -> float:
    """Return the value that so many are smaller than, or equal to."""
    return float(values.kthvalue(place + 1).values)

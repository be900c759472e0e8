"""Checks of matrices on a device, in one pass over them, and what follows a sort: Triton's kernels.

Imported only where Triton is installed and a tensor is on a device.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from survscore._utils.arrays import is_repeated

ROWS_PER_PROGRAM = 16
COLUMNS_PER_TILE = 64
SORTED_PER_PROGRAM = 1024


@triton.jit
def _find_bad(matrix, n_rows, n_columns, tolerance, found, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Set `found` where a value lies outside [0, 1], is NaN, or exceeds the one before by more than the tolerance."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    allowed = tl.load(tolerance)
    bad = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
    for start in range(0, n_columns, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        cells = matrix + rows[:, None] * n_columns + columns[None, :]
        here = tl.load(cells, mask=inside, other=0.5).to(allowed.dtype)
        before = tl.load(cells - 1, mask=inside & (columns > 0)[None, :], other=1.0).to(allowed.dtype)
        fine = (here >= 0) & (here <= 1) & (here <= before + allowed)
        bad |= tl.where(inside & ~fine, 1, 0)
    tl.atomic_max(found, tl.max(tl.max(bad, axis=1), axis=0))


def has_bad_probabilities(matrix: torch.Tensor, tolerance: float) -> bool:
    """Whether a value lies outside [0, 1], is NaN, or exceeds the one before it in its row by more than `tolerance`."""
    n, m = matrix.shape
    computed = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    allowed = torch.tensor(tolerance, dtype=computed, device=matrix.device)
    found = torch.zeros((), dtype=torch.int32, device=matrix.device)
    grid = (triton.cdiv(n, ROWS_PER_PROGRAM),)
    _find_bad[grid](matrix, n, m, allowed, found, ROWS_PER_PROGRAM, COLUMNS_PER_TILE)
    return bool(found)


@triton.jit
def _list_exits(ordered, order, left, so_far, n, times, at_risk, positions, before, SIZE: tl.constexpr):
    """List the exits of sorted individuals, no two at the same time, and the individuals from the last to the first."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    leaves = tl.load(left + at, mask=inside, other=0)
    number = tl.load(so_far + at, mask=inside, other=0)
    exits = inside & (leaves != 0)
    tl.store(times + (number - 1), tl.load(ordered + at, mask=exits, other=0.0).to(tl.float64), mask=exits)
    tl.store(at_risk + (number - 1), (n - at).to(tl.int32), mask=exits)
    backwards = n - 1 - at
    tl.store(positions + backwards, tl.load(order + at, mask=inside, other=0).to(tl.int32), mask=inside)
    tl.store(before + backwards, number - leaves, mask=inside)


def exits_in_order(
    ordered: torch.Tensor, order: torch.Tensor, left: torch.Tensor, so_far: torch.Tensor, n_left: int
) -> tuple[torch.Tensor, ...]:
    """Return what `_tensor_loops.exit_table` does of sorted individuals, no two of whom have the same time."""
    n, device = len(ordered), ordered.device
    times = torch.empty(n_left, dtype=torch.float64, device=device)
    at_risk = torch.empty(n_left, dtype=torch.int32, device=device)
    positions, before = (torch.empty(n, dtype=torch.int32, device=device) for _ in range(2))
    _list_exits[(triton.cdiv(n, SORTED_PER_PROGRAM),)](
        ordered, order, left.view(torch.int8), so_far, n, times, at_risk, positions, before, SORTED_PER_PROGRAM
    )
    exits = torch.ones(1, dtype=torch.int32, device=device).expand(n_left)
    return times, exits, at_risk, positions, before


@triton.jit
def greenwood_step(exits, at_risk, at, inside, ONE: tl.constexpr):
    """Return the exits' steps of Greenwood's sum, and how many come after each; a step to zero adds nothing."""
    risk = tl.load(at_risk + at, mask=inside, other=1)
    left = tl.load(exits) if ONE else tl.load(exits + at, mask=inside, other=0)
    later = risk - left
    step = left.to(tl.float64) / (risk.to(tl.float64) * tl.maximum(later, 1).to(tl.float64))
    return tl.where(inside & (later > 0), step, 0.0), later


@triton.jit
def _of_exits(exits, at_risk, n, out, GREENWOOD: tl.constexpr, ONE: tl.constexpr, SIZE: tl.constexpr):
    """Make of each exit its factor of a product-limit curve, or what it adds to Greenwood's sum."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    step, later = greenwood_step(exits, at_risk, at, inside, ONE)
    if GREENWOOD:
        tl.store(out + at, step, mask=inside)
    else:
        risk = tl.load(at_risk + at, mask=inside, other=1)
        tl.store(out + at, later.to(tl.float64) / risk.to(tl.float64), mask=inside)


def of_exits(exits: torch.Tensor, at_risk: torch.Tensor, *, greenwood: bool) -> torch.Tensor:
    """Return each exit's factor of a product-limit curve, or what it adds to Greenwood's sum, in one pass."""
    n = len(at_risk)
    out = torch.empty(n, dtype=torch.float64, device=at_risk.device)
    if n:
        grid = (triton.cdiv(n, SORTED_PER_PROGRAM),)
        _of_exits[grid](exits, at_risk, n, out, greenwood, is_repeated(exits), SORTED_PER_PROGRAM)
    return out


@triton.jit
def _place(values, positions, wanted, n, placed, ALL: tl.constexpr, SIZE: tl.constexpr):
    """Put values at their positions, all of these or those that are wanted."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    where = tl.load(positions + at, mask=inside, other=0)
    if not ALL:
        inside &= tl.load(wanted + where, mask=inside, other=0) != 0
    tl.store(placed + where, tl.load(values + at, mask=inside, other=0), mask=inside)


def back_in_place(
    values: torch.Tensor, positions: torch.Tensor, wanted: torch.Tensor | None, otherwise: float
) -> torch.Tensor:
    """Return values at their positions; `otherwise` at positions that are not wanted."""
    n = len(values)
    placed = torch.empty_like(values) if wanted is None else torch.full_like(values, otherwise)
    if n:
        which = positions if wanted is None else wanted.view(torch.int8)
        _place[(triton.cdiv(n, SORTED_PER_PROGRAM),)](
            values, positions, which, n, placed, wanted is None, SORTED_PER_PROGRAM
        )
    return placed


@triton.jit
def _take(values, places, n, out, SIZE: tl.constexpr):
    """Put the values at some places one after the other."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    tl.store(out + at, tl.load(values + tl.load(places + at, mask=inside, other=0), mask=inside, other=0), mask=inside)


def take(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the values at some places; torch would copy 32-bit places to 64 first."""
    n = len(places)
    out = torch.empty(n, dtype=values.dtype, device=values.device)
    if n:
        flags = values.dtype == torch.bool
        source, target = (one.view(torch.int8) if flags else one for one in (values, out))
        _take[(triton.cdiv(n, SORTED_PER_PROGRAM),)](source, places, n, target, SORTED_PER_PROGRAM)
    return out

"""Checks of matrices on a device, in one pass over them, and what follows a sort: Triton's kernels.

Imported only where Triton is installed and a tensor is on a device.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

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
def _place(values, order, n, placed, backwards, SIZE: tl.constexpr):
    """Put sorted values where they were; also note where, from the last to the first."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    where = tl.load(order + at, mask=inside, other=0)
    tl.store(placed + where, tl.load(values + at, mask=inside, other=0), mask=inside)
    tl.store(backwards + (n - 1 - at), where.to(tl.int32), mask=inside)


def back_in_place(values: torch.Tensor, order: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values where they were before a sort, and the order of the sort from its end."""
    n = len(values)
    placed, backwards = torch.empty_like(values), torch.empty(n, dtype=torch.int32, device=values.device)
    _place[(triton.cdiv(n, SORTED_PER_PROGRAM),)](values, order, n, placed, backwards, SORTED_PER_PROGRAM)
    return placed, backwards


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

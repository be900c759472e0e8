"""Sorting, and what takes sorting, on all cores.

Values are dealt out to parts, ranges of values that hold about equally many, and each part is sorted by itself. Rows
are dealt out in blocks: what a block has of each part is counted first, which says where it goes. Blocks and parts are
the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from survscore._utils.loops import buckets, compiles_vector
from survscore._utils.parallel import each
from survscore._validation import FloatArray

PARTS, BLOCKS = 64, 64
ROWS_PER_BLOCK = 1 << 14  # at least
SAMPLE = 1 << 12  # values that tell where parts begin
MANY_VALUES = 1 << 20  # whose positions are sorted in parts: fewer stay in the processor's caches anyway
MOST_PARTS = 256


def exit_table(
    time: NDArray[np.float64], leaves: NDArray[np.bool_], *, others_first: bool, compiled: bool | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct times of those who leave, how many leave at each, and how many could have.

    Those are all who leave from then on, and all others from then on, or only after it if others leave first.
    """
    if compiles_vector(time.size, compiled):
        return _compiled_exit_table(time, leaves, others_first)
    exits, others = np.sort(time[leaves]), np.sort(time[~leaves])
    times, counts = np.unique(exits, return_counts=True)
    at_risk = (
        exits.size - np.searchsorted(exits, times, side="left")
        + others.size - np.searchsorted(others, times, side="right" if others_first else "left")
    )  # fmt: skip
    return times, counts.astype(np.int32), at_risk.astype(np.int32)


def _compiled_exit_table(
    time: NDArray[np.float64], leaves: NDArray[np.bool_], others_first: bool
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    from survscore._utils import sort_kernels as _sort_kernels

    dealt, edges = _dealt_values(time, leaves)
    n_exits = int((edges[:, 2] - edges[:, 1]).sum())
    # of the others too, which lie before: where a part's exits are dealt to, its table fits
    times = np.empty(n_exits)
    left, at_risk = np.empty(n_exits, dtype=np.int32), np.empty(n_exits, dtype=np.int32)
    starts = np.concatenate(([0], np.cumsum(edges[:, 2] - edges[:, 1])))

    def of_part(part: int) -> int:
        first, middle, last = edges[part]
        others, exits = dealt[first:middle], dealt[middle:last]
        _sort_kernels.sort_values(others)
        _sort_kernels.sort_values(exits)
        here = slice(starts[part], starts[part + 1])
        n_later = time.size - last
        return int(
            _sort_kernels.exit_table(exits, others, others_first, n_later, times[here], left[here], at_risk[here])
        )

    counts = each(of_part, range(len(edges)), threads=True)
    if sum(counts) == n_exits:
        return times, left, at_risk
    used = [slice(start, start + count) for start, count in zip(starts, counts, strict=False)]
    return (
        np.concatenate([times[part] for part in used]),
        np.concatenate([left[part] for part in used]),
        np.concatenate([at_risk[part] for part in used]),
    )


def _dealt_values(
    values: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the values part by part, within each first those not chosen, and where these and the chosen begin and end.

    The latter have shape (parts, 3).
    """
    from survscore._utils import sort_kernels as _sort_kernels

    splitters = _splitters(values, PARTS)
    starts, scale = buckets(splitters)
    parts = np.empty(values.size, dtype=np.uint8)

    def count(rows: slice) -> NDArray[np.int64]:
        counts = np.zeros((splitters.size + 1, 2), dtype=np.int64)
        _sort_kernels.count_parts(values[rows], chosen[rows], splitters, starts, scale, parts[rows], counts)
        return counts

    def deal(rows: slice, places: NDArray[np.int64]) -> None:
        _sort_kernels.deal_values(values[rows], chosen[rows], parts[rows], places, dealt)

    dealt = np.empty(values.size)
    edges = _deal(values.size, count, deal)
    return dealt, np.column_stack((edges[0:-1:2], edges[1::2], edges[2::2]))


def order(values: FloatArray, *, compiled: bool | None = None) -> NDArray[np.int32]:
    """Return the positions of values, none of them negative, in ascending order; equal ones as they come."""
    if not compiles_vector(values.size, compiled):
        return np.argsort(values, kind="stable").astype(np.int32)
    from survscore._utils import sort_kernels as _sort_kernels

    # the bits of a float that is not negative are in the order of their values; adding zero makes one zero of two
    n_bytes = values.dtype.itemsize
    keys = (values + values.dtype.type(0)).view(np.uint32 if n_bytes == 4 else np.uint64)
    positions = np.empty(values.size, dtype=np.int32)
    splitters = _splitters(values, MOST_PARTS) if values.size >= MANY_VALUES else np.zeros(0)
    if splitters.size == 0:
        _sort_kernels.order(keys, 8 * n_bytes, positions)
        return positions
    starts, scale = buckets(splitters)
    parts, nobody = np.empty(values.size, dtype=np.uint8), np.zeros(values.size, dtype=np.bool_)
    dealt = np.empty_like(keys)

    def count(rows: slice) -> NDArray[np.int64]:
        counts = np.zeros((splitters.size + 1, 2), dtype=np.int64)
        _sort_kernels.count_parts(values[rows], nobody[rows], splitters, starts, scale, parts[rows], counts)
        return counts[:, 0].copy()

    def deal(rows: slice, places: NDArray[np.int64]) -> None:
        _sort_kernels.deal_keys(keys[rows], parts[rows], rows.start, places, dealt, positions)

    edges = _deal(values.size, count, deal)

    def sort(part: int) -> None:
        here = slice(edges[part], edges[part + 1])
        _sort_kernels.order_rows(dealt[here], 8 * n_bytes, positions[here])

    each(sort, range(len(edges) - 1), threads=True)
    return positions


def _splitters(values: FloatArray, n_parts: int) -> NDArray[np.float64]:
    """Return values between which about equally many lie, in so many parts or fewer."""
    sample = np.sort(values[:: max(1, values.size // SAMPLE)]).astype(np.float64)
    return np.unique(sample[np.linspace(0, sample.size - 1, n_parts + 1).astype(np.intp)[1:-1]])


def rows_by_bin(
    bins: NDArray[np.int32], chosen: NDArray[np.bool_], last_bin: int, *, compiled: bool | None = None
) -> NDArray[np.int32]:
    """Return the positions of the chosen, from the last bin to the first, in their order within a bin."""
    if not compiles_vector(bins.size, compiled):
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(-bins[rows], kind="stable")].astype(np.int32)
    out = np.empty(np.count_nonzero(chosen), dtype=np.int32)
    _sort_rows(bins, chosen, last_bin, -1, last_bin + 1, out, np.empty(0, dtype=np.int64))
    return out


def rows_by_group(
    codes: NDArray[np.int32], n_groups: int, *, compiled: bool | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the positions group by group, and where each group starts, and at last where the last one ends."""
    starts = np.full(n_groups + 1, codes.size)
    if not compiles_vector(codes.size, compiled):
        starts[:-1] = np.cumsum(np.bincount(codes, minlength=n_groups))
        starts[1:] = starts[:-1]
        starts[0] = 0
        return np.argsort(codes, kind="stable").astype(np.int32), starts
    out = np.empty(codes.size, dtype=np.int32)
    _sort_rows(codes, np.empty(0, dtype=np.bool_), 0, 1, n_groups, out, starts[:-1])
    return out, starts


def _sort_rows(
    bins: NDArray[np.int32],
    chosen: NDArray[np.bool_],
    base: int,
    sign: int,
    n_bins: int,
    out: NDArray[np.int32],
    starts: NDArray[np.int64],
) -> None:
    """Fill in the rows by their keys ``base + sign * bin``, which are below `n_bins`, and where each key starts."""
    from survscore._utils import sort_kernels as _sort_kernels

    shift = max((n_bins - 1) // PARTS, 1).bit_length()
    n_parts = ((n_bins - 1) >> shift) + 1

    def count(rows: slice) -> NDArray[np.int64]:
        counts = np.zeros(n_parts, dtype=np.int64)
        _sort_kernels.count_bins(bins[rows], chosen[rows], base, sign, shift, counts)
        return counts

    def deal(rows: slice, places: NDArray[np.int64]) -> None:
        _sort_kernels.deal_rows(bins[rows], chosen[rows], base, sign, shift, rows.start, places, out)

    edges = _deal(bins.size, count, deal)

    def sort(part: int) -> None:
        rows = out[edges[part] : edges[part + 1]]
        _sort_kernels.sort_rows(rows, bins, base, sign, shift, part, edges[part], starts)

    each(sort, range(n_parts), threads=True)


def count_values(values: NDArray[np.int32], n: int, *, compiled: bool | None = None) -> NDArray[np.int64]:
    """Return how often each of the whole numbers below n occurs."""
    if not compiles_vector(values.size, compiled):
        return np.bincount(values, minlength=n)
    from survscore._utils import sort_kernels as _sort_kernels

    def count(rows: slice) -> NDArray[np.int64]:
        counts = np.zeros(n, dtype=np.int64)
        _sort_kernels.count_values(values[rows], counts)
        return counts

    return np.asarray(np.sum(each(count, _blocks(values.size), threads=True), axis=0))


def _blocks(n: int) -> list[slice]:
    size = max(ROWS_PER_BLOCK, -(-n // BLOCKS))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _deal(
    n: int, count: Callable[[slice], NDArray[np.int64]], deal: Callable[[slice, NDArray[np.int64]], None]
) -> NDArray[np.int64]:
    """Count what each block has for each part, have it dealt there, and return where parts begin and the last ends."""
    blocks = _blocks(n)
    counts = np.array(each(count, blocks, threads=True))
    by_part = counts.reshape(len(blocks), -1).T.ravel()  # part by part, and within each block by block
    ends = np.cumsum(by_part)
    places = (ends - by_part).reshape(-1, len(blocks)).T.reshape(counts.shape).copy()
    each(lambda b: deal(blocks[b], places[b]), range(len(blocks)), threads=True)
    return np.concatenate(([0], ends[len(blocks) - 1 :: len(blocks)]))

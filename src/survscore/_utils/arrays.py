"""NumPy arrays and torch tensors by the same names.

Vectors over individuals live where the predictions live: in the processor's memory as NumPy arrays, or on a device as
torch tensors. What is prepared from them is written once, with the few names below where the two libraries differ.
torch is imported only where a tensor is at hand already, or asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import parallel

#: Kinds of devices in the DLPack protocol on which torch works as on CUDA: CUDA, ROCm, and CUDA's managed memory.
_DLPACK_CUDA = (2, 10, 13)
LARGEST_TEMPORARY = 1 << 24


@cache
def keep_memory() -> None:
    """Let the C library keep the memory of temporary arrays for the next ones.

    glibc returns freed memory to the system, to get it back page by page, until an array of a larger size was freed: up
    to this size it then keeps memory, at most twice as much. Scores take two thirds to a quarter of the time.
    """
    np.empty(LARGEST_TEMPORARY, dtype=np.uint8)


def is_tensor(values: Any) -> bool:
    """Whether this is a torch tensor."""
    return not isinstance(values, np.ndarray) and hasattr(values, "detach") and hasattr(values, "is_cuda")


def on_device(values: Any) -> bool:
    """Whether this is a tensor on a CUDA device."""
    return is_tensor(values) and bool(values.is_cuda)


def device_of(values: Any) -> Any:
    """Return the torch device that holds a tensor; None for a NumPy array."""
    return values.device if is_tensor(values) else None


def resident(values: Any) -> Any:
    """Return what lives on a CUDA device as a torch tensor that shares its memory; None for everything else.

    Other libraries' arrays (CuPy, JAX) are taken by the DLPack protocol.
    """
    if is_tensor(values):
        return values.detach() if values.is_cuda else None
    where = getattr(values, "__dlpack_device__", None)
    if where is None or isinstance(values, np.ndarray):
        return None
    try:
        on_cuda = int(where()[0]) in _DLPACK_CUDA
    except (TypeError, ValueError, BufferError):  # older pyarrow's, of types that DLPack does not know, such as dates
        on_cuda = False
    if not on_cuda:
        return None
    import torch

    return torch.from_dlpack(values)  # type: ignore[attr-defined]


def to_host(values: Any) -> NDArray[Any]:
    """Return an array in the processor's memory; NumPy has no bfloat16, which becomes float32."""
    if not is_tensor(values):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())


class _Writeable:
    """Read-only memory shown as writeable, since torch warns about any other; nothing here writes to it."""

    def __init__(self, array: NDArray[Any]) -> None:
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}
        self.kept = array


def to_device(values: Any, device: Any) -> Any:
    """Return values as a tensor on a device, without a copy where they are there; None stands for NumPy."""
    if device is None:
        return to_host(values)
    import torch

    try:
        device = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        from survscore._validation import InputError  # which imports this module

        raise InputError(f"device must be one of torch's, such as 'cuda', not {device!r} ({error})") from None
    there = resident(values)
    if there is not None:
        values = there
    elif not is_tensor(values):
        array = np.asarray(values)
        if any(stride < 0 for stride in array.strides):
            array = array.copy()
        values = torch.from_numpy(array if array.flags.writeable else np.asarray(_Writeable(array)))
    # not waiting for what the device does: pageable memory is copied aside before this returns
    return values.detach().to(device, non_blocking=values.device.type == "cpu")


def namespace(values: Any) -> Any:
    """Return the module, `numpy` or `torch`, whose functions take this array."""
    if not is_tensor(values):
        return np
    import torch

    return torch


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Return zeros in double precision, where `like` lives."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=xp.float64, device=device_of(like))


def positions(flags: Any, n: int | None = None) -> Any:
    """Return where a vector is true; a device need not wait for the host where it is known that it is so `n` times."""
    if is_tensor(flags):
        return (flags.nonzero() if n is None else flags.nonzero_static(size=n))[:, 0]
    return np.flatnonzero(flags)


def in_order(*keys: Any) -> Any:
    """Return positions by the first key, those with the same by the second."""
    if not is_tensor(keys[0]):
        return np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    order = keys[-1].argsort(stable=True)
    for key in keys[-2::-1]:
        order = order[key[order].argsort(stable=True)]
    return order


def by_code(codes: Any, n_codes: int) -> Any:
    """Return positions by code from 0 on, in the order in which they come; NumPy sorts short numbers by digits."""
    short = not is_tensor(codes) and n_codes <= np.iinfo(np.uint16).max
    return in_order(codes.astype(np.uint16) if short else codes)


def take(values: Any, order: Any) -> Any:
    """Return the values at some positions, or in another order; on all cores where there are many."""
    if is_repeated(values) and len(order) == len(values):
        return values
    return values[order] if is_tensor(values) else parallel.take(values, order)


def in_slices(work: Callable[[slice], Any], like: Any) -> list[tuple[slice, Any]]:
    """Return slices of a vector with what `work` makes of each, on all cores; a tensor is one slice."""
    if is_tensor(like):
        every = slice(0, len(like))
        return [(every, work(every))]
    return parallel.in_slices(lambda rows: (rows, work(rows)), len(like))


def empty_counts(like: Any) -> Any:
    """Return a vector for whole numbers as int32, to be filled in."""
    xp = namespace(like)
    return xp.empty(len(like), dtype=xp.int32, device=device_of(like))


def put(values: Any, order: Any) -> Any:
    """Return values at the positions that `order` names, each once: what `take` undoes."""
    found = namespace(values).empty_like(values)
    if is_tensor(values):
        found[order] = values
        return found

    def fill(rows: slice) -> None:
        found[order[rows]] = values[rows]

    parallel.in_slices(fill, len(order))
    return found


def pick_rows(matrix: Any, rows: Any) -> Any:
    """Return some rows of a matrix by position; NumPy's `take` needs half the time of indexing."""
    return matrix[rows] if is_tensor(matrix) else matrix.take(rows, axis=0)


def count_below(grid: Any, keys: Any, *, inclusive: bool) -> Any:
    """Return for each key how many values of a sorted grid are below it (at or below it, if `inclusive`), as int32."""
    if not is_tensor(keys) and not is_tensor(grid):
        return np.searchsorted(grid, keys, side="right" if inclusive else "left").astype(np.int32)
    like = keys if is_tensor(keys) else grid
    grid, keys = beside(grid, like), beside(keys, like).contiguous()
    return namespace(like).searchsorted(grid, keys, right=inclusive, out_int32=True)


def sums_by(codes: Any, values: Any, size: int) -> Any:
    """Return the sums of values by code; counts where there are no values."""
    if not is_tensor(codes):
        return np.bincount(codes, values, size).astype(np.float64)
    return codes.long().bincount(values, size).double()


def add_rows(table: Any, codes: Any, rows: Any) -> None:
    """Add each row of a matrix to the row of a table that its code names."""
    if is_tensor(table):
        table.index_add_(0, codes.long(), rows)
        return
    order = by_code(codes, len(table))  # numpy.add.at is ten times slower
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    table[codes[order[starts]]] += np.add.reduceat(rows[order], starts, axis=0)


def subtract_rows(table: Any, places: Any, rows: Any) -> None:
    """Subtract the rows of a matrix from those of a table at these places, each named once."""
    if is_tensor(table):
        table.index_add_(0, places, rows, alpha=-1)
    else:
        table[places] -= rows


def running_sums(rows: Any) -> Any:
    """Return the sums of the first 0, 1, 2, ... rows of a matrix."""
    if is_tensor(rows):
        return _running_sums(rows)
    sums = np.zeros((len(rows) + 1, *rows.shape[1:]))
    sums[1:] = rows
    _accumulate(sums[1:])
    return sums


def _accumulate(rows: NDArray[np.float64], group: int = 16) -> None:
    """Add up rows in place: within groups of rows, then the groups.

    numpy.cumsum walks down each column, 3.4 ns a number; this adds whole rows, 1 to 2 where they are long.
    """
    n = len(rows) // group * group
    if n <= group or rows.shape[1] < group:
        np.cumsum(rows, axis=0, out=rows)
        return
    grouped = rows[:n].reshape(n // group, group, rows.shape[1])
    for i in range(1, group):
        grouped[:, i] += grouped[:, i - 1]
    grouped[1:] += np.cumsum(grouped[:-1, -1], axis=0)[:, None]
    np.cumsum(rows[n - 1 :], axis=0, out=rows[n - 1 :])


def _running_sums(rows: Any, group: int = 256) -> Any:
    """Do the same for a tensor, whose cumulative sum down a column is one thread's work: groups by a matrix product.

    Changes are made to views that have a name: ``sums[1:] += ...`` would copy the result once more onto itself.
    """
    xp, n = namespace(rows), len(rows) // group * group
    sums = rows.new_empty((len(rows) + 1, rows.shape[1]))
    sums[0] = 0.0
    after = sums[1:]
    if n <= group:
        xp.cumsum(rows, 0, out=after)
        return sums
    shape = (n // group, group, rows.shape[1])
    grouped = after[:n].view(shape)
    xp.matmul(rows.new_ones((group, group)).tril_(), rows[:n].view(shape), out=grouped)
    later = grouped[1:]
    later += grouped[:-1, -1].cumsum(0)[:, None]
    if n < len(rows):
        rest = after[n:]
        xp.cumsum(rows[n:], 0, out=rest)
        rest += after[n - 1]
    return sums


def column_products(a: Any, b: Any) -> Any:
    """Return for each column the sum of the products of two matrices."""
    if not is_tensor(a):
        return np.einsum("ij,ij->j", a, b)
    # the norm makes no matrix of squares
    return a.norm(dim=0).square() if a is b else (a * b).sum(0)


def beside(values: Any, like: Any) -> Any:
    """Return values where others live."""
    return to_device(values, device_of(like))


def where(condition: Any, chosen: Any, otherwise: Any) -> Any:
    """Return `chosen` where the condition holds; of long vectors on all cores."""
    if not is_tensor(condition):
        if np.size(condition) < parallel.LONG_VECTOR or max(map(np.ndim, (condition, chosen, otherwise))) > 1:
            return np.where(condition, chosen, otherwise)
        found = np.empty(condition.shape, dtype=np.result_type(chosen, otherwise))
        one, other = (np.broadcast_to(value, condition.shape) for value in (chosen, otherwise))

        def choose(rows: slice) -> None:
            found[rows] = np.where(condition[rows], one[rows], other[rows])

        parallel.in_slices(choose, condition.size)
        return found
    both = (value.item() if isinstance(value, np.generic) else value for value in (chosen, otherwise))
    return namespace(condition).where(condition, *both)


def overwrite(target: Any, condition: Any, values: Any) -> None:
    """Write values into an array where the condition holds: in half the time of `where`, and without a new array."""
    if is_tensor(target):
        namespace(target).where(condition, values, target, out=target)
    else:
        np.copyto(target, values, where=condition)


def minimum(one: Any, other: Any) -> Any:
    """Return the smaller of each two."""
    return namespace(one).minimum(one, other)


def smallest_so_far(matrix: Any) -> Any:
    """Return every row's values, each replaced by the smallest up to it."""
    return matrix.cummin(1).values if is_tensor(matrix) else np.minimum.accumulate(matrix, axis=1)


def largest_so_far(matrix: Any) -> Any:
    """Return every row's values, each replaced by the largest up to it."""
    return matrix.cummax(1).values if is_tensor(matrix) else np.maximum.accumulate(matrix, axis=1)


def contiguous(array: Any) -> Any:
    """Return an array whose rows are contiguous, itself if they are."""
    return array.contiguous() if is_tensor(array) else np.ascontiguousarray(array)


def sum_of_causes(probabilities: Any) -> Any:
    """Return the sums over the second of three axes, in double precision."""
    total = as_float64(probabilities[:, 0])
    for k in range(1, probabilities.shape[1]):  # twice as fast as a sum along an axis
        total = total + probabilities[:, k]
    return total


def running_sum(values: Any) -> Any:
    """Return the sums of the first 0, 1, 2, ... values."""
    return concatenate([zeros((1,), values), values.cumsum(0)])


def running_products(factors: Callable[[slice], Any], out: Any) -> None:
    """Fill in the products of the first 1, 2, 3, ... factors: within slices on all cores, then those of slices."""

    def multiply(rows: slice) -> None:
        out[rows] = namespace(out).cumprod(factors(rows), 0)

    for (before, _), (rows, _) in pairwise(in_slices(multiply, out)):
        out[rows] *= out[before.stop - 1]


def running_count(flags: Any) -> Any:
    """Return how many of the first 1, 2, 3, ... are true, as int32."""
    return flags.cumsum(0, dtype=namespace(flags).int32)


def finite_or_zero(values: Any) -> Any:
    """Return numbers with 0 in place of those that are infinite or NaN."""
    return where(namespace(values).isfinite(values), values, 0.0)


def ordered(values: Any) -> Any:
    """Return a vector in increasing order."""
    return values.sort().values if is_tensor(values) else np.sort(values)


def ratio(numerator: Any, denominator: Any) -> Any:
    """Return a quotient; 0 where the denominator is not positive."""
    if not is_tensor(numerator):
        return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator > 0)
    return where(denominator > 0, numerator / denominator, 0.0)


def as_float64(values: Any) -> Any:
    """Return numbers as float64."""
    return values.double() if is_tensor(values) else np.asarray(values, dtype=np.float64)


def power(base: Any, exponent: Any) -> Any:
    """Return powers of which equal ones stay equal wherever they stand, so that ties between individuals remain ties.

    torch on a processor takes whole vectors by one formula and what is left over by another, which differ in the last
    digit; there NumPy takes them, in the same memory.
    """
    if is_tensor(base) and not base.is_cuda:
        return beside(np.power(to_host(base), to_host(exponent)), base)
    return base**exponent


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that can't be written to; kernels that always get such a one are compiled once."""
    shown = array.view()
    shown.flags.writeable = False
    return shown


def repeated(value: Any, n: int, like: Any) -> Any:
    """Return a NumPy scalar n times, where `like` lives; it takes no memory."""
    if not is_tensor(like):
        return np.broadcast_to(value, n)
    return to_device(np.reshape(value, 1), like.device).expand(n)


def is_repeated(array: Any) -> bool:
    """Whether an array was made by `repeated`."""
    return bool((array.stride() if is_tensor(array) else array.strides) == (0,))


def columns(n: int, like: Any) -> Any:
    """Return 0, 1, ..., n - 1, where `like` lives, as int32: comparing numbers of one type takes half the time."""
    xp = namespace(like)
    return xp.arange(n, dtype=xp.int32, device=device_of(like))


def as_int8(flags: Any) -> Any:
    """Return booleans as zeros and ones, in the same memory."""
    return flags.view(namespace(flags).int8)


def as_int32(numbers: Any) -> Any:
    """Return whole numbers as int32."""
    return numbers.int() if is_tensor(numbers) else numbers.astype(np.int32)


def as_int64(numbers: Any) -> Any:
    """Return whole numbers as int64."""
    return numbers.long() if is_tensor(numbers) else numbers.astype(np.int64)


def as_bool(flags: Any) -> Any:
    """Return numbers as booleans: whether they are not zero."""
    return flags != 0


def concatenate(parts: Any) -> Any:
    """Return vectors one after the other, where the first lives; on all cores where they are long."""
    if is_tensor(parts[0]) or sum(map(len, parts)) < parallel.LONG_VECTOR:
        return namespace(parts[0]).concatenate([beside(part, parts[0]) for part in parts])
    return parallel.concatenate([to_host(part) for part in parts])


def first_true(flags: Any) -> int:
    """Return the first position at which a vector is true."""
    return int(np.argmax(flags)) if not is_tensor(flags) else int(flags.nonzero()[0, 0])


def rounding_unit(matrix: Any) -> float:
    """Return the distance from 1 to the next number of a matrix's own type."""
    return float(namespace(matrix).finfo(matrix.dtype).eps)


def count_true(flags: Any) -> int:
    """Return how many are true."""
    return int(flags.sum()) if is_tensor(flags) else int(np.count_nonzero(flags))


def type_name(array: Any) -> str:
    """Return the number type in words, and the device if that is not the processor."""
    if not is_tensor(array):
        return str(array.dtype)
    return f"{str(array.dtype).removeprefix('torch.')} on {array.device}"

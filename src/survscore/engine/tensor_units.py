"""Who is independent of whom, for individuals on a device: what `units` does, for tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._validation import InputError, check_length
from survscore.inference.units import Groups, PowerSums, Units
from survscore.weighting.stretches import Stretches

CELLS_PER_CHUNK = 1 << 24  # of a table of groups by times


def groups_of(labels: Any, n: int, device: Any) -> Groups:
    """Take one label per individual; labels that live on a device are numbered there."""
    tensor = _arrays.resident(labels)
    if tensor is None:
        groups = Groups.of(labels, n)
        return Groups(_arrays.to_device(groups.codes, device), groups.n_groups)
    if tensor.ndim != 1:
        raise InputError(f"groups must be one-dimensional, not of shape {tuple(tensor.shape)}")
    check_length("groups", len(tensor), "y", n)
    missing = tensor.isnan()
    if missing.any():
        raise InputError(
            f"groups must be given for everybody: {_arrays.count_true(missing)} of {n} are missing, "
            f"the first at position {_arrays.first_true(missing)}"
        )
    found, codes = torch.unique(tensor, return_inverse=True)
    return Groups(_arrays.to_device(codes, device), len(found))


def units_of(stretches: Stretches, groups: Groups | None, counted: NDArray[np.float64]) -> Units:
    """Take how many individuals the score speaks for at each time, and count their groups."""
    stop: Any = stretches.population_stop
    n_times = counted.size
    if groups is None:
        with np.errstate(divide="ignore"):
            return Units(counted, np.where(counted > 0, 1.0 / counted, np.nan), counted - 1.0)
    codes: Any = groups.codes
    if _arrays.is_repeated(stop):  # everybody, always
        sizes = _power_sums(torch.bincount(codes, minlength=groups.n_groups)[:, None])
        return Units(*(np.repeat(values, n_times) for values in _on_host(*sizes).units()))
    return Units(*_of_groups(stop, codes, groups.n_groups, n_times).units())


def units_of_sizes(powers: Any, largest: Any) -> Units:
    """Take sums of powers of the groups' sizes, and the largest."""
    return Units(*_on_host(powers, largest).units())


def _of_groups(stop: Any, codes: Any, n_groups: int, n_times: int) -> PowerSums:
    """Count the members of every group at every time; some groups at a time, since there may be millions."""
    ordered, order = codes.sort()
    stops = stop[order]
    width = max(1, CELLS_PER_CHUNK // (n_times + 1))
    firsts = range(0, n_groups, width)
    bounds = torch.searchsorted(ordered, torch.tensor([*firsts, n_groups], device=codes.device)).tolist()
    powers, largest = None, None
    for first, start, stop_row in zip(firsts, bounds[:-1], bounds[1:], strict=True):
        n_here = min(width, n_groups - first)
        cells = (ordered[start:stop_row] - first) * (n_times + 1) + stops[start:stop_row]
        ends = torch.bincount(cells, minlength=n_here * (n_times + 1)).reshape(n_here, n_times + 1)
        part = _power_sums(ends.sum(1, keepdim=True) - ends.cumsum(1)[:, :n_times])
        powers = part[0] if powers is None else powers + part[0]
        largest = part[1] if largest is None else torch.maximum(largest, part[1])
    return _on_host(powers, largest)


def _power_sums(sizes: Any) -> tuple[Any, Any]:
    size = sizes.double()
    powers = [size.count_nonzero(0).double(), *((size**k).sum(0) for k in range(1, 6))]
    return torch.stack(powers), size.amax(0)


def _on_host(powers: Any, largest: Any) -> PowerSums:
    return PowerSums(_arrays.to_host(powers), _arrays.to_host(largest))

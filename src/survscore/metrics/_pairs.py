"""Sums over all pairs of one with event and one who was seen event-free then, without making the pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils import sorting as _sorting
from survscore._utils.parallel import each
from survscore._validation import FloatArray

MANY_PAIRS = 1 << 23  # from here on the compiled loops repay being loaded
PAIRS_AT_ONCE = 1 << 18

Vector = NDArray[np.float64]


class PairSums(NamedTuple):
    """For every case, the weight of its controls that are concordant, and of all; for every control, of its cases."""

    case_concordant: Vector
    case_total: Vector
    control_concordant: Vector
    control_total: Vector


def pair_sums(
    time: Vector, event: NDArray[np.bool_], survival: FloatArray, case_weight: Vector, control_weight: Vector
) -> PairSums:
    """Sum over pairs (i, j) in which j was seen event-free when i had the event: later, or without event at that time.

    Parameters
    ----------
    time, event : ndarray of shape (n,)
        When each left, in ascending order, and whether with event.
    survival : ndarray of shape (n,)
        A pair is concordant if the case's is the smaller; equal ones count half.
    case_weight, control_weight : ndarray of shape (n,)
        Zero for those who are not counted so; only those with event can be cases.
    """
    n_pairs = int(np.count_nonzero(case_weight)) * time.size
    by_size = config.backend not in ("numpy", "compiled")
    if n_pairs >= MANY_PAIRS if by_size else config.backend == "compiled":
        return _compiled(time, event, survival, case_weight, control_weight)
    found = PairSums(*np.zeros((4, time.size)))
    cases = np.flatnonzero(case_weight)
    width = max(1, PAIRS_AT_ONCE // max(time.size, 1))
    for first in range(0, cases.size, width):
        some = cases[first : first + width]
        when, own = time[some, None], survival[some, None]
        later = (time > when) | ((time == when) & ~event)
        concordant = later * ((survival > own) + 0.5 * (survival == own))
        found.case_concordant[some] = concordant @ control_weight
        found.case_total[some] = later @ control_weight
        found.control_concordant[:] += case_weight[some] @ concordant
        found.control_total[:] += case_weight[some] @ later
    return found


def _compiled(
    time: Vector, event: NDArray[np.bool_], survival: FloatArray, case_weight: Vector, control_weight: Vector
) -> PairSums:
    from survscore._utils import sort_kernels as _sort_kernels
    from survscore.metrics import _pair_kernels

    n = time.size
    rows = np.flatnonzero((case_weight != 0) | (control_weight != 0))
    if rows.size < n:
        time, event, survival = time[rows], event[rows], survival[rows]
        case_weight, control_weight = case_weight[rows], control_weight[rows]
    rank = np.empty(time.size, dtype=np.int32)
    n_ranks = int(_sort_kernels.dense_ranks(survival, _sorting.order(survival, compiled=True), rank))
    last_case = time[np.flatnonzero(case_weight)[-1:]]
    n_early = int(np.searchsorted(time, last_case, side="right")[0]) if last_case.size else 0
    given = (time, event, rank, n_ranks, n_early, case_weight, control_weight)
    found = PairSums(*np.zeros((4, time.size)))

    def walk(of_cases: bool) -> None:
        if of_cases:
            _pair_kernels.of_cases(*given, found.case_concordant, found.case_total)
        else:
            _pair_kernels.of_controls(*given, found.control_concordant, found.control_total)

    each(walk, [True, False], threads=True)
    if rows.size == n:
        return found
    everybody = np.zeros((4, n))
    everybody[:, rows] = found
    return PairSums(*everybody)

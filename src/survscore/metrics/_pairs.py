"""Sums over all pairs of a case and an individual observed event-free at that time, without making the pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._validation import FloatArray

Vector = NDArray[np.float64]

DIGIT = 2  # bits of a place that are compared at once: 1 and 3 take 1.2 to 1.6 times as long
COST = 4  # of an individual, in cells of a matrix: what decides whether compiled loops repay being loaded


def pair_sums(
    time: Vector, event: NDArray[np.bool_], survival: FloatArray, case_weight: Vector, control_weight: Vector
) -> Vector:
    """Sum over pairs (i, j) with j observed event-free when i had the event: later, or without event at that time.

    Return (4, n): for every case the weight of its controls that are concordant, and of all; for every control, of its
    cases. A pair is concordant if the case's survival is the smaller; equal ones count half. Weights are zero for those
    who are not counted as cases or controls; only those with event can be cases.
    """
    sums = np.zeros((4, time.size))
    case_concordant, case_total, control_concordant, control_total = sums
    case_times = np.unique(time[case_weight != 0])
    # At how many of the cases' times each was observed event-free: a pair is a case and one with a larger number. A
    # case has as many as there are cases' times before its own, and so none of its own time is its control.
    place = np.where(event, np.searchsorted(case_times, time, "left"), np.searchsorted(case_times, time, "right"))
    rows = np.flatnonzero((case_weight != 0) | ((control_weight != 0) & (place > 0)))
    n_places = case_times.size + 1
    rows = rows[np.argsort(survival[rows])]
    other_value = survival[rows][1:] != survival[rows][:-1]
    tied = not other_value.all()
    if tied:  # of equal ones larger places come first, so that none that comes after a case is tied with it
        rank = np.append(0, np.cumsum(other_value))
        rows = rows[np.argsort(rank * n_places - place[rows])]
    place, case, control = place[rows], case_weight[rows], control_weight[rows]
    cases_up_to = np.cumsum(np.bincount(place, case, n_places))
    controls_up_to = np.cumsum(np.bincount(place, control, n_places))
    case_total[rows] = controls_up_to[-1] - controls_up_to[place]
    control_total[rows] = np.append(0.0, cases_up_to)[place]
    of_case, of_control = dominance(place, case, control, n_places)
    if tied:  # with each case the controls of larger places, and with each control the cases of smaller ones
        start, stop = _extent(other_value)
        first, last = _extent(other_value | (place[1:] != place[:-1]))
        cases, controls = (np.append(0.0, np.cumsum(weight)) for weight in (case, control))
        of_case = of_case + 0.5 * (controls[first] - controls[start])
        of_control = of_control + 0.5 * (cases[stop] - cases[last])
    case_concordant[rows], control_concordant[rows] = of_case, of_control
    return sums


def dominance(place: NDArray[np.intp], case: Vector, control: Vector, n_places: int) -> tuple[Vector, Vector]:
    """Return for each case the weight of controls that come after it with a larger place, and the same from controls.

    The latter is the weight of cases that come before with a smaller place. Two places differ first in some digit:
    digit by digit, from the highest on, individuals whose places agree so far form a block in which cumulative sums
    count what comes after. Time is O(n log n).
    """
    n, width = place.size, 1 << DIGIT
    of_case, of_control = np.zeros(n), np.zeros(n)
    if config.compiles(COST * n):
        from survscore._utils import kernels

        kernels.dominance(place, case, control, n_places, of_case, of_control)
        return of_case, of_control
    # those who were observed event-free after all cases, often most of all, need no search
    last = place == n_places - 1
    outlived = np.cumsum(np.where(last, control, 0.0))
    of_case += outlived[-1:] - outlived
    of_control[last] = np.cumsum(case)[last]
    rows = np.flatnonzero(~last)
    place, case, control, n = place[rows], case[rows], control[rows], rows.size
    after, before = np.zeros((2, width - 1, n + 1))
    for shift in reversed(range(0, (n_places - 1).bit_length(), DIGIT)):
        block = place >> (shift + DIGIT)
        few = (n_places >> (shift + DIGIT)) < 1 << 16  # NumPy sorts short numbers by their bits
        order = np.argsort(block.astype(np.uint16) if few else block, kind="stable")
        block, digit = block[order], (place[order] >> shift) & (width - 1)
        upper = digit >= np.arange(1, width)[:, None]
        np.cumsum(upper * control[order], axis=1, out=after[:, 1:])
        np.cumsum(~upper * case[order], axis=1, out=before[:, 1:])
        start, stop = _extent(block[1:] != block[:-1])
        searched = np.flatnonzero(digit < width - 1)  # those after whom a higher digit may come
        row = digit[searched]
        of_case[rows[order[searched]]] += after[row, stop[searched]] - after[row, searched]
        searched = np.flatnonzero(digit > 0)
        row = digit[searched] - 1
        of_control[rows[order[searched]]] += before[row, searched] - before[row, start[searched]]
    return of_case, of_control


def _extent(changes: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return for each position where its run begins and ends, from where one differs from the one before."""
    edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [changes.size + 1]))
    return np.repeat(edges[:-1], np.diff(edges)), np.repeat(edges[1:], np.diff(edges))

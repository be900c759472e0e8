"""How far many curves are from the diagonal, compiled: one curve after the other, and none is sorted whole."""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import compiled, dot, inlined, summing

CELLS = 64  # of equal width, among which distances are dealt out


@summing
def _mean_square(values, mass):
    total = 0.0
    for i in range(values.size):
        total += mass[i] * values[i] * values[i]
    return total


@inlined
def _quantile(distance, mass, target, cell, masses, last, inside):
    """Return the least distance up to which the mass reaches the target: only those of its cell are put in order."""
    place, reached = 0, 0.0
    while place < last and reached + masses[place] < target:
        reached += masses[place]
        place += 1
    size = 0
    for i in range(distance.size):
        if cell[i] == place:
            k = size
            while k > 0 and distance[inside[k - 1]] > distance[i]:
                inside[k] = inside[k - 1]
                k -= 1
            inside[k] = i
            size += 1
    k = 0
    reached += mass[inside[0]]
    while k < size - 1 and reached < target:
        k += 1
        reached += mass[inside[k]]
    return distance[inside[k]]


@compiled
def measures(middle, slope, columns, draws, mass, targets, found):
    """Fill in mean, mean square and quantiles of the distances of curves to the diagonal: (2 + targets, draws).

    The curves are at `middle` from it, plus `slope` times each draw of coefficients of the `columns`, (coefficients,
    points).
    """
    n = mass.size
    distance, cell, inside = np.empty(n), np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    masses = np.empty(CELLS)
    for r in range(draws.shape[0]):
        distance[:] = 0.0
        for k in range(columns.shape[0]):
            column, coefficient = columns[k], draws[r, k]
            for i in range(n):
                distance[i] += coefficient * column[i]
        top = 0.0
        for i in range(n):
            distance[i] = abs(middle[i] + slope[i] * distance[i])
            top = max(top, distance[i])
        found[0, r], found[1, r] = dot(distance, mass), _mean_square(distance, mass)
        scale = CELLS / max(top, 1e-300)
        masses[:] = 0.0
        last = 0
        for i in range(n):
            cell[i] = min(np.int32(distance[i] * scale), np.int32(CELLS - 1))
        for i in range(n):
            masses[cell[i]] += mass[i]
            last = max(last, cell[i])
        for t in range(targets.size):
            found[2 + t, r] = _quantile(distance, mass, targets[t], cell, masses, last, inside)


@compiled
def thin(order, risk, share, masses, sums):
    """Deal distinct risks, from the lowest on, to cells of equal shares: the share of each, and its risks times these.

    `order` goes from the highest risk to the lowest. Return how many distinct risks there are.
    """
    n_cells, n_distinct, reached, place = masses.size, 0, 0.0, order.size
    while place > 0:
        value, mass = risk[order[place - 1]], 0.0
        while place > 0 and risk[order[place - 1]] == value:
            place -= 1
            mass += share[order[place]]
        reached += mass
        cell = min(int(n_cells * (reached - mass / 2)), n_cells - 1)
        masses[cell] += mass
        sums[cell] += mass * value
        n_distinct += 1
    return n_distinct

"""Sums over pairs, compiled: in the order of time by two walks with a tree of sums by rank (Fenwick's)."""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import compiled, inlined


@inlined
def _add(tree, place, value):
    """Add to what the tree holds at a place, from 1 on."""
    while place < tree.size:
        tree[place] += value
        place += place & -place


@inlined
def _sum_to(tree, place):
    """Return the sum over the places up to this one."""
    total = 0.0
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


@compiled
def of_cases(time, event, rank, n_ranks, n_early, case_weight, control_weight, concordant, total):
    """Fill in, for every case, the weight of its controls, and of those of a higher rank; equal ranks count half.

    Everything is in the order of time, ranks are from 1 on. From the latest time to the earliest: of those who leave at
    the same time, only those without event are controls of the cases among them. Those from `n_early` on leave after
    the last case, and need no order.
    """
    tree, own = np.zeros(n_ranks + 1), np.zeros(n_ranks + 1)
    weight = 0.0
    for i in range(n_early, time.size):
        own[rank[i]] += control_weight[i]
        weight += control_weight[i]
    tree[:] = own
    for place in range(1, n_ranks + 1):
        above = place + (place & -place)
        if above <= n_ranks:
            tree[above] += tree[place]
    stop = n_early
    while stop > 0:
        start = stop - 1
        while start > 0 and time[start - 1] == time[start]:
            start -= 1
        for i in range(start, stop):
            if not event[i] and control_weight[i] != 0.0:
                _add(tree, rank[i], control_weight[i])
                own[rank[i]] += control_weight[i]
                weight += control_weight[i]
        for i in range(start, stop):
            if case_weight[i] != 0.0:
                concordant[i] = weight - _sum_to(tree, rank[i] - 1) - 0.5 * own[rank[i]]
                total[i] = weight
        for i in range(start, stop):
            if event[i] and control_weight[i] != 0.0:
                _add(tree, rank[i], control_weight[i])
                own[rank[i]] += control_weight[i]
                weight += control_weight[i]
        stop = start


@compiled
def of_controls(time, event, rank, n_ranks, n_early, case_weight, control_weight, concordant, total):
    """Fill in, for every control, the weight of its cases, and of those of a lower rank; equal ranks count half."""
    tree, own = np.zeros(n_ranks + 1), np.zeros(n_ranks + 1)
    weight = 0.0
    start = 0
    while start < n_early:
        stop = start + 1
        while stop < n_early and time[stop] == time[start]:
            stop += 1
        for with_event in (True, False):
            for j in range(start, stop):
                if event[j] == with_event and control_weight[j] != 0.0:
                    concordant[j] = _sum_to(tree, rank[j] - 1) + 0.5 * own[rank[j]]
                    total[j] = weight
            if with_event:
                for i in range(start, stop):
                    if case_weight[i] != 0.0:
                        _add(tree, rank[i], case_weight[i])
                        own[rank[i]] += case_weight[i]
                        weight += case_weight[i]
        start = stop
    below = 0.0
    for place in range(1, n_ranks + 1):
        tree[place] = below + 0.5 * own[place]
        below += own[place]
    for j in range(n_early, time.size):
        if control_weight[j] != 0.0:
            concordant[j] = tree[rank[j]]
            total[j] = weight


@compiled
def area(order, survival, event, weight, influence):
    """Return the weighted AUC, and fill in influences (see `AUC`); survival ascends in the order."""
    n = order.size
    # weights of controls as negative ones: what lies far apart in memory is asked for once
    signed = np.empty(n)
    for i in range(n):
        signed[i] = weight[i] if event[i] else -weight[i]
    cases, controls, wrong = 0.0, 0.0, 0.0
    start = 0
    while start < n:
        own_cases, own_controls, stop, value = 0.0, 0.0, start, survival[order[start]]
        while stop < n and survival[order[stop]] == value:
            own = signed[order[stop]]
            own_cases += max(own, 0.0)
            own_controls += max(-own, 0.0)
            stop += 1
        # the weight of the controls below and of the cases below; of those at the same place, half
        of_case, of_control = controls + 0.5 * own_controls, cases + 0.5 * own_cases
        for place in range(start, stop):
            i = order[place]
            influence[i] = of_case if signed[i] > 0.0 else of_control
        wrong += own_cases * of_case
        cases += own_cases
        controls += own_controls
        start = stop
    found = 1.0 - wrong / (cases * controls)
    for i in range(n):
        if event[i]:
            influence[i] = weight[i] * (1.0 - influence[i] / controls - found) / cases
        else:
            influence[i] = weight[i] * (influence[i] / cases - found) / controls
    return found

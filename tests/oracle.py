"""The scores, written down once more as the paper states them: one individual, one time, one branch at a time.

Slow on purpose, and free of everything the library does to be fast. Nothing here imports the library.
"""

import math
from itertools import pairwise


def survival_at(grid, row, t, between, beyond="nan"):
    """Read one predicted curve at t: S(0) = 1, then from grid point to grid point."""
    if t > grid[-1]:
        return float(row[-1]) if beyond == "hold" else math.nan
    known_times, known_values = list(grid), [float(p) for p in row]
    if known_times[0] > 0:
        known_times, known_values = [0.0, *known_times], [1.0, *known_values]
    for k, time in enumerate(known_times):
        if time == t:
            return known_values[k]
    k = max(k for k, time in enumerate(known_times) if time < t)
    left, right = known_values[k], known_values[k + 1]
    share = (t - known_times[k]) / (known_times[k + 1] - known_times[k])
    if between == "step":
        return left
    if between == "linear":
        return left + share * (right - left)
    if left == 0 or right == 0:  # log-linear towards zero is zero at once
        return 0.0
    return math.exp((1 - share) * math.log(left) + share * math.log(right))


def survival_before(grid, row, t, between, beyond="nan"):
    """Left limit of one curve: only steps jump, and nothing has happened before time 0."""
    if t == 0:
        return 1.0
    if between != "step":
        return survival_at(grid, row, t, between, beyond)
    if t > grid[-1] and beyond == "nan":
        return math.nan
    earlier = [float(p) for time, p in zip(grid, row, strict=True) if time < t]
    return earlier[-1] if earlier else 1.0


def kaplan_meier_censoring(time, event):
    """Return two functions, G(t) and G(t-): events leave the risk set before those censored at the same time."""
    jumps = []
    value = 1.0
    for s in sorted(set(time)):
        at_risk = sum(1 for t in time if t >= s) - sum(1 for t, d in zip(time, event, strict=True) if t == s and d)
        censored = sum(1 for t, d in zip(time, event, strict=True) if t == s and not d)
        if censored:
            value *= (at_risk - censored) / at_risk
            jumps.append((s, value))

    def at(t):
        return next((v for s, v in reversed(jumps) if s <= t), 1.0)

    def before(t):
        return next((v for s, v in reversed(jumps) if s < t), 1.0)

    return at, before


def loss(name, event_free, pi, epsilon=1e-7):
    if name == "brier":
        return (1 - pi) ** 2 if event_free else pi**2
    pi = min(max(pi, epsilon), 1 - epsilon)
    return -math.log(pi) if event_free else -math.log(1 - pi)


def divide(total, by):
    return math.nan if by == 0 else total / by


def uncensored(name, time, event, pi):
    """eq:full_bs at one t, for (t, [pi_i(t)]); whoever has no event at `time` is event-free until then."""

    def at(t):
        total = 0.0
        for T, D, p in zip(time, event, pi(t), strict=True):
            total += loss(name, not (D and t >= T), p)
        return divide(total, len(time))

    return at


def administrative(name, time, event, censoring_time, pi):
    """eq:bs_admin: the sum over those with C* >= t, divided by their number."""

    def at(t):
        total, number = 0.0, 0
        for T, D, C, p in zip(time, event, censoring_time, pi(t), strict=True):
            if t <= C:
                star_after_t = not (D and t >= T)  # 1{T* > t}; censored at C* >= t means T* > C* >= t
                total += loss(name, star_after_t, p)
                number += 1
        return divide(total, number)

    return at


def ipcw(name, time, event, pi, G, G_before, max_weight=math.inf, normalize="weights"):
    """eq:bs_ipcw, or eq:bs_ipcw_n with normalize="n"; G(i, t) and G_before(i, t) are survival and left limit."""

    def at(t):
        total, weights = 0.0, 0.0
        for i, (T, D, p) in enumerate(zip(time, event, pi(t), strict=True)):
            if t >= T and D:
                probability, event_free = G_before(i, T), False
            elif t < T:
                probability, event_free = G(i, t), True
            else:
                continue
            if probability == 0 and math.isinf(max_weight):
                return math.nan
            weight = max_weight if probability == 0 else min(1 / probability, max_weight)
            total += weight * loss(name, event_free, p)
            weights += weight
        return divide(total, weights if normalize == "weights" else len(time) if weights else 0)

    return at


def integral(times, values, lower, upper):
    """Integrate a piecewise linear curve by cutting it at every knot and at both limits."""

    def value(t):
        for a, b, u, v in zip(times[:-1], times[1:], values[:-1], values[1:], strict=True):
            if a <= t <= b:
                return u + (t - a) / (b - a) * (v - u)
        raise ValueError(t)

    knots = [lower, *(t for t in times if lower < t < upper), upper]
    return sum((b - a) * (value(a) + value(b)) / 2 for a, b in pairwise(knots))

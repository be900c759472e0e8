"""The scores, written down once more as the paper states them: one individual, one time, one branch at a time.

Slow on purpose, and free of everything the library does to be fast. Nothing here imports the library.
"""

import math
from itertools import pairwise, product


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


def product_limit(time, leaves, mass=None):
    """Return two functions, G(t) and G(t-): whoever does not leave so leaves the risk set first at the same time.

    Individual i counts ``mass[i]`` times, for any number, also a complex one: so that derivatives can be taken.
    """
    mass = [1.0] * len(time) if mass is None else mass
    jumps = []
    value = 1.0
    for s in sorted({t for t, gone in zip(time, leaves, strict=True) if gone}):
        exits = sum(p for t, gone, p in zip(time, leaves, mass, strict=True) if t == s and gone)
        at_risk = exits + sum(p for t, p in zip(time, mass, strict=True) if t > s)
        value = value * ((at_risk - exits) / at_risk)
        jumps.append((s, value))

    def at(t):
        return next((v for s, v in reversed(jumps) if s <= t), 1.0)

    def before(t):
        return next((v for s, v in reversed(jumps) if s < t), 1.0)

    return at, before


def inverse(probability, cap=math.inf):
    """Return 1/G, at most `cap`; None where it is infinite."""
    if probability.real == 0:
        return None if math.isinf(cap) else cap
    weight = 1 / probability
    return cap if weight.real > cap else weight


def only_events_left(time, left, t):
    """Whether the last of all left without event, so that nobody is event-free any more from then on."""
    last = max(time)
    return t >= last and any(gone for T, gone in zip(time, left, strict=True) if last == T)


# Weights: for a time t, a list of (weight, whether event-free) for everybody, (0, None) for those not counted, and how
# many the score speaks for; None where there is no score.


def weights_uncensored(time, event, t):
    """eq:full_bs; whoever has no event at `time` is event-free until then."""
    return [(1.0, not (D and t >= T)) for T, D in zip(time, event, strict=True)], [True] * len(time)


def weights_ipcw(time, event, t, G, G_before, cap=math.inf):
    """eq:bs_ipcw; G(i, t) and G_before(i, t) are survival and left limit."""
    if only_events_left(time, [not D for D in event], t):
        return None
    found = []
    for i, (T, D) in enumerate(zip(time, event, strict=True)):
        if t >= T and D:
            pair = inverse(G_before(i, T), cap), False
        elif t < T:
            pair = inverse(G(i, t), cap), True
        else:
            pair = 0.0, None
        if pair[0] is None:
            return None
        found.append(pair)
    return found, [True] * len(time)


def weights_administrative(
    time, event, end, t, Gd=None, Gd_before=None, cap=math.inf, speaks_for=None, population=None
):
    """eq:bs_admin, and with drop-outs weighted by 1/Gd: whoever is censored at exactly C* = t is event-free then.

    `speaks_for(i, t)` says whether i belongs to those for whom the score speaks, by default C* >= t; `population(i, t)`
    is the probability by which weights are divided.
    """
    left = [not D and T < C for T, D, C in zip(time, event, end, strict=True)]
    if Gd is None or not any(left):
        Gd = Gd_before = lambda i, t: 1.0
    if any(left) and only_events_left(time, left, t):
        return None
    found, inside = [], []
    for i, (T, D, C) in enumerate(zip(time, event, end, strict=True)):
        belongs = t <= C and (speaks_for is None or speaks_for(i, t))
        inside.append(belongs)
        if not belongs:
            pair = 0.0, None
        elif T <= t and D:
            pair = inverse(Gd_before(i, T), cap), False
        elif T > t:
            pair = inverse(Gd(i, t), cap), True
        elif T == t == C:
            pair = inverse(Gd_before(i, t), cap), True
        else:  # dropped out
            pair = 0.0, None
        if pair[0] is None:
            return None
        if population is not None and pair[1] is not None:
            if population(i, t) == 0:
                return None
            pair = pair[0] / population(i, t), pair[1]
        found.append(pair)
    return found, inside


# Metrics of such weights


def loss(name, event_free, pi, epsilon=1e-7):
    if name == "brier":
        return (1 - pi) ** 2 if event_free else pi**2
    pi = min(max(pi, epsilon), 1 - epsilon)
    return -math.log(pi) if event_free else -math.log(1 - pi)


def mean_loss(name, weighted, pi, mass=None, *, by_n=False):
    """The weighted mean of the losses; individual i counts ``mass[i]`` times."""
    if weighted is None:
        return math.nan
    pairs, inside = weighted
    mass = [1.0] * len(pairs) if mass is None else mass
    total = weights = 0.0
    for (weight, event_free), p, m in zip(pairs, pi, mass, strict=True):
        if event_free is not None:
            total = total + m * weight * loss(name, event_free, p)
            weights = weights + m * weight
    if weights == 0:
        return math.nan
    return total / (sum(m for m, belongs in zip(mass, inside, strict=True) if belongs) if by_n else weights)


def auc(weighted, pi, mass=None):
    """All pairs of one with event and one without."""
    if weighted is None or any(math.isnan(p) for p in pi):
        return math.nan
    pairs, _ = weighted
    mass = [1.0] * len(pairs) if mass is None else mass
    people = [(m * w, free, p) for (w, free), p, m in zip(pairs, pi, mass, strict=True) if free is not None]
    total = both = 0.0
    for w, free, p in people:
        for v, other_free, r in people:
            if not free and other_free:
                total = total + w * v * (1.0 if p < r else 0.5 if p == r else 0.0)
                both = both + w * v
    return math.nan if both == 0 else total / both


def metric(name, weighted, pi, mass=None, *, by_n=False):
    return auc(weighted, pi, mass) if name == "auc" else mean_loss(name, weighted, pi, mass, by_n=by_n)


def bounds(name, time, event, end, t, pis, weigh=None):
    """Every combination of statuses of the lost at t: the least and the most of the combination `weigh` of models."""
    lost = [i for i, (T, D, C) in enumerate(zip(time, event, end, strict=True)) if not D and T < t <= C]
    values = []
    for statuses in product([True, False], repeat=len(lost)):
        known = dict(zip(lost, statuses, strict=True))
        scores = []
        for pi in pis:
            pairs = [
                (1.0, known.get(i, not (D and T <= t))) if t <= C else (0.0, None)
                for i, (T, D, C) in enumerate(zip(time, event, end, strict=True))
            ]
            scores.append(mean_loss(name, (pairs, [t <= C for C in end]), pi))
        values.append(sum(w * s for w, s in zip(weigh or [1.0], scores, strict=True)))
    return min(values), max(values)


def integral(times, values, lower, upper):
    """Integrate a piecewise linear curve by cutting it at every knot and at both limits."""

    def value(t):
        for a, b, u, v in zip(times[:-1], times[1:], values[:-1], values[1:], strict=True):
            if a <= t <= b:
                return u + (t - a) / (b - a) * (v - u)
        raise ValueError(t)

    knots = [lower, *(t for t in times if lower < t < upper), upper]
    return sum((b - a) * (value(a) + value(b)) / 2 for a, b in pairwise(knots))

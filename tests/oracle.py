"""The scores, written down once more as the paper states them: one individual, one time, one branch at a time.

Slow on purpose, and free of everything the library does to be fast. Nothing here imports the library.
"""

import cmath
import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
from scipy.optimize import linprog, minimize


def survival_at(grid, row, t, interpolation, extrapolation="nan"):
    """Read one predicted curve at t: S(0) = 1, then from grid point to grid point."""
    if t > grid[-1]:
        return float(row[-1]) if extrapolation == "hold" else math.nan
    known_times, known_values = list(grid), [float(p) for p in row]
    if known_times[0] > 0:
        known_times, known_values = [0.0, *known_times], [1.0, *known_values]
    for k, time in enumerate(known_times):
        if time == t:
            return known_values[k]
    k = max(k for k, time in enumerate(known_times) if time < t)
    left, right = known_values[k], known_values[k + 1]
    share = (t - known_times[k]) / (known_times[k + 1] - known_times[k])
    if interpolation == "step":
        return left
    if interpolation == "linear":
        return left + share * (right - left)
    if left == 0 or right == 0:  # log-linear towards zero is zero at once
        return 0.0
    return math.exp((1 - share) * math.log(left) + share * math.log(right))


def survival_before(grid, row, t, interpolation, extrapolation="nan"):
    """Left limit of one curve: only steps jump, and nothing has happened before time 0."""
    if t == 0:
        return 1.0
    if interpolation != "step":
        return survival_at(grid, row, t, interpolation, extrapolation)
    if t > grid[-1] and extrapolation == "nan":
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


def stratified_product_limit(time, leaves, strata, of_scored, mass=None):
    """Return G(i, t) and G(i, t-) of each scored individual: the product limit of those in its stratum alone.

    `strata` are those of the individuals that it is fitted to, `of_scored` those of the scored ones.
    """
    mass = [1.0] * len(time) if mass is None else mass
    curves = {}
    for label in set(of_scored):
        inside = [j for j, other in enumerate(strata) if other == label]
        curves[label] = product_limit(*([some[j] for j in inside] for some in (time, leaves, mass)))
    return (lambda i, t: curves[of_scored[i]][0](t)), (lambda i, t: curves[of_scored[i]][1](t))


def only_events_left_somewhere(time, left, t, strata=None):
    """Whether that is so in some stratum, whose event-free nobody can stand for."""
    strata = [0] * len(time) if strata is None else strata
    return any(
        only_events_left(
            *([value for value, k in zip(some, strata, strict=True) if k == label] for some in (time, left)), t
        )
        for label in set(strata)
    )


# Weights: for a time t, a list of (weight, whether event-free) for everybody, (0, None) for those not counted, and how
# many the score speaks for; None where there is no score.


def weights_uncensored(time, event, t):
    """eq:full_bs; whoever has no event at `time` is event-free until then."""
    return [(1.0, not (D and t >= T)) for T, D in zip(time, event, strict=True)], [True] * len(time)


def weights_ipcw(time, event, t, G, G_before, cap=math.inf, strata=None):
    """eq:bs_ipcw; G(i, t) and G_before(i, t) are survival and left limit."""
    if only_events_left_somewhere(time, [not D for D in event], t, strata):
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
    time, event, end, t, Gd=None, Gd_before=None, cap=math.inf, eligible=None, population=None, strata=None
):
    """eq:bs_admin, and with drop-outs weighted by 1/Gd: whoever is censored at exactly C* = t is event-free then.

    `eligible(i, t)` says whether i belongs to the population of the score, by default C* >= t; `population(i, t)`
    is the probability by which weights are divided.
    """
    left = [not D and T < C for T, D, C in zip(time, event, end, strict=True)]
    if Gd is None or not any(left):
        Gd = Gd_before = lambda i, t: 1.0
    if any(left) and only_events_left_somewhere(time, left, t, strata):
        return None
    found, inside = [], []
    for i, (T, D, C) in enumerate(zip(time, event, end, strict=True)):
        belongs = t <= C and (eligible is None or eligible(i, t))
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


# Projected statuses: the second of a pair is then the probability of being event-free


def event_free_share(time, event, t, mass=None):
    """Return the Kaplan-Meier estimate at t; events come first at ties."""
    mass = [1.0] * len(time) if mass is None else mass
    share = 1.0
    for s in sorted({T for T, D in zip(time, event, strict=True) if D and t >= T}):
        exits = sum(m for T, D, m in zip(time, event, mass, strict=True) if D and s == T)
        at_risk = sum(m for T, m in zip(time, mass, strict=True) if s <= T)
        share = share * ((at_risk - exits) / at_risk)
    return share


def weights_projected(time, event, t, share, theta=1.0, min_followed=1, stays=None):
    """Everybody; whoever is censored at c < t is event-free with probability (share(i, t) / share(i, c))**theta.

    Or with `stays(i, c, t)`, where that is given.
    """
    followed = sum(1 for T, D in zip(time, event, strict=True) if t < T or (t == T and not D))
    if followed < min_followed and any(t > T and not D for T, D in zip(time, event, strict=True)):
        return None
    found = []
    for i, (T, D) in enumerate(zip(time, event, strict=True)):
        if t >= T and D:
            found.append((1.0, False))
        elif t <= T:
            found.append((1.0, True))
        elif stays is not None:
            found.append((1.0, stays(i, T, t)))
        else:
            found.append((1.0, (share(i, t) / share(i, T)) ** theta if share(i, T) != 0 else 0.0))
    return found, [True] * len(time)


def stratified_share(time, event, strata, mass=None):
    """Return share(i, t): the Kaplan-Meier estimate of the stratum of i."""
    mass, known = [1.0] * len(time) if mass is None else mass, {}

    def share(i, t):
        if (strata[i], t) not in known:
            inside = [j for j, label in enumerate(strata) if label == strata[i]]
            known[strata[i], t] = event_free_share(
                *([some[j] for j in inside] for some in (time, event)), t, [mass[j] for j in inside]
            )
        return known[strata[i], t]

    return share


def stays_without(time, of_interest, others, strata, mass=None, theta=1.0):
    """Return stays(i, c, t): of one event-free at c, the probabilities of no event of interest up to t, and of none.

    Jump by jump, among those of the stratum; the hazard of the cause of interest counts theta times.
    """
    mass, known = [1.0] * len(time) if mass is None else mass, {}
    jumps = sorted({T for T, D, E in zip(time, of_interest, others, strict=True) if D or E})

    def numbers(label, s):
        if (label, s) not in known:
            inside = [j for j, other in enumerate(strata) if other == label]
            a, b = (sum(mass[j] for j in inside if had[j] and time[j] == s) for had in (of_interest, others))
            known[label, s] = a, b, sum(mass[j] for j in inside if time[j] >= s)
        return known[label, s]

    def stays(i, c, t):
        free, had = 1.0, 0.0
        for s in (s for s in jumps if c < s <= t):
            a, b, at_risk = numbers(strata[i], s)
            if theta * a + b == 0:
                continue
            left = at_risk - a - b
            factor = (left / at_risk) ** ((theta * a + b) / (a + b)) if left != 0 else 0.0
            had = had + free * (1 - factor) * theta * a / (theta * a + b)
            free = free * factor
        return 1 - had, free

    return stays


def of_cause(weighted, of_interest):
    """Statuses of one cause: who had an event of another one is without that of interest from then on."""
    if weighted is None:
        return None
    pairs = [
        (weight, True if free is False and not own else free)
        for (weight, free), own in zip(weighted[0], of_interest, strict=True)
    ]
    return pairs, weighted[1]


def scored_times(time, event, times, min_followed=1):
    """Return the times that have a projected score: enough are followed event-free, or nobody is hidden."""
    found = []
    for t in times:
        if weights_projected(time, event, t, lambda i, t: 1.0, min_followed=min_followed) is None:
            break
        found.append(t)
    return found


def rank_strata(time, event, end, times, models, min_followed=1):
    """Return strata by the ranks of predictions: `models` has for each model a function of time that returns all.

    The ranks of several models are averaged.
    """
    scored = scored_times(time, event, times, min_followed) or list(times[:1])
    events = sum(1 for T, D in zip(time, event, strict=True) if D and scored[-1] >= T)
    followed = sum(1 for T, D in zip(time, event, strict=True) if scored[-1] < T or (scored[-1] == T and not D))
    return ranked(end, scored, models, min(max(min(events, followed) // 5, 1), 10))


def dropout_strata(time, event, end, times, predicted, min_followed=20):
    """Return strata by the ranks of predictions, for dropping out: none whose last left, unless the last of all did."""
    left = [not D and T < C for T, D, C in zip(time, event, end, strict=True)]

    def followed(t):
        return sum(1 for T, D in zip(time, event, strict=True) if t < T or (t == T and not D))

    scored = [t for t in times if followed(t) >= min_followed] or list(times[:1])
    lost = sum(1 for T, gone in zip(time, left, strict=True) if gone and scored[-1] > T)
    strata = ranked(end, scored, [predicted], min(max(min(lost, followed(scored[-1])) // 5, 1), 10))

    def ends_early(label):
        inside = [i for i, own in enumerate(strata) if own == label]
        some = [time[i] for i in inside], [left[i] for i in inside]
        return any(only_events_left(*some, t) and not only_events_left(time, left, t) for t in times)

    for label in sorted(set(strata))[:-1]:
        if ends_early(label):
            after = min(other for other in strata if other > label)
            strata = [after if own == label else own for own in strata]
    while len(set(strata)) > 1 and ends_early(max(strata)):
        last = max(strata)
        before = max(other for other in strata if other < last)
        strata = [before if own == last else own for own in strata]
    return strata


def ranked(end, scored, models, k):
    """Return k strata by ranks among neighbours in C*, averaged over models and at most five of the times."""
    if len(scored) > 5:
        scored = [scored[round(j * (len(scored) - 1) / 4)] for j in range(5)]
    n = len(models[0](scored[0]))
    parts = min(max(n // 100, 1), 40)
    group = [0] * n if end is None else [sum(1 for other in end if other < own) * parts // n for own in end]

    def ranks(values):
        found = []
        for i in range(n):
            inside = [values[j] for j in range(n) if group[j] == group[i]]
            below, at = (sum(1 for v in inside if v < values[i]), sum(1 for v in inside if v == values[i]))
            found.append(Fraction(2 * below + at, 2 * len(inside)))
        return found

    every = [ranks(predicted(t)) for predicted in models for t in scored]
    return [int(k * rank) for rank in ranks([sum(of_one) for of_one in zip(*every, strict=True)])]


def whole(weighted):
    """Return weights as whole statuses of whom, (i, weight, whether event-free): a fraction is two of them."""
    found = []
    for i, (weight, free) in enumerate(weighted[0]):
        if free is None:
            continue
        if isinstance(free, (bool, np.bool_)):
            found.append((i, weight, bool(free)))
        else:
            found += [(i, weight * free, True), (i, weight * (1 - free), False)]
    return found


# Metrics of such weights

LOSSES = ("brier", "log")


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
    for i, weight, event_free in whole(weighted):
        total = total + mass[i] * weight * loss(name, event_free, pi[i])
        weights = weights + mass[i] * weight
    if weights == 0:
        return math.nan
    return total / (sum(m for m, belongs in zip(mass, inside, strict=True) if belongs) if by_n else weights)


def auc(weighted, pi, mass=None):
    """All pairs of one with event and one without."""
    if weighted is None or any(math.isnan(p) for p in pi):
        return math.nan
    mass = [1.0] * len(weighted[0]) if mass is None else mass
    people = [(i, mass[i] * w, free, pi[i]) for i, w, free in whole(weighted)]
    total = both = 0.0
    for i, w, free, p in people:
        for j, v, other_free, r in people:
            if i != j and not free and other_free:
                total = total + w * v * (1.0 if p < r else 0.5 if p == r else 0.0)
                both = both + w * v
    return math.nan if both == 0 else total / both


def auc_of_parts(case, control, pi):
    """All pairs of two individuals, each of them a case in part and a control in part."""
    total = both = 0.0
    for i, (w, p) in enumerate(zip(case, pi, strict=True)):
        for j, (v, r) in enumerate(zip(control, pi, strict=True)):
            if i != j:
                total = total + w * v * (1.0 if p < r else 0.5 if p == r else 0.0)
                both = both + w * v
    return math.nan if both == 0 else total / both


def counted(weighted, pi, mass=None):
    """Those who are counted: weight times mass, status or its probability, predicted risk."""
    mass = [1.0] * len(weighted[0]) if mass is None else mass
    some = [
        (m * w, 1.0 - free, 1.0 - float(p))
        for (w, free), p, m in zip(weighted[0], pi, mass, strict=True)
        if free is not None and w != 0
    ]
    return tuple(zip(*some, strict=True)) if some else ((), (), ())


def observed_expected(weighted, pi, mass=None):
    total = risks = 0.0
    for w, y, p in zip(*counted(weighted, pi, mass), strict=True):
        total, risks = total + w * y, risks + w * p
    return total / risks if risks != 0 else math.nan


def net_benefit(weighted, pi, mass=None, threshold=0.3):
    total = weights = 0.0
    for w, y, p in zip(*counted(weighted, pi, mass), strict=True):
        weights = weights + w
        if p >= threshold - 1e-7:
            total = total + w * (y - (1 - y) * threshold / (1 - threshold))
    return total / weights if weights != 0 else math.nan


def one_status(event):
    """Whether all had the event, or nobody."""
    total = complex(sum(event)).real
    return total in (0, len(event))


def log_odds(p, epsilon=1e-7):
    p = min(max(p, epsilon), 1 - epsilon)
    return math.log(p) - math.log(1 - p)


def separated(design, event):
    """Whether some combination of columns is nowhere on the wrong side for anybody: then no coefficients are best."""
    # a fraction is of both statuses
    rows = [row for row, y in zip(design, event, strict=True) if y > 0]
    signed = np.array([*rows, *(-row for row, y in zip(design, event, strict=True) if y < 1)])
    found = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=[(-1, 1)] * design.shape[1])
    return -found.fun > 1e-9


@lru_cache(maxsize=1000)
def best_coefficients(columns, event, weight, offset):
    """Maximise the weighted likelihood with SciPy; None where it has no maximum."""
    design, y, w, known = np.array(columns).T, np.array(event), np.array(weight), np.array(offset)
    if np.linalg.matrix_rank(design) < design.shape[1] or separated(design, event):
        return None

    def minus_likelihood(beta):
        eta = known + design @ beta
        return -np.sum(w * (y * eta - np.logaddexp(0, eta)))

    def gradient(beta):
        return -design.T @ (w * (y - 1 / (1 + np.exp(-known - design @ beta))))

    def hessian(beta):
        mu = 1 / (1 + np.exp(-known - design @ beta))
        return (design * (w * mu * (1 - mu))[:, None]).T @ design

    start = np.zeros(design.shape[1])
    return minimize(minus_likelihood, start, jac=gradient, hess=hessian, method="trust-exact").x


def logistic(columns, event, weight, offset=None):
    """Weighted logistic regression, for complex weights too: from SciPy's answer by Newton's steps."""
    offset = tuple([0.0] * len(event) if offset is None else offset)
    status, real = (tuple(complex(one).real for one in values) for values in (event, weight))
    beta = best_coefficients(tuple(map(tuple, columns)), status, real, offset)
    if beta is None:
        return None
    design, y, w = np.array(columns).T, np.array(event), np.array(weight, dtype=complex)
    beta = beta.astype(complex)
    for _ in range(6):
        mu = 1 / (1 + np.exp(-np.array(offset) - design @ beta))
        information = (design * (w * mu * (1 - mu))[:, None]).T @ design
        beta = beta + np.linalg.solve(information, design.T @ (w * (y - mu)))
    return beta


def slope(weighted, pi, mass=None):
    weight, event, risk = counted(weighted, pi, mass)
    x = [log_odds(p) for p in risk]
    if one_status(event) or len(set(x)) < 2:
        return math.nan
    beta = logistic([[1.0] * len(x), x], event, weight)
    return math.nan if beta is None else beta[1]


def in_the_large(weighted, pi, mass=None):
    weight, event, risk = counted(weighted, pi, mass)
    if one_status(event):
        return math.nan
    return logistic([[1.0] * len(risk)], event, weight, [log_odds(p) for p in risk])[0]


def natural_spline(x, knots):
    """Columns of a cubic spline that is straight beyond its outer knots, by the truncated powers of textbooks."""

    def bend(k, value):
        last = knots[-1]
        return (max(value - knots[k], 0) ** 3 - max(value - last, 0) ** 3) / (last - knots[k])

    columns = [[1.0] * len(x)]
    if len(knots) >= 2:
        columns.append(list(x))
        for k in range(len(knots) - 2):
            column = np.array([bend(k, value) - bend(len(knots) - 2, value) for value in x])
            columns.append(list((column - column.mean()) / column.std()))
    return columns


def spline_knots(x, event):
    """Where splines may have their knots, the richest first: five from 100 of each status on, three, a line."""
    distinct = sorted(set(x))
    if len(distinct) == 1:
        return [[]]
    events = complex(sum(event)).real
    rarer = min(events, len(event) - events)
    found = []
    for shares in ([0.05, 0.275, 0.5, 0.725, 0.95], [0.1, 0.5, 0.9])[0 if rarer >= 100 else 1 :]:
        for values in (x, distinct):
            knots = [float(np.quantile(values, share)) for share in shares]
            if len(distinct) >= len(shares) and min(b - a for a, b in pairwise(knots)) > 1e-6 * (
                distinct[-1] - distinct[0]
            ):
                found.append(knots)
                break
    return [*found, [distinct[0], distinct[-1]]]


@lru_cache(maxsize=4000)
def smooth_curve(weight, event, risk):
    """The calibration curve at everybody's risk, by the richest spline that has a best fit; None without any."""
    if one_status(event):
        return None
    x = [log_odds(p) for p in risk]
    for knots in spline_knots(x, event):
        columns = natural_spline(x, knots)
        beta = logistic(columns, event, weight)
        if beta is not None:
            return 1 / (1 + np.exp(-np.array(columns).T @ beta))
    return None


def curve_distance(name, weighted, pi, mass=None):
    """Distances of the curve to the predictions: mean square (with its bias), mean, and quantiles.

    A quantile of finitely many distances does not move with their masses. The derivative that it stands for is that of
    the distances around it, and of the share below it divided by the density: both enter as imaginary parts.
    """
    weight, event, risk = counted(weighted, pi, mass)
    curve = smooth_curve(weight, event, risk)
    if curve is None:
        return math.nan
    difference = [c - p for c, p in zip(curve, risk, strict=True)]
    distance = [d if d.real >= 0 else -d for d in difference]
    total = sum(weight)
    if name == "miscalibration":
        return sum(w * d**2 for w, d in zip(weight, difference, strict=True)) / total
    if name == "ici":
        return sum(w * d for w, d in zip(weight, distance, strict=True)) / total
    share = {"e50": 0.5, "e90": 0.9}[name]
    value = quantile(distance, weight, share)
    if not any(isinstance(w, complex) for w in weight):
        return value
    shares = [(w / total).real for w in weight]
    width = 4 * share * (1 - share) * sum(s**2 for s in shares) ** (1 / 3)
    first, last = max(share - width, 0), min(share + width, 1)
    low, high = quantile(distance, weight, first), quantile(distance, weight, last)
    near = [(s, d) for s, d in zip(shares, distance, strict=True) if low <= d.real <= high]
    moved = sum(s * d for s, d in near) / sum(s for s, _ in near)
    sparsity = (high - low) / (last - first)
    for s, w, d in zip(shares, weight, distance, strict=True):
        own = s * ((share if d.real > value else share - 1) - (share - reached(distance, shares, value))) * sparsity
        moved = moved + own * cmath.log(w)
    return value + 1j * moved.imag


def reached(distance, shares, value):
    return sum(s for s, d in zip(shares, distance, strict=True) if d.real <= value)


def quantile(distance, weight, share):
    """The least distance that a share of the weights does not exceed."""
    total = sum(complex(w).real for w in weight)
    for value in sorted(d.real for d in distance):
        if reached(distance, [complex(w).real for w in weight], value) >= share * total * (1 - 1e-12):
            return value
    raise ValueError(share)


JOINT = {"auc": auc, "oe": observed_expected, "slope": slope, "in_the_large": in_the_large, "net_benefit": net_benefit}
DISTANCES = ("miscalibration", "ici", "e50", "e90")


def metric(name, weighted, pi, mass=None, *, by_n=False):
    """Any metric; that of miscalibration with its bias."""
    if name in LOSSES:
        return mean_loss(name, weighted, pi, mass, by_n=by_n)
    if weighted is None or any(math.isnan(p) for p in pi):
        return math.nan
    if name in DISTANCES:
        return curve_distance(name, weighted, pi, mass)
    return JOINT[name](weighted, pi, mass)


# Metrics of all that happened up to a time tau. `until` is C* (infinite under IPCW, minus infinity for those left out);
# G(t) and G_before(t) are the curve of being still under observation; individual i counts ``mass[i]`` times.


def concordance(time, event, until, tau, risk, kind, G_before, strata=None, mass=None, others=None):
    """All pairs: `risk(i, s)` is what i is given at the time s of the case.

    Whoever had another event (`others`) never has this one, and is compared as long as it would have been followed.
    """
    n = len(time)
    mass = [1.0] * n if mass is None else mass
    member = [end >= (tau if kind == "cohort" else 0) for end in until]
    strata = [0] * n if strata is None else strata

    def share(k, s):
        """Of the stratum of k, the share that could be followed to s."""
        own = [j for j in range(n) if member[j] and strata[j] == strata[k]]
        return sum(mass[j] for j in own if until[j] >= s) / sum(mass[j] for j in own)

    total = concordant = 0.0
    for i in range(n):
        if not (member[i] and event[i] and time[i] <= tau):
            continue
        if kind != "harrell" and G_before(time[i]).real == 0:
            return math.nan
        if kind in ("pooled", "weighted"):
            for k in range(n):  # every stratum must have somebody who could be followed so far
                if member[k] and share(k, time[i]).real == 0:
                    return math.nan
        for j in range(n):
            end = until[j] if others is not None and others[j] else time[j]
            if not member[j] or not (end > time[i] or (end == time[i] and not event[j])):
                continue
            weight = mass[i] * mass[j]
            if kind != "harrell":
                weight = weight / (G_before(time[i]) * G_before(min(time[i], time[j])))
            if kind in ("pooled", "weighted"):
                weight = weight / (share(i, time[i]) * share(j, time[i]))
            a, b = risk(i, time[i]), risk(j, time[i])
            concordant = concordant + weight * (1.0 if a > b else 0.5 if a == b else 0.0)
            total = total + weight
    return math.nan if total == 0 else concordant / total


def crps(time, event, until, tau, pi, knots, G, G_before, mass=None):
    """Simpson's rule between all times at which anything happens; `pi(i, s)` is linear, or constant, between them."""
    mass = [1.0] * len(time) if mass is None else mass
    cuts = sorted({0.0, tau, *(s for s in [*knots, *time, *until] if 0 < s < tau)})
    if any(G((a + b) / 2).real == 0 for a, b in pairwise(cuts)):
        return math.nan
    total = followed = 0.0
    for i, (T, D, C) in enumerate(zip(time, event, until, strict=True)):
        followed = followed + mass[i] * max(min(C, tau), 0.0)
        for a, b in pairwise(cuts):
            middle = (a + b) / 2
            if middle > C:
                continue
            if middle < T:
                weight, status = 1 / G(middle), 1.0
            elif D:
                weight, status = 1 / G_before(T), 0.0
            else:  # lost
                continue
            # just inside the ends, since step curves jump there
            near = [pi(i, a + (b - a) * share) for share in (0.25, 0.5, 0.75)]
            left, right = 2 * near[0] - near[1], 2 * near[2] - near[1]
            simpson = (b - a) / 6 * sum(w * (status - p) ** 2 for w, p in ((1, left), (4, near[1]), (1, right)))
            total = total + mass[i] * weight * simpson
    return math.nan if followed == 0 else total / followed


def log_score(time, event, until, tau, grid, rows, interpolation, extrapolation, mass=None, epsilon=1e-7):
    """Of each, the density of the event's time, or the survival up to where it was last seen."""
    mass = [1.0] * len(time) if mass is None else mass
    total = number = 0.0
    for i, (T, D, C) in enumerate(zip(time, event, until, strict=True)):
        if C < 0:
            continue
        number = number + mass[i]
        if not (D and T <= tau):
            likelihood = max(survival_at(grid, rows[i], min(T, tau), interpolation, extrapolation), epsilon)
        else:
            knots = [0.0, *(g for g in grid if g > 0)]
            values = [survival_at(grid, rows[i], g, interpolation, extrapolation) for g in knots]
            if T == 0:  # an atom, or the start of the first interval
                left, right, length = (1.0, values[0], 1.0) if grid[0] == 0 else (1.0, values[1], knots[1])
                start = 0.0
            elif T > knots[-1]:
                left, right, length, start = values[-1], values[-1], 1.0, T
            else:
                k = max(k for k, knot in enumerate(knots) if knot < T)
                left, right, length, start = values[k], values[k + 1], knots[k + 1] - knots[k], knots[k]
            likelihood = max(left - right, epsilon)
            if interpolation == "constant-hazard" and left > right > 0:
                hazard = math.log(left / right)
                likelihood = max(hazard * left * math.exp(-hazard * (T - start) / length), epsilon)
            if interpolation != "step":
                likelihood = likelihood / length
        total = total - mass[i] * math.log(likelihood)
    return math.nan if number == 0 else total / number


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

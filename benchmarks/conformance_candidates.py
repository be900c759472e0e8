"""The Brier score under every combination of conventions, one individual after the other.

Slow on purpose, and free of survscore: it is held against the candidates like any other package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.integrate import simpson

from conformance_cases import QUESTIONS, Data

EVENT, FREE = "event", "event-free"
NEXT = "1/G(next time asked for)"

#: What is chosen in each field of `Convention`.
CHOICES: dict[str, tuple[str, ...]] = {
    "event_weight": ("1/G(T-)", "1/G(T)", NEXT, "1/G(t)", "1"),
    "free_weight": ("1/G(t)", "1/G(t-)", "1"),
    "divisor": ("sum of weights", "n", "number counted"),
    "ties": ("event first", "together", "as the rows stand"),
    "censored_at_t": ("unknown", FREE),
    "event_at_t": (EVENT, FREE),
    "source": ("scored data", "training data"),
}


@dataclass(frozen=True)
class Convention:
    """One of the ways in which an IPCW Brier score can be computed.

    Parameters
    ----------
    event_weight, free_weight : str
        Weights of those with event at T, and of those who are event-free at t.
    divisor : str
        Of the weighted sum of losses.
    ties : str
        Who leaves first in G if an event and a censoring share a time.
    censored_at_t, event_at_t : str
        The status at t of those who are censored, or have their event, at exactly t.
    source : str
        On whom G is fitted.
    """

    event_weight: str
    free_weight: str
    divisor: str
    ties: str
    censored_at_t: str
    event_at_t: str
    source: str


def all_conventions() -> Iterator[Convention]:
    """Yield all combinations."""
    names = [field.name for field in fields(Convention)]
    for chosen in product(*(CHOICES[name] for name in names)):
        yield Convention(*chosen)


class CensoringCurve:
    """G, by Kaplan-Meier; individual i counts ``mass[i]`` times, for any number, so that derivatives can be taken."""

    def __init__(self, time: Sequence[float], event: Sequence[int], ties: str, mass: Sequence[Any] | None = None):
        mass = [1.0] * len(time) if mass is None else mass
        people = sorted(zip(time, event, mass, strict=True), key=lambda person: person[0])
        at_risk, value = sum(mass), 1.0
        self.jumps: list[tuple[float, Any]] = []
        for s in sorted(set(time)):
            own = [(D, m) for T, D, m in people if s == T]
            events, censored = (sum(m for D, m in own if kind == D) for kind in (1, 0))
            if ties == "as the rows stand":
                left = at_risk
                for D, m in own:
                    value, left = value * (1 if D else 1 - m / left), left - m
            elif censored:
                value = value * (1 - censored / (at_risk - events if ties == "event first" else at_risk))
            at_risk = at_risk - events - censored
            self.jumps.append((s, value))

    def at(self, t: float) -> Any:
        return next((value for s, value in reversed(self.jumps) if s <= t), 1.0)

    def before(self, t: float) -> Any:
        return next((value for s, value in reversed(self.jumps) if s < t), 1.0)

    def smallest_positive(self) -> float:
        return min((value for _, value in self.jumps if value > 0), default=1.0)


def curve(data: Data, convention: Convention, mass: Sequence[Any] | None = None) -> CensoringCurve:
    """Return G under a convention; `mass` only if it is of the scored data."""
    people = data.train if convention.source == "training data" else (data.time, data.event)
    return CensoringCurve(*people, convention.ties, mass)


def status(T: float, D: int, t: float, convention: Convention) -> str:
    """Return event, event-free, or unknown."""
    if t < T:
        return FREE
    if D:
        return convention.event_at_t if t == T else EVENT
    return convention.censored_at_t if t == T else "unknown"


def probability(T: float, state: str, j: int, times: Sequence[float], G: CensoringCurve, convention: Convention) -> Any:
    """Return the probability whose inverse is the weight at the time with number `j`."""
    t = times[j]
    if state == FREE:
        return {"1/G(t)": G.at(t), "1/G(t-)": G.before(t), "1": 1.0}[convention.free_weight]
    following = next((s for s in times if s > T), times[-1])
    ways = {"1/G(T-)": G.before(T), "1/G(T)": G.at(T), NEXT: G.at(following), "1/G(t)": G.at(t), "1": 1.0}
    return ways[convention.event_weight]


@dataclass(frozen=True, eq=False)
class Term:
    """An individual at one time: weight (infinite where G is zero), squared error, status."""

    weight: Any
    loss: float
    state: str
    mass: Any


def terms(
    data: Data,
    j: int,
    convention: Convention,
    mass: Sequence[Any] | None = None,
    G: CensoringCurve | None = None,
) -> list[Term]:
    """Return everybody at the time with number `j`."""
    G = curve(data, convention, mass) if G is None else G
    t, found = data.times[j], []
    for i, (T, D) in enumerate(zip(data.time, data.event, strict=True)):
        state, pi = status(T, D, t, convention), data.survival[i][j]
        share = 1.0 if state == "unknown" else probability(T, state, j, data.times, G, convention)
        weight = 0.0 if state == "unknown" else math.inf if share == 0 else 1 / share
        loss = {"unknown": 0.0, EVENT: pi**2, FREE: (1 - pi) ** 2}[state]
        found.append(Term(weight, loss, state, 1.0 if mass is None else mass[i]))
    return found


def weighted_mean(people: list[Term], divisor: str) -> Any:
    """Return the score."""
    total = sum(term.mass * term.weight * term.loss for term in people)
    shares = {
        "sum of weights": [term.mass * term.weight for term in people],
        "n": [term.mass for term in people],
        "number counted": [term.mass for term in people if term.state != "unknown"],
    }[divisor]
    return total / sum(shares)


def brier(data: Data, convention: Convention) -> list[float]:
    """Return the score at every time."""
    return [weighted_mean(terms(data, j, convention), convention.divisor) for j in range(len(data.times))]


@cache
def candidate_scores(label: str, convention: Convention) -> tuple[float, ...]:
    """Return `brier` of one of the questions."""
    return tuple(brier(QUESTIONS[label].data, convention))


def standard_errors(data: Data, convention: Convention, *, known: bool) -> list[float]:
    """Return errors from the derivatives of the score by everybody's mass, through G or, if it is known, beside it."""
    n, found = len(data.time), []
    G = curve(data, convention) if known else None
    for j in range(len(data.times)):
        influence = []
        for i in range(n):
            mass = [complex(1.0, 1e-30 if i == k else 0.0) for k in range(n)]
            influence.append(n * weighted_mean(terms(data, j, convention, mass, G), convention.divisor).imag / 1e-30)
        found.append(math.sqrt(sum(value**2 for value in influence) / (n * (n - 1))))
    return found


def martingale_errors(data: Data) -> list[float]:
    """Return errors by the martingale of the Nelson-Aalen estimate, as survscore has them."""
    import survscore as ss

    y, curves = ss.Outcomes(data.time, data.event), ss.SurvivalCurves(data.survival, data.times)
    weighting = ss.IPCW(normalize="n", variance="martingale")
    return ss.brier_score(y, curves, weighting=weighting, times=data.times).se.tolist()


def administrative(data: Data, *, free_at_end: bool, weighted: bool) -> list[float]:
    """Return the administrative score.

    `free_at_end`: whether those with T = t = C* are event-free, or left out; `weighted`: whether drop-outs are weighted
    for, or just left out.
    """
    star = data.censoring_time or []
    dropped = [int(not D and T < C) for T, D, C in zip(data.time, data.event, star, strict=True)]
    G = CensoringCurve(data.time, [1 - gone for gone in dropped], "event first")
    found = []
    for j, t in enumerate(data.times):
        total = weights = 0.0
        for i, (T, D, C) in enumerate(zip(data.time, data.event, star, strict=True)):
            had_event = D and t >= T
            if t > C or not (had_event or t < T or (free_at_end and t == T)):
                continue
            pi, share = data.survival[i][j], (G.before(T) if had_event else G.at(t)) if weighted else 1.0
            total, weights = total + (pi**2 if had_event else (1 - pi) ** 2) / share, weights + 1 / share
        found.append(total / weights)
    return found


def _steps(heights: Sequence[float], times: Sequence[float]) -> float:
    return sum(height * (b - a) for height, (a, b) in zip(heights, pairwise(times), strict=True))


#: What an integrated score may be, of scores at times.
RULES = {
    "trapezoid, divided by the range": lambda scores, times: np.trapezoid(scores, times) / (times[-1] - times[0]),
    "trapezoid, not divided": np.trapezoid,
    "trapezoid, divided by the last time": lambda scores, times: np.trapezoid(scores, times) / times[-1],
    "trapezoid from 0 on": lambda scores, times: np.trapezoid([0, *scores], [0, *times]) / times[-1],
    "Simpson, divided by the range": lambda scores, times: simpson(scores, x=times) / (times[-1] - times[0]),
    "left-hand rule from 0 on": lambda scores, times: _steps(scores[:-1], times) / times[-1],
    "left-hand rule, divided by the range": lambda scores, times: _steps(scores[:-1], times) / (times[-1] - times[0]),
    "right-hand rule, divided by the range": lambda scores, times: _steps(scores[1:], times) / (times[-1] - times[0]),
    "mean of the scores": lambda scores, times: float(np.mean(scores)),
}

"""Every loss and every weighting, with data they accept and the oracle they must agree with.

A new loss or weighting joins all tests in test_common.py by one line here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import oracle
import survscore as ss

LOSSES = {"brier": ss.brier_score, "log": ss.log_loss}


@dataclass(frozen=True)
class Problem:
    """Outcomes, predictions, a second set of curves for G, and evaluation times."""

    y: ss.Outcomes
    curves: ss.SurvivalCurves
    censoring: ss.SurvivalCurves
    training: ss.Outcomes
    times: np.ndarray

    def take(self, rows: Any) -> Problem:
        return Problem(self.y[rows], self.curves[rows], self.censoring[rows], self.training, self.times)

    def pi(self, t: float) -> list[float]:
        c = self.curves
        return [oracle.survival_at(c.times, row, t, c.between, c.beyond) for row in c.probabilities]

    def G(self, i: int, t: float) -> float:
        c = self.censoring
        return oracle.survival_at(c.times, c.probabilities[i], t, c.between, c.beyond)

    def G_before(self, i: int, t: float) -> float:
        c = self.censoring
        return oracle.survival_before(c.times, c.probabilities[i], t, c.between, c.beyond)


@dataclass(frozen=True)
class Case:
    """A weighting: how to ask the library for it, and how the paper defines it."""

    name: str
    weighting: Callable[[Problem], Any]
    expected: Callable[[str, Problem], Callable[[float], float]]
    data: str = "any"  # or "administrative", "uncensored": what the weighting accepts


def _ipcw(name, p, G, G_before, **settings):
    return oracle.ipcw(name, p.y.time, p.y.event, p.pi, G, G_before, **settings)


def _kaplan_meier(source, **settings):
    def expected(name, p):
        fitted_on = source(p)
        at, before = oracle.kaplan_meier_censoring(list(fitted_on.time), list(fitted_on.event))
        score = _ipcw(name, p, lambda i, t: at(t), lambda i, t: before(t), **settings)
        # No G(t) left means that nobody can stand for the event-free, even if nobody is asked to.
        return lambda t: math.nan if at(t) == 0 and "max_weight" not in settings else score(t)

    return expected


def _curves(**settings):
    def expected(name, p):
        score = _ipcw(name, p, p.G, p.G_before, **settings)
        # Where the censoring curves say nothing there is no score, even if nobody is event-free any more.
        return lambda t: math.nan if math.isnan(p.G(0, t)) else score(t)

    return expected


CASES = [
    Case(
        "uncensored",
        lambda p: "uncensored",
        lambda name, p: oracle.uncensored(name, p.y.time, p.y.event, p.pi),
        data="uncensored",
    ),
    Case(
        "administrative",
        lambda p: "administrative",
        lambda name, p: oracle.administrative(name, p.y.time, p.y.event, p.y.censoring_time, p.pi),
        data="administrative",
    ),
    Case("ipcw", lambda p: "ipcw", _kaplan_meier(lambda p: p.y)),
    Case(
        "ipcw / n",
        lambda p: ss.IPCW(normalize="n"),
        _kaplan_meier(lambda p: p.y, normalize="n"),
    ),
    Case(
        "ipcw capped",
        lambda p: ss.IPCW(max_weight=1.5),
        _kaplan_meier(lambda p: p.y, max_weight=1.5),
    ),
    Case("ipcw training", lambda p: ss.IPCW(p.training), _kaplan_meier(lambda p: p.training)),
    Case(
        "ipcw known",
        lambda p: ss.IPCW("known"),
        lambda name, p: _ipcw(name, p, lambda i, t: 1.0, lambda i, t: 1.0),
        data="administrative",
    ),
    Case("ipcw curves", lambda p: ss.IPCW(p.censoring), _curves()),
    Case("ipcw curves capped", lambda p: ss.IPCW(p.censoring, max_weight=3), _curves(max_weight=3)),
    Case("ipcw curves / n", lambda p: ss.IPCW(p.censoring, normalize="n"), _curves(normalize="n")),
    Case(
        "ipcw function",
        lambda p: ss.IPCW(lambda t: np.exp2(-np.asarray(t) / 8)),
        lambda name, p: _ipcw(name, p, lambda i, t: 2.0 ** (-t / 8), lambda i, t: 2.0 ** (-t / 8)),
    ),
]


# Half-integers up to 6 make ties of all kinds: T = t, T = C*, T = t = C*, grid points at each of them.
HALVES = st.integers(0, 12).map(lambda k: k / 2)


@st.composite
def curves_of(draw, n, *, lowest=0.0):
    grid = sorted(draw(st.sets(HALVES, min_size=1, max_size=8)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = st.floats(lowest, 1.0, width=32) | st.sampled_from([lowest, 1.0])
    rows = draw(st.lists(st.lists(values, min_size=len(grid), max_size=len(grid)), min_size=n, max_size=n))
    probabilities = -np.sort(-np.array(rows, dtype=dtype), axis=1)
    between = draw(st.sampled_from(["linear", "step", "constant-hazard"]))
    return ss.SurvivalCurves(probabilities, grid, between, beyond=draw(st.sampled_from(["hold", "nan"])))


@st.composite
def outcomes_of(draw, n, data="any"):
    star = np.array(draw(st.lists(HALVES, min_size=n, max_size=n)))
    end = np.array(draw(st.lists(HALVES, min_size=n, max_size=n)))
    if data == "uncensored":  # without event only where followed to the end
        end = np.full(n, 6.5)
        star = np.where(draw(st.booleans()), star, np.where(star > 4, np.inf, star))
    event = star <= end
    time = np.minimum(star, end)
    if data == "any" and draw(st.booleans()):
        return ss.Outcomes(time, event)
    return ss.Outcomes(time, event, end)


@st.composite
def problems(draw, data="any", min_size=1, max_size=12):
    n = draw(st.integers(min_size, max_size))
    return Problem(
        y=draw(outcomes_of(n, data)),
        curves=draw(curves_of(n)),
        censoring=draw(curves_of(n, lowest=0.0)),
        training=draw(outcomes_of(draw(st.integers(1, 8)))),
        times=np.array(sorted(draw(st.sets(HALVES, min_size=1, max_size=8)))),
    )


def random_problem(n, m, seed=0, dtype=np.float64, same_grid=True):
    """A larger problem, without hypothesis; administrative data, so that every weighting but one accepts it."""
    rng = np.random.default_rng(seed)
    star, end = rng.exponential(60, n).round(1), rng.uniform(1, 100, n).round(1)
    y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    grid = np.linspace(1, 100, m)

    def curves(between):
        rate = rng.gamma(2, 1 / 120, (n, 1))
        return ss.SurvivalCurves(np.exp(-rate * grid).astype(dtype), grid, between, beyond="hold")

    times = grid if same_grid else np.linspace(0, 110, m // 2 + 3)
    return Problem(y, curves("linear"), curves("step"), y[: n // 2], times)

"""Five situations that a report must answer on its first screen, each with outcomes, predictions and options."""

import numpy as np

import survscore as ss

N = 1500
TIMES = np.arange(2.0, 25.0)
GRID = np.arange(1.0, 31.0)


def _study(seed, n=N):
    """Return risks, event times and C* of a study whose data end 25 to 30 months after the first entries."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(-3.2, 0.8, n))
    return rng, rate, rng.exponential(1 / rate), rng.uniform(5.0, 30.0, n)


def _outcomes(event_time, end):
    return ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)


def _curves(rate, factor=1.0):
    return ss.SurvivalCurves(np.exp(-factor * rate[:, None] * GRID), GRID)


def clear_winner():
    """A model that knows the risks against one that mixes them up."""
    rng, rate, event_time, end = _study(1)
    mixed = rate * np.exp(rng.normal(0, 1.0, N))
    return _outcomes(event_time, end), {"old": _curves(mixed), "new": _curves(rate)}


def tie():
    """Two models with equal errors."""
    rng, rate, event_time, end = _study(2)
    noise = rng.normal(0, 0.4, (2, N))
    return _outcomes(event_time, end), {
        name: _curves(rate * np.exp(one)) for name, one in zip("AB", noise, strict=True)
    }


def contradiction():
    """A model that falls to zero after C*, which IPCW prefers to an honest one, and that is worse before C*."""
    _, rate, event_time, end = _study(3)
    seen = end[:, None] > GRID
    fallen = ss.SurvivalCurves(np.exp(-1.35 * rate[:, None] * GRID) * seen, GRID, interpolation="step")
    return _outcomes(event_time, end), {"honest": _curves(rate), "classifier": fallen}


def drop_outs():
    """A clear winner, with some who left before their C*."""
    rng, rate, event_time, end = _study(5)
    mixed = rate * np.exp(rng.normal(0, 1.2, N))
    left = np.where(rng.random(N) < 0.03, rng.uniform(1, 20, N), np.inf)
    seen = np.minimum(np.minimum(event_time, end), left)
    y = ss.Outcomes(seen, (event_time <= end) & (event_time <= left), end)
    return y, {"old": _curves(mixed), "new": _curves(rate)}


def only_ipcw():
    """A clear winner, of data that do not tell C* of those with event."""
    y, models = clear_winner()
    return ss.Outcomes(y.time, y.event), models


SITUATIONS = {one.__name__: one for one in (clear_winner, tie, contradiction, drop_outs, only_ipcw)}


def report_of(name, **options):
    y, models = SITUATIONS[name]()
    asked = {"times": TIMES, "horizons": [6, 12, 18], "unit": "month", "title": name.replace("_", " ").capitalize()}
    asked["weighting"] = "ipcw" if y.censoring_time is None else ["administrative", "ipcw"]
    return ss.report(y, models, **{**asked, **options})

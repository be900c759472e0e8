"""The scores that are asked which model is best."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW, Administrative, Projected, Weighting

ADMINISTRATIVE = "administrative"
PROJECTED = "projected"
KAPLAN_MEIER = "IPCW"
COX = "IPCW, Cox"
#: Projected scores ask for 20, for the sake of their intervals; here it is as many as days need (`data.scoreable`).
FEWEST_EVENT_FREE = 10
#: Larger weights of the Cox model are set to this, since those certain to be censored have no finite ones.
LARGEST_WEIGHT = 100.0
N_TIMES = 300
#: Without it, coefficients have no end where the date of entry puts all censorings in order.
RIDGE = 1.0

#: Makes the weights from the outcomes that are scored, with their dates.
Score = Callable[[Outcomes], Weighting]


def scores(*, by_cause: bool = False) -> dict[str, Score]:
    """Return the scores that can be computed here, by the names they have in tables; the first is the reference.

    A Cox model of censoring is as misleading for causes as it is for events of one kind, and left out there.
    """
    weightings: dict[str, Score] = {
        ADMINISTRATIVE: lambda y: Administrative(),
        PROJECTED: lambda y: Projected(min_followed=FEWEST_EVENT_FREE),
        KAPLAN_MEIER: lambda y: IPCW(),
    }
    return weightings if by_cause or find_spec("sksurv") is None else weightings | {COX: censored_by_entry}


def censored_by_entry(y: Outcomes) -> IPCW:
    """Return IPCW with a Cox model of censoring given the date of entry.

    That is what is advised where censoring depends on covariates. Where follow-up ends on one day the
    date of entry determines the censoring time, and the model says so: G is near one before, near zero after it.
    """
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    if y.dates is None:
        raise TypeError("the outcomes of data sets have dates")
    entry = (y.dates.start - y.dates.start.min()) / np.timedelta64(1, "D")
    scaled = ((entry - entry.mean()) / max(float(entry.std()), 1e-9))[:, None]
    censored = Outcomes(y.time, ~y.event)
    if not censored.event.any():
        return IPCW()
    grid = np.unique(np.quantile(y.time, np.linspace(0.0, 1.0, N_TIMES + 1), method="lower"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of its own baseline, whose sums overflow
        risk = scaled @ CoxPHSurvivalAnalysis(alpha=RIDGE).fit(scaled, censored.to_structured()).coef_
    hazard = risk[:, None] + _log_baseline(censored, risk, grid)
    survival = np.exp(-np.exp(np.minimum(hazard, 50.0)))
    return IPCW(SurvivalCurves(survival, grid, interpolation="step", extrapolation="hold"), max_weight=LARGEST_WEIGHT)


def _log_baseline(y: Outcomes, risk: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of Breslow's cumulative baseline hazard.

    Risks differ by hundreds on the log scale where the date of entry tells the time, so all sums are of logarithms.
    """
    order = np.argsort(y.time)
    at_risk = np.logaddexp.accumulate(risk[order][::-1])[::-1]
    events = np.sort(y.time[y.event])
    steps = -at_risk[np.searchsorted(y.time[order], events)]
    total = np.concatenate([[-np.inf], np.logaddexp.accumulate(steps)])
    return np.asarray(total[np.searchsorted(events, grid, side="right")])

"""One horizon at a time: whose status is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_times
from survscore.engine.inputs import check_outcomes
from survscore.outcomes import Outcomes
from survscore.weighting import Administrative
from survscore.weighting.base import check_censoring_time
from survscore.weighting.interval_weights import TimeIndex


class Horizon(NamedTuple):
    """Those whose status at a horizon is known from their censoring time, that status, and their weights."""

    rows: NDArray[np.intp]
    event: NDArray[np.bool_]
    weight: NDArray[np.float64]


def at_horizon(y: Outcomes, time: float, *, weighting: Administrative | None = None) -> Horizon:
    r"""Return those with :math:`C^*_i \ge t` whose status at t is known, that status, and their weights.

    Whether the status is known does not depend on it, so with these weights they represent all individuals with such
    censoring times: any metric for binary outcomes, computed on them, is its administrative version.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    time : float
        The horizon t.
    weighting : Administrative, optional
        How to weight for drop-outs; by default by Kaplan-Meier.

    Returns
    -------
    rows : ndarray of int
        Positions of these individuals.
    event : ndarray of bool
        Whether :math:`T^*_i \le t`.
    weight : ndarray of float
        One, without drop-outs.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 2], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 2])
    >>> ss.at_horizon(y, 3)
    Horizon(rows=array([0, 1, 2]), event=array([ True, False, False]), weight=array([1., 1., 1.]))
    """
    check_outcomes(y)
    y = y.numpy()
    end = check_censoring_time(y, "at_horizon", "IPCW scores need no censoring times")
    times = as_times([time], "time")
    stretches = (Administrative() if weighting is None else weighting).prepare(TimeIndex(y, times))
    early, late = stretches.cells(times)
    weight = (early + late)[:, 0]
    rows = np.flatnonzero(weight)
    if rows.size == 0 or not np.isfinite(weight).all():
        raise InputError(f"nobody's status is known at {time:g}: the largest censoring time is {end.max():g}")
    return Horizon(rows, np.asarray(y.event[rows] & (y.time[rows] <= times[0])), weight[rows])

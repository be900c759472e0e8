"""One horizon at a time: whose status is known, and whether probabilities are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._isotonic import isotonic_fit
from survscore._validation import InputError, as_times, check_level, check_whole
from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import check_outcomes, check_predictions
from survscore.outcomes import Outcomes
from survscore.stretches import TimeIndex
from survscore.weighting import Administrative, check_censoring_time, refuse_drop_outs

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import CalibrationDisplay


BAND_POINTS = 512


class Horizon(NamedTuple):
    """Those whose status at a horizon is known from their censoring time, that status, and their weights."""

    rows: NDArray[np.intp]
    event: NDArray[np.bool_]
    weight: NDArray[np.float64]


def at_horizon(y: Outcomes, t: float, *, weighting: Administrative | None = None) -> Horizon:
    r"""Return those with :math:`C^*_i \ge t` whose status at t is known, that status, and their weights.

    Whether the status is known does not depend on it, so with these weights they are a fair sample of all with such
    censoring times: any metric for binary outcomes, computed on them, is its administrative version.

    Parameters
    ----------
    y : Outcomes
        With censoring times.
    t : float
        The horizon.
    weighting : Administrative, optional
        How to weight for drop-outs; by default by Kaplan-Meier.

    Returns
    -------
    rows : ndarray of int
        Positions of these individuals.
    event : ndarray of bool
        Whether :math:`T^*_i \le t`.
    weight : ndarray of float
        One, where nobody dropped out.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 2], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 2])
    >>> ss.at_horizon(y, 3)
    Horizon(rows=array([0, 1, 2]), event=array([ True, False, False]), weight=array([1., 1., 1.]))
    """
    check_outcomes(y)
    end = check_censoring_time(y, "at_horizon", "IPCW scores need no censoring times")
    times = as_times([t], "t")
    stretches = (Administrative() if weighting is None else weighting).prepare(TimeIndex(y, times))
    early, late = stretches.cells(times)
    weight = (early + late)[:, 0]
    rows = np.flatnonzero(weight)
    if rows.size == 0 or not np.isfinite(weight).all():
        raise InputError(f"nobody's status is known at {t:g}: the largest censoring time is {end.max():g}")
    return Horizon(rows, np.asarray(y.event[rows] & (y.time[rows] <= times[0])), weight[rows])


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    r"""Reliability of predictions at one horizon, and what their Brier score is made of.

    Attributes
    ----------
    time : float
        The horizon.
    predicted : ndarray
        The distinct predicted survival probabilities, increasing.
    observed : ndarray
        The share that is event-free, as the best increasing function of the prediction (isotonic regression).
    lower, upper : ndarray
        Where `observed` would lie, at `level`, if the predictions were right (consistency band).
    counts : ndarray
        Individuals per distinct prediction.
    score, miscalibration, discrimination, uncertainty : float
        Administrative Brier score = miscalibration - discrimination + uncertainty.
    n, level
        The number of individuals with known status, and the level of the band.
    """

    time: float
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    counts: NDArray[np.int64]
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    n: int
    level: float

    def to_frame(self) -> pd.DataFrame:
        """Return a table: predicted, observed, lower, upper, count."""
        import pandas as pd

        return pd.DataFrame(
            {
                "predicted": self.predicted,
                "observed": self.observed,
                "lower": self.lower,
                "upper": self.upper,
                "count": self.counts,
            }
        )

    def plot(self, ax: Any = None, **line: Any) -> CalibrationDisplay:
        """Draw the reliability curve with its consistency band."""
        from survscore.plots import CalibrationDisplay

        return CalibrationDisplay(self).plot(ax=ax, **line)

    def __repr__(self) -> str:
        return (
            f"Calibration(at {self.time:g}, n={self.n}, Brier {self.score:.4g} = miscalibration "
            f"{self.miscalibration:.4g} - discrimination {self.discrimination:.4g} "
            f"+ uncertainty {self.uncertainty:.4g})"
        )


def calibration(
    y: Outcomes, curves: SurvivalCurves, t: float, *, level: float = 0.9, n_draws: int = 200, seed: int = 0
) -> Calibration:
    r"""Reliability curve and decomposition of the administrative Brier score at a horizon.

    With :math:`\hat\pi` the isotonic regression of the status on the prediction and :math:`\bar s` the share that is
    event-free, all over those with :math:`C^* \ge t` [1]_:

    .. math:: \underbrace{\mathrm{BS}(\pi) - \mathrm{BS}(\hat\pi)}_{\text{miscalibration}}
        - \underbrace{[\mathrm{BS}(\bar s) - \mathrm{BS}(\hat\pi)]}_{\text{discrimination}}
        + \underbrace{\mathrm{BS}(\bar s)}_{\text{uncertainty}} = \mathrm{BS}(\pi)

    Parameters
    ----------
    y : Outcomes
        With censoring times, and without drop-outs.
    curves : SurvivalCurves
        What was predicted.
    t : float
        The horizon.
    level : float, default 0.9
        Of the consistency band, for each prediction by itself.
    n_draws, seed : int
        The band comes from this many outcomes drawn from the predictions themselves.

    Returns
    -------
    Calibration

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021). Stable reliability diagrams for probabilistic classifiers.
       PNAS 118(8).

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.7], [0.9]], times=[2])
    >>> ss.calibration(y, curves, 2)
    Calibration(at 2, n=4, Brier 0.1275 = miscalibration 0.1275 - discrimination 0.1875 + uncertainty 0.1875)
    """
    check_outcomes(y)
    check_predictions(y, curves)
    check_level(level)
    check_whole("n_draws", n_draws, 1)
    check_censoring_time(y, "calibration", "it has no other weighting")
    refuse_drop_outs(y, "calibration", "score with weighting='administrative', which weights for them")
    horizon = at_horizon(y, t)
    if not curves.reaches(np.array([float(t)]))[0]:
        raise InputError(f"the predictions end at {curves.times[-1]:g}, before the horizon {t:g}")
    survival = np.asarray(curves.at([t])[horizon.rows, 0], dtype=np.float64)
    status = (~horizon.event).astype(np.float64)
    predicted, inverse, counts = np.unique(survival, return_inverse=True, return_counts=True)
    weights = counts.astype(np.float64)
    observed = isotonic_fit(np.bincount(inverse, status) / weights, weights)
    # the band is smooth, so some hundred predictions are enough to draw it at all of them
    shown = np.unique(np.linspace(0, predicted.size - 1, min(predicted.size, BAND_POINTS)).round().astype(np.intp))
    rng = np.random.default_rng(seed)
    fits = [isotonic_fit(rng.binomial(counts, predicted) / weights, weights)[shown] for _ in range(n_draws)]
    quantiles = np.quantile(fits, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    lower, upper = (np.interp(predicted, predicted[shown], limit) for limit in quantiles)

    def brier(prediction: NDArray[np.float64] | float) -> float:
        return float(np.mean((status - prediction) ** 2))

    score, recalibrated, uncertainty = brier(survival), brier(observed[inverse]), brier(float(status.mean()))
    return Calibration(
        float(t), predicted, observed, lower, upper, counts, score,
        score - recalibrated, uncertainty - recalibrated, uncertainty, survival.size, level,
    )  # fmt: skip

"""One horizon at a time: whose status is known, how well it is told apart, and whether probabilities are right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._isotonic import isotonic_fit
from survscore._validation import InputError, as_times
from survscore.curves import SurvivalCurves
from survscore.inference import Groups, limits, normal_quantile
from survscore.outcomes import Outcomes
from survscore.scores import check_inputs, default_times, warn_undefined
from survscore.weighting import check_administrative

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import AUCDisplay, CalibrationDisplay


BAND_POINTS = 512


class Horizon(NamedTuple):
    """Those whose status at a horizon is known from their censoring time, and that status."""

    rows: NDArray[np.intp]
    event: NDArray[np.bool_]


def at_horizon(y: Outcomes, t: float) -> Horizon:
    r"""Return the individuals with :math:`C^*_i \ge t` and whether each has had the event by t.

    Their status is known whatever happened, so they are a fair sample of all with such censoring times: any
    metric for binary outcomes, computed on them, is its administrative version.

    Parameters
    ----------
    y : Outcomes
        With censoring times, and without drop-outs.
    t : float
        The horizon.

    Returns
    -------
    rows : ndarray of int
        Positions of these individuals.
    event : ndarray of bool
        Whether :math:`T^*_i \le t`.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 2], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 2])
    >>> ss.at_horizon(y, 3)
    Horizon(rows=array([0, 1, 2]), event=array([ True, False, False]))
    """
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    end = check_administrative(y, "at_horizon", "IPCW scores need no censoring times")
    (horizon,) = as_times([t], "t")
    rows = np.flatnonzero(end >= horizon)
    if rows.size == 0:
        raise InputError(f"nobody's status is known at {t:g}: the largest censoring time is {end.max():g}")
    return Horizon(rows, np.asarray(y.event[rows] & (y.time[rows] <= horizon)))


@dataclass(frozen=True, eq=False, repr=False)
class AUCCurve:
    """Administrative AUC at several horizons. Higher is better; 0.5 is a coin.

    Attributes
    ----------
    times, auc, se : ndarray of shape (m,)
        NaN where all individuals have the same status.
    n_events, n_event_free : ndarray of shape (m,)
        How many had the event by then, and how many had not, among those with known status.
    level : float
        Of the confidence intervals.
    """

    times: NDArray[np.float64]
    auc: NDArray[np.float64]
    se: NDArray[np.float64]
    n_events: NDArray[np.int64]
    n_event_free: NDArray[np.int64]
    level: float = 0.95
    undefined: dict[str, int] = field(default_factory=dict)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower limits of the confidence intervals."""
        return limits(self.auc, self.se, self.level)[0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper limits."""
        return limits(self.auc, self.se, self.level)[1]

    def to_frame(self) -> pd.DataFrame:
        """Return a table: time, auc, se, lower, upper, n_events, n_event_free."""
        import pandas as pd

        columns = ("auc", "se", "lower", "upper", "n_events", "n_event_free")
        return pd.DataFrame({"time": self.times, **{name: getattr(self, name) for name in columns}})

    def plot(self, ax: Any = None, **line: Any) -> AUCDisplay:
        """Draw the curve with its confidence intervals."""
        from survscore.plots import AUCDisplay

        return AUCDisplay(self).plot(ax=ax, **line)

    def __repr__(self) -> str:
        return f"AUCCurve({self.times.size} times from {self.times[0]:g} to {self.times[-1]:g}, higher is better)"


def auc(
    y: Outcomes,
    curves: SurvivalCurves,
    *,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> AUCCurve:
    r"""Administrative AUC: among those with known status, how often one with event had the lower predicted survival.

    .. math:: \mathrm{AUC}(t) = P(\pi_i(t) < \pi_k(t) \mid T^*_i \le t < T^*_k) \quad\text{(ties count half)}

    over pairs with :math:`C^*_i, C^*_k \ge t`. Standard errors are DeLong's [1]_.

    Parameters
    ----------
    y : Outcomes
        With censoring times, and without drop-outs.
    curves : SurvivalCurves
        What was predicted.
    times : array_like, optional
        The horizons; by default as for `brier_score`, without time 0.
    groups : array_like of shape (n,), optional
        For cluster-robust standard errors.
    level : float, default 0.95
        Of the confidence intervals.

    Returns
    -------
    AUCCurve

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
       characteristic curves. Biometrics 44, 837-845.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.4], [0.9]], times=[2])
    >>> ss.auc(y, curves, times=[2]).auc.round(4)
    array([0.6667])
    """
    check_inputs(y, curves)
    normal_quantile(level)
    grouping = None if groups is None else Groups.of(groups, len(y))
    wanted = default_times(y, [curves])[1:] if times is None else as_times(times)
    if wanted.size == 0:
        raise InputError("nobody is followed beyond time 0: there is no horizon to look at")
    values, se = np.full(wanted.size, np.nan), np.full(wanted.size, np.nan)
    counts = np.zeros((2, wanted.size), dtype=np.int64)
    reached = curves.reaches(wanted)
    single = 0
    end = check_administrative(y, "auc", "IPCW scores need no censoring times").max()
    for j in np.flatnonzero(reached & (wanted <= end)):
        horizon = at_horizon(y, wanted[j])
        counts[:, j] = horizon.event.sum(), (~horizon.event).sum()
        if not counts[:, j].all():
            single += 1
            continue
        survival = curves.at(wanted[j : j + 1])[horizon.rows, 0]
        codes = None if grouping is None else grouping.codes[horizon.rows]
        values[j], se[j] = _delong(survival, horizon.event, codes)
    reasons = {}
    if single:
        reasons["all who are known have the same status"] = single
    if (wanted > end).any():
        reasons["nobody's status is known"] = int((reached & (wanted > end)).sum())
    if not reached.all():
        reasons[f"the predictions end at {curves.times[-1]:g}"] = int((~reached).sum())
    warn_undefined({"administrative": reasons}, stacklevel=3)
    return AUCCurve(wanted, values, se, counts[0], counts[1], level, reasons)


def _delong(survival: NDArray[Any], event: NDArray[np.bool_], codes: NDArray[np.intp] | None) -> tuple[float, float]:
    """Return the AUC and its standard error, from midranks instead of pairs."""
    lost, free = survival[event], survival[~event]
    among_all = _midranks(survival)
    # for each with event, the share of event-free ones with higher survival; and the other way round
    above = 1.0 - (among_all[event] - _midranks(lost)) / free.size
    below = (among_all[~event] - _midranks(free)) / lost.size
    value = float(above.mean())
    if codes is None:
        if min(lost.size, free.size) < 2:
            return value, float("nan")
        return value, float(np.sqrt(above.var(ddof=1) / lost.size + below.var(ddof=1) / free.size))
    influence = np.empty(survival.size)
    influence[event] = (above - value) / lost.size
    influence[~event] = (below - value) / free.size
    labels, inverse = np.unique(codes, return_inverse=True)
    if labels.size < 2:
        return value, float("nan")
    per_group = np.bincount(inverse, influence)
    return value, float(np.sqrt((per_group**2).sum() * labels.size / (labels.size - 1)))


def _midranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks from 1; ties share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse], dtype=np.float64)


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
    check_inputs(y, curves)
    normal_quantile(level)
    if not isinstance(n_draws, (int, np.integer)) or n_draws < 1:
        raise InputError(f"n_draws must be a whole number, at least 1, not {n_draws}")
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

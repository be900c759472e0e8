"""Scores of whole curves up to each individual's censoring time, or up to a horizon if that comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import UnfitError
from survscore.curves import SurvivalCurves
from survscore.inference.intervals import Scale
from survscore.interpolation import blend
from survscore.metrics._curve_integrals import Pieces, Vector, Weights, integrate, moved_by_exits
from survscore.metrics.base import FollowUpMetric, Found, History
from survscore.metrics.losses import DEFAULT_EPSILON, check_epsilon


@dataclass(frozen=True)
class CRPS(FollowUpMetric):
    r"""Squared distance of the whole curve to what happened, up to :math:`C^*` or t: the Brier score per unit of time.

    .. math:: \mathrm{CRPS}(t) = \frac{\sum_i \int_0^{\min(C^*_i, t)} w_i(s) [1\{T_i > s\} - \pi_i(s)]^2\,ds}
        {\sum_i \min(C^*_i, t)}

    the continuous ranked probability score, restricted to the time under potential observation. Without drop-outs all
    weights are one. With them, :math:`w_i(s) = 1/G_d(s)` as long as i is under observation and event-free,
    :math:`1/G_d(T_i-)` from the event on, and zero for those who are lost. Under `IPCW`, :math:`C^*` is infinite and G
    takes the place of :math:`G_d`.

    Lower is better; predicting one half for all gives 0.25. It is proper given covariates and :math:`C^*`, and
    predictions after :math:`C^*` change nothing. Individuals with long potential follow-up weigh more than those with
    short. Integrals are exact, for curves that are linear between the times of their grid and for step curves.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[2, 3])
    >>> curves = ss.SurvivalCurves([[0.5, 0.5], [1.0, 0.4]], times=[0, 3], interpolation="step")
    >>> ss.score_all(y, curves, metric="crps", weighting="administrative", times=[3])[0].scores  # (0.25 * 2 + 0) / 5
    array([0.1])
    """

    name: ClassVar[str] = "crps"
    label: ClassVar[str] = "CRPS"
    scale: ClassVar[Scale] = "log"

    def evaluate(self, curves: SurvivalCurves, history: History) -> Found:  # noqa: D102
        if curves.interpolation == "constant-hazard":
            raise UnfitError(
                "crps integrates curves that are linear between grid times, or steps, not "
                "interpolation='constant-hazard': read them at the times of a finer grid, "
                "SurvivalCurves(curves.at(grid), grid)"
            )
        time, nothing = history.time, np.zeros(history.time.size)
        followed = np.clip(history.until, 0.0, history.horizon)
        made = _pieces(curves, history, followed)
        if isinstance(made, str):
            return Found(np.nan, nothing, made)
        weights, pieces = made
        after = np.where(history.event & (time < followed), weights.before(time), 0.0)
        found = integrate(
            curves, pieces, np.minimum(time, followed), followed, after, estimated=history.lost is not None
        )
        late = after * found.after
        own = found.before + late
        total = float(followed.sum())
        value = float(own.sum() / total)
        moved = None
        if history.lost is not None:
            moved = moved_by_exits(history.lost.times, pieces, found, history, late) / total
        return Found(value, (own - value * followed) / total, moved=moved)

    def slope(self, curves: SurvivalCurves, history: History) -> Vector:  # noqa: D102
        time, grid = history.time, curves.times
        followed = np.clip(history.until, 0.0, history.horizon)
        made = _pieces(curves, history, followed)
        if isinstance(made, str):
            return np.zeros(grid.size)
        weights, pieces = made
        late = history.event & (time < followed)
        # all integrals of 1, u - s and (u - s)^2, from the knot s before, times 1 or times the curve, linear in u
        event_free = pieces.sums_before(np.minimum(time, followed))
        both = event_free + pieces.sums_after(time[late], followed[late], weights.before(time[late]))
        width, value = np.diff(pieces.knots), np.asarray(curves.at(pieces.knots)[0], dtype=np.float64)
        rise = np.zeros(width.size) if curves.interpolation == "step" else np.diff(value) / width
        whole = value[:-1] * both[0] - event_free[0] + rise * both[1]
        at_end = np.zeros(width.size)
        if curves.interpolation != "step":
            at_end = (value[:-1] * both[1] - event_free[1] + rise * both[2]) / width
        by_knot = np.append(whole - at_end, 0.0) + np.append(0.0, at_end)
        by_knot *= 2.0 / followed.sum()
        # the values at the knots are those of the grid, mixed; at time 0 survival may be one whatever the grid says
        reading = curves.interpolate(pieces.knots)
        upper = np.minimum(reading.lower + 1, grid.size - 1)
        known = reading.lower >= 0
        of_lower = np.bincount(reading.lower[known], (by_knot * (1.0 - reading.weight))[known], grid.size)
        return np.asarray(of_lower + np.bincount(upper, by_knot * reading.weight, grid.size), dtype=np.float64)


def _pieces(curves: SurvivalCurves, history: History, followed: Vector) -> tuple[Weights, Pieces] | str:
    """Return 1/G, and its integrals between the times of the grid up to the horizon; or why there are none."""
    if not followed.sum() > 0:
        return "nobody is followed beyond time 0"
    weights = Weights.of(history.lost, history.horizon)
    if not np.isfinite(weights.inverse).all():
        return "nobody could be under observation up to then"
    grid = curves.times[(curves.times > 0) & (curves.times < history.horizon)]
    return weights, Pieces.of(np.concatenate(([0.0], grid, [history.horizon])), weights)


@dataclass(frozen=True)
class LogScore(FollowUpMetric):
    r"""Minus the log-likelihood of the whole follow-up: of the event's time, or of being event-free for so long.

    .. math:: \mathrm{LS}(t) = -\frac1n \sum_i \left(1\{T^*_i \le \min(C^*_i, t)\} \log f_i(T_i)
        + 1\{T^*_i > \min(C^*_i, t)\} \log \pi_i(\min(C^*_i, t))\right)

    Lower is better; densities depend on the unit of time, so that only differences mean something, and no skill: one of
    0.1 says that what happened was, in the geometric mean, 10.5 % more likely under the one model than under the other.
    It is proper given covariates and :math:`C^*`, and predictions after :math:`C^*` change nothing if :math:`C^*` is a
    time of the grid.

    Parameters
    ----------
    epsilon : float, default 1e-7
        Probabilities below this, of an interval or of survival, count as this.

    Notes
    -----
    :math:`f` is the density of the curve. With ``interpolation="linear"`` that is the probability of the interval of
    the grid that holds the event, divided by its length; with ``"constant-hazard"`` hazard times survival. Of a step
    curve it is the probability of the step that ends the interval: compare these with each other only, on one grid.
    An event after the grid has an interval of length one, and the probability `epsilon`.

    A drop-out adds :math:`-\log \pi_i(T_i)`, a partial likelihood, which is proper if dropping out is independent of
    the event given the covariates. So there are no weights, and all weightings of the same individuals give the same.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3], event=[1, 0], censoring_time=[2, 3])
    >>> curves = ss.SurvivalCurves([[0.5, 0.5], [1.0, 0.5]], times=[2, 3])  # f(1) = 0.25, pi(3) = 0.5
    >>> ss.score_all(y, curves, metric="log_score", weighting="administrative", times=[3])[0].scores.round(4)
    array([1.0397])
    """

    epsilon: float = DEFAULT_EPSILON

    name: ClassVar[str] = "log_score"
    label: ClassVar[str] = "logarithmic score"
    has_ratios: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def evaluate(self, curves: SurvivalCurves, history: History) -> Found:  # noqa: D102
        counted, nothing = self.speaks_for(history), np.zeros(history.time.size)
        number = int(np.count_nonzero(counted))
        if number == 0:
            return Found(np.nan, nothing, "nobody is counted")
        own = _OwnInterval.of(curves, history)
        # the density at the time of those with event, the survival of others
        density = np.maximum(own.left - own.right, self.epsilon)
        if own.interpolation == "constant-hazard":
            density = np.where(own.falls, np.maximum(own.hazard * own.survival, self.epsilon), density)
        if own.interpolation != "step":
            density = density / own.length
        loss = -np.log(np.where(history.event, density, np.maximum(own.survival, self.epsilon)))
        value = float(loss[counted].mean())
        moved = None if history.lost is None else np.zeros(history.lost.times.size)
        return Found(value, np.where(counted, (loss - value) / number, 0.0), moved=moved)

    def slope(self, curves: SurvivalCurves, history: History) -> Vector:  # noqa: D102
        counted, own = self.speaks_for(history), _OwnInterval.of(curves, history)
        left, right, share = own.left, own.right, own.share
        with np.errstate(divide="ignore", invalid="ignore"):
            # of the logarithm of the likelihood, by the value before the time and by the one after it
            constant_hazard = own.interpolation == "constant-hazard"
            of_left, of_right = (left, right) if constant_hazard else (own.survival, own.survival)
            by_left, by_right = (1.0 - share) / of_left, share / of_right
            unclipped = own.survival > self.epsilon
            mass = left - right
            event_left, event_right, event_unclipped = 1.0 / mass, -1.0 / mass, mass > self.epsilon
            if constant_hazard:
                event_left = np.where(own.falls, by_left + 1.0 / (left * own.hazard), event_left)
                event_right = np.where(own.falls, by_right - 1.0 / (right * own.hazard), event_right)
                event_unclipped = np.where(own.falls, own.hazard * own.survival > self.epsilon, event_unclipped)
            moves = counted & np.where(history.event, event_unclipped, unclipped)
            by_left = np.where(moves & (own.lower >= 0), np.where(history.event, event_left, by_left), 0.0)
            by_right = np.where(moves & (own.upper > own.lower), np.where(history.event, event_right, by_right), 0.0)
        m = curves.times.size
        total = np.bincount(np.maximum(own.lower, 0), by_left, m) + np.bincount(own.upper, by_right, m)
        return np.asarray(-total / max(int(np.count_nonzero(counted)), 1))


@dataclass(frozen=True, eq=False)
class _OwnInterval:
    """Each individual's curve around its own time, or the horizon: an event ends its interval, others start theirs."""

    interpolation: str
    lower: NDArray[np.intp]  # the column before; -1 before the first
    upper: NDArray[np.intp]  # the column after; the last again after the grid
    left: Vector  # the survival in these columns
    right: Vector
    length: Vector  # of the interval; one where it has none
    share: Vector  # how much of it has passed; of steps nothing

    @classmethod
    def of(cls, curves: SurvivalCurves, history: History) -> _OwnInterval:
        time, event = np.minimum(history.time, history.horizon), history.event
        grid, last = curves.times, curves.times.size - 1
        rows = np.zeros(time.size, dtype=np.intp) if len(curves) == 1 else np.arange(time.size)
        lower = np.where(event, np.searchsorted(grid, time, "left"), np.searchsorted(grid, time, "right")) - 1
        upper, inside = np.minimum(lower + 1, last), np.maximum(lower, 0)
        left = np.where(lower < 0, 1.0, curves.probabilities[rows, inside].astype(np.float64))
        right = curves.probabilities[rows, upper].astype(np.float64)
        start = np.where(lower < 0, 0.0, grid[inside])
        length = grid[upper] - start
        reads = length > 0 if curves.interpolation != "step" else np.zeros(time.size, dtype=np.bool_)
        share = np.divide(time - start, length, out=np.zeros(time.size), where=reads)
        # at time 0, or after the grid
        return cls(curves.interpolation, lower, upper, left, right, np.where(length > 0, length, 1.0), share)

    @property
    def survival(self) -> Vector:
        if self.interpolation == "step":
            return self.left
        return blend(self.left, self.right, self.share, self.interpolation == "constant-hazard")

    @property
    def falls(self) -> NDArray[np.bool_]:
        """Whether there is a hazard that is not infinite."""
        return (self.right > 0) & (self.left > self.right)

    @property
    def hazard(self) -> Vector:
        """The hazard times the length of the interval, where it falls."""
        return np.log(np.divide(self.left, self.right, out=np.ones(self.left.size), where=self.falls))

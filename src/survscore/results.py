"""What a score returns: frozen, knows its settings, turns into a table, draws itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice, plural
from survscore.inference import limits
from survscore.influence import Influence

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import ScoreCurveDisplay


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve:
    """A score at every evaluation time. Lower is better.

    Attributes
    ----------
    times, scores : ndarray of shape (m,)
        The evaluation times and the scores there; NaN where the data or the predictions say nothing.
    se, lower, upper : ndarray of shape (m,)
        Standard errors and confidence intervals, computed when first asked for. The intervals hold for each time
        by itself.
    n_effective : ndarray of shape (m,)
        Kish's effective number of individuals, (sum w)^2 / sum w^2: how many equally weighted ones
        the weights are worth. Under ``administrative`` it is the number with C* >= t.
    weight_sums : ndarray of shape (m,)
        The sum of the weights.
    n : int
        The number of individuals given.
    loss, weighting : str
        What was computed, in words.
    default_times : bool
        Whether the library chose the times.
    level : float
        Of the confidence intervals.
    undefined : dict
        Why scores are NaN, and for how many times.
    settings : dict
        The same in a form for machines, with the version of the library.
    """

    times: NDArray[np.float64]
    scores: NDArray[np.float64]
    n_effective: NDArray[np.float64]
    weight_sums: NDArray[np.float64]
    n: int
    loss: str
    weighting: str
    default_times: bool = False
    level: float = 0.95
    undefined: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    _influence: Influence | None = None
    _covariance: NDArray[np.float64] | None = None  # over time, where the data were left behind

    @cached_property
    def se(self) -> NDArray[np.float64]:
        """Standard errors, shape (m,), from the individuals' influences; computed when first asked for."""
        se = np.full(self.times.size, np.nan)
        if self._influence is not None:
            variance = self._influence.pointwise()[0, 0]
            se[: variance.size] = np.sqrt(np.maximum(variance, 0.0))
        se[np.isnan(self.scores)] = np.nan
        return se

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower limits of the confidence intervals, at `level`, for each time by itself."""
        return limits(self.scores, self.se, self.level)[0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper limits."""
        return limits(self.scores, self.se, self.level)[1]

    def __getstate__(self) -> dict[str, Any]:
        # What is stored or sent takes along what its standard errors need, not the data they come from.
        covariance = self._covariance if self._influence is None else self._influence.over_time(np.ones(1))
        return {**self.__dict__, "se": self.se, "_influence": None, "_covariance": covariance}

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table: loss, weighting, time, score, se, lower, upper, n_effective.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).to_frame().round(3)
            loss       weighting  time  score    se  lower  upper  n_effective
        0  brier  administrative   2.0   0.13  0.12 -0.105  0.365          2.0
        1  brier  administrative   3.0   0.04  0.00  0.040  0.040          2.0
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "loss": self.loss,
                "weighting": self.weighting,
                "time": self.times,
                "score": self.scores,
                "se": self.se,
                "lower": self.lower,
                "upper": self.upper,
                "n_effective": self.n_effective,
            }
        )

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: str = "raise"
    ) -> IntegratedScore:
        r"""Return the mean score over a range of time, :math:`\frac{1}{b - a}\int_a^b s(t)\,dt`.

        The curve is taken as linear between the evaluation times, for which the trapezoid rule is exact, also
        for limits between them.

        Parameters
        ----------
        lower, upper : float, optional
            The range, within the evaluation times; by default the whole of them.
        nan : {"raise", "stop"}, default "raise"
            What to do where the range holds times without score: refuse, or stop at the last
            time before the first of them.

        Returns
        -------
        IntegratedScore

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).integrated(2, 3)
        IntegratedScore(0.085, se 0.06, brier, administrative, mean over [2, 3], lower is better)
        """
        weights, (lower, upper) = averaging_weights(self.times, self.scores, lower, upper, nan, self.undefined)
        counted = weights > 0
        value = float(weights[counted] @ self.scores[counted])
        se = math.nan
        if self._influence is not None:
            scored = weights[: self._influence.index.times.size, None]
            se = math.sqrt(max(float(self._influence.of_averages(scored)[0, 0, 0]), 0.0))
        elif self._covariance is not None:
            used = np.flatnonzero(weights)
            se = math.sqrt(max(float(weights[used] @ self._covariance[np.ix_(used, used)] @ weights[used]), 0.0))
        return IntegratedScore(value, se, (lower, upper), self.loss, self.weighting, self.level, dict(self.settings))

    def plot(self, ax: Any = None, *, band: bool = True, **line: Any) -> ScoreCurveDisplay:
        """Draw the curve with matplotlib (extra ``report``).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        band : bool, default True
            Whether to shade the confidence intervals.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, for example ``label="my model"``.

        Returns
        -------
        ScoreCurveDisplay
            With the axes in ``ax_`` and the figure in ``figure_``.
        """
        from survscore.plots import ScoreCurveDisplay

        return ScoreCurveDisplay(self).plot(ax=ax, band=band, **line)

    def __repr__(self) -> str:
        defined = ~np.isnan(self.scores)
        chosen = " (default)" if self.default_times else ""
        parts = [
            self.loss,
            self.weighting,
            f"{plural(self.times.size, 'time')} from {self.times[0]:g} to {self.times[-1]:g}{chosen}",
            f"n={self.n}",
        ]
        if defined.any():
            effective, scores = self.n_effective[defined], self.scores[defined]
            parts.append(f"effective n {effective.max():.6g} to {effective.min():.6g}")
            parts.append(f"score {scores.min():.4g} to {scores.max():.4g}")
        if not defined.all():
            parts.append(f"NaN at {plural(int((~defined).sum()), 'time')}: {'; '.join(self.undefined)}")
        return f"ScoreCurve({', '.join(parts)}, lower is better)"


@dataclass(frozen=True, repr=False)
class IntegratedScore:
    """A score's mean over a range of time; `float` gives the number. Lower is better.

    Attributes
    ----------
    value, se : float
        The mean, and its standard error from each individual's mean influence.
    range : tuple of float
        From when to when.
    loss, weighting : str
        What was computed, in words.
    level : float
        Of the confidence interval.
    """

    value: float
    se: float
    range: tuple[float, float]
    loss: str
    weighting: str
    level: float = 0.95
    settings: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def lower(self) -> float:
        """Lower limit of the confidence interval."""
        return limits(self.value, self.se, self.level)[0]

    @property
    def upper(self) -> float:
        """Upper limit."""
        return limits(self.value, self.se, self.level)[1]

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"IntegratedScore({self.value:.6g}, se {self.se:.3g}, {self.loss}, {self.weighting}, "
            f"mean over [{self.range[0]:g}, {self.range[1]:g}], lower is better)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTerms:
    """The pieces of a score before they are summed: each individual's loss and weight at each time.

    Attributes
    ----------
    times : ndarray of shape (m,)
        Only times at which the score is defined by the predictions' grid.
    losses, weights : ndarray of shape (n, m)
        The loss is that of the last known status; where it is unknown, the weight is 0.
    loss, weighting : str
        What was computed, in words.
    """

    times: NDArray[np.float64]
    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    loss: str
    weighting: str

    def __repr__(self) -> str:
        n, m = self.losses.shape
        return f"ScoreTerms({self.loss}, {self.weighting}, {plural(n, 'individual')}, {plural(m, 'time')})"


def averaging_weights(
    times: NDArray[np.float64],
    scores: NDArray[np.float64],
    lower: float | None,
    upper: float | None,
    nan: str,
    undefined: Iterable[str],
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return c with ``c @ scores`` the mean over the range, and the range; see `ScoreCurve.integrated`."""
    check_choice("nan", nan, ("raise", "stop"))
    first, last = float(times[0]), float(times[-1])
    lower = first if lower is None else float(lower)
    upper = last if upper is None else float(upper)
    if times.size == 1:
        raise InputError(f"one time, {first:g}, spans no range to integrate over; score several `times`")
    if not first <= lower < upper <= last:
        raise InputError(
            f"lower and upper must satisfy {first:g} <= lower < upper <= {last:g}, the range of times scored, "
            f"not lower={lower:g}, upper={upper:g}; give the score `times` that cover the range"
        )
    weights = trapezoid_weights(times, lower, upper)
    missing = np.isnan(scores) & (weights > 0)
    if missing.any():
        first_missing = int(np.argmax(missing))
        told = f"the score is NaN at {plural(int(missing.sum()), 'time')} within [{lower:g}, {upper:g}], the first "
        told += f"{times[first_missing]:g} ({'; '.join(undefined)})"
        if nan == "raise":
            raise InputError(f"{told}; choose a smaller upper, or nan='stop'")
        if first_missing == 0 or times[first_missing - 1] <= lower:
            raise InputError(f"{told}; nothing is left to integrate")
        upper = float(times[first_missing - 1])
        weights = trapezoid_weights(times, lower, upper)
    return weights / (upper - lower), (lower, upper)


def trapezoid_weights(times: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Return c with ``c @ values`` the integral from `lower` to `upper` of the piecewise linear curve through `values`.

    Each segment's part within the limits adds the integrals of its two hat functions.
    """
    left, right = times[:-1], times[1:]
    width = right - left
    # the part of each segment within the limits, on the segment's own scale from 0 to 1
    start = np.clip((lower - left) / width, 0.0, 1.0)
    stop = np.clip((upper - left) / width, 0.0, 1.0)
    rising = 0.5 * width * (stop**2 - start**2)
    weights = np.zeros(times.size)
    weights[1:] += rising
    weights[:-1] += width * (stop - start) - rising
    return weights

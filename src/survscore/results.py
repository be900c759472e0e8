"""What a score returns: frozen, knows its settings, turns into a table, draws itself. Numbers, never the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._validation import plural
from survscore.engine.averaging import WhereNaN, averaging_weights
from survscore.engine.bounds import AllBounds
from survscore.engine.evaluation import Evaluation, Scored
from survscore.engine.moments import Moments
from survscore.inference import limits
from survscore.metrics import Direction

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import ScoreCurveDisplay


@dataclass(frozen=True, eq=False)
class Bounds:
    """Where a score can lie at all, whatever happened to those who dropped out; no assumption is made about them.

    The score of all with C* >= t, had nobody been lost, lies between `lower` and `upper`.

    Attributes
    ----------
    lower, upper : ndarray of shape (m,)
        At each evaluation time.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve:
    """A score at every evaluation time.

    Attributes
    ----------
    times, scores : ndarray of shape (m,)
        The evaluation times and the scores there; NaN where the data or the predictions say nothing.
    se, lower, upper : ndarray of shape (m,)
        Standard errors and confidence intervals, for each time by itself; NaN where errors were not asked for.
    n_effective : ndarray of shape (m,)
        Kish's effective number of individuals, (sum w)^2 / sum w^2: how many equally weighted ones
        the weights are worth. Under ``administrative`` without drop-outs it is the number with C* >= t.
    weight_sums, n_counted, n_events : ndarray of shape (m,)
        The sum of the weights; for how many the score speaks; how many are counted with event.
    n : int
        The number of individuals given.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher"}
        Which values are better.
    default_times : bool
        Whether the library chose the times.
    level : float
        Of the confidence intervals.
    bounds : Bounds or None
        Whatever happened to those who dropped out, the score lies within; None where nobody did.
    undefined : dict
        Why scores are NaN, and for how many times.
    settings : dict
        The same in a form for machines, with the version of the library.
    """

    times: NDArray[np.float64]
    scores: NDArray[np.float64]
    se: NDArray[np.float64]
    n_effective: NDArray[np.float64]
    weight_sums: NDArray[np.float64]
    n_counted: NDArray[np.float64]
    n_events: NDArray[np.float64]
    n: int
    n_dropped_out: int | None
    metric: str
    weighting: str
    direction: Direction = "lower"
    default_times: bool = False
    level: float = 0.95
    bounds: Bounds | None = None
    undefined: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    _moments: Moments | None = None
    _bounds: AllBounds | None = None

    @classmethod
    def of(cls, evaluation: Evaluation, scored: Scored, *, default_times: bool) -> Self:
        """Take the only model of an evaluation, under one of its weightings."""
        y, m = evaluation.index.outcomes, evaluation.times.size

        def padded(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.concatenate((values, np.full(m - values.size, np.nan)))

        se = np.full(scored.scores.shape[1], np.nan)
        if scored.moments is not None:
            se = np.where(np.isnan(scored.scores[0]), np.nan, np.sqrt(scored.moments.variance(0, 0)))
        bounds = None
        if scored.bounds is not None:
            bounds = Bounds(*(padded(values) for values in scored.bounds.at_times(0, 0)))
        return cls(
            times=evaluation.times,
            scores=padded(scored.scores[0]),
            se=padded(se),
            n_effective=padded(scored.n_effective),
            weight_sums=padded(scored.weight_sums),
            n_counted=padded(scored.n_counted),
            n_events=padded(scored.n_events),
            n=len(y),
            n_dropped_out=y.n_dropped_out,
            metric=scored.metric,
            weighting=scored.weighting,
            direction=scored.direction,
            default_times=default_times,
            level=evaluation.level,
            bounds=bounds,
            undefined=scored.undefined,
            settings=scored.settings,
            _moments=scored.moments,
            _bounds=scored.bounds,
        )

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower limits of the confidence intervals, at `level`, for each time by itself."""
        return limits(self.scores, self.se, self.level)[0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper limits."""
        return limits(self.scores, self.se, self.level)[1]

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table: metric, weighting, time, score, se, lower, upper, n_effective.

        Where somebody dropped out, also bound_lower and bound_upper.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).to_frame().round(3)
          metric       weighting  time  score    se  lower  upper  n_effective
        0  brier  administrative   2.0   0.13  0.12 -0.105  0.365          2.0
        1  brier  administrative   3.0   0.04  0.00  0.040  0.040          2.0
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "metric": self.metric,
            "weighting": self.weighting,
            "time": self.times,
            "score": self.scores,
            "se": self.se,
            "lower": self.lower,
            "upper": self.upper,
            "n_effective": self.n_effective,
        }
        if self.bounds is not None:
            columns |= {"bound_lower": self.bounds.lower, "bound_upper": self.bounds.upper}
        return pd.DataFrame(columns)

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedScore:
        r"""Return the mean score over a range of time, :math:`\frac{1}{b - a}\int_a^b s(t)\,dt`.

        The curve is taken as linear between the evaluation times, for which the trapezoid rule is exact, also
        for limits between them.

        Parameters
        ----------
        lower, upper : float, optional
            The range, within the evaluation times; by default the whole of them. For large data, ranges other than the
            whole must be named when scoring (``ranges=``), or they have no standard error.
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
        se, bounds = math.nan, None
        if self._moments is not None:
            se = math.sqrt(self._moments.of_average(weights[: self._moments.n_times], 0, 0))
        if self._bounds is not None:
            bounds = self._bounds.of_average(weights[: self._bounds.n_times], 0, 0)
        return IntegratedScore(
            value, se, (lower, upper), self.metric, self.weighting, self.direction, self.level, bounds,
            dict(self.settings),
        )  # fmt: skip

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
            self.metric,
            self.weighting,
            f"{plural(self.times.size, 'time')} from {self.times[0]:g} to {self.times[-1]:g}{chosen}",
            f"n={self.n}",
        ]
        if self.n_dropped_out:
            parts.append(f"{self.n_dropped_out} of {self.n} dropped out")
        if defined.any():
            effective, scores = self.n_effective[defined], self.scores[defined]
            parts.append(f"effective n {effective.max():.6g} to {effective.min():.6g}")
            parts.append(f"score {scores.min():.4g} to {scores.max():.4g}")
        if not defined.all():
            parts.append(f"NaN at {plural(int((~defined).sum()), 'time')}: {'; '.join(self.undefined)}")
        return f"ScoreCurve({', '.join(parts)}, {self.direction} is better)"


@dataclass(frozen=True, repr=False)
class IntegratedScore:
    """A score's mean over a range of time; `float` gives the number.

    Attributes
    ----------
    value, se : float
        The mean, and its standard error from each individual's mean influence.
    range : tuple of float
        From when to when.
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher"}
        Which values are better.
    level : float
        Of the confidence interval.
    bounds : tuple of float or None
        Whatever happened to those who dropped out, the mean lies within; None where nobody did.
    """

    value: float
    se: float
    range: tuple[float, float]
    metric: str
    weighting: str
    direction: Direction = "lower"
    level: float = 0.95
    bounds: tuple[float, float] | None = None
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
        lost = "" if self.bounds is None else f", bounds {self.bounds[0]:.4g} to {self.bounds[1]:.4g}"
        return (
            f"IntegratedScore({self.value:.6g}, se {self.se:.3g}, {self.metric}, {self.weighting}, "
            f"mean over [{self.range[0]:g}, {self.range[1]:g}]{lost}, {self.direction} is better)"
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
    metric, weighting : str
        What was computed, in words.
    """

    times: NDArray[np.float64]
    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    metric: str
    weighting: str

    def __repr__(self) -> str:
        n, m = self.losses.shape
        return f"ScoreTerms({self.metric}, {self.weighting}, {plural(n, 'individual')}, {plural(m, 'time')})"

"""For which hazards of the individuals with hidden status the sign of a difference holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from survscore._validation import check_choice, several, shown
from survscore.causes import ALL_CAUSES
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.sensitivity import MOST_THETA, THETAS, ThetaScores
from survscore.inference.late_starters import NO_LATE_STARTERS
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import MeanOver, cause_column, stacked
from survscore.results.rounding import Number
from survscore.results.tables import Line, Part, PrintedAsTables, Tables, spread_over

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import SensitivityDisplay
    from survscore.results.comparison import Comparison

Vector = NDArray[np.float64]

MOST_TIMES = 4  # that are printed, beside the mean over all
MOST_LISTED = 8  # times in a sentence
N_FINE = 2001  # values of theta between which a change of sign is interpolated, 1 among them
ESTIMATE = ("estimate", "lower", "upper")
ROUNDING = 1e-12  # of the scores: a smaller difference is none
ONLY_DROPOUTS = f"{NO_LATE_STARTERS}, and there is no estimate for those who dropped out"
#: Where the hazard ratio of late starters cannot be estimated, the sign must hold over this range.
UNKNOWN_RATIO = (0.5, 2.0)


@dataclass(frozen=True)
class TippingPoint:
    """One difference of projected scores, and for which theta its sign holds.

    Theta is the hazard of those whose status at t is hidden, as a multiple of the reference hazard of the weighting: by
    default that of individuals of similar predicted risk who were observed longer, at the same ages.

    Attributes
    ----------
    metric, weighting, model, reference : str
        What was compared.
    first, last : float
        The range of time that the difference is a mean over; one time twice.
    theta : float
        That of the weighting, 1 by default.
    difference, lower, upper, verdict
        At this theta, as in `Comparison.contrasts`.
    tipping_lower, tipping_upper : float
        The sign is the same for theta between these; 0 and infinity, where it changes nowhere between 1/32 and 32.
        NaN without a difference.
    hazard_ratio, ratio_lower, ratio_upper : float
        The estimated hazard of those with C* < t before their C*, as a multiple of that of those with C* >= t, with
        its interval. Of a mean over time, at the time at which it is known most precisely. NaN where there is none.
    ratio_reason : str
        Why there is no ratio; empty where there is one.
    difference_at_ratio : float
        The difference with theta = `hazard_ratio`.
    cause : str
        Under competing risks the cause that scores are of.
    """

    metric: str
    weighting: str
    model: str
    reference: str
    first: float
    last: float
    theta: float
    difference: float
    lower: float
    upper: float
    verdict: str
    tipping_lower: float
    tipping_upper: float
    hazard_ratio: float
    ratio_lower: float
    ratio_upper: float
    ratio_reason: str
    difference_at_ratio: float
    cause: str = ""

    @property
    def plausible(self) -> tuple[float, float]:
        """The interval of the hazard ratio joined with theta; 1/2 to 2 if statuses are hidden and there is no ratio."""
        ratio = (self.ratio_lower, self.ratio_upper)
        if np.isnan(self.hazard_ratio):
            ratio = (self.theta, self.theta) if self.ratio_reason == NO_LATE_STARTERS else UNKNOWN_RATIO
        return min(self.theta, ratio[0]), max(self.theta, ratio[1])

    def columns(self) -> Columns:
        """Return all fields by name, the cause where there is one."""
        named = asdict(self)
        return {"metric": named.pop("metric"), **cause_column(named.pop("cause")), **named}

    @property
    def sign_holds(self) -> bool:
        """Whether the sign is the same for each theta in `plausible`."""
        low, high = self.plausible
        return bool(self.tipping_lower < low and high < self.tipping_upper)

    @property
    def decided(self) -> bool:
        """Whether one of the models is recommended: the difference is significant, and its sign holds."""
        return self.verdict in ("better", "worse") and self.sign_holds


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(PrintedAsTables):
    r"""Differences of projected scores for other hazards of those with hidden status; prints as a table.

    Those whose status at t is hidden, by :math:`C^* < t` or by drop-out, are event-free with the probability
    :math:`m_i^\theta`, with theta their hazard from the end of their follow-up on, as a multiple of the reference
    hazard of the weighting:

    .. math:: D(\theta) = \frac1n \sum_{\text{known}} d_i + \frac1n \sum_{\text{hidden}}
        \left[d_{0i} + m_{ai}^\theta a_i - m_{bi}^\theta b_i\right],

    with :math:`d_i` the difference of the two models' losses, :math:`d_{0i}` that with event, and :math:`a_i, b_i` what
    being event-free adds to the losses of either. Tipping points are the values of theta nearest to that of the
    weighting, below and above, at which D changes its sign: a verdict holds unless those with hidden status have less
    than the one, or more than the other, times the reference hazard. Under competing risks theta multiplies the hazard
    of the cause that scores are of, and those of other causes stay as they are: then :math:`m_i(\theta)` is
    :math:`1 - [F^\theta(t) - F^\theta(c_i)] / S^\theta(c_i)`, by Aalen-Johansen estimates at that theta.

    Theta can be estimated as far as those with :math:`C^* < t` were followed: their observed events, divided by those
    expected from the hazards of the others at the same ages (`hazard_ratio`). For those who dropped out there is no
    such estimate.

    Attributes
    ----------
    compared : Comparison
        What the differences are of.
    over : dict
        By metric, the weights of the times of a mean over time, and from when to when; empty where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 2000)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(2, 20, 2000)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * [6, 12]), [6, 12]),
    ...     "optimistic": ss.SurvivalCurves(np.exp(-0.7 * rate[:, None] * [6, 12]), [6, 12]),
    ... }
    >>> result = ss.compare(y, models, weighting="projected", times=[12], null=False)
    >>> print(result.sensitivity())
    theta: hazard of those with hidden status, as a multiple of the reference
      hazard; differences to truth; 95 % intervals
    <BLANKLINE>
    Brier score (lower is better); projected (own ranks)
                          difference to truth same sign for theta     late starters
    -------------------------------------------------------------------------------
    at 12 optimistic +0.0115 (0.0064, 0.0166)              > 0.35 1.08 (0.95, 1.23)
    late starters: hazard of those with C* < t, as a multiple of that of the others
    >>> table = result.sensitivity().to_frame()
    >>> table[["model", "from", "to", "tipping_lower", "tipping_upper", "sign_holds"]].round(2)
            model  from    to  tipping_lower  tipping_upper  sign_holds
    0  optimistic  12.0  12.0           0.35            inf        True
    """

    compared: Comparison
    over: Mapping[str, MeanOver]

    @property
    def _scored(self) -> list[ScoreArrays]:
        return [scored for scored in self.compared.scored if scored.by_theta is not None]

    def points(self, models: Collection[str] | None = None) -> list[TippingPoint]:
        """Return all rows: by metric, weighting and model, that of the mean over time, then those of each time.

        With `models`, those of some of them.
        """
        chosen = [self._place_of(name) for name in self.others if models is None or name in models]
        return [point for scored in self._scored for a in chosen for point in self._points(scored, a)]

    def point(self, model: str, *, time: float | None = None, metric: str | None = None) -> TippingPoint:
        """Return the row of a model; arguments as for `curve`."""
        scored = self._of_metric(metric)
        (point,) = self._points(scored, self._place_of(model), [self.place(scored, time)])
        return point

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table, one row as a `TippingPoint`; the range (from, to) is one time twice, or a mean's.

        Columns: metric, weighting, model, reference, from, to, theta, difference, lower, upper, verdict, tipping_lower,
        tipping_upper, hazard_ratio, ratio_lower, ratio_upper, ratio_reason, difference_at_ratio, sign_holds.
        """
        rows = [{**point.columns(), "sign_holds": point.sign_holds} for point in self.points()]
        return stacked(rows).rename(columns={"first": "from", "last": "to"})

    def curve(self, model: str, *, time: float | None = None, metric: str | None = None) -> pd.DataFrame:
        """Return the difference of a model to the reference over theta, from 1/32 to 32: theta, difference.

        Parameters
        ----------
        model : str
            Which.
        time : float, optional
            One of the evaluation times; by default of the mean over time, or where there is none, of the last time
            with a score under each weighting.
        metric : str, optional
            By default the first.
        """
        scored = self._of_metric(metric)
        _, _, nodes = self._rows(scored, self._place_of(model))
        return stacked([{"theta": _fine(), "difference": _between(nodes[self.place(scored, time)])}])

    def plot(
        self,
        ax: Any = None,
        *,
        time: float | None = None,
        metric: str | None = None,
        width: float | None = None,
    ) -> SensitivityDisplay:
        """Draw differences to the reference over theta, with tipping points and the hazard ratio of late starters.

        The differences' intervals are drawn at the theta of the weighting.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default into a new figure.
        time, metric : optional
            As for `curve`.
        width : float, optional
            Of a new figure, in inches.
        """
        from survscore.plots import SensitivityDisplay

        return SensitivityDisplay(self, self._of_metric(metric).metric, time).plot(ax=ax, width=width)

    def _of_metric(self, metric: str | None) -> ScoreArrays:
        metrics = tuple(dict.fromkeys(scored.metric for scored in self._scored))
        metric = metrics[0] if metric is None else metric
        check_choice("metric", metric, metrics)
        return next(scored for scored in self._scored if scored.metric == metric)

    def place(self, scored: ScoreArrays, time: float | None) -> int:
        """Return which of the rows of a metric is that of a time, or of the mean."""
        mean = scored.metric in self.over
        if time is None:
            return 0 if mean else self.compared.usable_place(scored.metric)
        return mean + self.compared.place(time)

    @property
    def others(self) -> list[str]:
        """All models but the reference."""
        return [name for name in self.compared.models if name != self.compared.reference]

    def _place_of(self, model: str) -> int:
        check_choice("model", model, tuple(self.others))
        return self.compared.models.index(model)

    def _rows(self, scored: ScoreArrays, a: int) -> tuple[list[tuple[float, float]], dict[str, Any], Vector]:
        """Return when, the difference, and its values at `THETAS`, of the mean over time and of each time."""
        compared, by_theta, over = self.compared, scored.by_theta, self.over.get(scored.metric)
        if by_theta is None:
            raise TypeError("there are no scores by theta")
        r, m = compared.models.index(compared.reference), scored.scores.shape[1]
        when = [(float(t), float(t)) for t in compared.times[:m]]
        columns = Estimates(scored, compared.level).difference(a, r)
        nodes = by_theta.scores[a] - by_theta.scores[r]
        if over is not None:
            weights, ends = over
            mean = by_theta.averaged(weights[:m])
            first = Estimates(scored, compared.level, weights).difference(a, r)
            columns = {name: np.concatenate((first[name], columns[name])) for name in columns}
            when, nodes = [ends, *when], np.concatenate(((mean[a] - mean[r])[None], nodes))
        size = np.nanmax(np.abs(by_theta.scores), initial=0.0)
        return when, columns, np.where(np.abs(nodes) > ROUNDING * size, nodes, 0.0)

    def _points(self, scored: ScoreArrays, a: int, places: Sequence[int] | None = None) -> list[TippingPoint]:
        """Return the rows of a model, or some of them."""
        compared = self.compared
        when, columns, nodes = self._rows(scored, a)
        if places is not None:
            when, nodes = [when[place] for place in places], nodes[places]
            columns = {name: np.asarray(column)[places] for name, column in columns.items()}
        theta = scored.by_theta.theta if isinstance(scored.by_theta, ThetaScores) else np.nan
        lower, upper = tipping_points(nodes, theta)
        names = (scored.metric, scored.weighting, compared.models[a], compared.reference)
        points = []
        for place, ends in enumerate(when):
            *ratio, reason = self._ratio(scored, ends)
            at = min(max(ratio[0], 1 / MOST_THETA), MOST_THETA)
            at_ratio = np.interp(np.log(at), np.log(_fine()), _between(nodes[place])) if ratio[0] > 0 else np.nan
            values: list[Any] = [*names, *ends, theta, *(float(columns[name][place]) for name in ESTIMATE)]
            values += [str(columns["verdict"][place]), float(lower[place]), float(upper[place])]
            values += [*ratio, reason, float(at_ratio), scored.cause]
            points.append(TippingPoint(*values))
        return points

    def _ratio(self, scored: ScoreArrays, ends: tuple[float, float]) -> tuple[float, float, float, str]:
        """Return the hazard ratio of late starters with its interval; of a mean, where it is known most precisely."""
        late = self.compared.late_starters
        if late is None:
            return np.nan, np.nan, np.nan, "C* is not known"
        inside = (late.times >= ends[0]) & (late.times <= ends[1])
        j = late.most_precise(inside)
        if j is None:
            reason, parts = late.reasons[int(np.flatnonzero(inside)[-1])], scored.parts
            lost = parts is not None and parts.dropped_out[inside[: scored.scores.shape[1]]].any()
            return np.nan, np.nan, np.nan, ONLY_DROPOUTS if reason == NO_LATE_STARTERS and lost else reason
        ratio, lower, upper = (float(limit[j]) for limit in late.ratio(self.compared.level))
        return ratio, lower, upper, ""

    def _printed(self) -> Tables:
        compared = self.compared
        caption = (
            f"theta: {_hazard(self._scored[0])} of those with hidden status, as a multiple of the reference hazard; "
            f"differences to {shown(compared.reference)}; {100 * compared.level:g} % intervals"
        )
        return Tables(caption, [self._part(scored) for scored in self._scored])

    def _part(self, scored: ScoreArrays) -> Part:
        mean = int(scored.metric in self.over)
        defined = np.flatnonzero(~np.isnan(scored.scores).all(axis=0))
        chosen = [*range(mean), *(mean + j for j in spread_over(defined, MOST_TIMES))]
        per_model = [self._points(scored, self._place_of(model), chosen) for model in self.others]
        lines = []
        notes = [f"late starters: {_hazard(scored)} of those with C* < t, as a multiple of that of the others"]
        for at_once in zip(*per_model, strict=True):
            first = when_text(at_once[0])
            for point in at_once:
                number = Number(point.difference, point.lower, point.upper, sign="+")
                words = (first, shown(point.model))
                lines.append(Line(words, (number,), (range_text(point), ratio_text(point))))
                first = ""
            notes += [at_once[0].ratio_reason] if at_once[0].ratio_reason else []
        if defined.size > MOST_TIMES:
            notes.insert(0, f"{MOST_TIMES} of {self.compared.times.size} times; .to_frame() has all")
        header = ("", "", f"difference to {shown(self.compared.reference, 24)}", "same sign for theta", "late starters")
        return Part.of(scored.title, header, lines, notes, "llrrr")


def when_text(point: TippingPoint) -> str:
    """Return which time, or mean over time."""
    if point.first == point.last:
        return f"at {point.first:g}"
    return f"mean over {point.first:g} to {point.last:g}"


def times_text(times: Vector) -> str:
    """Return a few times, or of many how many there are, from when to when.

    Examples
    --------
    >>> import numpy as np
    >>> from survscore.results.sensitivity import times_text
    >>> times_text(np.array([6.0, 12.0])), times_text(np.arange(20.0))
    ('6 and 12', '20 times from 0 to 19')
    """
    if times.size > MOST_LISTED:
        return f"{times.size} times from {times[0]:g} to {times[-1]:g}"
    return several([f"{time:g}" for time in times])


def range_text(point: TippingPoint) -> str:
    """Return for which theta the sign holds."""
    low, high = point.tipping_lower, point.tipping_upper
    if np.isnan(low) or np.isnan(high):
        return "-"
    if low == 0.0:
        return "all" if np.isinf(high) else f"< {high:.2g}"
    return f"> {low:.2g}" if np.isinf(high) else f"{low:.2g} to {high:.2g}"


def _hazard(scored: ScoreArrays) -> str:
    if scored.cause == ALL_CAUSES:
        return "hazard of each cause"
    return f"hazard of cause {shown(scored.cause)}" if scored.cause else "hazard"


def ratio_text(point: TippingPoint) -> str:
    """Return the hazard ratio of late starters with its interval."""
    if np.isnan(point.hazard_ratio):
        return "-"
    return f"{point.hazard_ratio:.2f} ({point.ratio_lower:.2f}, {point.ratio_upper:.2f})"


def tipping_points(nodes: Vector, theta: float) -> tuple[Vector, Vector]:
    """Return the zeros nearest to theta, below and above, of differences at `THETAS`, (rows, thetas).

    0 and infinity where there is none; NaN where the differences are zero, or NaN.
    """
    values, log_theta = _between(nodes), np.log(_fine())
    before, after = values[:, :-1], values[:, 1:]
    change = before * after < 0
    share = before / np.where(change, before - after, np.inf)
    zeros = np.where(change, np.exp(log_theta[:-1] + share * np.diff(log_theta)), np.nan)
    lower = np.where(zeros <= theta, zeros, 0.0).max(axis=1, initial=0.0)
    upper = np.where(zeros > theta, zeros, np.inf).min(axis=1, initial=np.inf)
    unknown = np.isnan(nodes).any(axis=1) | (nodes == 0).all(axis=1)
    return np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)


@cache
def _fine() -> Vector:
    return np.asarray(MOST_THETA ** np.linspace(-1, 1, N_FINE))


@cache
def _matrix() -> Vector:
    """Return what turns values at Chebyshev's points into those of the polynomial through them."""
    nodes, fine = (chebvander(np.log(theta) / np.log(MOST_THETA), THETAS.size - 1) for theta in (THETAS, _fine()))
    return np.asarray(fine @ np.linalg.inv(nodes))


def _between(nodes: Vector) -> Vector:
    """Return values over the fine grid of theta, of those at `THETAS`."""
    return np.asarray(nodes @ _matrix().T)

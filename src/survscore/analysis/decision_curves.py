"""Decision curves: the net benefit of models over all threshold probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._utils.dates import Unit
from survscore._utils.parallel import cached_property
from survscore._validation import (
    MOST_DRAWS,
    InputError,
    as_array,
    as_times,
    check_choice,
    check_rule,
    check_whole,
    plural,
    shown,
)
from survscore.analysis.populations import AtTime
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.influence import CurveInfluence, Estimation, OrderedExits
from survscore.engine.inputs import of_cause
from survscore.engine.moments import Moments, pair, pairs
from survscore.incidence import NamedCurves
from survscore.inference.intervals import simultaneous_quantile, student_quantile, with_degrees
from survscore.inference.support import FEW_FOR_BAND, FEW_FOR_DIFFERENCE, MUCH_ADDED, Support
from survscore.inference.units import Groups
from survscore.metrics import cause_label
from survscore.metrics.losses import AT_THRESHOLD
from survscore.outcomes import Outcomes
from survscore.results.long_tables import cause_column, stacked
from survscore.results.rounding import Number, decimals
from survscore.results.tables import ON_TOO_FEW, Cell, Part, PrintedAsTables, Tables, spread_over
from survscore.weighting import Weighting
from survscore.weighting.interval_weights import EVENT_FREE

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DecisionCurveDisplay

TREAT_ALL, TREAT_NONE = "treat all", "treat none"

Values = NDArray[np.float64]
MOST_THRESHOLDS = 5  # in print
NUMBERS_PER_BLOCK = 1 << 22  # influences of some individuals at all thresholds, in memory at once


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(PrintedAsTables):
    """Net benefit of several models over thresholds, and of treating all and none. Numbers only.

    Attributes
    ----------
    time : float
        The horizon of the event.
    thresholds : ndarray of shape (k,)
        Threshold probabilities.
    strategies, reference
        The models, then "treat all" and "treat none"; and what the others are compared with.
    net_benefit : ndarray of shape (strategies, k)
        See `NetBenefit`.
    moments : Moments
        Variances and covariances over thresholds, of all strategies and all differences of two.
    discordant : ndarray of shape (pairs, k)
        On how many of those who are counted two strategies decide differently, in the order of `moments`.
    support : Support
        The numbers of individuals and events.
    weighting : str
        In words.
    level, n_draws, seed
        Of intervals and bands.
    cause : str
        Under competing risks the cause of events.
    clock : str
        What time is counted from, where that is delayed entry.
    """

    time: float
    thresholds: Values
    strategies: tuple[str, ...]
    reference: str
    net_benefit: Values
    moments: Moments
    discordant: NDArray[np.int64]
    support: Support
    weighting: str
    level: float
    n_draws: int
    seed: int
    cause: str = ""
    clock: str = ""

    @property
    def _when(self) -> str:
        return f"at {self.time:g}{f' ({self.clock})' if self.clock else ''}"

    @property
    def reliable(self) -> bool:
        """Whether there are enough individuals of each status, and enough groups, for reliable bands."""
        return bool(self.support.enough(FEW_FOR_BAND)[0])

    def against(self, reference: str) -> DecisionCurve:
        """Return the same with another reference; nothing is computed anew."""
        check_choice("reference", reference, self.strategies)
        return replace(self, reference=reference)

    def to_frame(self) -> pd.DataFrame:
        """Return the net benefit in a long table.

        Columns: strategy, threshold, net_benefit, se, lower, upper for each threshold by itself, band_lower,
        band_upper for all at once, and whether these are `reliable` and `band_reliable`; under competing risks, the
        cause first. Limits are NaN where nothing varies, as where a model treats no individual.
        """
        return stacked([self._columns(a, a) for a in range(len(self.strategies))])

    @property
    def contrasts(self) -> pd.DataFrame:
        """Long table of differences to the reference, with the same limits.

        Columns: strategy, reference, threshold, difference, se, lower, upper, band_lower, band_upper, reliable,
        band_reliable and discordant, the number of individuals on whom the two decide differently: the difference is
        due to these alone. Where they are so few that more than a tenth of the variance is that of the two who were
        added, intervals are too wide, and not `reliable`; nor is a band with a third of such.
        """
        r = self.strategies.index(self.reference)
        return stacked([self._columns(a, r) for a in range(len(self.strategies)) if a != r])

    def _columns(self, a: int, b: int) -> dict[str, Any]:
        """Return the table of a strategy (a = b), or of its difference to another, with standard errors and limits."""
        names = {**cause_column(self.cause), "strategy": self.strategies[a]}
        value, degrees = self.net_benefit[a], self.support.score_degrees
        label, beside = "net_benefit", dict[str, Any]()
        if a != b:
            names["reference"] = self.strategies[b]
            label, beside = "difference", {"discordant": self.discordant[pair(a, b)]}
            value, degrees = value - self.net_benefit[b], self.support.difference_degrees
        se = np.sqrt(self.moments.variance(a, b))
        normal = simultaneous_quantile(self.moments.covariance_over_time(a, b), self.level, self.n_draws, self.seed)
        known = np.where(se > 0, se, np.nan)
        half, wide = student_quantile(self.level, degrees) * known, with_degrees(normal, degrees) * known
        if a == b and self.strategies[a] == TREAT_NONE:  # zero, by what net benefit is
            half = wide = np.zeros_like(se)
        reliable = self.support.enough(FEW_FOR_DIFFERENCE) & (self.moments.added_share(a, b) <= MUCH_ADDED)
        return {
            **names,
            "threshold": self.thresholds,
            label: value,
            "se": se,
            "lower": value - half,
            "upper": value + half,
            "band_lower": value - wide,
            "band_upper": value + wide,
            "reliable": reliable,
            "band_reliable": self.reliable and 3 * np.count_nonzero(~reliable) < reliable.size,
            **beside,
        }

    def plot(
        self, ax: Any = None, *, band: bool = True, unit: Unit | str | None = None, width: float | None = None
    ) -> DecisionCurveDisplay:
        """Draw the net benefit of every strategy over thresholds with matplotlib, with or without simultaneous bands.

        Parameters
        ----------
        ax, band, unit, width
            As for `ScoreCurve.plot`; bands are those of the models.

        Returns
        -------
        DecisionCurveDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import DecisionCurveDisplay

        return DecisionCurveDisplay(self).plot(ax=ax, band=band, unit=unit, width=width)

    def _printed(self) -> Tables:
        r = self.strategies.index(self.reference)
        chosen = spread_over(np.arange(self.thresholds.size), MOST_THRESHOLDS)
        every = range(len(self.strategies))
        own, beside = [self._columns(a, a) for a in every], {a: self._columns(a, r) for a in every if a != r}
        places = decimals(np.concatenate([columns["se"] for columns in own]), otherwise=4)
        finer = max(places, decimals(se for columns in beside.values() for se in columns["se"][chosen]))
        rows: list[tuple[Cell, ...]] = []
        for j in chosen:
            for a, name in enumerate(self.strategies):
                difference: Cell = ""
                if a != r:
                    *limits, enough = (beside[a][key][j] for key in ("difference", "lower", "upper", "reliable"))
                    difference = Number(*limits, sign="+", reliable=bool(enough)).rounded(finer)
                threshold = f"{self.thresholds[j]:g}" if a == 0 else ""
                rows.append((threshold, shown(name), Number(self.net_benefit[a, j], decimals=places), difference))
        counted, events = self.support.n_counted[0], self.support.n_events[0]
        caption = (
            f"{cause_label('Net benefit', self.cause)} {self._when} (higher is better); {self.weighting}; "
            f"{counted:,.0f} counted, {events:,.0f} with event; "
            f"{100 * self.level:g} % intervals, for each threshold by itself"
        )
        notes = []
        if len(chosen) < self.thresholds.size:
            notes.append(f"{len(chosen)} of {plural(self.thresholds.size, 'threshold')}; to_frame() has all")
        if any(isinstance(row[3], Number) and row[3].doubtful for row in rows):
            notes.append(ON_TOO_FEW)
        header = ("threshold", "", "net benefit", f"difference to {shown(self.reference, 24)}")
        return Tables(caption, [Part("", header, rows, tuple(notes), "llrr", split=3)])

    def __repr__(self) -> str:
        ends = f"from {self.thresholds[0]:g} to {self.thresholds[-1]:g}"
        cause = f"cause {shown(self.cause)}, " if self.cause else ""
        few = "" if self.reliable else ", too few for reliable bands"
        return (
            f"DecisionCurve({', '.join(map(repr, self.strategies))}; reference {self.reference!r}, "
            f"{cause}{self._when}, {self.weighting}, {plural(self.thresholds.size, 'threshold')} {ends}, "
            f"n={self.support.n_counted[0]:g}, {self.support.n_events[0]:g} with event{few}, higher is better)"
        )


@takes_cause
def decision_curve(
    y: Outcomes,
    models: NamedCurves,
    time: float,
    *,
    thresholds: ArrayLike | None = None,
    weighting: str | Weighting = "administrative",
    reference: str | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    n_draws: int = 10_000,
    seed: int = 0,
    cause: Cause | None = None,
) -> DecisionCurve:
    r"""Net benefit of models over threshold probabilities, compared with treating all and none [1]_.

    .. math:: \mathrm{NB}(z) = \frac{\sum_i w_i 1\{p_i \ge z\}\,[y_i - (1 - y_i)\, z / (1 - z)]}{\sum_i w_i}

    with the risk :math:`p_i = 1 - \pi_i(t)`, the status :math:`y_i = 1\{T^*_i \le t\}` and the weights of the weighting
    at t. A model is useful at the thresholds where its curve is above both others.

    Parameters
    ----------
    y, models, groups
        As for `compare`.
    time : float
        The horizon of the event.
    thresholds : array_like, optional
        Threshold probabilities, strictly increasing between 0 and 1; by default 0.01, 0.02, ..., 0.99.
    weighting : str or Weighting, default "administrative"
        As for the scores; weights are divided by their sum.
    reference : str, optional
        The model, or "treat all" or "treat none", that the others are compared with; by default the first model.
    level : float, default 0.95
        Of intervals and bands.
    n_draws, seed : int
        Of the multiplier bootstrap behind the bands, which hold the whole true curve with this confidence.
    cause : str or int, optional
        Under competing risks the cause of events, as for `brier_score`.

    Returns
    -------
    DecisionCurve

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    A difference is due to the individuals on whom two strategies decide differently (`discordant`); variances of
    differences have :math:`(1 + (z/(1-z))^2)/(\sum w)^2` more (see `NetBenefit`), without which intervals from a few
    individuals would be far too narrow. A model that encodes the censoring time gains net benefit under IPCW, and none
    under the administrative weighting.

    References
    ----------
    .. [1] Vickers, van Calster and Steyerberg (2019). A simple, step-by-step guide to interpreting decision curve
       analysis. Diagnostic and Prognostic Research 3, 18.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 1000)
    >>> star, end = rng.exponential(1 / rate), rng.uniform(2, 10, 1000)
    >>> y = ss.Outcomes(np.minimum(star, end), star <= end, end)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * 5.0), times=[5]),
    ...     "pessimistic": ss.SurvivalCurves(np.exp(-rate[:, None] * 10.0), times=[5]),
    ... }
    >>> found = ss.decision_curve(y, models, 5, thresholds=[0.2, 0.4])
    >>> found
    DecisionCurve('truth', 'pessimistic', 'treat all', 'treat none'; reference 'truth', at 5, administrative,
    2 thresholds from 0.2 to 0.4, n=630, 238 with event, higher is better)
    >>> found.contrasts[["strategy", "threshold", "difference", "lower", "upper", "discordant"]].round(3)
          strategy  threshold  difference  lower  upper  discordant
    0  pessimistic        0.2      -0.012 -0.026  0.003         104
    1  pessimistic        0.4      -0.041 -0.077 -0.004         216
    2    treat all        0.2      -0.020 -0.037 -0.004         146
    3    treat all        0.4      -0.152 -0.198 -0.107         389
    4   treat none        0.2      -0.242 -0.287 -0.198         484
    5   treat none        0.4      -0.115 -0.157 -0.074         241
    """
    chosen = as_thresholds(thresholds)
    check_whole("n_draws", n_draws, 1, MOST_DRAWS)
    check_whole("seed", seed, 0)
    y, named = of_cause(y, models, cause, times=[time], whole=False, caller="decision_curve")
    for name, curves in named.items():
        if not isinstance(curves, SurvivalCurves):
            raise InputError(f"the curves of {name!r} must be SurvivalCurves, not {type(curves).__name__}")
        if name in (TREAT_ALL, TREAT_NONE):
            raise InputError(f"models must not be called {name!r}, which is the name of another strategy")
    strategies = (*named, TREAT_ALL, TREAT_NONE)
    reference = strategies[0] if reference is None else reference
    check_choice("reference", reference, strategies)
    at = AtTime.of(y, named, time, "net benefit", weighting=weighting, groups=groups, level=level)
    scored, decisions = at.scored, Decisions.of(at, chosen)
    return DecisionCurve(
        time=at.time,
        thresholds=chosen,
        strategies=strategies,
        reference=reference,
        net_benefit=decisions.net_benefit,
        moments=decisions.moments(at.evaluation.groups, float(scored.support.units.inflation[0])),
        discordant=decisions.discordant(),
        support=scored.support,
        weighting=scored.weighting,
        level=level,
        n_draws=n_draws,
        seed=seed,
        cause=scored.cause,
        clock=y.clock,
    )


def as_thresholds(thresholds: ArrayLike | None) -> Values:
    """Return threshold probabilities."""
    if thresholds is None:
        return np.arange(1, 100) / 100
    given = np.atleast_1d(as_array(thresholds, "thresholds"))
    if given.dtype.kind in "iuf" and given.ndim == 1:
        check_rule("thresholds", "between 0 and 1, threshold probabilities", ~((given > 0) & (given < 1)), given)
    return as_times(given, "thresholds")


@dataclass(frozen=True, eq=False)
class Decisions:
    """On whom strategies act at which thresholds, the net benefit of that, and its covariance over thresholds."""

    thresholds: Values
    #: Infinite where all are treated, minus infinity where none, and for those who are not counted. (strategies, n)
    risk: Values
    event: Values  # whether with event, or with which probability, (strategies, n)
    share: Values  # of the weights, (strategies, n)
    weight_sum: float
    estimations: list[Estimation]  # where the weights of each strategy come from, and what was estimated inside them

    @classmethod
    def of(cls, at: AtTime, thresholds: Values) -> Decisions:
        """Take models at a time."""
        weight = at.weight  # who is counted has one in all strata
        survival = np.array([*at.survival, *np.full((2, weight.shape[1]), [[-np.inf], [np.inf]])], dtype=np.float64)
        risk = np.where(weight[0] > 0, 1.0 - survival, -np.inf)
        share = weight / weight.max(axis=1, keepdims=True)  # before they are added up: they may be as large as can be
        share /= share.sum(axis=1, keepdims=True)
        known = (at.label > EVENT_FREE) * 1.0
        event = np.array([known if free is None else 1.0 - free for free in at.event_free])
        # weights are the same for all strategies, or each model has its own; then the last are those of a prediction
        # that is the same for all individuals, as "treat all" and "treat none" are
        own = np.minimum(np.arange(len(risk)), len(at.estimations) - 1)
        estimations = [at.estimations[k] for k in own]
        return cls(thresholds, risk, event[own], share[own], float(weight[0].sum()), estimations)

    @property
    def odds(self) -> Values:
        """The cost of treating one without event at each threshold, in treated ones with event."""
        return self.thresholds / (1.0 - self.thresholds)

    @property
    def _least(self) -> Values:
        """The least risks to act upon."""
        return self.thresholds - AT_THRESHOLD

    @cached_property
    def net_benefit(self) -> Values:
        """By strategy and threshold; of each strategy by one sort."""
        benefits = []
        for risk, event, share in zip(self.risk, self.event, self.share, strict=True):
            parts = np.array([event * share, (1.0 - event) * share])
            order = np.argsort(risk, kind="stable")
            below = np.concatenate((np.zeros((2, 1)), np.cumsum(parts[:, order], axis=1)), axis=1)
            with_event, without = below[:, -1:] - below[:, np.searchsorted(risk[order], self._least, side="left")]
            benefits.append(with_event - self.odds * without)
        return np.array(benefits)

    def discordant(self) -> NDArray[np.int64]:
        """Return on how many two strategies decide differently, (pairs, thresholds)."""

        def not_treated(risk: Values) -> NDArray[np.int64]:
            return np.searchsorted(np.sort(risk), self._least, side="left")

        both = [(self.risk[a], self.risk[b]) for a, b in pairs(len(self.risk))]
        return np.array([not_treated(np.minimum(*two)) - not_treated(np.maximum(*two)) for two in both])

    def moments(self, groups: Groups | None, factor: float) -> Moments:
        """Return the covariances over thresholds, which take the place of times, with the small-sample factor."""
        s, k = self.net_benefit.shape
        products, of_jumps = np.zeros((s * k, s * k)), np.zeros((s * k, s * k))
        by_group = np.zeros((s, 0 if groups is None else groups.n_groups, k))
        first = self.estimations[0]

        def crossed(values: Values, weights: Values | float = 1.0) -> Values:
            by_unit = values.transpose(1, 0, 2).reshape(values.shape[1], s * k)
            return np.asarray((weights * by_unit).T @ by_unit)

        for rows, influence, jumps in self._influences():
            if groups is None:
                factors = None if first.factors is None else first.factors.of_rows(rows, slice(0, 1))
                products += crossed(influence if factors is None else influence * factors)
            else:
                for table, of_strategy in zip(by_group, influence, strict=True):
                    arrays.add_rows(table, groups.codes[rows], of_strategy)
            if jumps is not None:
                of_jumps += crossed(jumps[1], first.training_steps[jumps[0], None])
        covariance = ((products + crossed(by_group)) * factor + of_jumps).reshape(s, k, s, k).swapaxes(1, 2)
        # differences have one with event and one without, on whom strategies would have differed, more
        each_status = np.array([np.ones_like(self.odds), self.odds]) * first.mean_weight / self.weight_sum
        unseen = each_status.T @ each_status
        over, added = [], []
        for a, b in pairs(s):
            own, more = covariance[a, a], np.zeros((k, k))
            if a != b:
                own, more = own + covariance[b, b] - covariance[a, b] - covariance[b, a], unseen
            over.append(own + more)
            added.append(np.diag(more))
        pointwise = np.diagonal(over, axis1=1, axis2=2).copy()
        return Moments(pointwise, np.zeros((0, k)), np.zeros((len(over), 0)), np.array(over), np.array(added))

    def _influences(self) -> Iterator[tuple[Any, Values, tuple[Any, Values] | None]]:
        """Yield individuals, their influences (strategies, rows, thresholds), and those of jumps of a training curve.

        Block by block, since influences of all individuals at all thresholds would take a hundred times the memory of
        their predictions. Where a curve was estimated inside the weights, individuals come in order of time.
        """
        first, k, n = self.estimations[0], self.thresholds.size, self.share.shape[1]
        censoring_jumps, projects = first.exits, first.weights.hidden_share is not None
        width = max(1, NUMBERS_PER_BLOCK // (len(self.risk) * k))
        blocks = [slice(start, min(start + width, n)) for start in range(0, n, width)]
        if censoring_jumps is None:
            for block in blocks:
                yield block, self._deviations(block), None
            return
        if censoring_jumps.martingale:  # all individuals of one time belong together
            blocks = [slice(0, n)]
        # all thresholds belong to one time, also where jumps of a training curve are held against it
        at_once: dict[int, OrderedExits] = {}
        exits = []
        for estimation in self.estimations:
            if id(estimation) not in at_once and estimation.exits is not None:
                at_once[id(estimation)] = estimation.exits.at_one_time(0, k)
            exits.append(at_once[id(estimation)])
        # whose weights move with what was estimated: not those that are capped
        moving_rows = [estimation.moves(slice(0, 1)) for estimation in self.estimations]
        moves = np.array([np.ones((n, 1), dtype=bool) if rows is None else rows for rows in moving_rows])
        totals = [np.zeros((own.n_strata, k)) for own in exits]
        for block in blocks if not projects else ():
            rows = censoring_jumps.order[block]
            for total, own, deviation in zip(totals, exits, self._deviations(rows) * moves[:, rows], strict=True):
                codes = np.zeros(len(rows), dtype=np.intp) if own.codes is None else own.codes[block]
                arrays.add_rows(total, codes, deviation)
        operators = [CurveInfluence(own, slice(0, k), -total) for own, total in zip(exits, totals, strict=True)]
        for block in blocks:
            rows = censoring_jumps.order[block]
            influence = self._deviations(rows)
            moving = self._gradients(rows) if projects else influence * moves[:, rows]
            in_block = {key: own.in_block(block) for key, own in at_once.items()}
            if censoring_jumps.model.fitted_on_sample:
                for a, (operator, estimation) in enumerate(zip(operators, self.estimations, strict=True)):
                    operator.add(influence[a], moving[a], in_block[id(estimation)], 0)
                yield rows, influence, None
            else:
                of_jumps = [
                    operator.at_training_jumps(x, in_block[id(first)], 0)
                    for operator, x in zip(operators, moving, strict=True)
                ]
                yield rows, influence, (of_jumps[0][0], np.array([X for _, X in of_jumps]))

    def _acts(self, rows: Any) -> NDArray[np.bool_]:
        return np.asarray(self.risk[:, rows, None] >= self._least)

    def _deviations(self, rows: Any) -> Values:
        """Return influences of some individuals while weights are held fixed, (strategies, rows, thresholds)."""
        event = self.event[:, rows, None]
        benefit = self._acts(rows) * (event - (1.0 - event) * self.odds)
        return np.asarray(self.share[:, rows, None] * (benefit - self.net_benefit[:, None]))

    def _gradients(self, rows: Any) -> Values:
        """Return how net benefits move with the logarithms of projected statuses, (strategies, rows, thresholds)."""
        weights = [estimation.weights for estimation in self.estimations]
        hidden = weights[0].hidden(slice(0, 1))[rows]
        if weights[0].hidden_base is None:
            event_free = (1.0 - self.event[:, rows, None]) * hidden
        else:  # by the incidence of a cause in place of the logarithm of a status
            event_free = np.array([np.asarray(own.hidden_share)[rows, None] * hidden for own in weights])
        return np.asarray(-self.share[:, rows, None] * self._acts(rows) * event_free * (1.0 + self.odds))

"""Discrimination: AUC at a time, and concordance up to a horizon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import dot
from survscore._validation import FloatArray, InputError, check_choice, check_length
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.inference.intervals import Direction, PossibleRange, Scale
from survscore.inference.units import coded
from survscore.metrics._pairs import Vector, pair_sums
from survscore.metrics.base import FollowUpMetric, History, MetricValue, SampleMetric
from survscore.metrics.sample import MetricSample

Kind = Literal["cohort", "pooled", "weighted", "harrell"]
Risk = Literal["final", "antolini"]
Controls = Literal["not-case", "event-free"]
CONTROLS = ("not-case", "event-free")
KINDS = ("cohort", "pooled", "weighted", "harrell")
RISKS = ("final", "antolini")
ROUNDING = 1e-13  # of a share of all pairs


def _share_of_pairs(value: float) -> float:
    """Return the share of concordant pairs; 0 or 1 where sums of weights were rounded, since intervals differ there."""
    nearest = float(np.round(value))
    return nearest if abs(value - nearest) < ROUNDING else value


@dataclass(frozen=True)
class AUC(SampleMetric):
    r"""Proportion of pairs in which the individual with the event had the higher predicted risk; ties count half.

    .. math:: \mathrm{AUC}(t) = \frac{\sum_{i, k} w_i w_k 1\{T_i \le t\} 1\{T_k > t\}
        [1\{\pi_i < \pi_k\} + \tfrac12 1\{\pi_i = \pi_k\}]}{W_1 W_0}

    with :math:`W_1` and :math:`W_0` the weights of those with and without event by t. Where all weights are 1 or 0,
    standard errors are DeLong's [1]_. A status that is projected is a case in part and a control in part, in pairs
    of two individuals.

    At 0.75 the one with event had the higher predicted risk three times in four; 0.5 is no discrimination. It depends
    on the order of predictions alone, so that the best value may go with wrong probabilities throughout. How high it
    can be depends on how much individuals differ: don't compare values of other populations, or other times. Under
    IPCW, predictions that encode :math:`C^*` raise it.

    Parameters
    ----------
    controls : {"not-case", "event-free"}, default "not-case"
        Under competing risks, with whom those are paired who had an event of the cause of interest by t:
        ``"not-case"``: all others, also those with an event of another cause, as R's riskRegression does.
        ``"event-free"``: those without any event; it is called ``"auc@event-free"``, also where a metric is asked for
        by name. Without competing risks it is the same.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
       characteristic curves. Biometrics 44, 837-845.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.5], [0.4]], times=[2])  # controls above, at and below the case
    >>> ss.score_all(y, curves, metric=ss.AUC(), weighting="administrative", times=[2])[0].scores
    array([0.5])
    """

    controls: Controls = "not-case"

    name: ClassVar[str] = "auc"
    label: ClassVar[str] = "AUC"
    direction: ClassVar[Direction] = "higher"
    has_ratios: ClassVar[bool] = False  # no discrimination is one half, and not zero
    scale: ClassVar[Scale] = "logit"
    possible: ClassVar[PossibleRange] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_choice("controls", self.controls, CONTROLS)
        if self.leaves_out_other_events:  # both can stand in one table
            object.__setattr__(self, "name", f"{type(self).name}@{self.controls}")
            object.__setattr__(self, "label", f"{type(self).label} against the event-free")

    @property
    def leaves_out_other_events(self) -> bool:  # type: ignore[override]  # noqa: D102
        return self.controls == "event-free"

    def evaluate(self, sample: MetricSample) -> MetricValue:  # noqa: D102
        without, with_event = sample.statuses
        if not (with_event and without):
            who = "with" if not with_event else "without"
            return MetricValue(np.nan, np.zeros(len(sample)), f"no individual {who} event is counted")
        order, ties = sample.order, sample.ties
        case = (sample.event * sample.weight)[order]
        control = sample.weight[order] - case
        by_case, by_control = np.add.reduceat(case, ties), np.add.reduceat(control, ties)
        cases, controls = by_case.sum(), by_control.sum()
        # for each distinct prediction, the share of controls above it, and of cases below it
        above = (controls - np.cumsum(by_control) + 0.5 * by_control) / controls
        below = (np.cumsum(by_case) - 0.5 * by_case) / cases
        value = dot(by_case, above) / float(cases)
        above, below = (np.repeat(share, np.diff(ties, append=order.size)) for share in (above, below))
        of_case, of_control = case / cases, control / controls
        if sample.other is not None:  # no individual forms a pair with itself, whose predictions would be tied
            other, pairs = sample.other[order], cases * controls
            if sample.counts is not None:  # of those who are alike, each with the others
                other = other / sample.counts[order]
            own = dot(case, other) / pairs
            value = (value - 0.5 * own) / (1.0 - own)
            above, below = above - (0.5 - value) * other / controls, below - (0.5 - value) * other / cases
            of_case, of_control = of_case / (1.0 - own), of_control / (1.0 - own)
        value = _share_of_pairs(value)
        influence = np.empty(order.size)
        influence[order] = of_case * (above - value) + of_control * (below - value)
        return MetricValue(value, influence)

    def small_sample(  # noqa: D102
        self,
        influence: NDArray[np.float64],
        label: NDArray[np.int8],
        counted: NDArray[np.bool_],
        counts: NDArray[np.float64] | None = None,
    ) -> float:
        # DeLong's variance has n/(n - 1) for those with event, and for those without
        control = label <= 0 if self.controls == "not-case" else label == 0
        total = 0.0
        for status in (counted & (label > 0), counted & control):
            n = float(np.count_nonzero(status) if counts is None else counts[status].sum())
            total += float(np.square(influence[status]).sum()) / (n - 1) if n > 1 else np.nan
        return total


@dataclass(frozen=True)
class Concordance(FollowUpMetric):
    r"""Proportion of pairs in which the individual with the earlier event, by tau, had the higher predicted risk.

    .. math:: C(\tau) = P(\rho_i > \rho_j \mid T^*_i < T^*_j,\, T^*_i \le \tau) \quad\text{(equal risks count half)}

    "At time t" it takes all events up to tau = t; 0.5 is no discrimination. It depends on the order of predictions
    alone, and no choice of horizon makes it a proper score: the best value may go with wrong probabilities throughout.

    Parameters
    ----------
    kind : {"cohort", "pooled", "weighted", "harrell"}, default "cohort"
        Of whom pairs are made.

        ``"cohort"``: those with :math:`C^*_i \ge \tau`, the same individuals at all times, without any assumption
        about :math:`C^*`. If some dropped out, pairs have the weight :math:`G_d(T_i-)^{-2}`.

        ``"pooled"``: at each event time s all individuals with :math:`C^*_i \ge s`, n(s) of them; pairs have the weight
        :math:`(n(s) G_d(s-))^{-2}`. It has more pairs, but where :math:`C^*` depends on the risk it can be biased in
        either direction, as Uno's can: it mixes different populations over time.

        ``"weighted"``: the same with the weight :math:`1 / [P_i(s) P_j(s) G_d(s-)^2]`, where :math:`P_i(s)` is the
        share with :math:`C^* \ge s` in the stratum of i. It refers to the whole population, if :math:`C^*` is
        independent of the event time within strata, and some of each stratum could be followed to every event time.

        ``"harrell"``: all pairs that can be ordered, without weights, whatever the weighting. What it estimates depends
        on the censoring.
    risk : {"final", "antolini"}, default "final"
        ``"final"``: :math:`\rho_i = 1 - \pi_i(\tau)`, one number for each individual. ``"antolini"``:
        :math:`\rho_i = 1 - \pi_i(T_i)` and :math:`\rho_j = 1 - \pi_j(T_i)`, at the time of the case, for curves that
        cross. Step curves are read at that time; others at the next time of their grid (or at tau, if that comes
        first), so that all cases between two grid times share a column: then the cost is that of a sort of those at
        risk for every grid time, and not of all pairs.
    strata : array_like of shape (n,), optional
        For ``"weighted"``: labels, one for each individual, such as the quarter of entry or a risk group; a numeric
        covariate is to be cut into classes. That the shares are estimated is part of standard errors.

    Notes
    -----
    Under competing risks it is that of Wolbers and others [3]_: who had an event of another cause by then is compared
    with the case, too, as one who will not have the event of interest. Such a pair has the weight
    :math:`[G(T_i-) G(T_j-)]^{-1}`, with :math:`T_j` the time of the other event.

    Under `IPCW`, no :math:`C^*` counts as known, and ``"cohort"`` is Uno's concordance [1]_ truncated at tau, as
    ``survival::concordance(timewt="n/G2", ymax=tau)`` of R gives it; ``"harrell"`` is its ``timewt="n"``. As in R,
    pairs with events at the same time are left out, and one who left without event at the time of another's event was
    seen event-free then, and makes a pair. Time is :math:`O(n \log n)` with ``risk="final"``, for each stratum.

    References
    ----------
    .. [1] Uno, Cai, Pencina, D'Agostino and Wei (2011). On the C-statistics for evaluating overall adequacy of risk
       prediction procedures with censored survival data. Statistics in Medicine 30, 1105-1117.
    .. [2] Antolini, Boracchi and Biganzoli (2005). A time-dependent discrimination index for survival data. Statistics
       in Medicine 24, 3927-3944.
    .. [3] Wolbers, Blanche, Koller, Witteman and Gerds (2014). Concordance for prognostic models with competing risks.
       Biostatistics 15, 526-539.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5, 2], event=[1, 1, 0, 0, 0], censoring_time=[4, 6, 4, 5, 2])
    >>> curves = ss.SurvivalCurves([[0.5], [0.8], [0.6], [0.9], [0.1]], times=[4])
    >>> scores = ss.score_all(
    ...     y, curves, metric=[ss.Concordance(), ss.Concordance("harrell")], weighting="administrative", times=[4]
    ... )
    >>> for score in scores:
    ...     print(score.metric, score.scores.round(4), score.n_counted)
    concordance [0.8] [4.]
    concordance (harrell) [0.6667] [5.]
    """

    kind: Kind = "cohort"
    risk: Risk = "final"
    strata: Any = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "concordance"
    label: ClassVar[str] = "concordance"
    direction: ClassVar[Direction] = "higher"
    has_ratios: ClassVar[bool] = False  # no discrimination is one half, and not zero
    scale: ClassVar[Scale] = "logit"
    possible: ClassVar[PossibleRange] = (0.0, 1.0)
    of_order: ClassVar[bool] = True
    weighs_other_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("risk", self.risk, RISKS)
        if self.kind == "weighted":
            if self.strata is None:
                raise InputError(
                    "kind='weighted' needs strata: labels, one for each individual, within which C* is independent of "
                    "the event"
                )
            object.__setattr__(self, "strata", coded(self.strata, "strata")[0].astype(np.intp))
        elif self.strata is not None:
            raise InputError(f"strata are for kind='weighted', not for kind={self.kind!r}")
        options = [chosen for chosen in (self.kind, self.risk) if chosen not in (KINDS[0], RISKS[0])]
        if options:  # several of them can stand in one table
            object.__setattr__(self, "name", f"concordance ({', '.join(options)})")

    def of_rows(self, rows: NDArray[np.intp]) -> Self:  # noqa: D102
        return self if self.strata is None else replace(self, strata=self.strata[rows])

    def eligible(self, history: History) -> NDArray[np.bool_]:  # noqa: D102
        return history.until >= (history.horizon if self.kind == "cohort" else 0.0)

    def evaluate(self, curves: SurvivalCurves, history: History) -> MetricValue:  # noqa: D102
        order, nothing = history.order, np.zeros(history.time.size)
        time, counted = history.time[order], self.eligible(history)[order]
        case = history.event[order] & counted
        if not case.any():
            return MetricValue(np.nan, nothing, "no counted individual had the event by then")
        case_weight = case.astype(np.float64)
        lost = None if self.kind == "harrell" else history.lost
        if lost is not None:
            observed = lost.before(time[case])
            if not observed.all():
                return MetricValue(
                    np.nan, nothing, "an event occurs when no individual could still be under observation"
                )
            case_weight[case] = 1.0 / observed
        shares = None
        if self.kind in ("pooled", "weighted"):
            codes = np.zeros(time.size, dtype=np.intp) if self.strata is None else self.strata
            check_length("strata", codes.size, "y", time.size)
            shares = _Shares(codes[order], history.until[order], counted, time, case, history.mass[order])
            if not shares.overlap:
                return MetricValue(np.nan, nothing, "no individual of some stratum could be followed to an event")

        kinds = _kinds_of_pairs(history, case_weight, counted, lost)
        by_stratum, of_control, once = self._pairs(curves, history, kinds, shares)
        total = float(by_stratum[1].sum())
        if not total > 0:
            return MetricValue(np.nan, nothing, "no individual was observed event-free after any event")
        value = _share_of_pairs(float(by_stratum[0].sum() / total))
        by_part = (by_stratum[0] - value * by_stratum[1]) / total
        of_case = by_part.sum(axis=0)
        influence = of_case + (of_control[0] - value * of_control[1]) / total
        if shares is not None:
            influence += shares.influence(of_case, by_part)
        gradient = None
        if history.lost is not None:
            gradient = np.zeros(history.lost.times.size)
            if lost is not None:  # a pair's weight has the factor of every exit before the case, twice
                gradient = 2.0 * _later(time, of_case, lost.times)
            if lost is not None and history.other_event_time is not None:  # or once, and once of those before a control
                by_case, by_control = (one[0] - value * one[1] for one in once / total)
                gradient -= _later(time, by_case, lost.times)
                gradient += _later(history.other_event_time[order], by_control, lost.times)
        unsorted = np.empty(time.size)
        unsorted[order] = influence
        return MetricValue(value, unsorted, moved=gradient)

    def _pairs(
        self, curves: SurvivalCurves, history: History, kinds: list[_Pairs], shares: _Shares | None
    ) -> tuple[Vector, Vector, Vector]:
        """Return what pairs weigh, concordant ones and all, by case and by control; in order of time.

        By case for each stratum of controls: (2, strata, n); by control (2, n). Last, of the pairs whose weight has the
        case's factor once, by case and by control, (2, 2, n).
        """
        event = (history.label != 0)[history.order]
        n_strata, n = 1 if shares is None else shares.n, event.size
        of_case, of_control, once = np.zeros((2, n_strata, n)), np.zeros((2, n)), np.zeros((2, 2, n))
        is_case = kinds[0].case > 0
        for survival, cases, risk_set in self._risk_sets(curves, history, is_case):
            for g in range(n_strata):
                for kind in kinds:
                    weight, control = np.where(cases, kind.case, 0.0), kind.control
                    if shares is not None:
                        weight, control = weight * shares.case_weight(g), control * (shares.codes == g)
                    weight, control = weight[risk_set], control[risk_set]
                    sums = pair_sums(kind.time[risk_set], event[risk_set], survival[risk_set], weight, control)
                    by_case, by_control = kind.sign * weight * sums[:2], kind.sign * control * sums[2:]
                    of_case[:, g, risk_set] += by_case
                    of_control[:, risk_set] += by_control
                    if kind.once:
                        once[:, :, risk_set] += np.array([by_case, by_control])
        return of_case, of_control, once

    def _risk_sets(
        self, curves: SurvivalCurves, history: History, case: NDArray[np.bool_]
    ) -> Iterator[tuple[FloatArray, NDArray[np.bool_], slice]]:
        """Yield the predictions, the cases that are compared by them, and who was still at risk, by time."""
        horizon, order = history.horizon, history.order

        def at(time: float) -> FloatArray:
            column = curves.at([time])[:, 0]
            return np.broadcast_to(column, order.size) if len(column) == 1 else column[order]

        if self.risk == "final":
            yield at(horizon), case, slice(None)
            return
        time, step = history.time[order], curves.interpolation == "step"
        knots = np.union1d(curves.times[curves.times < horizon], [0.0, horizon])
        knot_of = np.searchsorted(knots, time, side="right") - 1 if step else np.searchsorted(knots, time, side="left")
        for k in np.unique(knot_of[case]):
            cases = case & (knot_of == k)
            first = np.searchsorted(time, time[np.argmax(cases)], side="left")
            yield at(float(knots[k])), cases, slice(int(first), None)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs whose weight is a product of one number of the case and one of the control; all in order of time."""

    #: When each leaves: a control has to be there when the case has its event.
    time: Vector
    case: Vector
    control: Vector
    sign: float = 1.0
    #: Whether their weight has the factor of each exit before the case once, and that of those before the control once.
    once: bool = False


def _kinds_of_pairs(
    history: History, case: Vector, counted: NDArray[np.bool_], lost: ProductLimit | None
) -> list[_Pairs]:
    """Return the pairs; `case` is the inverse of the curve of being under observation just before each case.

    Those with another event stay to the end of their follow-up, with the factor of when they had it, from then on.
    """
    time, mass = history.time[history.order], history.mass[history.order]
    control = counted * mass
    if lost is None or history.other_event_time is None:
        return [_Pairs(time, mass * case**2, control)]
    left = history.other_event_time[history.order]
    others, until_event = left < np.inf, np.minimum(time, left)
    known = lost.before(np.where(others, left, 0.0))
    factor = np.where(others & (known > 0), control / np.where(known > 0, known, 1.0), 0.0)
    return [
        _Pairs(until_event, mass * case**2, control),
        # of those with another event the pairs from it on: all pairs, less those before it
        _Pairs(time, mass * case, factor, once=True),
        _Pairs(until_event, mass * case, factor, sign=-1.0, once=True),
    ]


def _later(time: Vector, values: Vector, at: Vector) -> Vector:
    """Return the sums of the values of those whose time is after each of some others."""
    order = np.argsort(time, kind="stable")
    rest = np.append(np.cumsum(values[order][::-1])[::-1], 0.0)
    return np.asarray(rest[np.searchsorted(time[order], at, side="right")])


class _Shares:
    """The shares of each stratum that could be followed to the cases' times; everything is in the order of time."""

    def __init__(
        self,
        codes: NDArray[np.intp],
        until: Vector,
        counted: NDArray[np.bool_],
        time: Vector,
        case: NDArray[np.bool_],
        mass: Vector,
    ) -> None:
        self.codes, self.case, self.counted, self.mass = codes, case, counted, mass
        self.n = int(codes.max()) + 1
        self.size = np.bincount(codes[counted], mass[counted], self.n)
        #: To how many of the cases' times each is followed.
        self.passed = np.searchsorted(time[case], until, side="right")
        shape = self.n, int(np.count_nonzero(case)) + 1
        left = np.bincount(codes[counted] * shape[1] + self.passed[counted], mass[counted], shape[0] * shape[1])
        #: How many of each stratum are followed to each case's time, (strata, cases); summed from the last time on, so
        #: that rounding leaves nothing where nobody is.
        self.followed = np.cumsum(left.reshape(shape)[:, ::-1], axis=1)[:, ::-1][:, 1:]

    @property
    def overlap(self) -> bool:
        """Whether some individual of every stratum could be followed to every case's time."""
        return bool((self.followed[self.size > 0] > 0).all())

    def case_weight(self, g: int) -> Vector:
        """Return by how much the pairs of each case with controls of a stratum count more; zero for others."""
        weight = np.zeros(self.codes.size)
        if self.size[g] > 0:
            own, places = self.codes[self.case], np.arange(self.followed.shape[1])
            weight[self.case] = self.size[own] / self.followed[own, places] * self.size[g] / self.followed[g]
        return weight

    def influence(self, of_case: Vector, by_part: NDArray[np.float64]) -> Vector:
        r"""Return what each individual adds by moving the shares.

        :math:`\log(N_g / n_g(s))` moves by :math:`1/N_g - 1\{C^*_k \ge s\}/n_g(s)` with k of the stratum, in the
        weights of all pairs whose case or control is of it.
        """
        added = np.zeros(self.codes.size)
        for g in np.flatnonzero(self.size > 0).tolist():
            own = np.where(self.codes == g, of_case, 0.0) + by_part[g]
            sums = np.concatenate(([0.0], np.cumsum(own[self.case] / self.followed[g])))
            members = self.counted & (self.codes == g)
            added[members] = self.mass[members] * (own.sum() / self.size[g] - sums[self.passed[members]])
        return added

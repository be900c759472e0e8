"""Who is told from whom over all time up to a horizon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.loops import count_below
from survscore._validation import FloatArray, InputError, as_array, check_choice, check_length
from survscore.curves import SurvivalCurves
from survscore.metrics._pairs import pair_sums
from survscore.metrics.base import Direction, Found, History, HistoryMetric, Scale

Kind = Literal["cohort", "pooled", "weighted", "harrell"]
Risk = Literal["final", "antolini"]
KINDS = ("cohort", "pooled", "weighted", "harrell")
RISKS = ("final", "antolini")

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Concordance(HistoryMetric):
    r"""How often, of two individuals, the one whose event came first by tau had been given the higher risk.

    .. math:: C(\tau) = P(\rho_i > \rho_j \mid T^*_i < T^*_j,\, T^*_i \le \tau) \quad\text{(equal risks count half)}

    "At time t" it speaks of all events up to tau = t; 0.5 is a coin. It is about order alone: a model can have the
    highest concordance and be far off with every probability, and no choice of horizon makes it a proper score.

    Parameters
    ----------
    kind : {"cohort", "pooled", "weighted", "harrell"}, default "cohort"
        Of whom pairs are made.

        ``"cohort"``: those with :math:`C^*_i \ge \tau`, the same people at all times, and nothing has to be known about
        :math:`C^*`. If some dropped out, pairs have the weight :math:`G_d(T_i-)^{-2}`.

        ``"pooled"``: at each event time s everybody with :math:`C^*_i \ge s`, n(s) of them; pairs have the weight
        :math:`(n(s) G_d(s-))^{-2}`. It has more pairs, but where :math:`C^*` tells about the risk, it mixes other
        people at other times, and can be off to either side, as Uno's can.

        ``"weighted"``: the same with the weight :math:`1 / [P_i(s) P_j(s) G_d(s-)^2]`, where :math:`P_i(s)` is the
        share with :math:`C^* \ge s` in the stratum of i. It speaks for everybody, if :math:`C^*` is independent of the
        event time within strata, and each has somebody who could be followed to every event time.

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
        covariate is to be cut into classes. That the shares are estimated is part of standard errors. Each stratum
        costs one more pass.

    Notes
    -----
    Under `IPCW`, nobody's :math:`C^*` counts as known, and ``"cohort"`` is Uno's concordance [1]_ truncated at tau, as
    ``survival::concordance(timewt="n/G2", ymax=tau)`` of R gives it; ``"harrell"`` is its ``timewt="n"``. Pairs with
    events at one and the same time are left out; one who left without event at the time of another's event was seen
    event-free then, and makes a pair. Both as in R.

    Without drop-outs there are no weights in ``"cohort"``. Time is :math:`O(n \log n)` with ``risk="final"``.

    References
    ----------
    .. [1] Uno, Cai, Pencina, D'Agostino and Wei (2011). On the C-statistics for evaluating overall adequacy of risk
       prediction procedures with censored survival data. Statistics in Medicine 30, 1105-1117.
    .. [2] Antolini, Boracchi and Biganzoli (2005). A time-dependent discrimination index for survival data. Statistics
       in Medicine 24, 3927-3944.

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
    has_ratios: ClassVar[bool] = False  # a half is what tells nobody apart
    scale: ClassVar[Scale] = "logit"
    of_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("risk", self.risk, RISKS)
        if self.kind == "weighted":
            object.__setattr__(self, "strata", _coded(self.strata))
        elif self.strata is not None:
            raise InputError(f"strata are for kind='weighted', not for kind={self.kind!r}")
        options = [*([self.kind] if self.kind != "cohort" else []), *([self.risk] if self.risk != "final" else [])]
        if options:  # several of them can stand in one table
            object.__setattr__(self, "name", f"concordance ({', '.join(options)})")

    def of_rows(self, rows: NDArray[np.intp]) -> Self:  # noqa: D102
        return self if self.strata is None else replace(self, strata=self.strata[rows])

    def speaks_for(self, history: History) -> NDArray[np.bool_]:  # noqa: D102
        return history.until >= (history.horizon if self.kind == "cohort" else 0.0)

    def evaluate(self, curves: SurvivalCurves, history: History) -> Found:  # noqa: D102
        order, nothing = history.order, np.zeros(history.time.size)
        time, counted = history.time[order], self.speaks_for(history)[order]
        case = history.event[order] & counted
        if not case.any():
            return Found(np.nan, nothing, "nobody who is counted had the event by then")
        case_weight = case.astype(np.float64)
        lost = None if self.kind == "harrell" else history.lost
        if lost is not None:
            observed = lost.before(time[case])
            if not observed.all():
                return Found(np.nan, nothing, "somebody has the event when nobody could be under observation any more")
            case_weight[case] = observed**-2.0
        shares = None
        if self.kind in ("pooled", "weighted"):
            codes = self._codes(time.size)[order]
            shares = _Shares(codes, history.until[order], counted, time, case)
            if not shares.overlap:
                return Found(np.nan, nothing, "nobody of some stratum could be followed to somebody's event")

        # by stratum of the control: what each case's pairs weigh, and those that are concordant
        n_parts = 1 if shares is None else shares.n
        concordant, total = np.zeros((n_parts, time.size)), np.zeros((n_parts, time.size))
        control_concordant, control_total = np.zeros(time.size), np.zeros(time.size)
        event = (history.label != 0)[order]
        for survival, some, risk_set in self._readings(curves, history, order, case):
            for g in range(n_parts):
                weight, control = np.where(some, case_weight, 0.0), counted.astype(np.float64)
                if shares is not None:
                    weight, control = weight * shares.case_weight(g), control * (shares.codes == g)
                weight, control = weight[risk_set], control[risk_set]
                sums = pair_sums(time[risk_set], event[risk_set], survival[risk_set], weight, control)
                concordant[g, risk_set] += weight * sums.case_concordant
                total[g, risk_set] += weight * sums.case_total
                control_concordant[risk_set] += control * sums.control_concordant
                control_total[risk_set] += control * sums.control_total
        weight_of_all = total.sum()
        if not weight_of_all > 0:
            return Found(np.nan, nothing, "nobody was seen event-free after somebody's event")
        value = float(concordant.sum() / weight_of_all)
        by_part = (concordant - value * total) / weight_of_all
        of_case = by_part.sum(axis=0)
        influence = of_case + (control_concordant - value * control_total) / weight_of_all
        if shares is not None:
            influence += shares.influence(of_case, by_part)
        moved = None
        if history.lost is not None:
            # a pair's weight has the factor of every exit before the case, twice
            later = np.cumsum(of_case[::-1])[::-1]
            after = np.searchsorted(time, history.lost.times, side="right")
            moved = 2.0 * np.append(later, 0.0)[after] if lost is not None else np.zeros(after.size)
        unsorted = np.empty(time.size)
        unsorted[order] = influence
        return Found(value, unsorted, moved=moved)

    def _readings(
        self, curves: SurvivalCurves, history: History, order: NDArray[np.int32], case: NDArray[np.bool_]
    ) -> Iterator[tuple[FloatArray, NDArray[np.bool_], slice]]:
        """Yield predictions of everybody, the cases that are judged by them, and who was still there, by time."""

        def at(time: float) -> FloatArray:
            column = curves.at([time])[:, 0]
            return np.broadcast_to(column, order.size) if len(column) == 1 else column[order]

        horizon, time = history.horizon, history.time[order]
        if self.risk == "final":
            yield at(horizon), case, slice(None)
            return
        knots = np.union1d(curves.times[curves.times < horizon], [0.0, horizon])
        if curves.interpolation == "step":
            knot_of = np.searchsorted(knots, time, side="right") - 1
        else:
            knot_of = np.searchsorted(knots, time, side="left")
        for k in np.unique(knot_of[case]):
            some = case & (knot_of == k)
            first = np.searchsorted(time, time[np.argmax(some)], side="left")
            yield at(float(knots[k])), some, slice(int(first), None)

    def _codes(self, n: int) -> NDArray[np.intp]:
        if self.strata is None:
            return np.zeros(n, dtype=np.intp)
        check_length("strata", self.strata.size, "y", n)
        codes: NDArray[np.intp] = self.strata
        return codes


class _Shares:
    """The shares of each stratum that could be followed to the cases' times; everything is in the order of time."""

    def __init__(
        self,
        codes: NDArray[np.intp],
        until: Vector,
        counted: NDArray[np.bool_],
        time: Vector,
        case: NDArray[np.bool_],
    ) -> None:
        self.codes, self.case, self.counted = codes, case, counted
        self.n = int(codes.max()) + 1
        self.size = np.bincount(codes[counted], minlength=self.n).astype(np.float64)
        #: To how many of the cases' times each is followed.
        self.passed = count_below(time[case], until, inclusive=True)
        n_cases = int(np.count_nonzero(case))
        #: How many of each stratum are followed to each case's time, (strata, cases).
        self.followed = np.array(
            [
                self.size[g] - np.cumsum(np.bincount(self.passed[self._members(g)], minlength=n_cases + 1)[:n_cases])
                for g in range(self.n)
            ],
            dtype=np.float64,
        )

    def _members(self, g: int) -> NDArray[np.bool_]:
        return np.asarray(self.counted & (self.codes == g))

    @property
    def overlap(self) -> bool:
        """Whether somebody of every stratum could be followed to every case's time."""
        return bool((self.followed[self.size > 0] > 0).all())

    def case_weight(self, g: int) -> Vector:
        """Return by how much the pairs of each case with controls of a stratum count more; zero for others."""
        weight = np.zeros(self.codes.size)
        if self.size[g] > 0:
            own, places = self.codes[self.case], np.arange(self.followed.shape[1])
            weight[self.case] = self.size[own] / self.followed[own, places] * self.size[g] / self.followed[g]
        return weight

    def influence(self, of_case: Vector, by_part: NDArray[np.float64]) -> Vector:
        r"""Return what everybody adds by moving the shares.

        :math:`\log(N_g / n_g(s))` moves by :math:`1/N_g - 1\{C^*_k \ge s\}/n_g(s)` with k of the stratum, in the
        weights of all pairs whose case or control is of it.
        """
        added = np.zeros(self.codes.size)
        for g in np.flatnonzero(self.size > 0).tolist():
            own = np.where(self.codes == g, of_case, 0.0) + by_part[g]
            sums = np.concatenate(([0.0], np.cumsum(own[self.case] / self.followed[g])))
            members = self._members(g)
            added[members] = own.sum() / self.size[g] - sums[self.passed[members]]
        return added


def _coded(strata: Any) -> NDArray[np.intp]:
    """Return labels as numbers from 0 on."""
    if strata is None:
        raise InputError(
            "kind='weighted' needs strata: labels, one for each individual, within which C* tells nothing about the "
            "event"
        )
    labels = as_array(strata, "strata")
    if labels.ndim != 1:
        raise InputError(f"strata must be one-dimensional, not of shape {labels.shape}")
    if labels.dtype.kind in "biu":
        return np.unique(labels, return_inverse=True)[1]
    values = labels.tolist()
    missing = [label is None or label != label for label in values]  # noqa: PLR0124
    if any(missing):
        raise InputError(
            f"strata must be given for everybody: {sum(missing)} of {labels.size} are missing, the first at position "
            f"{missing.index(True)}"
        )
    places = {label: place for place, label in enumerate(dict.fromkeys(values))}
    return np.array([places[label] for label in values], dtype=np.intp)

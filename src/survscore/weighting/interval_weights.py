r"""Weights as index ranges of the evaluation times, never as a matrix.

Whatever the weighting, an individual's weights over the evaluation times are at most three ranges:

1. before its own time T it is event-free, with a weight that depends on t and on its stratum: 1 or :math:`1/G_k(t)`;
2. from T to where it stops being counted it has its *final status*, with one weight of its own: 1 or :math:`1/G_k(T-)`;
3. from there to where it leaves the population, under a weighting that projects, its status is a fraction: event-free
   with probability :math:`h_i S_k(t)`, with :math:`S_k` the curve of its stratum (or :math:`S_i`, its own) and
   :math:`h_i` one number per individual.

The final status is a label: still event-free (censored at exactly :math:`C^* = t`), or the cause of the event. A weight
that says which population a score describes, :math:`v_i(t)`, is a factor on both weights.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property, in_slices
from survscore._validation import FloatArray
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.fitted import CensoringModel
from survscore.censoring.product_limit import ProductLimit, order_of
from survscore.curves import SurvivalCurves
from survscore.inference.units import SampleWeights, n_eligible
from survscore.interpolation import Interpolation
from survscore.outcomes import Outcomes

EVENT_FREE = 0  # the status of those without event; 1 and more are causes

Rows = slice | NDArray[np.intp]
MANY_KEYS = 4096


class TimeIndex:
    """Where the individuals' own times fall among the evaluation times; shared by all weightings."""

    def __init__(self, outcomes: Outcomes, times: NDArray[np.float64]) -> None:
        self.outcomes = outcomes
        self.times = times
        self._interpolations: list[tuple[SurvivalCurves, Interpolation]] = []

    def interpolation(self, curves: SurvivalCurves) -> Interpolation:
        """Return how curves are read at the evaluation times; the same for all rows of a grid, so it is made once."""
        for same in (operator.is_, np.array_equal):  # batches may come each with a copy of the grid
            for known, interpolation in self._interpolations:
                if known.interpolation == curves.interpolation and same(known.times, curves.times):
                    return interpolation
        interpolation = curves.interpolate(self.times)
        self._interpolations.append((curves[[]], interpolation))  # the grid alone, and no view of the curves
        return interpolation

    def numpy(self) -> TimeIndex:
        """Return the same in the processor's memory, with individuals of the same time in the same order."""
        index = TimeIndex(self.outcomes.numpy(), self.times)
        index.order = arrays.to_host(self.order)
        return index

    @cached_property
    def label(self) -> NDArray[np.int8]:
        """Each individual's final status: 1 with the event of interest, `EVENT_FREE` without, or with another event."""
        label: NDArray[np.int8] = arrays.as_int8(self.outcomes.event_of_interest)
        return label

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Positions in order of time; at ties events, then administrative ends, then drop-outs.

        In this order those who leave a risk set together are neighbours, whichever exits a product limit counts, and
        those at risk of an exit are those who come at or after the first who exits then.
        """
        rank = 1 - arrays.as_int8(self.outcomes.event)
        if self.outcomes.censoring_time is not None:
            rank = rank + arrays.as_int8(self.outcomes.dropped_out)
        order: NDArray[np.intp] = order_of(self.outcomes.time, rank)
        return order

    @property
    def ordered_time(self) -> NDArray[np.float64]:
        """All times, in order; not kept."""
        time: NDArray[np.float64] = arrays.take(self.outcomes.time, self.order)
        return time

    @cached_property
    def before_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t < T: those at which T > t."""
        return count_times(self.times, self.outcomes.time, inclusive=False)

    @cached_property
    def until_censoring_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t <= C*."""
        if self.outcomes.censoring_time is None:
            raise TypeError("until_censoring_time needs censoring_time")
        return count_times(self.times, self.outcomes.censoring_time, inclusive=True)

    @cached_property
    def until_time(self) -> NDArray[np.int32]:
        """How many evaluation times have t <= T."""
        return count_times(self.times, self.outcomes.time, inclusive=True)

    @cached_property
    def until_hidden(self) -> NDArray[np.int32]:
        """How many evaluation times come before the status is hidden: all for an event, else those with t <= T."""
        end: NDArray[np.int32] = arrays.where(self.outcomes.event, np.int32(self.times.size), self.until_time)
        return end

    @cached_property
    def n_followed(self) -> NDArray[np.float64]:
        """How many individuals were followed event-free to each evaluation time."""
        return self.n_eligible(arrays.where(self.outcomes.event, self.before_time, self.until_time))

    @cached_property
    def sample(self) -> SampleWeights | None:
        """The sample weights of the individuals; None where all count alike."""
        return SampleWeights.of(self.outcomes)

    @property
    def counts(self) -> Any:
        """How many individuals each stands for; None where that is one."""
        return None if self.sample is None else self.sample.counts

    @cached_property
    def n(self) -> float:
        """How many individuals there are."""
        return float(len(self.outcomes)) if self.counts is None else float(self.counts.sum())

    def n_eligible(self, stop: Any) -> NDArray[np.float64]:
        """Return how many individuals have a `stop` after each evaluation time."""
        return n_eligible(stop, self.times.size, self.counts)

    @cached_property
    def to_the_end(self) -> NDArray[np.int32]:
        """All evaluation times, for each individual; takes no memory."""
        end: NDArray[np.int32] = arrays.repeated(np.int32(self.times.size), len(self.outcomes), self.outcomes.time)
        return end


def count_times(times: NDArray[np.float64], own: Any, *, inclusive: bool) -> NDArray[np.int32]:
    """Return for each individual how many evaluation times come before its own (or at it), on all cores."""
    if arrays.is_tensor(own):
        found: NDArray[np.int32] = arrays.count_below(times, own, inclusive=inclusive)
        return found
    table = _Buckets.of(times) if own.size >= MANY_KEYS else None
    found = np.empty(own.size, dtype=np.int32)

    def fill(rows: slice) -> None:
        if table is not None:
            found[rows] = table.count(own[rows], inclusive=inclusive)
        else:
            found[rows] = np.searchsorted(times, own[rows], side="right" if inclusive else "left")

    in_slices(fill, own.size)
    return found


@dataclass(frozen=True, eq=False)
class _Buckets:
    """Evaluation times by equal-width buckets with at most one time each: looking up needs no search (6 times faster).

    A time's bucket is a non-decreasing function of it, also after rounding: so those of lower buckets are below, those
    of higher ones above, and only the one of the same bucket is compared.
    """

    first: float
    scale: float
    starts: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, times: NDArray[np.float64]) -> _Buckets | None:
        """Return them, or None where times are too uneven."""
        width = float(times[-1] - times[0])
        fits = width > 0 and np.isfinite((1 << 14) / width)  # not where times differ by less than numbers have digits
        for size in (1 << 10, 1 << 14) if fits else ():
            table = cls(float(times[0]), size / width, np.zeros(size, dtype=np.int32), np.full(size, np.inf))
            place = table._place(times)
            if np.all(place[1:] > place[:-1]):
                table.starts[:] = np.searchsorted(place, np.arange(size), side="left")
                table.values[place] = times
                return table
        return None

    def _place(self, keys: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the bucket of each key; that of a key before the first time may be negative."""
        place = (keys - self.first) * self.scale
        return np.minimum(place, self.starts.size - 1, out=place).astype(np.intp)

    def count(self, keys: NDArray[np.float64], *, inclusive: bool) -> NDArray[np.int32]:
        """Return how many times come before each key, or at it."""
        place = self._place(keys)
        compare = np.less_equal if inclusive else np.less
        # unlike indexing, `take` lets other threads work; clipping moves negative places to the first bucket
        count = self.starts.take(place, mode="clip")
        count += compare(self.values.take(place, mode="clip"), keys)
        return count


@dataclass(frozen=True, eq=False)
class IntervalWeights:
    """The weights of n individuals at m evaluation times."""

    #: Individual i is counted as event-free at the times before ``event_index[i]``, and with its final status from
    #: there to ``follow_up_index[i]``, which is not smaller. Shape (n,).
    event_index: NDArray[np.int32]
    follow_up_index: NDArray[np.int32]
    label: NDArray[np.int8]  #: The final status. Shape (n,).
    #: The weight in the first range; None where it is 1/G_i(t) of `survival`, at most `max_weight`. Shape (strata, m)
    #: or None.
    weight_at_risk: NDArray[np.float64] | None
    weight_at_event: NDArray[np.float64]  #: The weight in the second range. Shape (n,).
    #: At the times before it, individual i belongs to the population that the score describes, lost or not. Shape (n,).
    population_index: NDArray[np.int32]
    #: The stratum of each individual, from 0 on; None for one stratum. Shape (n,).
    codes: NDArray[np.int32] | None = None
    #: Curves of G_i, and of P(C* >= t | X), by which both weights are divided.
    survival: SurvivalCurves | None = None
    population: SurvivalCurves | None = None
    max_weight: float = np.inf  #: Larger weights were set to this.
    #: What was estimated inside the weights (or inside the projected status).
    censoring_model: CensoringModel | None = None
    #: From here to `population_index` the status of individual i is unknown; None where none is known to have dropped
    #: out. Shape (n,).
    dropout_index: NDArray[np.int32] | None = None
    #: From this evaluation time on only individuals with event are left, though others were censored; or there is no
    #: score for another reason.
    support_end: int | None = None
    support_reason: str = ""
    #: In the third range, from `follow_up_index` to `population_index`, individual i is event-free with probability
    #: ``hidden_share[i] * reference[stratum, t]``, or that of its own curve, and counts with `weight_at_event`; 0 for
    #: those without one. Shape (n,) and (strata, m).
    hidden_share: NDArray[np.float64] | None = None
    reference: NDArray[np.float64] | ReferenceCurves | None = None
    #: Under competing risks, what is added to it: ``1 - U(c_i) / S(c_i)``, where `hidden_share` is ``1 / S(c_i)`` and
    #: `reference` U, the incidence of the cause that is still to come (`censoring.aalen_johansen`). Shape (n,).
    hidden_base: NDArray[np.float64] | None = None
    #: How many evaluation times have t <= C*, where the score has two parts: those who could be followed so far, and
    #: the others. Shape (n,).
    observed_index: NDArray[np.int32] | None = None
    #: By what all weights of an individual are multiplied; None where all count alike.
    sample: SampleWeights | None = None

    @property
    def n_strata(self) -> int:
        """How many strata there are."""
        return 1 if self.weight_at_risk is None else len(self.weight_at_risk)

    @property
    def individual(self) -> bool:
        """Whether weights or statuses come from curves of each individual, so that they are a matrix after all."""
        return not (self.survival is None and self.population is None) or isinstance(self.reference, ReferenceCurves)

    @property
    def reference_curves(self) -> SurvivalCurves | None:
        """The curves of each individual that statuses are projected by."""
        return self.reference.curves if isinstance(self.reference, ReferenceCurves) else None

    @cached_property
    def all_ones(self) -> bool:
        """Whether all who are counted have weight one."""
        if self.individual or self.weight_at_risk is None or not arrays.is_repeated(self.weight_at_event):
            return False
        return bool((self.weight_at_risk == 1.0).all()) and bool((self.weight_at_event[:1] == 1.0).all())

    def rows(self, rows: Rows) -> IntervalWeights:
        """Return the weights of some individuals; nothing is estimated anew."""
        vectors = ("event_index", "follow_up_index", "label", "weight_at_event", "population_index")
        others = (
            "codes",
            "survival",
            "population",
            "dropout_index",
            "hidden_share",
            "hidden_base",
            "observed_index",
            "sample",
        )
        picked = {name: getattr(self, name)[rows] for name in vectors}
        picked |= {name: getattr(self, name)[rows] for name in others if getattr(self, name) is not None}
        if isinstance(self.reference, ReferenceCurves):
            picked["reference"] = self.reference[rows]
        return replace(self, **picked)

    def known(self, n_times: int) -> IntervalWeights:
        """Return who is known to have which status, with weight one; the lost, as long as they were followed."""
        if self.dropout_index is None:
            raise TypeError("no individual dropped out")
        return replace(
            self,
            follow_up_index=self.dropout_index,
            weight_at_risk=np.ones((1, n_times)),
            weight_at_event=arrays.repeated(1.0, len(self.label), self.label),
            codes=None,
            survival=None,
            max_weight=np.inf,
            censoring_model=None,
        )

    def numpy(self) -> IntervalWeights:
        """Return the same in the processor's memory."""
        return replace(self, **{field.name: _on_host(getattr(self, field.name)) for field in fields(self)})

    def observed(self) -> IntervalWeights:
        """Return the weights of those who could be followed to t, at each time."""
        end = self.observed_index
        if end is None:
            raise TypeError("who could be followed how long is not known")
        known = arrays.where(self.label != EVENT_FREE, end, arrays.minimum(self.follow_up_index, end))
        return replace(self, follow_up_index=known, population_index=end, censoring_model=None)

    def event_from(self, before_time: NDArray[np.int32], n_times: int) -> NDArray[np.int32]:
        """Return the first time at which each individual has had the event, `n_times` for those who have not."""
        start: NDArray[np.int32] = arrays.where(self.label != EVENT_FREE, before_time, np.int32(n_times))
        return start

    def at_risk(self, columns: slice) -> Any:
        """Return the weights of the first range at some of the times: (rows, times), or one row where all share it."""
        if self.weight_at_risk is None:
            raise TypeError("weights come from the curves of each individual")
        table = arrays.beside(self.weight_at_risk[:, columns], self.event_index)
        return table if self.codes is None else table[self.codes]

    def cells(self, times: NDArray[np.float64], columns: slice | None = None) -> tuple[Any, Any]:
        """Return the weights at the evaluation times `times`, or some columns of them, as two matrices.

        One for the first range and one for the later ones; only one of them is not zero in a cell.
        """
        columns = slice(0, times.size) if columns is None else columns
        column = arrays.columns(columns.stop, self.event_index)[columns.start :]
        first = column < self.event_index[:, None]
        last = (column >= self.event_index[:, None]) & (column < self.last_index[:, None])
        early: FloatArray
        if self.survival is not None:
            early = inverse(self.survival.at(times[columns]), self.max_weight)
        else:
            early = self.at_risk(columns)
        late: FloatArray = self.weight_at_event[:, None]
        if self.population is not None:
            factor = inverse(self.population.at(times[columns]), np.inf)
            with np.errstate(invalid="ignore"):
                early, late = early * factor, late * factor
        early, late = arrays.where(first, early, 0.0), arrays.where(last, late, 0.0)
        if self.sample is None:
            return early, late
        own = self.sample.values[:, None]
        return early * own, late * own

    @property
    def last_index(self) -> NDArray[np.int32]:
        """Individual i is counted at the times before it: with a status that is known, or projected."""
        return self.follow_up_index if self.hidden_share is None else self.population_index

    def hidden(self, columns: slice) -> Any:
        """Return which cells of some of the times have a projected status, (individuals, times)."""
        column = arrays.columns(columns.stop, self.event_index)[columns.start :]
        hidden = column >= self.follow_up_index[:, None]
        if not arrays.is_repeated(self.population_index):
            hidden &= column < self.population_index[:, None]
        return hidden

    def event_free(self, known: Any, times: NDArray[np.float64], columns: slice) -> Any:
        """Return the probability of being event-free at some of the times: 0 or 1 as `known`, or what is projected."""
        if self.hidden_share is None or self.reference is None:
            return known
        if isinstance(self.reference, ReferenceCurves):
            reference = self.reference.at(times[columns])
        else:
            table = arrays.beside(self.reference[:, columns], known)
            reference = table if self.codes is None else table[self.codes]
        projected = self.hidden_share[:, None] * reference
        if self.hidden_base is not None:
            projected += self.hidden_base[:, None]
        return arrays.where(self.hidden(columns), projected, arrays.as_float64(known))

    @property
    def capped(self) -> bool:
        """Whether weights have a cap: asked of all individuals alike, whether or not they reach it."""
        return not np.isinf(self.max_weight)

    def sums(self, n_times: int) -> WeightSums:
        """Return the sums of the weights, their squares and counts, from the ranges alone.

        Not for `individual` weights, which only a matrix can tell.
        """
        if self.weight_at_risk is None or self.individual:
            raise TypeError("weights come from the curves of each individual")
        m, own, sample = n_times + 1, self.weight_at_event, self.sample
        by_stratum = self._by_stratum(self.event_index, m)

        def ends_of(values: Any) -> NDArray[np.float64]:
            sums = arrays.to_host(arrays.sums_by(by_stratum, values, m * self.n_strata))
            return np.asarray(sums.reshape(self.n_strata, m))

        # the second range by final status: of the event-free, and of those with event
        status = (self.label != EVENT_FREE) * m
        late = self.event_index + status, self.follow_up_index + status
        counts = _open_at(*late, None, m)
        if sample is None and arrays.is_repeated(own):
            factor = float(own[0]) if len(own) else 1.0
            of_weights, of_squares = counts * factor, counts * factor**2
        else:
            with np.errstate(over="ignore"):  # weights may be as large as numbers go
                of_weights = _open_at(*late, own if sample is None else own * sample.values, m)
                of_squares = _open_at(*late, own**2 if sample is None else own**2 * sample.squares, m)
            if bool((own == 0).any()):
                counts = counts - _open_at(*late, (own == 0) * 1.0, m)
        if sample is None:
            found = WeightSums.of(ends_of(None), self.weight_at_risk, counts, of_weights, of_squares)
        else:
            events = None if sample.counts is None else _open_at(*late, (own != 0) * sample.counts, m)[1]
            ends, squares = ends_of(sample.values), ends_of(sample.squares)
            found = WeightSums.of(ends, self.weight_at_risk, counts, of_weights, of_squares, squares, events)
        return found if self.hidden_share is None else found + self._hidden_sums(m)

    def _hidden_sums(self, m: int) -> WeightSums:
        r"""Return the sums of the weights in the third range, split between the two statuses by their probabilities.

        With own weights :math:`w_i`, event-free :math:`S_k(t) \sum_i w_i h_i`, and with event the rest of
        :math:`\sum_i w_i`, over those of stratum k whose follow-up ended before t. Under competing risks
        :math:`\sum_i w_i b_i` is added to the former, with b the `hidden_base`.
        """
        if self.hidden_share is None or self.reference is None or isinstance(self.reference, ReferenceCurves):
            raise TypeError("no status is projected by strata")
        size, own, share, base = m * self.n_strata, self.weight_at_event, self.hidden_share, self.hidden_base
        unit = self.sample is None and arrays.is_repeated(own)
        square = own if unit else own**2
        if self.sample is not None:
            own, square = own * self.sample.values, square * self.sample.squares
        starts, stops = self._by_stratum(self.follow_up_index, m), None
        # who belongs to the population to the end starts or stops at no time
        if not (arrays.is_repeated(self.population_index) and int(self.population_index[0]) == m - 1):
            rows = arrays.positions(self.follow_up_index < self.population_index)
            starts, own, share = starts[rows], own[rows], share[rows]
            square = square[rows]
            base = None if base is None else base[rows]
            stops = self._by_stratum(self.population_index, m)[rows]

        def open_at(values: Any) -> NDArray[np.float64]:
            sums = arrays.sums_by(starts, values, size)
            sums = sums if stops is None else sums - arrays.sums_by(stops, values, size)
            return np.cumsum(arrays.to_host(sums).reshape(-1, m), 1)[:, :-1]

        if unit:
            factor = float(self.weight_at_event[0])
            total, event_free = factor * open_at(None), factor * open_at(share)
            squares = factor * total
        else:
            total, event_free, squares = open_at(own), open_at(own * share), open_at(square)
        event_free = event_free * self.reference
        if base is not None:
            event_free = event_free + open_at(own * base)
        weights = np.array([0.0 * event_free, event_free, total - event_free]).sum(axis=1)
        return WeightSums(weights, squares.sum(axis=0), 0.0 * weights[0], 0.0 * event_free)

    def _by_stratum(self, index: Any, m: int) -> Any:
        return index if self.codes is None else self.codes * m + index


@dataclass(frozen=True, eq=False)
class ReferenceCurves:
    """Curves of each individual, of which projected statuses are the ratios."""

    curves: SurvivalCurves
    theta: float  #: The power that ratios are raised to.

    def at(self, times: NDArray[np.float64]) -> Any:
        """Return them at some times, (individuals, times)."""
        return arrays.as_float64(self.curves.at(times)) ** self.theta

    def share(self, time: Any) -> Any:
        """Return what turns them into ratios to each one's value at its own time; 0 after a zero."""
        own = self.curves.at_own(time) ** self.theta
        return arrays.where(own > 0, 1.0 / arrays.where(own > 0, own, 1.0), 0.0)

    def __getitem__(self, rows: Rows) -> ReferenceCurves:
        return ReferenceCurves(self.curves[rows], self.theta)


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Sums of weights at each time."""

    #: In the first range, in the second while event-free, in the second with event. Shape (3, times).
    weights: NDArray[np.float64]
    #: Of squared weights, and how many are counted with event. Shape (times,).
    squares: NDArray[np.float64]
    events: NDArray[np.float64]
    at_risk: NDArray[np.float64]  #: Those of the first range by stratum. Shape (strata, times).

    @classmethod
    def of(
        cls,
        ends: NDArray[np.float64],
        weight_at_risk: NDArray[np.float64],
        counts: NDArray[np.float64],
        late: NDArray[np.float64],
        late_squares: NDArray[np.float64],
        square_ends: NDArray[np.float64] | None = None,
        events: NDArray[np.float64] | None = None,
    ) -> WeightSums:
        """Make them of what is counted: by stratum where the first range ends, (strata, times and one more).

        And of the second range, (2, times), without and with event: how many have a weight, its sum and its square's.
        With sample weights, `ends` are sums of these and `square_ends` of their squares; `events` are how many have a
        weight and the event, where that is not a count of rows.
        """
        at_risk = np.cumsum(ends[:, ::-1], axis=1)[:, ::-1][:, 1:]
        # differences of sums, of which rounding is left where none is counted
        late, late_squares = np.where(counts > 0, late, 0.0), np.where(counts > 0, late_squares, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):  # an infinite weight that counts for none
            early = np.where(at_risk > 0, at_risk * weight_at_risk, 0.0)
            first = early
            if square_ends is not None:
                first = np.cumsum(square_ends[:, ::-1], axis=1)[:, ::-1][:, 1:] * weight_at_risk
            squares = np.where(at_risk > 0, first * weight_at_risk, 0.0).sum(axis=0) + late_squares.sum(axis=0)
        return cls(np.array([early.sum(axis=0), *late]), squares, counts[1] if events is None else events, early)

    def __add__(self, other: WeightSums) -> WeightSums:
        return WeightSums(
            *(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True))
        )


def _on_host(value: Any) -> Any:
    """Return tensors, and what is made of them, in the processor's memory; all else as it is."""
    if arrays.is_tensor(value):
        return arrays.to_host(value)
    if isinstance(value, SurvivalCurves):
        return value.numpy()
    if not isinstance(value, (CensoringModel, Incidence, ProductLimit, ReferenceCurves, SampleWeights)):
        return value
    return replace(value, **{field.name: _on_host(getattr(value, field.name)) for field in fields(value)})


def _open_at(start: Any, stop: Any, weight: Any, m: int) -> NDArray[np.float64]:
    """Return for both final statuses and each time the sum of the weights of the ranges that contain it.

    `start` and `stop` have the second status behind the first one's `m` places.
    """
    if weight is not None:  # infinite ones are counted apart: differences of sums would lose them
        finite = weight.isfinite() if arrays.is_tensor(weight) else np.isfinite(weight)
        if not bool(finite.all()):
            some = _open_at(start[~finite], stop[~finite], None, m) > 0
            return np.where(some, np.inf, _open_at(start[finite], stop[finite], weight[finite], m))
    sums = [arrays.to_host(arrays.sums_by(index, weight, 2 * m)).reshape(2, m) for index in (start, stop)]
    return np.asarray(np.cumsum(sums[0] - sums[1], axis=1)[:, :-1])


def inverse(survival: FloatArray, max_weight: float) -> NDArray[np.float64]:
    """Return 1/G, at most `max_weight`."""
    with np.errstate(divide="ignore", over="ignore"):  # an infinite weight is reported as an undefined score
        weights = 1.0 / arrays.as_float64(survival)
    if max_weight < np.inf:
        weights = weights.clip(max=max_weight)
    return np.asarray(weights) if not arrays.is_tensor(weights) else weights

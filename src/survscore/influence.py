r"""How much each individual moves a score: influence functions and their moments.

A score is a smooth function of the sample, so to first order it is the truth plus a sum over individuals of their
influence. Its variance, its covariance with another model's score, and those of any average over time, are sums of
squares and products of these influences. Nothing is resampled, and no influence is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore import _loops
from survscore._validation import InputError
from survscore.curves import SurvivalCurves
from survscore.inference import Groups
from survscore.losses import Loss
from survscore.weighting import RowWeights, TimeIndex

COLUMNS_PER_TASK = 32
CELLS_PER_BLOCK = 1 << 17
FINGERPRINT_CELLS = 1 << 14


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """One model's scores at the evaluation times, with what its influences need.

    The score is ``sum_i w_i loss_i * scale``, and individual i's deviation is ``w_i (loss_i - centre) * scale``:
    divided by the sum of weights, `centre` is the score itself; divided by n it is zero.
    """

    curves: SurvivalCurves
    loss: Loss
    scores: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    #: Sum of the deviations of those still event-free at each time.
    free_deviation: NDArray[np.float64]
    #: Tells whether the predictions, which stay the user's, are still those that were scored.
    fingerprint: float

    @classmethod
    def from_sums(
        cls,
        curves: SurvivalCurves,
        loss: Loss,
        sums: NDArray[np.float64],
        weight_sums: NDArray[np.float64],
        divide_by: NDArray[np.float64],
        *,
        ratio: bool,
    ) -> ScoredModel:
        """Take the sums by status, shape (2, times); `ratio` says that the divisor is the sum of the weights."""
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = sums.sum(axis=0) / divide_by
        defined = np.isfinite(scores)
        scale = np.where(defined, 1.0 / np.where(defined, divide_by, 1.0), 0.0)
        centre = np.where(defined & ratio, scores, 0.0)
        free = np.where(defined, sums[0] - centre * weight_sums[0], 0.0) * scale
        return cls(curves, loss, scores, centre, scale, free, _fingerprint(curves))


_CHANGED = (
    "were changed after they were used for a score, so its standard errors can't be computed any more: "
    "ask for them first, or give a copy"
)


def _fingerprint(curves: SurvivalCurves) -> float:
    """Return a number that changes when many of the probabilities do, from some spread over all rows and columns."""
    cells = curves.probabilities.reshape(-1)
    stride = max(1, cells.size // FINGERPRINT_CELLS)
    if np.gcd(stride, curves.probabilities.shape[1]) > 1:  # do not stay in a few columns
        stride += 1
    some = cells[::stride].astype(np.float64)
    # not a dot product: BLAS would start threads of its own, which wait busily and take a core from ours
    return float(np.sum(some * np.cos(np.arange(some.size))))


class Influence:
    r"""The individuals' influences on the scores of one or more models, under one weighting.

    Individual i's deviation at t is :math:`e_i(t) = w_i(t) [\ell_i(t) - s(t)] / \sum_k w_k(t)`, or
    :math:`w_i(t) \ell_i(t) / n` where the score is divided by n. Where the weights are known, this is the influence,
    up to a constant in i. Where :math:`G` is the Kaplan-Meier estimate of the same individuals, each of them also moves
    the others' weights:

    .. math::

        \phi_i(t) = e_i(t) + \frac{1\{T_i \le t, D_i = 0\}}{r(T_i)} M(T_i; t)
            - \sum_{s < T_i,\, s \le t} \frac{c_s}{r_s (r_s - c_s)} M(s; t), \qquad
        M(s; t) = \sum_{k: T_k > s} e_k(t)

    with :math:`c_s` censored at s out of :math:`r_s` still at risk after the events at s. M sums over those whose
    weight contains the factor at s; capped weights do not move and are left out of it. The derivative is exact, also at
    ties; ``IPCW(variance="martingale")`` asks for 1/Y and c/Y^2 with all at risk just before s, and for s <= T_i.

    Influences sum to zero, so a constant can be added and taken out with the mean. Adding the sum over all
    :math:`s \le t` leaves a sum over :math:`T_i \le s \le t`, which runs along from the latest time to the earliest.

    Sums of products need less. What each s adds sums to zero over those at risk then, who until then all had the same;
    so the terms of different s are orthogonal, and for models a and b

    .. math::

        \sum_i \phi_i^a \phi_i^b = \sum_i e_i^a e_i^b - \sum_{s \le t} \frac{c_s}{r_s (r_s - c_s)}
            \left[M^a E^b + E^a M^b - M^a M^b\right](s; t), \qquad E(s; t) = \sum_{k: T_k > s} e_k(t)

    where E is M when no weight is capped. Only events have to be visited in the order of time for it.

    Parameters
    ----------
    index : TimeIndex
        Outcomes and evaluation times.
    weights : RowWeights
        The weights, prepared for them.
    models : sequence of ScoredModel
        What was predicted, and its scores.
    groups : Groups, optional
        For cluster-robust moments.
    """

    def __init__(
        self,
        index: TimeIndex,
        weights: RowWeights,
        models: Sequence[ScoredModel],
        groups: Groups | None = None,
        *,
        compiled: bool | None = None,
    ) -> None:
        self.index = index
        self.weights = weights
        self.models = list(models)
        self.groups = groups
        n_cells = len(index.outcomes) * index.times.size
        large = _loops.worth_compiling(n_cells) if compiled is None else compiled
        self._censoring_fingerprint = 0.0 if weights.censoring is None else _fingerprint(weights.censoring)
        self.compiled = large and all(model.loss.kernel is not None for model in models)

    # Moments

    def pointwise(self) -> NDArray[np.float64]:
        """Return the covariances of the models' scores at each time, shape (models, models, times)."""
        self._check_unchanged()
        m = self.index.times.size
        if self.groups is None:
            covariance = self._pointwise_individuals()
        else:
            covariance = np.concatenate([self._pointwise_groups(*columns) for columns in self._chunks()], axis=2)
        return covariance * self._correction(np.arange(m))

    def of_averages(self, averages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariances of averages over time, ``scores @ averages``: shape (models, models, averages)."""
        self._check_unchanged()
        corrections = np.sqrt(self._correction(np.arange(self.index.times.size)))[:, None]
        averages = np.where(averages != 0, averages * corrections, 0.0)  # NaN where a time rests on one individual
        total = np.zeros((len(self.models), len(self.index.outcomes), averages.shape[1]))

        def chunk(columns: tuple[int, int]) -> NDArray[np.float64]:
            part = np.zeros_like(total)
            for rows, block in self._blocks(*columns):
                part[:, rows] = block @ averages[slice(*columns)]
            return part

        for part in _loops.each(chunk, self._chunks(), threads=self.compiled):
            total += part
        per_unit = self._centred(total)
        return np.asarray(np.einsum("aur,bur->abr", per_unit, per_unit))

    def over_time(self, contrast: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariance over time of one combination of the models' scores, shape (times, times)."""
        self._check_unchanged()
        m = self.index.times.size
        if self.groups is not None:
            total = np.zeros((1, len(self.index.outcomes), m))
            for rows, block in self._blocks(0, m):
                total[0, rows] = np.tensordot(contrast, block, 1)
            per_unit = self._centred(total)[0]
            return np.asarray(per_unit.T @ per_unit * self._pairwise_correction())
        product, mean = np.zeros((m, m)), np.zeros(m)
        for _, block in self._blocks(0, m):
            combined = np.tensordot(contrast, block, 1)
            product += combined.T @ combined
            mean += combined.sum(axis=0) / len(self.index.outcomes)
        product -= len(self.index.outcomes) * np.outer(mean, mean)
        return np.asarray(product * self._pairwise_correction())

    def _pointwise_groups(self, first: int, last: int) -> NDArray[np.float64]:
        total = np.empty((len(self.models), len(self.index.outcomes), last - first))
        for rows, block in self._blocks(first, last):
            total[:, rows] = block
        per_unit = self._centred(total)
        return np.asarray(np.einsum("auj,buj->abj", per_unit, per_unit))

    def _pointwise_individuals(self) -> NDArray[np.float64]:
        """Return centred sums of products, the compiled way from the identity in the description of the class."""
        n, m, k = len(self.index.outcomes), self.index.times.size, len(self.models)
        totals, products = np.zeros((k, m)), np.zeros((k, k, m))
        if not self.compiled or self.weights.martingale:
            for first, last in self._chunks():
                for _, block in self._blocks(first, last):
                    totals[:, first:last] += block.sum(axis=1)
                    products[:, :, first:last] += np.einsum("anj,bnj->abj", block, block)
            return products - totals[:, None] * totals[None] / n

        for part in _loops.each(self._products, _loops.row_blocks(n, m, compiled=True), threads=True):
            products += part
        if self.weights.estimated:
            events = _EventOrder.of(self.index, self.weights)
            columns = self._columns_per_core(events)
            parts = _loops.each(partial(self._estimation, events), columns, threads=True)
            for (first, last), part in zip(columns, parts, strict=True):
                products[:, :, first:last] -= part
        for a, model in enumerate(self.models):  # the sums of the deviations are known
            totals[a] = np.nan_to_num(model.scores - model.centre)
        upper = np.triu_indices(k, 1)  # only the lower half was filled
        products[upper] = products.transpose(1, 0, 2)[upper]
        undefined = ~np.isfinite(np.array([model.scores for model in self.models]))
        products[undefined[:, None] | undefined[None]] = 0.0
        return products - totals[:, None] * totals[None] / n

    def _products(self, rows: slice) -> NDArray[np.float64]:
        """Return the sums of products of the deviations of some individuals."""
        from survscore import _influence_kernels

        k, m = len(self.models), self.index.times.size
        products = np.zeros((k, k, m))
        for _, block, ranges in self._compiled_blocks(rows, 0, m):
            _influence_kernels.add_products(block, ranges, 0, products)
        return products

    def _estimation(self, events: _EventOrder, columns: tuple[int, int]) -> NDArray[np.float64]:
        """Return what estimating G takes off the sums of products, at some of the times."""
        from survscore import _influence_kernels

        first, last = columns
        whole = np.array([model.free_deviation[first:last] for model in self.models])
        ahead = np.array([self._ahead(model)[first:last] for model in self.models])
        crossed = ahead[:, None] * whole[None]
        crossed += crossed.transpose(1, 0, 2) - ahead[:, None] * ahead[None]
        products: NDArray[np.float64] = events.first_step[first:last] * crossed
        done = 0
        for rows, block, ranges in self._compiled_blocks(events.rows, first, last, while_free=False):
            here = slice(done, done + rows.size)
            _influence_kernels.add_estimation(
                block, ranges, first, events.steps[here], events.moves[here], events.capped, ahead, whole, products
            )
            done += rows.size
        return products

    def _columns_per_core(self, events: _EventOrder) -> list[tuple[int, int]]:
        """Share the times out so that each core gets about as many events that have happened."""
        m = self.index.times.size
        passed = np.cumsum(np.bincount(self.weights.free_stop[events.rows], minlength=m)[:m]) + 1.0
        share = np.cumsum(passed) / passed.sum()
        n_parts = max(1, min(_loops.n_cores(), m // 16))
        ends = [*(int(np.searchsorted(share, part / n_parts)) + 1 for part in range(1, n_parts)), m]
        return [(first, last) for first, last in pairwise([0, *ends]) if first < last]

    def _centred(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return influences per unit, (models, units, columns), from those of individuals, with the mean taken out."""
        total -= total.mean(axis=1, keepdims=True)
        if self.groups is None:
            return total
        codes, n_groups = self.groups.codes, self.groups.sizes.size
        return np.stack(
            [
                np.stack([np.bincount(codes, column, minlength=n_groups) for column in model.T], axis=1)
                for model in total
            ]
        )

    def _check_unchanged(self) -> None:
        for model in self.models:
            if _fingerprint(model.curves) != model.fingerprint:
                raise InputError(f"the predictions {_CHANGED}")
        if self.weights.censoring is not None and _fingerprint(self.weights.censoring) != self._censoring_fingerprint:
            raise InputError(f"the censoring curves {_CHANGED}")

    # How many units a score rests on

    @cached_property
    def n_units(self) -> NDArray[np.float64]:
        """The number of individuals, or groups, that are counted at each time.

        Under administrative and uncensored weights, who counts is fixed; under IPCW it is random, and all count.
        """
        m = self.index.times.size
        n_all = len(self.index.outcomes) if self.groups is None else self.groups.sizes.size
        if not self.weights.fixed:
            return np.full(m, float(n_all))
        stop = np.maximum(self.weights.free_stop, self.weights.event_stop)
        if self.groups is not None:
            latest = np.zeros(n_all, dtype=stop.dtype)
            np.maximum.at(latest, self.groups.codes, stop)
            stop = latest
        ends = np.bincount(stop, minlength=m + 1)[: m + 1]
        return np.asarray(n_all - np.cumsum(ends)[:m], dtype=np.float64)

    def _correction(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return n/(n - 1), as in any sample variance; NaN where one unit, or none, is left."""
        n = self.n_units[columns]
        return np.where(n > 1, n / np.where(n > 1, n - 1, 1), np.nan)

    def _pairwise_correction(self) -> NDArray[np.float64]:
        root = np.sqrt(self._correction(np.arange(self.index.times.size)))
        return np.outer(root, root)

    # The influences themselves, block by block

    def _chunks(self) -> list[tuple[int, int]]:
        m, n = self.index.times.size, len(self.index.outcomes)
        if self.groups is not None or not self.compiled:
            width = max(1, min(COLUMNS_PER_TASK, (1 << 20) // (n * len(self.models))))
        else:
            width = max(COLUMNS_PER_TASK, -(-m // 2))  # few parts, since each makes numbers for all individuals
        return [(first, min(first + width, m)) for first in range(0, m, width)]

    def _blocks(self, first: int, last: int) -> Iterator[tuple[Any, NDArray[np.float64]]]:
        """Yield (positions of individuals, their influences) for times `first` to `last`: (models, rows, times)."""
        undefined = [~np.isfinite(model.scores[first:last]) for model in self.models]
        for rows, block in self._whole_blocks(first, last) if self.compiled else self._numpy_block(first, last):
            for one, where in zip(block, undefined, strict=True):
                one[:, where] = 0.0
            yield rows, block

    @cached_property
    def _order(self) -> _Order | None:
        if not self.weights.estimated:
            return None
        return (_Order.of_many if self.compiled else _Order.of)(self.index, self.weights)

    def _ahead(self, model: ScoredModel) -> NDArray[np.float64]:
        """Return M at the latest time of all: the deviations of the event-free, where their common weight can move."""
        if self.weights.free_weight is None:
            raise TypeError("estimated weights are common to all")
        return np.where(self.weights.free_weight < self.weights.max_weight, model.free_deviation, 0.0)

    def _numpy_block(self, first: int, last: int) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        n, width = len(self.index.outcomes), last - first
        part = self.weights.columns(first, last)
        survival = None
        if self.weights.censoring is not None:
            survival = self.weights.censoring.reading(self.index.times[first:last])(
                self.weights.censoring.probabilities
            )
        with np.errstate(invalid="ignore"):
            cells = part.cells(width, survival)
        free = _loops.event_free([part], width)
        block = np.empty((len(self.models), n, width))
        for out, model in zip(block, self.models, strict=True):
            values = model.curves.reading(self.index.times[first:last])(model.curves.probabilities)
            columns = slice(first, last)
            with np.errstate(invalid="ignore"):
                lost = model.loss(np.broadcast_to(values, (n, width)), free) - model.centre[columns]
                out[:] = cells * lost * model.scale[columns]
            if self._order is not None:
                self._order.add_estimation(out, ~free, self._ahead(model)[columns])
        yield slice(None), block

    def _whole_blocks(self, first: int, last: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        from survscore import _influence_kernels

        order = self._order
        everybody = slice(0, len(self.index.outcomes)) if order is None else order.rows
        for rows, block, ranges in self._compiled_blocks(everybody, first, last, order=order):
            _influence_kernels.clear_outside(block, ranges, first)
            yield rows, block

    def _compiled_blocks(
        self,
        chosen: slice | NDArray[np.int32],
        first: int,
        last: int,
        *,
        order: _Order | None = None,
        while_free: bool = True,
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]]:
        """Yield individuals, their deviations within a range of times of their own, and these ranges.

        Given the order of all individuals by time, what comes from estimating G is part of it.
        """
        from survscore import _influence_kernels

        m, width = self.index.times.size, last - first
        w = self.weights
        everybody = np.arange(chosen.start, chosen.stop, dtype=np.int32) if isinstance(chosen, slice) else chosen
        none = np.zeros(0)
        at_risk = n_censored = np.zeros(0, dtype=np.int32)
        leads = moves = np.zeros(0, dtype=np.bool_)
        plain = [_loops.plain(model.curves.reading(self.index.times)) for model in self.models]
        if w.censoring is None:
            censoring, censoring_plain = self.models[0].curves.probabilities[:0], plain[0]
        else:
            censoring = w.censoring.probabilities
            censoring_plain = _loops.plain(w.censoring.reading(self.index.times))
        free_weight = np.zeros(m) if w.free_weight is None else w.free_weight
        running = [(none if order is None else self._ahead(model), np.zeros(m), np.zeros(m)) for model in self.models]
        # small beside the predictions, and within the processor's cache
        cells = min(CELLS_PER_BLOCK, max(1 << 14, len(self.index.outcomes) * m >> 8))
        size = max(64, cells // width)
        block = np.empty((len(self.models), min(size, everybody.size), width))
        ranges = np.empty((block.shape[1], 2), dtype=np.int64)
        for start in range(0, everybody.size, size):
            rows = everybody[start : start + size]
            # in the order of the rows, so that the kernel does not search all over memory for each of them
            picked = slice(rows[0], rows[-1] + 1) if isinstance(chosen, slice) else rows
            free_stop, event_stop, event_weight = (a[picked] for a in (w.free_stop, w.event_stop, self._event_weight))
            if order is not None:
                here = slice(start, start + size)
                at_risk, n_censored = order.at_risk[here], order.n_censored[here]
                leads, moves = order.leads[here], order.moves[here]
            for out, model, reading, state in zip(block, self.models, plain, running, strict=True):
                _influence_kernels.influence_block(
                    rows, len(model.curves.probabilities) == 1, model.curves.probabilities, *reading,
                    model.loss.kernel, model.loss.epsilon,
                    free_stop, event_stop, event_weight, free_weight, w.free_weight is None,
                    censoring, *censoring_plain, w.max_weight, model.centre, model.scale,
                    first, last, while_free,
                    order is not None, not w.martingale, at_risk, n_censored, leads, moves, *state, out, ranges,
                )  # fmt: skip
            yield rows, block[:, : rows.size], ranges[: rows.size]

    @cached_property
    def _event_weight(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self.weights.event_weight)


def _by_time(time: NDArray[np.float64], chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the positions of some individuals by increasing time, and these times."""
    positions = np.flatnonzero(chosen).astype(np.int32)
    positions = positions[np.argsort(time[positions])]
    return positions, time[positions]


@dataclass(frozen=True, eq=False)
class _EventOrder:
    """Events from the latest time to the earliest, and the Greenwood sums between them."""

    rows: NDArray[np.int32]
    #: Sum of c / (r (r - c)) over the censoring times before an event and not before the next in this order.
    steps: NDArray[np.float64]
    #: The same over those up to each evaluation time and not before the last event up to then.
    first_step: NDArray[np.float64]
    #: Whether the event's weight moves with G: not capped.
    moves: NDArray[np.bool_]
    capped: bool

    @classmethod
    def of(cls, index: TimeIndex, weights: RowWeights) -> _EventOrder:
        from survscore import _influence_kernels

        time, event = index.outcomes.time, index.outcomes.event

        jobs: list[Callable[[], Any]] = [
            lambda: _loops.sort(time[~event], compiled=True),
            lambda: _by_time(time, event),
        ]
        censored, (rows, events) = _loops.each(lambda job: job(), jobs, threads=True)
        before = _influence_kernels.greenwood(censored, events, events, False)
        at_times = _influence_kernels.greenwood(censored, events, index.times, True)
        last_event = np.searchsorted(events, index.times, side="right")
        first_step = at_times - np.concatenate(([0.0], before))[last_event]
        steps = np.diff(before, prepend=0.0)
        moves = weights.event_weight[rows] < weights.max_weight
        capped = not moves.all() or weights.max_weight < np.inf
        return cls(rows[::-1].copy(), steps[::-1].copy(), first_step, moves[::-1].copy(), capped)


@dataclass(frozen=True, eq=False)
class _Order:
    """Individuals from the latest time to the earliest, and what their times do to the estimate of G.

    At ties the censored come first, since they see the events of their own time as still to come.
    """

    rows: NDArray[np.int32]
    #: Those at risk of being censored at the individual's time, and how many were.
    at_risk: NDArray[np.int32]
    n_censored: NDArray[np.int32]
    #: Whether this is the first with its time.
    leads: NDArray[np.bool_]
    #: Whether this is an event whose weight moves with G: not capped.
    moves: NDArray[np.bool_]
    martingale: bool

    @classmethod
    def of(cls, index: TimeIndex, weights: RowWeights) -> _Order:
        time, event = index.outcomes.time, index.outcomes.event
        rows = np.lexsort((event, -time))
        time, event = time[rows], event[rows]
        leads = np.concatenate(([True], time[1:] != time[:-1]))
        tie = np.cumsum(leads) - 1
        n_censored, n_events = np.bincount(tie, ~event), np.bincount(tie, event)
        at_risk = np.cumsum(n_censored + n_events)  # at each distinct time, all with this time or a later one
        if not weights.martingale:
            at_risk = at_risk - n_events
        moves = event & (weights.event_weight[rows] < weights.max_weight)
        risk, censored = at_risk[tie].astype(np.int32), n_censored[tie].astype(np.int32)
        return cls(rows.astype(np.int32), risk, censored, leads, moves, weights.martingale)

    @classmethod
    def of_many(cls, index: TimeIndex, weights: RowWeights) -> _Order:
        """Do the same in the compiled way."""
        from survscore import _influence_kernels

        time, event = index.outcomes.time, index.outcomes.event

        censored, events = _loops.each(partial(_by_time, time), [~event, event], threads=True)
        rows, at_risk, n_censored, leads = _influence_kernels.order_by_time(*censored, *events, weights.martingale)
        moves = (event & (weights.event_weight < weights.max_weight))[rows]
        return cls(rows, at_risk, n_censored, leads, moves, weights.martingale)

    def add_estimation(
        self, deviations: NDArray[np.float64], passed: NDArray[np.bool_], ahead: NDArray[np.float64]
    ) -> None:
        """Add to each individual's deviation what it does to the others' weights; `passed` is where t >= T."""
        sorted_deviations, here = deviations[self.rows], passed[self.rows]
        start = np.flatnonzero(self.leads)
        tie = np.cumsum(self.leads) - 1
        events = np.where(here, sorted_deviations, 0.0) * self.moves[:, None]
        before = np.concatenate((np.zeros((1, ahead.size)), np.cumsum(events, axis=0)))[start]
        later = ahead + before  # M at each distinct time
        at_risk, n_censored = self.at_risk[start].astype(np.float64), self.n_censored[start]
        rest = at_risk if self.martingale else at_risk - n_censored
        # nobody is left after a step to zero, and no score is defined there
        step = np.divide(n_censored, at_risk * rest, out=np.zeros(start.size), where=rest > 0)
        steps = step[:, None] * later * here[start]
        running = np.cumsum(steps, axis=0)
        if self.martingale:
            running -= steps
        place = np.arange(tie.size) - start[tie]  # among those of the same time, the censored first
        own = np.where(place < self.n_censored, 1.0 / np.maximum(self.at_risk, 1), 0.0)
        sorted_deviations += here * (own[:, None] * later[tie] + running[tie])
        deviations[self.rows] = sorted_deviations

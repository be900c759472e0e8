r"""The fast way to second moments of predictions on a device: the identity of `identity`, by Triton's kernels.

Of one model, squares come with the losses (`tensor_sums.Squares`), and everybody's averages over time from a pass of
their own (`tensor_means`); of several, one pass over the rows of two models gives both. Another pass, over those in
their second stretch in the order of time, gives what estimating G takes off. Each run of it starts from nothing: with A
the sum of all runs before it,

.. math:: \sum_s step(s) (A + m(s))^2 = A^2 \sum_s step(s) + 2 A \sum_s step(s) m(s) + \sum_s step(s) m(s)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.tensor_loops import take
from survscore.censoring.nuisance import Elsewhere, Here
from survscore.engine import tensor_kernels
from survscore.engine.blocks import Models
from survscore.engine.moments import Moments, ScoredLoss, contrast, n_pairs, pair, pairs
from survscore.engine.tensor_exits import ByExit
from survscore.engine.tensor_kernels import Deviating, MeansOverTime, NullPart, Ordered, Predicted, Vectors, on_rows
from survscore.engine.tensor_means import Asked, Made, MeansOfRows
from survscore.engine.tensor_sums import Squares
from survscore.engine.tensors import Tensor, memory_of, on
from survscore.inference.units import Groups, Units
from survscore.weighting.stretches import Stretches, TimeIndex

MOST_AVERAGES = 4  # over time, made at once; one if everybody's are stored


def fits(scored: ScoredLoss, models: Models, groups: Groups | None) -> bool:
    """Whether the identity holds, and the kernels know everything that it needs."""
    stretches, nuisance = scored.stretches, scored.stretches.nuisance
    if groups is not None or models.in_memory is None or scored.index.times.size > tensor_kernels.MOST_COLUMNS:
        return False
    speaks_for_all = _arrays.is_repeated(stretches.population_stop)
    known = tensor_kernels.know([scored.loss], stretches, models.in_memory, scored.index)
    return known and (nuisance is None or has_runs(stretches)) and (speaks_for_all or not scored.by_n)


def has_runs(stretches: Stretches) -> bool:
    """Whether G was estimated, and the sums over its exits by runs hold."""
    nuisance = stretches.nuisance
    if nuisance is None or stretches.first_weight is None or stretches.population is not None:
        return False
    # where each moves the others' weights, capped ones would need a second sum
    return not (isinstance(nuisance, Here) and (not nuisance.orthogonal or stretches.capped))


def fits_groups(scored: ScoredLoss, models: Models) -> bool:
    """Whether the kernels can add up groups: nothing is estimated, and the score is divided by the sum of weights."""
    estimated = scored.stretches.nuisance is not None or (scored.null is not None and scored.null.of_scored)
    return not estimated and not scored.by_n and fits(scored, models, None)


def by_groups(
    scored: ScoredLoss, models: Models, groups: Groups, units: Units, averages: NDArray[np.float64]
) -> Moments:
    """Return the moments of groups, each a sum of deviations."""
    made = _Identity(scored, models, units, averages)
    return made.of_groups(groups)


def by_identity(
    scored: ScoredLoss,
    models: Models,
    units: Units,
    averages: NDArray[np.float64],
    runs: Callable[[], Runs],
    squares: Callable[[], Squares],
    means: MeansOfRows,
) -> Callable[[], Moments]:
    """Start making the moments, and return what waits for them; see the description of the module.

    `runs` gives, where G was estimated, those in their second stretch by time; `squares` those of one model.
    """
    made = _Identity(scored, models, units, averages)
    return made.start(runs) if len(scored.scores) > 1 else made.start_one(runs, squares, means)


class _Identity:
    """One loss under one weighting, as the kernels take it, and what is added up."""

    def __init__(self, scored: ScoredLoss, models: Models, units: Units, averages: NDArray[np.float64]) -> None:
        curves = models.in_memory
        first_weight = scored.stretches.first_weight
        if curves is None or first_weight is None:
            raise TypeError("the identity needs matrices, and weights common to all in the first stretch")
        self.scored, self.n, self.device = scored, models.n, scored.index.outcomes.device
        self.nuisance: Any = scored.stretches.nuisance
        self.averages, self.inflation = averages, units.inflation
        # NaN where a time rests on one individual
        self.scaled = np.where(averages != 0, averages * np.sqrt(self.inflation), 0.0)
        self.independent = isinstance(self.nuisance, Elsewhere)
        moving = np.where(first_weight < scored.stretches.max_weight, scored.first_deviation, 0.0)
        # one way to the device, since each takes as long as a thousand numbers
        packed = np.concatenate((first_weight[None], scored.scale[None], scored.centre, moving))
        early, scale, *by_model = on(self.device, packed)
        k = len(scored.centre)
        self.deviating = Deviating(scored.loss, scored.stretches, early, scale, by_model[:k])
        self.first_moving = by_model[k:]
        self.by_exit = None
        if self.nuisance is not None:
            self.by_exit = ByExit(self.nuisance, scored.index.times, self.device)
        self.predicted = [Predicted.of(one, scored.index) for one in curves]
        self.predicted += [self.predicted[0].constant(*scored.constant_losses(one)) for one in scored.constants]
        self.null = None
        if scored.null is not None and scored.null.of_scored:
            null = scored.null
            self.null = NullPart(
                on(self.device, null.slope), on(self.device, null.common), on(self.device, scored.index.before_time),
                on(self.device, null.null.at_own_time),
            )  # fmt: skip

    def start(self, runs: Callable[[], Runs]) -> Callable[[], Moments]:
        """Start making the variances of every model and every difference, and return what waits for them."""
        k, m = len(self.scored.scores), self.scored.index.times.size
        # pointwise and of averages: squares, and what estimating G adds; side by side, to come back in one go
        found = self._zeros(2, n_pairs(k), m + len(self.averages))
        (pointwise, of_averages), (added, added_to_averages) = ((one[:, :m], one[:, m:]) for one in found)
        if self.nuisance is not None:
            self._add_runs(runs(), added)  # first, since they take memory until all are done
        for a, b in _passes(k):
            squares, of_means, of_exits = self._pass(a, b)
            places = _places(a, b)
            for values, part in ((pointwise, squares), (of_averages, of_means), (added_to_averages, of_exits)):
                for place, p in enumerate(places):
                    values[p] = part[place]
        return lambda: self._finish(found)

    def start_one(
        self, runs: Callable[[], Runs], squares: Callable[[], Squares], means: MeansOfRows
    ) -> Callable[[], Moments]:
        """Start making the variances of the only model, and return what waits for them."""
        m = self.scored.index.times.size
        found = self._zeros(2, 1, m + len(self.averages))
        if self.nuisance is not None:
            self._add_runs(runs(), found[1, :, :m])  # first, since they take memory until all are done
        for k in range(len(self.averages)):
            self._ask(k, found, means)
        of_one, scale = self.deviating, self.deviating.scale
        about_score = squares().about(of_one.centres[0], of_one.early) * scale.square()
        found[0, 0, :m] = torch.where(scale > 0, about_score, 0.0)

        def wait() -> Moments:
            with memory_of(self.device):
                means.make()
            return self._finish(found)

        return wait

    def _ask(self, k: int, found: Tensor, means: MeansOfRows) -> None:
        """Ask for a mean over time of everybody, and fill in its squares and what exits add to them."""
        place = self.scored.index.times.size + k

        def square(made: Made) -> None:
            found[0, 0, place] = made.squares

        def add_exits(made: Made, by_exit: ByExit) -> None:
            weights = on(self.device, (self.averages if self.independent else self.scaled)[k])
            of_rows = [one[None] for one in made.taken()]
            of_rows.append(self._moving(of_rows.pop()))
            found[1, 0, place] = by_exit.added([self.first_moving[0] * weights], of_rows)[0]

        def both(made: Made) -> None:
            square(made)
            if self.by_exit is not None:
                add_exits(made, self.by_exit)

        predicted, scored, stores = self.predicted[0], self.scored, self.nuisance is not None
        if self.independent and self.by_exit is not None:  # exits of others need them without the correction
            by_exit = self.by_exit
            means.ask(Asked.of(predicted, scored, self.scaled[k], stores=False), square)
            means.ask(Asked.of(predicted, scored, self.averages[k], stores=True), lambda made: add_exits(made, by_exit))
        else:
            means.ask(Asked.of(predicted, scored, self.scaled[k], stores=stores), both)

    def _finish(self, found: Tensor) -> Moments:
        scored, m = self.scored, self.scored.index.times.size
        (variances, of_ranges), (corrected, of_exits) = ((one[:, :m], one[:, m:]) for one in _arrays.to_host(found))
        if scored.by_n:  # everybody has the same offset, which takes out the mean
            for p, (a, b) in enumerate(pairs(len(scored.scores))):
                totals = np.nan_to_num(contrast(scored.scores, a, b))
                variances[p] -= np.square(totals) / self.n
                of_ranges[p] -= np.square(self.scaled @ totals) / self.n
        if self.independent:  # G of others varies by itself, to which no small-sample correction belongs
            variances = variances * self.inflation + corrected
        else:
            variances = (variances - corrected) * self.inflation
        return Moments(variances, self.averages, of_ranges + of_exits).with_null(scored.null)

    def of_groups(self, groups: Groups) -> Moments:
        """Return the variances, where individuals of a group may depend on each other."""
        k, m = len(self.scored.scores), self.scored.scale.size
        order, starts = on(self.device, groups.order), on(self.device, groups.starts)
        variances, of_ranges = (np.zeros((n_pairs(k), size)) for size in (m, len(self.averages)))
        for a, b in _passes(k):
            both = (self.predicted[a], self.predicted[b])
            for start in range(0, max(len(self.scaled), 1), MOST_AVERAGES):
                some = slice(start, start + MOST_AVERAGES)
                squares, of_means = tensor_kernels.group_moments(
                    self.deviating, (a, b), both, on(self.device, self.scaled[some]), order, starts
                )
                for place, p in enumerate(_places(a, b)):
                    variances[p] = _arrays.to_host(squares[place])
                    of_ranges[p, some] = _arrays.to_host(of_means[place])
        return Moments(variances * self.inflation, self.averages, of_ranges).with_null(self.scored.null)

    def _add_runs(self, runs: Runs, added: Tensor) -> None:
        """Fill in the sums over the exits of every model and every difference, (pairs, times)."""
        for a, b in _passes(len(self.scored.scores)):
            for p, sums in zip(_places(a, b), self._of_exits(runs, a, b), strict=True):
                added[p] = sums

    def _of_exits(self, runs: Runs, a: int, b: int) -> Tensor:
        """Return the sums over the exits of step M^2, for two models and their difference: (3, times)."""
        found = tensor_kernels.add_runs(
            self.deviating, (a, b), (self.predicted[a], self.predicted[b]), runs.ordered
        )  # (sums, times, runs): running sums over the last axis are much faster
        after_all, between = runs.steps_by_time()
        sums, linear = (found[place : place + 3 * len(_models(a, b)) - 2 : 3] for place in (0, 1))
        start = torch.stack([self.first_moving[one] for one in _models(a, b)])
        ahead = start[:, :, None] + sums.cumsum(dim=2) - sums
        square = (found[2], found[5], found[6]) if a != b else (found[2],)
        return torch.stack([
            after_all * first.square() + (between * one.square() + 2.0 * one * line + quadratic).sum(dim=1)
            for first, one, line, quadratic in zip(*map(_three, (start, ahead, linear)), square, strict=True)
        ])  # fmt: skip

    def _pass(self, a: int, b: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return squares, (3, times), and of averages what the rows and the exits add, (3, averages)."""
        n_ranges, stores = len(self.averages), self.nuisance is not None
        with_null = self.null if b >= len(self.predicted) - len(self.scored.constants) else None
        of_means, of_exits = self._zeros(3, n_ranges), self._zeros(3, n_ranges)
        size = 1 if stores else MOST_AVERAGES
        squares = self._zeros(3, self.scored.index.times.size)
        for start in range(0, max(n_ranges, 1), size):
            some = slice(start, min(start + size, n_ranges))
            over_time = self._over_time(some, stores=stores)
            squares, added, whole, late = tensor_kernels.second_moments(
                self.deviating, (a, b), (self.predicted[a], self.predicted[b]), over_time, with_null
            )
            of_means[:, some] = added[:, : some.stop - start]
            if self.by_exit is not None and start < n_ranges:
                weights = on(self.device, (self.averages if self.independent else self.scaled)[start])
                means = [whole[:, 0], self._moving(late[:, 0])]
                del whole, late
                added = self.by_exit.added(
                    [self.first_moving[one] * weights for one in ([a, b] if a != b else [a])], means
                )
                of_exits[: len(added), start] = added
        return squares, of_means, of_exits

    def _moving(self, late: Tensor) -> Tensor:
        """Return averages of second stretches, without those whose weight is capped: it does not move with G."""
        stretches: Any = self.scored.stretches
        return torch.where(stretches.last_weight < stretches.max_weight, late, 0.0) if stretches.capped else late

    def _over_time(self, some: slice, *, stores: bool) -> MeansOverTime:
        """Return how some means over time are made; exits of others need them without the correction."""
        scaled = self.scaled[some]
        weights = np.concatenate((scaled, self.averages[some])) if self.independent else scaled
        stored = len(weights) - (len(scaled) if stores else 0)
        null = None
        if self.null is not None and self.scored.null is not None:
            weighted = weights * self.scored.null.slope
            nothing = np.zeros((len(weights), 1))
            free = np.cumsum(weighted * self.scored.null.common, axis=1)
            rest = np.cumsum(weighted[:, ::-1], axis=1)[:, ::-1]
            null = (
                on(self.device, np.concatenate((nothing, free), axis=1)),
                on(self.device, np.concatenate((rest, nothing), axis=1)),
            )
        return MeansOverTime(on(self.device, weights), stored, null)

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)


class Runs:
    """Those in their second stretch, from the latest time to the earliest, cut into runs, and the steps of G there.

    Their number is asked for at once, and everything else made on demand, with `make`: in between a device can be given
    more to do.
    """

    def __init__(self, stretches: Stretches, index: TimeIndex) -> None:
        self.stretches, self.index = stretches, index
        in_second: Any = stretches.last_stop > stretches.first_stop
        if stretches.capped:  # a capped weight does not move with G
            in_second &= stretches.last_weight < stretches.max_weight
        self._in_second = in_second
        self._number = _arrays.on_its_way(in_second.sum()[None])

    def make(self) -> Runs:
        """Start what is needed."""
        stretches, index = self.stretches, self.index
        nuisance: Any = stretches.nuisance
        device, number = index.outcomes.device, int(self._number()[0])
        self.n_exits = len(nuisance.curve.times)
        own = nuisance.curve.in_order(nuisance.time)
        if own is None:
            rows = torch.nonzero_static(self._in_second, size=number)[:, 0]
            bins, by_bin = nuisance.exits_before[rows].sort(descending=True, stable=True)
            order = rows[by_bin].to(torch.int32)
        else:
            places = torch.nonzero_static(take(self._in_second, own.positions), size=number)[:, 0]
            order, bins = take(own.positions, places), take(own.exits_before, places)
        del self._in_second
        self.greenwood = _arrays.running_sum(on(device, nuisance.steps))
        steps = torch.cat((take(self.greenwood, bins), self.greenwood.new_zeros(1)))
        self.reached = on(device, nuisance.reached(index.times))[:, None]
        # after how many exits each run starts, and the next one
        size = tensor_kernels.shapes.runs.of(len(bins), 1).rows_per_program
        ends = torch.cat((bins[::size], bins.new_zeros(1)))
        self.high, self.low = ends[:-1], ends[1:]
        self.ordered = Ordered(order, on_rows(stretches.label, order), Vectors.of(stretches, order), steps, size)
        return self

    def _steps_between(self, later: Tensor, earlier: Tensor) -> Tensor:
        """Return the sum of the steps of the exits between two numbers of them, up to each time: (times, runs)."""
        of_later, of_earlier = (torch.minimum(n, self.reached) for n in (later, earlier))
        steps: Tensor = self.greenwood[of_later] - self.greenwood[of_earlier]
        return steps

    def steps_by_time(self) -> tuple[Tensor, Tensor]:
        """Return the sums of the steps up to each time: after the latest of all, (times,), and of each run."""
        latest = self.high[:1] if len(self.high) else self.high.new_zeros(1)
        after_all = self._steps_between(latest.new_full((1,), self.n_exits), latest)[:, 0]
        return after_all, self._steps_between(self.high, self.low)


def _models(a: int, b: int) -> tuple[int, ...]:
    """Return two models, or one that is named twice."""
    return (a, b) if a != b else (a,)


def _places(a: int, b: int) -> tuple[int, ...]:
    """Return where two models and their difference have their place, or one model."""
    return (pair(a, a), pair(b, b), pair(a, b)) if a != b else (pair(a, a),)


def _three(values: Any) -> tuple[Tensor, ...]:
    """Return the values of two models, and their differences; or of one model."""
    return (values[0], values[1], values[0] - values[1]) if len(values) > 1 else (values[0],)


def _passes(n_models: int) -> list[tuple[int, int]]:
    """Return pairs of models that give every square and every squared difference; the constant ones come last.

    One model is named twice.
    """
    return [(0, 0)] if n_models == 1 else [(a, b) for b in range(1, n_models) for a in range(b)]

r"""The fast way to second moments of predictions on a device: the identity of `identity`, by Triton's kernels.

One pass over the rows gives the squares and everybody's averages over time; one over those in their second stretch, in
the order of time, what estimating G takes off. Each run of the latter starts from nothing: with A the sum of all runs
before it, :math:`\sum_s step(s) (A + m(s))^2 = A^2 \sum_s step(s) + 2 A \sum_s step(s) m(s) + \sum_s step(s) m(s)^2`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from survscore import _arrays
from survscore.engine import tensor_kernels
from survscore.engine.blocks import Models
from survscore.engine.moments import Moments, ScoredLoss, contrast, n_pairs, pair, pairs
from survscore.engine.tensor_kernels import Deviating, NullPart, Predicted
from survscore.engine.tensors import Tensor, on
from survscore.engine.units import Groups, Units
from survscore.nuisance import Elsewhere, Here

ROWS_PER_PART = 1 << 22  # whose averages over time are in memory at once


def fits(scored: ScoredLoss, models: Models, groups: Groups | None) -> bool:
    """Whether the identity holds, and the kernels know everything that it needs."""
    stretches, nuisance = scored.stretches, scored.stretches.nuisance
    if groups is not None or models.in_memory is None or scored.index.times.size > tensor_kernels.MOST_COLUMNS:
        return False
    # where each moves the others' weights, capped ones would need a second sum
    here = isinstance(nuisance, Here) and (not nuisance.orthogonal or stretches.capped)
    speaks_for_all = _arrays.is_repeated(stretches.population_stop)
    known = tensor_kernels.know([scored.loss], stretches, models.in_memory, scored.index)
    return known and not here and (speaks_for_all or not scored.by_n)


def by_identity(scored: ScoredLoss, models: Models, units: Units, averages: NDArray[np.float64]) -> Moments:
    """Return the moments; see the description of the module."""
    made = _Identity(scored, models, units, averages)
    return made.moments()


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
        self.deviating = Deviating(
            scored.loss, scored.stretches, on(self.device, first_weight * scored.scale),
            on(self.device, scored.scale), on(self.device, scored.centre),
        )  # fmt: skip
        self.predicted = [Predicted.of(one, scored.index) for one in curves]
        self.predicted += [self.predicted[0].constant(*scored.constant_losses(one)) for one in scored.constants]
        moving = np.where(first_weight < scored.stretches.max_weight, scored.first_deviation, 0.0)
        self.first_moving = on(self.device, moving)
        self.null = None
        if scored.null is not None and scored.null.of_scored:
            null = scored.null
            self.null = NullPart(
                on(self.device, null.slope), on(self.device, null.common), on(self.device, scored.index.before_time),
                on(self.device, null.null.at_own_time),
            )  # fmt: skip

    def moments(self) -> Moments:
        """Return the variances of every model and every difference."""
        scored, k, m = self.scored, len(self.scored.scores), self.scored.index.times.size
        pointwise, of_averages = (self._zeros(n_pairs(k), size) for size in (m, len(self.averages)))
        added, added_to_averages = torch.zeros_like(pointwise), torch.zeros_like(of_averages)
        runs = None if self.nuisance is None else _Runs(self)
        for a, b in _passes(k):
            squares, of_means, of_exits = self._pass(a, b)
            taken_off = None if runs is None else runs.add(a, b)
            for place, p in enumerate((pair(a, a), pair(b, b), pair(a, b)) if a != b else (pair(a, a),)):
                pointwise[p], of_averages[p] = squares[place], of_means[place]
                if taken_off is not None:
                    added[p], added_to_averages[p] = taken_off[place], of_exits[place]
        variances, of_ranges = _arrays.to_host(pointwise), _arrays.to_host(of_averages)
        if scored.by_n:  # everybody has the same offset, which takes out the mean
            for p, (a, b) in enumerate(pairs(k)):
                totals = np.nan_to_num(contrast(scored.scores, a, b))
                variances[p] -= np.square(totals) / self.n
                of_ranges[p] -= np.square(self.scaled @ totals) / self.n
        corrected = _arrays.to_host(added)
        if self.independent:  # G of others varies by itself, to which no small-sample correction belongs
            variances = variances * self.inflation + corrected
        else:
            variances = (variances - corrected) * self.inflation
        of_ranges = of_ranges + _arrays.to_host(added_to_averages)
        return Moments(variances, self.averages, of_ranges).with_null(scored.null)

    def _pass(self, a: int, b: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return squares, (3, times), and of averages what the rows and the exits add, (3, averages)."""
        # exits of others need averages without the correction
        summed = np.concatenate((self.scaled, self.averages)) if self.independent else self.scaled
        ranges, n_ranges = on(self.device, summed), len(self.averages)
        last = slice(len(summed) - n_ranges, None)
        with_null = self.null if b >= len(self.predicted) - len(self.scored.constants) else None
        squares, of_means = self._zeros(3, self.scored.index.times.size), self._zeros(3, n_ranges)
        by_exit = None if self.nuisance is None else _ByExit(self, a, b)
        for start in range(0, self.n, ROWS_PER_PART):
            rows = slice(start, min(start + ROWS_PER_PART, self.n))
            part, means = tensor_kernels.second_moments(
                self.deviating, (a, b), (self.predicted[a], self.predicted[b]), ranges, rows, with_null,
                late=by_exit is not None,
            )  # fmt: skip
            squares += part
            if by_exit is not None:
                by_exit.add(rows, means[:, last])
            whole = means[:, :n_ranges, 0].clone()
            if with_null is not None and self.scored.null is not None:
                for r, weights in enumerate(self.scaled):
                    whole[-1, r] += self._null_means(weights, rows)
            of_means += torch.stack([one.square().sum(dim=1) for one in _three(whole)])
        return squares, of_means, self._zeros(3, n_ranges) if by_exit is None else by_exit.finish()

    def _null_means(self, weights: NDArray[np.float64], rows: slice) -> Tensor:
        """Return some individuals' parts in a mean over time of the null model's score; as `NullInfluence.mean`."""
        null, part = self.scored.null, self.null
        if null is None or part is None:
            raise TypeError("there is no null model")
        weighted = weights * null.slope
        while_event_free = on(self.device, np.concatenate(([0.0], np.cumsum(weighted * null.common))))
        rest = on(self.device, np.concatenate((np.cumsum(weighted[::-1])[::-1], [0.0])))
        before = part.before[rows]
        return while_event_free[before] + rest[before] * part.own[rows]

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)


class _Runs:
    """Those in their second stretch, from the latest time to the earliest, and what estimating G takes off there."""

    def __init__(self, of: _Identity) -> None:
        self.of, nuisance, stretches = of, of.nuisance, of.scored.stretches
        in_second: Any = stretches.last_stop > stretches.first_stop
        if stretches.capped:  # a capped weight does not move with G
            in_second &= stretches.last_weight < stretches.max_weight
        rows = in_second.nonzero()[:, 0]
        bins, order = nuisance.exits_before[rows].sort(descending=True, stable=True)
        self.order = rows[order].to(torch.int32)
        self.greenwood = _arrays.running_sum(on(of.device, nuisance.steps))
        self.steps = torch.cat((self.greenwood[bins], self.greenwood.new_zeros(1)))
        self.reached = on(of.device, nuisance.reached(of.scored.index.times))
        # after how many exits each run starts, and the next one
        self.size = tensor_kernels.shapes.runs.of(len(bins), 1).rows_per_program
        ends = torch.cat((bins[:: self.size], bins.new_zeros(1)))
        self.high, self.low = ends[:-1], ends[1:]

    def _steps_between(self, later: Tensor, earlier: Tensor) -> Tensor:
        """Return the sum of the steps of the exits between two numbers of them, up to each evaluation time."""
        of_later, of_earlier = (torch.minimum(n[:, None], self.reached) for n in (later, earlier))
        steps: Tensor = self.greenwood[of_later] - self.greenwood[of_earlier]
        return steps

    def add(self, a: int, b: int) -> Tensor:
        """Return the sums over the exits of step M^2, for two models and their difference: (3, times)."""
        of = self.of
        found = tensor_kernels.add_runs(
            of.deviating, (a, b), (of.predicted[a], of.predicted[b]), self.order, self.steps, self.size
        )
        n_exits = len(of.nuisance.curve.times)
        latest = self.high[:1] if len(self.high) else self.high.new_zeros(1)
        after_all = self._steps_between(latest.new_full((1,), n_exits), latest)[0]
        between = self._steps_between(self.high, self.low)
        two = torch.stack((found[:, 0], found[:, 3]))  # (2 models, runs, times)
        start = of.first_moving[[a, b]]
        ahead = _three(start[:, None] + two.cumsum(dim=1) - two)
        linear = _three(torch.stack((found[:, 1], found[:, 4])))
        square = (found[:, 2], found[:, 5], found[:, 6])
        return torch.stack([
            after_all * first.square() + (between * one.square() + 2.0 * one * line + quadratic).sum(dim=0)
            for first, one, line, quadratic in zip(_three(start), ahead, linear, square, strict=True)
        ])  # fmt: skip


class _ByExit:
    """What estimating G adds to the variances of averages over time, from sums of the individuals' averages by exit."""

    def __init__(self, of: _Identity, a: int, b: int) -> None:
        self.of, self.models = of, (a, b) if a != b else (a,)
        n_exits, n_ranges = len(of.nuisance.curve.times), len(of.averages)
        #: Sums over the second stretch; where each moves the others' weights, also whole, and of those who left.
        n_sums = 3 if isinstance(of.nuisance, Here) else 1
        self.sums = of._zeros(len(self.models), n_ranges, n_sums, n_exits + 1)
        self.capped = of.scored.stretches.capped

    def add(self, rows: slice, means: Tensor) -> None:
        """Add some individuals' averages, (models, averages, 2, individuals): whole, and in the second stretch."""
        nuisance, stretches = self.of.nuisance, self.of.scored.stretches
        places = nuisance.exits_before[rows]
        whole, late = means[:, :, 0], means[:, :, 1]
        if self.capped:
            moves: Any = stretches.last_weight[rows] < stretches.max_weight
            late = torch.where(moves, late, 0.0)
        self.sums[:, :, 0].index_add_(2, places, late)
        if self.sums.shape[2] == 3:
            self.sums[:, :, 1].index_add_(2, places, whole)
            self.sums[:, :, 2].index_add_(2, places, torch.where(nuisance.left[rows], whole, 0.0))

    def finish(self) -> Tensor:
        """Return what is added for two models and their difference, (3, averages)."""
        of, sums = self.of, self.sums
        weights = on(of.device, of.averages if of.independent else of.scaled)
        early = of.first_moving[list(self.models)][:, None] * weights
        sums[:, :, 0].index_add_(2, on(of.device, of.nuisance.reached(of.scored.index.times)), early)
        steps = on(of.device, of.nuisance.steps)

        def after(values: Tensor) -> Tensor:
            """Sum over all who come after each exit."""
            return values.flip(2).cumsum(2).flip(2)[:, :, 1:]

        moved = after(sums[:, :, 0])
        result = torch.stack([(steps * one.square()).sum(dim=1) for one in _three(moved)])
        if isinstance(of.nuisance, Here):
            own = sums[:, :, 2, :-1] / on(of.device, of.nuisance.own_risk) - steps * after(sums[:, :, 1])
            result += torch.stack(
                [2.0 * (one * other).sum(dim=1) for one, other in zip(_three(own), _three(moved), strict=True)]
            )
        return result


def _three(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the values of two models, and their differences; one model may be named twice, or come alone."""
    return values[0], values[-1], values[0] - values[-1]


def _passes(n_models: int) -> list[tuple[int, int]]:
    """Return pairs of models that give every square and every squared difference; the constant ones come last."""
    return [(0, 0)] if n_models == 1 else [(a, b) for b in range(1, n_models) for a in range(b)]

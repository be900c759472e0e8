r"""Second moments: how much scores, their differences and their means over time vary.

A score is a smooth function of the sample, so to first order it is the truth plus a sum over individuals of their
influence :math:`\phi_i(t)`. With deviations :math:`e_i(t) = w_i(t) [\ell_i(t) - s(t)] / \sum_k w_k(t)`, the influences
are these plus what estimating G adds (see `censoring.nuisance`). Variances are sums of squares of influences; that of a
difference of two models is the sum of squares of the differences, so that nearly equal models do not cancel.

There are two ways to the same numbers: `influence` makes every influence, block by block, and can do everything;
`identity` is faster on large matrices in memory. Metrics that are no mean of losses are in `pooled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._validation import InputError
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import Block
from survscore.engine.null import NullInfluence
from survscore.metrics import Loss
from survscore.weighting.stretches import Stretches, TimeIndex


def n_pairs(n_models: int) -> int:
    """Return how many variances there are: of every model, and of every difference."""
    return n_models * (n_models + 1) // 2


def pair(a: int, b: int) -> int:
    """Return the place of the difference of two models, or of a model (a = b), among all."""
    low, high = min(a, b), max(a, b)
    return high * (high + 1) // 2 + low


def pairs(n_models: int) -> list[tuple[int, int]]:
    """Return all (a, b) in the order of `pair`."""
    return [(low, high) for high in range(n_models) for low in range(high + 1)]


def contrast(values: NDArray[np.float64], a: int, b: int) -> NDArray[np.float64]:
    """Return a model's values, or the difference of two models'; the first axis is models."""
    return np.asarray(values[a] if a == b else values[a] - values[b])


@dataclass(frozen=True, eq=False)
class Moments:
    """Variances of scores and of their differences. Numbers only.

    Attributes
    ----------
    pointwise : ndarray of shape (pairs, times)
        At each time; see `pair`.
    averages : ndarray of shape (ranges, times)
        The means over time that were asked for, as weights of the times.
    of_averages : ndarray of shape (pairs, ranges)
        Variances of these.
    over_time : ndarray of shape (pairs, times, times), optional
        Covariances over time, which serve every mean over time.
    added : ndarray of shape (pairs, times), optional
        How much of `pointwise` is not of influences, but was added for what they don't see.
    """

    pointwise: NDArray[np.float64]
    averages: NDArray[np.float64]
    of_averages: NDArray[np.float64]
    over_time: NDArray[np.float64] | None = None
    added: NDArray[np.float64] | None = None

    @property
    def n_times(self) -> int:
        """At how many times there are scores."""
        return int(self.pointwise.shape[1])

    def variance(self, a: int, b: int) -> NDArray[np.float64]:
        """Return the variances of the difference of two models at each time, or of a model's scores (a = b)."""
        return np.asarray(np.maximum(self.pointwise[pair(a, b)], 0.0))

    def of_average(self, weights: NDArray[np.float64], a: int, b: int) -> float:
        """Return the variance of a mean over time."""
        for known, variances in zip(self.averages, self.of_averages.T, strict=True):
            if np.array_equal(known, weights):
                return max(float(variances[pair(a, b)]), 0.0)
        if self.over_time is None:
            raise InputError(
                "the standard error of a mean over this range was not computed, since the data are large: ask for it "
                "when scoring, by ranges=[(lower, upper)], or for all by ranges='any'"
            )
        used = np.flatnonzero(weights)
        covariance = self.over_time[pair(a, b)][np.ix_(used, used)]
        return max(float(weights[used] @ covariance @ weights[used]), 0.0)

    def added_share(self, a: int, b: int) -> NDArray[np.float64]:
        """Return which share of the variances at each time was added."""
        if self.added is None:
            return np.zeros(self.n_times)
        return _share(self.added[pair(a, b)], self.variance(a, b))

    def added_share_of_average(self, weights: NDArray[np.float64], a: int, b: int) -> float:
        """Return which share of the variance of a mean over time was added."""
        if self.added is None:
            return 0.0
        used = weights != 0
        added = float(np.sqrt(self.added[pair(a, b)][used]) @ weights[used]) ** 2
        return float(_share(np.array(added), np.array(self.of_average(weights, a, b))))

    def scaled(self, factor: float) -> Moments:
        """Return the variances of scores that are `factor` times as large."""
        square = factor**2
        over_time = None if self.over_time is None else self.over_time * square
        added = None if self.added is None else self.added * square
        return Moments(self.pointwise * square, self.averages, self.of_averages * square, over_time, added)

    def with_null(self, null: NullInfluence | None) -> Moments:
        """Add what the null model's curve, the last of the models, varies if it is estimated from others."""
        if null is None or null.of_scored:
            return self
        # the last model's pairs come last: as many as there are models
        n_models = int(np.sqrt(2 * len(self.pointwise)))
        has_null = np.arange(len(self.pointwise)) >= len(self.pointwise) - n_models
        of_averages = np.array([null.of_mean(weights) for weights in self.averages])
        over_time = self.over_time
        if over_time is not None:
            over_time = over_time + has_null[:, None, None] * null.covariance()
        return Moments(
            self.pointwise + has_null[:, None] * null.variance(), self.averages,
            self.of_averages + has_null[:, None] * of_averages, over_time, self.added,
        )  # fmt: skip

    def with_added(self, added: NDArray[np.float64]) -> Moments:
        """Add variances, (pairs, times), of what errs alike at all times, so that none of it averages out."""
        if not added.any():
            return self
        root = np.sqrt(added)
        over_time = self.over_time
        if over_time is not None:
            over_time = over_time + root[:, :, None] * root[:, None, :]
        # NaN where a time rests on one unit
        means = np.array([root[:, weights != 0] @ weights[weights != 0] for weights in self.averages])
        of_averages = self.of_averages + np.square(means.reshape(self.of_averages.T.shape)).T
        return Moments(self.pointwise + added, self.averages, of_averages, over_time, added)

    def and_one_without(self) -> Moments:
        """Add a last model that has no scores."""
        more = int(np.sqrt(2 * len(self.pointwise))) + 1

        def longer(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.concatenate((values, np.full((more, *values.shape[1:]), np.nan)))

        over_time, added = (None if values is None else longer(values) for values in (self.over_time, self.added))
        return Moments(longer(self.pointwise), self.averages, longer(self.of_averages), over_time, added)

    def covariance_over_time(self, a: int, b: int) -> NDArray[np.float64]:
        """Return the covariance over time of a difference."""
        if self.over_time is None:
            raise InputError(
                "covariances over time were not computed, since the data are large: ask for them when scoring, by "
                "ranges='any'"
            )
        return np.asarray(self.over_time[pair(a, b)])


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(part > 0, part / whole, 0.0)


@dataclass(frozen=True, eq=False)
class ScoredLoss:
    """One loss under one weighting: its scores, and what turns losses into deviations.

    The score is ``sum_i w_i loss_i * scale``, and individual i's deviation ``w_i (loss_i - centre) * scale``: divided
    by the sum of weights, `centre` is the score itself; divided by n(t) it is zero, and everybody for whom the score
    speaks has `offset` less.
    """

    index: TimeIndex
    loss: Loss
    stretches: Stretches
    constants: Sequence[SurvivalCurves]  # predictions that are the same for everybody, after those of the models
    scores: NDArray[np.float64]  # (models and constants, times)
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    first_deviation: NDArray[np.float64]  # summed over the first stretch, (models and constants, times)
    null: NullInfluence | None = None  # what estimating the last of the constants adds

    @classmethod
    def of(
        cls,
        index: TimeIndex,
        loss: Loss,
        stretches: Stretches,
        constants: Sequence[SurvivalCurves],
        sums: NDArray[np.float64],
        weight_sums: NDArray[np.float64],
        n_population: NDArray[np.float64],
        *,
        by_n: bool,
    ) -> ScoredLoss:
        """Take the sums by stretch, (2, models and constants, times), and of weights, (3, times); NaN if undefined."""
        total = weight_sums.sum(axis=0)
        divisor = np.where(np.isnan(total), np.nan, n_population) if by_n else total
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = sums.sum(axis=0) / divisor
        defined = np.isfinite(scores).all(axis=0)
        scale = np.where(defined, 1.0 / np.where(defined, divisor, 1.0), 0.0)
        centre = np.zeros_like(scores) if by_n else np.where(defined, scores, 0.0)
        offset = np.where(defined, scores, 0.0) * scale if by_n else np.zeros_like(scores)
        first = np.where(defined, sums[0] - centre * weight_sums[0], 0.0) * scale
        if not defined.all():  # infinite weights, which no zero can take back
            stretches = replace(
                stretches,
                first_weight=None if stretches.first_weight is None else np.where(defined, stretches.first_weight, 0.0),
                last_weight=_arrays.finite_or_zero(stretches.last_weight),
            )
        return cls(index, loss, stretches, constants, scores, centre, scale, offset, first)

    @property
    def by_n(self) -> bool:
        """Whether some offset has to be taken off."""
        return bool(self.offset.any())

    def constant_losses(self, constant: SurvivalCurves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the losses of a prediction that is the same for everybody: event-free, and with event."""
        survival = constant.at(self.index.times)[0]
        return self.loss.of_event_free(survival), self.loss.of_event(survival)

    def deviations(self, block: Block, columns: slice, *, compiled: bool) -> NDArray[np.float64]:
        """Return the deviations of a block at some of the times, (models and constants, rows, times)."""
        times, m = self.index.times, self.index.times.size
        part = self.stretches.rows(block.rows).columns(columns)
        event_from = part.event_from(self.index.before_time[block.rows], m)
        event = np.arange(columns.start, columns.stop) >= event_from[:, None]
        values: list[NDArray[np.float64]] = []
        if not compiled:
            for curves in block.curves:
                survival = curves.at(times[columns]).astype(np.float64, copy=False)
                values.append(self.loss(survival, ~event))
        for constant in self.constants:
            event_free, with_event = self.constant_losses(constant)
            values.append(np.where(event, with_event[columns], event_free[columns]))
        found = np.zeros((0, event.shape[0], event.shape[1]))
        if values:
            first = len(self.scores) - len(values)
            with np.errstate(invalid="ignore"):
                cells = np.where(self.scale[columns] > 0, sum(part.cells(times[columns])), 0.0)
                found = cells * (np.array(values) - self.centre[first:, None, columns]) * self.scale[columns]
        if not compiled:
            return found
        from survscore.engine import compiled as backend

        of_curves = backend.deviations(block, self.index, self.loss, self.stretches, self.centre, self.scale, columns)
        return np.concatenate((of_curves, found)) if values else of_curves

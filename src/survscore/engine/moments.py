r"""Second moments: how much scores, their differences and their means over time vary.

A score is a smooth function of the sample, so to first order it is the truth plus a sum over individuals of their
influence :math:`\phi_i(t)`. Variances are sums of squares of influences; that of a difference of two models is the sum
of squares of the differences, so that nearly equal models do not cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import dot
from survscore._validation import InputError
from survscore.engine.null import NullInfluence


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


def contrast(values: Any, a: int, b: int) -> Any:
    """Return a model's values, or the difference of two models'; the first axis is models."""
    return values[a] if a == b else values[a] - values[b]


@dataclass(frozen=True, eq=False)
class Moments:
    """Variances of scores and of their differences. Numbers only."""

    pointwise: NDArray[np.float64]  # At each time; see `pair`. Shape (pairs, times).
    #: The means over time that were asked for, as weights of the times. Shape (ranges, times).
    averages: NDArray[np.float64]
    of_averages: NDArray[np.float64]  # Variances of these. Shape (pairs, ranges).
    #: Covariances over time, which serve every mean over time. Shape (pairs, times, times).
    over_time: NDArray[np.float64] | None = None
    #: How much of `pointwise` is not of influences, but was added for what they don't see. Shape (pairs, times).
    added: NDArray[np.float64] | None = None

    def variance(self, a: int, b: int) -> NDArray[np.float64]:
        """Return the variances of the difference of two models at each time, or of a model's scores (a = b)."""
        return np.asarray(np.maximum(self.pointwise[pair(a, b)], 0.0))

    def of_average(self, weights: NDArray[np.float64], a: int, b: int) -> float:
        """Return the variance of a mean over time; NaN where that range was not asked for when scoring."""
        for known, variances in zip(self.averages, self.of_averages.T, strict=True):
            if np.array_equal(known, weights):
                return max(float(variances[pair(a, b)]), 0.0)
        if self.over_time is None:
            return float("nan")
        used = np.flatnonzero(weights)
        covariance = self.over_time[pair(a, b)][np.ix_(used, used)]
        return max(float(weights[used] @ covariance @ weights[used]), 0.0)

    def added_share(self, a: int, b: int) -> NDArray[np.float64]:
        """Return which share of the variances at each time was added."""
        if self.added is None:
            return np.zeros(self.pointwise.shape[1])
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
        pointwise = self.pointwise + has_null[:, None] * null.variance()
        of_means = np.array([null.of_mean(weights) for weights in self.averages])
        of_averages, over_time = self.of_averages + has_null[:, None] * of_means, self.over_time
        if over_time is not None:
            over_time = over_time + has_null[:, None, None] * null.covariance()
        return Moments(pointwise, self.averages, of_averages, over_time, self.added)

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
                "covariances over time are needed, which take longer than scores: ask for them when scoring, by "
                "ranges='any'"
            )
        return np.asarray(self.over_time[pair(a, b)])


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(part > 0, part / whole, 0.0)


class Totals:
    """Sums of squares over units, individuals or groups, as they are added up; kept where `like` lives.

    `averages` are the means over time that are asked for, (ranges, times), and `inflation`, (times,) or (pairs, times),
    is the small-sample correction of variances, which may be filled in before a time is added. With `any_range`,
    covariances over time are kept: then all times must be added at once. `whole` says that all times of a unit are
    added at once, and only once.
    """

    def __init__(
        self,
        n_models: int,
        n_units: int,
        averages: NDArray[np.float64],
        inflation: NDArray[np.float64],
        *,
        any_range: bool,
        whole: bool,
        like: Any = None,
    ) -> None:
        self.pairs = pairs(n_models)
        n, m, k = len(self.pairs), averages.shape[1], len(averages)
        self.averages = averages
        self.inflation = np.broadcast_to(inflation, (n, m)).copy()
        self.by_model = inflation.ndim == 1  # one correction for all, so that means of models make those of pairs
        self.pointwise, self.greenwood = arrays.zeros((n, m), like), arrays.zeros((n, m), like)
        self.of_averages = arrays.zeros((n, k), like)
        self.over_time = arrays.zeros((n, m, m), like) if any_range else None
        # a mean over time needs all times of a unit: where these come in parts, it is kept until the last of them
        self.means = None if whole else arrays.zeros((n, n_units, k), like)
        self.jump_means: Any = None

    def add(self, influence: Any, columns: slice, units: Any) -> None:
        """Add influences of some units, each named once, at some times: (models, units, times)."""
        k = len(self.averages)
        by_model = [self._means(of_model, 0, columns) for of_model in influence] if self.by_model and k else None
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(influence, a, b)
            self.pointwise[p, columns] += _squares(values)
            if self.over_time is not None:
                scaled = values * arrays.beside(np.sqrt(self.inflation[p, columns]), values)
                self.over_time[p] += scaled.T @ scaled
            if not k:
                continue
            means = self._means(values, p, columns) if by_model is None else contrast(by_model, a, b)
            if self.means is None:
                self.of_averages[p] += _squares(means)
            else:
                self.means[p, units] += means

    def _means(self, values: Any, p: int, columns: slice) -> Any:
        """Return the means over time of some units, (units, ranges), with the small-sample correction."""
        weights = self.averages[:, columns]
        # NaN where a time has one unit
        scaled = np.where(weights != 0, weights * np.sqrt(self.inflation[p, columns]), 0.0)
        if arrays.is_tensor(values):
            return values @ arrays.beside(scaled, values).T
        # not by BLAS, whose threads wait busily beside ours
        return np.einsum("ij,kj->ik", values, scaled)

    def add_jumps(self, jumps: Any, steps: Any, X: Any, columns: slice) -> None:
        """Add what a curve fitted to others varies, from X(s; t) at some of its jumps: an independent source.

        It has no small-sample correction. `steps` are the Greenwood weights of all jumps.
        """
        weights = arrays.beside(self.averages[:, columns].T, X[0])
        if self.jump_means is None:
            n = len(self.averages)
            self.jump_means = steps, [arrays.zeros((len(steps), n), X[0]) for _ in X]
        for known, of_model in zip(self.jump_means[1], X, strict=True):
            known[jumps] += of_model @ weights
        step = steps[jumps]
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(X, a, b)
            self.greenwood[p, columns] += step @ values**2
            if self.over_time is not None:
                self.over_time[p] += (step[:, None] * values).T @ values

    def finish(self) -> Moments:
        """Return the variances."""
        for p, (a, b) in enumerate(self.pairs):
            if self.means is not None:
                self.of_averages[p] = _squares(self.means[p])
            if self.jump_means is not None:
                steps, means = self.jump_means
                self.of_averages[p] += steps @ contrast(means, a, b) ** 2
        pointwise, greenwood, of_averages = map(arrays.to_host, (self.pointwise, self.greenwood, self.of_averages))
        over_time = None if self.over_time is None else arrays.to_host(self.over_time)
        return Moments(pointwise * self.inflation + greenwood, self.averages, of_averages, over_time)


def _squares(values: Any) -> Any:
    """Return the sums of squares of columns."""
    if values.shape[1] == 1 and not arrays.is_tensor(values):
        return dot(values[:, 0], values[:, 0])
    return arrays.column_products(values, values)

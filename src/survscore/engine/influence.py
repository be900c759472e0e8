r"""Every influence, block by block: any weighting, groups, batches, covariances over time.

Three rounds, each a sum over blocks: the scores (`sums`), M(s; t) of the nuisance, and the squares of the influences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.influences import Influences
from survscore._utils.products import cross_products, dot
from survscore.censoring.nuisance import Elsewhere, Here, Nuisance
from survscore.engine.blocks import Models
from survscore.engine.moments import Moments, ScoredLoss, contrast, pairs
from survscore.inference.units import Groups, Units
from survscore.weighting.stretches import Stretches

NUMBERS_PER_CHUNK = 1 << 23  # of tables by exit or by group, in memory at once


@dataclass(frozen=True, eq=False)
class Exits:
    """M(s; t) of all exits s at some times t: shape (models, exits, times)."""

    nuisance: Nuisance
    moved: NDArray[np.float64]

    @classmethod
    def of(cls, nuisance: Nuisance, table: NDArray[np.float64], times: NDArray[np.float64]) -> Exits:
        """Take sums of deviations by how many exits came before, (models, exits + 1, times)."""
        moved = np.cumsum(table[:, ::-1], axis=1)[:, ::-1][:, 1:]
        reached = np.arange(moved.shape[1])[:, None] < nuisance.reached(times)
        return cls(nuisance, np.where(reached, moved, 0.0))

    @cached_property
    def _drift(self) -> NDArray[np.float64]:
        """The sum over s, up to each number of exits passed."""
        steps = self.nuisance.steps[:, None] * self.moved
        nothing = np.zeros((len(self.moved), 1, self.moved.shape[2]))
        return np.concatenate((nothing, np.cumsum(steps, axis=1)), axis=1)

    def spread(self, rows: slice) -> NDArray[np.float64]:
        """Return what estimating G from these individuals adds to the influences of some: (models, rows, times)."""
        if not isinstance(self.nuisance, Here):
            raise TypeError("G of other individuals adds nothing to these individuals' influences")
        nuisance = self.nuisance
        added = -self._drift[:, nuisance.passed[rows]]
        left = np.flatnonzero(nuisance.left(rows))
        exit_of = nuisance.exits_before[rows][left]
        added[:, left] += self.moved[:, exit_of] / nuisance.own_risk[exit_of][:, None]
        return added


def by_influence(
    scored: ScoredLoss,
    models: Models,
    groups: Groups | None,
    units: Units,
    averages: NDArray[np.float64],
    *,
    any_range: bool,
    compiled: bool,
) -> Moments:
    """Make every influence, and add up its squares: any weighting, groups, batches, covariances over time."""
    m, k = scored.index.times.size, len(scored.scores)
    nuisance = scored.stretches.nuisance
    n_exits = 0 if nuisance is None else nuisance.curve.times.size + 1
    n_rows = n_exits + (0 if groups is None else groups.n_groups)
    width = m if any_range else max(1, min(m, NUMBERS_PER_CHUNK // max(k * n_rows, 1)))
    n_units = scored.stretches.first_stop.size if groups is None else groups.n_groups
    inflation = units.inflation
    totals = Totals(k, n_units, averages, inflation, any_range=any_range, whole=width == m and groups is None)
    for first in range(0, m, width):
        columns = slice(first, min(first + width, m))
        exits = _exits(scored, models, columns, compiled=compiled)
        table = None if groups is None else np.zeros((k, groups.n_groups, columns.stop - first))
        for rows, influence in _influences(scored, models, exits, columns, compiled=compiled):
            if groups is None or table is None:
                totals.add(influence, columns, rows)
            else:
                add_by_label(influence, groups.codes[rows], table, compiled=compiled)
        if table is not None:
            totals.add(table, columns, slice(None))
        if exits is not None and isinstance(nuisance, Elsewhere):
            totals.add_greenwood(nuisance.steps, exits.moved, columns)
    return totals.finish().with_null(scored.null)


@dataclass(frozen=True, eq=False)
class MeanInfluences:
    """How everybody moves the mean over time of each model's score; what two weightings have in common shows in these.

    Attributes
    ----------
    scores : ndarray of shape (models,)
        The means over time.
    values : ndarray of shape (models, n)
        The influences.
    steps, moved : ndarray of shape (exits,) and (models, exits)
        Where G was estimated from others, the weights of Greenwood's sum and the means of M(s; t); else empty.
    """

    scores: NDArray[np.float64]
    values: NDArray[np.float64]
    steps: NDArray[np.float64]
    moved: NDArray[np.float64]


def mean_influences(
    scored: ScoredLoss, models: Models, weights: NDArray[np.float64], *, compiled: bool
) -> MeanInfluences:
    """Return everybody's influence on the mean over time with these weights of the times."""
    m, k = scored.index.times.size, len(scored.scores)
    nuisance = scored.stretches.nuisance
    n_exits = 0 if nuisance is None else nuisance.curve.times.size
    width = max(1, min(m, NUMBERS_PER_CHUNK // max(k * (n_exits + 1), 1)))
    elsewhere = isinstance(nuisance, Elsewhere)
    values = np.zeros((k, scored.stretches.first_stop.size))
    moved = np.zeros((k, n_exits if elsewhere else 0))
    for first in range(0, m, width):
        columns = slice(first, min(first + width, m))
        exits = _exits(scored, models, columns, compiled=compiled)
        for rows, influence in _influences(scored, models, exits, columns, compiled=compiled):
            values[:, rows] += influence @ weights[columns]
        if exits is not None and elsewhere:
            moved += exits.moved @ weights[columns]
    used = weights > 0
    steps = nuisance.steps if nuisance is not None and elsewhere else np.zeros(0)
    return MeanInfluences(scored.scores[:, used] @ weights[used], values, steps, moved)


def _influences(
    scored: ScoredLoss, models: Models, exits: Exits | None, columns: slice, *, compiled: bool
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield blocks of rows with their influences at some of the times, (models, rows, times)."""
    for block in models.blocks(scored.index.times.size, compiled=compiled):
        influence = scored.deviations(block, columns, compiled=compiled)
        if scored.by_n:
            inside = np.arange(columns.start, columns.stop) < scored.stretches.population_stop[block.rows, None]
            influence -= np.where(inside, scored.offset[:, None, columns], 0.0)
        if exits is not None and isinstance(exits.nuisance, Here):
            influence += exits.spread(block.rows)
        if scored.null is not None and scored.null.of_scored:
            influence[-1] += scored.null.influence(block.rows, scored.index.before_time, columns)
        yield block.rows, influence


def _exits(scored: ScoredLoss, models: Models, columns: slice, *, compiled: bool) -> Exits | None:
    """Return M(s; t) at some of the times."""
    nuisance = scored.stretches.nuisance
    if nuisance is None:
        return None
    times = scored.index.times[columns]
    table = np.zeros((len(scored.scores), nuisance.curve.times.size + 1, times.size))
    for block in models.blocks(scored.index.times.size, compiled=compiled):
        moving = scored.deviations(block, columns, compiled=compiled)
        if scored.stretches.capped:
            moving *= scored.stretches.rows(block.rows).columns(columns).moves(times)
        add_by_label(moving, nuisance.exits_before[block.rows], table, compiled=compiled)
    return Exits.of(nuisance, table, times)


def influence_with_nuisance(
    deviations: NDArray[np.float64], stretches: Stretches, times: NDArray[np.float64], columns: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return everybody's influences, (models, individuals, times), and M(s; t), (models, exits, times).

    `deviations` are the influences while what was estimated inside the weights is held fixed, of any metric.
    """
    nuisance = stretches.nuisance
    if nuisance is None:
        return deviations, np.zeros((len(deviations), 0, times.size))
    moving = deviations * stretches.columns(columns).moves(times) if stretches.capped else deviations
    table = np.zeros((len(deviations), nuisance.curve.times.size + 1, times.size))
    add_by_label(moving, nuisance.exits_before, table, compiled=False)
    exits = Exits.of(nuisance, table, times)
    return deviations + exits.spread(slice(None)) if isinstance(nuisance, Here) else deviations, exits.moved


def joint_covariance(
    influence: NDArray[np.float64] | Influences,
    stretches: Stretches,
    times: NDArray[np.float64],
    column: slice,
    groups: Groups | None,
    factor: NDArray[np.float64] | float,
    counted: tuple[NDArray[np.intp], int],
) -> NDArray[np.float64]:
    """Return the covariance of several numbers at one time, from the influences on them, (numbers, counted).

    Where individuals are independent and nothing was estimated, they are never all in memory.

    Those are the influences while what was estimated inside the weights is held fixed, of those who are `counted`: who
    they are, and of how many. `factor`, for each number or for all, is that of a sample variance.
    """
    nuisance, (rows, n) = stretches.nuisance, counted
    by_unit, codes = Influences.of(influence), None if groups is None else groups.codes
    if nuisance is None:  # nobody else has any influence
        codes = None if codes is None else codes[rows]
    else:
        everybody = np.zeros((len(influence), n, 1))
        everybody[:, rows, 0] = by_unit.whole()
        everybody, moved = influence_with_nuisance(everybody, stretches, times, column)
        by_unit = Influences.of(everybody[:, :, 0])
    if groups is not None and codes is not None:
        by_unit = Influences.of(np.array([np.bincount(codes, one, groups.n_groups) for one in by_unit.whole()]))
    root = np.broadcast_to(np.sqrt(factor), len(influence))
    found = sum((cross_products(block, block) for block in by_unit.blocks()), np.zeros((len(influence),) * 2))
    found *= np.outer(root, root)
    if isinstance(nuisance, Elsewhere):
        found += (moved[:, :, 0] * nuisance.steps) @ moved[:, :, 0].T
    return np.asarray(found)


def add_by_label(
    block: NDArray[np.float64], labels: NDArray[Any], table: NDArray[np.float64], *, compiled: bool
) -> None:
    """Add rows, (models, rows, times), to the rows of a table that their labels name."""
    if not compiled:
        for out, rows in zip(table, block, strict=True):
            if rows.shape[1] == 1:
                out[:, 0] += np.bincount(labels, rows[:, 0], len(out))
            else:
                np.add.at(out, labels, rows)
        return
    from survscore.engine import _kernels

    for out, rows in zip(table, block, strict=True):
        _kernels.add_by_label(rows, labels, out)


class Totals:
    """Sums of squares over units, individuals or groups, as they are added up.

    Parameters
    ----------
    n_models, n_units : int
        How many there are.
    averages : ndarray of shape (ranges, times)
        The means over time that are asked for.
    inflation : ndarray of shape (times,) or (pairs, times)
        The small-sample correction of variances; may be filled in before a time is added.
    any_range : bool
        Whether covariances over time are kept: then all times must be added at once.
    whole : bool
        Whether all times of a unit are added at once, and only once.
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
    ) -> None:
        self.pairs = pairs(n_models)
        n, m = len(self.pairs), averages.shape[1]
        self.averages = averages
        self.inflation = np.broadcast_to(inflation, (n, m)).copy()
        self.pointwise, self.greenwood = np.zeros((n, m)), np.zeros((n, m))
        self.of_averages = np.zeros((n, len(averages)))
        self.over_time = np.zeros((n, m, m)) if any_range else None
        # a mean over time needs all times of a unit: where these come in parts, it is kept until the last of them
        self.means = None if whole else np.zeros((n, n_units, len(averages)))
        self.moved_means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def add(self, influence: NDArray[np.float64], columns: slice, units: slice | NDArray[np.intp]) -> None:
        """Add influences of some units, each named once, at some times, (models, units, times)."""
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(influence, a, b)
            if influence.shape[2] == 1 and not len(self.averages) and self.over_time is None:
                self.pointwise[p, columns] += dot(values[:, 0], values[:, 0])
                continue
            root = np.sqrt(self.inflation[p, columns])
            weights = self.averages[:, columns]
            means = values @ np.where(weights != 0, weights * root, 0.0).T  # NaN where a time rests on one unit
            if self.over_time is not None:
                scaled = values * root
                self.over_time[p] += scaled.T @ scaled
            self.pointwise[p, columns] += np.einsum("ij,ij->j", values, values)
            if self.means is None:
                self.of_averages[p] += np.square(means).sum(axis=0)
            else:
                self.means[p, units] += means

    def add_greenwood(self, steps: NDArray[np.float64], moved: NDArray[np.float64], columns: slice) -> None:
        """Add what an estimate of G from others varies, from M(s; t): an independent source, with no correction."""
        means = np.matmul(moved, self.averages[:, columns].T)
        before = 0.0 if self.moved_means is None else self.moved_means[1]
        self.moved_means = (steps, before + means)
        for p, (a, b) in enumerate(self.pairs):
            values = contrast(moved, a, b)
            self.greenwood[p, columns] += np.einsum("s,sj,sj->j", steps, values, values)
            if self.over_time is not None:
                self.over_time[p] += (steps[:, None] * values).T @ values

    def finish(self) -> Moments:
        """Return the variances."""
        for p, (a, b) in enumerate(self.pairs):
            if self.means is not None:
                self.of_averages[p] = np.square(self.means[p]).sum(axis=0)
            if self.moved_means is not None:
                steps, means = self.moved_means
                self.of_averages[p] += steps @ np.square(contrast(means, a, b))
        return Moments(
            self.pointwise * self.inflation + self.greenwood, self.averages, self.of_averages, self.over_time
        )

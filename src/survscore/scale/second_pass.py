"""What the sums of a second pass, over influences, add to results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from survscore.engine.evaluation import ScoreArrays
from survscore.engine.moments import Moments, contrast, n_pairs, pairs
from survscore.inference.units import PowerSums, Units
from survscore.scale.exact import Exact, loss_scale
from survscore.scale.influences import GROUP_BITS, Influences
from survscore.scale.products import PRODUCT_BITS


def spanning_groups(influences: Influences) -> int | None:
    """Return how many groups are in several segments; None if that is unknown."""
    if influences.specification.groups is None:
        return 0
    if influences.specification.buckets:
        return None
    everybody, segments = (influences.sizes[level, 0].powers for level in (0, 1))
    n_groups = Exact(everybody.high[0], everybody.low[0]).whole().max(initial=0.0)
    return int(Exact(segments.high[0], segments.low[0]).whole().sum(axis=0).max(initial=0.0) - n_groups)


def with_influences(scored: ScoreArrays, influences: Influences, which: int | None, q: int, metric: int) -> ScoreArrays:
    """Return the same with variances from the sums of influences."""
    what = influences.specification
    level, place = (0, 0) if which is None else (1, which)
    known, sums = influences.first.known[level][q][metric], influences.sums[level, q, metric]
    usable = known.usable[:, place] > 0
    k, m = scored.scores.shape
    unit = np.where(usable, float(known.bound) / known.total[:, place] / loss_scale(what.metrics[metric]), 0.0)
    support, moments = scored.support, scored.moments
    none, no_means = np.zeros((0, m)), np.zeros((n_pairs(k), 0))
    over_time = None
    if what.groups is None:
        products = _symmetric(sums.products, place, k, m)
        factor = unit * np.where(usable, np.sqrt(support.units.inflation), 0.0)
        over_time = np.array([_pair(products, a, b) for a, b in pairs(k)]) * np.outer(factor, factor)
        pointwise = moments.pointwise if moments is not None else np.zeros((n_pairs(k), m))
        return replace(scored, moments=Moments(pointwise, none, no_means, over_time))
    sizes = influences.sizes[level, q]
    if what.buckets:
        rows = slice(place * influences.n_buckets(level), (place + 1) * influences.n_buckets(level))
        power_sums = PowerSums.of(sizes.buckets[rows])
        values = np.ldexp(sums.buckets[rows].astype(np.float64), -GROUP_BITS).transpose(2, 0, 1) * unit
        several = [contrast(values, a, b) for a, b in pairs(k)]
        squares = np.array([np.square(one).sum(axis=0) for one in several])
        if what.over_time:
            over_time = np.array([one.T @ one for one in several])
    else:
        powers = Exact(sizes.powers.high[:, place], sizes.powers.low[:, place]).whole()
        power_sums = PowerSums(powers, sizes.largest[place].astype(np.float64))
        unit = unit * what.largest_group
        squares = sums.squares.value()[:, :, place] * unit**2
        if what.over_time:
            products = _symmetric(sums.products, place, k, m)
            over_time = np.array([_pair(products, a, b) for a, b in pairs(k)]) * np.outer(unit, unit)
    units = Units(*power_sums.units())
    inflation = np.where(usable, units.inflation, 0.0)
    if over_time is not None:
        root = np.sqrt(inflation)
        over_time = over_time * np.outer(root, root)
    how = f"{what.buckets} random buckets" if what.buckets else "as they are, whole within files"
    return replace(
        scored,
        moments=Moments(squares * inflation, none, no_means, over_time),
        support=replace(support, units=units, grouped=True),
        settings={**scored.settings, "groups": how},
    )


def _symmetric(products: Exact, place: int, k: int, m: int) -> NDArray[np.float64]:
    """Return products over time, (models, times, models, times)."""
    whole = Exact(products.high[place], products.low[place]).whole()
    return np.ldexp(whole, -2 * PRODUCT_BITS).reshape(k, m, k, m)


def _pair(products: NDArray[np.float64], a: int, b: int) -> NDArray[np.float64]:
    """Return the products of a model, or of a difference, (times, times)."""
    if a == b:
        return np.asarray(products[a, :, a])
    return np.asarray(products[a, :, a] + products[b, :, b] - products[a, :, b] - products[b, :, a])

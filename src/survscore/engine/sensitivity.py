"""Projected scores for other hazards of those with hidden status: sums over the hidden at several powers of the curve.

Hidden in stratum k, an individual is event-free with probability m^theta, m = S_k(t) / S_k(c_i): a factor of the time
and one of the individual. So the sums over the hidden, at all times and powers, are one product of matrices by stratum.
Under competing risks m is the probability of no event of the cause of interest, which is no such product; the hazard
that theta multiplies is then that of the subdistribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from survscore._utils import arrays
from survscore._utils.parallel import each
from survscore._utils.products import cross_products
from survscore.engine.blocks import Block
from survscore.engine.plan import Plan, Values
from survscore.engine.second_moments import ScoredLoss
from survscore.engine.sums import ModelWeights, both_losses, weight_sums
from survscore.inference.units import n_eligible
from survscore.metrics import Loss
from survscore.weighting import Weighting
from survscore.weighting.interval_weights import IntervalWeights, ReferenceCurves, TimeIndex

Array = Any  # a NumPy array, or a torch tensor

MOST_THETA = 32.0  # and its inverse: the n-th power of it stays a number for n = 10^9 individuals
N_NODES = 33
#: Chebyshev's points on the logarithmic scale, 1 among them: a score between them is known to about six digits of what
#: theta changes, since it is an entire function of log(theta).
THETAS: Values = np.asarray(MOST_THETA ** np.round(-np.cos(np.pi * np.arange(N_NODES) / (N_NODES - 1)), 15))


@dataclass(frozen=True, eq=False)
class ThetaScores:
    """Projected scores by theta, and whom predictions fit: those with C* >= t, or those with C* < t."""

    #: That of the weighting, and the hazards that it assumes, in words.
    theta: float
    hazards: str
    #: At `THETAS`. Shape (models, times, thetas).
    scores: Values
    #: Mean predicted survival of those with C* >= t, and of those with C* < t; NaN of none. Shape (models, 2, times).
    predicted: Values
    #: The proportion event-free: observed, and projected where that is hidden. Shape (models, 2, times).
    event_free: Values

    def averaged(self, weights: Values) -> Values:
        """Return the scores' means over time, (models, thetas), with the weights of the times that have a score."""
        used = weights > 0
        return np.asarray(np.einsum("atk,t->ak", self.scores[:, used], weights[used]))


@dataclass(frozen=True, eq=False)
class _HiddenSums:
    """What `ThetaScores` are made of; they merge by adding."""

    #: Of m^theta (l1 - l0) over the hidden, at `THETAS` and at the weighting's own. Shape (models, times, thetas + 1).
    losses: Values
    #: Of predicted survival, with C* >= t and with C* < t. Shape (models, 2, times).
    predicted: Values

    def __add__(self, other: _HiddenSums) -> _HiddenSums:
        return _HiddenSums(self.losses + other.losses, self.predicted + other.predicted)


LARGEST_LOG = 700.0  # of a number: the power of the curve that it is multiplied by is as small


def theta_scores(plan: Plan, scored: ScoredLoss, weighting: Weighting) -> ThetaScores | None:
    """Return the scores of one loss at all powers of the reference; None where the weighting has it to the power 0."""
    weights, index, models, theta = scored.weights, plan.index, plan.read_models, weighting.theta
    if not theta:
        return None
    m, n, powers = index.times.size, models.n, np.append(THETAS, theta) / theta
    null = [constant.at(index.times) for constant in scored.constants]

    def of_block(block: Block) -> _HiddenSums:
        return _sums(block, index, scored.loss, weights, null, powers)

    if models.in_memory is not None:  # products of small matrices, which release the lock
        parts = each(of_block, list(models.blocks(m)), threads=index.outcomes.device is None)
    else:
        parts = [of_block(block) for block in models.blocks(m)]
    total = reduce(_HiddenSums.__add__, parts)
    change = (total.losses[..., :-1] - total.losses[..., -1:]) / n
    end = weights[0].observed_index
    n_observed = np.full(m, np.nan) if end is None else n_eligible(end, m)
    sizes = np.stack((n_observed, n - n_observed))
    sums = [total.predicted, np.array([_event_free(weights[a], index) for a in range(len(change))])]
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted, event_free = (np.where(sizes > 0, part / sizes, np.nan) for part in sums)
    return ThetaScores(theta, weighting.hazards, scored.scores[..., None] + change, predicted, event_free)


def _sums(
    block: Block, index: TimeIndex, loss: Loss, weightings: ModelWeights, null: Sequence[Array], powers: Values
) -> _HiddenSums:
    """Return the sums over a block."""
    times, before_time = index.times, index.before_time[block.rows]
    every, column = slice(0, times.size), arrays.columns(times.size, before_time)
    losses, means = [], []
    weights_of = weightings.rows(block.rows)
    read = [index.interpolation(curves)(curves.probabilities) for curves in block.curves]
    for a, values in enumerate([*read, *(arrays.beside(constant, before_time) for constant in null)]):
        weights, survival = weights_of[a], arrays.as_float64(values)
        if a >= len(read):  # the same for all
            survival = arrays.zeros((len(before_time), times.size), before_time) + survival
        _, slope = both_losses(loss, survival)
        losses.append(_by_power(weights, times, arrays.where(weights.hidden(every), slope, 0.0), powers))
        means.append(_early_and_late(weights, survival, column))
    return _HiddenSums(np.array(losses), np.array(means))


def _by_power(weights: IntervalWeights, times: Values, slope: Array, powers: Values) -> Values:
    """Return the sums of m^theta (l1 - l0), (times, powers); `slope` is zero where nothing is hidden."""
    share: Array = weights.hidden_share
    reference = weights.reference
    if isinstance(reference, ReferenceCurves) or weights.hidden_base is not None:
        status = weights.event_free(arrays.zeros(slope.shape, slope) + 1.0, times, slice(0, times.size))
        return np.stack([arrays.to_host(arrays.column_products(slope, status**power)) for power in powers], axis=1)
    total, exponents = np.zeros((times.size, powers.size)), arrays.beside(powers, slope)
    namespace, tensors = arrays.namespace(slope), arrays.is_tensor(slope)
    share = arrays.where(share > 0, share, 1.0)  # 0 for those who are never hidden
    for k, curve in enumerate(np.asarray(arrays.to_host(reference))):
        rows = slice(None) if weights.codes is None else arrays.positions(weights.codes == k)
        own = namespace.exp((namespace.log(share[rows])[:, None] * exponents).clip(max=LARGEST_LOG))
        sums = slope[rows].T @ own if tensors else cross_products(slope[rows].T, own.T)
        total += arrays.to_host(sums) * curve[:, None] ** powers
    return total


def _event_free(weights: IntervalWeights, index: TimeIndex) -> Values:
    """Return how many are event-free, of those with C* >= t and of the others, from the ranges; (2, times)."""
    total = weight_sums(weights, index).weights[:2].sum(axis=0)
    if weights.observed_index is None:
        return np.full((2, total.size), np.nan)
    observed = weight_sums(weights.observed(), index).weights[:2].sum(axis=0)
    return np.stack((observed, total - observed))


def _early_and_late(weights: IntervalWeights, cells: Array, column: Array) -> Values:
    """Return sums over those with C* >= t, and over the others, (2, times)."""
    end = weights.observed_index
    if end is None:
        return np.full((2, cells.shape[1]), np.nan)
    total = arrays.to_host(cells.sum(0))
    observed = arrays.to_host(arrays.column_products(column < end[:, None], cells))
    return np.stack((observed, total - observed))

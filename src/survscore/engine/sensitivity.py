"""Projected scores for other hazards of those with hidden status: sums over the hidden at several powers of the curve.

Hidden in stratum k, an individual is event-free with probability m^theta, m = S_k(t) / S_k(c_i): a factor of the time
and one of the individual. So the sums over the hidden, at all times and powers, are one product of matrices by stratum.
Under competing risks theta multiplies the hazard of the cause of interest, and those of other causes stay. Without an
event of the cause is then 1 - [F_k(t) - F_k(c_i)] / S_k(c_i), with the estimates at that theta
(`censoring.aalen_johansen`): a number of the individual, and a product of one with a factor of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from survscore._utils import arrays
from survscore._utils.parallel import cross_products, each
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.fitted import FittedOnSample
from survscore.engine.blocks import Block
from survscore.engine.plan import Plan, Values
from survscore.engine.second_moments import ScoredLoss
from survscore.engine.sums import ModelWeights, both_losses, weight_sums
from survscore.inference.units import n_eligible
from survscore.metrics import Loss
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
    scores: Values  # At `THETAS`. Shape (models, times, thetas).
    #: Mean predicted survival of those with C* >= t, and of those with C* < t; NaN of none. Shape (models, 2, times).
    predicted: Values
    #: The proportion event-free: observed, and projected where that is hidden. Shape (models, 2, times).
    event_free: Values

    def averaged(self, weights: Values) -> Values:
        """Return the scores' means over time, (models, thetas), with the weights of the times that have a score."""
        used = weights > 0
        return np.asarray(np.einsum("atk,t->ak", self.scores[:, used], weights[used]))


LARGEST_LOG = 700.0  # of a number: the power of the curve that it is multiplied by is as small


def theta_scores(plan: Plan, scored: ScoredLoss, theta: float, hazards: str, *, every_cause: bool) -> ThetaScores:
    """Return the scores of one loss at all powers of the reference; that of the weighting is `theta`, above zero.

    Under competing risks theta multiplies the hazard of the cause of interest, or those of `every_cause`.
    """
    weights, index, models = scored.weights, plan.index, plan.read_models
    own = None if index.sample is None else index.sample.values
    m, n = index.times.size, float(models.n if own is None else own.sum())
    null = [constant.at(index.times) for constant in scored.constants]
    in_threads = index.outcomes.device is None
    statuses = each(lambda one: _Statuses.of(one, index, theta, every_cause), weights.each, threads=in_threads)

    def of_block(block: Block) -> tuple[Values, Values]:
        return _sums(block, index, scored.loss, weights, null, statuses)

    if models.in_memory is not None:  # products of small matrices, which release the lock
        parts = each(of_block, list(models.blocks(m)), threads=in_threads)
    else:
        parts = [of_block(block) for block in models.blocks(m)]
    losses, predicted_sums = (np.asarray(sum(several)) for several in zip(*parts, strict=True))
    change = (losses[..., :-1] - losses[..., -1:]) / n
    end = weights[0].observed_index
    n_observed = np.full(m, np.nan) if end is None else n_eligible(end, m, own)
    n_others = (
        n - n_observed if own is None or end is None else np.where(n_eligible(end, m) < models.n, n - n_observed, 0)
    )
    sizes = np.stack((n_observed, n_others))
    sums = [predicted_sums, np.array([_event_free(weights[a], index) for a in range(len(change))])]
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted, event_free = (np.where(sizes > 0, part / sizes, np.nan) for part in sums)
    return ThetaScores(theta, hazards, scored.scores[..., None] + change, predicted, event_free)


def _sums(
    block: Block,
    index: TimeIndex,
    loss: Loss,
    weightings: ModelWeights,
    null: Sequence[Array],
    statuses: Sequence[_Statuses],
) -> tuple[Values, Values]:
    """Return sums over a block, of what theta changes and of predicted survival.

    Of m^theta (l1 - l0) over the hidden, at `THETAS` and at the weighting's own, (models, times, thetas + 1); and of
    those with C* >= t and with C* < t, (models, 2, times).
    """
    times, before_time = index.times, index.before_time[block.rows]
    columns, column = slice(0, times.size), arrays.columns(times.size, before_time)
    losses, means = [], []
    weights_of = weightings.rows(block.rows)
    read = [index.interpolation(curves)(curves.probabilities) for curves in block.curves]
    for a, values in enumerate([*read, *(arrays.beside(constant, before_time) for constant in null)]):
        weights, survival = weights_of[a], arrays.as_float64(values)
        if a >= len(read):  # the same for all
            survival = arrays.zeros((len(before_time), times.size), before_time) + survival
        # individuals whose status is known at all times add nothing: for them, neither losses nor powers are computed
        rows = arrays.positions(weights.follow_up_index < times.size)
        some = weights.rows(rows)
        _, slope = both_losses(loss, arrays.pick_rows(survival, rows))
        slope = arrays.where(some.hidden(columns), slope, 0.0)
        if weights.sample is not None and some.sample is not None:
            slope, survival = slope * some.sample.values[:, None], survival * weights.sample.values[:, None]
        losses.append(statuses[weightings.place(a)].sums(some, block.rows, rows, times, slope))
        means.append(_early_and_late(weights, survival, column))
    return np.array(losses), np.array(means)


@dataclass(frozen=True, eq=False)
class _Statuses:
    """The probability that the hidden are event-free, at each of `THETAS` and at the weighting's own theta."""

    powers: Values  # The powers of what the weighting projects by.
    #: Under competing risks, the estimates at these, and where each individual stands by position; and U at the
    #: evaluation times. Shape (n,), and (strata, times, thetas).
    incidence: Incidence | None = None
    position: Array = None
    later: Values | None = None

    @classmethod
    def of(cls, weights: IntervalWeights, index: TimeIndex, theta: float, every_cause: bool) -> _Statuses:
        """Take the weights of all individuals."""
        thetas, model = np.append(THETAS, theta), weights.censoring_model
        if weights.hidden_base is None or not isinstance(model, FittedOnSample) or model.incidence is None:
            return cls(thetas / theta)
        own = model.incidence
        several = arrays.beside(thetas, own.events)
        incidence = replace(own, theta=several, theta_of_others=several if every_cause else own.theta_of_others)
        position = own.position(arrays.put(model.passed, index.order), weights.codes)
        return cls(thetas, incidence, position, incidence.later_table(index.times))

    def sums(self, weights: IntervalWeights, block: Any, rows: Any, times: Values, slope: Array) -> Values:
        """Return sums of status times (l1 - l0) over some rows of a block, (times, thetas).

        `slope` is 0 where none is hidden.
        """
        if self.incidence is not None and self.later is not None:
            base, factor = self.incidence.statuses(self.position[block][rows])
            found = _products(slope, base)
            for k, (inside, _) in enumerate(_strata(weights)):
                found += _products(slope[inside], factor[inside]) * self.later[k]
            return found
        if isinstance(weights.reference, ReferenceCurves) or weights.hidden_base is not None:
            status = weights.event_free(arrays.zeros(slope.shape, slope) + 1.0, times, slice(0, times.size))
            return np.stack(
                [arrays.to_host(arrays.column_products(slope, status**power)) for power in self.powers], axis=1
            )
        share: Array = weights.hidden_share
        exponents = arrays.beside(self.powers, slope)
        share = arrays.where(share > 0, share, 1.0)  # 0 for those who are never hidden
        total, namespace = np.zeros((times.size, self.powers.size)), arrays.namespace(slope)
        for inside, curve in _strata(weights):
            own = namespace.exp((namespace.log(share[inside])[:, None] * exponents).clip(max=LARGEST_LOG))
            total += _products(slope[inside], own) * curve[:, None] ** self.powers
        return total


def _strata(weights: IntervalWeights) -> list[tuple[Any, Values]]:
    """Return the individuals of each stratum, and what their statuses are projected by."""
    every = slice(None)
    return [
        (every if weights.codes is None else arrays.positions(weights.codes == k), curve)
        for k, curve in enumerate(np.asarray(arrays.to_host(weights.reference)))
    ]


def _products(slope: Array, values: Array) -> Values:
    """Return the sums over individuals, (times, thetas)."""
    found = slope.T @ values if arrays.is_tensor(slope) else cross_products(slope.T, values.T)
    return np.asarray(arrays.to_host(found))


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

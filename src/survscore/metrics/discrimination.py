"""Who is told from whom at one time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils.products import dot
from survscore.metrics.base import Direction, Found, PooledMetric, Scale
from survscore.metrics.sample import PooledSample


@dataclass(frozen=True)
class AUC(PooledMetric):
    r"""How often one with event had the lower predicted survival than one without; ties count half.

    .. math:: \mathrm{AUC}(t) = \frac{\sum_{i, k} w_i w_k 1\{T_i \le t\} 1\{T_k > t\}
        [1\{\pi_i < \pi_k\} + \tfrac12 1\{\pi_i = \pi_k\}]}{W_1 W_0}

    with :math:`W_1` and :math:`W_0` the weights of those with and without event by t. Where nobody has a weight of its
    own, standard errors are DeLong's [1]_.

    0.75 says that of one with and one without event by t, the one with had the higher risk three times in four; 0.5 is
    a coin. It is about order alone, so that a model with the best value may be wrong with every probability. How high
    it can be depends on how much people differ, so values of other people, or other times, can't be compared. Under
    IPCW, predictions that can tell :math:`C^*` raise it.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
       characteristic curves. Biometrics 44, 837-845.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4, 5], event=[1, 0, 1, 0], censoring_time=[4, 3, 6, 5])
    >>> curves = ss.SurvivalCurves([[0.5], [0.6], [0.5], [0.4]], times=[2])  # controls above, at and below the case
    >>> ss.score_all(y, curves, metric=ss.AUC(), weighting="administrative", times=[2])[0].scores
    array([0.5])
    """

    name: ClassVar[str] = "auc"
    label: ClassVar[str] = "AUC"
    direction: ClassVar[Direction] = "higher"
    has_ratios: ClassVar[bool] = False  # a half is what tells nobody apart
    scale: ClassVar[Scale] = "logit"

    def evaluate(self, sample: PooledSample) -> Found:  # noqa: D102
        without, with_event = sample.statuses
        if not (with_event and without):
            who = "with" if not with_event else "without"
            return Found(np.nan, np.zeros(len(sample)), f"nobody {who} event is counted")
        if sample.compiled:
            from survscore.metrics import _pair_kernels

            influence = np.empty(len(sample))
            value = _pair_kernels.area(sample.order, sample.survival, sample.event, sample.weight, influence)
            return Found(float(value), influence)
        order, ties = sample.order, sample.ties
        event, weight = sample.event[order], sample.weight[order]
        case = event * weight
        control = weight - case
        by_case, by_control = _sums(case, ties), _sums(control, ties)
        cases, controls = by_case.sum(), by_control.sum()
        # for each distinct prediction, the share of controls above it, and of cases below it
        above = (controls - np.cumsum(by_control) + 0.5 * by_control) / controls
        below = (np.cumsum(by_case) - 0.5 * by_case) / cases
        value = dot(by_case, above) / float(cases)
        if ties.size < order.size:
            place = np.repeat(np.arange(ties.size), np.diff(ties, append=order.size))
            above, below = above[place], below[place]
        influence = np.empty(order.size)
        influence[order] = case * (above - value) / cases + control * (below - value) / controls
        return Found(value, influence)

    def small_sample(  # noqa: D102
        self, influence: NDArray[np.float64], label: NDArray[np.int8], counted: NDArray[np.bool_]
    ) -> float:
        event = (label != 0).astype(np.float64)
        squares = np.where(counted, np.square(influence), 0.0)
        number, with_event = np.count_nonzero(counted), np.count_nonzero((label != 0) & counted)
        of_events = dot(event, squares)
        of_others = dot(1.0 - event, squares)
        numbers = (with_event, number - with_event)
        return sum(part / (n - 1) if n > 1 else np.nan for part, n in zip((of_events, of_others), numbers, strict=True))


def _sums(ordered: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sums of what is between one start and the next."""
    return ordered if starts.size == ordered.size else np.add.reduceat(ordered, starts)

"""Who is told from whom at one time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray
from survscore.metrics.base import Direction, Found, PooledMetric, Scale


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
    scale: ClassVar[Scale] = "logit"

    def evaluate(  # noqa: D102
        self, survival: FloatArray, label: NDArray[np.int8], weight: NDArray[np.float64]
    ) -> Found:
        _, rank = np.unique(survival, return_inverse=True)
        influence, event = np.zeros(survival.size), label != 0
        case, control = np.where(event, weight, 0.0), np.where(event, 0.0, weight)
        by_case, by_control = np.bincount(rank, case), np.bincount(rank, control)
        cases, controls = by_case.sum(), by_control.sum()
        if not (cases > 0 and controls > 0):
            return Found(np.nan, influence, f"nobody {'with' if not cases > 0 else 'without'} event is counted")
        # for each distinct prediction, the share of controls above it, and of cases below it
        above = (controls - np.cumsum(by_control) + 0.5 * by_control) / controls
        below = (np.cumsum(by_case) - 0.5 * by_case) / cases
        value = float(by_case @ above / cases)
        influence += case * (above[rank] - value) / cases
        influence += control * (below[rank] - value) / controls
        return Found(value, influence)

    def small_sample(  # noqa: D102
        self, influence: NDArray[np.float64], label: NDArray[np.int8], counted: NDArray[np.bool_]
    ) -> float:
        total = 0.0
        for group in ((label != 0) & counted, (label == 0) & counted):
            number = np.count_nonzero(group)
            total += np.square(influence[group]).sum() / (number - 1) if number > 1 else np.nan
        return float(total)

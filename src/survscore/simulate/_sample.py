"""What a study draws: covariates, what is observed, and what is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import as_times
from survscore.curves import SurvivalCurves
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd


Array = NDArray[np.float64]
Survival = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Sample:
    """Simulated individuals."""

    #: What a model may use.
    covariates: pd.DataFrame
    #: What is observed, administratively censored, with everybody's censoring time.
    outcomes: Outcomes
    #: What would be observed without censoring, up to the end of the study window.
    uncensored: Outcomes
    true_survival: Survival

    @classmethod
    def of(cls, covariates: pd.DataFrame, uncensored: Outcomes, censoring_time: Array, survival: Survival) -> Sample:
        """Censor what would be observed."""
        observed = uncensored.event & (uncensored.time <= censoring_time)
        outcomes = Outcomes(np.where(observed, uncensored.time, censoring_time), observed, censoring_time)
        return cls(covariates, outcomes, uncensored, survival)

    def survival(self, times: ArrayLike) -> SurvivalCurves:
        """Return the true survival of these individuals at `times`, as curves that fall only there."""
        grid = as_times(times)
        return SurvivalCurves(self.true_survival(grid), grid, "step")

    def censoring(self, times: ArrayLike) -> SurvivalCurves:
        r"""Return the true :math:`G_i(t) = 1\{C^*_i > t\}` at `times`."""
        grid = as_times(times)
        end = self.outcomes.censoring_time
        if end is None:
            raise TypeError("a sample's outcomes carry censoring times")
        return SurvivalCurves((end[:, None] > grid).astype(np.float64), grid, "step")

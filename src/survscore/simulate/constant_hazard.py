"""The study of section 4.1 of the paper: one hazard for all, censoring times that a covariate may tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import InputError, check_rule, check_whole
from survscore.outcomes import Outcomes
from survscore.simulate._sample import Sample

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ConstantHazardStudy:
    r"""The same discrete hazard for everybody, censoring times uniform over the window.

    At each grid time the event happens with probability `hazard` to those still event-free, so
    :math:`S(\tau_j) = (1 - h)^j`; :math:`C^*` is uniform on (0, `end`], independent of the event time. The only
    covariate is a monotone function of :math:`C^*`: it says nothing about the event, all about the censoring.

    Parameters
    ----------
    hazard : float, default 0.00084
        Probability of the event at each grid time.
    n_times : int, default 1000
        Number of grid times.
    end : float, default 100
        The last grid time.

    Examples
    --------
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(1000, seed=1)
    >>> len(sample.outcomes), sample.covariates.columns.tolist()
    (1000, ['tells_censoring_time'])
    >>> sample.survival([50, 100]).probabilities[0].round(3)
    array([0.657, 0.432])
    """

    hazard: float = 0.00084
    n_times: int = 1000
    end: float = 100.0

    def __post_init__(self) -> None:
        if not 0 < self.hazard < 1:
            raise InputError(f"hazard must be between 0 and 1, not {self.hazard}")
        if self.n_times < 1 or not self.end > 0:
            raise InputError("n_times must be at least 1, and end positive")

    def sample(self, n: int, seed: int) -> Sample:
        """Draw `n` individuals; the same seed gives the same individuals."""
        check_whole("n", n, 1)
        rng = np.random.default_rng(seed)
        step = rng.geometric(self.hazard, n)  # the grid time, counted from 1, at which the event happens
        happened = step <= self.n_times
        time = np.where(happened, self._grid_time(np.minimum(step, self.n_times)), self.end)
        censoring_time = self.end * (1.0 - rng.random(n))
        uncensored = Outcomes(time, happened, np.full(n, self.end))
        survival = partial(self._survival_of_all, n)
        return Sample.of(self.covariates_of(censoring_time), uncensored, censoring_time, survival)

    @property
    def grid(self) -> NDArray[np.float64]:
        """The times at which events happen."""
        return self._grid_time(np.arange(1, self.n_times + 1))

    def covariates_of(self, censoring_time: ArrayLike) -> pd.DataFrame:
        """Return the covariate of individuals with these censoring times: standardised, increasing with them."""
        import pandas as pd

        centred = (np.asarray(censoring_time) - self.end / 2) / (self.end / np.sqrt(12.0))
        return pd.DataFrame({"tells_censoring_time": centred})

    def survival(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the survival that all share."""
        n_passed = np.searchsorted(self.grid, times, side="right")
        return np.asarray((1.0 - self.hazard) ** n_passed)

    def _survival_of_all(self, n: int, times: NDArray[np.float64]) -> NDArray[np.float64]:
        check_rule("times", f"within the study, which ends at {self.end:g}", times > self.end, times)
        return np.tile(self.survival(times), (n, 1))

    def _grid_time(self, step: NDArray[np.int64]) -> NDArray[np.float64]:
        return step * self.end / self.n_times

"""Competing risks with the truth attached: two causes, whose hazards depend on different covariates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_rule, check_whole
from survscore.outcomes import Outcomes
from survscore.simulate.studies import Array, Sample

#: Steps of the grid at which `LEVELS` are the logits.
USUAL_STEPS = 100
#: The logits at time 0, against staying event-free, of individuals with mean covariates.
LEVELS = (-5.0, -6.5)
#: What is added to them over the study window: the first cause becomes rarer with time, the second more frequent.
TRENDS = (-1.5, 1.5)


@dataclass(frozen=True)
class CompetingRisksStudy:
    r"""Customers who churn or fail to pay, followed from their date of entry until the data cut-off.

    At each grid time :math:`\tau_j` those still event-free have an event of cause k with probability

    .. math::

        h_{jk}(x) = \frac{e^{g_{jk}(x)}}{1 + e^{g_{j1}(x)} + e^{g_{j2}(x)}}, \qquad
        F_k(\tau_j \mid x) = \sum_{l \le j} h_{lk}(x) \prod_{i < l} [1 - h_{i1}(x) - h_{i2}(x)]

    with :math:`g_{j1} = -5 - b x_1 - 1.5 j / m` (churn) and :math:`g_{j2} = -6.5 + b x_2 + 1.5 j / m` (non-payment) on
    100 grid times. ``satisfaction`` :math:`x_1` and ``debt`` :math:`x_2` are standard normal. The date of entry is
    uniform over the window and independent of both, so that ``entry``, the share of the window that had passed, says
    nothing about the events and all about the censoring: :math:`C^* = \tau_m (1 - \text{entry})`.

    Parameters
    ----------
    effect : float, default 1
        b, the effect of a standard deviation of a covariate on the logit of its cause.
    n_times : int, default 100
        Number of grid times; with others than 100, logits move by the logarithm of their ratio.
    end : float, default 100
        The last grid time.

    Examples
    --------
    >>> from survscore.simulate import CompetingRisksStudy
    >>> sample = CompetingRisksStudy().sample(1000, seed=1)
    >>> sample.outcomes.n_by_cause
    {'churn': 217, 'non-payment': 134}
    >>> sample.covariates.columns.tolist()
    ['satisfaction', 'debt', 'entry']
    >>> sample.incidence([50, 100]).probabilities.mean(axis=0).round(2)
    array([[0.26, 0.32],
           [0.12, 0.26]])
    """

    effect: float = 1.0
    n_times: int = USUAL_STEPS
    end: float = 100.0

    causes = ("churn", "non-payment")

    def __post_init__(self) -> None:
        check_whole("n_times", self.n_times, 1)
        if not np.isfinite(self.effect):
            raise InputError(f"effect must be finite, not {self.effect}")
        if not (self.end > 0 and np.isfinite(self.end)):
            raise InputError(f"end must be positive and finite, not {self.end}")

    @property
    def grid(self) -> Array:
        """The times at which events happen."""
        return np.arange(1, self.n_times + 1) * self.end / self.n_times

    def sample(self, n: int, seed: int) -> Sample:
        """Draw `n` individuals; the same seed gives the same individuals."""
        import pandas as pd

        check_whole("n", n, 1)
        rng = np.random.default_rng(seed)
        drivers = rng.standard_normal((n, len(LEVELS)))
        entry = rng.random(n)
        hazards = self.hazards(drivers)
        event_free = np.cumprod(1.0 - hazards.sum(axis=1), axis=1)
        position = np.sum(event_free > rng.random(n)[:, None], axis=1)
        step = np.minimum(position, self.n_times - 1)
        # of those who have an event at a grid time, each cause gets its share
        at_event = np.cumsum(hazards[np.arange(n), :, step], axis=1)
        cause = 1 + np.sum(at_event < at_event[:, -1:] * rng.random((n, 1)), axis=1)
        uncensored = Outcomes(
            self.grid[step], np.where(position < self.n_times, cause, 0), np.full(n, self.end), causes=self.causes
        )
        covariates = pd.DataFrame({"satisfaction": drivers[:, 0], "debt": drivers[:, 1], "entry": entry})
        truth = partial(self._survival, drivers), partial(self._incidence, drivers)
        return Sample.of(covariates, uncensored, self.end * (1.0 - entry), *truth)

    def hazards(self, drivers: Array) -> Array:
        """Return the probabilities of each cause at each grid time, (n, causes, grid times), of those event-free.

        Parameters
        ----------
        drivers : ndarray of shape (n, 2)
            Satisfaction and debt.
        """
        levels, trends = np.array(LEVELS) + np.log(USUAL_STEPS / self.n_times), np.array(TRENDS)
        moved = levels + self.effect * drivers * [-1.0, 1.0]
        odds = np.exp(moved[:, :, None] + trends[:, None] * (self.grid / self.end))
        return np.asarray(odds / (1.0 + odds.sum(axis=1, keepdims=True)))

    def _incidence(self, drivers: Array, times: Array) -> Array:
        hazards = self.hazards(drivers)
        event_free = np.cumprod(1.0 - hazards.sum(axis=1), axis=1)
        before = np.pad(event_free, ((0, 0), (1, 0)), constant_values=1.0)[:, :-1]
        incidence = np.cumsum(hazards * before[:, None, :], axis=2)
        return np.pad(incidence, ((0, 0), (0, 0), (1, 0)))[:, :, self._columns(times)]

    def _survival(self, drivers: Array, times: Array) -> Array:
        return np.asarray(1.0 - self._incidence(drivers, times).sum(axis=1))

    def _columns(self, times: Array) -> NDArray[np.intp]:
        """Return how many grid times have passed at `times`."""
        check_rule("times", f"within the study, which ends at {self.end:g}", times > self.end, times)
        return np.searchsorted(self.grid, times, side="right")

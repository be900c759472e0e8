"""Simulated data for the benchmarks: event times that the end of the data cuts off, and predictions of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import survscore as ss

N_TIMES = 150
ROWS_PER_BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Data:
    """The same outcomes and predictions in the forms that the libraries take.

    What is cached here is made before anything is timed: every library gets its data as it wants them.
    """

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    censoring_time: NDArray[np.float64]
    grid: NDArray[np.float64]
    survival: NDArray[np.float32]  # individuals x times
    censoring_survival: NDArray[np.float32]  # G_i(t), of the same shape

    def head(self, n: int) -> Data:
        """Return the first `n` individuals, without a copy."""
        return Data(
            self.time[:n],
            self.event[:n],
            self.censoring_time[:n],
            self.grid,
            self.survival[:n],
            self.censoring_survival[:n],
        )

    def __len__(self) -> int:
        return self.time.size

    @cached_property
    def outcomes(self) -> ss.Outcomes:
        return ss.Outcomes(self.time, self.event, self.censoring_time)

    @cached_property
    def curves(self) -> ss.SurvivalCurves:
        return ss.SurvivalCurves(self.survival, self.grid)

    @cached_property
    def second_curves(self) -> ss.SurvivalCurves:
        """A second model, gloomier than the first."""
        second = np.empty_like(self.survival)
        for start in range(0, len(self), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            second[rows] = self.survival[rows] ** np.float32(1.2)
        return ss.SurvivalCurves(second, self.grid)

    @cached_property
    def with_drop_outs(self) -> ss.Outcomes:
        """The same outcomes, if everybody had been lost at a rate of 0.002: about a twentieth dropped out."""
        drop = np.random.default_rng(1).exponential(500, self.time.size)
        return ss.Outcomes(np.minimum(self.time, drop), self.event & (self.time <= drop), self.censoring_time)

    @cached_property
    def censoring_curves(self) -> ss.SurvivalCurves:
        """Step functions, as pycox reads them."""
        return ss.SurvivalCurves(self.censoring_survival, self.grid, interpolation="step")

    @cached_property
    def survival_by_time(self) -> NDArray[np.float32]:
        """Times x individuals, contiguous: the order in which pycox reads."""
        return np.ascontiguousarray(self.survival.T)

    @cached_property
    def censoring_survival_by_time(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.censoring_survival.T)


def simulate(n: int, n_times: int = N_TIMES, seed: int = 0) -> Data:
    """Simulate n individuals under administrative censoring.

    Event times are exponential with a rate of their own, C* is uniform on (0, 100], and the predictions are
    exponential with a rate that misses the true one a little. The grid ends at 95, where about a twentieth
    of the individuals are still followed. Times are continuous: there are no ties.
    """
    rng = np.random.default_rng(seed)
    rate = np.exp(0.7 * rng.standard_normal(n)) / 50
    event_time = rng.exponential(1 / rate)
    censoring_time = 100 * (1 - rng.random(n))
    predicted_rate = rate * np.exp(0.3 * rng.standard_normal(n))
    censoring_rate = rng.uniform(0.002, 0.03, n)
    grid = np.linspace(0, 95, n_times + 1)[1:]
    return Data(
        time=np.minimum(event_time, censoring_time),
        event=event_time <= censoring_time,
        censoring_time=censoring_time,
        grid=grid,
        survival=_exponential_curves(predicted_rate, grid),
        # One at the first grid point, so that nobody's convention for what comes before it matters.
        censoring_survival=_exponential_curves(censoring_rate, grid - grid[0]),
    )


def _exponential_curves(rate: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float32]:
    curves = np.empty((rate.size, grid.size), dtype=np.float32)
    for start in range(0, rate.size, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        curves[rows] = np.exp(-rate[rows, None] * grid)
    return curves

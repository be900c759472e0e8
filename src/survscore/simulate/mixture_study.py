"""The main simulation study of the paper: event times from a mixture of hazards, three kinds of censoring."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from survscore._validation import check_choice, check_rule, check_whole
from survscore.outcomes import Outcomes
from survscore.simulate._sample import Sample
from survscore.simulate.hazards import (
    Carrier,
    Constant,
    LogitHazard,
    SineConstantAccelerating,
    first_at_or_below,
    for_each_block,
)

CENSORINGS = ("simple", "complicated", "independent")


class Censoring(Protocol):
    """How censoring times come about."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """What the numbers drive that covariates carry; none, if covariates say nothing about censoring."""

    @property
    def n_per_driver(self) -> int:
        """How many covariates carry each of them."""

    def draw(self, u: NDArray[np.float64], grid: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the censoring times of individuals with these drivers."""


@dataclass(frozen=True)
class ThresholdCensoring:
    r"""Administrative censoring that covariates tell: :math:`C^*` is where a decreasing Q falls to `threshold`.

    Q has the form of a survival function, with the given hazard (eq:sim_censor_surv). Where it stays above,
    :math:`C^*` is the end of the grid.
    """

    hazard: LogitHazard
    n_per_driver: int
    threshold: float = 0.2

    @property
    def drivers(self) -> tuple[str, ...]:
        """Those of the hazard."""
        return self.hazard.drivers

    def draw(self, u: NDArray[np.float64], grid: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the censoring times, which the drivers determine."""
        crossing = first_at_or_below(self.hazard, u, grid, np.full(len(u), self.threshold))
        return np.asarray(grid[np.minimum(crossing, grid.size - 1)])


@dataclass(frozen=True)
class IndependentCensoring:
    """Censoring times uniform over the grid, of which covariates say nothing."""

    drivers: tuple[str, ...] = ()
    n_per_driver: int = 1

    def draw(self, u: NDArray[np.float64], grid: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the censoring times."""
        return np.asarray(rng.choice(grid, len(u)))


@dataclass(frozen=True, eq=False)
class SineConstantAcceleratingStudy:
    r"""The study of section 5: hazards from eq:g_all, and administrative censoring that covariates tell or not.

    On the grid 0.1, 0.2, ..., 100, the event happens at :math:`\tau_j` with probability :math:`h(\tau_j \mid x)` to
    those still event-free. Nine numbers drive the hazard, each carried by two covariates: 18 covariates say all about
    the event time. Others, independent of these, say all about the censoring time.

    Parameters
    ----------
    censoring : {"simple", "complicated", "independent"} or Censoring, default "simple"
        ``"simple"``: the function that gives :math:`C^*` is exponential, with one driver in 5 covariates (23 in all);
        ``"complicated"``: it is built like the survival function (36 in all); ``"independent"``: :math:`C^*` is
        uniform, and covariates say nothing about it (18 in all).
    hazard : LogitHazard
        Of the event.
    n_per_driver : int, default 2
        How many covariates carry each driver of the event.
    seed : int, default 0
        Of the coefficients with which covariates carry the drivers: the same for all samples of a study.

    Examples
    --------
    >>> from survscore.simulate import SineConstantAcceleratingStudy
    >>> study = SineConstantAcceleratingStudy("simple")
    >>> sample = study.sample(1000, seed=1)
    >>> sample.covariates.shape, list(sample.covariates.columns[:2]), sample.covariates.columns[-1]
    ((1000, 23), ['event_amplitude_1', 'event_amplitude_2'], 'censoring_constant_5')
    >>> sample.survival([10, 50, 100]).probabilities.mean(axis=0).round(1)
    array([0.8, 0.4, 0.2])
    """

    censoring: str | Censoring = "simple"
    hazard: LogitHazard = field(default_factory=SineConstantAccelerating)
    n_per_driver: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if not hasattr(self.censoring, "draw"):
            check_choice("censoring", self.censoring, CENSORINGS)
        check_whole("n_per_driver", self.n_per_driver, 1)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The times at which events happen."""
        return np.arange(1, 1001) / 10.0

    @cached_property
    def censoring_rule(self) -> Censoring:
        """How censoring times come about."""
        match self.censoring:
            case "simple":
                return ThresholdCensoring(Constant(), 5)
            case "complicated":
                return ThresholdCensoring(SineConstantAccelerating(), 2)
            case str():
                return IndependentCensoring()
            case rule:
                return rule

    @cached_property
    def carriers(self) -> tuple[Carrier, Carrier]:
        """How covariates carry the drivers of the event, and of the censoring."""
        event, censoring = (np.random.default_rng((self.seed, part)) for part in (0, 1))
        rule = self.censoring_rule
        return (
            Carrier.draw(len(self.hazard.drivers), self.n_per_driver, event),
            Carrier.draw(len(rule.drivers), rule.n_per_driver, censoring),
        )

    def sample(self, n: int, seed: int) -> Sample:
        """Draw `n` individuals.

        Parameters
        ----------
        n : int
            How many.
        seed : int
            The same seed gives the same individuals.

        Returns
        -------
        Sample
        """
        import pandas as pd

        check_whole("n", n, 1)
        rng = np.random.default_rng(seed)
        rule = self.censoring_rule
        parts, names, drivers = [], [], []
        for kind, carrier, roles in zip(
            ("event", "censoring"), self.carriers, (self.hazard.drivers, rule.drivers), strict=True
        ):
            u = rng.uniform(-1.0, 1.0, (n, len(roles)))
            drivers.append(u)
            parts.append(carrier.covariates(u, rng))
            names += [f"{kind}_{role}_{j + 1}" for role in roles for j in range(carrier.coefficients.shape[1])]
        position = first_at_or_below(self.hazard, drivers[0], self.grid, rng.random(n))
        happened = position < self.grid.size
        time = self.grid[np.minimum(position, self.grid.size - 1)]
        censoring_time = rule.draw(drivers[1], self.grid, rng)
        observed = happened & (time <= censoring_time)
        return Sample(
            covariates=pd.DataFrame(np.concatenate(parts, axis=1), columns=names),
            outcomes=Outcomes(np.where(observed, time, censoring_time), observed, censoring_time),
            uncensored=Outcomes(time, happened, np.full(n, self.grid[-1])),
            true_survival=partial(self._survival, drivers[0]),
        )

    def _survival(self, u: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        check_rule("times", f"within the study, which ends at {self.grid[-1]:g}", times > self.grid[-1], times)
        columns = np.searchsorted(self.grid, times, side="right")
        grid = self.grid[: int(columns.max())]
        survival = np.ones((len(u), times.size))
        after = columns > 0

        def pick(rows: slice, block: NDArray[np.float64]) -> None:
            survival[rows, after] = block[:, columns[after] - 1]

        for_each_block(self.hazard, u, grid, pick)
        return survival

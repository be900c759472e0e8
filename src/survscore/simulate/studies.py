"""Simulation studies, the paper's and one of competing risks: covariates, what is observed, and what is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.parallel import cached_property, each
from survscore._validation import InputError, as_times, check_choice, check_rule, check_whole
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Survival = Callable[[Array], Array]
ROWS_PER_BLOCK = 1024
N_FREQUENCIES = 5
#: Of the study of competing risks: steps of the grid at which `LEVELS` are the logits.
USUAL_STEPS = 100
#: The logits at time 0, against staying event-free, of individuals with mean covariates.
LEVELS = (-5.0, -6.5)
#: What is added to them over the study window: the first cause becomes rarer with time, the second more frequent.
TRENDS = (-1.5, 1.5)


@dataclass(frozen=True, eq=False)
class Sample:
    """Simulated individuals."""

    #: What a model may use.
    covariates: pd.DataFrame
    #: What is observed, administratively censored, with each individual's censoring time.
    outcomes: Outcomes
    #: What would be observed without censoring, up to the end of the study window.
    uncensored: Outcomes
    true_survival: Survival
    #: The true cumulative incidences, (n, causes, times), under competing risks.
    true_incidence: Survival | None = None

    @classmethod
    def of(
        cls,
        covariates: pd.DataFrame,
        uncensored: Outcomes,
        censoring_time: Array,
        survival: Survival,
        incidence: Survival | None = None,
    ) -> Sample:
        """Censor what would be observed."""
        return cls(covariates, uncensored.until(censoring_time), uncensored, survival, incidence)

    def survival(self, times: ArrayLike) -> SurvivalCurves:
        """Return the true survival of these individuals at `times`, as curves that fall only there."""
        grid = as_times(times)
        return SurvivalCurves(self.true_survival(grid), grid, interpolation="step")

    def incidence(self, times: ArrayLike) -> IncidenceCurves:
        """Return the true cumulative incidence of each cause at `times`, as curves that rise only there."""
        if self.true_incidence is None:
            raise InputError("this sample has events of one kind: survival(times) has its truth")
        grid = as_times(times)
        return IncidenceCurves(self.true_incidence(grid), grid, causes=self.outcomes.causes, interpolation="step")

    def censoring(self, times: ArrayLike) -> SurvivalCurves:
        r"""Return the true :math:`G_i(t) = 1\{C^*_i > t\}` at `times`."""
        grid, end = as_times(times), np.asarray(self.outcomes.censoring_time)
        return SurvivalCurves((end[:, None] > grid).astype(np.float64), grid, interpolation="step")


@dataclass(frozen=True)
class ConstantHazardStudy:
    r"""The study of section 4.1: the same discrete hazard for all individuals, censoring times uniform over the window.

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
        time = np.where(happened, step * self.end / self.n_times, self.end)
        censoring_time = self.end * (1.0 - rng.random(n))
        uncensored = Outcomes(time, happened, np.full(n, self.end))
        survival = partial(self._survival_of_all, n)
        return Sample.of(self.covariates_of(censoring_time), uncensored, censoring_time, survival)

    @property
    def grid(self) -> Array:
        """The times at which events happen."""
        return np.arange(1, self.n_times + 1) * self.end / self.n_times

    def covariates_of(self, censoring_time: ArrayLike) -> pd.DataFrame:
        """Return the covariate of individuals with these censoring times: standardised, increasing with them."""
        import pandas as pd

        centred = (np.asarray(censoring_time) - self.end / 2) / (self.end / np.sqrt(12.0))
        return pd.DataFrame({"tells_censoring_time": centred})

    def survival(self, times: Array) -> Array:
        """Return the survival that all share."""
        n_passed = np.searchsorted(self.grid, times, side="right")
        return np.asarray((1.0 - self.hazard) ** n_passed)

    def _survival_of_all(self, n: int, times: Array) -> Array:
        check_rule("times", f"within the study, which ends at {self.end:g}", times > self.end, times)
        return np.tile(self.survival(times), (n, 1))


class LogitHazard(Protocol):
    """How drivers make a hazard: k named numbers of each individual, uniform on [-1, 1]."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """What each of the numbers drives."""

    def __call__(self, u: Array, times: Array) -> Array:
        """Return the logits, (n, len(times)), from drivers of shape (n, k)."""


@dataclass(frozen=True)
class SineConstantAccelerating:
    r"""A mixture of a sine, a constant and an accelerating logit-hazard (eq:g_all).

    .. math::

        g(t) = \alpha_1 [\gamma_1 \sin(\gamma_2 (t + \gamma_3)) + \gamma_4] + \alpha_2 \gamma_5
            + \alpha_3 [\gamma_6 t - 10], \qquad \alpha_i \propto e^{\gamma_{i + 6}}
    """

    drivers: ClassVar[tuple[str, ...]] = (
        *("amplitude", "frequency", "phase", "level", "constant", "slope"),
        *("mix_sine", "mix_constant", "mix_accelerating"),
    )

    def gammas(self, u: Array) -> Array:
        """Return the nine gammas, (n, 9), from as many drivers."""
        amplitude = 5.0 * u[:, 0]
        fifth = np.minimum((u[:, 1] + 1.0) / 2.0 * N_FREQUENCIES, N_FREQUENCIES - 1).astype(np.int64)
        mixing = 5.0 * (u[:, 6:9] + np.array([0.6, 0.0, 0.0]))  # the sine part is preferred
        frequency = 2.0 * np.pi / 100.0 * 2.0 ** (fifth - 1)
        level = 2.0 * u[:, 3] - 6.0 - np.abs(amplitude / 2.0)
        slope = 1.0 / (1.0 + np.exp(5.0 - 3.0 * (u[:, 5] + 1.0)))
        return np.column_stack([amplitude, frequency, 15.0 * u[:, 2], level, _constant(u[:, 4]), slope, mixing])

    def __call__(self, u: Array, times: Array) -> Array:
        """Return the logits at `times`."""
        g = self.gammas(u)[:, :, None]
        weights = np.exp(g[:, 6:9] - g[:, 6:9].max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        sine = g[:, 0] * np.sin(g[:, 1] * (times + g[:, 2])) + g[:, 3]
        accelerating = g[:, 5] * times - 10.0
        return np.asarray(weights[:, 0] * sine + weights[:, 1] * g[:, 4] + weights[:, 2] * accelerating)


@dataclass(frozen=True)
class Constant:
    r"""The same logit-hazard at all times, -8 to `highest`; by default :math:`\gamma_5` of the mixture (eq:g_con)."""

    highest: float = -3.0

    drivers: ClassVar[tuple[str, ...]] = ("constant",)

    def __call__(self, u: Array, times: Array) -> Array:
        """Return the logits at `times`."""
        return np.broadcast_to(_constant(u, self.highest), (len(u), times.size))


def _constant(u: Array, highest: float = -3.0) -> Array:
    return (highest + 8.0) * (u + 1.0) / 2.0 - 8.0


@dataclass(frozen=True, eq=False)
class Carrier:
    r"""Covariates of which a fixed combination is a driver: :math:`x \cdot \beta_k = u_k`.

    Each driver is carried by as many covariates as it has coefficients, (drivers, covariates per driver). The first is
    :math:`v_1 = u_k`; with further :math:`v_j` uniform on [-1, 1], :math:`x_j = (v_j - v_{j+1}) / \beta_j`, and the
    last :math:`x_p = v_p / \beta_p`.
    """

    coefficients: Array

    def covariates(self, u: Array, rng: np.random.Generator) -> Array:
        """Return covariates (n, drivers * covariates per driver) that carry these drivers."""
        n_drivers, p = self.coefficients.shape
        v = np.empty((len(u), n_drivers, p + 1))
        v[:, :, 0] = u
        v[:, :, 1:p] = rng.uniform(-1.0, 1.0, (len(u), n_drivers, p - 1))
        v[:, :, p] = 0.0
        return np.asarray(((v[:, :, :-1] - v[:, :, 1:]) / self.coefficients).reshape(len(u), -1))


def by_block(hazard: LogitHazard, u: Array, grid: Array, use: Callable[[slice, Array], NDArray[Any]]) -> NDArray[Any]:
    r"""Return what `use` makes of rows and their :math:`S(\tau_j) = \prod_{k \le j} [1 - h(\tau_k)]` on the whole grid.

    Blocks of rows are shared out among the cores; memory is that of a few of them.
    """

    def block(start: int) -> NDArray[Any]:
        rows = slice(start, min(start + ROWS_PER_BLOCK, len(u)))
        survives = 1.0 / (1.0 + np.exp(hazard(u[rows], grid)))
        return use(rows, np.cumprod(survives, axis=1, dtype=np.float64))

    return np.concatenate(each(block, range(0, len(u), ROWS_PER_BLOCK), threads=True))


def first_at_or_below(hazard: LogitHazard, u: Array, grid: Array, levels: Array) -> NDArray[np.intp]:
    """Return for every individual the position of the first grid time at which survival is at or below its level.

    That is the length of the grid where it stays above. With uniform levels these are draws of the event time.
    """
    return by_block(hazard, u, grid, lambda rows, survival: np.sum(survival > levels[rows, None], axis=1))


class Censoring(Protocol):
    """How censoring times come about."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """What the numbers drive that covariates carry; none, if covariates say nothing about censoring."""

    @property
    def n_per_driver(self) -> int:
        """How many covariates carry each of them."""

    def draw(self, u: Array, grid: Array, rng: np.random.Generator) -> Array:
        """Return the censoring times of individuals with these drivers."""


@dataclass(frozen=True)
class ThresholdCensoring:
    r"""Administrative censoring that covariates determine: :math:`C^*` is where a decreasing Q falls to `threshold`.

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

    def draw(self, u: Array, grid: Array, rng: np.random.Generator) -> Array:
        """Return the censoring times, which the drivers determine."""
        crossing = first_at_or_below(self.hazard, u, grid, np.full(len(u), self.threshold))
        return np.asarray(grid[np.minimum(crossing, grid.size - 1)])


@dataclass(frozen=True)
class IndependentCensoring:
    """Censoring times uniform over the grid, of which covariates say nothing."""

    drivers: tuple[str, ...] = ()
    n_per_driver: int = 1

    def draw(self, u: Array, grid: Array, rng: np.random.Generator) -> Array:
        """Return the censoring times."""
        return np.asarray(rng.choice(grid, len(u)))


CENSORINGS: dict[str, Censoring] = {
    "simple": ThresholdCensoring(Constant(), 5),
    "complicated": ThresholdCensoring(SineConstantAccelerating(), 2),
    "independent": IndependentCensoring(),
}


@dataclass(frozen=True, eq=False)
class SineConstantAcceleratingStudy:
    r"""The study of section 5: hazards from eq:g_all, and administrative censoring that covariates determine or not.

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
            check_choice("censoring", self.censoring, tuple(CENSORINGS))
        check_whole("n_per_driver", self.n_per_driver, 1)

    @cached_property
    def grid(self) -> Array:
        """The times at which events happen."""
        return np.arange(1, 1001) / 10.0

    @property
    def _censoring(self) -> Censoring:
        return CENSORINGS[self.censoring] if isinstance(self.censoring, str) else self.censoring

    @cached_property
    def carriers(self) -> tuple[Carrier, Carrier]:
        """How covariates carry the drivers of the event, and of the censoring."""
        rule = self._censoring
        event, censoring = (np.random.default_rng((self.seed, part)) for part in (0, 1))
        return (
            Carrier(event.standard_normal((len(self.hazard.drivers), self.n_per_driver))),
            Carrier(censoring.standard_normal((len(rule.drivers), rule.n_per_driver))),
        )

    def sample(self, n: int, seed: int) -> Sample:
        """Draw `n` individuals; the same seed gives the same individuals."""
        import pandas as pd

        check_whole("n", n, 1)
        rng = np.random.default_rng(seed)
        rule = self._censoring
        parts, names, drivers = [], [], []
        all_roles = self.hazard.drivers, rule.drivers
        for kind, carrier, roles in zip(("event", "censoring"), self.carriers, all_roles, strict=True):
            u = rng.uniform(-1.0, 1.0, (n, len(roles)))
            drivers.append(u)
            parts.append(carrier.covariates(u, rng))
            names += [f"{kind}_{role}_{j + 1}" for role in roles for j in range(carrier.coefficients.shape[1])]
        position = first_at_or_below(self.hazard, drivers[0], self.grid, rng.random(n))
        time = self.grid[np.minimum(position, self.grid.size - 1)]
        censoring_time = rule.draw(drivers[1], self.grid, rng)
        covariates = pd.DataFrame(np.concatenate(parts, axis=1), columns=names)
        uncensored = Outcomes(time, position < self.grid.size, np.full(n, self.grid[-1]))
        return Sample.of(covariates, uncensored, censoring_time, partial(self._survival, drivers[0]))

    def _survival(self, u: Array, times: Array) -> Array:
        check_rule("times", f"within the study, which ends at {self.grid[-1]:g}", times > self.grid[-1], times)
        columns = np.searchsorted(self.grid, times, side="right")

        def pick(_: slice, survival: Array) -> Array:
            return np.pad(survival, ((0, 0), (1, 0)), constant_values=1.0)[:, columns]

        return by_block(self.hazard, u, self.grid[: int(columns.max())], pick)


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

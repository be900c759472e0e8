"""Discrete-time hazards on a grid, and the covariates that carry what drives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import each

ROWS_PER_BLOCK = 1024
N_FREQUENCIES = 5


class LogitHazard(Protocol):
    """How drivers make a hazard: k numbers of each individual, uniform on [-1, 1], give its logit at every time."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """What each of the numbers drives."""

    def __call__(self, u: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logits, (n, len(times)), from drivers of shape (n, k)."""


@dataclass(frozen=True)
class SineConstantAccelerating:
    r"""A mixture of a sine, a constant and an accelerating logit-hazard (eq:g_all).

    .. math::

        g(t) = \alpha_1 [\gamma_1 \sin(\gamma_2 (t + \gamma_3)) + \gamma_4] + \alpha_2 \gamma_5
            + \alpha_3 [\gamma_6 t - 10], \qquad \alpha_i \propto e^{\gamma_{i + 6}}
    """

    drivers: ClassVar[tuple[str, ...]] = (
        "amplitude", "frequency", "phase", "level", "constant", "slope", "mix_sine", "mix_constant", "mix_accelerating",
    )  # fmt: skip

    def gammas(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nine gammas, (n, 9), from as many drivers."""
        amplitude = 5.0 * u[:, 0]
        fifth = np.minimum((u[:, 1] + 1.0) / 2.0 * N_FREQUENCIES, N_FREQUENCIES - 1).astype(np.int64)
        mixing = 5.0 * (u[:, 6:9] + np.array([0.6, 0.0, 0.0]))  # the sine part is preferred
        return np.column_stack(
            [
                amplitude,
                2.0 * np.pi / 100.0 * 2.0 ** (fifth - 1),
                15.0 * u[:, 2],
                2.0 * u[:, 3] - 6.0 - np.abs(amplitude / 2.0),
                _constant(u[:, 4]),
                1.0 / (1.0 + np.exp(5.0 - 3.0 * (u[:, 5] + 1.0))),
                mixing,
            ]
        )

    def __call__(self, u: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logits at `times`."""
        g = self.gammas(u)[:, :, None]
        weights = np.exp(g[:, 6:9] - g[:, 6:9].max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        sine = g[:, 0] * np.sin(g[:, 1] * (times + g[:, 2])) + g[:, 3]
        accelerating = g[:, 5] * times - 10.0
        return np.asarray(weights[:, 0] * sine + weights[:, 1] * g[:, 4] + weights[:, 2] * accelerating)


@dataclass(frozen=True)
class Constant:
    r"""The same logit-hazard at all times, :math:`\gamma_5` of the mixture (eq:g_con)."""

    drivers: ClassVar[tuple[str, ...]] = ("constant",)

    def __call__(self, u: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logits at `times`."""
        return np.broadcast_to(_constant(u), (len(u), times.size))


def _constant(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return 5.0 * (u + 1.0) / 2.0 - 8.0


@dataclass(frozen=True, eq=False)
class Carrier:
    r"""Covariates of which a fixed combination is a driver: :math:`x \cdot \beta_k = u_k`.

    Each driver is carried by as many covariates as it has coefficients. The first is :math:`v_1 = u_k`; with
    further :math:`v_j` uniform on [-1, 1], :math:`x_j = (v_j - v_{j+1}) / \beta_j`, and the last
    :math:`x_p = v_p / \beta_p`.

    Attributes
    ----------
    coefficients : ndarray of shape (drivers, covariates per driver)
        The betas.
    """

    coefficients: NDArray[np.float64]

    @classmethod
    def draw(cls, n_drivers: int, n_per_driver: int, rng: np.random.Generator) -> Carrier:
        """Draw standard normal coefficients."""
        return cls(rng.standard_normal((n_drivers, n_per_driver)))

    def covariates(self, u: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return covariates (n, drivers * covariates per driver) that carry these drivers."""
        n_drivers, p = self.coefficients.shape
        v = np.empty((len(u), n_drivers, p + 1))
        v[:, :, 0] = u
        v[:, :, 1:p] = rng.uniform(-1.0, 1.0, (len(u), n_drivers, p - 1))
        v[:, :, p] = 0.0
        return np.asarray(((v[:, :, :-1] - v[:, :, 1:]) / self.coefficients).reshape(len(u), -1))

    def drivers(self, covariates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the drivers that covariates carry."""
        n_drivers, p = self.coefficients.shape
        return np.asarray((covariates.reshape(-1, n_drivers, p) * self.coefficients).sum(axis=2))


def for_each_block(
    hazard: LogitHazard,
    u: NDArray[np.float64],
    grid: NDArray[np.float64],
    use: Callable[[slice, NDArray[np.float64]], None],
) -> None:
    r"""Call `use` with rows and their :math:`S(\tau_j) = \prod_{k \le j} [1 - h(\tau_k)]` on the whole grid, by blocks.

    Blocks are shared out among the cores; memory is that of a few of them.
    """

    def one(start: int) -> None:
        rows = slice(start, min(start + ROWS_PER_BLOCK, len(u)))
        survives = 1.0 / (1.0 + np.exp(hazard(u[rows], grid)))
        use(rows, np.cumprod(survives, axis=1, dtype=np.float64))

    each(one, range(0, len(u), ROWS_PER_BLOCK), threads=True)


def first_at_or_below(
    hazard: LogitHazard, u: NDArray[np.float64], grid: NDArray[np.float64], levels: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return for every individual the position of the first grid time at which survival is at or below its level.

    That is the length of the grid where it stays above. With uniform levels these are draws of the event time.
    """
    positions = np.empty(len(u), dtype=np.intp)

    def count(rows: slice, survival: NDArray[np.float64]) -> None:
        positions[rows] = np.count_nonzero(survival > levels[rows, None], axis=1)

    for_each_block(hazard, u, grid, count)
    return positions

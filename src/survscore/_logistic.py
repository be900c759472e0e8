"""Weighted logistic regression, and the splines it is made flexible with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Less information about a coefficient than this share of one individual: it has run away to infinity.
LEAST_INFORMATION = 1e-4
MOST_STEPS = 100
MOST_HALVINGS = 60
SMALL_DECREMENT = 1e-18  # of the mean log-likelihood: the step after it is exact to rounding
NEAR = 1e-10
RANK = 1e-9  # relative size of what a column adds to those before it


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients, and each row's influence on them while weights are held fixed: (coefficients, rows)."""

    coefficients: NDArray[np.float64]
    influence: NDArray[np.float64]


def expit(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities from log odds, exact also for very small ones."""
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        return np.asarray(np.exp(-np.logaddexp(0.0, -eta)))


def logistic_fit(
    design: NDArray[np.float64],
    event: NDArray[np.float64],
    weight: NDArray[np.float64],
    offset: NDArray[np.float64] | float = 0.0,
) -> LogisticFit | None:
    r"""Maximise the weighted likelihood by Newton's method with halved steps; None where it has no maximum.

    The influence of row i is :math:`H^{-1} w_i z_i (y_i - \mu_i)`, with :math:`H = \sum w z z' \mu (1 - \mu)`.

    Parameters
    ----------
    design : ndarray of shape (rows, coefficients)
    event, weight : ndarray of shape (rows,)
        Zero or one, and weights larger than zero, one on average.
    offset : ndarray or float
        Part of the log odds that is given.
    """
    to_design = _orthonormal(design, weight)
    if to_design is None:
        return None
    columns, share = design @ to_design, weight / event.size
    position = _maximum(columns, event, share, offset)
    if position is None:
        return None
    eta = offset + columns @ position
    information = _information(columns, share, eta)
    if not event.size * np.linalg.eigvalsh(information)[0] > LEAST_INFORMATION:
        return None
    influence = np.linalg.solve(information, (columns * (share * (event - expit(eta)))[:, None]).T)
    return LogisticFit(to_design @ position, to_design @ influence)


def _orthonormal(design: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return what makes the columns orthonormal under the weights; None where one adds nothing to the others.

    So no unit of measurement, and no large weight, spoils Newton's steps.
    """
    n = weight.size
    lengths = np.sqrt(np.mean(design**2, axis=0))
    if n < design.shape[1] or not (lengths > 0).all():
        return None
    triangle = np.linalg.qr(np.sqrt(weight / n)[:, None] * (design / lengths), mode="r")
    diagonal = np.abs(np.diag(triangle))
    if not diagonal.min() > RANK * diagonal.max():
        return None
    return np.asarray(np.linalg.inv(triangle) / lengths[:, None])


def _maximum(
    columns: NDArray[np.float64],
    event: NDArray[np.float64],
    share: NDArray[np.float64],
    offset: NDArray[np.float64] | float,
) -> NDArray[np.float64] | None:
    """Return where the likelihood is largest, or so far out that it hardly grows any more; None if there is no way."""

    def likelihood(eta: NDArray[np.float64]) -> float:
        return float(share @ (event * eta - np.logaddexp(0.0, eta)))

    position = np.zeros(columns.shape[1])
    for _ in range(MOST_STEPS):
        eta = np.asarray(offset + columns @ position)
        gradient = columns.T @ (share * (event - expit(eta)))
        try:
            step = np.linalg.solve(_information(columns, share, eta), gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = float(gradient @ step)
        if not np.isfinite(decrement):
            return None
        if decrement > NEAR:  # the nearest steps change the likelihood by less than rounding
            before = likelihood(eta)
            for _ in range(MOST_HALVINGS):
                if likelihood(offset + columns @ (position + step)) >= before:
                    break
                step = step / 2
        position = position + step
        if decrement <= SMALL_DECREMENT:
            return position
    return None


def _information(
    columns: NDArray[np.float64], share: NDArray[np.float64], eta: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray((columns * (share * expit(eta) * expit(-eta))[:, None]).T @ columns)


def restricted_cubic_spline(x: NDArray[np.float64], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1, x, and what bends between the knots and is straight outside: (values, columns); Harrell's basis.

    Fewer than three knots give a straight line, none at all a constant.
    """
    if knots.size == 0:
        return np.ones((x.size, 1))
    columns = [np.ones_like(x), x]
    if knots.size >= 3:
        first, before_last, last = knots[0], knots[-2], knots[-1]
        for knot in knots[:-2]:
            bend = (
                np.maximum(x - knot, 0) ** 3
                - np.maximum(x - before_last, 0) ** 3 * (last - knot) / (last - before_last)
                + np.maximum(x - last, 0) ** 3 * (before_last - knot) / (last - before_last)
            )
            columns.append(bend / (last - first) ** 2)
    return np.column_stack(columns)

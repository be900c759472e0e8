"""Weighted logistic regression on a restricted cubic spline, by Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cross_products

#: Less information about a coefficient than this share of one individual: it has run away to infinity.
LEAST_INFORMATION = 1e-4
MOST_STEPS = 100
MOST_HALVINGS = 60
SMALL_DECREMENT = 1e-14  # of the mean log-likelihood: the step after it leaves its square, which is rounding
NO_DECREMENT = 1e-28  # there is no step to be made
NEAR = 1e-10
RANK = 1e-9  # relative size of what a column adds to those before it

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogisticFit:
    r"""A fitted regression, and each row's influence on it while weights are held fixed.

    Columns q of shape (coefficients, rows) were fitted: combinations of those of `restricted_cubic_spline` that are
    orthonormal under the weights. `to_design` turns their coefficients into those of the spline's own columns, which
    `coefficients` are.
    """

    coefficients: Vector
    columns: Vector
    to_design: Vector
    inverse_information: Vector  # of q: (sum w q q' mu (1 - mu))^-1, with weights that add up to one
    probability: Vector  # mu, to the last bit the same where x is
    residual: Vector  # w (y - mu)

    @property
    def influences(self) -> Vector:
        """The influences on the coefficients of the spline's own columns, (coefficients, rows)."""
        return self.influence_on(self.to_design)

    def influence_on(self, combinations: Vector) -> Vector:
        """Return the influences on one or several combinations of the coefficients of `columns`."""
        influence = (combinations @ self.inverse_information) @ self.columns
        influence *= self.residual
        return np.asarray(influence)


def expit(eta: Vector) -> Vector:
    """Return probabilities from log odds, exact also for very small ones."""
    small = np.exp(-np.abs(eta))
    return np.asarray(np.where(eta >= 0, 1.0, small) / (1.0 + small))


def combined(coefficients: Vector, columns: Vector) -> Vector:
    """Return a combination of columns, to the last bit the same where these are: BLAS does not promise that."""
    total = coefficients[0] * columns[0]
    for coefficient, column in zip(coefficients[1:], columns[1:], strict=True):
        total += coefficient * column
    return np.asarray(total)


def logistic_fit(
    x: Vector, knots: Vector, event: Vector, weight: Vector, *, shifted: bool = False
) -> LogisticFit | None:
    r"""Maximise the weighted likelihood by Newton's method with halved steps; None where it has no maximum.

    The influence of row i is :math:`H^{-1} w_i z_i (y_i - \mu_i)`, with :math:`H = \sum w z z' \mu (1 - \mu)` and z the
    columns of a restricted cubic spline.

    The status is regressed on a spline of x with these knots; or with x as offset, if `shifted`: part of the log odds
    with coefficient one. `event` is zero or one, and weights are larger than zero, one on average.
    """
    design, share = restricted_cubic_spline(x, knots), weight / event.size
    to_design = _orthonormal(design, share)
    if to_design is None:
        return None
    # a triangle: column k is made of the first k columns of the design
    columns = np.array([combined(row[: k + 1], design[: k + 1]) for k, row in enumerate(to_design.T)])

    def log_odds(position: Vector) -> Vector:
        return combined(position, columns) + x if shifted else combined(position, columns)

    def derivatives(position: Vector) -> tuple[Vector, Vector]:
        eta = log_odds(position)
        small = np.exp(-np.abs(eta))
        inverse = 1.0 / (1.0 + small)
        residual = share * (event - np.where(eta >= 0, inverse, small * inverse))
        variance = share * (small * inverse * inverse)
        return cross_products(columns, residual[None])[:, 0], cross_products(columns * variance, columns)

    maximum = _maximum(derivatives, len(columns))
    if maximum is None or not event.size * np.linalg.eigvalsh(maximum[1])[0] > LEAST_INFORMATION:
        return None
    position, information = maximum
    inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
    probability = expit(log_odds(position))
    return LogisticFit(to_design @ position, columns, to_design, inverse, probability, share * (event - probability))


def _orthonormal(design: Vector, share: Vector) -> Vector | None:
    """Return combinations of columns that are orthonormal under the weights; None where one adds nothing to the others.

    With them neither the unit of measurement nor a large weight spoils Newton's steps.
    """
    p, n = design.shape
    lengths = np.sqrt(np.einsum("ki,ki->k", design, design) / n)
    if n < p or not (lengths > 0).all():
        return None
    triangle = np.asarray(np.linalg.qr((np.sqrt(share) * design / lengths[:, None]).T, mode="r"))
    diagonal = np.abs(triangle.diagonal())
    if not diagonal.min() > RANK * diagonal.max():
        return None
    return np.asarray(np.linalg.inv(triangle) / lengths[:, None])


def _maximum(
    derivatives: Callable[[Vector], tuple[Vector, Vector]], n_coefficients: int
) -> tuple[Vector, Vector] | None:
    """Return where the likelihood is largest, or so far out that it hardly grows any more; None if there is no way.

    Also the information there. `derivatives` are the gradient and the information at a position.
    """
    position = np.zeros(n_coefficients)
    gradient, information = derivatives(position)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = float(gradient @ step)
        if not np.isfinite(decrement):
            return None
        if decrement <= NO_DECREMENT:
            return position, information
        there = derivatives(position + step)
        if decrement > NEAR:  # the nearest steps change the slope by less than rounding
            for _ in range(MOST_HALVINGS):
                # the likelihood is concave: where it falls more gently than it rose, the step was hardly too long
                if there[0] @ step >= -0.5 * (gradient @ step):
                    break
                step = step / 2
                there = derivatives(position + step)
        position, (gradient, information) = position + step, there
        if decrement <= SMALL_DECREMENT:
            return position, information
    return None


def restricted_cubic_spline(x: Vector, knots: Vector) -> Vector:
    """Return 1, x, and what bends between the knots and is straight outside: (columns, values); Harrell's basis.

    Fewer than three knots give a straight line, none at all a constant.
    """
    if knots.size == 0:
        return np.ones((1, x.size))
    columns = [np.ones(x.size), x]
    if knots.size > 2:
        first, before_last, last = knots[0], knots[-2], knots[-1]
        before_end, at_end = _cube_beyond(x, before_last), _cube_beyond(x, last)
        for knot in knots[:-2]:
            bend = _cube_beyond(x, knot)
            bend -= before_end * ((last - knot) / (last - before_last))
            bend += at_end * ((before_last - knot) / (last - before_last))
            columns.append(bend / (last - first) ** 2)
    return np.array(columns)


def _cube_beyond(x: Vector, knot: float) -> Vector:
    beyond = np.maximum(x - knot, 0.0)
    return np.asarray(beyond * beyond * beyond)  # many times as fast as a power

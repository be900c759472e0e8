"""Weighted logistic regression, and the splines it is made flexible with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._products import combine, cross_products, dot, weighted_products

#: Less information about a coefficient than this share of one individual: it has run away to infinity.
LEAST_INFORMATION = 1e-4
MOST_STEPS = 100
MOST_HALVINGS = 60
SMALL_DECREMENT = 1e-14  # of the mean log-likelihood: the step after it leaves its square, which is rounding
NO_DECREMENT = 1e-28  # there is no step to be made
NEAR = 1e-10
RANK = 1e-9  # relative size of what a column adds to those before it
CLEAR_RANK = 1e-4  # so far from it that the sums of products, which square it, tell it as well as the columns do
MANY_ROWS = 1 << 14  # from here on some of them tell where to start
START_ROWS = 1 << 12
NEAR_ENOUGH_TO_START = 1e-6  # of the mean log-likelihood
LOOKS = 16  # at the likelihood, at most, as a rule

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogisticFit:
    r"""A fitted regression, and each row's influence on it while weights are held fixed.

    Columns are kept as combinations that are orthonormal under the weights, the basis; coefficients of the design are
    `to_design` times those of the basis.

    Attributes
    ----------
    coefficients : ndarray of shape (coefficients,)
        Of the design's own columns.
    basis : ndarray of shape (coefficients, rows)
    to_design, inverse_information : ndarray of shape (coefficients, coefficients)
        The latter is that of the basis: :math:`(\sum w q q' \mu (1 - \mu))^{-1}`, with mean weights.
    residual : ndarray of shape (rows,)
        :math:`w (y - \mu)`, with probabilities :math:`\mu`.
    """

    coefficients: Vector
    basis: Vector
    to_design: Vector
    inverse_information: Vector
    residual: Vector

    @property
    def influence(self) -> Vector:
        """The influences on the coefficients of the design, (coefficients, rows)."""
        return self.influence_on(self.to_design)

    def influence_on(self, combinations: Vector) -> Vector:
        """Return the influences on one or several combinations of the basis' coefficients, (combinations, rows)."""
        found = combine(combinations @ self.inverse_information, self.basis)
        found *= self.residual
        return found


def expit(eta: Vector) -> Vector:
    """Return probabilities from log odds, exact also for very small ones."""
    return np.asarray(np.exp(np.minimum(eta, 0.0)) / (1.0 + np.exp(-np.abs(eta))))


def logistic_fit(design: Vector, event: Vector, weight: Vector, offset: Vector | float = 0.0) -> LogisticFit | None:
    r"""Maximise the weighted likelihood by Newton's method with halved steps; None where it has no maximum.

    The influence of row i is :math:`H^{-1} w_i z_i (y_i - \mu_i)`, with :math:`H = \sum w z z' \mu (1 - \mu)`.

    Parameters
    ----------
    design : ndarray of shape (rows, coefficients)
        Fastest where each column lies in one piece.
    event, weight : ndarray of shape (rows,)
        Zero or one, and weights larger than zero, one on average.
    offset : ndarray or float
        Part of the log odds that is given.
    """
    columns = np.ascontiguousarray(design.T)
    to_design = _orthonormal(columns, weight)
    if to_design is None:
        return None
    basis, offsets = combine(to_design.T, columns), np.broadcast_to(offset, event.shape).copy()
    likelihood = _Likelihood(basis, event, weight / event.size, offsets, config.compiles(LOOKS * basis.size))
    found = _maximum(likelihood, _start(likelihood))
    if found is None or not event.size * np.linalg.eigvalsh(found.information)[0] > LEAST_INFORMATION:
        return None
    inverse = np.asarray(np.linalg.inv(found.information), dtype=np.float64)
    residual = likelihood.share * (event - expit(likelihood.log_odds(found.position)))
    return LogisticFit(to_design @ found.position, likelihood.basis, to_design, inverse, residual)


def _orthonormal(columns: Vector, weight: Vector) -> Vector | None:
    """Return what makes the columns orthonormal under the weights; None where one adds nothing to the others.

    So no unit of measurement, and no large weight, spoils Newton's steps.
    """
    n = weight.size
    lengths = np.sqrt(np.array([dot(one, one) for one in columns]) / n)
    if n < len(columns) or not (lengths > 0).all():
        return None
    triangle = _clear_triangle(columns, weight / n, lengths)
    if triangle is None:
        scaled = (np.sqrt(weight / n) * (columns / lengths[:, None])).T
        triangle = np.asarray(np.linalg.qr(scaled, mode="r"), dtype=np.float64)
    diagonal = np.abs(triangle.diagonal())
    if not diagonal.min() > RANK * diagonal.max():
        return None
    return np.asarray(np.linalg.inv(triangle) / lengths[:, None])


def _clear_triangle(columns: Vector, share: Vector, lengths: Vector) -> Vector | None:
    """Return the triangle of a QR decomposition by way of sums of products, many times as fast; None where unclear."""
    products = weighted_products(columns, share)
    try:
        triangle = np.asarray(np.linalg.cholesky(products / np.outer(lengths, lengths)).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    diagonal = triangle.diagonal()
    return triangle if diagonal.min() > CLEAR_RANK * diagonal.max() else None


class _Look(NamedTuple):
    """The derivatives of the mean log-likelihood at a position."""

    position: Vector
    gradient: Vector
    information: Vector


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """What is maximised."""

    basis: Vector
    event: Vector
    share: Vector
    offset: Vector
    compiled: bool

    def look(self, position: Vector) -> _Look:
        if self.compiled:
            from survscore import _logistic_kernels

            return _Look(position, *_logistic_kernels.look(self.basis, self.event, self.share, self.offset, position))
        eta = self.log_odds(position)
        small = np.exp(-np.abs(eta))
        per_unit = 1.0 / (1.0 + small)
        residual = self.share * (self.event - np.where(eta >= 0, 1.0, small) * per_unit)
        gradient = cross_products(self.basis, residual[None])[:, 0]
        information = weighted_products(self.basis, self.share * small * per_unit * per_unit)
        return _Look(position, gradient, information)

    def log_odds(self, position: Vector) -> Vector:
        return combine(position, self.basis) + self.offset

    def some(self, step: int) -> _Likelihood:
        """Take every so many rows only."""
        parts = (self.basis, self.event, self.share, self.offset)
        basis, event, share, offset = (np.ascontiguousarray(part[..., ::step]) for part in parts)
        return _Likelihood(basis, event, share / share.sum(), offset, self.compiled)


def _start(likelihood: _Likelihood) -> Vector:
    """Return where to start: where the likelihood of some of very many rows is largest, or with nothing known."""
    nothing = np.zeros(len(likelihood.basis))
    if likelihood.event.size < MANY_ROWS:
        return nothing
    found = _maximum(likelihood.some(likelihood.event.size // START_ROWS), nothing, NEAR_ENOUGH_TO_START)
    return nothing if found is None else found.position


def _maximum(likelihood: _Likelihood, start: Vector, small: float = SMALL_DECREMENT) -> _Look | None:
    """Return where the likelihood is largest, or so far out that it hardly grows any more; None if there is no way."""
    here = likelihood.look(start)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(here.information, here.gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = float(here.gradient @ step)
        if not np.isfinite(decrement):
            return None
        if decrement <= min(small, NO_DECREMENT):
            return here
        there = likelihood.look(here.position + step)
        if decrement > NEAR:  # the nearest steps change the slope by less than rounding
            for _ in range(MOST_HALVINGS):
                # the likelihood is concave: where it falls more gently than it rose, the step was hardly too long
                if there.gradient @ step >= -0.5 * (here.gradient @ step):
                    break
                step = step / 2
                there = likelihood.look(here.position + step)
        if decrement <= small:
            return there
        here = there
    return None


def restricted_cubic_spline(x: Vector, knots: Vector) -> Vector:
    """Return 1, x, and what bends between the knots and is straight outside: (values, columns); Harrell's basis.

    Fewer than three knots give a straight line, none at all a constant.
    """
    if knots.size == 0:
        return np.ones((x.size, 1))
    columns = np.empty((max(knots.size, 2), x.size))  # each in one piece
    columns[0], columns[1] = 1.0, x
    if knots.size >= 3:
        first, before_last, last = knots[0], knots[-2], knots[-1]
        before_end, at_end = (_cube_beyond(x, knot) for knot in (before_last, last))
        for k, knot in enumerate(knots[:-2], start=2):
            columns[k] = _cube_beyond(x, knot)
            columns[k] -= before_end * ((last - knot) / (last - before_last))
            columns[k] += at_end * ((before_last - knot) / (last - before_last))
            columns[k] /= (last - first) ** 2
    return columns.T


def _cube_beyond(x: Vector, knot: float) -> Vector:
    beyond = np.maximum(x - knot, 0.0)
    return np.asarray(beyond * beyond * beyond)

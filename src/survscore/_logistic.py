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
CLEAR_RANK = 1e-4  # so far from it that the sums of products, which square it, tell it as well as the columns do
MANY_ROWS = 1 << 14  # from here on some of them tell where to start
START_ROWS = 1 << 12
NEAR_ENOUGH_TO_START = 1e-6  # of the mean log-likelihood
ROWS_PER_BLOCK = 1 << 13  # that stay in the processor's cache

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
    fitted, residual : ndarray of shape (rows,)
        Probabilities :math:`\mu`, and :math:`w (y - \mu)`.
    """

    coefficients: Vector
    basis: Vector
    to_design: Vector
    inverse_information: Vector
    fitted: Vector
    residual: Vector

    @property
    def influence(self) -> Vector:
        """The influences on the coefficients of the design, (coefficients, rows)."""
        return self.influence_on(self.to_design)

    def influence_on(self, combinations: Vector) -> Vector:
        """Return the influences on one or several combinations of the basis' coefficients, (combinations, rows)."""
        return np.asarray((combinations @ self.inverse_information) @ self.basis * self.residual)


def expit(eta: Vector) -> Vector:
    """Return probabilities from log odds, exact also for very small ones."""
    small = np.exp(-np.abs(eta))
    return np.asarray(np.where(eta >= 0, 1.0, small) / (1.0 + small))


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
    likelihood = _Likelihood(to_design.T @ columns, event, weight / event.size, np.broadcast_to(offset, event.shape))
    position = _maximum(likelihood, _start(likelihood))
    if position is None:
        return None
    information = likelihood.look(position).information
    if not event.size * np.linalg.eigvalsh(information)[0] > LEAST_INFORMATION:
        return None
    fitted = expit(likelihood.log_odds(position))
    inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return LogisticFit(
        to_design @ position, likelihood.basis, to_design, inverse, fitted,
        likelihood.share * (event - fitted),
    )  # fmt: skip


def _orthonormal(columns: Vector, weight: Vector) -> Vector | None:
    """Return what makes the columns orthonormal under the weights; None where one adds nothing to the others.

    So no unit of measurement, and no large weight, spoils Newton's steps.
    """
    n = weight.size
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns) / n)
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
    products = np.zeros((len(columns),) * 2)
    for rows in _blocks(share.size):
        products += (columns[:, rows] * share[rows]) @ columns[:, rows].T
    try:
        triangle = np.asarray(np.linalg.cholesky(products / np.outer(lengths, lengths)).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    diagonal = triangle.diagonal()
    return triangle if diagonal.min() > CLEAR_RANK * diagonal.max() else None


def _blocks(n_rows: int) -> list[slice]:
    return [slice(first, first + ROWS_PER_BLOCK) for first in range(0, n_rows, ROWS_PER_BLOCK)]


@dataclass(frozen=True, eq=False)
class _Look:
    """The mean log-likelihood at a position, and its derivatives."""

    value: float
    gradient: Vector
    information: Vector


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """What is maximised."""

    basis: Vector
    event: Vector
    share: Vector
    offset: Vector

    def log_odds(self, position: Vector) -> Vector:
        return np.asarray(self.offset + position @ self.basis)

    def look(self, position: Vector) -> _Look:
        value, gradient = 0.0, np.zeros(position.size)
        information = np.zeros((position.size, position.size))
        for rows in _blocks(self.share.size):
            basis, event, share = self.basis[:, rows], self.event[rows], self.share[rows]
            eta = self.offset[rows] + position @ basis
            small = np.exp(-np.abs(eta))
            more = 1.0 + small
            value += float(share @ (event * eta - np.maximum(eta, 0.0) - np.log1p(small)))
            gradient += basis @ (share * (event - np.where(eta >= 0, 1.0, small) / more))
            information += (basis * (share * small / (more * more))) @ basis.T
        return _Look(value, gradient, information)

    def some(self, step: int) -> _Likelihood:
        """Take every so many rows only."""
        share = self.share[::step]
        return _Likelihood(
            np.ascontiguousarray(self.basis[:, ::step]), self.event[::step], share / share.sum(), self.offset[::step]
        )


def _start(likelihood: _Likelihood) -> Vector:
    """Return where to start: where the likelihood of some of very many rows is largest, or with nothing known."""
    nothing = np.zeros(len(likelihood.basis))
    if likelihood.event.size < MANY_ROWS:
        return nothing
    found = _maximum(likelihood.some(likelihood.event.size // START_ROWS), nothing, NEAR_ENOUGH_TO_START)
    return nothing if found is None else found


def _maximum(likelihood: _Likelihood, start: Vector, small: float = SMALL_DECREMENT) -> Vector | None:
    """Return where the likelihood is largest, or so far out that it hardly grows any more; None if there is no way."""
    position, here = start, likelihood.look(start)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(here.information, here.gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = float(here.gradient @ step)
        if not np.isfinite(decrement):
            return None
        if decrement <= small:
            return np.asarray(position + step)
        there = likelihood.look(position + step)
        if decrement > NEAR:  # the nearest steps change the likelihood by less than rounding
            for _ in range(MOST_HALVINGS):
                if there.value >= here.value:
                    break
                step = step / 2
                there = likelihood.look(position + step)
        position, here = position + step, there
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

"""Weighted logistic regression on a spline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._config import config
from survscore._utils.caching import cached_property
from survscore._utils.influences import Influences
from survscore._utils.products import combine, cross_products, weighted_products

#: Less information about a coefficient than this share of one individual: it has run away to infinity.
LEAST_INFORMATION = 1e-4
MOST_STEPS = 100
MOST_HALVINGS = 60
SMALL_DECREMENT = 1e-14  # of the mean log-likelihood: the step after it leaves its square, which is rounding
NO_DECREMENT = 1e-28  # there is no step to be made
NEAR = 1e-10
RANK = 1e-9  # relative size of what a column adds to those before it
CLEAR_RANK = 1e-4  # so far from it that the sums of products, which square it, tell it as well as the columns do
MANY_ROWS = 1 << 14  # from here on some of them tell where to start,
ONE_OF_ROWS = 16  # one in so many
NEAR_ENOUGH_TO_START = 1e-6  # of the mean log-likelihood
LOOKS = 16  # at the likelihood, at most, as a rule

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a spline at everybody's value, in combinations that are orthonormal under some weights.

    Of many rows they are made as they are needed, and never all in memory.

    Attributes
    ----------
    x : ndarray of shape (rows,)
        The values.
    knots : ndarray
        As for `restricted_cubic_spline`.
    to_design : ndarray of shape (coefficients, coefficients)
        The combinations, a triangle: times coefficients of these, it gives those of the spline's own columns.
    compiled : bool
        Whether rows are many.
    """

    x: Vector
    knots: Vector
    to_design: Vector
    compiled: bool

    @cached_property
    def _kept(self) -> Vector:
        columns = restricted_cubic_spline(self.x, self.knots).T
        return np.array([_added(row[: k + 1], columns) for k, row in enumerate(self.to_design.T)])

    def products(self, weight: Vector) -> tuple[Vector, Vector]:
        """Return the weighted sums of their products with each other, and the sums of their squares."""
        if self.compiled:
            from survscore.inference import logistic_kernels as _logistic_kernels

            products, squares = _logistic_kernels.products(self.x, self.knots, self.to_design, weight)
            return products, squares
        return weighted_products(self._kept, weight), np.einsum("ki,ki->k", self._kept, self._kept)

    def sums(self, values: Vector) -> Vector:
        """Return the sums of their products with values of everybody."""
        if self.compiled:
            from survscore.inference import logistic_kernels as _logistic_kernels

            found: Vector = _logistic_kernels.sums(self.x, self.knots, self.to_design, values)
            return found
        return cross_products(self._kept, values[None])[:, 0]

    def combined(self, coefficients: Vector, factor: Vector) -> Vector:
        """Return combinations of them times a factor for each row: (c, p) and (n,) give (c, n)."""
        if self.compiled:
            from survscore.inference import logistic_kernels as _logistic_kernels

            found = np.empty((len(coefficients), self.x.size))
            given = np.ascontiguousarray(coefficients)
            _logistic_kernels.combinations(self.x, self.knots, self.to_design, given, factor, found)
            return found
        found = combine(coefficients, self._kept)
        found *= factor
        return found

    def of_rows(self, rows: slice) -> Columns:
        """Take some of the rows."""
        return replace(self, x=np.ascontiguousarray(self.x[rows]))

    def log_odds(self, position: Vector) -> Vector:
        """Return what they make of log odds."""
        return _added(position, self._kept)


@dataclass(frozen=True, eq=False)
class LogisticFit:
    r"""A fitted regression, and each row's influence on it while weights are held fixed.

    Attributes
    ----------
    coefficients : ndarray of shape (coefficients,)
        Of the spline's own columns.
    columns : Columns
        What was fitted: combinations of these.
    inverse_information : ndarray of shape (coefficients, coefficients)
        That of these combinations q: :math:`(\sum w q q' \mu (1 - \mu))^{-1}`, with mean weights.
    probability, residual : ndarray of shape (rows,)
        :math:`\mu`, to the last bit the same where x is, and :math:`w (y - \mu)`.
    """

    coefficients: Vector
    columns: Columns
    inverse_information: Vector
    probability: Vector
    residual: Vector

    @property
    def influences(self) -> Influences:
        """The influences on the coefficients of the spline's own columns."""
        return self.influences_on(self.columns.to_design)

    def influences_on(self, combinations: Vector) -> Influences:
        """Return the influences on several combinations of the coefficients of `columns`."""
        scores, residual = combinations @ self.inverse_information, self.residual
        return Influences(
            len(combinations),
            residual.size,
            lambda rows: self.columns.of_rows(rows).combined(scores, residual[rows]),
        )

    def influence_on(self, combination: Vector) -> Vector:
        """Return the influences on one combination of the coefficients of `columns`, (rows,)."""
        found: Vector = self.columns.combined((combination @ self.inverse_information)[None], self.residual)[0]
        return found


def _added(coefficients: Vector, columns: Vector) -> Vector:
    """Return a combination of columns, to the last bit the same where these are: BLAS does not promise that."""
    total = np.zeros(columns.shape[1])
    for coefficient, column in zip(coefficients, columns, strict=False):
        total += coefficient * column
    return total


def expit(eta: Vector) -> Vector:
    """Return probabilities from log odds, exact also for very small ones."""
    return np.asarray(np.exp(np.minimum(eta, 0.0)) / (1.0 + np.exp(-np.abs(eta))))


def logistic_fit(
    x: Vector, knots: Vector, event: Vector, weight: Vector, *, shifted: bool = False
) -> LogisticFit | None:
    r"""Maximise the weighted likelihood by Newton's method with halved steps; None where it has no maximum.

    The influence of row i is :math:`H^{-1} w_i z_i (y_i - \mu_i)`, with :math:`H = \sum w z z' \mu (1 - \mu)` and z the
    columns of a restricted cubic spline.

    Parameters
    ----------
    x, knots : ndarray
        What the status is regressed on, and where the spline bends: nowhere, for fewer than three knots, and without
        any there is only a constant.
    event, weight : ndarray of shape (rows,)
        Zero or one, and weights larger than zero, one on average.
    shifted : bool
        Whether x is part of the log odds that is given.
    """
    n_columns = 1 if knots.size == 0 else max(knots.size, 2)
    compiled = config.compiles(LOOKS * n_columns * x.size)
    columns = _orthonormal(Columns(x, knots, np.eye(n_columns), compiled), weight)
    if columns is None:
        return None
    likelihood = _Likelihood(columns, event, weight / event.size, shifted)
    found = _maximum(likelihood, _start(likelihood))
    if found is None or not event.size * np.linalg.eigvalsh(found.information)[0] > LEAST_INFORMATION:
        return None
    inverse = np.asarray(np.linalg.inv(found.information), dtype=np.float64)
    return LogisticFit(columns.to_design @ found.position, columns, inverse, *likelihood.fitted(found.position))


def _orthonormal(columns: Columns, weight: Vector) -> Columns | None:
    """Return the columns of a spline orthonormal under the weights; None where one adds nothing to the others.

    So no unit of measurement, and no large weight, spoils Newton's steps.
    """
    n, p = weight.size, len(columns.to_design)
    products, squares = columns.products(weight / n)
    lengths = np.sqrt(squares / n)
    if n < p or not (lengths > 0).all():
        return None
    triangle = _clear_triangle(products / np.outer(lengths, lengths))
    if triangle is None:
        design = restricted_cubic_spline(columns.x, columns.knots)
        triangle = np.asarray(np.linalg.qr(np.sqrt(weight / n)[:, None] * (design / lengths), mode="r"))
    diagonal = np.abs(triangle.diagonal())
    if not diagonal.min() > RANK * diagonal.max():
        return None
    return replace(columns, to_design=np.asarray(np.linalg.inv(triangle) / lengths[:, None]))


def _clear_triangle(products: Vector) -> Vector | None:
    """Return the triangle of a QR decomposition by way of sums of products, many times as fast; None where unclear."""
    try:
        triangle = np.asarray(np.linalg.cholesky(products).T, dtype=np.float64)
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

    columns: Columns
    event: Vector
    share: Vector
    shifted: bool

    def look(self, position: Vector) -> _Look:
        if self.columns.compiled:
            from survscore.inference import logistic_kernels as _logistic_kernels

            return _Look(position, *_logistic_kernels.look(*self._for_kernels, position))
        eta = self._log_odds(position)
        small = np.exp(-np.abs(eta))
        per_unit = 1.0 / (1.0 + small)
        residual = self.share * (self.event - np.where(eta >= 0, 1.0, small) * per_unit)
        information, _ = self.columns.products(self.share * small * per_unit * per_unit)
        return _Look(position, self.columns.sums(residual), information)

    def fitted(self, position: Vector) -> tuple[Vector, Vector]:
        """Return everybody's probability, and their residuals times their shares."""
        if self.columns.compiled:
            from survscore.inference import logistic_kernels as _logistic_kernels

            probability, residual = np.empty(self.event.size), np.empty(self.event.size)
            _logistic_kernels.fitted(*self._for_kernels, position, probability, residual)
            return probability, residual
        probability = expit(self._log_odds(position))
        return probability, self.share * (self.event - probability)

    def some(self, step: int) -> _Likelihood:
        """Take every so many rows only."""
        rows = slice(None, None, step)
        event, share = (np.ascontiguousarray(part[rows]) for part in (self.event, self.share))
        return replace(self, columns=self.columns.of_rows(rows), event=event, share=share / share.sum())

    def _log_odds(self, position: Vector) -> Vector:
        found = self.columns.log_odds(position)
        return found + self.columns.x if self.shifted else found

    @property
    def _for_kernels(self) -> tuple[Vector, Vector, Vector, Vector, Vector, bool]:
        columns = self.columns
        return columns.x, columns.knots, columns.to_design, self.event, self.share, self.shifted


def _start(likelihood: _Likelihood) -> Vector:
    """Return where to start: where the likelihood of some of many rows is largest, or with nothing known."""
    nothing = np.zeros(len(likelihood.columns.to_design))
    if likelihood.event.size < MANY_ROWS:
        return nothing
    some = likelihood.some(ONE_OF_ROWS)
    found = _maximum(some, _start(some), NEAR_ENOUGH_TO_START)
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
        per_square = 1.0 / ((last - first) * (last - first))
        before_end, at_end = (_cube_beyond(x, knot) for knot in (before_last, last))
        for k, knot in enumerate(knots[:-2], start=2):
            columns[k] = _cube_beyond(x, knot)
            columns[k] -= before_end * ((last - knot) / (last - before_last))
            columns[k] += at_end * ((before_last - knot) / (last - before_last))
            columns[k] *= per_square
    return columns.T


def _cube_beyond(x: Vector, knot: float) -> Vector:
    beyond = np.maximum(x - knot, 0.0)
    return np.asarray(beyond * beyond * beyond)

r"""What is estimated inside a weight, and what its estimation adds to standard errors.

Weights contain :math:`1/G`, and :math:`G` is often a product-limit estimate. Let :math:`e_k(t)` be individual k's
influence on a metric at t while G is held fixed, and :math:`M(s; t) = \sum_{k: T_k > s} e_k(t)` the sum over those
whose weight contains the factor of G at s (for :math:`s \le t`; a capped weight does not move and is left out). G
enters any metric through the logarithms of the weights only, so one operator serves all of them:

.. math::

    \phi_i(t) = e_i(t) + \frac{1\{i \text{ left at } T_i \le t\}}{r(T_i)} M(T_i; t)
        - \sum_{s < T_i,\, s \le t} \frac{q_s}{r_s (r_s - q_s)} M(s; t)

with :math:`q_s` leaving at s out of :math:`r_s` at risk, where G is estimated from the scored individuals themselves
(`Here`); where it is estimated from others (`Elsewhere`), :math:`\phi_i = e_i` and the variance has Greenwood's term

.. math:: \sum_{s \le t} \frac{q_s}{r_s (r_s - q_s)} M(s; t)^2

more. What each s adds within the first sums to zero over those at risk then, who until then all had the same; so the
terms of different s are orthogonal, which makes sums of squares simple (see `engine.moments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils import loops as _loops
from survscore.censoring.product_limit import ProductLimit
from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class Nuisance:
    """A product-limit curve inside the weights of scored individuals.

    Attributes
    ----------
    curve : ProductLimit
        Which exits are counted, of whom, and in which order at ties.
    time : ndarray of shape (n,)
        The scored individuals' own times.
    """

    curve: ProductLimit
    time: NDArray[np.float64]

    @cached_property
    def exits_before(self) -> NDArray[np.int32]:
        """How many of the curve's times come before each individual's own: their factors are in its weight."""
        return self.curve.places_before(self.time)

    @property
    def steps(self) -> NDArray[np.float64]:
        """The weights of the sum over s: Greenwood's."""
        return self.curve.greenwood

    def reached(self, times: NDArray[np.float64]) -> NDArray[np.intp]:
        """How many of the curve's times come at or before each of `times`: M(s; t) is 0 for the others."""
        return self.curve.reached(times)


@dataclass(frozen=True, eq=False)
class Elsewhere(Nuisance):
    """Estimated from other individuals, such as the training data: an independent source of variance."""


@dataclass(frozen=True, eq=False)
class Here(Nuisance):
    """Estimated from the scored individuals: each of them moves the others' weights.

    Attributes
    ----------
    stayed : ndarray of bool
        Who did not leave in the way that the curve counts.
    """

    stayed: NDArray[np.bool_]

    #: Whether the terms of different s are orthogonal, as they are for the derivative of the curve itself.
    orthogonal: ClassVar[bool] = True

    def left(self, rows: slice) -> NDArray[np.bool_]:
        """Return which of some individuals left in the way that the curve counts."""
        return ~self.stayed[rows]

    @property
    def passed(self) -> NDArray[np.int32]:
        """How many of the curve's times each individual was still at risk after."""
        return self.exits_before

    @property
    def own_risk(self) -> NDArray[np.float64]:
        """What M is divided by in the term of one who left."""
        risk: NDArray[np.float64] = _arrays.as_float64(self.curve.at_risk)
        return risk


@dataclass(frozen=True, eq=False)
class HereMartingale(Here):
    r"""The same with Nelson-Aalen's influence in place of the product-limit curve's own, as R's riskRegression has it.

    :math:`1/Y_s` and :math:`q_s/Y_s^2` with all at risk just before s, tied events too, and for :math:`s \le T_i`.
    """

    orthogonal: ClassVar[bool] = False

    @cached_property
    def own_risk(self) -> NDArray[np.float64]:  # noqa: D102
        before = _loops.count_below(_arrays.ordered(self.time), self.curve.times, inclusive=False)
        risk: NDArray[np.float64] = len(self.time) - _arrays.as_float64(before)
        return risk

    @property
    def steps(self) -> NDArray[np.float64]:  # noqa: D102
        return self.curve.exits / self.own_risk**2

    @property
    def passed(self) -> NDArray[np.int32]:  # noqa: D102
        return _loops.count_below(self.curve.times, self.time, inclusive=True)


def here(curve: ProductLimit, outcomes: Outcomes, stayed: NDArray[np.bool_], variance: str) -> Here:
    """Return the nuisance of a curve of the scored outcomes, with the variance asked for."""
    return (HereMartingale if variance == "martingale" else Here)(curve, outcomes.time, stayed)

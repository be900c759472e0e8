r"""What is estimated inside a metric, and what its estimation adds to standard errors.

Weights contain :math:`1/G`, and :math:`G` is often a product-limit estimate. Let :math:`e_k(t)` be individual k's
influence on a metric at t while G is held fixed, and :math:`M(s; t) = \sum_{k: T_k > s} e_k(t)` the sum over those
in the same stratum whose weight contains the factor of G at s (for :math:`s \le t`; a capped weight does not move and
is left out). G enters any metric through the logarithms of the weights only, so one operator serves all of them:

.. math::

    \phi_i(t) = e_i(t) + \frac{1\{i \text{ exits at } T_i \le t\}}{r(T_i)} M(T_i; t)
        - \sum_{s < T_i,\, s \le t} \frac{q_s}{r_s (r_s - q_s)} M(s; t)

with :math:`q_s` exits among :math:`r_s` at risk at s, where G is estimated from the scored individuals themselves
(`FittedOnSample`); where it is estimated from others (`FittedOnTraining`), :math:`\phi_i = e_i` and the variance has
Greenwood's term

.. math:: \sum_{s \le t} \frac{q_s}{r_s (r_s - q_s)} M(s; t)^2

more. `engine.influence` computes both.

With sample weights :math:`w_i`, q and r are sums of these, e has the factor :math:`w_i`, and so has what estimation
adds for individual i. Greenwood's term then has `ProductLimit.variance_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore.censoring.aalen_johansen import Incidence
from survscore.censoring.product_limit import ProductLimit

Array = Any


@dataclass(frozen=True, eq=False)
class CensoringModel:
    """A product-limit estimate inside the weights of scored individuals."""

    curve: ProductLimit  #: Which exits are counted, of whom, and in which order at ties.
    codes: Array | None  #: The stratum of each scored individual; None for one stratum. Shape (n,) or None.

    fitted_on_sample: ClassVar[bool] = False  #: Whether it is estimated from the scored individuals themselves.

    def steps(self, time: Array) -> NDArray[np.float64]:
        """Return the weights of the sum over s: Greenwood's, at each jump, or what replaces it with sample weights."""
        return self.curve.variance_steps


@dataclass(frozen=True, eq=False)
class FittedOnTraining(CensoringModel):
    """Estimated from other individuals, such as the training data: an independent source of variance."""


@dataclass(frozen=True, eq=False)
class FittedOnSample(CensoringModel):
    r"""Estimated from the scored individuals: each of them moves the others' weights."""

    exits: Array  #: Who exits in the way that the curve counts. Shape (n,).
    passed: Array  #: How many jumps each has passed, in order of time; see `ProductLimit.in_order`. Shape (n,).
    #: Whether the influence is that of the Nelson-Aalen estimate, as in R's riskRegression: :math:`1/Y_s` and
    #: :math:`q_s/Y_s^2` with all at risk just before s, tied events too, and for :math:`s \le T_i`.
    martingale: bool = False
    #: The power of the curve that is inside the metric, larger than zero: all that its logarithm adds is times it.
    power: float = 1.0
    #: Under competing risks, the incidence of the cause of interest that is inside the metric in place of the curve.
    incidence: Incidence | None = None

    fitted_on_sample: ClassVar[bool] = True

    def own_risk(self, time: Array) -> NDArray[np.float64]:
        """Return what M is divided by in the term of one who exits, at each jump; `time` is that of all individuals."""
        if not self.martingale:
            risk: NDArray[np.float64] = arrays.as_float64(self.curve.at_risk) / self.power
            return risk
        found = []
        for k, part in enumerate(self.curve.strata()):
            inside = time if self.codes is None else time[self.codes == k]
            gone = arrays.count_below(arrays.ordered(inside), self.curve.times[part], inclusive=False)
            found.append(len(inside) - gone)
        risk = arrays.as_float64(arrays.concatenate(found))
        return risk

    def steps(self, time: Array) -> NDArray[np.float64]:  # noqa: D102
        if not self.martingale:
            return self.curve.greenwood * self.power
        return self.curve.exits / self.own_risk(time) ** 2

r"""The Aalen-Johansen estimate: cumulative incidence of one cause among several, in one stratum or several.

With :math:`d_s` events of any cause among :math:`r_s` at risk at s, :math:`d_{ks}` of them of cause k, and S the
Kaplan-Meier curve of all events,

.. math:: F_k(t) = \sum_{s \le t} S(s-) \frac{d_{ks}}{r_s} .

It moves with each individual's data. Who exits at v, by an event of any cause, and who stays through v have the
influences on :math:`F_k(t)`, :math:`t \ge v`,

.. math::

    \frac{1}{r_v} \left[S(v-) \left(1\{\text{cause } k\} - \frac{d_{kv}}{r_v}\right) + F_k(v) - F_k(t)\right]
    \quad\text{and}\quad
    -\left[S(v-) \frac{d_{kv}}{r_v^2} + \frac{d_v}{r_v (r_v - d_v)} (F_k(v) - F_k(t))\right] .

Both are a number of the jump less another one times :math:`F_k(t)`; the other numbers, :math:`1/r` and Greenwood's, are
those of the Kaplan-Meier curve. With one cause :math:`F = 1 - S`, and these are :math:`-S(t)` times its influences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property
from survscore.censoring.product_limit import ProductLimit
from survscore.outcomes import Outcomes

Array = Any  # a NumPy array, or a torch tensor


@dataclass(frozen=True, eq=False)
class Incidence:
    """The cumulative incidence of one cause, one curve for each stratum.

    Attributes
    ----------
    curve : ProductLimit
        That of events of any cause.
    events : ndarray of shape (d,)
        How many events of the cause there are at each of its jumps.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> from survscore.censoring.aalen_johansen import Incidence
    >>> y = ss.Outcomes([1, 2, 2, 3], [1, 2, 0, 1], causes=["default", "repayment"])
    >>> Incidence.of(y.for_cause("default")).table(np.array([1.0, 2.0, 3.0]))
    array([[0.25, 0.25, 0.75]])
    """

    curve: ProductLimit
    events: Array

    @classmethod
    def of(cls, outcomes: Outcomes) -> Self:
        """Fit it to outcomes, one of whose causes is of interest."""
        # ties: events come first, those of all causes together
        order = arrays.in_order(outcomes.time, ~outcomes.event)
        time, event = outcomes.time[order], outcomes.event[order]
        curve, passed = ProductLimit.in_order(time, event)
        return cls.in_order(curve, passed, outcomes.event_of_interest[order])

    @classmethod
    def in_order(cls, curve: ProductLimit, passed: Array, of_interest: Array) -> Self:
        """Count the events of interest at each jump of a curve; see `ProductLimit.in_order` for `passed`."""
        jumps = passed[arrays.positions(of_interest)]  # of one who exits, all jumps before the own
        return cls(curve, arrays.as_float64(arrays.sums_by(jumps, None, len(curve.times))))

    @cached_property
    def _event_free(self) -> Array:
        """The probability of being event-free just before each jump."""
        survival, parts = self.curve.survival, []
        for part in self.curve.strata():
            own = survival[part]
            parts.append(arrays.concatenate([own[:1] * 0.0 + 1.0, own[:-1]]) if len(own) else own)
        return arrays.concatenate(parts)

    @cached_property
    def values(self) -> Array:
        """The cumulative incidence from each jump on."""
        steps = self._event_free * self.events / self.curve.at_risk
        xp = arrays.namespace(steps)
        return arrays.concatenate([xp.cumsum(steps[part], 0) for part in self.curve.strata()])

    @cached_property
    def steps(self) -> Array:
        """Of one who stays through a jump, minus the part of the influence that does not depend on t."""
        at_risk = arrays.as_float64(self.curve.at_risk)
        return self._event_free * self.events / at_risk**2 + self.curve.greenwood * self.values

    def own(self, jump: Array, of_interest: Array) -> Array:
        """Of those who exit at some jumps, the part of the influence that does not depend on t, times r."""
        share = arrays.as_float64(of_interest) - self.events[jump] / self.curve.at_risk[jump]
        return self._event_free[jump] * share + self.values[jump]

    def after(self, jumps: Array, codes: Array | None = None) -> Array:
        """Return the incidence after so many jumps, counted as in `ProductLimit.jumps_before`."""
        padded = arrays.concatenate([arrays.zeros((1,), self.values), arrays.beside(self.values, jumps)])
        found = arrays.take(padded, jumps)
        if self.curve.n_strata == 1 or codes is None:
            return found
        starts = arrays.beside(np.array(self.curve.starts), codes)[codes]
        return arrays.where(jumps == starts, 0.0, found)

    def table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curves at a few times, (strata, times), in the processor's memory."""
        wanted, found = arrays.beside(times, self.curve.times), []
        for k, part in enumerate(self.curve.strata()):
            passed = part.start + arrays.count_below(self.curve.times[part], wanted, inclusive=True)
            found.append(arrays.to_host(self.after(passed, passed * 0 + k)))
        return np.array(found)

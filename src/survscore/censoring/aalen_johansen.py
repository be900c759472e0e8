r"""The Aalen-Johansen estimate: cumulative incidence of one cause among several, in one stratum or several.

With :math:`d_s` events of any cause among :math:`r_s` at risk at s, :math:`d_{ks}` of them of cause k, and S the
Kaplan-Meier curve of all events,

.. math:: F_k(t) = \sum_{s \le t} S(s-) \frac{d_{ks}}{r_s} .

With :math:`\theta` times the hazard of cause k, and :math:`\vartheta` times that of other causes (1 for scores of a
cause), one who is event-free just before s stays so with probability :math:`f_s`, and has the event of cause k with
:math:`(1 - f_s) q_s`:

.. math::

    f_s = \left(1 - \frac{d_s}{r_s}\right)^{w_s}, \qquad
    w_s = \frac{\theta d_{ks} + \vartheta (d_s - d_{ks})}{d_s}, \qquad
    q_s = \frac{\theta d_{ks}}{\theta d_{ks} + \vartheta (d_s - d_{ks})} .

Without other causes this is :math:`1 - S^\theta`. The estimate moves with each individual's data. Who exits at v, and
who stays through it, have the influences on :math:`F_k(t)`, :math:`t \ge v`,

.. math::

    \frac{1}{r_v} \left\{S(v-) \left[f_v q_v E + (1 - f_v) q'\right] - E \left[F_k(t) - F_k(v)\right]\right\}
    \quad\text{and}\quad
    -g_v \left\{S(v) q_v - \left[F_k(t) - F_k(v)\right]\right\}, \qquad
    g_v = \frac{w_v d_v}{r_v (r_v - d_v)},

with :math:`q'` the derivative of q, and :math:`E = w - w' \log(1 - d_v/r_v)`, by the hazard that the individual's event
is of; for :math:`\theta = 1`, w and E are one. Both are a number of the jump less another one times :math:`F_k(t)`.
Differences of F are those of :math:`U(t) = F_k(\infty) - F_k(t)`, which keeps its digits where S is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import cached_property, row_blocks
from survscore.censoring.product_limit import ProductLimit
from survscore.outcomes import Outcomes

Array = Any  # a NumPy array, or a torch tensor

LOG_OF_NONE = -1e300  # as the logarithm of 0: its multiples are finite, so that the power to 0 is 1, and others are 0


@dataclass(frozen=True, eq=False)
class Incidence:
    """The cumulative incidence of one cause, one curve for each stratum.

    Attributes
    ----------
    curve : ProductLimit
        That of events of any cause.
    events : ndarray of shape (d,)
        How many events of the cause there are at each of its jumps; with sample weights, sums of these.
    theta, theta_of_others : float or ndarray of shape (thetas,)
        By what the hazards of the cause, and of other causes, are multiplied. Of several, what is known by position has
        a column for each; influences are of one.

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
    theta: Any = 1.0
    theta_of_others: Any = 1.0

    @classmethod
    def of(cls, outcomes: Outcomes) -> Self:
        """Fit it to outcomes, one of whose causes is of interest."""
        return cls.of_curve(outcomes, *ProductLimit.of_events_in_order(outcomes))

    @classmethod
    def of_curve(cls, outcomes: Outcomes, curve: ProductLimit, order: Array, passed: Array) -> Self:
        """Count their events of interest at each jump of their curve; see `ProductLimit.of_events_in_order`."""
        weights = None if outcomes.weights is None else arrays.take(outcomes.weights, order)
        return cls.in_order(curve, passed, arrays.take(outcomes.event_of_interest, order), weights=weights)

    @classmethod
    def in_order(
        cls, curve: ProductLimit, passed: Array, of_interest: Array, theta: float = 1.0, weights: Array | None = None
    ) -> Self:
        """Count the events of interest at each jump of a curve; see `ProductLimit.in_order` for `passed`."""
        rows = arrays.positions(of_interest)
        jumps = passed[rows]  # of one who exits, all jumps before the own
        own = None if weights is None else weights[rows]
        return cls(curve, arrays.as_float64(arrays.sums_by(jumps, own, len(curve.times))), theta)

    # At each jump

    @cached_property
    def _others(self) -> Array:
        return arrays.as_float64(self.curve.exits) - self.events

    def _column(self, values: Array) -> Array:
        return values[:, None] if np.ndim(self.theta) else values

    def _multiplied(self, own: Array, others: Array) -> Array:
        """Return sums of what belongs to the cause and to others, multiplied as their hazards are."""
        found = self._column(own) * self.theta
        found += self._column(others) * self.theta_of_others
        return found

    def _scaled(self, jump: Any) -> Array:
        """Return the events at some jumps, times what their hazards are multiplied by."""
        return self._multiplied(self.events[jump], self._others[jump])

    @cached_property
    def _w(self) -> Array:
        return self._scaled(slice(None)) / self.curve.exits

    def _q(self, jump: Any) -> Array:
        return arrays.ratio(self._column(self.events[jump]) * self.theta, self._scaled(jump))

    @cached_property
    def _logs(self) -> tuple[Array, Array]:
        """The parts of the logarithm of the proportion that stays that belong to the cause, and to others."""
        log = arrays.where(self.curve.exits < self.curve.at_risk, self.curve.log_factors, LOG_OF_NONE)
        return log * (self.events / self.curve.exits), log * (self._others / self.curve.exits)

    def _gone(self, jump: Any) -> Array:
        """One minus f, without loss of digits."""
        own, others = self._logs
        log_f = self._multiplied(own[jump], others[jump])
        return -arrays.namespace(log_f).expm1(log_f)

    # By position: before the first jump and from each jump on, stratum by stratum

    def position(self, jumps: Array, codes: Array | None = None) -> Array:
        """Return where those who have passed so many jumps, as in `ProductLimit.jumps_before`, stand by position."""
        return jumps if codes is None or self.curve.n_strata == 1 else jumps + codes

    @cached_property
    def _before(self) -> Array:
        """The position before each jump; the next one is that from it on."""
        strata = np.repeat(np.arange(self.curve.n_strata), np.diff(self.curve.starts))
        return arrays.beside(np.arange(len(strata)) + strata, self.events)

    @cached_property
    def _log_event_free(self) -> tuple[Array, Array]:
        """The sums of `_logs` up to each position: the same parts of the logarithm of being event-free."""
        own, others = (arrays.zeros((len(logs) + self.curve.n_strata,), logs) for logs in self._logs)
        for sums, logs in zip((own, others), self._logs, strict=True):
            for k, part in enumerate(self.curve.strata()):
                sums[part.start + k + 1 : part.stop + k + 1] = logs[part].cumsum(0)
        return own, others

    def event_free(self, position: Any) -> Array:
        """Return the probability of being event-free at some positions."""
        own, others = self._log_event_free
        total = self._multiplied(own[position], others[position])
        return arrays.namespace(total).exp(total)

    @cached_property
    def _later(self) -> tuple[Array, Array]:
        """U before each jump of the cause, with a 0 behind those of each stratum, and which of these a position has."""
        jumps, xp = arrays.positions(self.events > 0), arrays.namespace(self.events)
        edges = arrays.count_below(jumps, arrays.beside(np.array(self.curve.starts), jumps), inclusive=False)
        found = arrays.zeros((len(jumps) + self.curve.n_strata, *np.shape(self.theta)), self.events)
        for k, (start, stop) in enumerate(pairwise(arrays.to_host(edges).tolist())):
            # with a column for each theta, temporary arrays of all jumps would not fit in the processor's cache
            size = stop - start
            blocks = [slice(0, size)] if arrays.is_tensor(found) else row_blocks(size, np.size(self.theta))
            for rows in reversed(blocks):
                some, place = jumps[start:stop][rows], start + k + rows.start
                steps = self.event_free(self._before[some]) * (self._gone(some) * self._q(some))
                end = place + len(steps)
                found[place:end] = xp.flip(xp.cumsum(xp.flip(steps, (0,)), 0), (0,)) + found[end]
        row = arrays.columns(len(self.events) + self.curve.n_strata, jumps) * 0
        row[self._before[jumps] + 1] = 1
        for k, start in enumerate(self.curve.starts[1:-1], 1):
            row[start + k] = 1
        return found, row.cumsum(0)

    def later(self, position: Any) -> Array:
        """Return U at some positions; 0 in a stratum without jumps."""
        found, row = self._later
        return arrays.pick_rows(found, row[position])

    def statuses(self, position: Array) -> tuple[Array, Array]:
        """Return what makes base + share x U the probability of having no event of the cause, of those last seen there.

        Where the event-free curve is 0, `share` is 0, too.
        """
        event_free = self.event_free(position)
        share = arrays.ratio(event_free * 0.0 + 1.0, event_free)
        return 1.0 - share * self.later(position), share

    # Influences

    @cached_property
    def slopes(self) -> Array:
        """Of one who stays through a jump, by how much the influence moves with :math:`F(t)`."""
        return self._w * self.curve.greenwood

    @cached_property
    def steps(self) -> Array:
        """Of one who stays through a jump, minus the part of the influence that does not depend on t, with -U as F."""
        after = self._before + 1
        return self.slopes * (self.event_free(after) * self._q(slice(None)) - self.later(after))

    def own_slope(self, jump: Array, of_interest: Array) -> Array:
        """Of those who exit at some jumps, minus r times by how much the influence moves with F(t)."""
        if self.theta == self.theta_of_others:
            return arrays.zeros((len(jump),), self.events) + self.theta
        d = arrays.as_float64(self.curve.exits)[jump]
        derivative = (
            (self.theta - self.theta_of_others)
            * arrays.where(of_interest, self._others[jump], -self.events[jump])
            / d**2
        )
        return self._w[jump] - derivative * self.curve.log_factors[jump] * self.curve.at_risk[jump]

    def own(self, jump: Array, of_interest: Array) -> Array:
        """Of those who exit at some jumps, r times the part of the influence that does not depend on t."""
        slope = self.own_slope(jump, of_interest)
        other = arrays.where(of_interest, self._others[jump], -self.events[jump])
        moved = arrays.ratio(
            self.theta * self.theta_of_others * other * self.curve.at_risk[jump], self._scaled(jump) ** 2
        )
        gone, before = self._gone(jump), self._before[jump]
        at_jump = (1.0 - gone) * self._q(jump) * slope + gone * moved
        return self.event_free(before) * at_jump - slope * self.later(before + 1)

    # At some times

    def positions_at(self, times: NDArray[np.float64]) -> Array:
        """Return the positions at a few times, (strata, times)."""
        curve = self.curve
        wanted = arrays.beside(times, curve.times)
        passed = [
            part.start + k + arrays.count_below(curve.times[part], wanted, inclusive=True)
            for k, part in enumerate(curve.strata())
        ]
        return arrays.namespace(passed[0]).stack(passed)

    def later_table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return U at a few times, (strata, times), in the processor's memory."""
        return arrays.to_host(self.later(self.positions_at(times)))

    def event_free_table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of being event-free at a few times, (strata, times), as `later_table`."""
        return arrays.to_host(self.event_free(self.positions_at(times)))

    def table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curves at a few times, (strata, times), in the processor's memory."""
        return self.later_table(np.full(1, -1.0)) - self.later_table(times)

"""The product-limit estimate: of survival, of censoring, of dropping out; in one stratum or several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._utils.parallel import argsort, cached_property, each

if TYPE_CHECKING:
    from survscore.outcomes import Outcomes

Array = Any  # a NumPy array, or a torch tensor
ROUNDING = 1e-12  # of differences of sums of weights


@dataclass(frozen=True, eq=False)
class ProductLimit:
    r"""The curve :math:`\prod_{s \le t} (1 - q_s / r_s)`, one for each stratum.

    Attributes
    ----------
    times : ndarray of shape (d,)
        The distinct times s at which someone leaves in the way in question; stratum after stratum.
    exits, at_risk : ndarray of shape (d,)
        :math:`q_s`, how many leave so then, and :math:`r_s`, how many could have; with sample weights, sums of these.
    n : int
        Of how many individuals it was made.
    starts : tuple of int
        Where the jumps of each stratum start, and the last one's end; of one stratum (0, d), the default.

    Examples
    --------
    >>> import numpy as np
    >>> from survscore.censoring.product_limit import ProductLimit
    >>> curve = ProductLimit.of(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True]), others_first=True)
    >>> curve.exits, curve.at_risk, curve.at(np.array([1.5, 2.0, 3.0]))
    (array([1, 1]), array([2, 1]), array([1. , 0.5, 0. ]))
    """

    times: NDArray[np.float64]
    exits: NDArray[np.int64] | NDArray[np.float64]
    at_risk: NDArray[np.int64] | NDArray[np.float64]
    n: int
    starts: tuple[int, ...] = ()
    #: The sums of squared weights of those who leave, and of those at risk, where weights are not counts. Shape (d,).
    square_exits: Array | None = None
    square_at_risk: Array | None = None

    def __post_init__(self) -> None:
        if not self.starts:
            object.__setattr__(self, "starts", (0, len(self.times)))

    @classmethod
    def of(
        cls,
        time: Array,
        leaves: Array,
        *,
        others_first: bool,
        codes: Array | None = None,
        n_strata: int = 1,
        weights: Array | None = None,
        squares: Array | None = None,
        entry: Array | None = None,
    ) -> Self:
        """Fit it to individuals who leave at `time`, in the way in question where `leaves` is true.

        At a time s, those at risk are all who leave so from s on, and all others from s on, or only those after it
        where others leave first at the same time. `codes` number the strata from 0 on. With sample `weights`, sums of
        these take the place of counts; `squares` are those of the weights, for `variance_steps`. With delayed `entry`,
        those at risk are only those who had entered before s.
        """
        order = order_of(time, leaves if others_first else ~leaves)
        of_order = None if codes is None else arrays.take(codes, order)
        weights = None if weights is None else arrays.take(weights, order)
        time, leaves = arrays.take(time, order), arrays.take(leaves, order)
        curve = cls.in_order(time, leaves, of_order, n_strata, weights)[0]
        if squares is not None:
            squared = cls.in_order(time, leaves, of_order, n_strata, arrays.take(squares, order))[0]
            curve = replace(curve, square_exits=squared.exits, square_at_risk=squared.at_risk)
        return curve if entry is None else curve.entered(arrays.take(entry, order), weights)

    @classmethod
    def in_order(
        cls, time: Array, leaves: Array, codes: Array | None = None, n_strata: int = 1, weights: Array | None = None
    ) -> tuple[Self, Array]:
        """Fit it to individuals in order of time, and at ties in the order in which they leave.

        Also return how many jumps each has passed, its own left out, counted from the first of the first stratum on.
        """
        n, order = len(time), None
        if codes is not None:  # stratum after stratum
            order = arrays.by_code(codes, n_strata)
            time, leaves, codes = time[order], leaves[order], codes[order]
            weights = None if weights is None else weights[order]
        passed = arrays.empty_counts(leaves)

        def mark(rows: slice) -> tuple[Array, Array]:
            """Return the first and the last of those who leave together: they are neighbours."""
            lead, inside = min(rows.start, 1), slice(max(rows.start - 1, 0), rows.stop + 1)
            apart = (time[inside][1:] != time[inside][:-1]) | (leaves[inside][1:] != leaves[inside][:-1])
            if codes is not None:
                apart |= codes[inside][1:] != codes[inside][:-1]
            jumps, ends = leaves[rows] | False, leaves[rows] | False
            jumps[1 - lead :] &= apart[: len(jumps) - 1 + lead]
            ends[: len(apart) - lead] &= apart[lead:]
            passed[rows] = arrays.running_count(jumps) - arrays.as_int8(leaves[rows])
            return rows.start + arrays.positions(jumps), rows.start + arrays.positions(ends)

        slices, marks = zip(*arrays.in_slices(mark, leaves), strict=True)
        before = np.cumsum([0, *(len(jumps) for jumps, _ in marks)]).tolist()

        def add(place: int) -> None:
            passed[slices[place]] += before[place]

        each(add, range(1, len(slices)), threads=True)
        first, exits = (arrays.concatenate(parts) for parts in zip(*marks, strict=True))
        own = arrays.take(time, first)
        last, exits = exits, exits - (first - 1)
        stops, starts = None, ()
        if codes is not None:
            strata = arrays.columns(n_strata, codes)
            stops = arrays.count_below(codes, strata, inclusive=True)[codes[first]]
            starts = (0, *arrays.to_host(arrays.count_below(codes[first], strata, inclusive=True)).tolist())
        if weights is None:
            curve = cls(own, exits, (n if stops is None else stops) - first, n, starts)
        else:
            rows = arrays.positions(leaves)
            exits = arrays.sums_by(passed[rows], weights[rows], len(own))  # of one who exits, all jumps before the own
            curve = cls(own, exits, _at_risk(exits, weights, last + 1, stops), n, starts)
        return curve, passed if order is None else arrays.put(passed, order)

    @classmethod
    def of_events(cls, outcomes: Outcomes) -> Self:
        """Fit the Kaplan-Meier curve of survival: events first, where someone is censored at the same time."""
        return cls.of_events_in_order(outcomes)[0]

    @classmethod
    def of_events_in_order(cls, outcomes: Outcomes) -> tuple[Self, Array, Array]:
        """Fit the same; also return the order of time, and how many jumps each has passed in it, as `in_order` does."""
        order = order_of(outcomes.time, ~outcomes.event)
        time, event = arrays.take(outcomes.time, order), arrays.take(outcomes.event, order)
        weights = None if outcomes.weights is None else arrays.take(outcomes.weights, order)
        curve, passed = cls.in_order(time, event, weights=weights)
        if outcomes.entry is not None:
            curve = curve.entered(arrays.take(outcomes.entry, order), weights)
        return curve, order, passed

    @classmethod
    def of_others(cls, outcomes: Outcomes) -> Self:
        """Fit the same to other individuals than those who are scored, with what its `variance_steps` are made of."""
        squares = outcomes.weights**2 if outcomes.weights is not None and outcomes.weight_kind != "frequency" else None
        weights, entry = outcomes.weights, outcomes.entry
        return cls.of(outcomes.time, outcomes.event, others_first=False, weights=weights, squares=squares, entry=entry)

    def entered(self, entry: Array, weights: Array | None = None) -> Self:
        """Return the same, in one stratum, with those at risk at s only if they had entered before s."""
        entry = arrays.where(entry > 0, entry, -1.0)  # those observed from the start are at risk at time 0, too
        order = entry.argsort()
        entered_before = arrays.count_below(entry[order], self.times, inclusive=False)
        if weights is None:
            return replace(self, at_risk=self.at_risk - (len(entry) - entered_before))
        xp, own = arrays.namespace(weights), weights[order]
        later = arrays.concatenate([xp.flip(xp.cumsum(xp.flip(own, (0,)), 0), (0,)), arrays.zeros((1,), own)])
        rest = self.at_risk - self.exits - later[entered_before]
        rest = arrays.where(rest > ROUNDING * self.at_risk, rest, 0.0)  # of those who all leave, nothing is left
        return replace(self, at_risk=self.exits + rest)

    @property
    def n_strata(self) -> int:
        """How many curves there are."""
        return len(self.starts) - 1

    def strata(self) -> list[slice]:
        """Return the jumps of each stratum."""
        return [slice(*ends) for ends in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def beside(self, like: Array) -> Self:
        """Return the same curve where others live."""
        if arrays.device_of(like) == arrays.device_of(self.times):
            return self
        names = ("times", "exits", "at_risk", "square_exits", "square_at_risk")
        moved = {name: arrays.beside(value, like) for name in names if (value := getattr(self, name)) is not None}
        return replace(self, **moved)

    @cached_property
    def survival(self) -> NDArray[np.float64]:
        """The curve from each of `times` on."""
        return self._from_start[1:]

    @cached_property
    def _from_start(self) -> NDArray[np.float64]:
        """A one, and the curve from each of `times` on: after no jump, the first one, ..."""
        curve: NDArray[np.float64] = arrays.zeros((len(self.times) + 1,), self.times)
        curve[0] = 1.0
        for part in self.strata():
            at_risk, exits = self.at_risk[part], self.exits[part]

            def factors(rows: slice, at_risk: Array = at_risk, exits: Array = exits) -> Array:
                return arrays.as_float64(at_risk[rows] - exits[rows]) / at_risk[rows]

            arrays.running_products(factors, curve[1 + part.start : 1 + part.stop])
        return curve

    @cached_property
    def log_factors(self) -> NDArray[np.float64]:
        """The logarithm of each jump's factor; 0 where none stays."""
        proportion = self.exits / arrays.as_float64(self.at_risk)
        logs: NDArray[np.float64] = arrays.namespace(proportion).log1p(-arrays.where(proportion < 1, proportion, 0.0))
        return logs

    @cached_property
    def greenwood(self) -> NDArray[np.float64]:
        r"""What each jump adds to the variance of the curve's logarithm: :math:`q_s / (r_s (r_s - q_s))`.

        A jump to zero adds nothing: none is left after it, and no score is defined there.
        """
        rest = self.at_risk - self.exits
        greenwood: NDArray[np.float64] = arrays.ratio(
            arrays.as_float64(self.exits), arrays.as_float64(self.at_risk) * rest
        )
        return greenwood

    @property
    def variance_steps(self) -> NDArray[np.float64]:
        r"""What each jump adds to that variance where individuals have weights, as a sum of squares over individuals.

        With :math:`p = q_s / r_s`, and :math:`q_{2s}` and :math:`r_{2s}` the sums of squared weights of those who leave
        and of those at risk, :math:`[q_{2s} (1 - p)^2 + (r_{2s} - q_{2s}) p^2] / (r_s - q_s)^2`; Greenwood's for equal
        weights, and for weights that are counts.
        """
        if self.square_exits is None or self.square_at_risk is None:
            return self.greenwood
        p, stay = self.exits / self.at_risk, self.square_at_risk - self.square_exits
        steps: NDArray[np.float64] = arrays.ratio(
            self.square_exits * (1.0 - p) ** 2 + stay * p**2, (self.at_risk - self.exits) ** 2
        )
        return steps

    def at(self, times: Array, codes: Array | None = None) -> NDArray[np.float64]:
        """Return the curve at `times`, each in its own stratum."""
        return self.after(self.jumps_before(times, codes, inclusive=True), codes)

    def before(self, times: Array, codes: Array | None = None) -> NDArray[np.float64]:
        """Return its left limits at `times`, each in its own stratum."""
        return self.after(self.jumps_before(times, codes), codes)

    def after(self, jumps: Array, codes: Array | None = None) -> NDArray[np.float64]:
        """Return the curve after so many jumps, counted as in `jumps_before`."""
        values: NDArray[np.float64] = arrays.take(arrays.beside(self._from_start, jumps), jumps)
        if self.n_strata == 1 or codes is None:
            return values
        starts = arrays.beside(np.array(self.starts), codes)[codes]
        values = arrays.where(jumps == starts, 1.0, values)
        return values

    def table(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curves at a few times, (strata, times), in the processor's memory."""
        wanted, found = arrays.beside(times, self.times), []
        for k, part in enumerate(self.strata()):
            passed = part.start + arrays.count_below(self.times[part], wanted, inclusive=True)
            found.append(arrays.to_host(self.after(passed, passed * 0 + k)))
        return np.array(found)

    def jumps_before(self, times: Array, codes: Array | None = None, *, inclusive: bool = False) -> NDArray[np.int32]:
        """Return how many of its jumps come before each time (or at it, if `inclusive`), counted from the first of all.

        In the stratum of each: those of the strata before it are counted as well.
        """
        if self.n_strata == 1 or codes is None:
            found: NDArray[np.int32] = arrays.count_below(self.times, times, inclusive=inclusive)
            return found
        found = arrays.count_below(self.times[:0], times, inclusive=inclusive)  # zeros
        for k, part in enumerate(self.strata()):
            inside = codes == k
            found[inside] = part.start + arrays.count_below(self.times[part], times[inside], inclusive=inclusive)
        return found


def _at_risk(exits: Array, weights: Array, after: Array, stops: Array | None) -> Array:
    """Return the weights of those at risk at each jump: who exits then, and all from `after` on, or up to `stops`.

    As the sum of these two, so that nothing at all is left of it where all exit: sums that were rounded in another
    order would not be equal. Those from the end on keep their digits where few are left.
    """
    xp = arrays.namespace(weights)
    later = arrays.concatenate([xp.flip(xp.cumsum(xp.flip(weights, (0,)), 0), (0,)), arrays.zeros((1,), weights)])
    rest = later[after]
    if stops is not None:
        rest = arrays.where(after < stops, rest - later[stops], 0.0)
    return arrays.where(rest + exits > 0, rest + exits, 1.0)  # weights may be zero


def order_of(time: Array, rank: Array) -> Array:
    """Return positions in order of time, and those of the same time by their rank: a small whole number, or a flag."""
    order = time.argsort() if arrays.is_tensor(time) else argsort(time)
    own = arrays.take(time, order)
    changes = own[1:] != own[:-1]
    if changes.all():
        return order
    if arrays.is_tensor(time):
        return arrays.in_order(time, rank)
    key = arrays.take(rank, order).astype(np.int64)
    key[1:] += (int(key.max()) + 1) * np.cumsum(changes)
    if np.any(key[1:] < key[:-1]):
        # few distinct times make small numbers, which are sorted by their digits
        small = key[-1] <= np.iinfo(np.uint16).max
        order = order[np.argsort(key.astype(np.uint16) if small else key, kind="stable")]
    return order

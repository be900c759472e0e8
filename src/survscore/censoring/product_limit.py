"""The product-limit estimate: of survival, of censoring, of dropping out; by whom and in which order at ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays as _arrays
from survscore._utils import loops as _loops
from survscore._utils import sorting as _sorting

if TYPE_CHECKING:
    from survscore.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class InOrder:
    """The individuals of whom a curve was made, from the latest time to the earliest.

    Attributes
    ----------
    time : ndarray of shape (n,)
        Their times, in the order given.
    positions : ndarray of shape (n,)
        Where each was in that order.
    exits_before : ndarray of shape (n,)
        How many of the curve's times come before each.
    """

    time: Any
    positions: Any
    exits_before: Any


@dataclass(frozen=True, eq=False)
class ProductLimit:
    r"""The curve :math:`\prod_{s \le t} (1 - q_s / r_s)`.

    Attributes
    ----------
    times : ndarray of shape (d,)
        The distinct times s at which someone leaves in the way in question.
    exits, at_risk : ndarray of shape (d,)
        :math:`q_s`, how many leave so then, and :math:`r_s`, how many could have.
    n : int
        Of how many individuals it was made.
    own : InOrder, optional
        These individuals, if that was found on the way: as for tensors, whose sort makes it cheaper than a search.

    Examples
    --------
    >>> import numpy as np
    >>> from survscore.censoring.product_limit import ProductLimit
    >>> curve = ProductLimit.of(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True]), others_first=True)
    >>> curve.exits, curve.at_risk, curve.at(np.array([1.5, 2.0, 3.0]))
    (array([1, 1], dtype=int32), array([2, 1], dtype=int32), array([1. , 0.5, 0. ]))
    """

    times: NDArray[np.float64]
    exits: NDArray[np.int32]
    at_risk: NDArray[np.int32]
    n: int
    own: InOrder | None = None
    _reached: dict[int, tuple[Any, Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        time: NDArray[np.float64],
        leaves: NDArray[np.bool_],
        *,
        others_first: bool,
        compiled: bool | None = None,
    ) -> Self:
        """Make it of individuals who leave at `time`, in the way in question where `leaves` is true.

        At a time s, those at risk are all who leave so from s on, and all others from s on, or only those after it
        where others leave first at the same time.
        """
        if _arrays.is_tensor(time):
            from survscore._utils import tensor_loops as _tensor_loops

            times, exits, at_risk, *own = _tensor_loops.exit_table(time, leaves, others_first=others_first)
            return cls(times, exits, at_risk, len(time), InOrder(time, *own))
        return cls(*_sorting.exit_table(time, leaves, others_first=others_first, compiled=compiled), time.size)

    @classmethod
    def of_events(cls, outcomes: Outcomes) -> Self:
        """Make the Kaplan-Meier curve of survival: events first, where someone is censored at the same time."""
        return cls.of(outcomes.time, outcomes.event, others_first=False)

    @classmethod
    def of_censoring(cls, outcomes: Outcomes) -> Self:
        """Make the curve of not being censored: an event at the time of a censoring comes first."""
        return cls.of(outcomes.time, ~outcomes.event, others_first=True)

    @classmethod
    def of_drop_out(cls, outcomes: Outcomes) -> Self:
        """Make the curve of not dropping out: at ties the event comes first, then the end of the data."""
        return cls.of(outcomes.time, outcomes.dropped_out, others_first=True)

    def some(self, which: slice) -> Self:
        """Return some of its times, with what happened then."""
        return replace(self, times=self.times[which], exits=self.exits[which], at_risk=self.at_risk[which], own=None)

    def beside(self, like: Any) -> Self:
        """Return the same curve where others live."""
        if _arrays.device_of(like) == _arrays.device_of(self.times):
            return self
        moved = (_arrays.beside(values, like) for values in (self.times, self.exits, self.at_risk))
        return replace(self, **dict(zip(("times", "exits", "at_risk"), moved, strict=True)), own=None)

    def places_before(self, time: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return how many of its times come before each of others."""
        own = self.in_order(time)
        if own is not None:
            from survscore._utils import tensor_loops as _tensor_loops

            places: NDArray[np.int32] = _tensor_loops.back_in_place(own.exits_before, own.positions)
            return places
        return _loops.count_below(self.times, time, inclusive=False)

    def in_order(self, time: NDArray[np.float64]) -> InOrder | None:
        """Return the individuals of whom it was made, if these are their times; None of others, or if not known."""
        return self.own if self.own is not None and time is self.own.time else None

    @property
    def survival(self) -> NDArray[np.float64]:
        """The curve from each of `times` on; not kept, since there may be as many as individuals."""
        if _arrays.is_tensor(self.times):
            from survscore._utils import tensor_loops as _tensor_loops

            values: NDArray[np.float64] = _tensor_loops.survival(self.exits, self.at_risk)
            return values
        return np.cumprod((self.at_risk - self.exits) / self.at_risk, dtype=np.float64)

    @property
    def greenwood(self) -> NDArray[np.float64]:
        r"""What each time adds to the variance of the curve's logarithm: :math:`q_s / (r_s (r_s - q_s))`.

        A step to zero adds nothing: nobody is left after it, and no score is defined there.
        """
        if _arrays.is_tensor(self.times):
            from survscore._utils import tensor_loops as _tensor_loops

            steps: NDArray[np.float64] = _tensor_loops.greenwood(self.exits, self.at_risk)
            return steps
        rest = self.at_risk - self.exits
        pairs = np.multiply(self.at_risk, rest, dtype=np.float64)
        return np.asarray(np.divide(self.exits, pairs, out=np.zeros(self.times.size), where=rest > 0))

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curve at `times`."""
        return self._at(self.survival, times)()

    def _at(self, survival: NDArray[np.float64], times: NDArray[np.float64]) -> Callable[[], NDArray[np.float64]]:
        """Return what waits for the curve at `times`."""
        if not _arrays.is_tensor(self.times) or _arrays.is_tensor(times):
            found = _loops.step_values(self.times, survival, times, inclusive=True)
            return lambda: found
        from survscore._utils import tensor_loops as _tensor_loops

        both = _tensor_loops.curve_at(self.times, survival, times)

        def wait() -> NDArray[np.float64]:
            values, reached = both()
            self._reached[id(times)] = (times, reached.astype(np.intp))
            return np.asarray(values)

        return wait

    def reached(self, times: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return how many of its times come at or before each of others, in the processor's memory."""
        if not _arrays.is_tensor(self.times):
            return np.searchsorted(self.times, times, side="right")
        known = self._reached.get(id(times))
        if known is not None and known[0] is times:  # a device would have to be waited for
            return np.asarray(known[1])
        return _loops.count_below(self.times, times, inclusive=True).astype(np.intp)

    def at_and_before(
        self, times: NDArray[np.float64], before: NDArray[np.float64], wanted: NDArray[np.bool_] | None = None
    ) -> tuple[Callable[[], NDArray[np.float64]], NDArray[np.float64]]:
        """Return what waits for the curve at `times`, and its left limits at others; perhaps 1 where not `wanted`."""
        survival = self.survival
        at = self._at(survival, times)
        own = self.in_order(before)
        if own is not None:
            from survscore._utils import tensor_loops as _tensor_loops

            values = _tensor_loops.after_steps(survival, own.exits_before)
            return at, _tensor_loops.back_in_place(values, own.positions, wanted, otherwise=1.0)
        return at, _loops.step_values(self.times, survival, before, inclusive=False)

    def before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return its left limits at `times`."""
        return _loops.step_values(self.times, self.survival, times, inclusive=False)

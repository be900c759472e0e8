"""The individuals that are counted at one time, with what one model predicts for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import argsort, cached_property
from survscore._validation import FloatArray
from survscore.inference.logistic import LogisticFit, logistic_fit
from survscore.metrics.losses import DEFAULT_EPSILON

Vector = NDArray[np.float64]
EVENT_FREE, OTHER_EVENT = 0, -1  # the latter is the status of those with an event of a cause that scores are not of
Made = TypeVar("Made")


def log_odds(risk: Vector) -> Vector:
    """Return the log odds of risks, clipped as by the logarithmic loss."""
    clipped = np.clip(risk, DEFAULT_EPSILON, 1 - DEFAULT_EPSILON)
    return np.log(clipped) - np.log1p(-clipped)


@dataclass(frozen=True, eq=False)
class CountedStatuses:
    """What all models have in common at one time: who is counted, with which status and weight (see `MetricSample`)."""

    rows: NDArray[np.intp]
    label: NDArray[Any]
    weight: Vector
    other: Vector | None = field(default=None, kw_only=True)
    counts: Vector | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls, label: NDArray[Any], weight: Vector, event_free: Vector | None = None, counts: Vector | None = None
    ) -> CountedStatuses:
        """Take all individuals, with weight 0 for those who are not counted.

        Who is event-free with some probability is there twice: first with event, and after all others without. `counts`
        say how many individuals each one stands for, if not one.
        """
        rows, other = np.flatnonzero(weight), None
        weights, label = weight[rows] / weight.max(initial=0.0), label[rows]  # they may be as large as numbers go
        if event_free is not None:
            free = event_free[rows]
            split = np.flatnonzero((free > 0) & (free < 1))
            label = np.append(np.where((free < 1) & (label == 0), 1, label), np.zeros(split.size, dtype=label.dtype))
            both = np.array([np.where(free > 0, 1 - free, 1.0), np.where(free < 1, free, 0.0)]) * weights
            both[0, free >= 1] = weights[free >= 1]
            rows = np.append(rows, rows[split])
            weights, other = np.append(both, both[::-1, split], axis=1)
        if rows.size:
            mean = weights.mean()
            weights, other = weights / mean, None if other is None else other / mean
        return cls(rows, label, weights, other=other, counts=None if counts is None else counts[rows])

    @classmethod
    def against_event_free(
        cls,
        label: NDArray[Any],
        weight: Vector,
        without: Vector | None,
        event_free: Vector | None,
        counts: Vector | None = None,
    ) -> CountedStatuses:
        """Take those with the event of interest, and those without any event: who had another event is left out.

        Where statuses are projected, `without` is the probability of being without the event of interest, and
        `event_free` of being without any.
        """
        if without is None or event_free is None:
            return cls.of(label, np.where(label == OTHER_EVENT, 0.0, weight), counts=counts)
        weight = weight / weight.max(initial=0.0)
        known = label != EVENT_FREE
        case = weight * np.where(known, label > 0, 1.0 - without)
        control = weight * np.where(known, 0.0, event_free)
        first = np.flatnonzero((case > 0) | (control > 0))
        split = np.flatnonzero((case > 0) & (control > 0))
        a, b = case[first], control[first]
        labels = np.append(np.where(a > 0, 1, EVENT_FREE), np.full(split.size, EVENT_FREE)).astype(label.dtype)
        weights = np.append(np.where(a > 0, a, b), control[split])
        other = np.append(np.where((a > 0) & (b > 0), b, 0.0), case[split])
        hidden = (label == EVENT_FREE) & ((without < 1) | (event_free < 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.where(hidden & (case > 0), without / (1.0 - without), 0.0)[first]
        rows = np.append(first, split)
        counts = None if counts is None else counts[rows]
        return _AgainstEventFree(rows, labels, weights, other=other, counts=counts, odds=odds, moves=hidden[first])

    def with_predictions(self, survival: FloatArray) -> MetricSample:
        """Take what one model predicts for each individual."""
        survival = survival[self.rows]
        return MetricSample(self.rows, self.label, self.weight, survival, other=self.other, counts=self.counts)

    @property
    def individuals(self) -> NDArray[np.intp]:
        """Positions of those who are counted among all, each once."""
        return self.rows if self.other is None else self.rows[: self.rows.size - self._twice.size]

    @cached_property
    def _twice(self) -> NDArray[np.intp]:
        """Where those who are there twice come first."""
        if self.other is None:
            return np.zeros(0, dtype=np.intp)
        n_twice = int(np.count_nonzero(self.other)) // 2
        first = self.rows.size - n_twice
        return np.searchsorted(self.rows[:first], self.rows[first:])

    def by_individual(self, influence: Vector) -> tuple[Vector, ...]:
        r"""Return the influences of each individual, (numbers, individuals), and gradients by fractional statuses.

        The weight of one who is event-free with probability m passes from one status to the other: a number moves by
        :math:`m\, \partial/\partial m = e_1 - e_0\, m / (1 - m)` with the logarithm of m, from the influences
        :math:`e_1` and :math:`e_0` of the two. Where m is zero or one, it does not move.
        """
        if self.other is None:
            return (influence,)
        twice = self._twice
        n = self.rows.size - twice.size
        own, free = influence[:, :n].copy(), influence[:, n:]
        gradient = np.zeros_like(own)
        gradient[:, twice] = free - own[:, twice] * (self.weight[n:] / self.weight[twice])
        own[:, twice] += free
        return own, gradient

    def __len__(self) -> int:
        return self.rows.size

    @cached_property
    def event(self) -> Vector:
        """One for those with event, zero for the others."""
        return np.asarray(self.label > 0, dtype=np.float64)

    @cached_property
    def share(self) -> Vector:
        """Each individual's share of the weights."""
        return np.asarray(self.weight / self.weight.sum())

    @cached_property
    def statuses(self) -> tuple[float, float]:
        """How many have no event, and how many have it; of those who have either, the probabilities."""
        if self.other is None and self.counts is None:
            events = int(np.count_nonzero(self.label > 0))
            return self.rows.size - events, events
        part = self.part if self.counts is None else self.part * self.counts
        return float(part[self.label <= 0].sum()), float(part[self.label > 0].sum())

    @property
    def concentration(self) -> float:
        """The sum of the squared shares of individuals: one divided by their effective number."""
        n = self.individuals.size
        squares = np.square((self.share / self.part)[:n])
        return float(squares.sum() if self.counts is None else (squares / self.counts[:n]).sum())

    @property
    def part(self) -> Vector:
        """The probability of each status: less than one for those who are there twice."""
        return np.ones(self.rows.size) if self.other is None else self.weight / (self.weight + self.other)


@dataclass(frozen=True, eq=False)
class _AgainstEventFree(CountedStatuses):
    """Cases and the event-free, whose probabilities do not add up to one: see `CountedStatuses.against_event_free`."""

    #: Of each individual the odds of being without the event of interest, where that is not certain, and whether being
    #: event-free is not.
    odds: Vector = field(kw_only=True)
    moves: NDArray[np.bool_] = field(kw_only=True)

    def by_individual(self, influence: Vector) -> tuple[Vector, ...]:
        """Return influences, and gradients by the logarithms of both probabilities."""
        n, twice = self.individuals.size, self._twice
        own, case = influence[:, :n].copy(), self.label[:n] > 0
        of_event = -np.where(case, own, 0.0) * self.odds
        event_free = np.where(case, 0.0, own)
        event_free[:, twice] = influence[:, n:]
        own[:, twice] += influence[:, n:]
        return own, of_event, event_free * self.moves


@dataclass(frozen=True, eq=False)
class MetricSample(CountedStatuses):
    """Predictions, statuses and weights of those who are counted at one time.

    All metrics of a model share one sample, so what several need is made once: the order of predictions, log odds, and
    whatever is made by way of `once`.

    Attributes
    ----------
    rows : ndarray of int
        Positions among all individuals.
    label : ndarray of int8
        The status: 1 with the event, 0 for those who are event-free, and `OTHER_EVENT` for those who, under competing
        risks, had an event of another cause.
    weight : ndarray
        Larger than zero, and one on average.
    survival : ndarray
        The predicted probability of being event-free.
    other : ndarray or None
        Where statuses are projected, an individual may be there twice, once with each status; then the weight of the
        same individual with the other status, and 0 for others.
    counts : ndarray or None
        With frequency weights, which are part of `weight`, how many individuals each one stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from survscore.metrics import MetricSample
    >>> sample = MetricSample.of(np.array([0.2, 0.9, 0.5]), np.array([1, 0, 0]), np.array([2.0, 0.0, 1.0]))
    >>> sample.rows, sample.risk, sample.event, sample.share.round(3)
    (array([0, 2]), array([0.8, 0.5]), array([1., 0.]), array([0.667, 0.333]))
    >>> sample.once(lambda sample: float(sample.share @ sample.risk))  # the mean predicted risk
    0.7
    """

    survival: FloatArray
    _made: dict[Callable[[MetricSample], Any], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(  # type: ignore[override]
        cls, survival: FloatArray, label: NDArray[Any], weight: Vector, event_free: Vector | None = None
    ) -> MetricSample:
        """Take all individuals, with weight 0 for those who are not counted; see `CountedStatuses.of`."""
        return CountedStatuses.of(label, weight, event_free).with_predictions(survival)

    @cached_property
    def risk(self) -> Vector:
        """The predicted probability of the event."""
        return 1.0 - self.survival.astype(np.float64)

    @cached_property
    def log_odds(self) -> Vector:
        """The log odds of the predicted risks, which are clipped at 1e-7."""
        return log_odds(self.risk)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Positions within the sample from the highest predicted risk to the lowest."""
        return argsort(self.survival)

    @cached_property
    def ties(self) -> NDArray[np.intp]:
        """Where in that order each distinct prediction starts."""
        ordered = self.survival[self.order]
        return np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))

    def once(self, make: Callable[[MetricSample], Made]) -> Made:
        """Return ``make(sample)``, made when it is first asked for: for what several metrics have in common."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def fit(self, knots: Vector, otherwise: str, *, shifted: bool = False) -> LogisticFit | str:
        """Regress the status on a spline of the log odds with these knots, or with the log odds as offset.

        Where that is not possible, return why: `otherwise`, if both statuses are there.
        """
        if not all(self.statuses):
            return f"{'every' if self.statuses[1] else 'no'} individual who is counted had the event"
        return logistic_fit(self.log_odds, knots, self.event, self.weight, shifted=shifted) or otherwise

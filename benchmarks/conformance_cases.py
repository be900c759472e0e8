"""What conformance.py asks every package: small data sets, each made so that conventions give different numbers.

Packages may live in other environments, so that nothing here needs more than NumPy.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Data:
    """Outcomes, predictions and the times to score, as lists.

    Parameters
    ----------
    time, event : list
        Of those who are scored.
    times : list of float
        At which scores are wanted.
    survival : list of list of float
        Predicted probabilities of being event-free, individuals x times.
    train_time, train_event : list, optional
        Of those on whom G is fitted. Without, these are the scored ones.
    censoring_time : list, optional
        C*, where it is known.
    """

    time: list[float]
    event: list[int]
    times: list[float]
    survival: list[list[float]]
    train_time: list[float] | None = None
    train_event: list[int] | None = None
    censoring_time: list[float] | None = None

    @property
    def train(self) -> tuple[list[float], list[int]]:
        """Return time and event of those on whom G is fitted."""
        if self.train_time is None or self.train_event is None:
            return self.time, self.event
        return self.train_time, self.train_event


@dataclass(frozen=True)
class Question:
    """A data set, and what is wanted of it: the name of a method of `conformance_packages.Package`."""

    kind: str
    data: Data

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON wants it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Question:
        """Make it from `to_dict`."""
        return cls(plain["kind"], Data(**plain["data"]))


def predictions(n: int, times: list[float]) -> list[list[float]]:
    """Return curves that fall, no two alike; what they are does not matter."""
    rates = 0.04 + 0.21 * (np.arange(n) * 0.618 % 1)
    return np.exp(-np.outer(rates, times)).round(4).tolist()


def outcomes(time: list[float], event: list[int], times: list[float], **more: Any) -> Data:
    """Return data with some predictions."""
    return Data(time, event, times, predictions(len(time), times), **more)


# Events and censorings share times, scores are wanted at such times and between them, and G stays well above zero.
TIES = outcomes([1.0, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8], [1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1], [1.5, 2, 3, 4.5, 6])
TRAIN = {
    "train_time": [1.0, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9],
    "train_event": [0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1],
}
TIES_TRAINED = outcomes(TIES.time, TIES.event, TIES.times, **TRAIN)
OTHER = outcomes([0.5, 1, 1, 1, 2.5, 2.5, 3, 4, 4, 5], [0, 1, 0, 1, 1, 0, 1, 1, 0, 1], [0.75, 1, 2.5, 3.5, 4])
OTHER_TRAINED = outcomes(
    OTHER.time,
    OTHER.event,
    OTHER.times,
    train_time=[0.5, 1, 1, 2, 2.5, 2.5, 3, 4, 4, 6],
    train_event=[1, 0, 1, 0, 1, 0, 1, 0, 1, 1],
)

# docs/conventions.rst
PAGE = Data(
    [1.0, 2, 2, 3, 3, 4, 5, 6],
    [1, 1, 0, 1, 0, 1, 0, 1],
    [3.0],
    [[0.3], [0.4], [0.6], [0.5], [0.7], [0.6], [0.8], [0.9]],
    censoring_time=[6.0, 3, 2, 4, 3, 4, 5, 7],
)


def at_the_end(event: list[int], t: float) -> Data:
    """Return six individuals, the last of whom leaves at 6."""
    return outcomes([1.0, 2, 3, 4, 5, 6], event, [t])


LAST_CENSORED, LAST_EVENT = [1, 0, 1, 1, 1, 0], [1, 0, 1, 1, 0, 1]

QUESTIONS: dict[str, Question] = {
    "page": Question("brier", PAGE),
    # which conventions: found on the first, and only believed if the second agrees
    "ties": Question("brier", TIES),
    "other ties": Question("brier", OTHER),
    "ties, G of training data": Question("brier", TIES_TRAINED),
    "other ties, G of training data": Question("brier", OTHER_TRAINED),
    # the end of follow-up
    "last is censored, at that time": Question("brier", at_the_end(LAST_CENSORED, 6)),
    "last is censored, later": Question("brier", at_the_end(LAST_CENSORED, 7)),
    "last has the event, at that time": Question("brier", at_the_end(LAST_EVENT, 6)),
    "last has the event, later": Question("brier", at_the_end(LAST_EVENT, 7)),
    # G(T) is zero at the event of the last time, G(T-) is not
    "event and censoring at the last time": Question("brier", outcomes([1.0, 2, 3, 4, 4], [1, 0, 1, 1, 0], [4])),
    # G of the training data is zero from 2.5 on, and individuals are left
    "training data end early": Question(
        "brier",
        outcomes(PAGE.time, PAGE.event, [3.0], train_time=[1.0, 2, 2.5], train_event=[1, 0, 0]),
    ),
    # 58 of 60 are censored at 1: from then on G is 1/30
    "small G": Question("brier", outcomes([0.5] + [1.0] * 58 + [2.0, 3.0], [1] + [0] * 58 + [1, 1], [2.5])),
    # beside single scores
    "integrated": Question("integrated", TIES),
    "standard errors": Question("standard_errors", TIES),
    "administrative": Question("administrative", PAGE),
    "administrative with drop-outs": Question(
        "administrative",
        outcomes([1.0, 2, 3, 4, 5, 6, 7], [1, 0, 1, 0, 1, 0, 1], [5.5], censoring_time=[9.0, 8, 7, 4, 9, 6, 10]),
    ),
    # for packages without a Brier score
    "censoring": Question("censoring", TIES),
}

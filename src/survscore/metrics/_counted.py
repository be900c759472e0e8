"""Those who are counted at one time, as a regression of their statuses on their predicted risks sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._logistic import LogisticFit, logistic_fit
from survscore._validation import FloatArray
from survscore.metrics.losses import DEFAULT_EPSILON

Vector = NDArray[np.float64]


def log_odds(risk: Vector) -> Vector:
    """Return the log odds of risks, clipped as by the logarithmic loss."""
    clipped = np.clip(risk, DEFAULT_EPSILON, 1 - DEFAULT_EPSILON)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


@dataclass(frozen=True, eq=False)
class Counted:
    """Predicted risks, statuses and weights of those who are counted.

    Attributes
    ----------
    rows : ndarray of int
        Their positions among all.
    risk, event, weight : ndarray
        Predicted probability of the event; status, zero or one; weight, one on average.
    """

    rows: NDArray[np.intp]
    risk: Vector
    event: Vector
    weight: Vector

    @classmethod
    def of(cls, survival: FloatArray, label: NDArray[Any], weight: Vector) -> Counted:
        """Take everybody, with weight 0 for those who are not counted; label 0 is event-free."""
        rows = np.flatnonzero(weight)
        some = weight[rows] / weight.max(initial=0.0)  # before they are added up: they may be as large as numbers go
        risk = 1.0 - np.asarray(survival, dtype=np.float64)[rows]
        return cls(rows, risk, (label[rows] != 0).astype(np.float64), some / some.mean() if rows.size else some)

    @cached_property
    def log_odds(self) -> Vector:
        """The predictions' log odds."""
        return log_odds(self.risk)

    @cached_property
    def statuses(self) -> tuple[int, int]:
        """How many have no event, and how many have it."""
        events = int(np.count_nonzero(self.event))
        return self.rows.size - events, events

    def why_no_regression(self) -> str:
        """Return why no regression of the status can be fitted; nothing if it can."""
        without, with_event = self.statuses
        if with_event == 0 or without == 0:
            return f"{'nobody' if with_event == 0 else 'everybody'} who is counted had the event"
        return ""

    def fit(self, design: Vector, offset: Vector | float = 0.0) -> LogisticFit | None:
        """Regress the statuses on some columns."""
        return logistic_fit(design, self.event, self.weight, offset)

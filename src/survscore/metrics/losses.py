"""Losses: what each individual's prediction costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError
from survscore.metrics.base import Loss, Scale

#: Probabilities closer than this to 0 or 1 count as this far away under the logarithmic loss.
DEFAULT_EPSILON = 1e-7


@dataclass(frozen=True)
class Brier(Loss):
    r""":math:`(1\{T^* > t\} - \pi(t))^2`."""

    name: ClassVar[str] = "brier"
    label: ClassVar[str] = "Brier score"
    scale: ClassVar[Scale] = "log"

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return np.square(1.0 - np.asarray(survival, dtype=np.float64))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return np.square(np.asarray(survival, dtype=np.float64))


@dataclass(frozen=True)
class Log(Loss):
    r"""Minus the binomial log-likelihood, :math:`-\log \pi(t)` or :math:`-\log(1 - \pi(t))`.

    Probabilities are first clipped to [`epsilon`, 1 - `epsilon`], since one impossible prediction
    would otherwise make the whole score infinite.
    """

    epsilon: float = DEFAULT_EPSILON

    name: ClassVar[str] = "log"
    label: ClassVar[str] = "logarithmic loss"
    scale: ClassVar[Scale] = "log"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(self._clipped(survival))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(1.0 - self._clipped(survival))

    def _clipped(self, survival: FloatArray) -> NDArray[np.float64]:
        return np.clip(np.asarray(survival, dtype=np.float64), self.epsilon, 1.0 - self.epsilon)


def check_epsilon(epsilon: float) -> None:
    """Raise unless probabilities can be clipped there."""
    if not 2.0**-53 <= epsilon < 0.5:  # below, 1 - epsilon would be 1 and its loss infinite
        raise InputError(f"epsilon must be at least 2**-53 and below 0.5, not {epsilon}")

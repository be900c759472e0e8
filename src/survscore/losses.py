"""Losses: what a prediction costs once it is known whether the individual is event-free."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survscore._validation import FloatArray, InputError, check_choice

#: Probabilities closer than this to 0 or 1 count as this far away under the logarithmic loss.
DEFAULT_EPSILON = 1e-7


class Loss(ABC):
    r"""The cost of predicting survival :math:`\pi`, for one who is event-free and one who is not; lower is better.

    To add a loss, subclass, give `name` and the two methods, and put the class into `LOSSES`. It then runs in NumPy
    for input of any size; `kernel` is the number of its compiled twin, where there is one.
    """

    name: ClassVar[str]
    #: What it is called in a sentence; by default its name and "loss".
    label: ClassVar[str] = ""
    kernel: ClassVar[int | None] = None
    epsilon: float = 0.0

    @abstractmethod
    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who are event-free."""

    @abstractmethod
    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:
        """Return the loss of those who have had the event."""

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss."""
        return np.where(event_free, self.of_event_free(survival), self.of_event(survival))


@dataclass(frozen=True)
class Brier(Loss):
    r""":math:`(1\{T^* > t\} - \pi(t))^2`."""

    name: ClassVar[str] = "brier"
    label: ClassVar[str] = "Brier score"
    kernel: ClassVar[int | None] = 0

    def __call__(self, survival: FloatArray, event_free: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return each cell's loss: both statuses in one expression."""
        return np.asarray(np.square(event_free - np.asarray(survival, dtype=np.float64)))

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
    kernel: ClassVar[int | None] = 1

    def __post_init__(self) -> None:
        if not 2.0**-53 <= self.epsilon < 0.5:  # below, 1 - epsilon would be 1 and its loss infinite
            raise InputError(f"epsilon must be at least 2**-53 and below 0.5, not {self.epsilon}")

    def of_event_free(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(self._clipped(survival))

    def of_event(self, survival: FloatArray) -> NDArray[np.float64]:  # noqa: D102
        return -np.log(1.0 - self._clipped(survival))

    def _clipped(self, survival: FloatArray) -> NDArray[np.float64]:
        return np.clip(np.asarray(survival, dtype=np.float64), self.epsilon, 1.0 - self.epsilon)


LOSSES: dict[str, type[Loss]] = {Brier.name: Brier, Log.name: Log}


def loss_label(name: str) -> str:
    """Return what the loss of this name is called in a sentence."""
    return (LOSSES[name].label if name in LOSSES else "") or f"{name} loss"


def as_loss(loss: str | Loss) -> Loss:
    """Return a loss by its name, or as it is."""
    if isinstance(loss, Loss):
        return loss
    check_choice("loss", loss, tuple(LOSSES))
    return LOSSES[loss]()

"""Individuals as a net sees them: encoded, labelled, on a device; some of them held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from survscore._validation import InputError
from survscore.models.grid import Status
from survscore.models.losses import log_likelihood_loss


@dataclass(frozen=True)
class Examples:
    """Encoded individuals, on the device where a net is trained or used."""

    numbers: Tensor
    codes: Tensor
    labels: Tensor
    #: Sample weights, one on average; None where all count alike.
    weights: Tensor | None = None

    @classmethod
    def of(
        cls,
        encoded: tuple[NDArray[np.float32], NDArray[np.int64]],
        labels: NDArray[np.int8],
        device: torch.device,
        weights: NDArray[np.float64] | None = None,
    ) -> Self:
        """Put arrays on the device."""
        numbers, codes = (torch.from_numpy(part).to(device) for part in encoded)
        of_mean_one = None
        if weights is not None:
            of_mean_one = torch.from_numpy((weights / weights.mean()).astype(np.float32)).to(device)
        return cls(numbers, codes, torch.from_numpy(labels).to(device), of_mean_one)

    def __len__(self) -> int:
        return self.numbers.shape[0]

    def loss(self, net: nn.Module, rows: Tensor) -> Tensor:
        """Return the mean loss over some rows."""
        numbers, codes, labels = (part.index_select(0, rows) for part in (self.numbers, self.codes, self.labels))
        weights = None if self.weights is None else self.weights.index_select(0, rows)
        return log_likelihood_loss(net(numbers, codes), labels, weights)


def split(
    time: NDArray[np.float64], event: Status, share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train on and rows to validate on, the latter the same share of events, by cause, and of others.

    The individual followed longest, and one event of each cause, always stay in training: the grid ends with the one,
    and without the others there is nothing to learn.
    """
    n = event.size
    order = random.permutation(n)
    if n < (3 if share else 2):
        needs = "training and validation need at least 3, or validation_share=0" if share else "training needs 2"
        raise InputError(f"X has {n} rows (n_samples = {n}); {needs}")
    if not share:
        return np.arange(n), order[:0]
    causes = [event == cause for cause in np.unique(event) if cause]
    free = order[~np.isin(order, [np.argmax(time), *(np.argmax(cause) for cause in causes)])]
    held_out = np.zeros(n, dtype=np.bool_)
    for kind in (*causes, event == 0):
        members = free[kind[free]]
        held_out[members[: round(share * np.count_nonzero(kind))]] = True
    if not held_out.any():
        held_out[free[0]] = True
    rows = np.flatnonzero(~held_out)
    if rows.size < 2:
        raise InputError(f"validation_share leaves {rows.size} of {n} rows for training, which needs 2")
    return rows, np.flatnonzero(held_out)

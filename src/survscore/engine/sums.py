"""First moments: sums of weighted losses and of weights, block by block; they merge by adding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.engine.blocks import Block
from survscore.metrics import Loss
from survscore.weighting.stretches import Stretches, TimeIndex


@dataclass(frozen=True, eq=False)
class Sums:
    """What scores are made of.

    Attributes
    ----------
    losses : ndarray of shape (2, models, metrics, weightings, times)
        Weight times loss, in the first and in the second stretch.
    weights : ndarray of shape (3, weightings, times)
        Weights in the first stretch, in the second while event-free, in the second with event.
    squares : ndarray of shape (weightings, times)
        Squared weights.
    events : ndarray of shape (weightings, times)
        How many are counted with event.
    """

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    squares: NDArray[np.float64]
    events: NDArray[np.float64]

    @classmethod
    def zero(cls, n_models: int, n_metrics: int, n_weightings: int, n_times: int) -> Sums:
        """Return the sums over nobody."""
        return cls(
            np.zeros((2, n_models, n_metrics, n_weightings, n_times)),
            np.zeros((3, n_weightings, n_times)),
            np.zeros((n_weightings, n_times)),
            np.zeros((n_weightings, n_times)),
        )

    def __add__(self, other: Sums) -> Sums:
        with np.errstate(invalid="ignore"):  # an infinite weight makes its time undefined, which is meant
            pairs = zip(vars(self).values(), vars(other).values(), strict=True)
            return Sums(*(mine + theirs for mine, theirs in pairs))


def update(block: Block, index: TimeIndex, losses: Sequence[Loss], stretches: Sequence[Stretches]) -> Sums:
    """Return the sums over a block, in NumPy: a loss under a weighting, as the formulas say."""
    times, m = index.times, index.times.size
    parts = [one.rows(block.rows) for one in stretches]
    before = index.before_time[block.rows]
    cells = [part.cells(times) for part in parts]
    event = np.arange(m) >= parts[0].event_from(before, m)[:, None]
    sums = Sums.zero(len(block.curves), len(losses), len(stretches), m)
    with np.errstate(invalid="ignore"):
        for a, curves in enumerate(block.curves if losses else ()):
            survival = curves.at(times).astype(np.float64, copy=False)
            for k, loss in enumerate(losses):
                values = loss(survival, ~event)
                for q, pair in enumerate(cells):
                    for stretch, weight in enumerate(pair):
                        sums.losses[stretch, a, k, q] = np.einsum("ij,ij->j", weight, values)
        for q, (early, late) in enumerate(cells):
            sums.weights[0, q] = early.sum(axis=0)
            sums.weights[1, q] = np.where(event, 0.0, late).sum(axis=0)
            sums.weights[2, q] = np.where(event, late, 0.0).sum(axis=0)
            sums.events[q] = np.count_nonzero(event & (late != 0), axis=0)
            sums.squares[q] = np.einsum("ij,ij->j", early, early) + np.einsum("ij,ij->j", late, late)
    return sums

"""How much of a difference between models comes from reading their curves between grid points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survscore.engine.blocks import Predictions, PushedCurves

Values = NDArray[np.float64]
#: A time is a grid point if it is no further from it than this share of the grid's step.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class InterpolationEffect:
    """By how much interpolation may have changed scores.

    Straight lines are above a convex curve for each individual alike. So even an error in the seventh decimal is
    significantly different from zero, and a model from itself on another grid.
    """

    #: For each score, the null model's last. Shape (models, times).
    changes: Values
    #: Models of the same number have the same grid and interpolation, so that none is favoured.
    grids: tuple[int, ...]

    def of(self, a: int, b: int) -> Values:
        """Return by how much the difference of two models may have changed, at each time; the null model is exact."""
        alike = max(a, b) >= len(self.grids) or self.grids[a] == self.grids[b]
        return np.asarray(0.0 * self.changes[a] if alike else self.changes[a] + self.changes[b])

    def exceeds(self, scores: Values, r: int) -> bool:
        """Whether some difference to model r is no larger than that."""
        changes = np.array([self.of(a, r) for a in range(len(scores))])
        return bool(((changes > 0) & (np.abs(scores - scores[r]) <= changes)).any())


@dataclass(frozen=True, eq=False)
class InterpolatedModels:
    """Which models are read between grid points, and which of them alike."""

    models: Mapping[str, Predictions]
    grids: tuple[int, ...]
    #: Where each model is read between grid points, and the user did not name the interpolation. Shape (models, times).
    between: NDArray[np.bool_]

    @classmethod
    def of(cls, models: Mapping[str, Predictions], times: Values) -> InterpolatedModels:
        """Look at how models are read at some times."""
        kinds = [(curves.interpolation, curves.times.tobytes()) for curves in models.values()]
        weights = np.array([curves.interpolate(times).weight for curves in models.values()])
        unnamed = np.array([curves.default_interpolation for curves in models.values()])
        between = unnamed[:, None] & (np.minimum(weights, 1.0 - weights) > ROUNDING)
        return cls(models, tuple(map(kinds.index, kinds)), between)

    def coarser(self, times: Values) -> Iterator[dict[str, Predictions]]:
        """Yield the models read from every second of their grid points, in two ways; none where all are read alike.

        The error of a straight line grows with the square of its length. On half as fine a grid it is at least twice as
        large, and three times by one of the two ways: so the change is no smaller than the error. That is how numerical
        integration estimates its error, by doubling the step. Of curves that are not smooth, it shows how rough
        they are.
        """
        if len(set(self.grids)) < 2 or not self.between.any():
            return
        for first in (0, 1):
            yield {
                name: curves if isinstance(curves, PushedCurves) or not between.any() else curves.thinned(times, first)
                for (name, curves), between in zip(self.models.items(), self.between, strict=True)
            }

    def effect(self, scores: Values, coarser: Sequence[Values]) -> InterpolationEffect:
        """Return the larger of the changes of the scores, at the times at which models are read between grid points."""
        changes = np.nan_to_num(np.abs(np.array(coarser) - scores)).max(axis=0)
        changes[: len(self.between)] *= self.between
        return InterpolationEffect(changes, self.grids)

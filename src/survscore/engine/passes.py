"""Passes over the rows: which models' curves a kernel reads together, and which sums of squares it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from survscore.curves import SurvivalCurves
from survscore.engine import _kernels, compiled
from survscore.engine.moments import ScoredLoss, pair
from survscore.weighting.stretches import TimeIndex

# The places of a kernel's sums: squares of the first and second model, of their difference, of the prediction that is
# the same for everybody, and of its differences to the two.
FIRST, SECOND, DIFFERENCE, CONSTANT, FIRST_TO_CONSTANT, SECOND_TO_CONSTANT = range(6)
OF_MODELS = {FIRST: (0, 0), SECOND: (1, 1), DIFFERENCE: (0, 1), CONSTANT: (2, 2), FIRST_TO_CONSTANT: (0, 2),
             SECOND_TO_CONSTANT: (1, 2)}  # fmt: skip


@dataclass(frozen=True)
class Pass:
    """One pass over the rows: up to two models and the constant one, and which of the sums are wanted."""

    first: int
    second: int  # -1: none
    constant: int  # -1: none
    wanted: tuple[int, ...]

    @property
    def models(self) -> tuple[int, int, int]:
        """Which models, -1 for none."""
        return (self.first, self.second, self.constant)

    @property
    def n_curves(self) -> int:
        """How many models' curves are read."""
        return 1 + (self.second >= 0)

    @property
    def n_models(self) -> int:
        """How many models there are, with the constant one."""
        return self.n_curves + (self.constant >= 0)

    def place(self, which: int) -> int:
        """Return which pair of models a sum is of."""
        a, b = OF_MODELS[which]
        return pair(self.models[a], self.models[b])


def passes(n_curves: int, constant: int) -> list[Pass]:
    """Return passes that give every square and every squared difference once."""
    if n_curves == 1:
        return [Pass(0, -1, constant, (FIRST, CONSTANT, FIRST_TO_CONSTANT) if constant >= 0 else (FIRST,))]
    found = []
    for second in range(1, n_curves):
        for first in range(second):
            wanted = [DIFFERENCE]
            if first == 0:
                wanted += [FIRST, SECOND] if second == 1 else [SECOND]
                if constant >= 0:
                    wanted += [CONSTANT, FIRST_TO_CONSTANT] if second == 1 else []
                    wanted += [SECOND_TO_CONSTANT]
            found.append(Pass(first, second, constant if first == 0 else -1, tuple(wanted)))
    return found


def curves_of(
    curves: Sequence[SurvivalCurves], one: Pass, rows: slice, index: TimeIndex
) -> tuple[_kernels.Curves, _kernels.Curves]:
    """Return the curves of some rows as kernels take them; the first twice, if there is no second model."""
    first = compiled.as_curves(curves[one.first][rows], index)
    return first, first if one.second < 0 else compiled.as_curves(curves[one.second][rows], index)


def constant_of(scored: ScoredLoss, one: Pass) -> _kernels.Constant:
    """Return the losses of the prediction that is the same for everybody."""
    if one.constant < 0:
        return _kernels.Constant(np.zeros(0), np.zeros(0))
    return _kernels.Constant(*scored.constant_losses(scored.constants[0]))


def cut(n: int, at_most: int) -> list[slice]:
    """Cut a range into so many, or fewer, of about equal length."""
    edges = np.linspace(0, n, min(at_most, n) + 1).astype(np.intp)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]

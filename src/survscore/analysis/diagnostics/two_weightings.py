"""Does IPCW rate a model better than the administrative score does? Both are means over the same individuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.engine.evaluation import Evaluation
from survscore.engine.inputs import NULL_MODEL
from survscore.engine.second_moments import MeanInfluences
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups
from survscore.outcomes import Outcomes
from survscore.weighting import IPCW, Administrative


@dataclass(frozen=True, eq=False)
class Contrast:
    """A model against another, by the mean Brier score under both weightings, and how these differ."""

    model: str
    reference: str
    ipcw: Estimate
    administrative: Estimate
    difference: Estimate

    @property
    def contradicts(self) -> bool:
        """Whether both weightings are sure which is better, and disagree."""
        first, second = self.ipcw, self.administrative
        return (first.upper < 0 < second.lower) or (second.upper < 0 < first.lower)


def contrasts_of(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: IPCW,
    times: NDArray[np.float64] | None,
    groups: Groups | None,
    level: float,
) -> tuple[list[Contrast], tuple[float, float]]:
    """Return every model against the null model, then all other pairs, and the range of time."""
    evaluation = Evaluation.of(
        y,
        models,
        weighting=[weighting, Administrative()],
        times=times,
        null=NULL_MODEL not in models,
        level=level,
        needs_numpy="diagnose",
    )
    (ipcw, administrative), time_range = evaluation.mean_influences()
    names = evaluation.names
    null = names.index(NULL_MODEL)
    others = [a for a in range(len(names)) if a != null]
    pairs = [(a, null) for a in others] + list(combinations(others, 2))

    def contrast(a: int, b: int) -> Contrast:
        first, second = _difference(ipcw, a, b), _difference(administrative, a, b)
        both = (first[0] - second[0], first[1] - second[1], first[2] + second[2])
        found = [Estimate.of(*one[:2], groups, level, added_variance=one[2]) for one in (first, second, both)]
        return Contrast(names[a], names[b], *found)

    return [contrast(a, b) for a, b in pairs], time_range


def _difference(scored: MeanInfluences, a: int, b: int) -> tuple[float, NDArray[np.float64], float]:
    """Return the difference of two models' mean scores, its influences, and the variance of G of others in it."""
    added = float(scored.steps @ np.square(scored.moved[a] - scored.moved[b]))
    return float(scored.scores[a] - scored.scores[b]), scored.values[a] - scored.values[b], added

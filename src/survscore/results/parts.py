"""A projected score in two parts: of those who could be followed to t, and of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from survscore._validation import shown
from survscore.engine.evaluation import ScoreArrays
from survscore.results.long_tables import names_of, padded, stacked
from survscore.results.rounding import Number
from survscore.results.tables import Line, Part, PrintedAsTables, Tables, spread_over

if TYPE_CHECKING:
    import pandas as pd

MOST_TIMES = 4
LEGEND = "observed: C* >= t; projected: C* < t"


def part_notes(scored: ScoreArrays, models: Sequence[str], when: str, weights: NDArray[np.float64]) -> list[str]:
    """Return a line for each of the two parts of scores, with their proportions; none where all have C* >= t.

    `weights` are those of the times in a mean, or 1 at one time.
    """
    parts = scored.parts
    if parts is None:
        return []
    weights = weights[: parts.share.size]
    share, means = float(parts.share @ weights), parts.mean(parts.scores, weights)
    lines = []
    for place, (name, proportion) in enumerate((("observed (C* >= t", share), ("projected (C* < t", 1.0 - share))):
        scores = zip(models, means[:, place], strict=True)
        written = [f"{shown(model)} {score:.4f}" for model, score in scores if not np.isnan(score)]
        lines += [f"{when}, {name}, {100 * proportion:.0f} %): {', '.join(written)}"] if written else []
    return lines if share < 1 else []


@dataclass(frozen=True, eq=False, repr=False)
class ScoreParts(PrintedAsTables):
    r"""Observed and projected parts of scores; prints as a table.

    .. math:: \mathrm{score} = P(C^* \ge t) \times \mathrm{observed} + P(C^* < t) \times \mathrm{projected}

    Without drop-outs, the observed part is the administrative score. A model that is good for those who could be
    followed, and bad for the others, probably encodes the entry date.

    Attributes
    ----------
    models : tuple of str
        Their names, the null model last; none of a single score.
    times : ndarray
        The evaluation times.
    scored : tuple of ScoreArrays
        The numbers, for every metric under every weighting that has parts.

    Examples
    --------
    >>> import survscore as ss
    >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
    >>> score = ss.brier_score(sample.outcomes, sample.survival([50]), weighting="projected", times=[50])
    >>> print(score.parts)
    observed: C* >= t; projected: C* < t
    <BLANKLINE>
    Brier score (lower is better); projected (own ranks)
    time   score  observed  projected  share observed
    -------------------------------------------------
    50    0.1098    0.1097     0.1100             46%
    >>> score.parts.to_frame().round(4).drop(columns=["metric", "weighting"])
       time   score  share_observed  observed  projected
    0  50.0  0.1098           0.463    0.1097       0.11
    """

    models: tuple[str, ...]
    times: NDArray[np.float64]
    scored: tuple[ScoreArrays, ...]

    @classmethod
    def of(cls, models: tuple[str, ...], times: NDArray[np.float64], scored: tuple[ScoreArrays, ...]) -> Self | None:
        """Take those results that have parts; None where none has."""
        with_parts = tuple(arrays for arrays in scored if arrays.parts is not None)
        return cls(models, times, with_parts) if with_parts else None

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table: metric, weighting, model, time, score, share_observed, observed, projected."""
        rows = []
        for scored in self.scored:
            for a in range(len(scored.scores)):
                named = {"model": self.models[a]} if self.models else {}
                columns = {"time": self.times, "score": scored.scores[a], **self._parts(scored, a)}
                values = {name: padded(column, self.times.size) for name, column in columns.items()}
                rows.append({**names_of(scored), **named, **values})
        return stacked(rows)

    @staticmethod
    def _parts(scored: ScoreArrays, a: int) -> dict[str, NDArray[np.float64]]:
        if scored.parts is None:
            raise TypeError("there are no parts")
        share = np.where(np.isnan(scored.scores[a]), np.nan, scored.parts.share)
        return {"share_observed": share, "observed": scored.parts.observed[a], "projected": scored.parts.projected[a]}

    def _printed(self) -> Tables:
        return Tables(LEGEND, [self._part(scored) for scored in self.scored])

    def _part(self, scored: ScoreArrays) -> Part:
        lines = []
        for j in spread_over(np.flatnonzero(~np.isnan(scored.scores).all(axis=0)), MOST_TIMES):
            first = f"{self.times[j]:g}"
            for a in range(len(scored.scores)):
                part = {name: float(values[j]) for name, values in self._parts(scored, a).items()}
                share = part["share_observed"]
                numbers = (Number(scored.scores[a, j]), Number(part["observed"]), Number(part["projected"]))
                words = (first, shown(self.models[a])) if self.models else (first,)
                lines.append(Line(words, numbers, (f"{share:.0%}",)))
                first = ""
        words = ("time", "model") if self.models else ("time",)
        header = (*words, "score", "observed", "projected", "share observed")
        title = scored.title
        return Part.of(title, header, lines, [], "l" * len(words) + "rrrr")

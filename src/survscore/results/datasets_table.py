"""What `across_datasets` returns: ranks of models, differences by data set, and their random-effects means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from survscore._validation import plural, shown
from survscore.inference.random_effects import RandomEffects
from survscore.results.printing import verdict_text
from survscore.results.rounding import Number, decimals, p_text
from survscore.results.tables import Line, Part, PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelRank:
    """How a model ranks over data sets."""

    model: str
    mean_rank: float
    n_best: float  # in how many data sets it is the best; ties are shared
    n: int


@dataclass(frozen=True)
class DatasetDifference:
    """The difference of a model to the reference in one data set."""

    dataset: str
    model: str
    estimate: float
    difference: float
    se: float
    lower: float
    upper: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class AcrossDatasets(PrintedAsTables):
    """Result of `across_datasets`; prints as tables.

    Attributes
    ----------
    metric, label, weighting, direction, reference : str
        What was compared, and with what; empty where data frames do not say.
    datasets : tuple of str
        Their names.
    level : float
        Of the intervals.
    ranks : tuple of ModelRank
        Mean ranks, the best first.
    friedman_p_value : float
        Of the hypothesis that all models rank alike.
    differences : tuple of DatasetDifference
        By model, then by data set.
    means : dict of str to RandomEffects
        For each model but the reference, the random-effects mean of its differences.
    verdicts : dict of str to str
        Whether that is better, worse or undecided.
    """

    metric: str
    label: str
    weighting: str
    direction: str
    reference: str
    datasets: tuple[str, ...]
    level: float
    ranks: tuple[ModelRank, ...]
    friedman_p_value: float
    differences: tuple[DatasetDifference, ...]
    means: Mapping[str, RandomEffects]
    verdicts: Mapping[str, str]

    def to_frame(self) -> pd.DataFrame:
        """Return the random-effects means: one row for each model but the reference."""
        import pandas as pd

        rows = [
            {"model": model, "reference": self.reference, **asdict(mean), "verdict": self.verdicts[model]}
            for model, mean in self.means.items()
        ]
        return pd.DataFrame(rows)

    def _printed(self) -> Tables:
        ranked = [
            Line((shown(one.model),), (Number(one.mean_rank),), (f"{one.n_best:g}",), "rank") for one in self.ranks
        ]
        note = f"Friedman test of equal ranks: p {_of_p(self.friedman_p_value)}"
        parts = [
            Part.of("mean rank, 1 is best", ("", "mean rank", "best in"), ranked, [note], "lrr", decimals=decimals)
        ]
        parts += [self._of_model(model, mean) for model, mean in self.means.items()]
        what = f"{self.label} ({self.direction} is better)" if self.metric else f"{self.direction} is better"
        weighting = f"; {self.weighting}" if self.weighting else ""
        return Tables(
            f"{plural(len(self.datasets), 'data set')}; {what}{weighting}; {100 * self.level:g} % intervals", parts
        )

    def _of_model(self, model: str, mean: RandomEffects) -> Part:
        lines = [
            Line(
                (shown(one.dataset),),
                (Number(one.difference, one.lower, one.upper, se=one.se, sign="+"),),
                (p_text(one.p_value), ""),
            )
            for one in self.differences
            if one.model == model
        ]
        total = Number(mean.estimate, mean.lower, mean.upper, se=mean.se, sign="+")
        lines.append(Line(("random effects",), (total,), (p_text(mean.p_value), verdict_text(self.verdicts[model]))))
        notes = ["no standard errors, so that there is no mean"] if mean.n < 2 else self._heterogeneity(mean)
        title = f"{shown(model)}, difference to {shown(self.reference)}"
        return Part.of(title, ("", "difference", "p", ""), lines, notes, "lrrl", decimals=decimals)

    def _heterogeneity(self, mean: RandomEffects) -> list[str]:
        places = decimals([mean.se])
        notes = [
            f"heterogeneity: tau {mean.tau:.{places}f}, I^2 {mean.i_squared:.0%}, Q {mean.q:.1f} with {mean.n - 1} "
            f"degrees of freedom, p {_of_p(mean.q_p_value)}"
        ]
        if mean.prediction_lower == mean.prediction_lower:
            limits = f"{mean.prediction_lower:+.{places}f} to {mean.prediction_upper:+.{places}f}"
            notes.append(f"in another data set, a difference of {limits} is expected ({100 * self.level:g} %)")
        return notes


def _of_p(value: float) -> str:
    text = p_text(value)
    return text if text.startswith("<") else f"= {text}" if text else "unknown"

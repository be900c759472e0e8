"""All models by all losses, at each time and on average, as tables and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from survscore._progress import Progress, silent
from survscore.comparison import Comparison, IntegratedComparison, compare
from survscore.curves import SurvivalCurves
from survscore.losses import Loss, loss_label
from survscore.outcomes import Outcomes
from survscore.reports import words

if TYPE_CHECKING:
    import pandas as pd

Table = dict[str, list[Any]]
Span = tuple[float | None, float | None]

WHOLE = (None, None)


@dataclass(frozen=True, eq=False)
class Compared:
    """The comparisons by each loss, and their means over a range of time; none, where there is one time only."""

    comparisons: list[Comparison]
    means: list[IntegratedComparison]

    @property
    def range(self) -> tuple[float, float] | None:
        """Over which time the means are."""
        return self.means[0].range if self.means else None

    def tables(self) -> dict[str, Table]:
        """Return scores, contrasts, means with skill, and verdicts, for all losses."""
        return {
            "scores": stacked([comparison.scores for comparison in self.comparisons]),
            "contrasts": stacked([comparison.contrasts for comparison in self.comparisons]),
            "means": stacked([_with_skill(whole) for whole in self.means]),
            "verdicts": stacked([_verdicts(comparison, contrasts) for comparison, contrasts in self._judged()]),
        }

    def disagreements(self) -> dict[str, Any]:
        """Return where the weightings rank models differently: in words for the means, as a table for single times."""
        contradictions: dict[str, list[str]] = {}
        unsure: dict[str, list[str]] = {}
        unknown: dict[str, bool] = {}
        for comparison, contrasts in self._judged():
            sentences: list[tuple[str | None, str | None]] = []
            for model, rows in contrasts.groupby("model", sort=False):
                found = {row["weighting"]: words.outcome(row) for row in records(rows)}
                names = (str(model), comparison.reference, found)
                sentences.append((words.contradiction(*names), words.unsure(*names)))
            unknown[comparison.loss] = any(words.outcome(row) == "unknown" for row in records(contrasts))
            contradictions[comparison.loss] = [one for one, _ in sentences if one]
            unsure[comparison.loss] = [one for _, one in sentences if one]
        tables = [comparison.disagreements().assign(loss=comparison.loss) for comparison in self.comparisons]
        ordered = [table[["loss", *table.columns.drop("loss")]] for table in tables]
        return {
            "contradictions": contradictions,
            "unsure": unsure,
            "unknown": unknown,
            "table": stacked(ordered),
        }

    def _judged(self) -> list[tuple[Comparison, pd.DataFrame]]:
        """Return what verdicts go by: the contrasts of the means, or those at the one time."""
        of_means = [whole.contrasts for whole in self.means]
        contrasts = of_means or [comparison.contrasts.drop(columns="loss") for comparison in self.comparisons]
        pairs = zip(self.comparisons, contrasts, strict=True)
        return [(comparison, table if table is not None else comparison.contrasts) for comparison, table in pairs]


def compare_losses(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    losses: Sequence[str | Loss],
    *,
    times: ArrayLike | None,
    span: Span,
    progress: Progress = silent,
    **options: Any,
) -> Compared:
    """Compare models by several losses; `options` are those of `compare`."""
    comparisons = []
    for done, loss in enumerate(losses):
        name = loss if isinstance(loss, str) else loss.name
        progress(done, len(losses), f"comparing by {loss_label(name)}")
        comparisons.append(compare(y, models, loss=loss, times=times, **options))
    one_time = comparisons[0].times.size == 1 and span == WHOLE
    return Compared(comparisons, [] if one_time else [one.integrated(*span, nan="stop") for one in comparisons])


def _with_skill(whole: IntegratedComparison) -> pd.DataFrame:
    table: pd.DataFrame = whole.scores.assign(skill=math.nan)
    if whole.skill is not None:
        found = {(row.weighting, row.model): row.skill for row in whole.skill.itertuples()}
        table["skill"] = [found.get((row.weighting, row.model), math.nan) for row in table.itertuples()]
    table.insert(0, "loss", whole.loss)
    return table


def _verdicts(comparison: Comparison, contrasts: pd.DataFrame) -> pd.DataFrame:
    rows = records(contrasts)
    table = contrasts.drop(columns="loss", errors="ignore").assign(
        outcome=[words.outcome(row) for row in rows],
        sentence=[words.verdict(row, comparison.loss, comparison.level) for row in rows],
    )
    table.insert(0, "loss", comparison.loss)
    return table


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    found: list[Any] = frame.to_dict("records")
    return found


def stacked(frames: Sequence[pd.DataFrame]) -> Table:
    """Return tables with the same columns as one."""
    import pandas as pd

    full = [frame for frame in frames if len(frame)] or list(frames[:1])
    return as_table(pd.concat(full, ignore_index=True)) if full else {}


def as_table(frame: pd.DataFrame) -> Table:
    """Return a data frame as lists of plain values, None for NaN."""
    return {str(name): [plain(value) for value in frame[name].tolist()] for name in frame.columns}


def plain(value: Any) -> Any:
    """Return a number that JSON knows, or None where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

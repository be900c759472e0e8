"""The long table behind comparisons, with segments or without, at each time or as means over time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore.engine.evaluation import ScoreArrays
from survscore.inference.multiplicity import Correction, adjusted
from survscore.results.estimates import Columns, Estimates, has_skill, verdicts_by_p
from survscore.results.tables import PrintedAsTables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.results.comparison import Comparison

Key = tuple[str, ...]
Quantity = Literal["score", "difference", "skill"]
#: A mean over time: the weight of each time, and from when to when.
MeanOver = tuple[NDArray[np.float64], tuple[float, float]]
ALL = "(all)"


def stacked(parts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one table of parts, each of which gives its columns: vectors of one length, or one value for all rows.

    What some parts lack is missing there. Columns are joined before a table is made of them: with a table for each
    part, a third of the time of a small comparison went into these.
    """
    import pandas as pd

    sizes = [max(np.size(values) for values in part.values()) for part in parts]
    names = dict.fromkeys(name for part in parts for name in part)
    columns = {
        name: [_column(part.get(name, np.nan), size) for part, size in zip(parts, sizes, strict=True)] for name in names
    }
    return pd.DataFrame({name: np.concatenate(several) for name, several in columns.items()})


def _column(values: Any, size: int) -> NDArray[Any]:
    """Return a column of a part; texts as objects, so that joining them with others keeps both."""
    array = np.asarray(values)
    return np.broadcast_to(array.astype(object) if array.dtype.kind == "U" else array, size)


def names_of(scored: ScoreArrays) -> Columns:
    """Return the columns that say what scores are: the metric, under competing risks of which cause, the weighting."""
    return {"metric": scored.metric, **cause_column(scored.cause), "weighting": scored.weighting}


def cause_column(cause: str) -> Columns:
    """Return the column that names the cause of scores, "all" for multi-class; none without competing risks."""
    return {"cause": cause} if cause else {}


def padded(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return values at the scored times as values at all times."""
    missing = size - values.size
    if not missing:
        return values
    filler: Any = {"O": "unknown", "b": False}.get(values.dtype.kind, np.nan)  # objects are verdicts
    return np.concatenate((values, np.full(missing, filler)))


@dataclass(frozen=True, eq=False)
class LongTable:
    """What to tabulate, one block of rows for each segment, metric, weighting and model."""

    comparisons: Mapping[Key, Comparison]  # by the labels of the segment; the first is that of all individuals
    by: tuple[str, ...] = ()  # names of the segmenting columns
    over: Mapping[str, MeanOver] | None = None  # for means over time, the range by metric
    correction: Correction = "holm"  # how p-values of segments allow for their number
    n_spanning: int | None = 0  # how many groups have individuals in several segments; None where that is not known

    @property
    def total(self) -> Comparison:
        """The comparison of all individuals."""
        return next(iter(self.comparisons.values()))

    def estimates(self, scored: ScoreArrays) -> Estimates:
        """Return what is tabulated of scores by one metric under one weighting."""
        return Estimates(scored, self.total.level, None if self.over is None else self.over[scored.metric][0])

    def table(self, quantity: Quantity) -> pd.DataFrame:
        """Return the rows of a quantity; its values are in the column of that name.

        In a segment, limits and p-values are given only where they are reliable; see `SegmentedComparison`.
        """
        if quantity == "skill":
            self.total.null_index()  # or raise
        blocks = list(self._blocks(quantity))
        if blocks:
            table = stacked(blocks)
        else:  # nothing to compare with: the columns alone
            scored = self.total.scored[0]
            table = stacked([self._block(quantity, next(iter(self.comparisons)), scored, scored, 0)]).iloc[:0]
        if self.by:
            self._judge(table, quantity)
        return table

    def block(self, scored: ScoreArrays, labels: Columns, columns: Columns) -> Columns:
        """Return numbers with the metric, the weighting, the labels such as the model, and the time or the range."""
        names = {**names_of(scored), **labels}
        if self.over is None:
            by_time = {name: padded(values, self.total.times.size) for name, values in columns.items()}
            return {**names, "time": self.total.times, **by_time}
        first, last = self.over[scored.metric][1]
        return {**names, **columns, "from": first, "to": last}

    def _blocks(self, quantity: Quantity) -> Iterator[Columns]:
        skip = {"score": None, "difference": self.total.reference, "skill": self.total.null}[quantity]
        for key, comparison in self.comparisons.items():
            for scored, of_total in zip(comparison.scored, self.total.scored, strict=True):
                if quantity == "skill" and not has_skill(scored):
                    continue
                for a, name in enumerate(comparison.models):
                    if name != skip:
                        yield self._block(quantity, key, scored, of_total, a)

    def _block(self, quantity: Quantity, key: Key, scored: ScoreArrays, of_total: ScoreArrays, a: int) -> Columns:
        total, estimates = self.total, self.estimates(scored)
        r = total.models.index(total.reference)
        if quantity == "score":
            estimated = {
                **estimates.score(a),
                **(estimates.counts() if self.over is None else {}),
                **estimates.bounds(a, a),
            }
        elif quantity == "difference":
            estimated = {**estimates.difference(a, r), **estimates.bounds(a, r)}
        else:
            estimated = estimates.skill(a, total.null_index())
        named: Columns = {quantity if name == "estimate" else name: values for name, values in estimated.items()}
        if self.by and self.over is not None:
            models = [a, r] if quantity == "difference" else [a]
            reliable = bool(estimated["reliable"][0])
            named["reason"] = estimates.reason(models, of_difference=quantity != "score", reliable=reliable)
        labels = {"model": total.models[a]} | ({"reference": total.reference} if quantity == "difference" else {})
        return {**dict(zip(self.by, key, strict=True)), **self.block(of_total, labels, named)}

    def _judge(self, table: pd.DataFrame, quantity: Quantity) -> None:
        """Leave out limits of segments that are not reliable, and judge differences by adjusted p-values."""
        # every segment has the same rows in the same order, the total first
        of_parts = np.arange(len(table)) >= len(table) // len(self.comparisons)
        table.loc[of_parts & ~table["reliable"].to_numpy(), ["lower", "upper"]] = np.nan
        if quantity != "difference":
            return
        table.loc[of_parts & ~table["reliable"].to_numpy(), "p_value"] = np.nan
        p_adjusted = table["p_value"].to_numpy(copy=True)
        by_part = p_adjusted[of_parts].reshape(len(self.comparisons) - 1, -1)
        p_adjusted[of_parts] = adjusted(by_part, self.correction).reshape(-1)
        table.insert(list(table).index("p_value") + 1, "p_adjusted", p_adjusted)
        directions = {scored.metric: scored.direction for scored in self.total.scored}
        rows = table[of_parts]
        table.loc[of_parts, "verdict"] = verdicts_by_p(
            rows["difference"].to_numpy(),
            p_adjusted[of_parts],
            rows["reliable"].to_numpy(),
            [directions[metric] for metric in rows["metric"]],
            self.total.level,
        )


class Tabulated(PrintedAsTables):
    """A result that is a long table: of a comparison, with segments or without, at each time or as means over time."""

    @abstractmethod
    def _table(self) -> LongTable:
        """Return what the tables are made from."""

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: metric, weighting, model, time, score, se, lower, upper, reliable, and counts of individuals.

        Under competing risks, the cause follows the metric, here and in all tables: "all" for multi-class scores.
        Counts are n_counted, n_events and n_effective; with groups also n_groups and largest_share. Where individuals
        dropped out, there are bound_lower and bound_upper. By segment, the segmenting columns come first. Means over
        time have the range (from, to) in place of time and counts; by segment, also the reason why one is missing.
        """
        return self._table().table("score")

    @property
    def contrasts(self) -> pd.DataFrame:
        """Long table: metric, weighting, model, reference, time, difference, se, interval, p_value, verdict, reliable.

        Where individuals dropped out, also bound_lower and bound_upper of the difference, and bound_p_value: the
        largest p-value over all that can have happened to them (NaN where only sums were kept, as by `evaluate`). By
        segment, also p_adjusted.
        """
        return self._table().table("difference")

    @property
    def skill(self) -> pd.DataFrame:
        """Long table of skill scores, 1 - score / null score.

        Columns: metric, weighting, model, time, skill, se, lower, upper, reliable. Only for metrics of which lower
        values are better, and that the null model has.
        """
        return self._table().table("skill")

    def to_frame(self) -> pd.DataFrame:
        """Return the contrasts."""
        return self._table().table("difference")

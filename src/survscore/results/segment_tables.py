"""Long tables of a total and its segments: one rule for what has an interval, and p-values for many segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from survscore.engine.evaluation import Scored
from survscore.inference.intervals import few_for_score
from survscore.inference.multiplicity import Correction, adjusted
from survscore.inference.support import FEW_FOR_DIFFERENCE, Support
from survscore.metrics import Direction, sides
from survscore.results.comparison import (
    Columns,
    Comparison,
    MeanOver,
    bound_columns,
    contrast_columns,
    has_skill,
    mean_where_defined,
    padded,
    score_columns,
    skill_columns,
)
from survscore.results.segment_labels import ALL, Key

if TYPE_CHECKING:
    import pandas as pd

TOO_FEW = "too few"


class Look(Protocol):
    """At what of a comparison to look: at every time, or at means over time."""

    def of(self, one: Scored) -> Scored:
        """Return what is looked at, in the form of scores at times."""

    def before(self, metric: str) -> Columns:
        """Return the columns before the numbers."""

    def after(self, metric: str) -> Columns:
        """Return the columns after the numbers."""

    @property
    def size(self) -> int:
        """How many rows a model has."""


@dataclass(frozen=True, eq=False)
class ByTime:
    """At every time."""

    times: NDArray[np.float64]

    def of(self, one: Scored) -> Scored:  # noqa: D102
        return one

    def before(self, metric: str) -> Columns:  # noqa: D102
        return {"time": self.times}

    def after(self, metric: str) -> Columns:  # noqa: D102
        return {}

    @property
    def size(self) -> int:  # noqa: D102
        return self.times.size


@dataclass(frozen=True, eq=False)
class Means:
    """At means over one range of time for all segments, by metric; NaN where a segment has no score within it."""

    over: Mapping[str, MeanOver]

    def of(self, one: Scored) -> Scored:  # noqa: D102
        seen: Scored = mean_where_defined(one, self.over[one.metric][0])
        return seen

    def before(self, metric: str) -> Columns:  # noqa: D102
        return {}

    def after(self, metric: str) -> Columns:  # noqa: D102
        first, last = self.over[metric][1]
        return {"from": first, "to": last}

    @property
    def size(self) -> int:  # noqa: D102
        return 1


@dataclass(frozen=True, eq=False)
class SegmentTables:
    """What to tabulate: a total and its parts by their labels, looked at in one way."""

    by: tuple[str, ...]
    total: Comparison
    parts: Mapping[Key, Comparison]
    correction: Correction
    look: Look

    def scores(self) -> pd.DataFrame:
        """Return the scores of every model."""

        def columns(one: Scored, a: int) -> Columns:
            support = one.support
            numbers: Columns = {}
            if isinstance(self.look, ByTime):
                numbers = {
                    "n_counted": support.n_counted, "n_events": support.n_events, "n_effective": support.n_effective
                }  # fmt: skip
                if support.grouped:
                    numbers |= {"n_groups": support.units.counted, "largest_share": support.units.largest_share}
            return {**score_columns(one, a, self.total.level), **numbers, **bound_columns(one, a, a)}

        return self._table(columns, lambda one: few_for_score(one.scale))

    def contrasts(self) -> pd.DataFrame:
        """Return the differences of every model to the reference."""
        r = self.total.models.index(self.total.reference)

        def columns(one: Scored, a: int) -> Columns:
            found = contrast_columns(one, a, r, self.total.level)
            verdict, reliable = found.pop("verdict"), found.pop("reliable")
            judged = {"p_adjusted": found["p_value"], "verdict": verdict, "reliable": reliable}
            return {**found, **judged, **bound_columns(one, a, r)}

        table = self._table(columns, lambda _: FEW_FOR_DIFFERENCE, skip=self.total.reference, against=True)
        return self._judged(table)

    def skill(self) -> pd.DataFrame:
        """Return the skill scores."""
        null = self.total.null_index()

        def columns(one: Scored, a: int) -> Columns:
            return skill_columns(one, a, null, self.total.level)

        return self._table(columns, lambda _: FEW_FOR_DIFFERENCE, skip=self.total.null, only=has_skill)

    def _table(
        self,
        columns: Callable[[Scored, int], Columns],
        few: Callable[[Scored], int],
        *,
        skip: str | None = None,
        against: bool = False,
        only: Callable[[Scored], bool] = lambda _: True,
    ) -> pd.DataFrame:
        import pandas as pd

        blocks = list(self._blocks(columns, few, skip, against, only))
        if not blocks:  # nothing to compare with: the columns alone
            blocks = list(self._blocks(columns, few, None, against, lambda _: True))[:1]
            return pd.DataFrame(_joined(blocks)).iloc[:0]
        table = pd.DataFrame(_joined(blocks))
        quiet = ~table["reliable"].to_numpy() & self._of_parts(len(table))
        for name in ("lower", "upper", "p_value", "p_adjusted"):
            if name in table:
                table.loc[quiet, name] = np.nan
        return table

    def _blocks(
        self,
        columns: Callable[[Scored, int], Columns],
        few: Callable[[Scored], int],
        skip: str | None,
        against: bool,
        only: Callable[[Scored], bool],
    ) -> Iterator[tuple[Columns, int]]:
        """Yield the columns of every model in the total, then in every part, and how many rows they have."""
        everything = {(ALL,) * len(self.by): self.total, **self.parts}
        for key, comparison in everything.items():
            for k, one in enumerate(comparison.scored):
                if not only(one):
                    continue
                seen = self.look.of(one)
                names = {"metric": one.metric, "weighting": self.total.scored[k].weighting}
                for a, name in enumerate(comparison.models):
                    if name == skip:
                        continue
                    found = columns(seen, a)
                    numbers: Columns = {column: padded(values, self.look.size) for column, values in found.items()}
                    if isinstance(self.look, Means):
                        of_models = [a, *([comparison.models.index(comparison.reference)] if against else [])]
                        numbers["reason"] = _reason(one, seen, of_models, few(one), bool(found["reliable"][0]))
                    yield {
                        **dict(zip(self.by, key, strict=True)), **names, "model": name,
                        **({"reference": comparison.reference} if against else {}),
                        **self.look.before(one.metric), **numbers, **self.look.after(one.metric),
                    }, self.look.size  # fmt: skip

    def _of_parts(self, n_rows: int) -> NDArray[np.bool_]:
        """Whether each row is of a part; those of the total come first, and all have as many."""
        return np.arange(n_rows) >= n_rows // (1 + len(self.parts))

    def _judged(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add p-values that allow for the number of segments, and verdicts by them."""
        if not len(table):
            return table
        of_parts = self._of_parts(len(table))
        p = table["p_value"].to_numpy()[of_parts]
        # every part has the same rows in the same order
        corrected = adjusted(p.reshape(len(self.parts), -1), self.correction).reshape(-1)
        table.loc[of_parts, "p_adjusted"] = corrected
        directions = {one.metric: one.direction for one in self.total.scored}
        found = verdicts_by_p(
            table["difference"].to_numpy()[of_parts], corrected, table["reliable"].to_numpy()[of_parts],
            [directions[metric] for metric in table["metric"][of_parts]], self.total.level,
        )  # fmt: skip
        table.loc[of_parts, "verdict"] = found
        return table


def verdicts_by_p(
    difference: NDArray[np.float64],
    p_value: NDArray[np.float64],
    reliable: NDArray[np.bool_],
    directions: Sequence[Direction],
    level: float,
) -> NDArray[np.object_]:
    """Return whether models are better, worse or undecided by p-values; too few, where there is no interval for that.

    `directions` says of each difference which values are better; see `sides`.
    """
    below, above = np.array([sides(one) for one in directions], dtype=object).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        sure = p_value < 1.0 - level
        lower = sure & (difference < 0)
    conditions = [np.isnan(difference), ~reliable, np.isnan(p_value), lower, sure]
    return np.select(conditions, ["unknown", TOO_FEW, "unknown", below, above], "undecided").astype(object)


def _reason(one: Scored, seen: Scored, models: list[int], few: int, reliable: bool) -> str:
    """Return why the mean of some models, or its interval, is missing; nothing where neither is."""
    if np.isnan(seen.scores[models]).any():
        return "; ".join(one.undefined) or "there is no score"
    if one.scale == "none":
        return "chance alone makes much of it, so that it has no interval"
    if not reliable and seen.support.enough(few)[0]:
        return "too much of its variance is of what can't be seen of those who are there"
    return "" if reliable else too_few(seen.support, few)


def too_few(support: Support, few: int) -> str:
    """Return in words what there is too little of."""
    if float(support.n_rarer[0]) < few:
        return f"fewer than {few} with event, or without"
    return "too few groups, or groups of too different size" if support.grouped else "too few individuals"


def _joined(blocks: list[tuple[Columns, int]]) -> Columns:
    """Return the blocks one below the other; NaN where one lacks a column."""
    names = dict.fromkeys(name for block, _ in blocks for name in block)
    return {name: np.concatenate([_column(block.get(name, np.nan), n) for block, n in blocks]) for name in names}


def _column(values: Any, n: int) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    return np.full(n, values, dtype=object if isinstance(values, str) else np.float64)

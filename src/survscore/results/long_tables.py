"""The long table behind comparisons, with segments or without, at each time or as means over time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, check_choice, plural
from survscore.engine.evaluation import ScoreArrays
from survscore.inference.intervals import ROUNDING, fisher_p, student_p, student_quantile
from survscore.inference.multiplicity import Correction, adjusted
from survscore.inference.support import FEW_FOR_DIFFERENCE, MUCH_ADDED
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
Comparand = Literal["difference", "score"]
OTHERS = "(others)"


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


def parts_table(
    models: Sequence[str], times: NDArray[np.float64], results: Sequence[ScoreArrays]
) -> pd.DataFrame | None:
    """Return both parts of projected scores; None where nothing is projected. A single score has no name of a model."""
    rows = []
    for scored in results:
        for a, scores in enumerate(scored.scores if scored.parts is not None else ()):
            parts: Any = scored.parts
            columns = {
                "score": scores,
                "share_observed": np.where(np.isnan(scores), np.nan, parts.share),
                "observed": parts.observed[a],
                "projected": parts.projected[a],
            }
            named = {"model": models[a]} if models else {}
            columns = {name: padded(values, times.size) for name, values in columns.items()}
            rows.append({**names_of(scored), **named, "time": times, **columns})
    return stacked(rows) if rows else None


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


# Whether segments differ: each against the others, and all at once. Segments are disjoint, so their estimates are
# independent and variances add. A difference has the degrees of freedom of Satterthwaite's approximation,
# (sum c_g^2 V_g)^2 / sum((c_g^2 V_g)^2 / nu_g).


@dataclass(frozen=True, eq=False)
class BySegment:
    """One quantity in every segment, (segments, times): NaN where a segment has none, or too few for an interval."""

    value: NDArray[np.float64]
    variance: NDArray[np.float64]
    degrees: NDArray[np.float64]  # of freedom, of the variance
    n_counted: NDArray[np.float64]  # to how many individuals it refers

    @classmethod
    def of(cls, segments: Sequence[Estimates], a: int, r: int | None) -> BySegment:
        """Take the scores of a model, or its differences to another."""
        b, by_segment = a if r is None else r, []
        for estimates in segments:
            value = estimates.scores[a] if r is None else estimates.scores[a] - estimates.scores[b]
            degrees = estimates.support.score_degrees if r is None else estimates.support.difference_degrees
            rounding = ROUNDING * np.abs(estimates.scores[[a, b]]).max(axis=0)  # nothing is known more exactly
            with np.errstate(invalid="ignore"):
                variance = np.maximum(estimates.variance(a, b), rounding**2)
                known = estimates.support.enough(FEW_FOR_DIFFERENCE) & np.isfinite(value)
                known &= np.isfinite(variance) & (variance > 0) & (estimates.added_share(a, b) <= MUCH_ADDED)
                known &= estimates.scored.scale != "none"  # chance makes more of it in small segments
            columns = (np.where(known, column, np.nan) for column in (value, variance, degrees))
            by_segment.append((*columns, estimates.support.n_counted))
        return cls(*map(np.array, zip(*by_segment, strict=True)))

    def against(self, other: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return, for each segment, the others' value, the variance of the difference, and its degrees of freedom.

        The others are one segment, or all but this, weighted by how many individuals they count.
        """
        known, place, pooled = ~np.isnan(self.value), np.arange(len(self.value)), []
        with np.errstate(invalid="ignore", divide="ignore"):
            for g in place:
                chosen = known & (place != g if other is None else place == other)[:, None]
                share = np.where(chosen, self.n_counted, 0.0)
                share /= share.sum(axis=0)
                each = share**2 * np.where(chosen, self.variance, 0.0)
                total = self.variance[g] + each.sum(axis=0)
                parts = np.sum(each**2 / np.where(chosen, self.degrees, 1.0), axis=0)
                degrees = total**2 / (self.variance[g] ** 2 / self.degrees[g] + parts)
                pooled.append((np.sum(share * np.where(chosen, self.value, 0.0), axis=0), total, degrees))
        value, variance, degrees = (np.array(column) for column in zip(*pooled, strict=True))
        return value, variance, degrees

    def heterogeneity(self) -> Columns:
        r"""Return at each time how many segments there are, Cochran's Q, its degrees of freedom and a p-value.

        :math:`Q = \sum_g w_g (d_g - \bar d)^2` with :math:`w_g = 1/V_g`. Since these weights are estimated, Q is judged
        by Welch's approximation: :math:`Q / (k - 1) / [1 + 2 (k - 2) \Lambda / (k^2 - 1)]` by Fisher's F with k - 1 and
        :math:`(k^2 - 1) / (3 \Lambda)` degrees of freedom, :math:`\Lambda = \sum_g (1 - w_g / \sum w)^2 / \nu_g`. With
        many individuals that is the chi-square of Q.
        """
        k = np.sum(~np.isnan(self.value), axis=0).astype(np.float64)
        several = np.where(k > 1, k, np.nan)
        weight = np.where(k > 1, 1.0 / self.variance, np.nan)
        share = weight / np.nansum(weight, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            q = np.nansum(weight * (self.value - np.nansum(share * self.value, axis=0)) ** 2, axis=0)
            welch_term = np.nansum((1.0 - share) ** 2 / self.degrees, axis=0)
            statistic = q / (several - 1) / (1.0 + 2.0 * (several - 2) * welch_term / (several**2 - 1))
            rest = (several**2 - 1) / (3.0 * welch_term)
        p_value = np.array([fisher_p(*three) for three in zip(statistic, several - 1, rest, strict=True)])
        return {"n_segments": k, "q": np.where(k > 1, q, np.nan), "df": several - 1, "p_value": p_value}


def between(table: LongTable, of: Comparand, model: str | None, against: str | Sequence[str] | None) -> pd.DataFrame:
    """Return each segment against all others, or against one of them; see `SegmentedComparison.between`."""
    keys, key = list(table.comparisons)[1:], None
    if against is not None:
        key = (against,) if isinstance(against, str) else tuple(str(label) for label in against)
        if key not in keys:
            raise InputError(f"against must be one of the {len(keys)} segments, such as {keys[0]}, not {key!r}")
    other = None if key is None else keys.index(key)
    compared = [g for g in range(len(keys)) if g != other]
    blocks = []
    for scored, labels, segments in _each(table, of, model):
        labels["against"] = OTHERS if key is None else ", ".join(key)
        rest, variance, degrees = segments.against(other)
        difference, se = segments.value - rest, np.sqrt(variance)
        half = student_quantile(table.total.level, degrees) * se
        p_value = student_p(difference / se, degrees)
        p_adjusted = np.full_like(p_value, np.nan)
        p_adjusted[compared] = adjusted(p_value[compared], table.correction)
        columns = {
            "estimate": segments.value,
            "others": rest,
            "difference": difference,
            "se": se,
            "lower": difference - half,
            "upper": difference + half,
            "p_value": p_value,
            "p_adjusted": p_adjusted,
        }
        for g in compared:
            known = ~np.isnan(segments.value[g])
            numbers: Columns = {name: values[g] for name, values in columns.items()}
            there, directions = np.where(known, difference[g], 0.0), [scored.direction] * known.size
            numbers["verdict"] = verdicts_by_p(there, p_adjusted[g], known, directions, table.total.level)
            blocks.append({**dict(zip(table.by, keys[g], strict=True)), **table.block(scored, labels, numbers)})
    return stacked(blocks)


def heterogeneity(table: LongTable, of: Comparand, model: str | None) -> pd.DataFrame:
    """Return whether all segments could be the same; see `SegmentedComparison.heterogeneity`."""
    each = _each(table, of, model)
    return stacked([table.block(scored, labels, segments.heterogeneity()) for scored, labels, segments in each])


def _each(table: LongTable, of: Comparand, model: str | None) -> Iterator[tuple[ScoreArrays, Columns, BySegment]]:
    """Yield, for every metric, weighting and model, the estimates of all segments, and their labels."""
    if table.n_spanning is None:
        raise InputError(
            "segments can't be compared with each other: `groups` are in random buckets, so it is not known "
            "whether some have individuals in several segments; write files that hold whole groups"
        )
    if table.n_spanning:
        raise InputError(
            f"segments can't be compared with each other: {plural(table.n_spanning, 'group')} of `groups` "
            f"{'has' if table.n_spanning == 1 else 'have'} individuals in several segments, which therefore depend "
            "on each other; segment by something that is the same for all of a group"
        )
    check_choice("of", of, ("difference", "score"))
    total = table.total
    if model is not None:
        check_choice("model", model, total.models)
    reference = total.models.index(total.reference) if of == "difference" else None
    for k, scored in enumerate(total.scored):
        estimates = [table.estimates(part.scored[k]) for part in list(table.comparisons.values())[1:]]
        for a, name in enumerate(total.models):
            if a == reference or (model is not None and name != model):
                continue
            labels = {"model": name} | ({} if reference is None else {"reference": total.reference})
            yield scored, labels, BySegment.of(estimates, a, reference)
